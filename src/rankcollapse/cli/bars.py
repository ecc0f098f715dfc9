"""The bars of a run of many parts: one for all of it, one for each part that runs now."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

if TYPE_CHECKING:
    from rankcollapse.experiments.running.outlook import Standing


@contextmanager
def bars() -> Iterator[Callable[["Standing"], None]]:
    """Shows bars on standard error where that is a terminal; they vanish at the end.

    Yields:
        A function of where the run stands, to be called as it advances.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda standing: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        whole = progress.add_task("starting", total=1.0, left="")
        running: dict[str, TaskID] = {}

        def show(standing: "Standing") -> None:
            progress.update(
                whole,
                description=f"{standing.done} of {standing.parts} parts",
                completed=standing.share,
                left=f"{duration(standing.seconds_left)} left",
            )
            for label in [label for label in running if label not in standing.running]:
                progress.remove_task(running.pop(label))
            for label, share in standing.running.items():
                if label not in running:
                    running[label] = progress.add_task(f"  {label}", total=1.0, left="")
                progress.update(running[label], completed=share)

        yield show


def duration(seconds: float) -> str:
    """Writes a time as "0.4 s", "38 s", "12 min 5 s" or "1 h 2 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
