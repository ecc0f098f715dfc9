from typing import Any

import pytest
import torch
from transformers import AlbertConfig

from rankcollapse.families.load import load
from rankcollapse.transformer import Variant
from tests.families.contract import FamilyContract, Pieces
from tests.networks import ids, randomised, relative_error, states


def config(**changes: Any) -> AlbertConfig:
    sizes = dict(
        hidden_size=32, embedding_size=16, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=48, vocab_size=99, max_position_embeddings=20, num_hidden_groups=2,
        hidden_act="gelu_new",
    )  # fmt: skip
    return AlbertConfig(**{**sizes, **changes})


class TestAlbert(FamilyContract):
    placement = "post"

    def config(self) -> AlbertConfig:
        return config()

    def blocks(self, model: Any) -> list[Any]:
        return [
            layer for group in model.encoder.albert_layer_groups for layer in group.albert_layers
        ]

    def pieces(self, model: Any, layer: int, tokens: int) -> Pieces:
        group = model.encoder.albert_layer_groups[layer * 2 // 4]
        block = group.albert_layers[0]
        attention = block.attention

        def attend(x: torch.Tensor) -> torch.Tensor:
            heads = [
                linear(x).unflatten(-1, (4, -1)).transpose(1, 2)
                for linear in (attention.query, attention.key, attention.value)
            ]
            p = (heads[0] @ heads[1].mT * attention.scaling).softmax(-1)
            return attention.dense((p @ heads[2]).transpose(1, 2).flatten(2))

        return Pieces(
            attend,
            attention.LayerNorm,
            block.ff_chunk,
            block.full_layer_layer_norm,
            block.activation,
        )

    @pytest.mark.parametrize("name", ["san", "san+skip"])
    def test_published_surgery_leaves_the_activation(self, name: str) -> None:
        off = Variant.parse(name).as_published("albert").off
        assert "mlp_projections" in off and "mlp" not in off and "mlp_skip" not in off
        self.check_variant(off)

    def test_layers_within_a_group(self) -> None:
        model = randomised(config(inner_group_num=2, num_hidden_groups=1, num_hidden_layers=2))
        inputs = {"input_ids": torch.tensor(ids((9,)))}
        reference = self.reference_states(model, inputs)
        ours = states(load(model), inputs)[0]
        assert len(reference) == len(ours) == 5
        for layer, theirs in enumerate(reference):
            assert relative_error(ours[layer], theirs[0]) <= 1e-10
