"""`reproduce`: runs experiments' parts side by side, keeps what is finished, writes each figure."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rankcollapse.errors import OptionError
from rankcollapse.experiments import EXPERIMENTS
from rankcollapse.experiments.experiment import Settings
from rankcollapse.experiments.output import check_place
from rankcollapse.experiments.running.choices import check, chosen
from rankcollapse.experiments.running.kept import sole_use
from rankcollapse.experiments.running.reproduction import Progress, Reproduction, Run


def reproduce(
    names: str | Sequence[str] = "all",
    out: str | os.PathLike[str] = "figures",
    *,
    quick: bool = False,
    seeds: int | None = None,
    as_published: bool = False,
    pretrained: Mapping[str, str] | None = None,
    models: Sequence[str] = (),
    text: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    debug: bool = False,
) -> dict[str, Reproduction]:
    """Runs experiments of the paper again and compares with what it reports.

    The work is cut into parts (a seed of a figure, say) that run in processes of their own. What a
    finished part found is kept in `out/.parts` and used by later runs with the same settings, so
    a run that was stopped goes on where it was. Every experiment's outputs go to `out/<name>`:
    `<name>.nc` and `<name>.csv` (the data), the figures as SVG, PNG and PDF, and `comparison.csv`
    and `comparison.md`. They replace those of an earlier run, all at once; other files stay.

    In a script, call it under `if __name__ == "__main__":`, as the processes import the script.

    Args:
        names: Of `rankcollapse.experiments.EXPERIMENTS`, or "all".
        out: The folder; made if it does not exist.
        quick: Fewer seeds, samples and steps: shows that everything runs, and roughly how.
        seeds: Number of seeds, by default each experiment's own.
        as_published: Follow the paper's code where it departs from the paper's text.
        pretrained: Folders or hub ids of pretrained models by "bert", "albert" and "xlnet", for
            Figure 2.
        models: Further models for Figure 5: folders with config.json, such files, or hub ids.
        text: A text file for the memorization task of Figure 4.
        jobs: Number of processes, by default that of the cores; 1 runs everything in this one.
        progress: Called with where the run stands, about once a second.
        debug: Let the processes show the libraries' warnings.

    Returns:
        The experiments by name.

    Raises:
        RankCollapseError: Bad input, in one sentence.
        ReproductionError: Parts failed; all others ran and are kept.
    """
    wanted = chosen(names)
    settings = Settings(
        quick=quick,
        seeds=seeds,
        as_published=as_published,
        pretrained=dict(pretrained or {}),
        models=tuple(models),
        text=None if text is None else os.fspath(text),
    )
    check(settings, wanted)
    processes = _cores() if jobs is None else jobs
    if processes < 1:
        raise OptionError(f"jobs is {jobs}; use a whole number of at least 1.")
    folder = Path(out)
    for name in wanted:
        check_place(folder, name)
    with sole_use(folder):
        run = Run(folder, settings, [EXPERIMENTS[name] for name in wanted], processes, progress)
        run.go(debug)
    return run.result()


def _cores() -> int:
    """Returns how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
