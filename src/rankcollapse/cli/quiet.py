"""Keeps the libraries' own progress bars and advice out of the command line's output."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_libraries(debug: bool) -> Iterator[None]:
    """Silences transformers' bars and everyone's warnings in the block; nothing with `debug`.

    What matters to the caller is an exception here, never a warning.
    """
    if debug:
        yield
        return
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
