"""What is not the caller's fault: a failure of ours, Ctrl-C, and libraries that talk too much."""

import logging
import warnings

import pytest
from transformers.utils import logging as transformers_logging

import rankcollapse
from rankcollapse.cli.quiet import quiet_libraries
from rankcollapse.errors import InputError
from rankcollapse.report import files


@pytest.fixture
def failing(run, model, text, tmp_path, monkeypatch):
    """Runs `inspect` with a measurement that raises."""

    def failing(error, *options):
        def inspect(*_, **__):
            raise error

        monkeypatch.setattr(rankcollapse, "inspect", inspect)
        result = run("inspect", model, "--text", text, "--out", tmp_path / "page", *options)
        assert not (tmp_path / "page").exists()
        assert result.stdout == ""
        return result

    return failing


def test_our_failure_is_one_line_with_a_way_to_learn_more(failing):
    result = failing(ZeroDivisionError("division\nby zero"))
    assert result.exit_code == 1
    assert result.stderr == (
        "error: ZeroDivisionError: division by zero; run again with --debug to see where\n"
    )


def test_a_failure_without_words_is_named(failing):
    assert failing(MemoryError()).stderr.startswith("error: MemoryError; run again with --debug")


def test_debug_shows_the_traceback(failing):
    result = failing(ZeroDivisionError("division by zero"), "--debug")
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback (most recent call last)")
    assert result.stderr.endswith("\nerror: ZeroDivisionError: division by zero\n")


def test_debug_shows_the_traceback_of_bad_input_too(failing):
    result = failing(InputError("text 3 is empty: remove it."), "--debug")
    assert result.exit_code == 2
    assert result.stderr.startswith("Traceback (most recent call last)")
    assert result.stderr.endswith("\nerror: text 3 is empty: remove it.\n")


def test_interrupted_while_measuring(failing):
    result = failing(KeyboardInterrupt())
    assert result.exit_code == 130
    assert result.stderr == "interrupted: no file was written\n"


def test_interrupted_while_writing(run, model, text, tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "page", interrupt)
    result = run("inspect", model, "--text", text, "--out", tmp_path / "page")
    assert result.exit_code == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_libraries_are_silent_in_the_block_and_as_before_behind_it(recwarn):
    before = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    with quiet_libraries(debug=False):
        assert transformers_logging.get_verbosity() == logging.ERROR
        assert not transformers_logging.is_progress_bar_enabled()
        warnings.warn("advice", stacklevel=1)
    after = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    assert before == after
    assert len(recwarn) == 0


def test_libraries_talk_with_debug():
    with quiet_libraries(debug=True), pytest.warns(UserWarning, match="advice"):
        warnings.warn("advice", stacklevel=1)
