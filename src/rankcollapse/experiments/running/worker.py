"""A worker process: runs parts one after another, and says how far it is.

It is spawned, not forked, because PyTorch's threads do not survive a fork. It is spoken to through
a pipe of its own, so that one that dies takes no other along, and it ends itself when the process
that started it is gone.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from rankcollapse.experiments.running.events import Advanced, Event, Failure, Task
from rankcollapse.experiments.running.run_part import one_thread, run_part

# One thread each, because the cores are shared out among the parts.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
_QUIET = {
    "PYTHONWARNINGS": "ignore",
    "TRANSFORMERS_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}
_BETWEEN_REPORTS = 0.2
_PATIENCE = 5.0


class Worker:
    """A worker process, seen from the one that starts it."""

    def __init__(self, debug: bool) -> None:
        """Starts the process; with `debug` the libraries' warnings go to standard error."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.task: Task | None = None
        with _environment(_ENVIRONMENT if debug else _ENVIRONMENT | _QUIET), _deaf():
            self.process.start()
        theirs.close()

    @property
    def busy(self) -> Task:
        """The task that it has."""
        assert self.task is not None
        return self.task

    def begin(self, task: Task) -> None:
        """Gives it a task."""
        self.task = task
        # Whether it is still there comes out when it is listened to.
        with suppress(OSError):
            self.pipe.send(task)

    def hear(self) -> Event | None:
        """Returns what it has to say; None when it is no more."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return None

    def death(self) -> Failure:
        """Returns how it ended."""
        self.process.join()
        self.pipe.close()
        code = self.process.exitcode or 0
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        return Failure("ProcessDied", f"its process {how}{hint}", "")

    def end(self) -> None:
        """Ends it, at work or not."""
        self.process.terminate()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """Runs what comes through the pipe, until it is ended."""
    # Ctrl-C reaches every process of the terminal; the one that is in charge ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with one_thread():
        while True:
            task: Task = pipe.recv()
            pipe.send(run_part(task, _advances(pipe, task)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _advances(pipe: Connection, task: Task) -> Callable[[float], None]:
    """Returns what sends a part's progress on, at most a few times a second."""
    last = -_BETWEEN_REPORTS

    def advanced(share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _BETWEEN_REPORTS:
            last = now
            pipe.send(Advanced(task, share))

    return advanced


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Sets environment variables for the processes that are started within."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """Lets processes that are started within ignore Ctrl-C from their first moment."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
