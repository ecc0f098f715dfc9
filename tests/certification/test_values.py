"""Every bound against a few lines of NumPy that share nothing with the code under test."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.special
from transformers import BertConfig

from rankcollapse import load
from rankcollapse.certification import certify, run
from tests.networks import ids, randomised, states

HEADS, WIDTH, LAYERS = 4, 16, 3
CONFIG = BertConfig(
    hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=24,
    vocab_size=99, max_position_embeddings=20,
)  # fmt: skip
ROWS = ids((7, 5))
Matrix = np.ndarray


@dataclass
class Head:
    query: Matrix
    query_bias: Matrix
    key: Matrix
    value_output: Matrix

    @property
    def query_key(self) -> Matrix:
        return self.query @ self.key.T / math.sqrt(WIDTH // HEADS)


def heads_of(live: Any, layer: int) -> list[Head]:
    attention = live.encoder.layer[layer].attention
    found = []
    for h in range(HEADS):
        own = slice(h * WIDTH // HEADS, (h + 1) * WIDTH // HEADS)
        maps = attention.self
        query, key, value = (
            getattr(maps, name).weight.detach().numpy()[own].T for name in ("query", "key", "value")
        )
        output = attention.output.dense.weight.detach().numpy().T[own]
        bias = maps.query.bias.detach().numpy()[own]
        found.append(Head(query, bias, key, value @ output))
    return found


def one(x: Matrix) -> float:
    return np.abs(x).sum(0).max()


def infinity(x: Matrix) -> float:
    return np.abs(x).sum(1).max()


def composite(x: Matrix) -> float:
    return math.sqrt(one(x) * infinity(x))


def residual(x: Matrix) -> Matrix:
    return x - x.mean(0)


def attention_matrix(x: Matrix, head: Head) -> Matrix:
    scores = (x @ head.query + head.query_bias) @ (x @ head.key).T / math.sqrt(WIDTH // HEADS)
    return scipy.special.softmax(scores, axis=1)


def ranges(z: Matrix) -> Matrix:
    return z.max(0) - z.min(0)


@dataclass
class Layer:
    """What all bounds of one layer are made of."""

    r: Matrix
    heads: list[Head]
    p: list[Matrix]
    delta: list[Matrix]
    largest_q: list[float]

    @classmethod
    def of(cls, x: Matrix, heads: list[Head]) -> "Layer":
        r, mean = residual(x), x.mean(0)
        delta, largest = [], []
        for head in heads:
            e = r @ head.query_key @ r.T
            delta.append(e.max(1) - e.min(1))
            # The shared row asks all tokens alike: q is what it would look at.
            row = (mean @ head.query + head.query_bias) @ (r @ head.key).T
            largest.append(scipy.special.softmax(row / math.sqrt(WIDTH // HEADS)).max())
        return cls(r, heads, [attention_matrix(x, head) for head in heads], delta, largest)

    @property
    def gamma(self) -> list[float]:
        return [math.sqrt(d.sum() / d.max()) for d in self.delta]

    @property
    def paper_c(self) -> float:
        """4γβH/√d_qk."""
        beta = max(one(h.query_key) * composite(h.value_output) for h in self.heads)
        return 4 * max(self.gamma) * beta * HEADS

    def pairs(self) -> dict[str, tuple[float, float]]:
        """(‖·‖₁, ‖·‖∞) of what attention leaves, about the mean."""
        r, n = self.r, len(self.r)
        back = 2 * (1 - 1 / n)
        lemma = self.paper_c * composite(r) ** 3 * back
        sums: dict[str, list[float]] = {
            name: [0.0, 0.0] for name in ("two_norms", "gamma_free", "tanh", "values", "dobrushin")
        }
        for head, p, delta, gamma, q in zip(
            self.heads, self.p, self.delta, self.gamma, self.largest_q, strict=True
        ):
            w, z = head.value_output, r @ head.value_output
            s = one(head.query_key) * one(r) * infinity(r)
            a, b = one(r) * one(w), infinity(r) * infinity(w)
            t = 2 * np.tanh(delta / 4)
            kappa = math.expm1(delta.max()) / delta.max()
            tau = max(np.abs(a - b).sum() for a in p for b in p) / 2
            wide = ranges(z)
            for name, first, second in (
                ("two_norms", 4 * gamma**2 * s * a, 4 * s * b),
                ("gamma_free", 2 * q * kappa * s * a, s * b),
                ("tanh", t.sum() / 2 * a, t.max() * b),
                ("values", t.sum() / 2 * one(z), t.max() * infinity(z)),
                (
                    "dobrushin",
                    n * tau * wide.max() / 2 / back,
                    (1 - 1 / n) * tau * min(wide.sum(), 2 * infinity(z)) / back,
                ),
            ):
                sums[name][0] += first * back
                sums[name][1] += second * back
        return {"lemma_a2": (lemma, lemma), **{name: (a, b) for name, (a, b) in sums.items()}}

    def spectral(self) -> float:
        """Of the Frobenius norm."""
        total = sum(
            np.linalg.norm(residual(residual(p.T).T), 2) * np.linalg.norm(h.value_output, 2)
            for p, h in zip(self.p, self.heads, strict=True)
        )
        return float(total * np.linalg.norm(self.r))

    def operator(self) -> Matrix:
        """R ↦ R + Σ ΠP_hΠ R W_h on all of R, from its values on a basis."""
        n, d = self.r.shape
        result = np.empty((n * d, n * d))
        for k in range(n * d):
            unit = np.zeros((n, d))
            unit.flat[k] = 1
            image = unit + sum(
                residual(residual(p.T).T) @ unit @ h.value_output
                for p, h in zip(self.p, self.heads, strict=True)
            )
            result[:, k] = image.ravel()
        return result


@pytest.fixture(scope="module")
def live() -> Any:
    return randomised(CONFIG, seed=5)


def layers_of(live: Any, variant: str) -> list[list[Layer]]:
    """Per sample and layer, from the states of the model's own pass."""
    return [
        [Layer.of(state[k].numpy(), heads_of(live, k)) for k in range(LAYERS)]
        for state in states(load(live), {"input_ids": ROWS}, variant)
    ]


def log10(x: float) -> Any:
    return pytest.approx(math.log10(x), rel=1e-9, abs=1e-9)


def test_attention_alone(live, monkeypatch):
    """Layers 1 and 2, which plain float64 resolves."""
    monkeypatch.setattr(run, "PROVED_WIDTH", 0)  # as in wide models
    dataset = certify(live, {"input_ids": ROWS}, "san-norm")
    for sample, layers in enumerate(layers_of(live, "san-norm")):
        for k, layer in enumerate(layers[:2]):
            at = dataset.sel(sample=sample, layer=k + 1)
            for name, (a, b) in layer.pairs().items():
                got = float(at.log10_bound.sel(bound=name))
                assert got == pytest.approx(math.log10(a * b) / 2, abs=1e-7), name
            assert float(at.log10_bound.sel(bound="spectral")) == pytest.approx(
                math.log10(layer.spectral()), abs=1e-7
            )
            assert float(at.max_delta) == pytest.approx(max(d.max() for d in layer.delta))
            assert float(at.gamma) == pytest.approx(max(layer.gamma))
            # In two norms the paper's sum over heads holds, or its flag is down.
            two, lemma = layer.pairs()["two_norms"], layer.pairs()["lemma_a2"]
            holds = at.holds.sel(hypothesis="sum_over_heads")
            assert bool(holds) == (math.sqrt(two[0] * two[1]) <= lemma[0] * (1 + 1e-9))


def test_skip_connection_adds_norm_by_norm(live):
    dataset = certify(live, {"input_ids": ROWS}, "san+skip-norm")
    for sample, layers in enumerate(layers_of(live, "san+skip-norm")):
        composed = np.eye(WIDTH * len(ROWS[sample]))
        keeps = 1.0
        start = float(np.linalg.norm(layers[0].r))
        for k, layer in enumerate(layers):
            bounds = dataset.log10_bound.sel(sample=sample, layer=k + 1)
            for name, (a, b) in layer.pairs().items():
                if name == "lemma_a2":
                    continue
                total = (one(layer.r) + a) * (infinity(layer.r) + b)
                assert float(bounds.sel(bound=name)) == log10(math.sqrt(total)), name
            norm, spectral = float(np.linalg.norm(layer.r)), layer.spectral()
            assert float(bounds.sel(bound="spectral")) == log10(norm + spectral)
            keeps *= max(0.0, 1 - spectral / norm)
            for name, expected in (
                ("weyl", max(0.0, norm - spectral)),
                ("weyl_depth", keeps * start),
            ):
                got = float(bounds.sel(bound=name))
                assert got == (log10(expected) if expected else -math.inf), name
            operator = layer.operator()
            composed = operator @ composed
            for name, matrix, entered in (
                ("smallest_singular_value", operator, norm),
                ("composed", composed, start),
            ):
                n = len(layer.r)
                center = np.kron(np.eye(n) - 1 / n, np.eye(WIDTH))
                # The d directions that are not centred have singular value 0 behind the projection.
                smallest = np.sort(np.linalg.svd(matrix @ center, compute_uv=False))[WIDTH]
                assert float(bounds.sel(bound=name)) == log10(smallest * entered), name


def test_mlp_multiplies_by_its_constants(live):
    dataset = certify(live, {"input_ids": ROWS}, "san+mlp-norm")
    slope = 1.128904145185155
    for sample, layers in enumerate(layers_of(live, "san+mlp-norm")):
        block = live.encoder.layer[0]
        up = np.abs(block.intermediate.dense.weight.detach().numpy().T)
        down = np.abs(block.output.dense.weight.detach().numpy().T)
        both = up @ down
        layer, n = layers[0], len(ROWS[sample])
        back = 2 * (1 - 1 / n)
        for name, (a, b) in layer.pairs().items():
            a, b = (a * slope * one(both) * back, b * slope * infinity(both) * back)
            got = float(dataset.log10_bound.sel(sample=sample, layer=1, bound=name))
            assert got == log10(math.sqrt(a * b)), name


def theorem(c: float, rho: float, layers: int) -> float:
    """log₁₀ of what ρ' = cρ³ leaves, step by step."""
    log = math.log10(rho)
    for _ in range(layers):
        log = math.log10(c) + 3 * log
    return log


@pytest.mark.parametrize("variant", ["san-norm", "san+mlp-norm"])
def test_theorems_in_depth(live, variant):
    """Constant c takes the largest β, γ and λ of the layers so far; the centre is paid for once."""
    dataset = certify(live, {"input_ids": ROWS}, variant)
    factors = []
    for block in live.encoder.layer:
        up = np.abs(block.intermediate.dense.weight.detach().numpy().T)
        both = up @ np.abs(block.output.dense.weight.detach().numpy().T)
        factors.append(1.128904145185155 * composite(both))
    mlp = variant == "san+mlp-norm"
    assert max(factors) > factors[0]
    name = "corollary_3_2" if mlp else "theorem_2_3"
    betas = [
        max(one(h.query_key) * composite(h.value_output) for h in heads_of(live, k))
        for k in range(LAYERS)
    ]
    assert max(betas) > betas[0]
    for sample, tokens in enumerate(map(len, ROWS)):
        rho = float(dataset.measured[sample, 0])
        gammas = dataset.gamma.values[sample, 1:]
        paper = 4 * max(gammas) * max(betas) * HEADS
        assert float(dataset.log10_paper_condition[sample]) == log10(paper)
        scale = max(factors) if mlp else 1.0
        assert float(dataset.log10_contraction[sample]) == log10(math.sqrt(paper * scale) * rho)
        for k in range(1, LAYERS + 1):
            scale = max(factors[:k]) if mlp else 1.0
            c = 4 * max(gammas[:k]) * max(betas[:k]) * HEADS * scale
            expected = theorem(c, rho, k) + math.log10(2 * (1 - 1 / tokens))
            got = float(dataset.log10_bound.sel(sample=sample, layer=k, bound=name))
            assert got == pytest.approx(expected, rel=1e-9)


def test_skip_bound_in_depth(live):
    dataset = certify(live, {"input_ids": ROWS}, "san+skip-norm")
    betas = [
        max(one(h.query_key) * composite(h.value_output) for h in heads_of(live, k))
        for k in range(LAYERS)
    ]
    for sample, tokens in enumerate(map(len, ROWS)):
        rho = math.log10(float(dataset.measured[sample, 0]))
        gammas = dataset.gamma.values[sample, 1:]
        for k in range(1, LAYERS + 1):
            c = math.log10(8 * max(gammas[:k]) * max(betas[:k]) * HEADS)
            terms = [
                c * (3**j - 1) / 2 + math.log10(2) * 3**j * (k - j) + rho * 3**j
                for j in range(k + 1)
            ]
            expected = max(terms) + math.log10(2 * (1 - 1 / tokens))
            got = float(dataset.log10_bound.sel(sample=sample, layer=k, bound="skip"))
            assert got == pytest.approx(expected, rel=1e-9)
