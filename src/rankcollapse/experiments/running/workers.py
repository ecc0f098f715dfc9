"""Running parts side by side, each whatever becomes of the others."""

from collections.abc import Sequence
from multiprocessing.connection import wait

from rankcollapse.experiments.running.events import (
    Advanced,
    Failed,
    Finished,
    Report,
    Started,
    Task,
    Tick,
)
from rankcollapse.experiments.running.run_part import one_thread, run_part
from rankcollapse.experiments.running.worker import Worker

_TICK = 1.0


def run_tasks(tasks: Sequence[Task], jobs: int, report: Report, debug: bool = False) -> None:
    """Runs the tasks in their order.

    Args:
        tasks: What to run.
        jobs: How many processes to share them out among; 1 runs everything in this one.
        report: Called with every event, in this process.
        debug: Whether the processes write the libraries' warnings to standard error.
    """
    if not tasks:
        return
    if jobs > 1:
        _side_by_side(list(tasks), jobs, report, debug)
        return
    with one_thread():
        for task in tasks:
            report(Started(task))
            report(run_part(task, lambda share, task=task: report(Advanced(task, share))))


def _side_by_side(waiting: list[Task], jobs: int, report: Report, debug: bool) -> None:
    workers: list[Worker] = []
    try:
        while waiting or any(worker.task for worker in workers):
            while len(workers) < min(jobs, len(waiting)):
                workers.append(Worker(debug))
            for worker in workers:
                if worker.task is None and waiting:
                    worker.begin(waiting.pop(0))
                    report(Started(worker.busy))
            at_work = {worker.pipe: worker for worker in workers if worker.task}
            ready = wait(list(at_work), _TICK)
            for worker in (at_work[pipe] for pipe in at_work if pipe in ready):
                event = worker.hear()
                if event is None:
                    event = Failed(worker.busy, worker.death())
                    workers.remove(worker)
                elif isinstance(event, Finished | Failed):
                    worker.task = None
                report(event)
            if not ready:
                report(Tick())
    finally:
        for worker in workers:
            worker.end()
