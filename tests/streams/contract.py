"""What every arithmetic must do: agree with plain float64 wherever plain float64 can say."""

from typing import Any

import pytest
import torch
from transformers import AlbertConfig, BertConfig, GPT2Config, XLNetConfig

from rankcollapse.families.load import load
from rankcollapse.inputs.tokens import batches, prepare
from rankcollapse.metrics import TokenMatrix, relative_residual, relative_residual_frobenius
from rankcollapse.streams import Dense
from rankcollapse.transformer import Arithmetic, Variant, sweep
from tests.networks import ids, randomised

CONFIGS: dict[str, Any] = {
    "bert": BertConfig(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=48,
        vocab_size=99, max_position_embeddings=20,
    ),
    "bert, relu": BertConfig(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=48,
        vocab_size=99, max_position_embeddings=20, hidden_act="relu",
    ),
    "albert": AlbertConfig(
        hidden_size=32, embedding_size=16, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=48, vocab_size=99, max_position_embeddings=20,
    ),
    "xlnet": XLNetConfig(d_model=32, n_layer=4, n_head=4, d_inner=48, vocab_size=99),
    "gpt2": GPT2Config(n_embd=32, n_layer=4, n_head=4, vocab_size=99, n_positions=20),
}  # fmt: skip

VARIANTS = [
    "san", "san+mlp", "san+skip", "transformer", "-mlp_skip", "-attention_norm", "-mlp_norm",
    "-norm", "san-attention_norm", "-attention_skip",
]  # fmt: skip


class ArithmeticContract:
    """Inherited by every arithmetic's test."""

    def arithmetic(self) -> Arithmetic[Any]:
        raise NotImplementedError

    @pytest.mark.parametrize("variant", [*VARIANTS, "published san"])
    @pytest.mark.parametrize("family", CONFIGS)
    def test_equals_plain_float64(self, family: str, variant: str) -> None:
        model = load(randomised(CONFIGS[family], seed=1))
        if variant == "published san":
            chosen = Variant.parse("san").as_published(model.family)
        else:
            chosen = Variant.parse(variant)
        samples = prepare({"input_ids": ids((9, 9, 6))}, model.read_tokenizer, model.architecture)
        parts = batches(samples, 64, None, model.device)
        embedding = model.read_embedding()
        entering = [embedding(b.ids, b.positions, b.types) for b in parts]
        common = [b.layout for b in parts], model.blocks, model.final_norm, [chosen]
        ours = sweep(entering, *common, self.arithmetic())
        plain = sweep(entering, *common, Dense(torch.float64))
        arithmetic, seen = self.arithmetic(), 0
        for a, b in zip(ours, plain, strict=True):
            assert (a.layer, a.variant, a.batch) == (b.layer, b.variant, b.batch)
            torch.testing.assert_close(arithmetic.plain(a.state), b.state, rtol=1e-10, atol=1e-11)
            expected = TokenMatrix.of(b.state)
            got = arithmetic.tokens(a.state, None)
            for metric in (relative_residual, relative_residual_frobenius):
                # Plain float64 itself is only good to about eps, whatever the residual.
                eps = torch.finfo(torch.float64).eps
                resolved = metric(expected) >= 1e3 * 4 * eps
                torch.testing.assert_close(
                    metric(got)[resolved], metric(expected)[resolved], rtol=1e-9, atol=eps
                )
                seen += int(resolved.sum())
        assert seen > 10

    def test_metrics_take_the_mask(self) -> None:
        arithmetic = self.arithmetic()
        x = torch.randn(2, 6, 8, dtype=torch.float64)
        mask = torch.tensor([[True] * 6, [False, True, True, True, True, False]])
        got = arithmetic.tokens(arithmetic.enter(x), mask)
        torch.testing.assert_close(
            relative_residual(got)[1:],
            relative_residual(TokenMatrix.of(x[1:, 1:5])),
            rtol=1e-12,
            atol=0,
        )
