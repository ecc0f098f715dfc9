"""`rankcollapse reproduce`: what it prints, where it writes, and how it fails."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import rankcollapse
from rankcollapse.cli.bars import duration
from rankcollapse.experiments import EXPERIMENTS
from rankcollapse.experiments.running.reproduction import ReproductionError
from rankcollapse.experiments.running.runner import reproduce

FILES = {"comparison.csv", "comparison.md", "fig5.nc", "fig5.csv"} | {
    f"fig5{end}.{kind}" for end in ("", "_logarithmic") for kind in ("svg", "png", "pdf")
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Records what is asked for in place of running it."""
    calls: list[Mapping[str, Any]] = []

    def record(names: Sequence[str], out: os.PathLike[str], **given: Any) -> dict[str, Any]:
        calls.append({"names": names, "out": os.fspath(out), **given})
        return {}

    monkeypatch.setattr(rankcollapse, "reproduce", record, raising=False)
    return calls


def test_figure_5(run, tmp_path) -> None:
    out = tmp_path / "figures"
    result = run("reproduce", "fig5", "--out", out)
    assert result.exit_code == 0, result.output
    assert "Figure 5: paths by length" in result.stdout
    line = next(line for line in result.stdout.splitlines() if line.startswith("GPT-3"))
    assert line.split()[-4:] == ["0.370", "0.370", "–", "yes"]
    assert "on one core in 1 part: " in result.stdout
    assert str(out / "fig5") in result.stdout
    assert max(map(len, result.stdout.splitlines()[:-1])) <= 80
    assert result.stderr == ""
    assert {path.name for path in (out / "fig5").iterdir()} == FILES
    again = run("reproduce", "fig5", "--out", out)
    assert "1 of them from an earlier run" in again.stdout


def test_a_further_model(run, tmp_path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps({"num_layers": 3, "num_heads": 2}))
    result = run("reproduce", "fig5", "--model", tmp_path / "tiny", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    table = (tmp_path / "out" / "fig5" / "comparison.csv").read_text(encoding="utf-8")
    assert f"{tmp_path.name}/tiny, 3 × 2: share of length 2" in table


def test_every_option_arrives(run, tmp_path, asked) -> None:
    text = tmp_path / "text.txt"
    given = ["fig2", "fig4", "fig5", "--quick", "--seeds", 3, "--as-published", "--jobs", 2]
    given += ["--pretrained", "bert=a=b", "--pretrained", "xlnet=c", "--text", text, "--debug"]
    result = run("reproduce", *given, "--model", "m", "--model", "n", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    (call,) = asked
    assert callable(call["progress"])
    assert {name: value for name, value in call.items() if name != "progress"} == {
        "names": ["fig2", "fig4", "fig5"],
        "out": str(tmp_path),
        "quick": True,
        "seeds": 3,
        "as_published": True,
        "pretrained": {"bert": "a=b", "xlnet": "c"},
        "models": ["m", "n"],
        "text": text,
        "jobs": 2,
        "debug": True,
    }


def test_all_by_default_into_figures(run, asked) -> None:
    assert run("reproduce", "all").exit_code == 0
    assert (asked[0]["names"], asked[0]["out"], asked[0]["jobs"]) == (["all"], "figures", None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig9"], "'fig9' does not exist: use fig2, fig3, fig4, fig5, rates, xformers, mlp, all."),
        (["fig5", "--text", "x"], "text has no effect without fig4"),
        (["fig2", "--pretrained", "bert"], "'bert' is not FAMILY=MODEL"),
        (["fig2", "--pretrained", "=x"], "'=x' is not FAMILY=MODEL"),
        (["fig2", "--pretrained", "bert=x", "--pretrained", "bert=y"], "names bert twice"),
        (["fig2", "--pretrained", "gpt2=x"], "'gpt2' is no panel"),
        (["fig5", "--model", "./none"], "there is no folder ./none"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, arguments, words) -> None:
    result = run("reproduce", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert not list(tmp_path.glob("out/fig*"))


@pytest.mark.parametrize("arguments", [[], ["fig5", "--seeds", "0"], ["fig5", "--jobs", "0"]])
def test_what_typer_refuses(run, arguments) -> None:
    assert run("reproduce", *arguments).exit_code == 2


def test_a_failure_prints_what_was_finished(run, tmp_path, monkeypatch) -> None:
    finished = reproduce("fig5", tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise ReproductionError("fig4 sorting-seed0 failed (ValueError: no)", finished)

    monkeypatch.setattr(rankcollapse, "reproduce", fail, raising=False)
    result = run("reproduce", "all", "--out", tmp_path)
    assert result.exit_code == 1
    assert "GPT-3, 96 × 96" in result.stdout
    assert result.stderr.startswith("error: ReproductionError: fig4 sorting-seed0 failed")
    assert result.stderr.count("\n") == 1


def test_ctrl_c_says_what_is_left(run, tmp_path, monkeypatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rankcollapse, "reproduce", interrupt, raising=False)
    result = run("reproduce", "all", "--out", tmp_path)
    assert result.exit_code == 130
    assert f"what was finished is kept in {tmp_path}" in result.stderr


def test_the_help_names_every_experiment(run: Callable[..., Any]) -> None:
    result = run("reproduce", "--help")
    words = " ".join(result.stdout.replace("│", " ").split())
    assert f"{', '.join(EXPERIMENTS)}, or all." in words
    assert "rankcollapse reproduce all --quick" in words
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.44, "0.4 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3725, "1 h 2 min")],
)
def test_durations(seconds, text) -> None:
    assert duration(seconds) == text
