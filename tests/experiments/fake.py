"""Experiments of parts that add numbers, note that they ran, and fail where they are told to.

As a program, it reproduces "slow" into a folder, for tests that kill it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import altair as alt
import torch
import xarray as xr

from rankcollapse.errors import InputError
from rankcollapse.experiments.experiment import Drawing, Experiment, Part, Row, Settings
from rankcollapse.experiments.running import choices, runner
from rankcollapse.report.style import Theme

Progress = Callable[[float, float], None]


def work(
    number: int, log: str, seconds: float, fault: str | None, progress: Progress
) -> xr.Dataset:
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{number} {os.getpid()}\n")
    steps = 10
    for step in range(steps):
        time.sleep(seconds / steps)
        progress(step + 1, steps)
    # A fault is mended by a file of its name beside the log.
    if fault and not Path(log).with_name(fault).exists():
        if fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "misused":
            raise InputError("the text is empty; give another one.")
        raise ValueError("the numbers are wrong")
    generator = torch.Generator().manual_seed(number)
    value = 1 + 0.1 * float(torch.randn((), generator=generator, dtype=torch.float64))
    return xr.Dataset({"value": value, "threads": torch.get_num_threads()})


def ran(log: Path) -> list[int]:
    """The numbers of the parts that ran, in the order in which they began."""
    return [int(line.split()[0]) for line in lines(log)]


def processes(log: Path) -> set[int]:
    return {int(line.split()[1]) for line in lines(log)}


def lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def experiment(
    name: str,
    log: Path,
    count: int = 4,
    *,
    estimate: float = 10.0,
    seconds: float = 0.0,
    faults: Mapping[int, str] | None = None,
    charts: Sequence[str] = ("fake", "other"),
) -> Experiment:
    def parts(settings: Settings) -> list[Part]:
        return [
            Part(
                f"seed{number}",
                work,
                {
                    "number": number,
                    "log": str(log),
                    "seconds": seconds,
                    "fault": (faults or {}).get(number),
                },
                estimate,
            )
            for number in range(settings.seeds or count)
        ]

    def combine(settings: Settings, results: Mapping[str, xr.Dataset]) -> xr.Dataset:
        names = sorted(results, key=lambda part: int(part.removeprefix("seed")))
        return xr.concat([results[part] for part in names], dim="seed")

    def compare(dataset: xr.Dataset) -> list[Row]:
        return [Row("value", 1.0, "Figure 9", tuple(dataset["value"].values.tolist()))]

    def draw(dataset: xr.Dataset, theme: Theme) -> dict[str, Drawing]:
        points = [{"x": n, "y": float(y)} for n, y in enumerate(dataset["value"].values)]
        marks = alt.Chart(alt.InlineData(values=points)).mark_point()
        # Altair refuses to write a field whose type it cannot know.
        types = {chart: "" if chart == "refused" else ":Q" for chart in charts}
        return {
            chart: alt.LayerChart(layer=[marks.encode(x=f"x{kind}", y=f"y{kind}")])
            for chart, kind in types.items()
        }

    return Experiment(name, f"The {name} figure", "Adds numbers.", parts, combine, compare, draw)


def install(*experiments: Experiment) -> None:
    known = {each.name: each for each in experiments}
    runner.EXPERIMENTS = choices.EXPERIMENTS = known


if __name__ == "__main__":
    # A shell starts what it runs in the background with Ctrl-C ignored, tests included.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out, log, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    install(experiment("slow", log, 6, seconds=seconds))
    print({name: each.kept for name, each in runner.reproduce("slow", out, jobs=2).items()})
