"""From an experiment's parts to its outputs: what is there, what is to run, what came of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import xarray as xr

from rankcollapse.experiments.experiment import Experiment, Row, Settings
from rankcollapse.experiments.output import write
from rankcollapse.experiments.running.events import Event, Failed, Failure, Finished, Task
from rankcollapse.experiments.running.kept import FOLDER, Kept, find, place
from rankcollapse.experiments.running.outlook import Outlook, Standing
from rankcollapse.experiments.running.run_part import failure
from rankcollapse.experiments.running.workers import run_tasks
from rankcollapse.report.style import LIGHT

Progress = Callable[[Standing], None]

# Starting a process takes about as long, so that less work than this is done in this one.
_SMALL = 5.0


@dataclass(frozen=True)
class Reproduction:
    """An experiment that was run again.

    Attributes:
        experiment: Which one.
        dataset: Its data.
        rows: The comparison with the paper.
        seconds: What its parts took on one core, those of earlier runs included.
        parts: Their number.
        kept: How many of them were there from an earlier run.
        files: What was written.
    """

    experiment: Experiment
    dataset: xr.Dataset
    rows: list[Row]
    seconds: float
    parts: int
    kept: int
    files: list[Path]


class ReproductionError(Exception):
    """Parts failed. `finished` has the experiments that did not, by name."""

    def __init__(self, message: str, finished: dict[str, Reproduction]) -> None:
        super().__init__(message)
        self.finished = finished


class Run:
    """The experiments of one call, from their parts to their outputs."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        experiments: Sequence[Experiment],
        jobs: int,
        progress: Progress | None,
    ) -> None:
        """Looks what is there already; `jobs` processes will do the rest."""
        self.folder, self.settings, self.jobs, self.progress = folder, settings, jobs, progress
        self.experiments = {experiment.name: experiment for experiment in experiments}
        self.tasks = {
            name: [
                Task(name, part, place(folder, name, part)) for part in experiment.parts(settings)
            ]
            for name, experiment in self.experiments.items()
        }
        every = [task for tasks in self.tasks.values() for task in tasks]
        self.unfinished = {task.label: task for task in every if find(task.path) is None}
        self.kept = {
            name: sum(task.label not in self.unfinished for task in tasks)
            for name, tasks in self.tasks.items()
        }
        self.pending = sorted(self.unfinished.values(), key=lambda task: -task.part.seconds)
        if sum(task.part.seconds for task in self.pending) < _SMALL:
            self.jobs = 1
        self.outlook = Outlook(self.pending, len(every) - len(self.pending), self.jobs)
        self.failures: dict[str, Failure] = {}
        self.finished: dict[str, Reproduction] = {}

    def go(self, debug: bool) -> None:
        """Runs what is not there yet; an experiment is written as soon as its last part is."""
        for name in self.experiments:
            self._finish(name)
        run_tasks(self.pending, self.jobs, self._note, debug)

    def result(self) -> dict[str, Reproduction]:
        """Returns the experiments, or raises what the first failure says."""
        finished = {name: self.finished[name] for name in self.experiments if name in self.finished}
        if not self.failures:
            return finished
        (label, first), *others = self.failures.items()
        if first.mendable is not None:
            raise first.mendable
        also = f", and so did {', '.join(label for label, _ in others)}" if others else ""
        error = ReproductionError(
            f"{label} failed ({first.kind}: {first.message}){also}; what is finished is kept in "
            f"{self.folder / FOLDER}",
            finished,
        )
        raise error from _Trace(first.trace) if first.trace else None

    def _note(self, event: Event) -> None:
        self.outlook.note(event)
        if self.progress is not None:
            self.progress(self.outlook.standing())
        match event:
            case Finished(task):
                del self.unfinished[task.label]
                self._finish(task.experiment)
            case Failed(task, failed):
                self.failures[task.label] = failed

    def _finish(self, name: str) -> None:
        """Writes an experiment's outputs, if all of its parts are there."""
        tasks = self.tasks[name]
        if any(task.label in self.unfinished for task in tasks):
            return
        try:
            self.finished[name] = self._write(self.experiments[name], tasks)
        except Exception as error:
            self.failures[f"{name} (its outputs)"] = failure(error)

    def _write(self, experiment: Experiment, tasks: Sequence[Task]) -> Reproduction:
        parts = {task.part.name: _read(task) for task in tasks}
        results = {name: kept.result for name, kept in parts.items()}
        dataset = experiment.combine(self.settings, results)
        dataset = dataset.assign_attrs(settings=json.dumps(asdict(self.settings)))
        if self.settings.quick:
            about = f"{experiment.about} A quick run: fewer seeds, samples and steps than in full."
            experiment = replace(experiment, about=about)
        rows = experiment.compare(dataset)
        files = write(self.folder, experiment, dataset, rows, experiment.charts(dataset, LIGHT))
        seconds = sum(kept.seconds for kept in parts.values())
        kept = self.kept[experiment.name]
        return Reproduction(experiment, dataset, rows, seconds, len(parts), kept, files)


class _Trace(Exception):
    """The traceback of another process, shown as the cause."""

    def __str__(self) -> str:
        return "\n" + self.args[0]


def _read(task: Task) -> Kept:
    kept = find(task.path)
    if kept is None:
        raise RuntimeError(f"the result of {task.label} cannot be read back from {task.path}")
    return kept
