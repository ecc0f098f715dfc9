"""The centre with the smallest composite norm, found globally and certified.

The outer polygon's best corner says in which direction p a + q b to look next. That is a linear
program; it is solved over few candidates for each feature, and its multipliers price all others.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from rankcollapse.theory.center_front import EPS, Array, Front, attained, composite, least

ROUNDS = 200
"""Far more than are ever needed, which is about ten."""
SPREAD = 16
"""The candidates to begin with are the median and those n / 16 ranks to either side."""
TALL = 4
"""Tokens per feature above which the simplex method is faster: the program's rows are dense."""
PRECISION = 1e-9
"""Of the solver. It limits how small the gap gets; the bound holds at any precision."""


def optimal_center(z: Array, tolerance: float) -> tuple[Array, float]:
    """A minimiser c of ‖Z − 1cᵀ‖₁,∞, and a lower bound on the minimum.

    A centre's coordinate j can be restricted to mixtures of the entries of column j: between two
    neighbouring ones |z_ij − c_j| is linear in c_j for all i. Hence the linear program over weights
    μ_jk ≥ 0 of the candidates z_kj, with Σ_k μ_jk = 1: minimise a' + b' where
    a a' ≥ Σ_ik μ_jk |z_ij − z_kj| for all j and b b' ≥ Σ_jk μ_jk |z_ij − z_kj| for all i, with
    (a, b) the corner. Its multipliers α_j (sum 1/a) and β_i (sum 1/b) bound every centre:
    ‖·‖₁ / a + ‖·‖∞ / b ≥ Σ_j min_c Σ_i (α_j + β_i)|z_ij − c|, a weighted median in each column.

    Args:
        z: The matrix about its columns' medians, entries at most 1 in size.
        tolerance: Where to stop: upper / lower − 1.

    Returns:
        The centre and the lower bound.
    """
    front = Front(*least(z))
    best, upper = np.zeros(z.shape[1]), np.inf
    for c in (best, z.mean(0)):
        best, upper = min(
            (best, upper), (c, composite(*attained(z - c))), key=lambda found: found[1]
        )
    columns = _Columns(z)
    for _ in range(ROUNDS):
        if upper <= front.lower * (1 + tolerance):
            break
        a, b = front.corner
        solved = columns.solve(a, b)
        if solved is None:
            break
        c, alpha, beta = solved
        if (norm := composite(*attained(z - c))) < upper:
            best, upper = c, norm
        value, news = columns.price(alpha / alpha.sum() / a, beta / beta.sum() / b)
        front.cut(1 / a, 1 / b, value)
        # A corner that is attained has value 2, and by the inequality of the means is then optimal.
        # With nothing left to admit, only the solver's precision is in the way.
        if not news and value <= 2 + max(tolerance, PRECISION):
            break
    return best, front.lower


class _Columns:
    """The candidates of every column: entries of Z, of which the program may use some."""

    def __init__(self, z: Array) -> None:
        self.z = z
        n, d = z.shape
        self.order = z.argsort(0)
        self.sorted = np.take_along_axis(z, self.order, 0)
        # Equal entries are one candidate, the first of them.
        step = np.vstack([np.ones((1, d), bool), self.sorted[1:] > self.sorted[:-1]])
        self.first = np.maximum.accumulate(np.where(step, np.arange(n)[:, None], 0), 0)
        self.used = np.zeros((n, d), bool)
        for ranks in (0, n // SPREAD + 1):
            self._use(np.full(d, (n - 1) // 2 - ranks))
            self._use(np.full(d, n // 2 + ranks))

    def _use(self, k: NDArray[np.intp]) -> bool:
        """Admit candidate k_j in every column j; whether any of them is new."""
        j = np.arange(len(k))
        k = self.first[k.clip(0, len(self.z) - 1), j]
        news = not self.used[k, j].all()
        self.used[k, j] = True
        return news

    def solve(self, a: float, b: float) -> tuple[Array, Array, Array] | None:
        """The program's centre and the multipliers of its columns and rows; None if it fails."""
        n, d = self.z.shape
        j, k = self.used.T.nonzero()
        entry = self.sorted[k, j]
        m = len(j)
        distance = np.abs(self.z[:, j] - entry)
        member = csr_array(coo_array((np.ones(m), (j, np.arange(m))), shape=(d, m)))
        sums = member * (distance.sum(0) / a)[None, :]
        one, none = np.ones((1, 1)), np.zeros((1, 1))
        left = vstack(
            [
                hstack([sums, np.tile(np.hstack([-one, none]), (d, 1))]),
                hstack([csr_array(distance / b), np.tile(np.hstack([none, -one]), (n, 1))]),
            ],
            format="csr",
        )
        methods = ("highs-ds", "highs-ipm") if n > TALL * d else ("highs-ipm", "highs-ds")
        for method in methods:
            found = linprog(
                np.append(np.zeros(m), [1.0, 1.0]),
                A_ub=left,
                b_ub=np.zeros(d + n),
                A_eq=hstack([member, np.zeros((d, 2))], format="csr"),
                b_eq=np.ones(d),
                method=method,
                options={
                    "primal_feasibility_tolerance": PRECISION,
                    "dual_feasibility_tolerance": PRECISION,
                },
            )
            if found.status == 0:
                price = np.maximum(-found.ineqlin.marginals, 0)
                if price[:d].sum() > 0 and price[d:].sum() > 0:
                    return member @ (found.x[:m] * entry), price[:d], price[d:]
        return None

    def price(self, alpha: Array, beta: Array) -> tuple[float, bool]:
        """Σ_ij (α_j + β_i)|z_ij − c_j| at its smallest, rounded down; admits what attains it."""
        n, d = self.z.shape
        cumulative = (alpha + beta[self.order]).cumsum(0)
        k = (cumulative < cumulative[-1] / 2).sum(0).clip(max=n - 1)
        c = self.sorted[k, np.arange(d)]
        distance = np.abs(self.z - c)
        value = float(alpha @ distance.sum(0) + beta @ distance.sum(1))
        # Rounded: the sums, which of two neighbours is the median, and z about the median already.
        size = np.abs(self.z)
        scale = value + float(alpha @ size.sum(0) + beta @ size.sum(1))
        news = [self._use(k + step) for step in (-1, 0, 1)]
        return value - 4 * (n + d + 4) * EPS * scale, any(news)
