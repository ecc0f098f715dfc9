"""Figure 2 beside the paper: BERT's published curves, and what is known of the others."""

import math
from collections.abc import Iterator

import xarray as xr

from rankcollapse.experiments import published
from rankcollapse.experiments.experiment import Row
from rankcollapse.experiments.figure_2 import panels
from rankcollapse.experiments.figure_2.base_models import BASE_MODELS, LAYERS
from rankcollapse.experiments.figure_2.runs import SURGERY, VARIANTS

COMPARED = (1, 2, 6, LAYERS)
TOKENS = 128
SOURCE = "Figure 2, vector graphic"
_READ_OFF = 1e-8
# Four units of rounding of float32: below, neither the paper's numbers nor ours are measurements.
_FLOOR = 4 * 2.0**-23
_XLNET = published.FIGURE_2_XLNET

_ROUNDING = "rounding: float32 resolves nothing below 5e-07, the paper's run and ours alike"
_SURGERY = (
    "the paper's code, of which the published curve is, keeps the MLP's skip connection, which its "
    "text and san+mlp here leave out"
)
_AS_CODED = "san+mlp as the paper's code has it"
_REPETITION = (
    "the level falls the more often tokens of a text repeat, and the paper's texts are not known; "
    "the factor from layer to layer can be compared"
)
_SHORT = "on texts of {} tokens, the paper's have 128"
_NOT_GIVEN = "left out: no pretrained {} was given (--pretrained {}=...)"
_OTHER = "{} of {} layers, not the paper's {}: nothing to compare with"
_SPREAD = (
    "pretrained weights have no seeds: agrees if within the published standard deviation over texts"
)


def rows(dataset: xr.Dataset) -> list[Row]:
    """Returns the comparison of the combined data set."""
    return [
        *_bert(dataset),
        *_xlnet(dataset),
        *_below_rounding(dataset),
        *_pretrained(dataset),
    ]


def _bert(dataset: xr.Dataset) -> Iterator[Row]:
    run = panels.runs(dataset)["bert"]
    short = [] if run["tokens_max"] == TOKENS else [_SHORT.format(run["tokens_max"])]
    for point in published.figure_2_bert():
        if point.panel != "init" or point.layer not in COMPARED:
            continue
        rounding = [_ROUNDING] if point.mean <= _FLOOR else []
        measured = {point.variant: ""}
        if point.variant == "san+mlp" and not run["as_published"]:
            measured = {point.variant: _SURGERY, SURGERY["bert"]: _AS_CODED}
        for variant, remark in measured.items():
            yield Row(
                f"BERT {variant}, layer {point.layer}",
                point.mean,
                SOURCE,
                _by_seed(dataset, "bert", variant, point.layer),
                _FLOOR if rounding else _READ_OFF,
                "\n".join([*([remark] if remark else []), *rounding, *short]),
            )


def _xlnet(dataset: xr.Dataset) -> Iterator[Row]:
    """Yields the levels of the curve and, of which the theory speaks, the factors between them."""
    run = panels.runs(dataset)["xlnet"]
    short = [] if run["tokens_max"] == TOKENS else [_SHORT.format(run["tokens_max"])]
    ours = {layer: _by_seed(dataset, "xlnet", "san", layer) for layer in _XLNET}
    for layer, value in _XLNET.items():
        remark = "\n".join([_REPETITION, *short])
        yield Row(
            f"XLNet san, layer {layer}", value, SOURCE, ours[layer], _half_a_digit(value), remark
        )
    for layer, value in _XLNET.items():
        if layer - 1 not in _XLNET:
            continue
        before = _XLNET[layer - 1]
        factor = value / before
        off = factor * (_half_a_digit(value) / value + _half_a_digit(before) / before)
        seeds = tuple(b / a for a, b in zip(ours[layer - 1], ours[layer], strict=True))
        what = f"XLNet san, factor of layer {layer}"
        yield Row(what, factor, SOURCE, seeds, off, "\n".join(short))


def _half_a_digit(value: float) -> float:
    """Returns how far a number of two digits may be off."""
    return 0.05 * 10.0 ** math.floor(math.log10(value))


def _below_rounding(dataset: xr.Dataset) -> Iterator[Row]:
    """Yields what the published figure cannot show: how far the residual falls."""
    values = dataset["centered_log10_relative_residual"].mean("sample")
    for panel in panels.panels(dataset, "random"):
        for variant in ("san", "san+mlp"):
            one = values.sel(panel=panel, variant=variant, layer=LAYERS)
            what = f"{BASE_MODELS[panel].title} {variant}, layer {LAYERS}: log10, centered"
            yield Row(what, None, "", tuple(one.dropna("seed").values.tolist()))


def _pretrained(dataset: xr.Dataset) -> Iterator[Row]:
    runs = panels.runs(dataset)
    for family, base in BASE_MODELS.items():
        panel = f"{family} pretrained"
        if panel not in runs:
            remark = _NOT_GIVEN.format(base.title, family)
            yield Row(f"{base.title} pretrained", None, "", (), remark=remark)
            continue
        run = runs[panel]
        layers = run["layers"]
        comparable = family == "bert" and (layers, run["width"]) == (LAYERS, 768)
        if comparable:
            yield from _pretrained_bert(dataset, panel)
            continue
        remark = _OTHER.format(panels.model(dataset, panel), layers, base.name)
        for variant in VARIANTS:
            what = f"{base.title} pretrained {variant}, layer {layers}"
            ours = _by_seed(dataset, panel, variant, layers)
            yield Row(what, None, "", ours, remark=remark, exact=True)


def _pretrained_bert(dataset: xr.Dataset, panel: str) -> Iterator[Row]:
    for point in published.figure_2_bert():
        if point.panel != "pretrained" or point.layer not in COMPARED:
            continue
        yield Row(
            f"BERT pretrained {point.variant}, layer {point.layer}",
            point.mean,
            SOURCE,
            _by_seed(dataset, panel, point.variant, point.layer),
            max(point.std, _FLOOR if point.mean <= _FLOOR else _READ_OFF),
            _SPREAD,
            exact=True,
        )


def _by_seed(dataset: xr.Dataset, panel: str, variant: str, layer: int) -> tuple[float, ...]:
    """Returns the mean over texts, a number for each seed."""
    values = dataset["relative_residual"].sel(panel=panel, variant=variant, layer=layer)
    return tuple(values.mean("sample").dropna("seed").values.tolist())
