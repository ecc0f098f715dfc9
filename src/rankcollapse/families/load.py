"""`load`: from a hub id, a folder, a configuration or a live model to the one `Transformer`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, PretrainedConfig, PreTrainedModel

from rankcollapse.errors import (
    CheckpointError,
    OptionError,
    TokenizerError,
    UnsupportedModelError,
)
from rankcollapse.families import FAMILIES
from rankcollapse.families.family import Family, check_sizes
from rankcollapse.families.hub import download, local_config
from rankcollapse.families.tensors import Tensors
from rankcollapse.families.weights import StateDictWeights, Weights, open_folder
from rankcollapse.transformer import Block, Transformer

_VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "*.tiktoken")
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def load(
    source: str | Path | PretrainedConfig | PreTrainedModel,
    *,
    init: Literal["pretrained", "random"] = "pretrained",
    seed: int = 0,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    revision: str | None = None,
    tokenizer: Any = None,
) -> Transformer:
    """Makes the `Transformer` that everything here measures, and checks all of its weights.

    Args:
        source: A folder, a hub id, a `transformers` configuration (`init="random"`), or a
            live `transformers` model, whose weights are used as they are and not copied.
        init: "pretrained" takes the weights of `source`; "random" makes Hugging Face's own
            initialisation of its configuration under `seed`.
        seed: Seed of the random initialisation; the global random state is left as it was.
        dtype: "float32" or "float64", what the pass runs in. By default the checkpoint's own, and
            float32 for a half-precision checkpoint.
        device: Where the pass runs, such as "cuda". By default a live model's own device, else CPU.
        revision: Commit, branch or tag of a hub model.
        tokenizer: A tokenizer, or a folder or hub id to load one from, instead of the source's.

    Returns:
        The model. Blocks are read from the checkpoint when the pass reaches them, so memory holds
        one block at a time.

    Raises:
        UnsupportedModelError: No adapter covers the model's type or one of its settings.
        CheckpointError: Weights are absent, truncated, misshapen, not finite or need pickle.
        OptionError: An option has a value that does not exist.

    Example:
        >>> from transformers import BertConfig
        >>> config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        ...                     intermediate_size=64, vocab_size=99)
        >>> load(config, init="random", seed=0)
        Transformer('BertConfig', family='bert', layers=2, heads=4, width=32, norm='post', \
dtype=float32, device=cpu)
    """
    chosen = _dtype(dtype)
    if not 0 <= seed < 2**63:
        raise OptionError(f"seed {seed} is not one: use a number from 0 to 2⁶³ − 1.")
    if init not in ("pretrained", "random"):
        raise OptionError(f"init={init!r} does not exist: use 'pretrained' or 'random'.")
    config, name, folder = _locate(source, init, revision)
    family = _family(config)
    architecture = family.architecture(config)
    check_sizes(architecture)
    live = source if isinstance(source, PreTrainedModel) and init != "random" else None
    where = _device(live.device if live is not None and device is None else device)
    if init == "random":
        weights: Weights = StateDictWeights(_initialise(config, seed).state_dict())
    elif live is not None:
        weights = StateDictWeights(live.state_dict())
    else:
        assert folder is not None
        weights = open_folder(folder)
    tensors = Tensors.of(weights, family.prefix, family.probe)
    stored = tensors.weights.read(tensors.prefix + family.probe).dtype
    run_dtype = chosen or (stored if stored in DTYPES.values() else torch.float32)
    _check(family, config, tensors.to(None, None, check=True), architecture.layers)
    read = tensors.to(run_dtype, where)
    return Transformer(
        name=name,
        family=config.model_type,
        architecture=architecture,
        blocks=LazyBlocks(family, config, read, architecture.layers),
        final_norm=family.final_norm(config, read),
        read_embedding=lambda: family.embedding(config, read),
        read_tokenizer=lambda: _tokenizer(tokenizer if tokenizer is not None else folder, name),
        dtype=run_dtype,
        device=where,
        origin={
            "init": init if live is None else "live",
            "seed": seed if init == "random" else None,
            "revision": revision,
        },
    )


def _locate(
    source: Any, init: str, revision: str | None
) -> tuple[PretrainedConfig, str, Path | None]:
    """The configuration, what to call the model, and the folder it comes from, if any."""
    if isinstance(source, PreTrainedModel):
        origin = source.name_or_path  # where from_pretrained() found it
        found = Path(origin) if origin and Path(origin).is_dir() else None
        return source.config, type(source).__name__, found
    if isinstance(source, PretrainedConfig):
        if init != "random":
            raise CheckpointError(
                f"a configuration ({type(source).__name__}) has no weights: pass init='random', or "
                "a folder, a hub id or a live model."
            )
        return source, type(source).__name__, None
    if isinstance(source, str | Path):
        folder = download(str(source), revision, weights=init == "pretrained")
        return _read_config(folder), str(source), folder
    raise OptionError(
        f"a model cannot be loaded from {type(source).__name__}: pass a folder, a hub id, a "
        "transformers configuration or a live transformers model."
    )


@dataclass(frozen=True)
class LazyBlocks(Sequence[Block]):
    """Blocks that are read from the checkpoint each time they are indexed; none is kept."""

    family: Family
    config: Any
    read: Tensors
    layers: int

    def __len__(self) -> int:
        return self.layers

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.layers))]
        if not -self.layers <= index < self.layers:
            raise IndexError(f"block {index} of {self.layers}")
        return self.family.block(self.config, self.read, index % self.layers)


def _check(family: Family, config: Any, read: Tensors, layers: int) -> None:
    """Reads every tensor once, so that a wrong one is named before long work starts."""
    family.embedding(config, read)
    for index in range(layers):
        family.block(config, read, index)
    family.final_norm(config, read)


def _family(config: PretrainedConfig) -> Family:
    if config.model_type not in FAMILIES:
        raise UnsupportedModelError(
            f"model type {config.model_type!r} is not supported: supported types are "
            f"{', '.join(FAMILIES)} (see `rankcollapse families`)."
        )
    return FAMILIES[config.model_type]


def _read_config(folder: Path) -> PretrainedConfig:
    raw = local_config(folder)
    if not isinstance(raw.get("model_type"), str) or raw["model_type"] not in FAMILIES:
        raise UnsupportedModelError(
            f"{folder / 'config.json'} has model_type {raw.get('model_type')!r}: supported types "
            f"are {', '.join(FAMILIES)} (see `rankcollapse families`)."
        )
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # a value of the wrong type raises whatever its use raises
        raise UnsupportedModelError(
            f"{folder / 'config.json'} is not a usable {raw['model_type']} configuration: {error}"
        ) from None


def _initialise(config: PretrainedConfig, seed: int) -> PreTrainedModel:
    """Hugging Face's own initialisation, in float32."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return AutoModel.from_config(config, dtype=torch.float32)


def _tokenizer(source: Any, name: str) -> Any:
    if source is not None and not isinstance(source, str | Path):
        return source
    remedy = "pass token ids (a mapping with input_ids) or a tokenizer (--tokenizer FOLDER)"
    if source is None:
        raise TokenizerError(f"{name} comes without a tokenizer: {remedy}.")
    folder = Path(source)
    # Without a vocabulary, transformers makes an empty tokenizer and says nothing.
    if folder.is_dir() and not any(p for files in _VOCABULARIES for p in folder.glob(files)):
        raise TokenizerError(f"{folder} has no tokenizer's vocabulary: {remedy}.")
    try:
        return AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # each tokenizer class fails in its own way when files are missing
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TokenizerError(
            f"no tokenizer can be loaded for {name} ({first}): {remedy}."
        ) from None


def _dtype(dtype: str | torch.dtype | None) -> torch.dtype | None:
    name = str(dtype).removeprefix("torch.")
    if dtype is None or name in DTYPES:
        return None if dtype is None else DTYPES[name]
    raise OptionError(
        f"dtype {name!r} is not one to measure in: use {' or '.join(DTYPES)} (half-precision "
        "checkpoints are upcast to float32)."
    )


def _device(device: str | torch.device | None) -> torch.device:
    try:
        chosen = torch.device("cpu" if device is None else device)
        torch.zeros(1, device=chosen).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        first = str(error).strip().splitlines()[0]
        raise OptionError(f"device {str(device)!r} cannot be used: {first}") from None
    return chosen
