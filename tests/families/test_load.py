"""`load`: each wrong model gets one named error; dtypes, heads, live models give the right pass."""

import importlib.util
import json
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AutoModel,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    XLNetConfig,
    XLNetLMHeadModel,
)

import rankcollapse
from rankcollapse.errors import (
    CheckpointError,
    OptionError,
    RankCollapseError,
    TokenizerError,
    UnsupportedModelError,
)
from rankcollapse.families import FAMILIES
from rankcollapse.families import load as module
from rankcollapse.families.load import load
from rankcollapse.transformer.parts import ACTIVATIONS
from tests.networks import ids, randomised, relative_error, states

INPUTS = {"input_ids": ids((7, 5))}
CONFIGS: dict[str, Any] = {
    "bert": BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        vocab_size=99, max_position_embeddings=20,
    ),
    "albert": AlbertConfig(
        hidden_size=32, embedding_size=16, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, vocab_size=99, max_position_embeddings=20,
    ),
    "xlnet": XLNetConfig(d_model=32, n_layer=2, n_head=4, d_inner=48, vocab_size=99),
    "gpt2": GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, n_positions=20),
}  # fmt: skip
WORDS = "embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good BERT checkpoint; tests change copies of it."""
    folder = tmp_path_factory.mktemp("checkpoints") / "good"
    randomised(CONFIGS["bert"], dtype=torch.float32).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.fixture
def sharded(saved: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "sharded"
    AutoModel.from_pretrained(saved).save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    return folder


def configure(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change(folder: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors")


def message(error: type[Exception], source: Any, **options: Any) -> str:
    """What `load` says; one sentence, and nothing else went wrong on the way."""
    with pytest.raises(error) as caught:
        load(source, **options)
    text = str(caught.value)
    assert isinstance(caught.value, RankCollapseError)
    assert text and "Traceback" not in text
    return text


@pytest.fixture(scope="module")
def unchecked() -> ModuleType:
    """The same source without the tests' runtime type checks, which would raise in its place."""
    spec = importlib.util.spec_from_file_location("unchecked_load", str(module.__file__))
    assert spec is not None and spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = plain
    spec.loader.exec_module(plain)
    return plain


class TestConfiguration:
    @pytest.mark.parametrize("kind", ["llama", None, 5, ["bert"], {"a": 1}])
    def test_unknown_model_type_in_a_folder(self, folder, kind):
        configure(folder, model_type=kind)
        text = message(UnsupportedModelError, folder)
        assert repr(kind) in text
        assert all(name in text for name in FAMILIES)

    def test_unknown_model_type_of_a_live_model_and_a_configuration(self):
        from transformers import DistilBertConfig

        config = DistilBertConfig(dim=32, n_layers=1, n_heads=4, hidden_dim=48, vocab_size=99)
        for source, options in ((config, {"init": "random"}), (AutoModel.from_config(config), {})):
            text = message(UnsupportedModelError, source, **options)
            assert "'distilbert'" in text and all(name in text for name in FAMILIES)

    def test_missing_folder(self, tmp_path):
        assert str(tmp_path / "none") in message(CheckpointError, tmp_path / "none")
        assert str(tmp_path / "none") in message(CheckpointError, str(tmp_path / "none"))

    def test_a_file_in_place_of_a_folder(self, folder):
        text = message(CheckpointError, folder / "model.safetensors")
        assert "is a file" in text and "folder" in text

    def test_a_name_that_cannot_be_had_from_the_hub(self):
        for name in ("no-such-model", "nobody/no-such-model"):
            text = message(CheckpointError, name)
            assert repr(name) in text and "hub" in text
        assert "no folder" in message(CheckpointError, "./no/such/folder")
        assert "hub id" in message(CheckpointError, "not a name!")

    def test_folder_without_configuration(self, folder):
        (folder / "config.json").unlink()
        assert "has no config.json" in message(CheckpointError, folder)

    @pytest.mark.parametrize("content", ["", "{", "not json", "[1, 2]", '"bert"', "null"])
    def test_configuration_that_is_no_json_object(self, folder, content):
        (folder / "config.json").write_text(content)
        assert "config.json" in message(UnsupportedModelError, folder)

    def test_configuration_that_is_not_even_text(self, folder):
        (folder / "config.json").write_bytes(b"\xff\xfe\x00\x80")
        assert "config.json" in message(UnsupportedModelError, folder)

    @pytest.mark.parametrize("changes", [{"hidden_size": "wide"}, {"layer_norm_eps": None}])
    def test_values_of_the_wrong_type(self, folder, changes):
        configure(folder, **changes)
        assert next(iter(changes)) in message(UnsupportedModelError, folder)

    @pytest.mark.parametrize("heads", [5, 0, -4])
    @pytest.mark.parametrize("init", ["pretrained", "random"])
    def test_heads_that_do_not_divide_the_width(self, folder, heads, init):
        configure(folder, num_attention_heads=heads)
        assert str(heads) in message(UnsupportedModelError, folder, init=init)

    @pytest.mark.parametrize("init", ["pretrained", "random"])
    def test_a_negative_number_of_layers(self, folder, init):
        configure(folder, num_hidden_layers=-1)
        assert "-1" in message(UnsupportedModelError, folder, init=init)

    @pytest.mark.parametrize(
        ("family", "changes"),
        [
            ("xlnet", {"bi_data": True}),
            ("xlnet", {"same_length": True}),
            ("bert", {"add_cross_attention": True, "is_decoder": True}),
            ("gpt2", {"add_cross_attention": True}),
            ("bert", {"hidden_act": "mish"}),
            ("albert", {"hidden_act": "mish"}),
            ("xlnet", {"ff_activation": "mish"}),
            ("gpt2", {"activation_function": "mish"}),
            ("bert", {"position_embedding_type": "relative_key"}),
            ("albert", {"position_embedding_type": "relative_key"}),
        ],
    )
    def test_settings_that_are_not_covered(self, tmp_path, family, changes):
        AutoModel.from_config(CONFIGS[family]).save_pretrained(tmp_path)
        configure(tmp_path, **changes)
        setting, value = next(iter(changes.items()))
        for init in ("pretrained", "random"):
            text = message(UnsupportedModelError, tmp_path, init=init)
            assert f"{setting}={value!r} is not covered" in text

    @pytest.mark.parametrize("init", ["pretrained", "random"])
    def test_an_activation_that_nobody_knows(self, folder, init):
        configure(folder, hidden_act="nonsense")
        assert "hidden_act='nonsense'" in message(UnsupportedModelError, folder, init=init)

    @pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n != "gelu"])
    def test_activations_that_are_covered_are_hugging_faces(self, name):
        config = BertConfig(**{**CONFIGS["bert"].to_dict(), "hidden_act": name})
        model = randomised(config)
        with torch.no_grad():
            theirs = model(torch.tensor(ids((9,)))).last_hidden_state[0]
        assert relative_error(states(load(model), {"input_ids": ids((9,))})[0][2], theirs) <= 1e-10

    def test_configuration_alone_has_no_weights(self):
        assert "init='random'" in message(CheckpointError, CONFIGS["bert"])


class TestOptions:
    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "double", "", torch.float16])
    def test_bad_dtype(self, saved, dtype):
        text = message(OptionError, saved, dtype=dtype)
        assert str(dtype).removeprefix("torch.") in text
        assert "float32" in text and "float64" in text

    @pytest.mark.parametrize("device", ["nonsense", "cpu:x", "cuda:99", ""])
    def test_bad_device(self, saved, device):
        assert repr(device) in message(OptionError, saved, device=device)

    def test_bad_init(self, saved, unchecked):
        with pytest.raises(OptionError) as error:
            unchecked.load(saved, init="zeros")
        assert all(repr(init) in str(error.value) for init in ("zeros", "pretrained", "random"))

    @pytest.mark.parametrize("source", [None, 5, torch.nn.Linear(2, 2), {"model_type": "bert"}])
    def test_what_is_no_model(self, unchecked, source):
        with pytest.raises(OptionError, match=f"from {type(source).__name__}: pass a folder"):
            unchecked.load(source)

    @pytest.mark.parametrize("seed", [2**70, -(2**70)])
    def test_bad_seed(self, unchecked, seed):
        with pytest.raises(OptionError, match="seed"):
            unchecked.load(CONFIGS["bert"], init="random", seed=seed)


class TestCheckpoint:
    def test_folder_without_weights(self, folder):
        (folder / "model.safetensors").unlink()
        text = message(CheckpointError, folder)
        assert "has no weights" in text and "init='random'" in text
        assert load(folder, init="random").architecture.layers == 2

    @pytest.mark.parametrize("keep", [0, 4, 100, 0.5, -1])
    def test_truncated_safetensors(self, folder, keep):
        path = folder / "model.safetensors"
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content)) if keep == 0.5 else int(keep)])
        text = message(CheckpointError, folder)
        assert str(path) in text and "truncated" in text

    @pytest.mark.parametrize("header", [b"\xff" * 8, b"not safetensors at all", b"{" * 200])
    def test_corrupted_header(self, folder, header):
        path = folder / "model.safetensors"
        path.write_bytes(header + path.read_bytes()[len(header) :])
        assert str(path) in message(CheckpointError, folder)

    def test_weights_that_are_a_web_page(self, folder):
        (folder / "model.safetensors").write_text("<html>version https://git-lfs</html>" * 9)
        assert "model.safetensors" in message(CheckpointError, folder)

    def test_missing_shard(self, sharded):
        missing = sorted(sharded.glob("*.safetensors"))[1]
        missing.unlink()
        text = message(CheckpointError, sharded)
        assert missing.name in text and "shard" in text

    def test_truncated_shard(self, sharded):
        shard = sorted(sharded.glob("*.safetensors"))[-1]
        shard.write_bytes(shard.read_bytes()[:-8])
        assert str(shard) in message(CheckpointError, sharded)

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", "{}", '{"weight_map": 5}', '{"weight_map": {"a": 5}}', "null"]
    )
    def test_bad_index(self, sharded, content):
        index = sharded / "model.safetensors.index.json"
        index.write_text(content)
        assert str(index) in message(CheckpointError, sharded)

    @pytest.mark.parametrize(
        "name",
        [
            WORDS,
            "embeddings.LayerNorm.bias",
            "encoder.layer.1.attention.self.key.bias",
            "encoder.layer.1.output.LayerNorm.weight",
        ],
    )
    def test_missing_tensor(self, folder, name):
        change(folder, lambda tensors: tensors.pop(name))
        assert name in message(CheckpointError, folder)

    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            (WORDS, (98, 32)),
            ("embeddings.position_embeddings.weight", (21, 32)),
            ("encoder.layer.1.attention.self.query.weight", (16, 32)),
            ("encoder.layer.0.intermediate.dense.weight", (32, 48)),
            ("encoder.layer.1.output.LayerNorm.bias", (1,)),
            ("encoder.layer.0.attention.output.dense.bias", ()),
        ],
    )
    def test_misshapen_tensor(self, folder, name, shape):
        expected = []

        def edit(tensors):
            expected.append(list(tensors[name].shape))
            tensors[name] = torch.zeros(shape)

        change(folder, edit)
        text = message(CheckpointError, folder)
        assert name in text and str(list(shape)) in text and str(expected[0]) in text

    def test_configuration_of_another_size(self, folder):
        configure(folder, intermediate_size=64)
        text = message(CheckpointError, folder)
        assert "intermediate.dense.weight" in text and "[48, 32]" in text and "[64, 32]" in text

    def test_more_layers_than_weights(self, folder):
        configure(folder, num_hidden_layers=3)
        assert "encoder.layer.2." in message(CheckpointError, folder)

    def test_weights_of_another_family(self, folder, tmp_path):
        AutoModel.from_config(CONFIGS["gpt2"]).save_pretrained(tmp_path / "other")
        shutil.copy(tmp_path / "other" / "model.safetensors", folder)
        assert WORDS in message(CheckpointError, folder)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    @pytest.mark.parametrize(
        "name",
        [
            WORDS,
            "embeddings.LayerNorm.weight",
            "encoder.layer.0.intermediate.dense.bias",
            "encoder.layer.1.attention.self.value.weight",
            "encoder.layer.1.output.LayerNorm.bias",
        ],
    )
    def test_one_weight_that_is_not_finite(self, folder, name, value, dtype):
        def edit(tensors):
            tensors[name] = tensors[name].to(dtype)
            tensors[name].view(-1)[-1] = value

        change(folder, edit)
        text = message(CheckpointError, folder)
        assert name in text and "NaN or infinite" in text

    def test_final_norm_that_is_not_finite(self, tmp_path):
        AutoModel.from_config(CONFIGS["gpt2"]).save_pretrained(tmp_path)
        change(tmp_path, lambda tensors: tensors["ln_f.bias"].fill_(float("nan")))
        assert "ln_f.bias" in message(CheckpointError, tmp_path)

    def test_a_live_model_that_is_not_finite(self):
        model = BertModel(CONFIGS["bert"])
        name = "encoder.layer.1.output.dense.weight"
        with torch.no_grad():
            model.get_parameter(name)[3, 4] = float("nan")
        assert name in message(CheckpointError, model)


class Payload:
    """What a hostile checkpoint holds: loading it would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


class TestPickle:
    def as_bin(self, folder: Path, content: Any) -> Path:
        (folder / "model.safetensors").unlink()
        torch.save(content, folder / "pytorch_model.bin")
        return folder

    def test_code_in_a_checkpoint_never_runs(self, folder):
        proof = folder / "it-ran"
        tensors = load_file(folder / "model.safetensors")
        self.as_bin(folder, {**tensors, "extra": Payload(proof)})
        text = message(CheckpointError, folder)
        assert "pytorch_model.bin" in text and "safetensors" in text
        assert not proof.exists()
        with open(folder / "pytorch_model.bin", "wb") as file:
            pickle.dump({WORDS: Payload(proof)}, file)
        message(CheckpointError, folder)
        assert not proof.exists()
        pickle.loads((folder / "pytorch_model.bin").read_bytes())
        assert proof.exists()  # so that it was a real payload

    def test_plain_weights_are_taken(self, folder):
        expected = states(load(folder), INPUTS)
        got = states(load(self.as_bin(folder, load_file(folder / "model.safetensors"))), INPUTS)
        for one, other in zip(expected, got, strict=True):
            assert all(torch.equal(one[layer], other[layer]) for layer in one)

    def test_safetensors_are_preferred(self, folder):
        (folder / "pytorch_model.bin").write_bytes(b"not even a checkpoint")
        assert load(folder).architecture.layers == 2

    @pytest.mark.parametrize(
        "content",
        [
            [1, 2],
            {},
            {"state_dict": {}},
            {"a": torch.zeros(1), 2: torch.zeros(1)},
            {WORDS: [1.0]},
            {WORDS: None},
        ],
    )
    def test_files_without_the_weights(self, folder, content):
        self.as_bin(folder, content)
        text = message(CheckpointError, folder)
        assert WORDS in text or "pytorch_model.bin" in text

    @pytest.mark.parametrize("keep", [0, 10, 3000])
    def test_truncated(self, folder, keep):
        self.as_bin(folder, load_file(folder / "model.safetensors"))
        path = folder / "pytorch_model.bin"
        path.write_bytes(path.read_bytes()[:keep])
        assert str(path) in message(CheckpointError, folder)


class TestTokenizer:
    @pytest.mark.parametrize("family", CONFIGS)
    def test_texts_need_a_tokenizer_and_ids_do_not(self, tmp_path, family):
        AutoModel.from_config(CONFIGS[family]).save_pretrained(tmp_path)
        model = load(tmp_path)
        with pytest.raises(TokenizerError, match="input_ids"):
            rankcollapse.inspect(model, ["the cat saw the dog"])
        results = rankcollapse.inspect(model, INPUTS, ["san"], metrics=("residual",))
        assert results.sizes == {"variant": 1, "sample": 2, "layer": 3}

    def test_live_models_and_configurations_have_none(self):
        for model in (load(BertModel(CONFIGS["bert"])), load(CONFIGS["gpt2"], init="random")):
            with pytest.raises(TokenizerError, match="comes without a tokenizer: pass token ids"):
                rankcollapse.inspect(model, ["the cat"])

    def test_a_tokenizer_that_cannot_be_loaded(self, saved, tmp_path):
        model = load(saved, tokenizer=tmp_path / "nowhere")
        with pytest.raises(TokenizerError, match="input_ids"):
            rankcollapse.inspect(model, ["the cat"])

    def test_a_damaged_tokenizer(self, folder):
        (folder / "tokenizer.json").write_text("{")
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
        with pytest.raises(TokenizerError, match="tokenizer"):
            rankcollapse.inspect(load(folder), ["the cat"])

    def test_given_tokenizer_is_used(self, saved, pretrained):
        from transformers import AutoTokenizer

        config = BertConfig(**{**CONFIGS["bert"].to_dict(), "vocab_size": 30522})
        given = AutoTokenizer.from_pretrained(pretrained)
        one = rankcollapse.inspect(
            load(config, init="random", tokenizer=given), ["the cat saw a dog"]
        )
        other = rankcollapse.inspect(
            load(config, init="random", tokenizer=pretrained), ["the cat saw a dog"]
        )
        ids_alone = rankcollapse.inspect(
            load(config, init="random"), {"input_ids": [given("the cat saw a dog")["input_ids"]]}
        )
        for name in one.data_vars:
            assert one[name].equals(other[name]) and one[name].equals(ids_alone[name])


class TestDtypes:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_checkpoint_runs_as_its_upcast(self, saved, tmp_path, dtype):
        half = AutoModel.from_pretrained(saved).to(dtype)
        half.save_pretrained(tmp_path / "half")
        assert load_file(tmp_path / "half" / "model.safetensors")[WORDS].dtype == dtype
        expected = states(load(half.float()), INPUTS)
        ours = load(tmp_path / "half")
        assert ours.dtype == torch.float32
        for one, other in zip(states(ours, INPUTS), expected, strict=True):
            assert all(torch.equal(one[layer], other[layer]) for layer in other)

    def test_live_model_in_half_precision(self, saved):
        half = AutoModel.from_pretrained(saved).to(torch.bfloat16)
        ours = load(half)
        assert ours.dtype == torch.float32
        got = states(ours, INPUTS)
        assert half.dtype == torch.bfloat16
        expected = states(load(half.float()), INPUTS)
        for one, other in zip(got, expected, strict=True):
            assert all(torch.equal(one[layer], other[layer]) for layer in other)

    @pytest.mark.parametrize("dtype", ["float64", torch.float64])
    def test_float64_of_a_float32_checkpoint(self, saved, dtype):
        reference = AutoModel.from_pretrained(saved).double().eval()
        ours = load(saved, dtype=dtype)
        assert ours.dtype == torch.float64
        ids_ = torch.tensor(ids((7,)))
        with torch.no_grad():
            theirs = reference(ids_, output_hidden_states=True).hidden_states
        for layer, state in states(ours, {"input_ids": ids_})[0].items():
            assert state.dtype == torch.float64
            assert relative_error(state, theirs[layer][0]) <= 1e-12
        floor = rankcollapse.inspect(ours, INPUTS, ["san"]).attrs["metadata"]
        assert json.loads(floor)["floor"] < 1e-15

    def test_the_checkpoints_own_dtype_by_default(self, saved):
        assert load(saved).dtype == torch.float32
        double = AutoModel.from_pretrained(saved).double()
        assert load(double).dtype == torch.float64
        assert load(double, dtype="float32").dtype == torch.float32

    @pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
    @pytest.mark.parametrize("name", [WORDS, "encoder.layer.1.output.dense.weight"])
    def test_quantised_weights_are_not_taken_for_numbers(self, folder, name, dtype):
        change(folder, lambda tensors: tensors.update({name: tensors[name].to(dtype)}))
        text = message(CheckpointError, folder)
        assert name in text and str(dtype).removeprefix("torch.") in text


HEADED = {
    "bert": BertForMaskedLM,
    "albert": AlbertForMaskedLM,
    "gpt2": GPT2LMHeadModel,
    "xlnet": XLNetLMHeadModel,
}


class TestHeads:
    @pytest.mark.parametrize("family", HEADED)
    def test_a_model_with_a_head_is_its_base(self, family, tmp_path):
        torch.manual_seed(3)
        model = HEADED[family](CONFIGS[family]).eval()
        with warnings.catch_warnings():  # saving an XLNet head warns about its generation settings
            warnings.simplefilter("ignore")
            model.save_pretrained(tmp_path)
        inputs = torch.tensor(ids((9,)))
        with torch.no_grad():
            theirs = model.base_model(inputs).last_hidden_state[0]
        for source in (model, tmp_path):
            ours = load(source)
            assert ours.family == family
            last = list(states(ours, {"input_ids": inputs})[0].values())[-1]
            assert relative_error(last, theirs) <= 1e-5

    def test_what_the_model_says_about_itself(self, saved):
        model = load(saved)
        assert repr(str(saved)) in repr(model)
        for part in (
            "family='bert'",
            "layers=2",
            "heads=4",
            "width=32",
            "'post'",
            "float32",
            "cpu",
        ):
            assert part in repr(model)
        assert model.origin == {"init": "pretrained", "seed": None, "revision": None}
        assert load(saved, init="random", seed=4).origin["seed"] == 4
        assert load(BertModel(CONFIGS["bert"])).origin["init"] == "live"


class TestBlocks:
    def test_blocks_are_a_sequence(self, saved):
        blocks = load(saved).blocks
        assert len(blocks) == 2
        last = load_file(saved / "model.safetensors")["encoder.layer.1.output.dense.weight"]
        for block in (blocks[1], blocks[-1], blocks[0:2][1], list(blocks)[1]):
            assert block.mlp is not None and torch.equal(block.mlp.down.weight, last)
        for index in (2, -3):
            with pytest.raises(IndexError):
                blocks[index]

    def test_weights_are_read_when_the_pass_reaches_them(self, folder):
        model = load(folder)
        change(folder, lambda tensors: tensors["encoder.layer.1.output.dense.bias"].fill_(7))
        down = model.blocks[1].mlp
        assert down is not None and down.down.bias is not None and (down.down.bias == 7).all()
