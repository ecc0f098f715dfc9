"""Layers and heads of any model, from its configuration.

Nothing but the two numbers is needed, so families whose forward pass is not run here count, too.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankcollapse.errors import UnsupportedModelError
from rankcollapse.paths.architectures import ENCODER, Stack, built_in

if TYPE_CHECKING:
    from transformers import PretrainedConfig

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers")
HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads")
# Of an encoder-decoder, the plain names can mean either stack or both, so its own come first.
_FIRST = {
    "layers": ("encoder_layers", "num_encoder_layers"),
    "heads": ("encoder_attention_heads", "num_encoder_attention_heads"),
}
_LAST = {
    "layers": ("num_encoder_layers", "decoder_layers"),
    "heads": ("encoder_attention_heads", "num_encoder_attention_heads", "decoder_attention_heads"),
}
# Where a model of several parts keeps the configuration of its stack; the first is counted.
_SECTIONS = ("text_config", "llm_config", "language_config", "encoder", "encoder_config")
_SECTIONS += ("vision_config", "audio_config", "backbone_config")
_RECURRENT = ("xlstm",)  # its "heads" are of a recurrent cell
_DIFFER = "from layer to layer"

Get = Callable[[str], Any]


def read_stack(source: "str | Path | PretrainedConfig") -> Stack:
    """Reads the numbers of layers and heads from a configuration.

    Of a type that `transformers` knows, its own names and defaults hold; of any other, the usual
    names in config.json. Of an encoder-decoder the encoder is counted (a decoder's layers also
    attend to the encoder, so its paths are more than these), of a model of several parts the
    text part; the note says so.

    Args:
        source: A folder with config.json, such a file, a hub id, a `transformers` configuration,
            or the name of one of the architectures of Figure 5, such as "GPT-3".

    Raises:
        CheckpointError: It is neither there nor on the hub.
        UnsupportedModelError: It does not give one number of layers and one of attention heads
            that hold for the whole stack.

    Example:
        >>> read_stack("ViT-H")
        Stack(name='ViT-H', layers=32, heads=16, note='')
    """
    if not isinstance(source, str | Path):
        return _stack(type(source).__name__, type(source).__name__, _attributes(source))
    path = Path(source).expanduser()
    published = built_in(str(source))
    if published is not None and not path.exists():
        return published
    # Imported here: it is slow, and the architectures of Figure 5 do without it.
    from rankcollapse.families.hub import download, local_config, read_config

    if path.is_file():
        raw, where = read_config(path), str(path)
        name = _short(path.parent if path.name == "config.json" else path)
    else:
        folder = download(str(source), None, weights=False)
        raw, where = local_config(folder), f"the configuration of {source}"
        name = _short(path) if path.exists() else str(source)
    return _stack(name, where, _getter(raw, where))


def _short(path: Path) -> str:
    """The last two parts of where a path leads, links unfollowed: a cache's targets are hashes."""
    return "/".join(Path(os.path.abspath(path)).parts[-2:])


def _getter(raw: Mapping[str, Any], where: str) -> Get:
    """How to look a name up: with the type's own names and defaults, if transformers knows it."""
    from transformers import CONFIG_MAPPING

    model_type = raw.get("model_type")
    if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
        return raw.get
    try:
        return _attributes(CONFIG_MAPPING[model_type].from_dict(dict(raw)))
    except Exception as error:  # a value of the wrong type raises whatever its use raises
        reason = " ".join(str(error).split()).rstrip(".")
        raise UnsupportedModelError(
            f"{where} is not a usable {model_type} configuration ({reason}): correct it."
        ) from None


def _attributes(config: Any) -> Get:
    def get(name: str) -> Any:
        try:
            return getattr(config, name, None)
        except Exception:  # transformers refuses what differs from layer to layer
            return _DIFFER

    return get


def _stack(name: str, where: str, get: Get) -> Stack:
    notes = []
    if not _has_both(get):
        for section in _SECTIONS:
            part = get(section)
            inner = _getter(part, where) if isinstance(part, Mapping) else _attributes(part)
            if part is not None and _has_both(inner):
                notes.append(f"its {section}")
                get = inner
                break
    if get("is_encoder_decoder") is True:
        notes.append(ENCODER)
    layers = _number(where, "layers", LAYERS, get)
    heads = _number(where, "attention heads", HEADS, get)
    _check_attention(where, layers, get)
    # ALBERT's groups repeat several layers under one of the numbers.
    inner_layers = get("inner_group_num")
    if isinstance(inner_layers, int):
        layers *= inner_layers
    return Stack(name, layers, heads, "; ".join(notes))


def _has_both(get: Get) -> bool:
    return _find("layers", LAYERS, get) is not None and _find("heads", HEADS, get) is not None


def _find(what: str, names: tuple[str, ...], get: Get) -> tuple[str, Any] | None:
    first = _FIRST[what] if get("is_encoder_decoder") is True else ()
    for name in (*first, *names, *_LAST[what]):
        if (value := get(name)) is not None:
            return name, value
    return None


def _number(where: str, what: str, names: tuple[str, ...], get: Get) -> int:
    found = _find(what.split()[-1], names, get)
    if found is None:
        raise UnsupportedModelError(
            f"{where} gives no number of {what} ({', '.join(names)} or the like): pass a "
            "transformer's configuration."
        )
    name, value = found
    if isinstance(value, list | tuple | dict) or value == _DIFFER:
        given = "differs" if value == _DIFFER else f"is {value}, which differs"
        raise UnsupportedModelError(
            f"{where}: {name} {given} {_DIFFER}; only stacks with one number of {what} are counted."
        )
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UnsupportedModelError(
            f"{where}: {name} is {value!r}; correct it to a whole number of at least 1."
        )
    return value


def _check_attention(where: str, layers: int, get: Get) -> None:
    """Refuses stacks in which some layers are no softmax attention, and so have no such heads."""
    kinds = get("layer_types")
    kinds = [str(k) for k in kinds] if isinstance(kinds, list | tuple) else []
    other = sorted({k for k in kinds if not k.endswith("attention") or k.startswith("linear")})
    if len(kinds) == layers and other:
        raise UnsupportedModelError(
            f"{where}: not all layers are softmax attention (layer_types has {', '.join(other)}); "
            "only stacks of attention layers are counted."
        )
    if get("model_type") in _RECURRENT:
        raise UnsupportedModelError(
            f"{where} is of type {get('model_type')}, whose layers are recurrent; only stacks of "
            "attention layers are counted."
        )
