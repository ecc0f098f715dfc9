"""Listing, searching and sampling paths, against the forward pass, sums by length, brute force."""

import itertools
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor
from transformers import AlbertConfig, BertConfig, GPT2Config, XLNetConfig

from rankcollapse.errors import RankCollapseError
from rankcollapse.families.load import load
from rankcollapse.inputs.documents import biographies
from rankcollapse.paths import search as search_module
from rankcollapse.paths.decompose import decompose, token_target
from rankcollapse.paths.frozen_network import FrozenNetwork, Path, freeze, one_by_one
from rankcollapse.paths.listing import enumerate_paths
from rankcollapse.paths.sampling import attention_products, draw, sample
from rankcollapse.paths.search import propagate, row_bounds, search, terms_at, top
from rankcollapse.transformer import (
    MLP,
    Architecture,
    Attention,
    Block,
    Embedding,
    Linear,
    Norm,
    Transformer,
    Variant,
)
from tests.networks import ids, randomised, states
from tests.streams.contract import VARIANTS

WIDTH, LAYERS, HEADS, VOCABULARY = 8, 3, 2, 40
CONFIGS: dict[str, Any] = {
    "bert": BertConfig(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=12, vocab_size=VOCABULARY, max_position_embeddings=12,
    ),
    "albert": AlbertConfig(
        hidden_size=WIDTH, embedding_size=6, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=12, vocab_size=VOCABULARY, max_position_embeddings=12,
    ),
    "xlnet": XLNetConfig(
        d_model=WIDTH, n_layer=LAYERS, n_head=HEADS, d_inner=12, vocab_size=VOCABULARY
    ),
    "gpt2": GPT2Config(
        n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=VOCABULARY, n_positions=12
    ),
}  # fmt: skip
FAMILIES = [*CONFIGS, "grouped"]
HALF: Any = 2.5
PADDED = {
    "input_ids": [[0, 7, 4, 9, 5], [6, 8, 30, 12, 11]],
    "attention_mask": [[0] + [1] * 4, [1] * 5],
}


def network_of(family: str, seed: int = 0) -> Transformer:
    if family != "grouped":
        return load(randomised(CONFIGS[family], seed))
    torch.manual_seed(seed)

    def linear(inner: int, outer: int) -> Linear:
        return Linear(torch.randn(outer, inner).double() / 2, torch.randn(outer).double() / 2)

    def block() -> Block:
        attention = Attention(
            linear(WIDTH, 8), linear(WIDTH, 4), linear(WIDTH, 4), linear(8, WIDTH),
            heads=4, key_heads=2, scale=0.7, causal=True,
        )  # fmt: skip
        first, second = (Norm("rms", 1e-6, 1 + torch.rand(WIDTH).double()) for _ in range(2))
        mlp = MLP(linear(WIDTH, 9), linear(9, WIDTH), "gelu")
        return Block(attention, mlp, first, second, "pre")

    embedding = Embedding(torch.randn(VOCABULARY, WIDTH).double())
    return Transformer(
        "grouped", "own", Architecture(2, 4, WIDTH, VOCABULARY, None, "pre"),
        [block(), block()], Norm("rms", 1e-6), lambda: embedding, lambda: None, torch.float64,
    )  # fmt: skip


def frozen(model: Transformer, inputs: Any, variant: str = "transformer") -> FrozenNetwork:
    model, _, parts = one_by_one(model, inputs, None, False)
    with torch.no_grad():
        return freeze(model, parts[0], Variant.parse(variant))


def target_of(tokens: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tokens, WIDTH, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("variant", [*VARIANTS, "-mlp_projections", "san-final_norm"])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_terms_sum_to_the_output(family: str, variant: str) -> None:
    model, inputs = network_of(family), {"input_ids": ids((5,), VOCABULARY)}
    last = "final_norm" if model.final_norm else model.architecture.layers
    expected = states(model, inputs, variant)[0][last]
    network, total, seen = frozen(model, inputs, variant), torch.zeros_like(expected), set()
    for event in network.events:
        count = 0
        for heads, terms in network.walk(event):
            for row, term in zip(heads, terms, strict=True):
                path = event.path(row)
                torch.testing.assert_close(network.term(path), term, rtol=1e-12, atol=1e-13)
                assert path not in seen
                seen.add(path)
            total += terms.sum(0)
            count += len(heads)
        assert count == network.count(event)
    assert float((total - expected).norm() / expected.norm()) <= 1e-12
    result = enumerate_paths(model, inputs, variant, target_of(5))
    assert result.sizes["path"] == len(seen)
    got = float(result.projection.sum())
    assert got == pytest.approx(float((expected * target_of(5)).sum()), rel=1e-11)


@pytest.mark.parametrize("variant", ["transformer", "san", "san+mlp", "san+skip", "-norm"])
@pytest.mark.parametrize("family", FAMILIES)
def test_sums_by_length_and_by_head_are_those_of_decompose(family: str, variant: str) -> None:
    model, target = network_of(family, 3), np.arange(WIDTH) - 2.5
    listed = enumerate_paths(model, PADDED, variant, target)
    exact = decompose(model, PADDED, variant, target)
    scale = float(np.abs(listed.projection).sum("path").max())
    for source, length in itertools.product(exact.source.values, exact.length.values):
        chosen = ((listed.source == source) & (listed.length == length)).values
        got = listed.projection.values[:, chosen].sum(1)
        want = exact.projection.sel(source=source, length=length)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * scale)
        if chosen.sum() == 1:
            for name in ("frobenius_norm", "relative_residual"):
                want = exact[name].sel(source=source, length=length)
                got = listed[name].values[:, chosen][:, 0]
                np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    for layer, head in itertools.product(exact["layer"].values, exact["head"].values):
        chosen = (listed.heads.sel(layer=layer) == head).values
        got = listed.projection.values[:, chosen].sum(1)
        want = exact.head_projection.sel(layer=layer, head=head)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * scale)


def test_paths_are_listed_and_counted_as_the_theory_says() -> None:
    result = enumerate_paths(network_of("bert"), {"input_ids": ids((4,), VOCABULARY)})
    heads = result.heads.values[(result.source == "input").values]
    assert heads.tolist() == [list(row) for row in itertools.product(range(HEADS + 1), repeat=3)]
    for start in range(1, LAYERS + 1):
        for part in ("mlp", "attention", "attention_norm", "mlp_norm"):
            rows = ((result.part == part) & (result.start == start)).values
            assert rows.sum() == (HEADS + 1) ** (LAYERS - start)
            assert (result.heads.values[rows, :start] == -1).all()
            assert (result.heads.values[rows, start:] >= 0).all()
    assert result.sizes["path"] == 27 + 4 * (9 + 3 + 1)
    assert (result.length == (result.heads > 0).sum("layer")).all()
    san = enumerate_paths(network_of("bert"), {"input_ids": ids((4,), VOCABULARY)}, "san")
    assert set(san.length.values[(san.source == "input").values]) == {LAYERS}
    assert (san.source == "input").sum() == HEADS**LAYERS
    # In front of attention, a norm's bias enters the branch of its own block only.
    before = enumerate_paths(network_of("gpt2"), {"input_ids": ids((4,), VOCABULARY)})
    rows = ((before.part == "attention_norm") & (before.start == 1)).values
    assert rows.sum() == HEADS * (HEADS + 1)
    assert (before.heads.values[rows, 1] > 0).all()


def test_too_many_paths_are_counted_and_refused() -> None:
    model, inputs = network_of("bert"), {"input_ids": ids((4,), VOCABULARY)}
    with pytest.raises(RankCollapseError, match=r"79 paths.*decompose.*paths.sample.*paths.top"):
        enumerate_paths(model, inputs, limit=78)
    assert enumerate_paths(model, inputs, limit=79).sizes["path"] == 79


def test_the_last_layer_stands_leftmost() -> None:
    """Attention matrices, from the formula, that do not commute."""
    model, inputs = network_of("bert", 4), {"input_ids": ids((5,), VOCABULARY)}
    layers = states(model, inputs, "san-norm")[0]
    p, w, path = [], [], (2, 1, 2)
    for x, block, head in zip((layers[0], layers[1], layers[2]), model.blocks, path, strict=True):
        a, part = block.attention, slice((head - 1) * 4, head * 4)
        scores = a.query(x)[:, part] @ a.key(x)[:, part].T / 2
        p.append(scores.softmax(-1))
        w.append(a.value.weight[part].T @ a.output.weight[:, part].T)
    product, backwards = p[2] @ p[1] @ p[0], p[0] @ p[1] @ p[2]
    assert (product - backwards).norm() > 1e-3 * product.norm()
    expected = product @ layers[0] @ w[0] @ w[1] @ w[2]
    network = frozen(model, inputs, "san-norm")
    term = network.term(Path("input", "input", 0, path))
    torch.testing.assert_close(term, expected, rtol=1e-11, atol=1e-13)
    ours = attention_products(network, np.array([path]))
    torch.testing.assert_close(ours.values[0], product, rtol=1e-11, atol=1e-14)
    residual = product - product.mean(0)
    torch.testing.assert_close(ours.residual[0], residual, rtol=1e-9, atol=1e-14)


def test_residuals_of_products_far_below_rounding() -> None:
    config = BertConfig(
        hidden_size=8, num_hidden_layers=10, num_attention_heads=1, intermediate_size=12,
        vocab_size=VOCABULARY, max_position_embeddings=12, initializer_range=0.05,
    )  # fmt: skip
    model = load(config, init="random", dtype="float64")
    network = frozen(model, {"input_ids": ids((4,), VOCABULARY)})
    ours = attention_products(network, np.ones((1, 10), dtype=int))
    with mpmath.workdps(60):
        product = mpmath.eye(4)
        for block in network.blocks:
            assert block.branch is not None
            p = mpmath.matrix(block.branch.p[0].tolist())
            rows = [[p[i, j] / mpmath.fsum(p[i, :]) for j in range(4)] for i in range(4)]
            product = mpmath.matrix(rows) * product
        means = [mpmath.fsum(product[:, j]) / 4 for j in range(4)]
        expected = [[float(product[i, j] - means[j]) for j in range(4)] for i in range(4)]
    assert 0 < np.abs(expected).max() < 1e-18
    got = ours.residual[0] * torch.exp2(ours.residual_exponent)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kept", [0, 300, 2**24])
@pytest.mark.parametrize("variant", ["transformer", "san", "san+mlp", "-norm"])
@pytest.mark.parametrize("family", FAMILIES)
def test_top_agrees_with_brute_force(
    family: str, variant: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "_KEPT", kept)
    model, target = network_of(family, 5), target_of(5)[:, :1] * torch.ones(WIDTH)
    target[:3] = 0
    inputs = {"input_ids": ids((5, 5), VOCABULARY)}
    listed = enumerate_paths(model, inputs, variant, target)
    for k in (1, 6, 10_000):
        found = top(model, inputs, k, target, variant)
        assert found.proved.all()
        assert found.sizes["rank"] == min(k, listed.sizes["path"])
        for index in range(2):
            ours, all_of_them = found.sel(sample=index), listed.sel(sample=index)
            sizes = np.abs(all_of_them.projection.values)
            best = np.sort(sizes)[::-1][: len(ours["rank"])]
            np.testing.assert_allclose(np.abs(ours.projection), best, rtol=1e-9, atol=1e-13)
            check_rows(ours, all_of_them)
            left = best[-1] if k <= len(sizes) else 0
            assert float(ours.bound) == pytest.approx(float(left), rel=1e-9, abs=1e-13)


def check_rows(found: xr.Dataset, listed: xr.Dataset) -> None:
    """Every path that was found is one of those listed, with the same measures, and once."""

    def keys(data: xr.Dataset) -> list[Any]:
        columns = (data[name].values.tolist() for name in ("source", "part", "start"))
        return list(zip(*columns, map(tuple, data.heads.values.tolist()), strict=True))

    places = {key: place for place, key in enumerate(keys(listed))}
    rows = [places[key] for key in keys(found)]
    assert len(set(rows)) == len(rows)
    for name in ("length", "frobenius_norm", "relative_residual", "projection"):
        np.testing.assert_allclose(found[name], listed[name].values[rows], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_search_cut_short_says_what_may_be_left(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "_KEPT", 0)
    inputs, model = {"input_ids": ids((5,), VOCABULARY)}, network_of(family, 6)
    listed = enumerate_paths(model, inputs, "transformer", target_of(5)).isel(sample=0)
    sizes = np.sort(np.abs(listed.projection.values))[::-1]
    outcomes = set()
    for budget in range(1, 30):
        found = top(model, inputs, 4, target_of(5), budget=budget).isel(sample=0)
        ours = np.abs(found.projection.values)
        assert (np.diff(ours) <= 0).all()
        assert found.nodes <= budget
        left = [size for size in sizes if not np.isclose(size, ours, rtol=1e-9).any()]
        assert found.bound >= max(left) * (1 - 1e-9)
        sure = ours > float(found.bound)
        np.testing.assert_allclose(ours[sure], sizes[:4][sure], rtol=1e-9)
        if found.proved:
            np.testing.assert_allclose(ours, sizes[:4], rtol=1e-9)
        outcomes.add(bool(found.proved))
    assert outcomes == {False, True}


@pytest.mark.parametrize("variant", ["transformer", "san", "-norm"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_term_exceeds_its_bound(family: str, variant: str) -> None:
    network, seen = frozen(network_of(family), {"input_ids": ids((5,), VOCABULARY)}, variant), 0
    for event in network.events:
        alone = replace(network, events=(event,))
        bounds = row_bounds(alone, 0, terms_at(alone, 0)[0])
        for boundary in range(1, len(network.blocks) + 1):
            if event.where == "stream" and event.start == boundary:
                continue  # these are met one by one
            for _, terms in alone.walk(event, boundary):
                assert (terms.norm(dim=2) <= bounds[boundary] * (1 + 1e-12)).all()
                seen += len(terms)
    assert seen > 10


@pytest.mark.parametrize("variant", ["transformer", "san+skip", "-norm"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_bound_is_what_the_worst_state_attains(family: str, variant: str) -> None:
    network = frozen(network_of(family, 2), {"input_ids": ids((5,), VOCABULARY)}, variant)
    for block, token in itertools.product(network.blocks, range(5)):
        units = torch.zeros(WIDTH, 5, WIDTH, dtype=torch.float64)
        units[:, token] = torch.eye(WIDTH, dtype=torch.float64)
        every = block.children(units).permute(1, 2, 0, 3)  # choice, row, feature in, feature out
        expected = torch.linalg.svdvals(every)[..., 0].amax(0)
        ours = propagate(block, torch.eye(5, dtype=torch.float64)[token])
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-13)


def test_bounds_prune(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads that do next to nothing need not be followed."""
    model, inputs = randomised(CONFIGS["bert"], 7), {"input_ids": ids((5,), VOCABULARY)}
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.attention.output.dense.weight.mul_(1e-6)
    network = frozen(load(model), inputs)
    at_once = search(network, target_of(5), 3, 1_000)
    assert at_once.proved and at_once.nodes == 0
    monkeypatch.setattr(search_module, "_KEPT", 0)
    pruned = search(network, target_of(5), 3, 1_000)
    assert pruned.proved and pruned.nodes <= LAYERS
    assert [path.length for path in pruned.paths] == [0, 0, 0]
    assert pruned.paths == at_once.paths


def test_largest_paths_of_the_pretrained_model(pretrained: FilePath) -> None:
    model = load(pretrained)
    text = [biographies()[0]]
    batch = one_by_one(model, text, 8, False)[2][0]
    token = int(batch.ids[0, 2])
    target = token_target(model, token, 2, 8)
    found = top(model, text, 5, target, budget=3_000, tokens=8).isel(sample=0)
    assert found.proved
    # The path that skips everything is the input's only one of length 0.
    exact = decompose(model, text, target=target, tokens=8).isel(sample=0)
    rank = int(np.flatnonzero((found.heads.values == 0).all(1))[0])
    assert float(found.projection[rank]) == pytest.approx(
        float(exact.projection.sel(source="input", length=0)), rel=1e-4
    )
    assert (np.diff(np.abs(found.projection)) <= 0).all()


@pytest.mark.parametrize(("variant", "length"), [("transformer", 2), ("san", 3), ("san+skip", 1)])
@pytest.mark.parametrize("family", CONFIGS)
def test_sampled_means_are_near_the_enumerated_ones(family: str, variant: str, length: int) -> None:
    model, inputs = network_of(family, 8), {"input_ids": ids((5, 4), VOCABULARY)}
    drawn = sample(model, inputs, length, 60, seed=1, variant=variant)
    listed = enumerate_paths(model, inputs, variant)
    chosen = ((listed.source == "input") & (listed.length == length)).values
    assert (drawn.heads.values > 0).sum(1).tolist() == [length] * 60
    every = listed.heads.values[chosen]
    for index, row in enumerate(inputs["input_ids"]):
        network = frozen(model, {"input_ids": [row]}, variant)
        products = attention_products(network, every)
        exact = {
            "term_residual": listed.relative_residual.values[index, chosen],
            "attention_residual": (products.residual_norm / products.values_norm).numpy(),
        }
        for name, values in exact.items():
            mean, error = (float(drawn[f"{name}_{kind}"][index]) for kind in ("mean", "stderr"))
            assert 0 < error < 0.2 * mean
            assert abs(mean - values.mean()) <= 3 * error
            # Each path that was drawn has the very value of the list.
            for path, got in zip(drawn.heads.values, drawn[name].values[index], strict=True):
                (place,) = np.flatnonzero((every == path).all(1))
                assert got == pytest.approx(values[place], rel=1e-9)
            spread = drawn[name].values[index].std(ddof=1)
            assert error == pytest.approx(spread / np.sqrt(60), rel=1e-12)


def test_draws_are_uniform_and_follow_the_seed() -> None:
    paths = draw(4, 3, 2, 5_400, np.random.default_rng(0))
    kinds, counts = np.unique(paths, axis=0, return_counts=True)
    assert len(kinds) == 6 * 9
    assert ((kinds > 0).sum(1) == 2).all() and kinds.max() == 3
    # Chi-square with 53 degrees of freedom: mean 53, standard deviation 10.3.
    assert ((counts - 100) ** 2 / 100).sum() < 53 + 4 * 10.3
    model, inputs = network_of("bert"), {"input_ids": ids((4,), VOCABULARY)}
    first, again, other = (sample(model, inputs, 2, 20, seed=seed) for seed in (3, 3, 4))
    assert first.drop_attrs().identical(again.drop_attrs())
    assert not (first.heads == other.heads).all()
    assert np.isnan(sample(model, inputs, 1, 1).term_residual_stderr).all()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path("input", "input", 0, (0, 3, 0, 1)), "input, head 3 of block 2, head 1 of block 4"),
        (Path("mlp", "mlp", 1, (0, 2)), "mlp after 1 block, head 2 of block 3"),
        (Path("bias", "final_norm", 3, ()), "final_norm bias after 3 blocks"),
    ],
)
def test_paths_read_well(path: Path, text: str) -> None:
    assert str(path) == text
    assert path.length == text.count("head ")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, i: enumerate_paths(m, i, "sam"), "sam"),
        (lambda m, i: enumerate_paths(m, i, target=np.ones(7)), "broadcast"),
        (lambda m, i: enumerate_paths(m, i, limit=0), "limit=0"),
        (lambda m, i: enumerate_paths(m, {"input_ids": []}), "no inputs"),
        (lambda m, i: top(m, i, 0, np.ones(WIDTH)), "k=0"),
        (lambda m, i: top(m, i, HALF, np.ones(WIDTH)), "k=2.5"),
        (lambda m, i: top(m, i, 1, np.ones(WIDTH), budget=0), "budget=0"),
        (lambda m, i: top(m, i, 1, np.ones((3, 1, 1))), "broadcast"),
        (lambda m, i: sample(m, i, 4), "length 4: choose 0 to 3"),
        (lambda m, i: sample(m, i, 2, variant="san"), "length 2: choose 3 only"),
        (lambda m, i: sample(m, i, 3, variant="san+mlp"), "no path leaves the input"),
        (lambda m, i: sample(m, i, -1), "length=-1"),
        (lambda m, i: sample(m, i, 1, 0), "n=0"),
        (lambda m, i: sample(m, i, True), "length=True"),
        (lambda m, i: sample(m, i, 1, seed=HALF), "seed=2.5"),
    ],
)
def test_wrong_input_is_one_sentence(call: Any, words: str) -> None:
    with pytest.raises(RankCollapseError) as caught:
        call(network_of("bert"), {"input_ids": ids((5,), VOCABULARY)})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
