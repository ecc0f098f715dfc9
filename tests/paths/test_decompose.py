"""By length and by head: exact sums in every family and variant, and the order of products."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rankcollapse.errors import RankCollapseError
from rankcollapse.families.load import load
from rankcollapse.inputs.documents import biographies
from rankcollapse.paths.decompose import decompose, token_target
from tests.families.contract import padded
from tests.networks import ids, randomised, states
from tests.streams.contract import CONFIGS, VARIANTS


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", CONFIGS)
def test_terms_sum_to_the_output(family: str, variant: str) -> None:
    inputs = padded(ids((9, 9, 6)))
    for dtype, limit in ((torch.float64, 1e-11), (torch.float32, 1e-5)):
        model = load(randomised(CONFIGS[family], seed=2, dtype=dtype))
        torch.manual_seed(0)
        target = torch.randn(model.architecture.width, dtype=torch.float64)
        result = decompose(model, inputs, variant, target)
        assert (result.error <= limit).all()
        np.testing.assert_allclose(result.share.sum(("source", "length")), 1, rtol=1e3 * limit)
        last = "final_norm" if model.final_norm else model.architecture.layers
        outputs = [state[last].double() for state in states(model, inputs, variant)]
        expected = [float((y @ target).sum()) for y in outputs]
        scale = [float((y @ target).abs().sum()) for y in outputs]
        got = result.projection.sum(("source", "length"))
        assert np.abs(got - expected).max() <= 10 * limit * max(scale)
        norms = [float(y.norm()) for y in outputs]
        np.testing.assert_allclose(result.output_norm, norms, rtol=10 * limit)


def test_without_skips_only_the_longest_path_remains() -> None:
    model = load(randomised(CONFIGS["bert"]))
    result = decompose(model, {"input_ids": ids((9,))}, "san")
    norms = result.frobenius_norm.sel(sample=0, source="input")
    assert (norms[:-1] == 0).all() and norms[-1] > 0
    assert (result.frobenius_norm.sel(source="mlp") == 0).all()


@pytest.mark.parametrize("family", CONFIGS)
def test_heads_by_difference(family: str) -> None:
    """A head's total is what the frozen output loses without that head."""
    model = load(randomised(CONFIGS[family], seed=3))
    inputs = {"input_ids": ids((7,))}
    torch.manual_seed(0)
    target = torch.randn(7, model.architecture.width, dtype=torch.float64)
    result = decompose(model, inputs, "transformer", target)
    lengths = result.length.values
    # Each path of length l passes l heads, so totals by head count it l times.
    expected = float((result.projection * result.length).sum())
    got = float(result.head_projection.sum())
    assert len(lengths) == model.architecture.layers + 1
    assert got == pytest.approx(expected, rel=1e-9)


def test_target_of_a_token_is_its_tied_logit() -> None:
    hf = randomised(CONFIGS["gpt2"])
    model = load(hf)
    rows = torch.tensor(ids((7,)))
    with torch.no_grad():
        logits = hf(rows).last_hidden_state @ hf.wte.weight.T
    target = token_target(model, 17, -2, 7)
    result = decompose(model, {"input_ids": rows}, target=target)
    assert float(result.projection.sum()) == pytest.approx(float(logits[0, -2, 17]), rel=1e-10)


def test_samples_keep_their_targets_and_their_order() -> None:
    model = load(randomised(CONFIGS["bert"]))
    rows = ids((6, 9, 6))
    torch.manual_seed(0)
    direction = torch.randn(32, dtype=torch.float64)
    together = decompose(model, {"input_ids": rows}, target=direction)
    for index, row in enumerate(rows):
        alone = decompose(model, {"input_ids": [row]}, target=direction)
        for name in together.data_vars:
            np.testing.assert_allclose(
                together[name].values[index], alone[name].values[0], rtol=1e-8, atol=1e-12
            )


def test_pretrained_model_on_padded_text(pretrained: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(pretrained)
    inputs: Any = tokenizer(
        [biographies()[0], "A short one."], truncation=True, max_length=64, padding=True
    )
    for dtype, limit in (("float64", 1e-11), ("float32", 1e-5)):
        result = decompose(load(pretrained, dtype=dtype), inputs, target=np.ones(384))
        assert (result.error <= limit).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"variant": "sam"}, "sam"),
        ({"target": np.ones(31)}, "31"),
        ({"target": np.ones((3, 9, 32))}, "broadcast"),
    ],
)
def test_wrong_input_is_one_sentence(change: dict[str, Any], words: str) -> None:
    model = load(randomised(CONFIGS["bert"]))
    with pytest.raises(RankCollapseError, match=words):
        decompose(model, {"input_ids": ids((9, 9))}, **change)


def test_a_target_of_the_length_fits_samples_of_any_length() -> None:
    model = load(randomised(CONFIGS["bert"]))
    rows = ids((6, 9, 4))
    together = decompose(
        model, {"input_ids": rows}, target=lambda length: token_target(model, 3, -2, length)
    )
    for index, row in enumerate(rows):
        alone = decompose(
            model, {"input_ids": [row]}, target=token_target(model, 3, len(row) - 2, len(row))
        )
        for name in ("projection", "head_projection"):
            np.testing.assert_allclose(
                together[name].values[index], alone[name].values[0], rtol=1e-8, atol=1e-12
            )


def test_a_target_of_the_length_is_refused_before_the_pass() -> None:
    model = load(randomised(CONFIGS["bert"]))
    done: list[float] = []
    rows = ids((9, 4))
    with pytest.raises(RankCollapseError, match="position 5 is beyond the 4 tokens"):
        decompose(
            model,
            {"input_ids": rows},
            target=lambda length: token_target(model, 3, 5, length),
            progress=lambda now, _: done.append(now),
        )
    assert not done
