"""Certificates made by formula, in the shape that `certify` returns."""

import json
from typing import Any

import numpy as np
import xarray as xr

SMALL_DELTA, CONTENT = "small_delta", "content_only"
STATEMENTS = {
    SMALL_DELTA: "max δ ≤ 1.2564 (Lemma A.3)",
    CONTENT: "no positional term in the scores",
    "no_mask": "no causal mask",
    "no_norm": "no norm between the layers",
    "sum_over_heads": "composite norms may be added here",
}
CONTENT_ONLY = (CONTENT, "no_mask")
PAPERS = (SMALL_DELTA, *CONTENT_ONLY, "sum_over_heads")
# Name, kind, scope, norm, title, hypotheses, and log10 above the measured residual.
UPPER: tuple[tuple[str, str, str, tuple[str, ...], float], ...] = (
    ("lemma_a2", "layer", "Lemma A.2", PAPERS, 6.0),
    ("two_norms", "layer", "Lemma A.2, two norms", CONTENT_ONLY, 5.0),
    ("gamma_free", "layer", "γ-free bound", CONTENT_ONLY, 4.2),
    ("tanh", "layer", "tanh bound", CONTENT_ONLY, 2.1),
    ("values", "layer", "tanh bound on values", CONTENT_ONLY, 1.5),
    ("dobrushin", "layer", "Dobrushin bound", (), 2.6),
    ("theorem_2_3", "depth", "Theorem 2.3", (*PAPERS, "no_norm"), 0.0),
    ("corollary_3_2", "depth", "Corollary 3.2", (*PAPERS, "no_norm"), 1.0),
)
LOWER = (
    ("weyl", "layer", "Weyl's bound", 0.9),
    ("smallest_singular_value", "layer", "smallest singular value", 0.2),
    ("weyl_depth", "depth", "Weyl's bound in depth", 0.9),
    ("composed", "depth", "composed operator", 0.3),
)


def certificate(
    variant: str = "san",
    *,
    layers: int = 12,
    samples: int = 4,
    max_delta: float | np.ndarray = 0.7,
    contraction: float = -0.4,
    paper_condition: float = 0.3,
    slope: float = -0.4,
    start: float = 2.37,
    model: str = "bert-base-cased",
    hypotheses: dict[str, bool] | None = None,
    crossed: tuple[str, int, int] | None = None,
) -> xr.Dataset:
    """Return a certificate.

    Args:
        variant: with "skip" in its name it has lower bounds, too.
        layers: how many.
        samples: how many; sample s is 0.01 s above the first.
        max_delta: one number, or one by layer from 1 on, or by sample and layer.
        contraction: log10 of √c‖res X‖, from which the theorem's bound follows.
        paper_condition: log10 of 4γβH/√d_qk.
        slope: log10 of the measured residual's factor per layer.
        start: log10 of the measured residual at layer 0.
        model: its name.
        hypotheses: those that are structural and do not hold anywhere.
        crossed: a bound, sample and layer at which the bound is a decade on the wrong side.
    """
    layer = np.arange(layers + 1)
    shape = (samples, layers + 1)
    shift = 0.01 * np.arange(samples)[:, None]
    measured = start + slope * layer + shift
    frobenius = measured - 0.3
    delta = np.full(shape, np.nan)
    delta[:, 1:] = max_delta
    names = list(STATEMENTS)
    held = {name: np.full(shape, True) for name in names}
    held[SMALL_DELTA] = np.nan_to_num(delta) <= 1.2564
    for name, holds in (hypotheses or {}).items():
        held[name] = np.full(shape, holds)

    rows: list[dict[str, Any]] = []
    for name, scope, title, requires, above in UPPER:
        if scope == "layer":
            logs = np.maximum(measured + above - 0.005 * (layer - 3) ** 2, measured + 0.5)
        else:
            logs = measured[:, :1] + contraction * (3.0**layer - 1) + above
            logs = np.maximum(logs, measured + 0.5)
        rows.append(_row(name, "upper", scope, "composite", title, requires, logs))
    spectral = frobenius + 0.4
    rows.append(_row("spectral", "upper", "layer", "frobenius", "spectral bound", (), spectral))
    for name, scope, title, loss in LOWER if "skip" in variant else ():
        logs = (frobenius if scope == "layer" else frobenius[:, :1]) - loss * (
            1 if scope == "layer" else layer
        )
        if name.startswith("weyl"):
            logs = np.where(layer > 2, -np.inf, logs)
        logs = np.minimum(logs, frobenius - 0.05)
        rows.append(_row(name, "lower", scope, "frobenius", title, (), logs))

    applies = []
    for row in rows:
        ok = np.logical_and.reduce([held[h] for h in row["requires"]] or [np.full(shape, True)])
        applies.append(np.logical_and.accumulate(ok, axis=1) if row["scope"] == "depth" else ok)
        row["logs"][:, 0] = np.nan
        if crossed is not None and crossed[0] == row["name"]:
            sign = 1 if row["kind"] == "lower" else -1
            about = measured if row["norm"] == "composite" else frobenius
            row["logs"][crossed[1:]] = about[crossed[1:]] + sign
    text = {key: [row[key] for row in rows] for key in ("kind", "scope", "norm", "title")}
    per_layer = ("sample", "layer")
    described = {"long_name": "a number", "units": "1", "definition": "what it is"}
    dataset = xr.Dataset(
        {
            "measured": (per_layer, np.where(measured < -308, 0, 10.0**measured), described),
            "log10_measured": (per_layer, measured, described),
            "log10_measured_frobenius": (per_layer, frobenius, described),
            "log10_bound": (("bound", *per_layer), np.stack([row["logs"] for row in rows])),
            "holds": (("hypothesis", *per_layer), np.stack([held[name] for name in names])),
            "requires": (
                ("bound", "hypothesis"),
                np.array([[name in row["requires"] for name in names] for row in rows]),
            ),
            "applies": (("bound", *per_layer), np.stack(applies)),
            "max_delta": (per_layer, delta, described),
            "gamma": (per_layer, np.full(shape, 9.0), described),
            "log10_contraction": ("sample", contraction + shift[:, 0]),
            "log10_paper_condition": ("sample", paper_condition + shift[:, 0]),
        },
        coords={
            "sample": np.arange(samples),
            "layer": layer,
            "bound": [row["name"] for row in rows],
            "hypothesis": names,
            "statement": ("hypothesis", list(STATEMENTS.values())),
            "definition": ("bound", [f"formula of {row['name']}" for row in rows]),
            "source": ("bound", [f"{row['title']}, theory §3" for row in rows]),
            "variant": variant,
            **{key: ("bound", values) for key, values in text.items()},
        },
    )
    run = {"model": model, "family": "bert", "layers": layers, "heads": 12, "width": 768,
           "init": "random", "seed": 0, "dtype": "float64", "device": "cpu",
           "arithmetic": "centered", "samples": samples, "tokens_min": 128, "tokens_max": 128,
           "variants": {variant: {"off": ["mlp"], "formula": "y = A(x)"}}}  # fmt: skip
    dataset.attrs["metadata"] = json.dumps(run)
    return dataset


def _row(
    name: str,
    kind: str,
    scope: str,
    norm: str,
    title: str,
    requires: tuple[str, ...],
    logs: np.ndarray,
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "scope": scope,
        "norm": norm,
        "title": title,
        "requires": requires,
        "logs": logs.copy(),
    }
