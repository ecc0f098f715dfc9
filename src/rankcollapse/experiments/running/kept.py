"""Where the results of finished parts are kept, so that a run that was interrupted can go on.

Each is a NetCDF file of its own, `.parts/<experiment>/<part>-<hash>.nc`, that appears when it is
complete. The hash is of what was asked for and of the code that answered.
"""

import contextlib
import hashlib
import inspect
import json
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import xarray as xr

from rankcollapse.errors import OutputError
from rankcollapse.experiments.experiment import Part

FOLDER = ".parts"
_UNFINISHED = ".unfinished"
_ABOUT = "part"
_SHOWING = ("report", "cli", "chart", "charts", "rows", "comparison", "output")


@dataclass(frozen=True)
class Kept:
    """A finished part: what it found, and the processor time that it took."""

    result: xr.Dataset
    seconds: float


def place(folder: Path, experiment: str, part: Part) -> Path:
    """Returns the file of a part's result below the folder that the outputs go to."""
    module = sys.modules[part.function.__module__]
    own = inspect.getsource(module) if module.__spec__ and module.__spec__.origin else ""
    asked = json.dumps(
        {
            "function": f"{part.function.__module__}.{part.function.__qualname__}",
            "arguments": dict(part.arguments),
            "code": hashlib.sha256(f"{own}{measuring()}".encode()).hexdigest(),
            "versions": {name: version(name) for name in ("rankcollapse", "torch", "numpy")},
        },
        sort_keys=True,
    )
    digest = hashlib.sha256(asked.encode()).hexdigest()[:12]
    return folder / FOLDER / experiment / f"{part.name}-{digest}.nc"


@cache
def measuring(root: Path = Path(__file__).parents[2]) -> str:
    """Returns a digest of all code that may have a part in a result: what only draws has none."""
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        within = file.relative_to(root)
        if within.parts[0] not in _SHOWING and file.stem not in _SHOWING:
            digest.update(f"{within.as_posix()}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def keep(path: Path, part: Part, result: xr.Dataset, seconds: float) -> None:
    """Writes a result to its place, whole or not at all."""
    about = {"name": part.name, "arguments": dict(part.arguments), "seconds": seconds}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{uuid.uuid4().hex}{_UNFINISHED}")
    try:
        result.assign_attrs({_ABOUT: json.dumps(about)}).to_netcdf(unfinished, engine="h5netcdf")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def find(path: Path) -> Kept | None:
    """Returns what is kept at a place; None where there is nothing that can be read."""
    if not path.is_file():
        return None
    try:
        result = xr.load_dataset(path, engine="h5netcdf")
        about = json.loads(result.attrs.pop(_ABOUT))
        return Kept(result, float(about["seconds"]))
    except (OSError, ValueError, KeyError):  # cut short when the machine went down, say
        return None


@contextlib.contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Holds the folder against a second run, and clears away what a killed one left unfinished.

    Raises:
        OutputError: Another run is writing there now, or nothing can be written.
    """
    kept = folder / FOLDER
    try:
        kept.mkdir(parents=True, exist_ok=True)
        lock = (kept / "lock").open("w")
    except OSError as error:
        raise OutputError(
            f"The results cannot be kept in {kept} ({error.strerror or error}); make room or name "
            "a directory that can be written."
        ) from error
    with lock:
        if not _locked(lock.fileno()):
            raise OutputError(
                f"Another run is writing to {folder}; wait for its end or name another directory."
            )
        _clear(kept)
        try:
            yield
        finally:
            _clear(kept)


def _clear(kept: Path) -> None:
    for unfinished in kept.glob(f"*/*{_UNFINISHED}"):
        unfinished.unlink(missing_ok=True)


def _locked(file: int) -> bool:
    """Takes the lock, which ends with the process; False where another process has it."""
    try:
        import fcntl
    except ImportError:  # there is none on Windows, and two runs at once only cost time
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
