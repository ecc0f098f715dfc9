"""Parts are run once, side by side, whatever becomes of the others; outputs appear whole."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import xarray as xr

from rankcollapse.errors import InputError, OptionError, OutputError, RankCollapseError
from rankcollapse.experiments import EXPERIMENTS
from rankcollapse.experiments.running import choices, runner
from rankcollapse.experiments.running.kept import FOLDER, measuring, sole_use
from rankcollapse.experiments.running.outlook import Standing
from rankcollapse.experiments.running.reproduction import ReproductionError
from rankcollapse.experiments.running.runner import reproduce

from . import fake

ROOT = Path(__file__).parents[2]
FILES = {"comparison.csv", "comparison.md", "fake.nc", "fake.csv"}
FILES |= {f"{chart}.{kind}" for chart in ("fake", "fake_other") for kind in ("svg", "png", "pdf")}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "figures"


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(*experiments: object) -> None:
        known = {each.name: each for each in experiments}  # pyright: ignore[reportAttributeAccessIssue]
        monkeypatch.setattr(runner, "EXPERIMENTS", known)
        monkeypatch.setattr(choices, "EXPERIMENTS", known)

    return install


def kept(out: Path) -> set[str]:
    return {path.name.rpartition("-")[0] for path in (out / FOLDER).glob("*/*.nc")}


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that nobody has waited for is no more, but still has its number.
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def test_all_names_have_an_experiment_of_that_name() -> None:
    assert [EXPERIMENTS[name].name for name in EXPERIMENTS] == list(EXPERIMENTS)
    assert "fig9" not in EXPERIMENTS


def test_outputs(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log))
    standings: list[Standing] = []
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        (done,) = reproduce("fake", out, jobs=1, progress=standings.append).values()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert {path.name for path in (out / "fake").iterdir()} == FILES
    assert set(done.files) == set((out / "fake").iterdir())
    assert fake.processes(log) == {os.getpid()}
    assert (done.parts, done.kept) == (4, 0)
    with xr.open_dataset(out / "fake" / "fake.nc", engine="h5netcdf") as written:
        xr.testing.assert_identical(written.load(), done.dataset)
    assert set(done.dataset["threads"].values.tolist()) == {1}
    csv = (out / "fake" / "fake.csv").read_text().splitlines()
    assert csv[0] == "variable,seed,value"
    assert len(csv) == 1 + 2 * 4
    assert (out / "fake" / "fake.pdf").read_bytes().startswith(b"%PDF")
    assert "| value | 1.00 |" in (out / "fake" / "comparison.md").read_text()
    assert [s.done for s in standings][-1] == standings[-1].parts == 4
    assert any(standing.running.get("fake seed2", 0) > 0.4 for standing in standings)


def test_finished_parts_are_used_again(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log))
    first = reproduce(["fake"], out, seeds=3, jobs=1)["fake"]
    again = reproduce("all", out, seeds=3, jobs=1)["fake"]
    assert fake.ran(log) == [0, 1, 2]
    assert again.kept == again.parts == 3
    assert again.seconds == first.seconds > 0
    xr.testing.assert_identical(again.dataset, first.dataset)
    more = reproduce("fake", out, jobs=1)["fake"]
    assert fake.ran(log) == [0, 1, 2, 3]
    assert (more.parts, more.kept) == (4, 3)
    install(fake.experiment("fake", log, seconds=0.01))
    assert reproduce("fake", out, jobs=1)["fake"].kept == 0


def test_a_kept_file_that_cannot_be_read_is_made_again(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log))
    reproduce("fake", out, jobs=1)
    (broken,) = (out / FOLDER / "fake").glob("seed2-*.nc")
    broken.write_bytes(broken.read_bytes()[:1000])
    assert reproduce("fake", out, jobs=1)["fake"].kept == 3
    assert fake.ran(log) == [0, 1, 2, 3, 2]


def test_processes_give_the_same_tables(install, out: Path, log: Path, tmp_path: Path) -> None:
    install(fake.experiment("fake", log, seconds=0.3))
    reproduce("fake", tmp_path / "one", jobs=1)
    log.unlink()
    reproduce("fake", out, jobs=2)
    assert len(fake.processes(log)) == 2
    assert os.getpid() not in fake.processes(log)
    for name in ("comparison.csv", "comparison.md", "fake.csv"):
        assert (out / "fake" / name).read_bytes() == (tmp_path / "one" / "fake" / name).read_bytes()
    assert not any(map(alive, fake.processes(log)))


def test_the_longest_parts_begin_first(install, out: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    install(
        fake.experiment("short", log, 2, estimate=1.0), fake.experiment("long", log, 3, estimate=2)
    )
    begun: list[str] = []

    def progress(standing: Standing) -> None:
        begun.extend(label for label in standing.running if label not in begun)

    assert list(reproduce("all", out, jobs=1, progress=progress)) == ["short", "long"]
    assert begun == ["long seed0", "long seed1", "long seed2", "short seed0", "short seed1"]


def test_what_fails_does_not_lose_the_others(install, out: Path, log: Path) -> None:
    broken = fake.experiment("broken", log, 4, faults={0: "dies", 1: "wrong"})
    install(broken, fake.experiment("fake", log.with_name("log2"), 2))
    with pytest.raises(ReproductionError) as caught:
        reproduce("all", out, jobs=2)
    message = str(caught.value)
    assert "broken seed" in message
    assert "ValueError: the numbers are wrong" in message or "was ended by signal 9" in message
    assert all(f"broken seed{n}" in message for n in (0, 1))
    assert str(out / FOLDER) in message
    assert list(caught.value.finished) == ["fake"]
    assert {path.name for path in (out / "fake").iterdir()} == FILES
    assert not (out / "broken").exists()
    assert kept(out) == {"seed0", "seed1", "seed2", "seed3"}
    assert sorted(path.name[:5] for path in (out / FOLDER / "broken").iterdir()) == [
        "seed2",
        "seed3",
    ]
    for fault in ("dies", "wrong"):
        log.with_name(fault).touch()
    log.unlink()
    mended = reproduce("all", out, jobs=1)
    assert sorted(fake.ran(log)) == [0, 1]
    assert mended["broken"].kept == 2


def test_bad_input_in_a_part_is_raised_as_itself(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log, faults={1: "misused"}))
    with pytest.raises(InputError, match=r"^the text is empty; give another one\.$"):
        reproduce("fake", out, jobs=1)
    assert sorted(fake.ran(log)) == [0, 1, 2, 3]
    assert kept(out) == {"seed0", "seed2", "seed3"}


def test_outputs_that_fail_leave_the_earlier_ones(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log), fake.experiment("next", log, 1))
    reproduce("fake", out, jobs=1)
    before = {path.name: path.read_bytes() for path in (out / "fake").iterdir()}
    install(
        fake.experiment("fake", log, charts=["fake", "refused"]), fake.experiment("next", log, 1)
    )
    with pytest.raises(ReproductionError, match=r"fake \(its outputs\) failed") as caught:
        reproduce("all", out, seeds=2, jobs=1)
    assert list(caught.value.finished) == ["next"]
    assert {path.name: path.read_bytes() for path in (out / "fake").iterdir()} == before


def test_earlier_outputs_go_and_other_files_stay(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log))
    reproduce("fake", out, jobs=1)
    (out / "fake" / "notes.md").write_text("mine")
    install(fake.experiment("fake", log, charts=["fake"]))
    reproduce("fake", out, seeds=2, jobs=1)
    gone = {f"fake_other.{kind}" for kind in ("svg", "png", "pdf")}
    assert {path.name for path in (out / "fake").iterdir()} == FILES - gone | {"notes.md"}


def test_killed_it_goes_on_where_it_was(out: Path, log: Path) -> None:
    command = [sys.executable, "-m", "tests.experiments.fake", str(out), str(log), "2"]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    wait_until(lambda: len(kept(out)) >= 2)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(alive, fake.processes(log))), 10)
    before, begun = kept(out), len(fake.ran(log))
    assert 2 <= len(before) < 6
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert again.stdout == f"{{'slow': {len(before)}}}\n"
    assert again.stderr == ""
    assert {f"seed{number}" for number in fake.ran(log)[begun:]} == kept(out) - before
    assert (out / "slow" / "comparison.md").exists()


def test_ctrl_c_leaves_no_process_and_no_half_file(out: Path, log: Path) -> None:
    command = [sys.executable, "-m", "tests.experiments.fake", str(out), str(log), "2"]
    process = subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: len(kept(out)) >= 1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode in (1, 130, -signal.SIGINT)
    # The only traceback is that of the process in charge.
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not any(map(alive, fake.processes(log)))
    assert len(fake.processes(log)) == 2
    assert {path.suffix for path in (out / FOLDER / "slow").iterdir()} == {".nc"}
    assert not (out / "slow").exists()


def test_no_process_survives_the_one_in_charge(out: Path, log: Path) -> None:
    # Parts so long that they are heard of again after the test.
    command = [sys.executable, "-m", "tests.experiments.fake", str(out), str(log), "1000"]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    wait_until(lambda: len(fake.processes(log)) == 2)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(alive, fake.processes(log))), 10)


def test_one_run_at_a_time_in_a_folder(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log))
    (out / FOLDER / "fake").mkdir(parents=True)
    (out / FOLDER / "fake" / "0.unfinished").touch()
    with (
        sole_use(out),
        pytest.raises(OutputError, match="Another run is writing"),
    ):
        reproduce("fake", out, jobs=1)
    assert not (out / FOLDER / "fake" / "0.unfinished").exists()
    assert fake.ran(log) == []


@pytest.mark.parametrize(
    ("names", "given", "words"),
    [
        ("fig9", {}, "'fig9' does not exist: use fig2"),
        ([], {}, "no experiment was named"),
        ("fig5", {"seeds": 0}, "seeds is 0"),
        ("fig5", {"jobs": 0}, "jobs is 0"),
        ("fig5", {"pretrained": {"bert": "x"}}, "pretrained has no effect without fig2"),
        ("fig5", {"text": "x.txt"}, "text has no effect without fig4"),
        ("fig2", {"models": ["x"]}, "model has no effect without fig5"),
        ("fig2", {"pretrained": {"gpt": "x"}}, "'gpt' is no panel"),
        ("fig4", {"text": "no-such.txt"}, "no-such.txt does not exist"),
        ("fig5", {"models": ["GPT-3"]}, "'GPT-3' is there twice"),
        ("fig5", {"models": ["./none"]}, "there is no folder ./none"),
    ],
)
def test_wrong_choices(out: Path, names, given, words: str) -> None:
    with pytest.raises(RankCollapseError) as caught:
        reproduce(names, out, **given)
    assert words in str(caught.value)
    assert not list(out.glob("fig*"))


def test_a_place_that_cannot_be_written_is_found_first(install, tmp_path: Path, log: Path) -> None:
    install(fake.experiment("fake", log))
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="lies below the file"):
        reproduce("fake", tmp_path / "file", jobs=1)
    assert fake.ran(log) == []
    with pytest.raises(OptionError):
        reproduce("other", tmp_path / "file", jobs=1)


def test_kept_parts_depend_on_code_that_measures_and_not_on_code_that_draws(tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "report").mkdir()
    measures, draws = tmp_path / "streams" / "dense.py", tmp_path / "report" / "chart.py"
    digests = []
    for pair in (("a", "b"), ("a", "c"), ("d", "c")):
        for path, content in zip((measures, draws), pair, strict=True):
            path.write_text(content)
        measuring.cache_clear()
        digests.append(measuring(tmp_path))
    assert digests[0] == digests[1] != digests[2]
    measuring.cache_clear()


def test_outputs_say_how_they_were_made(install, out: Path, log: Path) -> None:
    install(fake.experiment("fake", log))
    (done,) = reproduce("fake", out, jobs=1, quick=True, seeds=2).values()
    made = json.loads(done.dataset.attrs["settings"])
    assert made["quick"] is True and made["seeds"] == 2
    assert "A quick run" in (out / "fake" / "comparison.md").read_text()
    reproduce("fake", out, jobs=1)
    assert "A quick run" not in (out / "fake" / "comparison.md").read_text()
