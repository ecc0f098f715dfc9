"""Data sets made by formula, in the shape that `inspect` returns, for the tests of the report."""

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr

FLOORS = {"float32": 4 * 2.0**-23, "float64": 4 * 2.0**-52}
OFF = {
    "san": ["attention_skip", "mlp"],
    "san+mlp": ["attention_skip", "mlp_skip"],
    "san+skip": ["mlp"],
    "transformer": [],
    "-mlp_skip": ["mlp_skip"],
    "-attention_skip": ["attention_skip"],
    "-attention_norm": ["attention_norm"],
    "-mlp_norm": ["mlp_norm"],
    "-mlp": ["mlp"],
}
FORMULAS = {
    "san": "X ← LN(SA(X))",
    "san+mlp": "A ← LN(SA(X)); X ← LN(MLP(A))",
    "san+skip": "X ← LN(X + SA(X))",
    "transformer": "A ← LN(X + SA(X)); X ← LN(A + MLP(A))",
}
LONG_NAMES = {
    "relative_residual": "relative residual",
    "log10_relative_residual": "log10 of the relative residual",
    "relative_residual_frobenius": "relative residual in the Frobenius norm",
    "absolute_residual": "absolute residual",
    "at_floor": "at the rounding floor",
    "token_cosine": "mean pairwise token cosine",
    "effective_rank": "effective rank of the tokens",
    "stable_rank": "stable rank of the tokens",
    "residual_effective_rank": "effective rank of the residual",
    "residual_stable_rank": "stable rank of the residual",
    "largest_token_ratio": "largest token over the median",
    "dense_log10_relative_residual": "log10 of the relative residual in plain float64",
    "local_order": "local order",
    "positional_lambda2": "second eigenvalue of the attention between equal tokens",
    "attention_entropy": "attention entropy",
    "attention_lambda2": "second eigenvalue of the attention",
}
DEFINITIONS = {
    "relative_residual": "‖X − 1xᵀ‖₁,∞ / ‖X‖₁,∞ with x the mean of the tokens and "
    "‖·‖₁,∞ = √(‖·‖₁ ‖·‖∞).",
    "token_cosine": "Mean over all pairs i ≠ j of ⟨xᵢ, xⱼ⟩ / (‖xᵢ‖ ‖xⱼ‖).",
    "effective_rank": "exp(−Σ pᵢ ln pᵢ) with pᵢ = σᵢ / Σ σⱼ, σ the singular values of X.",
    "largest_token_ratio": "max ‖xᵢ‖₂ / median ‖xᵢ‖₂ over the tokens of a text.",
}


def log10_curve(variant: str, layers: int, *, deep: bool, cubic: bool = False) -> np.ndarray:
    """Return the variant's log10 relative residual by layer, before it meets any floor."""
    layer = np.arange(layers + 1, dtype=float)
    start = np.log10(0.61)
    if cubic and variant in ("san", "san+mlp"):
        return start * 3**layer * (1.0 if variant == "san" else 0.8)
    if deep and variant.startswith("san") and "skip" not in variant:
        depth = 900 if variant == "san" else 500
        return start - depth * (layer / layers) ** 2
    slopes = {"san": 2.6, "san+mlp": 0.75, "san+skip": 0.012, "-attention_skip": 0.45}
    if variant == "transformer":
        return start + 0.18 * (1 - np.exp(-layer / 2))
    return start - slopes.get(variant, 0.035) * layer


def synthetic(
    variants: Sequence[str] = ("san", "san+mlp", "san+skip", "transformer"),
    *,
    layers: int = 12,
    samples: int = 8,
    final_norm: bool = False,
    deep: bool = False,
    cubic: bool = False,
    dtype: str = "float32",
    groups: Sequence[str] = ("residual", "similarity", "spectrum", "magnitude", "attention"),
    heads: int = 4,
    model: str = "bert-base-cased",
    massive: float = 3.0,
) -> xr.Dataset:
    """Return a data set as `inspect` makes it.

    `deep` is of centered arithmetic and goes down to 1e-900; `cubic` is deep, too, and its log10
    is three times as large in each layer.
    """
    deep = deep or cubic
    dtype = "float64" if deep else dtype
    random = np.random.default_rng(0)
    shape = (len(variants), samples, layers + 1)
    noise = 0.03 * random.standard_normal(shape)
    curves = [log10_curve(v, layers, deep=deep, cubic=cubic) for v in variants]
    logs = np.stack(curves)[:, None, :] + noise
    resolution = -np.inf if deep else np.log10(FLOORS[dtype] / 2.2)
    logs = np.where(logs < resolution, resolution + noise, logs)
    at_floor = logs < (-np.inf if deep else np.log10(FLOORS[dtype]))
    residual = 10.0**logs
    share = np.clip(residual, 0, 1)
    groups_of = {
        "residual": {
            "relative_residual": residual,
            "log10_relative_residual": logs,
            "relative_residual_frobenius": residual * 0.9,
            "absolute_residual": residual * 210,
            "at_floor": at_floor,
        },
        "similarity": {"token_cosine": 1 - share**2},
        "spectrum": {
            "effective_rank": 1 + 90 * share,
            "stable_rank": 1 + 12 * share,
            "residual_effective_rank": 70 + 2 * noise,
            "residual_stable_rank": 9 + noise,
        },
        "magnitude": {
            "largest_token_ratio": 1 + massive * np.arange(layers + 1) / layers * (1 + noise)
        },
    }
    if deep:
        order = np.full(shape, np.nan)
        steps = np.diff(logs, axis=2)
        order[:, :, 2:] = steps[:, :, 1:] / steps[:, :, :-1]
        resolved = np.logical_and.accumulate(logs > np.log10(FLOORS["float64"]), axis=2)
        groups_of["residual"] |= {
            "dense_log10_relative_residual": np.where(resolved, logs, np.nan),
            "local_order": order,
        }
    dims = ("variant", "sample", "layer")
    data: dict[str, xr.DataArray] = {}
    for group, arrays in groups_of.items():
        if group not in groups:
            continue
        for name, values in arrays.items():
            data[name] = xr.DataArray(values, dims=dims, attrs=_attributes(name))
            if final_norm:
                last = values[:, :, -1]
                if "residual" in name and values.dtype != bool:
                    last = last + np.log10(1.2) if "log10" in name else last * 1.2
                after = f"{name}_after_final_norm"
                data[after] = xr.DataArray(last, dims=dims[:2], attrs=_attributes(name))
    if "attention" in groups:
        for name in ("attention_entropy", "attention_lambda2"):
            values = random.uniform(0, 1, (*shape, heads))
            values[:, :, 0] = np.nan
            attributes = _attributes(name)
            data[name] = xr.DataArray(values, dims=(*dims, "head"), attrs=attributes)
    metadata = {
        "model": model,
        "family": "bert",
        "causal": False,
        "positions_in_scores": False,
        "layers": layers,
        "heads": 12,
        "width": 768,
        "init": "pretrained",
        "seed": None,
        "revision": "cd5ef92a9fb2f889e972770a36d4ed042daf221e",
        "dtype": dtype,
        "device": "cpu",
        "arithmetic": "centered" if deep else "dense",
        "as_published": False,
        "leave_out": None,
        "samples": samples,
        "tokens_min": 128,
        "tokens_max": 128,
        "text_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "floor": 0.0 if deep else FLOORS[dtype],
        "variants": {
            v: {"off": OFF[v], "formula": FORMULAS.get(v, "X ← LN(X + SA(X))")} for v in variants
        },
        "versions": {"rankcollapse": "0.1.0", "torch": "2.13.0", "transformers": "5.4.0"},
        "created": "2026-01-05T10:11:12+00:00",
    }
    coords = {
        "variant": list(variants),
        "sample": np.arange(samples),
        "layer": np.arange(layers + 1),
    }
    return xr.Dataset(data, coords=coords, attrs={"metadata": json.dumps(metadata)})


def _attributes(name: str) -> dict[str, str]:
    definition = DEFINITIONS.get(name, f"Definition of {LONG_NAMES[name]}.")
    units = "nat" if name == "attention_entropy" else "1"
    return {"long_name": LONG_NAMES[name], "units": units, "definition": definition}
