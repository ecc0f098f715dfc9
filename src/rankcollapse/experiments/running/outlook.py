"""How far a run is, and how long it will still take.

What a part takes is estimated by its author; what finished parts really took, of the same
experiment where there are any, says how right such estimates are on this machine. A part that
reports how far it is needs no other estimate once it is well under way.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rankcollapse.experiments.running.events import Advanced, Event, Failed, Finished, Started, Task

# A part that takes longer than estimated is shown as not quite done.
_NEARLY = 0.95
_UNDER_WAY = 0.1


@dataclass(frozen=True)
class Standing:
    """Where a run stands.

    Attributes:
        done: Number of parts that are over.
        parts: Number of all parts.
        share: The work that is done, as a share of 1.
        seconds_left: What the rest will take.
        running: The labels of the parts that run now, each with its share of 1.
    """

    done: int
    parts: int
    share: float
    seconds_left: float
    running: dict[str, float]


@dataclass
class _Running:
    task: Task
    start: float
    share: float | None = None


class Outlook:
    """Follows the events of a run."""

    def __init__(
        self,
        tasks: Sequence[Task],
        kept: int,
        jobs: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begins with `tasks` to run, `jobs` at a time, and `kept` parts of earlier runs."""
        self._waiting = {task.label: task for task in tasks}
        self._running: dict[str, _Running] = {}
        self._parts = kept + len(tasks)
        self._jobs, self._clock, self._start = jobs, clock, clock()
        self._taken: dict[str, float] = defaultdict(float)
        self._estimated: dict[str, float] = defaultdict(float)

    def note(self, event: Event) -> None:
        """Takes an event in."""
        match event:
            case Started(task):
                del self._waiting[task.label]
                self._running[task.label] = _Running(task, self._clock())
            case Advanced(task, share):
                self._running[task.label].share = share
            case Finished(task, seconds):
                del self._running[task.label]
                self._taken[task.experiment] += seconds
                self._estimated[task.experiment] += task.part.seconds
            case Failed(task):
                del self._running[task.label]

    def standing(self) -> Standing:
        """Returns where the run stands now."""
        now = self._clock()
        running = {label: self._share(part, now) for label, part in self._running.items()}
        rest = [self._rest(part, now) for part in self._running.values()]
        rest += [self._seconds(task) for task in self._waiting.values()]
        # However many processes there are, one part is done by one of them.
        left = max(sum(rest) / max(1, min(self._jobs, len(rest))), max(rest, default=0.0))
        passed = now - self._start
        share = passed / (passed + left) if left > 0 else 1.0
        return Standing(self._parts - len(rest), self._parts, share, left, running)

    def _seconds(self, task: Task) -> float:
        """Returns what all of a part takes."""
        for names in ([task.experiment], list(self._estimated)):
            estimated = sum(self._estimated[name] for name in names)
            if estimated > 0:
                taken = sum(self._taken[name] for name in names)
                return task.part.seconds * taken / estimated
        return task.part.seconds

    def _rest(self, part: _Running, now: float) -> float:
        """Returns what is left of a part."""
        if part.share is not None and part.share > _UNDER_WAY:
            return (now - part.start) * (1 - part.share) / part.share
        return (1 - self._share(part, now)) * self._seconds(part.task)

    def _share(self, part: _Running, now: float) -> float:
        if part.share is not None:
            return part.share
        expected = self._seconds(part.task)
        return min((now - part.start) / expected, _NEARLY) if expected > 0 else _NEARLY
