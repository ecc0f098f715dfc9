"""Writing the results: every file into a new folder first, then all of them into their place.

Nothing is seen half-written. When the last step fails, or is interrupted, the files that were
there before come back.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import altair as alt
import pandas as pd
import xarray as xr

from rankcollapse.errors import OutputError
from rankcollapse.report.chart import charts
from rankcollapse.report.measures import MEASURES
from rankcollapse.report.page import page
from rankcollapse.report.picture import png, svg
from rankcollapse.report.summary import tidy

DRAWN = tuple(m.variable for m in MEASURES)
NAMES = (
    "results.nc",
    "results.csv",
    "report.html",
    *(f"{variable}.{kind}" for variable in DRAWN for kind in ("svg", "png")),
)


def write(
    dataset: xr.Dataset, directory: str | os.PathLike[str], overwrite: bool = False
) -> list[Path]:
    """Write results.nc, results.csv, report.html and the charts as SVG and PNG, all or none.

    With `overwrite`, files of an earlier report are replaced, or removed where this data set has
    no such chart; everything else in the directory is left alone.

    Args:
        dataset: what `rankcollapse.inspect` returns.
        directory: made if it does not exist, with its parents.
        overwrite: whether the directory may hold anything already.

    Returns:
        The paths of the files, in the order in which they are named above.

    Raises:
        OutputError: the directory cannot be written, or is not empty and `overwrite` is false.
    """
    return write_files(directory, NAMES, lambda fresh: _produce(dataset, fresh), overwrite)


def write_files(
    directory: str | os.PathLike[str],
    names: Sequence[str],
    produce: Callable[[Path], None],
    overwrite: bool = False,
) -> list[Path]:
    """Write the files of one kind of report, all or none.

    Args:
        directory: made if it does not exist, with its parents.
        names: every file that such a report can have.
        produce: writes the files of this one into the folder it is given.
        overwrite: whether the directory may hold anything already.

    Returns:
        The paths of the files, in the order of `names`.

    Raises:
        OutputError: the directory cannot be written, or is not empty and `overwrite` is false.
    """
    target = Path(directory)
    check_writable(target, overwrite, names)
    absent = not target.exists()
    try:
        with _made(target.absolute().parent, keep=True), _scratch(target) as scratch:
            fresh = scratch / "new"
            fresh.mkdir()
            produce(fresh)
            if absent:
                fresh.rename(target)
            else:
                _swap(fresh, scratch / "old", target, names)
    except OSError as error:
        raise _refused(target, error) from error
    return [target / name for name in names if (target / name).exists()]


def check_writable(
    directory: str | os.PathLike[str], overwrite: bool = False, names: Sequence[str] = NAMES
) -> None:
    """Make sure, before long work, that `write` will be able to write there.

    It tries: permission bits tell nothing to an administrator, and nothing of read-only disks.

    Raises:
        OutputError: the path is a file, lies below one, cannot be written, or is a directory that
            holds files and `overwrite` is false.
    """
    target = Path(directory)
    file = next((p for p in (target, *target.parents) if _exists(p) and not p.is_dir()), None)
    if file is not None:
        what = "is a file" if file == target else f"lies below the file {file}"
        raise OutputError(f"The results cannot go to {target}, which {what}; name a directory.")
    try:
        if not overwrite and target.is_dir() and any(target.iterdir()):
            raise OutputError(
                f"The directory {target} is not empty; name another one, or pass --overwrite "
                "(overwrite=True in Python) to replace an earlier report in it."
            )
        folder = next((target / name for name in names if (target / name).is_dir()), None)
        if folder is not None:
            raise OutputError(
                f"The results cannot go to {target}, where {folder.name} is a directory; "
                "move it or name another directory."
            )
        with _made(target, keep=False), _scratch(target):
            pass
    except OSError as error:
        raise _refused(target, error) from error


def _refused(target: Path, error: OSError) -> OutputError:
    return OutputError(
        f"The results cannot be written to {target} ({error.strerror or error}); make room or "
        "name a directory that can be written."
    )


def _exists(path: Path) -> bool:
    """Return whether there is something at `path`, even a link that leads nowhere."""
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return False


@contextlib.contextmanager
def _made(directory: Path, *, keep: bool) -> Iterator[None]:
    """Make a directory and its parents; take those away again on failure, or unless `keep`."""
    missing = [p for p in (directory, *directory.absolute().parents) if not _exists(p)]
    done = False
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
        done = True
    finally:
        if not (done and keep):
            for path in missing:
                with contextlib.suppress(OSError):
                    path.rmdir()


@contextlib.contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """Give a new folder on the target's file system, removed at the end whatever happens.

    It lies beside a target that does not exist yet and inside one that does, which may be a
    mounted volume, or a folder in a parent that cannot be written.
    """
    place = target if target.exists() else target.absolute().parent
    scratch = place / f".rankcollapse-{uuid.uuid4().hex}"
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _produce(dataset: xr.Dataset, directory: Path) -> None:
    put(directory / "results", dataset, tidy(dataset))
    (directory / "report.html").write_text(page(dataset), encoding="utf-8")
    draw(directory, charts(dataset).items())


def put(stem: Path, dataset: xr.Dataset, frame: pd.DataFrame) -> None:
    """Write a data set as STEM.nc and its table as STEM.csv."""
    dataset.to_netcdf(stem.with_suffix(".nc"), engine="h5netcdf")
    frame.to_csv(stem.with_suffix(".csv"), index=False)


def draw(directory: Path, drawings: Iterable[tuple[str, alt.LayerChart]]) -> None:
    """Write every chart as NAME.svg and NAME.png."""
    for name, drawing in drawings:
        (directory / f"{name}.svg").write_text(svg(drawing), encoding="utf-8")
        (directory / f"{name}.png").write_bytes(png(drawing))


def _swap(fresh: Path, old: Path, target: Path, names: Sequence[str]) -> None:
    """Move the new files into `target` and those of an earlier report out of it, or neither."""
    old.mkdir()
    new = [name for name in names if (fresh / name).exists()]
    try:
        for name in names:
            if _exists(target / name):
                (target / name).replace(old / name)
            if name in new:
                (fresh / name).replace(target / name)
    except BaseException:
        for name in names:
            if _exists(old / name):
                (old / name).replace(target / name)
            elif name in new and not (fresh / name).exists():
                (target / name).unlink(missing_ok=True)
        raise
