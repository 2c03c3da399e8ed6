"""Counter tables: import of gem5, perf and CSV files, and what is said of files that cannot be read."""

from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, Ampsched

from ampsched import counters
from ampsched._core import InputError

GEM5 = ROOT / "crates/predict/tests/gem5"
PERF = "0.5,CPU1,2000,,cpu_core/cycles/,5,50.00,,\n0.5,CPU1,900,,instructions,5,100.00,,\n1.0,CPU1,7,,my_event,5,100.00,,\n"


def test_gem5_files_become_rows_with_units_and_times() -> None:
    table = counters.import_counters(
        GEM5 / "spec2006-libquantum--ex5_big.txt", "gem5", program="libquantum", core_type="ex5_big"
    )
    assert tuple(table.columns) == counters.COLUMNS
    row = table.filter(pl.col("counter") == "cycles").row(0, named=True)
    assert (row["value"], row["unit"], row["core"]) == (115926706.0, "cycles", "system.cpu")
    assert (row["program"], row["core_type"], row["source"], row["thread"]) == (
        "libquantum",
        "ex5_big",
        "gem5",
        None,
    )
    assert row["duration_s"] == pytest.approx(0.072454, abs=1e-6)


def test_perf_keeps_pmus_shares_and_events_outside_the_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text(PERF)
    table = counters.import_counters(path, "perf", core_type="cpu_core")
    assert table["core_type"].to_list() == ["cpu_core"] * 3
    assert table["running_share"].to_list() == [0.5, 1.0, 1.0]
    assert table["counter"].to_list() == ["cycles", "instructions", "my_event"]
    assert table["window"].to_list() == [0, 0, 1]
    assert table["program"].to_list() == ["run"] * 3


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_tables_survive_writing(tmp_path: Path, suffix: str) -> None:
    table = counters.import_counters(GEM5 / "saxpy-3dumps--X86MinorCPU.txt", "gem5")
    counters.write_counters(table, tmp_path / f"t{suffix}")
    assert counters.read_counters(tmp_path / f"t{suffix}").equals(table)


def test_csv_has_one_column_per_counter(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "program,core_type,duration_s,instructions,cycles\nmcf,big,0.5,100,200\nmcf,big,0.5,50,\n"
    )
    table = counters.import_counters(path, "csv")
    rows = table.select("program", "window", "counter", "value", "duration_s").rows()
    assert ("mcf", 0, "cycles", 200.0, 0.5) in rows
    assert ("mcf", 1, "cycles", None, 0.5) in rows
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("program,cycls\nx,1\n", "csv", ':1: unknown counter "cycls" (did you mean "cycles"?)'),
        ("program,cycles\nx,1\ny,many\n", "csv", ':3: cycles = "many" is not a number of at least 0'),
        ("program,cycles\nx,-1\n", "csv", ':2: cycles = "-1" is not a number of at least 0'),
        ("window,cycles\nx,1\n", "csv", ':2: window = "x" is not a number of at least 0'),
        (
            "---------- Begin Simulation Statistics ----------\n",
            "gem5",
            ":1: the dump that begins here has no end",
        ),
        ("1000,,cyc", "perf", ':1: "1000,,cyc" is not a line of perf stat -x'),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, text: str, source: counters.Source, expected: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        counters.import_counters(path, source)
    assert str(raised.value).startswith(f"{path}{expected}")
    assert "\n" not in str(raised.value)


def test_import_by_command(ampsched_here: Ampsched, tmp_path: Path) -> None:
    out = tmp_path / "all.parquet"
    files = [str(path) for path in sorted(GEM5.glob("*.txt"))]
    finished = ampsched_here("counters", "import", *files, "--from", "gem5", "-o", str(out))
    assert finished.code == 0, finished.err
    assert "in 24 windows" in finished.out
    assert counters.read_counters(out)["file"].n_unique() == 20
    refused = ampsched_here("counters", "import", files[0], "--from", "gem5", "-o", "t.txt")
    assert refused.code == 2
    assert 'the table ends with ".parquet" or ".csv"' in refused.err


def test_vocabulary_is_listed(ampsched_here: Ampsched) -> None:
    listed = ampsched_here("counters", "list")
    assert listed.code == 0
    assert all(counter.name in listed.out for counter in counters.vocabulary()[:5])


def test_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_text("hello")
    with pytest.raises(InputError, match="is no Parquet file"):
        counters.read_counters(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(InputError, match="column source is missing"):
        counters.read_counters(path)
