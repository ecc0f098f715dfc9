"""Which bounds there are: their titles, sources, hypotheses and definitions, in one table."""

from dataclasses import dataclass
from typing import Literal

from rankcollapse.theory import LARGEST_DELTA

HYPOTHESES: dict[str, str] = {
    "small_delta": f"max δ ≤ {LARGEST_DELTA:.4f} (Lemma A.3)",
    "content_only": "no positional term in the scores",
    "no_mask": "no causal mask",
    "no_norm": "no norm between the layers",
    "sum_over_heads": "composite norms may be added here",
}
"""What each says; `sum_over_heads` is decided layer by layer, in two norms (docs/theory.md §3)."""

_CONTENT = ("content_only", "no_mask")
_PAPER = ("small_delta", *_CONTENT, "sum_over_heads")
_DEPTH = (*_PAPER, "no_norm")


@dataclass(frozen=True)
class Bound:
    """One bound.

    Attributes:
        name: As in the results.
        title: What people call it.
        kind: Whether it bounds from above or below.
        scope: "layer" from the measured state that enters the layer, "depth" from the input.
        norm: Which norm of the residual it bounds.
        requires: Its hypotheses.
        source: Where it is stated and proved.
        definition: The formula.
    """

    name: str
    title: str
    kind: Literal["upper", "lower"]
    scope: Literal["layer", "depth"]
    norm: Literal["composite", "frobenius"]
    requires: tuple[str, ...]
    source: str
    definition: str


def catalogue(heads: int) -> tuple[Bound, ...]:
    """All bounds, for a model with so many heads: the paper names them apart."""
    lemma, theorem = ("Lemma A.1", "Theorem 2.2") if heads == 1 else ("Lemma A.2", "Theorem 2.3")
    upper, lower, layer, depth = "upper", "lower", "layer", "depth"
    composite, frobenius = "composite", "frobenius"
    return (
        Bound(
            *("lemma_a2", lemma, upper, layer, composite, _PAPER),
            f"{lemma}, docs/theory.md §3",
            "4γHβ ‖R‖₁,∞³, β = max_h ‖W_QK‖₁‖W_h‖₁,∞ / √d_qk",
        ),
        Bound(
            *("two_norms", f"{lemma}, two norms", upper, layer, composite, _CONTENT),
            "docs/theory.md §3",
            "√(Σa_h Σb_h), a_h = 4γ_h²S_h‖R‖₁‖W_h‖₁, b_h = 4S_h‖R‖∞‖W_h‖∞, "
            "S_h = ‖W_QK‖₁‖R‖₁‖R‖∞ / √d_qk",
        ),
        Bound(
            *("gamma_free", "γ-free bound", upper, layer, composite, _CONTENT),
            "docs/theory.md §3",
            "√(Σa_h Σb_h), a_h = 2 q_max (e^δ − 1)/δ S_h‖R‖₁‖W_h‖₁, b_h = S_h‖R‖∞‖W_h‖∞",
        ),
        Bound(
            *("tanh", "tanh bound", upper, layer, composite, _CONTENT),
            "docs/theory.md §3",
            "√(Σa_h Σb_h), a_h = ½Σt_i ‖R‖₁‖W_h‖₁, b_h = max t_i ‖R‖∞‖W_h‖∞, t_i = 2 tanh(δ_i/4)",
        ),
        Bound(
            *("values", "tanh bound on values", upper, layer, composite, _CONTENT),
            "docs/theory.md §3",
            "√(Σa_h Σb_h), a_h = ½Σt_i ‖RW_h‖₁, b_h = max t_i ‖RW_h‖∞",
        ),
        Bound(
            *("dobrushin", "Dobrushin bound", upper, layer, composite, ()),
            "docs/theory.md §3",
            "√(Σa_h Σb_h), a_h = ½ n τ_h max_j osc_j(RW_h), "
            "b_h = (1 − 1/n) τ_h min(Σ_j osc_j(RW_h), 2‖RW_h‖∞), τ_h = ½ max_ik ‖P_i − P_k‖₁",
        ),
        Bound(
            *("spectral", "spectral bound", upper, layer, frobenius, ()),
            "docs/theory.md §4",
            "Σ_h ‖ΠP_hΠ‖₂‖W_h‖₂‖R‖_F",
        ),
        Bound(
            *("weyl", "Weyl's bound", lower, layer, frobenius, ()),
            "docs/theory.md §4",
            "‖R‖_F − Σ_h ‖ΠP_hΠ‖₂‖W_h‖₂‖R_in‖_F, R_in the residual that enters attention, less "
            "what an MLP beside a skip connection can take away",
        ),
        Bound(
            *("smallest_singular_value", "smallest singular value", lower, layer, frobenius, ()),
            "docs/theory.md §4",
            "σ_min(I + Σ_h ΠP_hΠ ⊗ W_hᵀ) ‖R‖_F on centred residuals",
        ),
        Bound(
            *("theorem_2_3", theorem, upper, depth, composite, _DEPTH),
            f"{theorem}, docs/theory.md §3",
            "c^((3^l − 1)/2) ‖res(X⁰)‖₁,∞^(3^l), c = 4γβH / √d_qk",
        ),
        Bound(
            *("corollary_3_2", "Corollary 3.2", upper, depth, composite, _DEPTH),
            "Corollary 3.2, docs/theory.md §3",
            "c^((3^l − 1)/2) ‖res(X⁰)‖₁,∞^(3^l), c = 4γβHλ / √d_qk",
        ),
        Bound(
            *("skip", "skip bound", upper, depth, composite, _DEPTH),
            "§3.1 of the paper, docs/theory.md §3",
            "max_k (2c)^((3^k − 1)/2) 2^(3^k (l − k)) ‖res(X⁰)‖₁,∞^(3^k), c = 4γβH / √d_qk",
        ),
        Bound(
            *("weyl_depth", "Weyl's bound in depth", lower, depth, frobenius, ()),
            "docs/theory.md §4",
            "‖R⁰‖_F times the product over layers of Weyl's bound over the residual that entered",
        ),
        Bound(
            *("composed", "composed operator", lower, depth, frobenius, ()),
            "docs/theory.md §4",
            "σ_min(∏(I + Σ_h ΠP_hΠ ⊗ W_hᵀ)) ‖R⁰‖_F: exact for these attention matrices",
        ),
    )
