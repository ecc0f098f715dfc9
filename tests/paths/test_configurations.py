"""Layers and heads from configurations of all sorts, and the refusals."""

import json
from pathlib import Path

import pytest
import transformers

from rankcollapse.errors import CheckpointError, RankCollapseError, UnsupportedModelError
from rankcollapse.paths import FIGURE_5, Stack, read_stack

OWN_NAMES = {
    "bert": {"num_hidden_layers": 5, "num_attention_heads": 3},
    "gpt2": {"n_layer": 5, "n_head": 3},
    "xlm": {"n_layers": 5, "n_heads": 3},
    "distilbert": {"n_layers": 5, "n_heads": 3},
    "gpt_neo": {"num_layers": 5, "num_heads": 3, "attention_types": [[["global"], 5]]},
    "xglm": {"num_layers": 5, "attention_heads": 3},
    "trocr": {"decoder_layers": 5, "decoder_attention_heads": 3},
    "falcon": {"num_hidden_layers": 5, "num_attention_heads": 3, "num_kv_heads": 1},
}
ENCODER_DECODERS = {
    "t5": {"num_layers": 5, "num_decoder_layers": 7, "num_heads": 3},
    "bart": {
        "encoder_layers": 5,
        "encoder_attention_heads": 3,
        "decoder_layers": 7,
        "decoder_attention_heads": 4,
    },
    "prophetnet": {
        "num_encoder_layers": 5,
        "num_encoder_attention_heads": 3,
        "num_decoder_layers": 7,
        "num_decoder_attention_heads": 4,
    },
}
SWIN = {"model_type": "swin", "depths": [2, 2], "num_heads": [3, 6]}


def numbers(stack: Stack) -> tuple[int, int]:
    return stack.layers, stack.heads


@pytest.fixture
def folder(tmp_path):
    def folder(raw: dict) -> Path:
        made = tmp_path / "some" / "model"
        made.mkdir(parents=True, exist_ok=True)
        (made / "config.json").write_text(json.dumps(raw))
        return made

    return folder


@pytest.mark.parametrize("model_type", OWN_NAMES)
def test_known_types_by_their_own_names(folder, model_type):
    made = folder({"model_type": model_type, **OWN_NAMES[model_type]})
    assert read_stack(made) == Stack("some/model", 5, 3)
    assert read_stack(made / "config.json") == Stack("some/model", 5, 3)


@pytest.mark.parametrize("model_type", ENCODER_DECODERS)
def test_of_an_encoder_decoder_the_encoder(folder, model_type):
    raw = {"model_type": model_type, "is_encoder_decoder": True, **ENCODER_DECODERS[model_type]}
    expected = Stack("some/model", 5, 3, "encoder of an encoder-decoder")
    assert read_stack(folder(raw)) == expected
    assert read_stack(folder({**raw, "model_type": "of no library"})) == expected


def test_defaults_are_those_of_the_type(folder):
    assert numbers(read_stack(folder({"model_type": "mobilebert"}))) == (24, 4)


@pytest.mark.parametrize("names", list(OWN_NAMES.values()))
@pytest.mark.parametrize("model_type", [{}, {"model_type": "new"}, {"model_type": 7}])
def test_unknown_types_by_the_usual_names(folder, names, model_type):
    assert numbers(read_stack(folder({**model_type, **names, "architectures": ["New"]}))) == (5, 3)


def test_of_several_parts_the_text(folder):
    text = {"model_type": "llama", "hidden_size": 12}
    text |= {"num_hidden_layers": 5, "num_attention_heads": 3}
    vision = {"model_type": "clip_vision_model", "num_hidden_layers": 9}
    raw = {"model_type": "llava", "text_config": text, "vision_config": vision}
    for model_type in ("llava", "new"):
        stack = read_stack(folder({**raw, "model_type": model_type}))
        assert numbers(stack) == (5, 3)
        assert stack.note == "its text_config"


def test_albert_repeats_the_inner_layers_of_a_group(folder):
    raw = {"num_hidden_layers": 4, "num_attention_heads": 3, "inner_group_num": 2}
    assert numbers(read_stack(folder({"model_type": "albert", **raw}))) == (8, 3)


def test_a_live_configuration():
    config = transformers.GPT2Config(n_layer=5, n_head=3, n_embd=12)
    assert read_stack(config) == Stack("GPT2Config", 5, 3)


def test_the_real_model(pretrained):
    assert numbers(read_stack(pretrained)) == (6, 12)


def test_a_configuration_of_another_name_keeps_it(folder):
    other = folder({"num_layers": 5, "num_heads": 3}) / "large.json"
    (other.parent / "config.json").rename(other)
    assert read_stack(str(other)) == Stack("model/large.json", 5, 3)


def test_the_folder_one_is_in(folder, monkeypatch):
    monkeypatch.chdir(folder({"num_layers": 5, "num_heads": 3}))
    assert read_stack(".") == Stack("some/model", 5, 3)


@pytest.mark.parametrize("stack", FIGURE_5, ids=[stack.name for stack in FIGURE_5])
def test_figure_5_by_name(stack):
    assert read_stack(stack.name) is stack
    assert all(read_stack(part.lower()) is stack for part in stack.name.split(", "))


def test_a_folder_comes_before_a_name(folder, monkeypatch):
    made = folder({"num_layers": 5, "num_heads": 3})
    monkeypatch.chdir(made.parent)
    made.rename("GPT-3")
    assert numbers(read_stack("GPT-3")) == (5, 3)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "no number of layers"),
        ({"model_type": "new", "num_layers": 5}, "no number of attention heads"),
        ({"model_type": "new", "num_heads": 5}, "no number of layers"),
        ({"model_type": "rwkv"}, "no number of attention heads"),
        (SWIN, "differs from layer to layer"),
        ({"num_layers": 0, "num_heads": 3}, "num_layers is 0"),
        ({"num_layers": 5, "num_heads": -3}, "num_heads is -3"),
        ({"num_layers": 5.5, "num_heads": 3}, "num_layers is 5.5"),
        ({"num_layers": "5", "num_heads": 3}, "num_layers is '5'"),
        ({"num_layers": True, "num_heads": 3}, "num_layers is True"),
        ({"model_type": "bert", "num_hidden_layers": "many"}, "many"),
        ({"model_type": "mamba2", "num_hidden_layers": 5}, "linear_attention"),
        ({"model_type": "jamba"}, "linear_attention"),
        ({"model_type": "xlstm"}, "recurrent"),
    ],
)
def test_configurations_without_one_number_of_each(folder, raw, words):
    with pytest.raises(UnsupportedModelError, match=words) as caught:
        read_stack(folder(raw))
    assert "model" in str(caught.value)
    assert str(caught.value).rstrip().endswith(".")


def test_sliding_and_full_attention_are_both_attention(folder):
    assert read_stack(folder({"model_type": "gemma3_text", "num_hidden_layers": 12})).layers == 12


def test_heads_that_the_library_says_differ(folder):
    class Heterogeneous:
        num_hidden_layers = 4

        @property
        def num_attention_heads(self):
            raise ValueError("per layer")

    with pytest.raises(UnsupportedModelError, match="num_attention_heads differs from layer"):
        read_stack(Heterogeneous())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("text", ["[1, 2]", "{", ""])
def test_files_that_are_no_configuration(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    for source in (tmp_path, tmp_path / "config.json"):
        with pytest.raises(UnsupportedModelError, match="not"):
            read_stack(source)


def test_nothing_there(tmp_path):
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        read_stack(tmp_path)
    with pytest.raises(CheckpointError, match="no folder"):
        read_stack(tmp_path / "absent")
    with pytest.raises(RankCollapseError, match="a b"):
        read_stack("a b")
