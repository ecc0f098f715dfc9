"""How a command ends when it cannot go on: one line on standard error, and an exit code.

Exit codes: 2 for input that the caller can mend, 1 for a defect or an exhausted machine, 130 for
Ctrl-C, as shells have it.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from rankcollapse.errors import RankCollapseError

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
TERMINATED = 143


@contextmanager
def failures_as_lines(debug: bool, after_ctrl_c: str = "no file was written") -> Iterator[None]:
    """Turns whatever escapes the block into one line and an exit code.

    Args:
        debug: print the traceback before the line.
        after_ctrl_c: what is left of the work when it is interrupted.

    Raises:
        typer.Exit: with the code, after the line is printed.
    """
    try:
        yield
    except RankCollapseError as error:
        _traceback(debug)
        raise _exit(BAD_INPUT, f"error: {_one_line(error)}") from None
    except BrokenPipeError:
        # Whoever read our output has gone, as in `| head`: typer ends the program in silence.
        raise
    except KeyboardInterrupt:
        _traceback(debug)
        raise _exit(INTERRUPTED, f"interrupted: {after_ctrl_c}") from None
    except Exception as error:
        _traceback(debug)
        kind = type(error).__name__
        detail = f"{kind}: {_one_line(error)}" if str(error) else kind
        remedy = "" if debug else "; run again with --debug to see where"
        raise _exit(FAILED, f"error: {detail}{remedy}") from None


def _exit(code: int, line: str) -> typer.Exit:
    typer.echo(line, err=True)
    return typer.Exit(code)


def _traceback(wanted: bool) -> None:
    if wanted:
        typer.echo(traceback.format_exc(), err=True, nl=False)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
