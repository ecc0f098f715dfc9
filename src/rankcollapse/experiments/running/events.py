"""What is to be run, and what can be heard of it while it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rankcollapse.errors import RankCollapseError
from rankcollapse.experiments.experiment import Part


@dataclass(frozen=True)
class Task:
    """A part to run, and the file that its result goes to."""

    experiment: str
    part: Part
    path: Path

    @property
    def label(self) -> str:
        """The part's name with its experiment's before it."""
        return f"{self.experiment} {self.part.name}"


@dataclass(frozen=True)
class Failure:
    """Why there is no result.

    Attributes:
        kind: The exception's type.
        message: Its text.
        trace: The traceback; empty where there is none.
        mendable: The exception itself, where it is one that the caller can mend.
    """

    kind: str
    message: str
    trace: str
    mendable: RankCollapseError | None = None


@dataclass(frozen=True)
class Started:
    """A part has begun."""

    task: Task


@dataclass(frozen=True)
class Advanced:
    """A part is this far, as a share of 1."""

    task: Task
    share: float


@dataclass(frozen=True)
class Finished:
    """A part's result is kept, so many seconds after it began."""

    task: Task
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A part has no result."""

    task: Task
    failure: Failure


@dataclass(frozen=True)
class Tick:
    """Time goes by."""


Event = Started | Advanced | Finished | Failed | Tick
Report = Callable[[Event], None]
