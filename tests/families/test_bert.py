from typing import Any

import torch
from transformers import BertConfig

from rankcollapse.families.load import load
from tests.families.contract import FamilyContract, Pieces
from tests.networks import ids, randomised, relative_error, states


class TestBert(FamilyContract):
    placement = "post"

    def config(self) -> BertConfig:
        return BertConfig(
            hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=48,
            vocab_size=99, max_position_embeddings=20,
        )  # fmt: skip

    def blocks(self, model: Any) -> list[Any]:
        return list(model.encoder.layer)

    def pieces(self, model: Any, layer: int, tokens: int) -> Pieces:
        block = model.encoder.layer[layer]
        return Pieces(
            lambda x: block.attention.output.dense(block.attention.self(x)[0]),
            block.attention.output.LayerNorm,
            lambda x: block.output.dense(block.intermediate(x)),
            block.output.LayerNorm,
            block.intermediate.intermediate_act_fn,
        )

    def test_decoder_is_causal(self) -> None:
        config = self.config()
        config.is_decoder = True
        model = randomised(config)
        inputs = {"input_ids": torch.tensor(ids((9,)))}
        for layer, theirs in enumerate(self.reference_states(model, inputs)):
            assert relative_error(states(load(model), inputs)[0][layer], theirs[0]) <= 1e-10

    def test_checkpoints_older_than_2019_call_norms_gamma_and_beta(self, tmp_path: Any) -> None:
        model = randomised(self.config(), dtype=torch.float32)
        old = {
            f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): tensor
            for name, tensor in model.state_dict().items()
        }
        model.config.save_pretrained(tmp_path)
        torch.save(old, tmp_path / "pytorch_model.bin")
        inputs = {"input_ids": ids((7,))}
        got, expected = states(load(tmp_path), inputs)[0], states(load(model), inputs)[0]
        assert all(torch.equal(got[layer], expected[layer]) for layer in expected)
