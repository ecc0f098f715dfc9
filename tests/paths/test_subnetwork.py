"""Sub-network paths against a reference on Hugging Face's own weights."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from rankcollapse.errors import RankCollapseError
from rankcollapse.families.load import load
from rankcollapse.paths.frozen_network import Path
from rankcollapse.paths.sampling import draw
from rankcollapse.paths.subnetwork import subnetwork_path, subnetwork_sum
from tests.families.contract import padded
from tests.networks import ids, randomised, states
from tests.paths.test_single_paths import CONFIGS, HALF, HEADS, LAYERS, VOCABULARY, WIDTH, frozen

PATHS = [(1, 2, 1), (2, 0, 1), (0, 2, 0), (0, 0, 0)]
SIZE = WIDTH // HEADS


def bert_reference(model: Any, x: Tensor, path: tuple[int, ...]) -> Tensor:
    """Figure 4's evaluation in ten lines."""
    for layer, head in zip(model.encoder.layer, path, strict=True):
        if head == 0:
            continue
        part, a = slice((head - 1) * SIZE, head * SIZE), layer.attention
        q, k, v = (
            F.linear(x, m.weight[part], m.bias[part])
            for m in (a.self.query, a.self.key, a.self.value)
        )
        mixed = (q @ k.mT / SIZE**0.5).softmax(-1) @ v
        y = mixed @ a.output.dense.weight[:, part].T + a.output.dense.bias
        x = F.layer_norm(y, (WIDTH,), eps=a.output.LayerNorm.eps)
    return x


def gpt2_reference(model: Any, x: Tensor, path: tuple[int, ...]) -> Tensor:
    """The same with a causal mask, the norm in front of attention."""
    for layer, head in zip(model.h, path, strict=True):
        if head == 0:
            continue
        part, a = slice((head - 1) * SIZE, head * SIZE), layer.attn
        y = F.layer_norm(x, (WIDTH,), eps=layer.ln_1.eps)
        q, k, v = (m[:, part] for m in (y @ a.c_attn.weight + a.c_attn.bias).split(WIDTH, dim=1))
        scores = (q @ k.T / SIZE**0.5).masked_fill(
            torch.ones(len(x), len(x)).triu(1).bool(), -torch.inf
        )
        x = scores.softmax(-1) @ v @ a.c_proj.weight[part] + a.c_proj.bias
    return x


REFERENCES = {"bert": bert_reference, "gpt2": gpt2_reference}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("family", REFERENCES)
def test_one_path_against_the_reference(family: str, path: tuple[int, ...]) -> None:
    hf, inputs = randomised(CONFIGS[family], 1), padded(ids((6, 4), VOCABULARY))
    model = load(hf)
    ours = subnetwork_path(model, inputs, path)
    assert [len(x) for x in ours] == [6, 4]
    for index, layers in enumerate(states(model, inputs)):
        with torch.no_grad():
            expected = REFERENCES[family](hf, layers[0], path)
        torch.testing.assert_close(ours[index], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("family", CONFIGS)
def test_with_one_head_and_neutral_norms_the_longest_path_is_the_san(family: str) -> None:
    config = copy.deepcopy(CONFIGS[family])
    setattr(config, "n_head" if family in ("xlnet", "gpt2") else "num_attention_heads", 1)
    if family == "xlnet":
        config.d_head = WIDTH
    hf, inputs = randomised(config, 2), {"input_ids": ids((6,), VOCABULARY)}
    with torch.no_grad():
        for name, parameter in hf.named_parameters():
            if any(word in name.lower() for word in ("layernorm", "layer_norm", "ln_")):
                parameter.fill_(float(name.endswith("weight")))
    model = load(hf)
    expected = states(model, inputs, "san")[0][LAYERS]
    (ours,) = subnetwork_path(model, inputs, [1] * LAYERS)
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("family", REFERENCES)
@pytest.mark.parametrize("length", range(LAYERS + 1))
def test_a_sum_of_random_paths_and_one_norm(family: str, length: int) -> None:
    hf, inputs = randomised(CONFIGS[family], 3), {"input_ids": ids((5, 5, 4), VOCABULARY)}
    model = load(hf)
    paths = draw(LAYERS, HEADS, length, 5, np.random.default_rng(7))
    assert ((paths > 0).sum(1) == length).all()
    ours = subnetwork_sum(model, inputs, length, 5, seed=7)
    eps = hf.ln_f.eps if family == "gpt2" else hf.config.layer_norm_eps
    for index, layers in enumerate(states(model, inputs)):
        with torch.no_grad():
            total = sum(REFERENCES[family](hf, layers[0], tuple(path)) for path in paths)
            assert isinstance(total, Tensor)
            expected = F.layer_norm(total, (WIDTH,), eps=eps)
        torch.testing.assert_close(ours[index], expected, rtol=1e-10, atol=1e-11)


def test_its_attention_is_not_that_of_the_whole_network() -> None:
    """The term of the same path has other attention matrices; the two are not to be confused."""
    hf, inputs = randomised(CONFIGS["bert"], 4), {"input_ids": ids((6,), VOCABULARY)}
    with torch.no_grad():
        for name, parameter in hf.named_parameters():
            if "bias" in name and "query" not in name:
                parameter.zero_()
    model, path = load(hf), (1, 2, 1)
    (ours,) = subnetwork_path(model, inputs, path)
    term = frozen(model, inputs).term(Path("input", "input", 0, path))
    cosine = float((ours * term).sum() / (ours.norm() * term.norm()))
    assert abs(cosine) < 0.999


def test_results_can_be_read_by_a_classifier_in_training() -> None:
    model = load(randomised(CONFIGS["bert"]))
    (x,) = subnetwork_sum(model, {"input_ids": ids((5,), VOCABULARY)}, 1, 2)
    classifier = torch.nn.Linear(WIDTH, 3).double()
    classifier(x).sum().backward()
    assert classifier.weight.grad is not None and classifier.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, i: subnetwork_path(m, i, [1, 1]), "3 in all"),
        (lambda m, i: subnetwork_path(m, i, [1, 3, 1]), "1 to 2 for a head"),
        (lambda m, i: subnetwork_path(m, i, [1, -1, 1]), "head=-1"),
        (lambda m, i: subnetwork_path(m, i, [1, HALF, 1]), "head=2.5"),
        (lambda m, i: subnetwork_path(m, {"input_ids": []}, [1, 1, 1]), "no inputs"),
        (lambda m, i: subnetwork_sum(m, i, 4, 5), "length 4: choose 0 to 3"),
        (lambda m, i: subnetwork_sum(m, i, 1, 0), "count=0"),
        (lambda m, i: subnetwork_sum(m, i, 1, 1, -1), "seed=-1"),
    ],
)
def test_wrong_input_is_one_sentence(call: Any, words: str) -> None:
    model = load(randomised(CONFIGS["bert"]))
    with pytest.raises(RankCollapseError) as caught:
        call(model, {"input_ids": ids((5,), VOCABULARY)})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
