"""Figure 4: what sub-networks of one path length know of sorting, convex hulls and sentences.

A network with skip connections and no MLPs is trained on each task until it is as accurate as the
paper's, and then read through random paths of every length.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor

from rankcollapse.experiments.experiment import Drawing, Experiment, Part, Settings
from rankcollapse.experiments.figure_4 import baselines
from rankcollapse.experiments.figure_4.chart import chart
from rankcollapse.experiments.figure_4.convex_hull import convex_hull
from rankcollapse.experiments.figure_4.memorization import check_installed, memorization
from rankcollapse.experiments.figure_4.path_accuracy import (
    subnetwork_accuracy,
    term_accuracies,
    whole_accuracy,
)
from rankcollapse.experiments.figure_4.rows import rows
from rankcollapse.experiments.figure_4.sorting import sorting
from rankcollapse.experiments.figure_4.task import Task
from rankcollapse.experiments.learning.networks import network
from rankcollapse.experiments.learning.training import Recipe, train
from rankcollapse.report.style import Theme

COUNTS, REPEATS = (5, 20), 5
DROPOUT = 0.1  # the text is silent; the published code has BERT's
Progress = Callable[[float, float], None]


@dataclass(frozen=True)
class Plan:
    """How one task is run.

    Attributes:
        layers: Blocks, as in the paper.
        heads: Heads per block.
        width: Features per token.
        target: The accuracy at which training stops, the paper's own.
        recipe: How it is trained.
        tested: Sequences that the paths are read on.
        seeds: Networks, each with data of its own.
        seconds: Of one seed, on one core.
    """

    layers: int
    heads: int
    width: int
    target: float
    recipe: Recipe
    tested: int
    seeds: int
    seconds: float


PLANS = {
    "memorization": Plan(
        6, 2, 250, 0.85, Recipe(1500, 8, 1e-3, dropout=DROPOUT, every=50), 32, 3, 260
    ),
    "sorting": Plan(6, 2, 48, 0.98, Recipe(2500, 50, 1e-3, dropout=DROPOUT, every=50), 200, 5, 25),
    "convex hull": Plan(
        6, 3, 84, 0.90, Recipe(2500, 100, 1e-3, dropout=DROPOUT, every=50), 200, 5, 40
    ),
}
QUICK = {
    "memorization": {"sentences": 20, "lexicon": 3000, "steps": 40, "tested": 4},
    "sorting": {"steps": 250, "tested": 50},
    "convex hull": {"train": 600, "test": 100, "steps": 100, "tested": 50},
}
_MEANINGS = {
    "subnetwork_accuracy": (
        "accuracy of sums of sub-network paths",
        "share of tokens labelled right by the read-out of the normalised sum of `count` random "
        "paths of this length, each with attention of its own",
    ),
    "term_accuracy": (
        "accuracy of the decomposition's term",
        "share of tokens labelled right by the read-out of the normalised sum of all paths of this "
        "length from the input, with attention of the whole network",
    ),
    "whole_accuracy": ("accuracy of the whole network", "share of tokens labelled right"),
    "guess": ("uniform guess", "1 / number of labels"),
    "position_majority": (
        "majority by position",
        "accuracy of the label most frequent in training at a token's position",
    ),
    "token_majority": (
        "majority by token",
        "accuracy of the label most frequent in training for a token, at its position where tokens "
        "know theirs; NaN for points of the plane",
    ),
    "attainable": (
        "highest accuracy that can be reached",
        "1, or less where equal tokens of a sequence cannot be told apart",
    ),
    "steps": ("training steps", "steps taken until the target accuracy, or until the last"),
}


def run(
    task: str, seed: int, as_published: bool, quick: bool, text: str | None, progress: Progress
) -> xr.Dataset:
    """Trains one network and reads its paths."""
    torch.set_num_threads(1)
    plan = PLANS[task]
    small = QUICK[task] if quick else {}
    generator = torch.Generator().manual_seed(seed)
    data = _task(task, generator, as_published, text, small)
    recipe = plan.recipe
    if quick:
        recipe = replace(recipe, steps=small["steps"], every=small["steps"])
    net = network(
        generator,
        layers=plan.layers,
        heads=plan.heads,
        width=plan.width,
        outputs=data.classes,
        vocabulary=data.vocabulary,
        positions=data.train.labels.shape[1] if data.positions else None,
    )

    def reached() -> bool:
        first = whole_accuracy(net, data.test.first(50)) >= plan.target - 0.03
        return first and whole_accuracy(net, data.test) >= plan.target

    def share(done: float, steps: float) -> None:
        progress(0.7 * done / steps, 1)

    steps = train(
        net, data.train.inputs, data.train.labels, _loss, recipe, generator, reached, share
    )
    lengths = np.arange(plan.layers + 1)
    repeats = 2 if quick else REPEATS
    found = np.empty((len(COUNTS), repeats, len(lengths)))
    tested = data.test.first(small.get("tested", plan.tested))
    for row, count in enumerate(COUNTS):
        for length in lengths.tolist():
            # The draws of different counts and lengths have seeds of their own.
            draws = (row * len(lengths) + length) * repeats
            found[row, :, length] = subnetwork_accuracy(net, tested, length, count, repeats, draws)
            progress(0.7 + 0.3 * (row + (length + 1) / len(lengths)) / len(COUNTS), 1)
    return xr.Dataset(
        {
            "subnetwork_accuracy": (("count", "repeat", "length"), found),
            "term_accuracy": ("length", term_accuracies(net, tested)),
            "whole_accuracy": whole_accuracy(net, data.test),
            "guess": baselines.guess(data),
            "position_majority": baselines.position_majority(data),
            "token_majority": baselines.token_majority(data),
            "attainable": baselines.attainable(data),
            "steps": float(steps),
        },
        coords={"count": list(COUNTS), "repeat": np.arange(repeats), "length": lengths},
    ).expand_dims(task=[task], seed=[seed])


def _task(
    name: str,
    generator: torch.Generator,
    as_published: bool,
    text: str | None,
    small: Mapping[str, int],
) -> Task:
    sizes = {key: value for key, value in small.items() if key not in ("steps", "tested")}
    if name == "memorization":
        return memorization(generator, text, **sizes)
    make = sorting if name == "sorting" else convex_hull
    return make(generator, as_published, **sizes)


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def _parts(settings: Settings) -> list[Part]:
    check_installed()
    parts = []
    for task, plan in PLANS.items():
        seeds = settings.seeds or (1 if settings.quick else plan.seeds)
        arguments = {
            "task": task,
            "as_published": settings.as_published and task != "memorization",
            "quick": settings.quick,
            "text": settings.text if task == "memorization" else None,
        }
        seconds = 6 if settings.quick else plan.seconds
        parts += [
            Part(f"{task.replace(' ', '-')}-seed{s}", run, {**arguments, "seed": s}, seconds)
            for s in range(seeds)
        ]
    return parts


def _combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
    whole = xr.merge(
        results.values(), join="outer", compat="no_conflicts", combine_attrs="drop"
    ).reindex(task=list(PLANS))
    for name, (long_name, definition) in _MEANINGS.items():
        units = "step" if name == "steps" else "1"
        whole[name].attrs = {"long_name": long_name, "units": units, "definition": definition}
    whole.attrs["as_published"] = int(settings.as_published)
    whole.attrs["text"] = settings.text or "made from the bundled biographies' words"
    return whole


def _charts(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
    return {"fig4": chart(dataset, theme)}


EXPERIMENT = Experiment(
    name="fig4",
    title="Figure 4: accuracy by path length",
    about="Networks of attention with skip connections and no MLPs (memorization: 6 layers, 2 "
    "heads, width 250; sorting: 6, 2, 48; convex hull: 6, 3, 84) are trained until they are as "
    "accurate as the paper's, then read through sums of 5 and 20 random paths of one length. "
    "Where the text is silent, the published code is followed: norms behind attention, dropout "
    "0.1, positions for sorting only. The learning rate is 1e-3; with the code's 1e-5 sorting "
    "stays at 0.37. Sentences for memorization are not Wikipedia's and news': words by Zipf's law "
    "from a lexicon that begins with the bundled biographies', or a text file, with a "
    "SentencePiece vocabulary trained on them.",
    parts=_parts,
    combine=_combine,
    compare=rows,
    charts=_charts,
)
