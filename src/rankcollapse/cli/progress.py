"""What moves on standard error while a command runs, where that is a terminal; silence elsewhere.

Standard output carries results alone, so that it can be piped.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _TimeLeft(TimeRemainingColumn):
    """Blank until there is an estimate."""

    def render(self, task: Task) -> Text:
        return Text() if task.time_remaining is None else super().render(task) + " left"


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float, float], None]]:
    """Shows a bar with the time that is left; it vanishes at the end, also when interrupted.

    Yields:
        A function of (done, total), to be called as work advances, in any unit.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        _TimeLeft(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def announce(line: str) -> None:
    """Says what is going on now, where someone is watching."""
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
