from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import XLNetConfig

from rankcollapse.families.load import load
from tests.families.contract import FamilyContract, Pieces, padded
from tests.networks import ids, randomised, relative_error, states


def config(**changes: Any) -> XLNetConfig:
    sizes = dict(d_model=32, n_layer=3, n_head=4, d_inner=48, vocab_size=99)
    return XLNetConfig(**{**sizes, **changes})


class TestXlnet(FamilyContract):
    placement = "post"

    def config(self) -> XLNetConfig:
        return config()

    def blocks(self, model: Any) -> list[Any]:
        return list(model.layer)

    def batch_first(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)

    def pieces(self, model: Any, layer: int, tokens: int) -> Pieces:
        block = model.layer[layer]
        attention = block.rel_attn
        position = model.relative_positional_encoding(tokens, tokens, bsz=1)

        def attend(x: Tensor) -> Tensor:
            x = x.transpose(0, 1)
            query, key, value = (
                torch.einsum("ibh,hnd->ibnd", x, w) for w in (attention.q, attention.k, attention.v)
            )
            relative = torch.einsum("ibh,hnd->ibnd", position.to(x.dtype), attention.r)
            mixed = attention.rel_attn_core(query, key, value, relative)
            return torch.einsum("ibnd,hnd->bih", mixed, attention.o)

        return Pieces(
            attend,
            attention.layer_norm,
            lambda x: block.ff.layer_2(block.ff.activation_function(block.ff.layer_1(x))),
            block.ff.layer_norm,
            block.ff.activation_function,
        )

    @pytest.mark.parametrize("changes", [{"attn_type": "uni"}, {"clamp_len": 3}])
    def test_settings_of_the_scores(self, changes: dict[str, Any]) -> None:
        model = randomised(config(**changes))
        inputs = padded(ids((9, 6)), left=True)
        if "attn_type" in changes:  # Hugging Face's own pass fails on "uni" with padding
            inputs = {"input_ids": torch.tensor(ids((9,)))}
        reference = self.reference_states(model, inputs)
        for sample, layers in enumerate(states(load(model), inputs)):
            real = inputs.get("attention_mask", torch.ones(1, 9))[sample].bool()
            for layer, theirs in enumerate(reference):
                assert relative_error(layers[layer], theirs[sample][real]) <= 1e-10

    def test_gaps_in_the_mask_keep_distances(self) -> None:
        model = randomised(config())
        inputs = padded(ids((9,)))
        inputs["attention_mask"][0, 3:5] = 0
        reference = self.reference_states(model, inputs)
        real = inputs["attention_mask"][0].bool()
        for layer, state in states(load(model), inputs)[0].items():
            assert relative_error(state, reference[layer][0][real]) <= 1e-10
