"""Every example in a docstring runs and prints what it says."""

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest
import torch

import rankcollapse

MODULES = [
    "rankcollapse",
    *(info.name for info in pkgutil.walk_packages(rankcollapse.__path__, "rankcollapse.")),
]


def documented(path: Path) -> list[tuple[str, str]]:
    """Docstrings of the module, its classes and functions; decorators cannot hide them here."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, kinds)
    ]
    texts = [(getattr(node, "name", path.stem), ast.get_docstring(node)) for node in nodes]
    return [(name, text) for name, text in texts if text and ">>>" in text]


def test_all_rooms_are_found():
    assert {"rankcollapse.metrics.residual", "rankcollapse.inspection.inspect"} <= set(MODULES)


@pytest.mark.parametrize("name", [n for n in MODULES if not n.endswith("__main__")])
def test_examples(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} does not say what it is for"
    runner = doctest.DocTestRunner()
    for title, text in documented(Path(str(module.__file__))):
        scope = {**vars(module), "torch": torch}
        example = doctest.DocTestParser().get_doctest(text, scope, f"{name}.{title}", None, 0)
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0


def test_examples_exist_where_the_reader_needs_them():
    home = Path(rankcollapse.__path__[0])
    with_examples = {title for path in home.rglob("*.py") for title, _ in documented(path)}
    assert {"composite_norm", "relative_residual", "effective_rank", "inspect", "load"} <= (
        with_examples
    )
