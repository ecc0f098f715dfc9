"""Running one part in this process: on one thread, its result kept or its failure told."""

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rankcollapse.errors import RankCollapseError
from rankcollapse.experiments.running.events import Failed, Failure, Finished, Task
from rankcollapse.experiments.running.kept import keep


def run_part(task: Task, advanced: Callable[[float], None]) -> Finished | Failed:
    """Runs a part and keeps its result.

    Args:
        task: The part.
        advanced: Called with the share of 1 that is done.
    """

    def progress(done: float, total: float) -> None:
        advanced(min(max(done / total, 0.0), 1.0) if total > 0 else 0.0)

    start, busy = time.perf_counter(), time.process_time()
    try:
        result = task.part.function(**task.part.arguments, progress=progress)
        # What it cost is the processor's time: the wall's depends on what else the machine does.
        keep(task.path, task.part, result, time.process_time() - busy)
        seconds = time.perf_counter() - start
    except Exception as error:
        return Failed(task, failure(error))
    return Finished(task, seconds)


def failure(error: Exception) -> Failure:
    """Returns an exception, being handled, in a form that can leave its process."""
    mendable = error if isinstance(error, RankCollapseError) else None
    return Failure(type(error).__name__, str(error), traceback.format_exc(), mendable)


@contextmanager
def one_thread() -> Iterator[None]:
    """Lets PyTorch use one thread: sums then come out the same whatever the machine."""
    # Imported here: it takes seconds, and a run whose parts are all kept does without.
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
