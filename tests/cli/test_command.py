"""The command as a whole: version, help, the list of families, and how quickly it starts."""

import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from rankcollapse.families import FAMILIES


def test_version(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"rankcollapse {version('rankcollapse')}\n"


def test_without_arguments_it_shows_the_help(run):
    result = run()
    assert "inspect" in result.output
    assert "families" in result.output


def test_help_has_examples_and_fits_80_columns(run):
    result = run("inspect", "--help")
    assert result.exit_code == 0
    assert len(re.findall(r"^ +(?:cat .* \| )?rankcollapse inspect \S", result.stdout, re.M)) >= 3
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_every_option_has_a_help_text(run):
    help_text = run("inspect", "--help").stdout
    options = re.findall(r"^│ --([a-z-]+) +(.*?)│$", help_text, re.M)
    assert len(options) >= 20
    assert all(re.search(r"[A-Z][a-z]+", words) for _, words in options)


def test_families_lists_each_with_what_it_covers(run):
    result = run("families")
    assert result.exit_code == 0
    flat = " ".join(result.stdout.split())
    for model_type, family in FAMILIES.items():
        assert family.title in flat
        assert re.search(rf"\b{re.escape(model_type)}\b", flat)
        assert " ".join(family.covers.split()[:3]) in flat
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_starting_does_not_import_what_is_slow():
    slow = ["torch", "transformers", "pandas", "xarray", "altair"]
    code = f"import sys, rankcollapse.cli.app; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["inspect"], 2), (["nonsense"], 2)]
)
def test_exit_codes_of_the_real_program(arguments, code):
    program = [sys.executable, "-c", "from rankcollapse.cli import main; main()", *arguments]
    assert subprocess.run(program, capture_output=True, check=False).returncode == code
