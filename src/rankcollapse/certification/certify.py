"""`certify`: every bound of the theory for a model's weights and text, beside the measurement."""

from typing import Any

import numpy as np
import torch
import xarray as xr

from rankcollapse.certification.catalogue import HYPOTHESES, catalogue
from rankcollapse.certification.run import LN10, Found, Progress, holds, run, stated
from rankcollapse.certification.structure import Structure
from rankcollapse.families.load import load
from rankcollapse.inputs.tokens import Inputs, batches, prepare
from rankcollapse.inspection.dataset import attach_metadata
from rankcollapse.inspection.run import tokens_per_batch
from rankcollapse.transformer import Transformer, Variant

MEASURED = ("sample", "layer")


def certify(
    model: Any,
    inputs: Inputs,
    variant: str = "san",
    *,
    tokens: int | None = None,
    truncate: bool = False,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Evaluates every bound for these weights and inputs, and says which hypotheses hold.

    The pass runs in `Centered` float64 arithmetic, so that states, bounds and hypotheses stay right
    where the residual is far below rounding. Bounds are evaluated in logarithms. They are not
    rounded outward: logarithms may be off by 1e-12, or by 1e-12 of themselves where they are large.

    Args:
        model: A `Transformer`, or anything that `load` takes.
        inputs: Texts, or a mapping with `input_ids`, as for `inspect`.
        variant: What is switched off, such as "san" or "san+skip-norm" (docs/variants.md).
        tokens: Use at most so many tokens of each text.
        truncate: Cut texts that are longer than the model's positions, which is an error otherwise.
        progress: Called with (work done, work in all).

    Returns:
        A Dataset. `measured` is ‖res(X)‖₁,∞ about the token mean over (`sample`, `layer`), with
        its logarithm and that of the Frobenius norm. `log10_bound` over (`bound`, `sample`,
        `layer`) has coordinates `kind` (upper or lower), `scope` (layer: from the measured state
        that enters the layer; depth: from the network's input), `norm` (which measured norm it
        bounds), `title`, `source` and `definition`; bounds from above are on the residual about
        the mean, at most 2(1 − 1/n) times that about the best centre. `holds` over (`hypothesis`,
        `sample`, `layer`), `requires` over (`bound`, `hypothesis`), and `applies`: all that a bound
        requires holds, at every layer so far for those in depth. `log10_contraction` is
        log₁₀(√c ‖res(X⁰)‖): the bounds in depth tend to zero exactly where it is negative.

    Raises:
        RankCollapseError: Bad input, in one sentence; before the pass starts.

    Source:
        Lemmas A.1 to A.3, Theorems 2.2 and 2.3, Corollary 3.2, Claim 3.1; docs/theory.md §3, §4.

    Example:
        >>> from transformers import BertConfig
        >>> config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        ...                     intermediate_size=64, vocab_size=99)
        >>> result = certify(load(config, init="random"), {"input_ids": [[1, 5, 7, 2]]})
        >>> upper = result.log10_bound.sel(bound="tanh", layer=1)
        >>> bool((upper >= result.log10_measured.sel(layer=1)).all())
        True
    """
    chosen = Variant.parse(variant)
    if not isinstance(model, Transformer):
        model = load(model)
    samples = prepare(inputs, model.read_tokenizer, model.architecture, tokens, truncate)
    model = model.to(torch.float64)
    parts = batches(samples, tokens_per_batch(model), None, model.device)
    found = run(model, chosen, parts, progress)
    structure = Structure.of(model.blocks[0], chosen)
    dataset = _dataset(found, structure, model.architecture.heads)
    dataset = dataset.assign_coords(variant=chosen.name)
    details = {"arithmetic": "centered", "floor": 0.0, "as_published": False, "leave_out": None}
    return attach_metadata(dataset, model, [chosen], samples, details)


def _dataset(found: Found, structure: Structure, heads: int) -> xr.Dataset:
    """Names everything; logarithms become decimal."""
    values = dict(stated(found.bounds))
    bounds = [bound for bound in catalogue(heads) if bound.name in values]
    truths = holds(found, structure)
    truth = np.stack([truths[name] for name in HYPOTHESES])
    requires = np.array([[name in bound.requires for name in HYPOTHESES] for bound in bounds])
    met = np.array([truth[required].all(axis=0) for required in requires])
    deep = np.array([bound.scope == "depth" for bound in bounds])
    met[deep] = np.logical_and.accumulate(met[deep], axis=-1)
    samples, slots = found.measured.shape
    dataset = xr.Dataset(
        coords={
            "bound": ("bound", [bound.name for bound in bounds]),
            "hypothesis": ("hypothesis", list(HYPOTHESES)),
            "sample": ("sample", np.arange(samples)),
            "layer": ("layer", np.arange(slots), {"long_name": "layer", "units": "1"}),
            "statement": ("hypothesis", list(HYPOTHESES.values())),
            **{
                name: ("bound", [getattr(bound, name) for bound in bounds])
                for name in ("title", "kind", "scope", "norm", "source", "definition")
            },
        }
    )
    logs = {
        "log10_measured": (found.measured, "log₁₀ of the residual (composite norm)", "‖·‖₁,∞"),
        "log10_measured_frobenius": (
            found.frobenius,
            "log₁₀ of the residual (Frobenius norm)",
            "‖·‖_F",
        ),
    }
    dataset["measured"] = (
        MEASURED,
        np.exp(found.measured),
        _attrs("residual (composite norm)", "‖res(X)‖₁,∞ about the token mean", "units of state"),
    )
    for name, (log, long_name, norm) in logs.items():
        attrs = _attrs(long_name, f"log₁₀ of {norm} of X − 1x̄ᵀ, x̄ the token mean")
        dataset[name] = (MEASURED, log / LN10, attrs)
    dataset["log10_bound"] = (
        ("bound", *MEASURED),
        np.stack([values[bound.name] for bound in bounds]) / LN10,
        _attrs(
            "log₁₀ of the bound",
            "of the composite or Frobenius norm of the residual about the token mean; NaN where "
            "the bound says nothing of this network, −inf where a lower bound is vacuous",
        ),
    )
    dataset["holds"] = (
        ("hypothesis", *MEASURED),
        truth,
        _attrs("hypothesis holds", "whether the statement is true at the layer"),
    )
    dataset["requires"] = (
        ("bound", "hypothesis"),
        requires.reshape(len(bounds), len(HYPOTHESES)),
        _attrs("bound requires the hypothesis", "for its proof"),
    )
    dataset["applies"] = (
        ("bound", *MEASURED),
        met,
        _attrs("bound applies", "all its hypotheses hold; in depth, at every layer so far"),
    )
    dataset["max_delta"] = (
        MEASURED,
        np.exp(np.minimum(found.log_delta, 709)),
        _attrs("max δ", "max over heads, i, j, j' of |E_ij − E_ij'|, E = R W_QK Rᵀ/√d_qk"),
    )
    dataset["gamma"] = (
        MEASURED,
        np.exp(found.log_gamma),
        _attrs("γ", "max over heads of √(Σδ_i / max δ_i), between 1 and √n"),
    )
    dataset["log10_contraction"] = (
        "sample",
        found.contraction / LN10,
        _attrs(
            "log₁₀(√c ‖res(X⁰)‖₁,∞)",
            "the bounds in depth tend to zero exactly where this is negative; c over all layers",
        ),
    )
    dataset["log10_paper_condition"] = (
        "sample",
        found.paper / LN10,
        _attrs("log₁₀(4γβH / √d_qk)", "the paper's condition asks that this is negative"),
    )
    return dataset


def _attrs(long_name: str, definition: str, units: str = "1") -> dict[str, str]:
    return {"long_name": long_name, "units": units, "definition": definition}
