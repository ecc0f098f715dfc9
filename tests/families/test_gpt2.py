from typing import Any

import torch
from torch import Tensor
from transformers import GPT2Config

from rankcollapse.families.load import load
from tests.families.contract import FamilyContract, Map, Pieces
from tests.networks import ids, randomised, relative_error, states


def config(**changes: Any) -> GPT2Config:
    sizes = dict(n_embd=32, n_layer=3, n_head=4, vocab_size=99, n_positions=20)
    return GPT2Config(**{**sizes, **changes})


class TestGpt2(FamilyContract):
    placement = "pre"

    def config(self) -> GPT2Config:
        return config()

    def blocks(self, model: Any) -> list[Any]:
        return list(model.h)

    def final_norm(self, model: Any) -> Map:
        return model.ln_f

    def pieces(self, model: Any, layer: int, tokens: int) -> Pieces:
        block = model.h[layer]
        later = torch.ones(tokens, tokens).triu(1).bool()
        mask = torch.zeros(tokens, tokens, dtype=torch.float64).masked_fill(later, -torch.inf)

        def attend(x: Tensor) -> Tensor:
            return block.attn(x, attention_mask=mask[None, None])[0]

        return Pieces(attend, block.ln_1, block.mlp, block.ln_2, block.mlp.act)

    def test_scaling_by_layer_and_none(self) -> None:
        for changes in ({"scale_attn_by_inverse_layer_idx": True}, {"scale_attn_weights": False}):
            model = randomised(config(**changes))
            inputs = {"input_ids": torch.tensor(ids((9,)))}
            reference = self.reference_states(model, inputs)
            for layer, theirs in enumerate(reference):
                assert relative_error(states(load(model), inputs)[0][layer], theirs[0]) <= 1e-10
