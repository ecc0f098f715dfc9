"""What every family must do; its test supplies a configuration and its Hugging Face pieces."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import rankcollapse
from rankcollapse.families.load import load
from rankcollapse.transformer import PARTS, Variant
from tests.networks import ids, randomised, relative_error, states

Map = Callable[[Tensor], Tensor]


class Pieces(NamedTuple):
    """One block as Hugging Face modules: each maps (1, tokens, width) to the same shape."""

    attention: Map
    attention_norm: Map
    mlp: Map
    mlp_norm: Map
    activation: Map


SWITCHES = [name for name in PARTS if name not in ("final_norm", "mlp_projections")]
OFF = [frozenset({name}) for name in SWITCHES] + [
    frozenset(Variant.parse(name).off)
    for name in ("san", "san+mlp", "san+skip", "-norm", "-attention_skip-mlp_norm")
]


class FamilyContract:
    """Equality with Hugging Face at every layer, padding, switches, and every way of loading."""

    placement: str

    def config(self) -> Any:
        raise NotImplementedError

    def blocks(self, model: Any) -> list[Any]:
        """The modules whose outputs are the states, in order; a shared module comes once."""
        raise NotImplementedError

    def pieces(self, model: Any, layer: int, tokens: int) -> Pieces:
        raise NotImplementedError

    def final_norm(self, model: Any) -> Map | None:
        return None

    # What follows is inherited.

    def reference_states(self, model: Any, inputs: dict[str, Any]) -> list[Tensor]:
        """The state entering the first block, then every block's output, from hooks."""
        seen: list[Tensor] = []

        def before(module: Any, args: Any, kwargs: Any) -> None:
            if not seen:
                seen.append(args[0] if args else kwargs["hidden_states"])

        def after(module: Any, args: Any, kwargs: Any, output: Any) -> None:
            seen.append(output[0] if isinstance(output, tuple) else output)

        modules = self.blocks(model)
        hooks = [modules[0].register_forward_pre_hook(before, with_kwargs=True)]
        hooks += [m.register_forward_hook(after, with_kwargs=True) for m in modules]
        with torch.no_grad():
            model(**inputs)
        for hook in hooks:
            hook.remove()
        return [self.batch_first(x) for x in seen]

    def batch_first(self, x: Tensor) -> Tensor:
        return x

    @pytest.mark.parametrize(("dtype", "limit"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
    @pytest.mark.parametrize("padding", ["none", "right", "left"])
    def test_every_layer_equals_hugging_face(
        self, dtype: torch.dtype, limit: float, padding: str
    ) -> None:
        model = randomised(self.config(), dtype=dtype)
        lengths = (11, 11) if padding == "none" else (11, 6)
        inputs = padded(ids(lengths), left=padding == "left")
        reference = self.reference_states(model, inputs)
        ours = states(load(model), inputs)
        assert len(reference) == load(model).architecture.layers + 1
        for sample, layers in enumerate(ours):
            real = inputs["attention_mask"][sample].bool()
            for layer, theirs in enumerate(reference):
                assert layers[layer].dtype == dtype
                assert relative_error(layers[layer], theirs[sample][real]) <= limit

    def test_last_state_equals_hugging_face(self) -> None:
        model = randomised(self.config())
        inputs = padded(ids((9, 9)))
        with torch.no_grad():
            theirs = model(**inputs).last_hidden_state
        transformer = load(model)
        last = "final_norm" if transformer.final_norm else transformer.architecture.layers
        for sample, layers in enumerate(states(transformer, inputs)):
            assert relative_error(layers[last], theirs[sample]) <= 1e-10

    def test_segments_equal_hugging_face(self) -> None:
        model = randomised(self.config())
        inputs = padded(ids((9, 6)))
        inputs["token_type_ids"] = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1]] * 2)
        reference = self.reference_states(model, inputs)
        for sample, layers in enumerate(states(load(model), inputs)):
            real = inputs["attention_mask"][sample].bool()
            for layer, theirs in enumerate(reference):
                assert relative_error(layers[layer], theirs[sample][real]) <= 1e-10

    def test_padding_changes_no_number(self) -> None:
        model = load(randomised(self.config()))
        rows = ids((11, 6, 8))
        together = rankcollapse.inspect(model, padded(rows))
        for index, row in enumerate(rows):
            alone = rankcollapse.inspect(model, {"input_ids": [row]})
            for name in alone.data_vars:
                np.testing.assert_allclose(
                    together[name].values[:, index], alone[name].values[:, 0], rtol=1e-9, atol=1e-12
                )

    @pytest.mark.parametrize("off", OFF, ids=lambda off: "-".join(sorted(off)))
    def test_switches_equal_their_formulas(self, off: frozenset[str]) -> None:
        self.check_variant(off)

    def check_variant(self, off: frozenset[str]) -> None:
        """Ten lines of the formulas in docs/variants.md, on Hugging Face's own modules."""
        model = randomised(self.config())
        inputs = {"input_ids": torch.tensor(ids((9,)))}
        x = self.reference_states(model, inputs)[0]
        ours = states(load(model), inputs, Variant("tested", off))[0]
        with torch.no_grad():
            for layer in range(load(model).architecture.layers):
                attention, n1, mlp, n2, activation = self.pieces(model, layer, 9)
                for function, norm, part in ((attention, n1, "attention"), (mlp, n2, "mlp")):
                    if part == "mlp" and "mlp" in off:
                        continue
                    if part == "mlp" and "mlp_projections" in off:
                        function = activation
                    norm = (lambda t: t) if f"{part}_norm" in off else norm
                    y = function(norm(x) if self.placement == "pre" else x)
                    y = y if f"{part}_skip" in off else x + y
                    x = norm(y) if self.placement == "post" else y
                assert relative_error(ours[layer + 1], x[0]) <= 1e-9
            norm = self.final_norm(model)
            if norm is not None:
                x = x if "final_norm" in off else norm(x)
                assert relative_error(ours["final_norm"], x[0]) <= 1e-9

    def test_folder_shards_bin_and_head_give_the_same(self, tmp_path: Path) -> None:
        model = randomised(self.config(), dtype=torch.float32)
        expected = states(load(model), {"input_ids": ids((7,))})[0]
        model.save_pretrained(tmp_path / "single")
        model.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
        assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 1
        model.config.save_pretrained(tmp_path / "bin")
        prefix = type(model).base_model_prefix
        headed = {f"{prefix}.{name}": tensor for name, tensor in model.state_dict().items()}
        torch.save(headed, tmp_path / "bin" / "pytorch_model.bin")
        for name in ("single", "sharded", "bin"):
            got = states(load(tmp_path / name), {"input_ids": ids((7,))})[0]
            assert got.keys() == expected.keys()
            for layer, state in expected.items():
                assert torch.equal(got[layer], state), name

    def test_random_initialisation_is_hugging_faces_own(self, tmp_path: Path) -> None:
        config = self.config()
        from transformers import AutoModel

        torch.manual_seed(7)
        reference = AutoModel.from_config(copy.deepcopy(config)).eval()
        before = torch.get_rng_state()
        ours = load(config, init="random", seed=7)
        assert torch.equal(torch.get_rng_state(), before)
        inputs = {"input_ids": torch.tensor(ids((7,)))}
        for layer, theirs in enumerate(self.reference_states(reference, inputs)):
            assert relative_error(states(ours, inputs)[0][layer], theirs[0]) <= 1e-5
        config.save_pretrained(tmp_path)
        other = states(load(tmp_path, init="random", seed=8), inputs)[0][1]
        assert relative_error(other, states(ours, inputs)[0][1]) > 1e-3

    def test_live_weights_are_shared_not_copied(self) -> None:
        model = randomised(self.config())
        transformer = load(model)
        before = states(transformer, {"input_ids": ids((7,))})[0][1]
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.5)
        after = states(transformer, {"input_ids": ids((7,))})[0][1]
        assert relative_error(after, before) > 1e-3


def padded(rows: list[list[int]], left: bool = False) -> dict[str, Tensor]:
    """Rows as a Hugging Face tokenizer would pad them."""
    longest = max(len(row) for row in rows)
    fill = [[0] * (longest - len(row)) for row in rows]
    ones = [[1] * len(row) for row in rows]
    pairs = list(zip(fill, rows, ones, strict=True))
    return {
        "input_ids": torch.tensor([f + r if left else r + f for f, r, _ in pairs]),
        "attention_mask": torch.tensor([f + o if left else o + f for f, _, o in pairs]),
    }
