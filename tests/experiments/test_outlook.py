"""How long a run will still take, by a clock that the test turns."""

from pathlib import Path

import pytest

from rankcollapse.experiments.experiment import Part
from rankcollapse.experiments.running.events import (
    Advanced,
    Failed,
    Failure,
    Finished,
    Started,
    Task,
    Tick,
)
from rankcollapse.experiments.running.outlook import Outlook

from .fake import work


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def task(experiment: str, name: str, seconds: float) -> Task:
    return Task(experiment, Part(name, work, {}, seconds), Path(name))


def test_estimates_are_shared_out_and_corrected() -> None:
    clock = Clock()
    a, b, c, d = (task("one", name, 10.0) for name in "abcd")
    other = task("two", "e", 20.0)
    outlook = Outlook([a, b, c, d, other], kept=3, jobs=2, clock=clock)
    assert outlook.standing().seconds_left == pytest.approx(60 / 2)
    assert (outlook.standing().done, outlook.standing().parts) == (3, 8)
    assert outlook.standing().share == 0
    outlook.note(Started(a))
    outlook.note(Started(b))
    clock.now += 5
    outlook.note(Tick())
    standing = outlook.standing()
    assert standing.running == {"one a": 0.5, "one b": 0.5}
    assert standing.seconds_left == pytest.approx(50 / 2)
    assert standing.share == pytest.approx(5 / 30)
    clock.now += 25
    # Beyond its estimate a part is nearly done, never more.
    assert outlook.standing().running["one a"] == pytest.approx(0.95)
    outlook.note(Finished(a, 30.0))
    # All estimates, also the other experiment's, are three times too small here.
    clock.now += 30
    outlook.note(Finished(b, 30.0))
    assert outlook.standing().seconds_left == pytest.approx((30 + 30 + 60) / 2)
    outlook.note(Started(other))
    outlook.note(Finished(other, 20.0))
    # Each experiment is judged by its own parts where there are any.
    assert outlook.standing().seconds_left == pytest.approx(30)
    assert outlook.standing().done == 6


def test_what_a_part_says_of_itself_counts_more() -> None:
    clock = Clock()
    a = task("one", "a", 10.0)
    outlook = Outlook([a], kept=0, jobs=4, clock=clock)
    outlook.note(Started(a))
    clock.now += 30
    outlook.note(Advanced(a, 0.25))
    assert outlook.standing().running == {"one a": 0.25}
    assert outlook.standing().seconds_left == pytest.approx(90)
    outlook.note(Failed(a, Failure("ValueError", "", "")))
    assert (outlook.standing().seconds_left, outlook.standing().share) == (0, 1)
    assert outlook.standing().done == 1


def test_one_part_is_not_shared_out() -> None:
    long, short = task("one", "long", 100.0), task("one", "short", 2.0)
    outlook = Outlook([long, short], kept=0, jobs=2, clock=Clock())
    assert outlook.standing().seconds_left == 100
