"""Figure 3: one layer, applied again and again to its own output, on two arcs of a circle.

Trained with teacher forcing to move two opposite points one step along their arcs, and then left to
itself: do the two points stay apart?
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr

from rankcollapse.experiments.experiment import Drawing, Experiment, Part, Settings
from rankcollapse.experiments.figure_3.charts import distances, trajectories
from rankcollapse.experiments.figure_3.circle import (
    arcs,
    error_growth,
    next_step,
    next_step_carried,
    roll_out,
)
from rankcollapse.experiments.figure_3.rows import rows
from rankcollapse.experiments.learning.networks import Init, network
from rankcollapse.experiments.learning.training import Recipe, train
from rankcollapse.report.style import Theme

WIDTHS, HEADS, STEPS = (32, 64, 128), 2, 1000
SEEDS, QUICK_SEEDS = 4, 1
POINTS, PUBLISHED_POINTS, PUBLISHED_BATCH = 1000, 500, 30
TRAINING, QUICK_TRAINING = 6000, 300
INITS: tuple[Init, ...] = ("published", "pytorch")
ATTENTION, MLP, SKIP = "attention", "attention + MLP", "attention + skip"
VARIANTS = {ATTENTION: "san", MLP: "san+mlp", SKIP: "san+skip"}
# The published layer has a skip around attention whatever its options, and one around its MLP; its
# "skip" is a sum of all steps so far, outside the layer.
PUBLISHED = {ATTENTION: "san+skip", MLP: "transformer", SKIP: "san+skip"}
Progress = Callable[[float, float], None]

_MEANINGS = {
    "position": (
        "position of a point",
        "units of the plane",
        "coordinates of both points, each step computed from the one before",
    ),
    "distance": (
        "distance between the two points",
        "1",
        "‖p₁ − p₂‖ at a step over the same at the start",
    ),
    "loss": (
        "mean squared error of one step",
        "squared units of the plane",
        "mean over points and coordinates of (predicted − true)², with teacher forcing",
    ),
    "growth": (
        "growth of a small error per step",
        "1",
        "(σ_max(J_T ··· J_1))^(1/T), J_t the Jacobian of one step at step t of the true arcs; NaN "
        "where a step does not lead from positions to positions",
    ),
}


def run(
    init: Init,
    variant: str,
    width: int,
    seed: int,
    as_published: bool,
    training: int,
    progress: Progress,
) -> xr.Dataset:
    """Trains one network and leaves it to itself."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    net = network(
        generator,
        layers=1,
        heads=HEADS,
        width=width,
        outputs=2,
        mlp=width if variant == MLP else None,
        variant=(PUBLISHED if as_published else VARIANTS)[variant],
        init=init,
    )
    carried = as_published and variant == SKIP
    course = arcs(PUBLISHED_POINTS if as_published else POINTS)
    lesson = next_step_carried(course, PUBLISHED_BATCH) if carried else next_step(course)
    recipe = Recipe(training, batch=100, rate=3e-3, clip=None)
    train(net, lesson.inputs, lesson.targets, F.mse_loss, recipe, generator, progress=progress)
    with torch.no_grad():
        loss = F.mse_loss(net(lesson.inputs), lesson.targets)
    path = roll_out(net, course[0], STEPS, carried)
    apart = (path[:, 0] - path[:, 1]).double().norm(dim=1)
    return xr.Dataset(
        {
            "position": (("step", "point", "coordinate"), path.double().numpy()),
            "distance": ("step", (apart / apart[0]).numpy()),
            "loss": float(loss),
            "growth": float("nan") if carried else error_growth(net, course[:-1]),
        },
        coords={"step": np.arange(STEPS + 1), "point": [1, 2], "coordinate": ["x", "y"]},
    ).expand_dims(init=[init], variant=[variant], width=[width], seed=[seed])


def _parts(settings: Settings) -> list[Part]:
    training = QUICK_TRAINING if settings.quick else TRAINING
    return [
        Part(
            f"{init}-{variant.replace(' + ', '-')}-{width}-seed{seed}",
            run,
            {
                "init": init,
                "variant": variant,
                "width": width,
                "seed": seed,
                "as_published": settings.as_published,
                "training": training,
            },
            (0.3 + training / 1000) * (1.2 if width == 32 else 1.5 if width == 64 else 2.5),
        )
        for init in INITS[: 1 if settings.quick or settings.as_published else None]
        for seed in range(settings.seeds or (QUICK_SEEDS if settings.quick else SEEDS))
        for width in WIDTHS
        for variant in VARIANTS
    ]


def _combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    whole = xr.merge(
        results.values(), join="outer", compat="no_conflicts", combine_attrs="drop"
    ).reindex(variant=list(VARIANTS))
    whole = whole.sel(init=[init for init in INITS if init in whole["init"].values])
    for name, (long_name, units, definition) in _MEANINGS.items():
        whole[name].attrs = {"long_name": long_name, "units": units, "definition": definition}
    whole.attrs["as_published"] = int(settings.as_published)
    return whole


def _charts(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
    return {"fig3": trajectories(dataset, theme), "fig3_distance": distances(dataset, theme)}


EXPERIMENT = Experiment(
    name="fig3",
    title="Figure 3: the circle",
    about="One layer is trained with teacher forcing to move two opposite points one step along "
    "arcs of radius 0.3 with 1000 points each, and then fed with its own output. A point enters "
    "through a linear map and a norm and leaves through a linear map; the layer is N(A(x)), "
    "N₂(M(N₁(A(x)))) or N(x + A(x)). Where the text is silent the published code is followed: 2 "
    "heads and its initial tensors, with PyTorch's own initialisation beside them, since it "
    "decides whether a small error grows. As published, the layer has a skip around attention in "
    "all three and one around its MLP, arcs have 500 points, and the skip that is added is a sum "
    "of all steps so far, outside the layer. The training is ours in any case: with the code's "
    "learning rate of 1e-5 and its 1200 steps the loss is not near zero.",
    parts=_parts,
    combine=_combine,
    compare=rows,
    charts=_charts,
)
