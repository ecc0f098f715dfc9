"""Writing: every file there and whole, or nothing changed; refusals before any work."""

import csv
import errno
import os
import tempfile
from pathlib import Path

import pytest
import xarray as xr
from transformers import GPT2Config

import rankcollapse
from rankcollapse.errors import OutputError
from rankcollapse.report import check_writable, files, page, tidy, write
from tests.networks import ids
from tests.report.synthetic import synthetic

SMALL = synthetic(("san", "transformer"), layers=3, samples=2, final_norm=True)
FILES = {
    "results.nc",
    "results.csv",
    "report.html",
    "relative_residual.svg",
    "relative_residual.png",
    "effective_rank.svg",
    "effective_rank.png",
    "token_cosine.svg",
    "token_cosine.png",
    "largest_token_ratio.svg",
    "largest_token_ratio.png",
}


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report") / "new" / "deeper"
    paths = write(SMALL, directory)
    assert {path.name for path in paths} == FILES
    return directory


def test_all_files_and_no_others(written: Path):
    assert names(written) == FILES
    assert names(written.parent) == {"deeper"}


def test_the_data_set_comes_back_as_it_was(written: Path):
    with xr.open_dataset(written / "results.nc", engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), SMALL)
        assert back["at_floor"].dtype == bool
    with xr.open_dataset(written / "results.nc") as back:
        assert back.attrs["metadata"] == SMALL.attrs["metadata"]


def test_a_data_set_far_below_the_smallest_float_comes_back(tmp_path: Path):
    deep = synthetic(("san",), layers=4, samples=2, deep=True, groups=["residual"])
    write(deep, tmp_path / "out")
    with xr.open_dataset(tmp_path / "out" / "results.nc") as back:
        assert back["log10_relative_residual"].min().item() < -890
        xr.testing.assert_identical(back.load(), deep)


@pytest.fixture(scope="module")
def centered() -> xr.Dataset:
    """A causal model's, so that it has every variable that centered arithmetic adds."""
    config = GPT2Config(vocab_size=99, n_positions=16, n_embd=32, n_layer=4, n_head=4)
    model = rankcollapse.load(config, init="random", dtype="float64")
    inputs = {"input_ids": ids((9, 6))}
    return rankcollapse.inspect(model, inputs, ["san", "transformer"], arithmetic="centered")


def test_centered_results_come_back_as_they_were(centered: xr.Dataset, tmp_path: Path):
    paths = write(centered, tmp_path / "out")
    assert {"local_order.svg", "local_order.png"} <= {path.name for path in paths}
    with xr.open_dataset(tmp_path / "out" / "results.nc", engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), centered)
        assert back["positional_lambda2"].dims == ("variant", "layer", "head")


def test_the_csv_of_centered_results_has_what_is_new_by_state_and_nothing_by_head(
    centered: xr.Dataset, tmp_path: Path
):
    write(centered, tmp_path / "out")
    with (tmp_path / "out" / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 6
    assert {"dense_log10_relative_residual", "local_order"} <= rows[0].keys()
    assert not [name for name in rows[0] if "lambda2" in name]
    for row in rows:
        if row["layer"] != "final_norm":
            at = {"variant": row["variant"], "sample": int(row["sample"])}
            order = centered["local_order"].sel(at | {"layer": int(row["layer"])}).item()
            assert (row["local_order"] == "") == (int(row["layer"]) < 2)
            assert float(row["local_order"] or "nan") == pytest.approx(order, rel=0, nan_ok=True)


def test_an_svg_raises_the_digits_of_long_exponents(tmp_path: Path):
    write(synthetic(("san",), cubic=True, samples=1, groups=["residual"]), tmp_path)
    text = (tmp_path / "relative_residual.svg").read_text(encoding="utf-8")
    assert ">−10\u202f000</tspan>" in text and "⁻" not in text


def test_the_csv_is_the_tidy_table_to_the_last_digit(written: Path):
    table = tidy(SMALL)
    with (written / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(table.columns)
    for name in table.columns:
        if table[name].dtype == float:
            assert [float(row[name]) for row in rows] == table[name].tolist()
        else:
            assert [row[name] for row in rows] == [str(value) for value in table[name]]


def test_page_and_charts_are_complete(written: Path):
    assert (written / "report.html").read_text(encoding="utf-8") == page(SMALL)
    svg = (written / "relative_residual.svg").read_text(encoding="utf-8")
    assert svg.rstrip().endswith("</svg>") and "bert-base-cased" in svg and "transformer" in svg
    assert ">10<tspan" in svg and ">−6</tspan>" in svg and "⁻" not in svg
    png = (written / "relative_residual.png").read_bytes()
    assert png.startswith(b"\x89PNG") and b"IEND" in png[-16:]
    assert int.from_bytes(png[16:20], "big") > 1200


def test_modes_are_those_of_ordinary_files(written: Path):
    mask = os.umask(0)
    os.umask(mask)
    assert written.stat().st_mode & 0o777 == 0o777 & ~mask
    assert (written / "results.nc").stat().st_mode & 0o777 == 0o666 & ~mask


def test_an_empty_directory_is_fine(tmp_path: Path):
    write(SMALL, tmp_path)
    assert names(tmp_path) == FILES


def test_a_directory_with_files_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine")
    for refuse in (lambda: check_writable(tmp_path), lambda: write(SMALL, tmp_path)):
        with pytest.raises(OutputError, match=r"not empty.*--overwrite \(overwrite=True"):
            refuse()
    assert names(tmp_path) == {"mine.txt"}


def test_overwriting_replaces_our_files_removes_stale_ones_and_keeps_others(tmp_path: Path):
    write(SMALL, tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "notes").mkdir()
    only = SMALL[["token_cosine", "token_cosine_after_final_norm"]]
    paths = write(only, tmp_path, overwrite=True)
    expected = {"results.nc", "results.csv", "report.html", "token_cosine.svg", "token_cosine.png"}
    assert {path.name for path in paths} == expected
    assert names(tmp_path) == expected | {"mine.txt", "notes"}
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with xr.open_dataset(tmp_path / "results.nc") as back:
        xr.testing.assert_identical(back.load(), only)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_an_interrupted_run_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    def interrupted(dataset: xr.Dataset) -> str:
        raise error

    monkeypatch.setattr(files, "page", interrupted)
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write(SMALL, tmp_path / "a" / "b")
    assert names(tmp_path) == set()
    (tmp_path / "results.csv").write_text("old")
    with pytest.raises(expected):
        write(SMALL, tmp_path, overwrite=True)
    assert names(tmp_path) == {"results.csv"}
    assert (tmp_path / "results.csv").read_text() == "old"


@pytest.mark.parametrize("moves", range(1, 14))
def test_a_swap_that_fails_half_way_brings_the_old_files_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
):
    new = {"results.nc", "results.csv", "report.html", "token_cosine.svg", "token_cosine.png"}
    monkeypatch.setattr(
        files, "_produce", lambda _, folder: [(folder / n).write_text("new") for n in new]
    )
    old = {"results.nc", "results.csv", "effective_rank.svg", "effective_rank.png", "mine.txt"}
    for name in old:
        (tmp_path / name).write_text(f"old {name}")
    replace, done = Path.replace, []

    def failing(self: Path, target: Path) -> Path:
        done.append(self)
        if len(done) == moves:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    interrupted = False
    try:
        write(SMALL, tmp_path, overwrite=True)
    except KeyboardInterrupt:
        interrupted = True
    # Four files of ours are moved out and five in.
    assert interrupted == (moves <= 9)
    if interrupted:
        assert names(tmp_path) == old
        assert all((tmp_path / n).read_text() == f"old {n}" for n in old)
    else:
        assert names(tmp_path) == new | {"mine.txt"}


def test_a_file_and_a_path_below_a_file_are_refused(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(OutputError, match="is a file"):
        check_writable(file, overwrite=True)
    with pytest.raises(OutputError, match=f"lies below the file {file}"):
        check_writable(file / "a" / "b", overwrite=True)
    with pytest.raises(OutputError, match=f"lies below the file {file}"):
        write(SMALL, file / "a")
    assert file.read_text() == "mine"


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(OutputError, match="is a file"):
        check_writable(tmp_path / "link")


def test_a_link_to_a_directory_is_followed(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(SMALL[["token_cosine"]], tmp_path / "link")
    assert "results.nc" in names(tmp_path / "real")


def test_a_directory_in_a_files_place_is_refused(tmp_path: Path):
    (tmp_path / "results.nc").mkdir()
    with pytest.raises(OutputError, match=r"results\.nc is a directory"):
        check_writable(tmp_path, overwrite=True)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc on this system")
def test_a_place_that_not_even_root_can_write_is_refused():
    with pytest.raises(OutputError, match="cannot be written to /proc/rankcollapse"):
        check_writable("/proc/rankcollapse")


def test_a_directory_without_write_permission_is_refused():
    nobody = 65534
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        # Root may write anywhere, so the test lets go of that for a moment.
        root = os.geteuid() == 0
        if root:
            os.seteuid(nobody)
        try:
            with pytest.raises(OutputError, match="Permission denied"):
                check_writable(Path(name) / "out")
            with pytest.raises(OutputError, match="Permission denied"):
                check_writable(name)
        finally:
            if root:
                os.seteuid(0)


def test_a_name_that_the_system_refuses_is_found_before_any_work(tmp_path: Path):
    with pytest.raises(OutputError, match="cannot be written"):
        check_writable(tmp_path / ("x" * 300))
    assert names(tmp_path) == set()


def test_the_check_leaves_nothing_behind(tmp_path: Path):
    check_writable(tmp_path / "a" / "b")
    check_writable(tmp_path)
    assert names(tmp_path) == set()


def test_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    write(SMALL[["token_cosine"]], ".")
    assert {"results.nc", "token_cosine.png"} <= names(tmp_path)
    write(SMALL[["token_cosine"]], "relative")
    assert "report.html" in names(tmp_path / "relative")
