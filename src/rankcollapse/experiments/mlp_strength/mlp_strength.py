"""The tug-of-war of §3.2: stronger MLPs against collapse, and what they cost in robustness.

The MLP f is made s times stronger in two ways, each of which makes its Lipschitz constant s times
as large in every norm: s·f(x), louder, and f(s·x), steeper.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
import xarray as xr

from rankcollapse.experiments.experiment import Drawing, Experiment, Part, Row, Settings
from rankcollapse.experiments.initial import Size, embedded, random_blocks
from rankcollapse.experiments.mlp_strength import charts as mlp_charts
from rankcollapse.experiments.mlp_strength import sensitivity
from rankcollapse.experiments.paired import verdict
from rankcollapse.experiments.trajectory import log10_residuals
from rankcollapse.report.style import Theme
from rankcollapse.streams import Centered
from rankcollapse.transformer import Block, Linear

SEEDS, QUICK_SEEDS = 5, 2
SIZE, TOKENS = Size(layers=6, heads=4, width=64, mlp=256), 32
VARIANTS = ("san+mlp-norm", "san+mlp", "transformer")
WAYS = ("s·f(x)", "f(s·x)")
ACTIVATIONS = ("gelu", "tanh")
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
QUICK_FACTORS = (1.0, 4.0, 16.0)
Progress = Callable[[float, float], None]


def stronger(block: Block, factor: float, way: str) -> Block:
    """The block with its MLP's Lipschitz constant times `factor`."""
    assert block.mlp is not None
    place = "down" if way == WAYS[0] else "up"
    linear: Linear = getattr(block.mlp, place)
    return replace(block, mlp=replace(block.mlp, **{place: Linear(factor * linear.weight)}))


def measure(
    seed: int, activation: str, factors: list[float], steps: int, progress: Progress
) -> xr.Dataset:
    """All variants, ways and factors on one network; `steps` directions, and power iterations."""
    x = embedded(1, TOKENS, SIZE.width, torch.Generator().manual_seed(2 * seed))
    generator = torch.Generator().manual_seed(2 * seed + 1)
    blocks = random_blocks(SIZE, generator, std=None, activation=activation)
    shape = len(VARIANTS), len(WAYS), len(factors)
    residual = np.empty((*shape, SIZE.layers + 1))
    typical, largest = np.empty(shape), np.empty(shape)
    for done, place in enumerate(np.ndindex(shape)):
        variant, way, factor = VARIANTS[place[0]], WAYS[place[1]], factors[place[2]]
        scaled = [stronger(block, factor, way) for block in blocks]
        residual[place] = log10_residuals(x, scaled, variant, Centered())[0]
        derivative = sensitivity.Derivative(sensitivity.network(scaled, variant), x)
        directions = torch.Generator().manual_seed(seed)
        typical[place] = sensitivity.typical(derivative, steps, directions)
        largest[place] = sensitivity.largest(derivative, steps, directions)
        progress(done + 1, math.prod(shape))
    dims = ("variant", "way", "factor")
    return xr.Dataset(
        {
            "log10_relative_residual": ((*dims, "layer"), residual),
            "sensitivity": (dims, typical),
            "largest_sensitivity": (dims, largest),
        },
        coords={
            "variant": list(VARIANTS),
            "way": list(WAYS),
            "factor": factors,
            "layer": np.arange(SIZE.layers + 1),
        },
    )


def _parts(settings: Settings) -> list[Part]:
    quick = settings.quick
    work = {"factors": list(QUICK_FACTORS if quick else FACTORS), "steps": 4 if quick else 30}
    return [
        Part(
            f"{activation}-seed{seed}",
            measure,
            {"seed": seed, "activation": activation, **work},
            1 if quick else 16,
        )
        for seed in range(settings.seeds or (QUICK_SEEDS if quick else SEEDS))
        for activation in ACTIVATIONS
    ]


def _combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    by_activation = [
        xr.concat([part for name, part in results.items() if name.startswith(f"{a}-")], "seed")
        for a in ACTIVATIONS
    ]
    together = xr.concat(by_activation, "activation", join="exact")
    together = together.assign_coords(
        activation=list(ACTIVATIONS), seed=np.arange(together.sizes["seed"])
    )
    log10 = together["log10_relative_residual"]
    together["log10_relative_residual"] = log10.where(np.isfinite(log10))
    for name, (long_name, definition) in _MEANINGS.items():
        together[name].attrs = {"long_name": long_name, "units": "1", "definition": definition}
    return together


_MEANINGS = {
    "log10_relative_residual": (
        "log₁₀ of the relative residual",
        "log₁₀(‖res(X)‖₁,∞ / ‖X‖₁,∞) after each layer; absent where attention has saturated beyond "
        "what a float64 holds and all tokens attend to one",
    ),
    "sensitivity": (
        "sensitivity to a random perturbation",
        "root mean square over random directions dX of (‖df‖_F / ‖f‖_F) / (‖dX‖_F / ‖X‖_F), f the "
        "state after the last layer as a function of the state X that enters the first",
    ),
    "largest_sensitivity": (
        "sensitivity to the worst perturbation",
        "σ_max(df/dX) ‖X‖_F / ‖f‖_F by power iteration",
    ),
}
TITLES = {
    "san+mlp-norm": "Attention and MLP, no norms",
    "san+mlp": "Attention and MLP, with norms",
    "transformer": "With skips and norms",
}


def _compare(dataset: xr.Dataset) -> list[Row]:
    rows = []
    last = int(dataset["layer"][-1])
    weak, strong = 1.0, float(dataset["factor"][-1])
    residual = dataset["log10_relative_residual"].sel(layer=last)
    measured = {
        f"decades that residual {last} rises": residual,
        "decades that sensitivity rises": np.log10(dataset["sensitivity"]),
    }
    for variant in VARIANTS:
        for activation in ACTIVATIONS:
            for way in WAYS:
                for what, values in measured.items():
                    chosen = values.sel(variant=variant, activation=activation, way=way)
                    rise = (chosen.sel(factor=strong) - chosen.sel(factor=weak)).values
                    rise = rise[np.isfinite(rise)]
                    rows.append(
                        Row(
                            f"{TITLES[variant]}, {activation}, {way}: {what} from s = {weak:g} to "
                            f"{strong:g}",
                            None,
                            "§3.2: slower collapse, less robust",
                            tuple(map(float, rise)),
                            remark=verdict(rise, 1, "§3.2"),
                        )
                    )
    return rows


def _charts(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
    return {
        "mlp": mlp_charts.by_factor(dataset, TITLES, theme),
        "mlp_trade": mlp_charts.residual_by_sensitivity(dataset, TITLES, theme),
    }


EXPERIMENT = Experiment(
    name="mlp",
    title="MLP strength: collapse against robustness",
    about=f"The MLP's Lipschitz constant times s, as s·f(x) and as f(s·x), in a random network of "
    f"{SIZE.layers} layers, width {SIZE.width}, {SIZE.heads} heads, {TOKENS} tokens and weights "
    "that keep sizes at s = 1; relative residual after the last layer and how strongly that layer "
    "answers to relative changes of the input.",
    parts=_parts,
    combine=_combine,
    compare=_compare,
    charts=_charts,
)
