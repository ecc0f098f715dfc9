"""Slips of the paper, each with the network that shows it (docs/bounds.md lists them)."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from rankcollapse.theory import (
    LARGEST_DELTA,
    HeadNorms,
    cubic_bound,
    log_contraction,
    residual,
)
from rankcollapse.transformer.attention import attend
from rankcollapse.transformer.parts import Attention, Linear, Norm
from rankcollapse.transformer.scores import Layout


def column(x: Tensor) -> float:
    """‖X‖₁."""
    return float(x.abs().sum(0).max())


def row(x: Tensor) -> float:
    """‖X‖∞."""
    return float(x.abs().sum(1).max())


def composite(x: Tensor) -> float:
    return math.sqrt(column(x) * row(x))


def tensor(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def relative(x: Tensor) -> float:
    return composite(x - x.mean(0)) / composite(x)


def scores(x: Tensor, attention: Attention) -> Tensor:
    """E of every head, from the residual `x`."""
    query, key = (
        (x @ linear.weight.T).unflatten(-1, (attention.heads, -1)).transpose(0, 1)
        for linear in (attention.query, attention.key)
    )
    return attention.scale * query @ key.mT


def gamma_and_delta(e: Tensor) -> tuple[float, float]:
    """The largest γ over heads, and the largest δ."""
    delta = e.amax(-1) - e.amin(-1)
    return float((delta.sum(-1) / delta.amax(-1)).sqrt().max()), float(delta.max())


def layer(maps: list[Linear], heads: int = 1, scale: float = 1.0) -> Attention:
    """Of the maps of queries, keys, values and the output."""
    query, key, value, last = maps
    return Attention(query, key, value, last, heads, heads, scale)


def output(x: Tensor, attention: Attention) -> Tensor:
    return attend(x[None], attention, Layout.contiguous(len(x)))[0]


class TestComposite:
    def test_has_no_triangle_inequality(self):
        a, b = tensor([1, 1], [0, 0]), tensor([1, 0], [1, 0])
        assert composite(a) == composite(b) == math.sqrt(2)
        assert composite(a + b) == 3 > composite(a) + composite(b)


class TestLemmaA3:
    @pytest.mark.parametrize("delta", [1.3, 2.0, 10.0])
    def test_is_false_beyond_its_range(self, delta):
        q = tensor([1e-6, 1 - 1e-6])[0]
        e = tensor([delta, 0.0])[0]
        p = (q.log() + e).softmax(0)
        assert p[0] > (1 + 2 * delta) * q[0]
        assert (p >= (1 - delta) * q).all()

    def test_range_ends_where_the_exponential_meets_the_line(self):
        assert math.exp(LARGEST_DELTA) == pytest.approx(1 + 2 * LARGEST_DELTA, rel=1e-15)
        rng = torch.Generator().manual_seed(0)
        for delta in (0.01, 1.0, LARGEST_DELTA):
            e = torch.rand(1000, 7, generator=rng, dtype=torch.float64)
            e = (e - e.amin(1, True)) / (e.amax(1, True) - e.amin(1, True)) * delta
            r = 10 * torch.randn(1000, 7, generator=rng, dtype=torch.float64)
            p, q = (r + e).softmax(1), r.softmax(1)
            assert (p <= (1 + 2 * delta) * q * (1 + 1e-12)).all()
            assert (p >= (1 - delta) * q * (1 - 1e-12)).all()


def crossed_heads(width: int, tokens: int, size: float) -> tuple[Tensor, Attention]:
    """Two heads, one with a heavy column and one with heavy rows, for Lemma A.2 to add.

    One token asks, and each head lets it tell ±b apart: b₁ = (e₀ + e₁)/2, b₂ = (e₂ + e₃)/2. Head 1
    sends e₀ and e₁ to one feature; head 2 spreads e₂ and e₃ over all of them. Both have
    ‖W_h‖₁,∞ = 1. Features 5 and 6 and the query's bias make each head look at its own pair.
    """
    x = torch.zeros(tokens, width, dtype=torch.float64)
    x[0, 4] = 1
    x[1, :2], x[2, :2] = 0.5, -0.5
    x[3, 2:4], x[4, 2:4] = 0.5, -0.5
    mark = 1e-3
    x[1:3, 5] = x[3:5, 6] = mark
    query, key = x.new_zeros(4, width), x.new_zeros(4, width)
    query[0, 4] = query[2, 4] = size
    key[0, :2] = key[2, 2:4] = 1
    key[1, 5] = key[3, 6] = 1
    value, spread = x.new_zeros(2, width), x.new_zeros(width, 2)
    value[0, :2], spread[0, 0] = 2**-0.5, 1
    value[1, 2:4], spread[:, 1] = 1, (2 * width) ** -0.5
    bias = tensor([0, 40 / mark, 0, 40 / mark])[0]
    maps = [Linear(query, bias), Linear(key), Linear(value), Linear(spread)]
    return x, layer(maps, heads=2)


def thin_norms(attention: Attention) -> tuple[float, float]:
    """Largest ‖W_QK,h‖₁ and max ‖W_h‖₁,∞ of `crossed_heads`, whose products all have rank one."""

    def norms(u: Tensor, v: Tensor) -> tuple[float, float]:
        u, v = u.abs(), v.abs()
        return float(u.sum() * v.max()), float(u.max() * v.sum())

    query_key = [norms(attention.query.weight[h], attention.key.weight[h])[0] for h in (0, 2)]
    value = [norms(attention.value.weight[h], attention.output.weight[:, h]) for h in (0, 1)]
    return max(query_key), max(math.sqrt(a * b) for a, b in value)


def sharp(width: int) -> float:
    """What stands for 4 in Lemma A.2 at this width (docs/theory.md §3)."""
    return (width**0.25 + width**-0.25) / (2 * math.sqrt(2))


class TestLemmaA2:
    def test_is_false_at_a_large_width(self):
        width, size = 2**17, 0.1
        x, attention = crossed_heads(width, 6, size)
        # No centre does better than 0 for the input, and `lower` holds for the output's best one.
        rho = composite(x)
        assert residual(x, "median").lower == pytest.approx(rho, rel=1e-6)
        gamma, delta = gamma_and_delta(scores(x, attention))
        assert gamma == pytest.approx(1) and delta == pytest.approx(2 * size)
        assert delta <= LARGEST_DELTA
        query_key, weight = thin_norms(attention)
        assert (query_key, weight) == (pytest.approx(size), pytest.approx(1))
        bound = 4 * gamma * 2 * query_key * weight * rho**3
        best = residual(output(x, attention), "median").lower
        assert best > 1.18 * bound

    def test_thin_norms_are_the_norms(self):
        _, attention = crossed_heads(32, 6, 0.1)
        norms = HeadNorms.of(attention)
        expected = (float(norms.query_key.max()), float(norms.composite.max()))
        assert thin_norms(attention) == pytest.approx(expected, rel=1e-12)

    def test_constant_that_replaces_four_is_sharp(self):
        width, size = 64, 0.01
        x, attention = crossed_heads(width, 400, size)
        gamma, _ = gamma_and_delta(scores(x, attention))
        bound = sharp(width) * gamma * 2 * size * composite(x) ** 3
        best = residual(output(x, attention), "optimal")
        assert 0.98 * bound < best.lower and best.norm <= bound

    def test_constant_that_replaces_four_holds(self):
        """Without the condition on δ, about any centre, for heads as unlike as they come."""
        rng = torch.Generator().manual_seed(0)
        closest = 0.0
        for case in range(300):
            heads, width, tokens = (1, 2, 3)[case % 3], (2, 5, 16)[case // 3 % 3], 2 + case % 7

            def draw(*shape: int) -> Tensor:
                plain = torch.randn(*shape, generator=rng, dtype=torch.float64)
                return plain * torch.exp(4 * torch.rand(*shape, generator=rng).double() - 2) ** 2

            maps = [Linear(draw(heads, width)) for _ in range(3)] + [Linear(draw(width, heads))]
            size = float(torch.rand(1, generator=rng)) * 3
            attention = layer(maps, heads, size)
            norms = HeadNorms.of(attention)
            norms_per_head = norms.query_key * norms.composite
            x = draw(tokens, width)
            x = x - residual(x, "optimal").center if case % 2 else x - x.mean(0)
            gamma, _ = gamma_and_delta(scores(x, attention))
            beta = float(norms_per_head.max())
            bound = sharp(width) * gamma * heads * beta * composite(x) ** 3
            best = residual(output(x, attention), "median").lower
            assert best <= bound
            closest = max(closest, best / bound)
        assert closest > 0.01

    def test_four_is_enough_up_to_width_15873(self):
        assert sharp(15_873) <= 4 < sharp(15_874)
        assert all(a < b for a, b in pairwise(sharp(width) for width in range(2, 100)))


class TestSkipBound:
    def test_is_false_for_one_layer_with_one_head(self):
        width, size = 2048, 0.1
        x, attention = crossed_heads(width, 6, size)
        # The head with the heavy rows alone, at the size at which both terms of the bound are one.
        rho = composite(x)
        amplified = attention.output.weight[:, 1:] / (4 * size * rho**2)
        head = layer(
            [
                Linear(attention.query.weight[2:], tensor([0, 4e4])[0]),
                Linear(attention.key.weight[2:]),
                Linear(attention.value.weight[1:]),
                Linear(amplified),
            ]
        )
        gamma, delta = gamma_and_delta(scores(x, head))
        assert gamma == pytest.approx(1) and delta <= LARGEST_DELTA
        norms = HeadNorms.of(head)
        c = 4 * gamma * float(norms.query_key * norms.composite)
        bound = max(2 * rho, 2 * c * rho**3)  # l = 0 and l = 1 of the paper's maximum
        assert 2 * c * rho**3 == pytest.approx(2 * rho, rel=1e-6)
        assert residual(x + output(x, head), "median").lower > 1.11 * bound


class TestCondition:
    """Tokens ±s and one head with W_QK = w, W = v: a layer maps s to v s tanh(w s²)."""

    def network(self, w: float, v: float) -> Attention:
        return layer([Linear(tensor([value])) for value in (w, 1, v, 1)])

    def constants(self, s: float, w: float, v: float) -> tuple[float, float]:
        """The paper's 4γβH/√d_qk, and √c times the residual."""
        x = tensor([s], [-s])
        gamma, _ = gamma_and_delta(scores(x, self.network(w, v)))
        assert gamma == pytest.approx(math.sqrt(2))
        c = np.log([4 * gamma * w * v])
        root = log_contraction(c, np.log([composite(x)]))
        limit = cubic_bound(c, np.log([composite(x)]), 20)
        assert (limit < -1e6) == (root < 0) and (limit > 1e6) == (root > 0)
        return float(np.exp(c[0])), float(np.exp(root[0]))

    def after(self, s: float, w: float, v: float, layers: int) -> float:
        """By the closed form, which plain tokens follow as far as floats resolve their softmax."""
        for _ in range(layers):
            x = output(tensor([s], [-s]), self.network(w, v))
            s = v * s * math.tanh(w * s * s)
            assert x.squeeze(1).tolist() == pytest.approx([s, -s], rel=1e-9, abs=1e-15)
        return s

    def test_is_not_sufficient(self):
        condition, root = self.constants(20, 0.01, 1.5)
        assert condition < 0.1 and root > 1
        assert self.after(20, 0.01, 1.5, 50) > 1e9

    def test_is_not_necessary(self):
        condition, root = self.constants(0.1, 4, 1.5)
        assert condition > 10 and root < 1
        assert 0 < self.after(0.1, 4, 1.5, 4) < 1e-49

    def test_depends_on_the_unit_of_length(self):
        """Ten times smaller tokens with hundred times the scores: the same network."""
        first, second = self.constants(20, 0.01, 1.5), self.constants(2, 1, 1.5)
        assert first[0] < 1 < second[0]
        assert first[1] == pytest.approx(second[1])
        large, small = self.after(20, 0.01, 1.5, 5), self.after(2, 1, 1.5, 5)
        assert small == pytest.approx(large / 10)


class TestBias:
    def test_of_the_values_belongs_to_the_shared_row(self):
        rng = torch.Generator().manual_seed(0)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=rng, dtype=torch.float64)

        biased = [Linear(draw(6, 6), draw(6)) for _ in range(4)]
        plain = [Linear(linear.weight) for linear in biased]
        x = draw(5, 6)
        full = output(x, layer(biased, heads=2))
        rest = output(x, layer(biased[:2] + plain[2:], heads=2))
        value, last = biased[2:]
        assert value.bias is not None and last.bias is not None
        torch.testing.assert_close(full - rest, (last.bias + last.weight @ value.bias).expand(5, 6))
        assert (full - rest - last.bias).abs().min() > 0.01  # what the paper's b would leave
        torch.testing.assert_close(full - full.mean(0), rest - rest.mean(0))


class TestCentre:
    def test_mean_costs_its_factor_in_either_norm(self):
        n = 5
        single = torch.zeros(n, 2, dtype=torch.float64)
        single[0] = tensor([3.0, 1.0])
        mean = residual(single, "mean").matrix
        assert column(mean) == pytest.approx(2 * (1 - 1 / n) * column(single))
        opposite = tensor([1.0, 2.0], *[[-1.0, -2.0]] * (n - 1))
        mean = residual(opposite, "mean").matrix
        assert row(mean) == pytest.approx(2 * (1 - 1 / n) * row(opposite))

    def test_and_nearly_so_in_the_composite_norm(self):
        n, width, mark = 5, 10**6, 1e-3
        x = torch.full((n, width + 1), -1 / width, dtype=torch.float64)
        x[0] *= -1
        x[:, -1] = 0
        x[1, -1] = mark
        ratio = residual(x, "mean").norm / composite(x)
        assert 0.99 * 2 * (1 - 1 / n) < ratio <= 2 * (1 - 1 / n)

    def test_best_centre_depends_on_the_norm(self):
        x = tensor([9.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 4.0])
        mean, median = residual(x, "mean"), residual(x, "median")
        assert mean.matrix.norm() < median.matrix.norm()
        assert column(median.matrix) < column(mean.matrix)
        middle = tensor([2.5, 0.0])
        assert row(x - middle) < min(row(mean.matrix), row(median.matrix))
        assert residual(x, "optimal").norm < min(mean.norm, median.norm)


class TestEntrywise:
    def test_step_of_lemma_a1_needs_the_absolute_residual(self):
        """Tokens ±1: qᵀR is zero, so the paper's step says that PR is zero. It is not."""
        x = tensor([1.0], [-1.0])
        w = 0.3
        e = w * x @ x.T
        p, q = e.softmax(1), tensor([0.5, 0.5])
        d = torch.diag(e.amax(1) - e.amin(1))
        assert d.max() <= LARGEST_DELTA
        excess = p @ x - q @ x
        paper = 2 * d @ torch.ones_like(q.T) @ q @ x
        assert (excess > paper + 0.1).any()
        assert (excess.abs() <= 2 * d @ torch.ones_like(q.T) @ q @ x.abs()).all()
        gamma, _ = gamma_and_delta(e[None])
        assert composite(excess) <= 4 * gamma * w * composite(x) ** 3


class TestLemmaA1:
    def test_holds_for_every_delta_with_a_smaller_constant(self):
        rng = torch.Generator().manual_seed(0)
        largest, closest = 0.0, 0.0
        for case in range(300):
            n, width = 2 + case % 6, 1 + case % 5

            def draw(*shape: int) -> Tensor:
                return torch.randn(*shape, generator=rng, dtype=torch.float64)

            maps = [Linear(draw(width, width)) for _ in range(4)]
            scale = 10 ** (4 * float(torch.rand(1, generator=rng)) - 3)
            attention = layer(maps, scale=scale)
            norms = HeadNorms.of(attention)
            r = draw(n, width)
            gamma, delta = gamma_and_delta(scores(r, attention))
            shared = draw(1, width)
            # r is a residual about `shared`, as good a centre as any for the lemma.
            best = residual(output(shared + r, attention), "median").lower
            lemma = 4 * gamma * float(norms.query_key * norms.composite) * composite(r) ** 3
            assert best <= lemma / (4 * math.sqrt(2))
            largest, closest = max(largest, delta), max(closest, best / lemma)
        assert largest > 100 and closest > 0.01


class TestLayerNorm:
    def test_moves_the_distance_to_rank_one_either_way(self):
        norm = Norm("layer", eps=0.0)
        apart = tensor([100.0, 100.0, 101.0], [100.0, 101.0, 100.0])
        assert relative(apart) < 0.01 and relative(norm(apart)) > 0.5
        alike = tensor([1.0, -1.0, 0.0], [5.0, -5.0, 0.0])
        assert relative(alike) > 0.5 and relative(norm(alike)) < 1e-15
