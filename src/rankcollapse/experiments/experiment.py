"""What an experiment is: parts that run by themselves, and what is made of their results.

A part is a module-level function with plain arguments, so that it can run in a process of its own,
be kept when it is done, and be found again by a later run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import xarray as xr

from rankcollapse.report.style import Theme

Drawing = alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart


@dataclass(frozen=True)
class Settings:
    """What a user may choose.

    Attributes:
        quick: Fewer seeds, samples and steps: shows that everything runs, and roughly how.
        seeds: Number of seeds; None for the experiment's own.
        as_published: Follow the paper's code where it departs from the paper's text.
        pretrained: Hub ids or folders by family, for Figure 2.
        models: Further models, for Figure 5.
        text: A text file, for Figure 4's memorization.
    """

    quick: bool = False
    seeds: int | None = None
    as_published: bool = False
    pretrained: Mapping[str, str] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    text: str | None = None


@dataclass(frozen=True)
class Part:
    """A piece of work whose result is kept.

    Attributes:
        name: Unique within its experiment and fit for a file name, such as "sorting-seed0".
        function: A module-level function: `function(**arguments, progress=...)` returns a Dataset;
            `progress` is a callable of (done, total).
        arguments: Plain values. The result is found again by name and arguments.
        seconds: What it takes on one core, roughly, for the estimate of the time that is left.
    """

    name: str
    function: Callable[..., xr.Dataset]
    arguments: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True)
class Row:
    """One line of the comparison with the paper.

    Attributes:
        quantity: What is compared, in words.
        published: The paper's value, None where it has none.
        source: Where that value comes from, such as "Figure 2, vector graphic" or "§5, text".
        ours: One value per seed.
        resolution: How far the published value may be off by its own rounding or reading.
        remark: What a reader has to know, such as why the two differ; several remarks on a line
            each.
        exact: No seed is involved: `ours` is one number, right up to rounding.
    """

    quantity: str
    published: float | None
    source: str
    ours: tuple[float, ...]
    resolution: float = 0.0
    remark: str = ""
    exact: bool = False


@dataclass(frozen=True)
class Experiment:
    """A figure or claim, and how it is made again.

    Attributes:
        name: As on the command line.
        title: One line.
        about: A few sentences: what is run, and where it departs from the paper.
        parts: The work, under given settings.
        combine: One Dataset from the parts' results, by part name.
        compare: The comparison table of a combined Dataset.
        charts: The figures of a combined Dataset, by file name without ending.
    """

    name: str
    title: str
    about: str
    parts: Callable[[Settings], list[Part]]
    combine: Callable[[Settings, Mapping[str, xr.Dataset]], xr.Dataset]
    compare: Callable[[xr.Dataset], list[Row]]
    charts: Callable[[xr.Dataset, Theme], dict[str, Drawing]]
