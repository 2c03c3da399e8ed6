"""What readers of files and arguments once let slip, item by item (34.8, 34.12, 34.13 and the lesser ones)."""

import fcntl
import json
from pathlib import Path

import polars
import pytest
from conftest import Ampsched

import ampsched
from ampsched._core import InputError, Topology
from ampsched.policy import PolicySpec, policy_info
from ampsched.sweeps import folder as folders
from ampsched.sweeps.folder import MARK, Folder

SHORT = '[[threads]]\nname = "t"\nbody = [{ run_us = 50, profile = "fft" }]\n'
LONG = SHORT.replace("50", "5000")


def files(tmp_path: Path) -> tuple[str, str]:
    """A short program and a long one."""
    paths = tmp_path / "short.toml", tmp_path / "long.toml"
    for path, text in zip(paths, (SHORT, LONG), strict=True):
        path.write_text(text)
    return str(paths[0]), str(paths[1])


def kept(tmp_path: Path) -> Folder:
    """A folder with results."""
    ampsched.sweep("2B2S", files(tmp_path)[0], ["cfs", "linux"], folder=tmp_path / "out", jobs=1)
    return Folder(tmp_path / "out")


def test_h34_08_nobody_merges_while_keys_and_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read, seen = kept(tmp_path), folders._read, []

    def spied(*arguments: object) -> polars.DataFrame:
        with (folder.path / MARK).open("a") as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                seen.append("free")
            except BlockingIOError:
                seen.append("locked")
        return read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(folders, "_read", spied)
    folder.keys(), folder.frame(), folder.merge()
    assert seen == ["locked"] * 3


def test_h34_08_a_folder_that_somebody_else_is_just_making_is_one(tmp_path: Path) -> None:
    for begun in ((), ("added",), ("added", MARK), (MARK,)):
        folder = tmp_path / "-".join(["f", *begun])
        folder.mkdir()
        for name in begun:
            (folder / name).touch() if name == MARK else (folder / name).mkdir()
        assert Folder(folder).keys() == set()
        assert (folder / MARK).read_text() == "1\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop("key"), 'column "key" is missing'),
        (lambda table: table.drop("seed"), 'column "seed" is missing'),
        (lambda table: table.drop("error"), 'column "error" is missing'),
        (
            lambda table: table.with_columns(h_antt=polars.lit("much")),
            'column "h_antt" has String, not Float64',
        ),
        (lambda table: table.with_columns(policy=polars.lit(1)), 'column "policy" has Int32, not String'),
    ],
)
def test_h34_low_a_table_that_others_have_changed_is_named(
    tmp_path: Path, change: object, message: str
) -> None:
    folder = kept(tmp_path)
    table = folder.path / "table.parquet"
    change(polars.read_parquet(table)).write_parquet(table)  # type: ignore[operator]
    with pytest.raises(
        InputError, match=rf"table\.parquet: {message} \(delete it, and its simulations run again\)"
    ):
        ampsched.sweep("2B2S", files(tmp_path)[0], ["cfs", "linux"], folder=folder.path, jobs=1)


def test_h34_01_nobody_is_told_to_delete_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    table = folder.path / "table.parquet"
    table.unlink()
    table.mkdir()  # which nobody can read as a file
    with pytest.raises(InputError, match=r"table\.parquet: cannot be read: [^(]*$"):
        ampsched.sweep("2B2S", files(tmp_path)[0], ["cfs", "linux"], folder=folder.path, jobs=1)


def test_h34_13_a_sweep_whose_simulations_fail_says_so_in_the_end(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    short, long = files(tmp_path)
    line = ["sweep", "-m", "2B2S", "-w", f"{short},{long}", "-p", "cfs,linux", "--limit-s", "0.001"]
    for more in ([], ["--json"], ["--plot", str(tmp_path / "p.svg")]):
        ended = ampsched_here(*line, *more)
        assert ended.code == 2
        assert "error: 4 of 8 simulations failed, the first: " in ended.err
        assert "cfs" in ended.out
    assert json.loads(ampsched_here(*line, "--json").out)["failures"]


def test_h34_13_a_program_with_several_numbers_is_several_workloads(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    program = tmp_path / "a.toml"
    program.write_text(f'[params]\nn = 2\n\n{SHORT}count = "n"\n')
    ended = ampsched_here("compare", "-m", "2B2S", "-w", f"{program}:n=2,{program}:n=4", "-p", "cfs")
    assert (ended.code, ended.err) == (0, "")
    assert "n = 2 to 4" in ended.out
    ended = ampsched_here("compare", "-m", "2B2S", "-w", f"{program}:n=2,{program}:n=2", "-p", "cfs")
    assert ended.code == 2
    assert "is given twice" in ended.err


def test_h34_13_a_policy_that_overrides_start_has_its_topology(tmp_path: Path) -> None:
    cores: list[int] = []

    class Own(ampsched.Policy):
        def start(self, topology: Topology) -> None:
            cores.extend((topology.core_count, self.topology.core_count, len(self.all_cores())))

    ampsched.simulate("2B2S", files(tmp_path)[0], Own)
    assert cores == [4, 4, 4]


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_h34_13_a_trace_is_no_folder(ampsched_here: Ampsched, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    policies = "cfs" if command == "simulate" else "cfs,linux"
    line = ["-m", "2B2S", "-w", files(tmp_path)[0], "-p", policies, "--trace", str(folder)]
    ended = ampsched_here(command, *line)
    assert (ended.code, ended.err) == (2, f"error: --trace {folder}: is a folder\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.toml", "out", "short.toml"]


@pytest.mark.parametrize("machine", ["2B2S:big=2@3000", "exynos5422:big=2@9999"])
def test_h34_13_a_clock_beyond_the_table_is_refused(ampsched_here: Ampsched, machine: str) -> None:
    ended = ampsched_here("simulate", "-m", machine, "-w", "sync-1")
    assert ended.code == 2
    assert " MHz, but its frequencies are " in ended.err


def test_h34_12_a_mark_before_a_text_is_no_part_of_it(ampsched_here: Ampsched, tmp_path: Path) -> None:
    texts = {
        "p.toml": (SHORT, ["describe"]),
        "r.json": ('{"tasks": {"t": {"run": 10, "loop": 1}}}', ["import-rtapp"]),
        "g.csv": ("a,1,,\nb,1,,a\n", ["tasks", "describe"]),
        "g.dot": ("digraph g { a [work=1] }", ["tasks", "describe"]),
        "g.stg": ("1\n0 4 0\n", ["tasks", "describe"]),
        "c.csv": (
            "program,cycles\na,1\n",
            ["counters", "import", "--from", "csv", "-o", str(tmp_path / "o.csv")],
        ),
        "c.perf": (
            "1,,cycles,5,100.00,,\n",
            ["counters", "import", "--from", "perf", "-o", str(tmp_path / "o.csv")],
        ),
    }
    for name, (text, command) in texts.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
        ended = ampsched_here(*command, str(tmp_path / name))
        assert (ended.code, ended.err) == (0, ""), name
        assert "\ufeff" not in ended.out


def test_h34_low_numbers_of_many_digits_are_one_line(ampsched_here: Ampsched, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(f'{{"a": {"9" * 5000}}}')
    ended = ampsched_here("report", str(file), "--html", str(tmp_path / "r.html"))
    assert (ended.code, ended.err) == (
        2,
        f"error: {file}: is no JSON that can be read: a number has too many digits\n",
    )


def test_h34_low_cells_of_tables_hold_single_values(ampsched_here: Ampsched, tmp_path: Path) -> None:
    graph = tmp_path / "g.csv"
    graph.write_text("a,1,,\n")
    ended = ampsched_here("tasks", "run", str(graph), "-w", "1x2,1x1", "-p", "fifo", "--format", "csv")
    assert ended.out.splitlines() == [
        "policy,makespan_s,lower_bound_s,utilisation_0,utilisation_1",
        "fifo,0.5,0.5,1.0,0.0",
    ]


@pytest.mark.parametrize("arguments", [("list", "foo"), ("list", "machines", "--format", "foo")])
def test_h34_low_words_of_a_library_do_not_leak(ampsched_here: Ampsched, arguments: tuple[str, ...]) -> None:
    ended = ampsched_here(*arguments)
    assert ended.code == 2
    assert "unknown value of " in ended.err
    assert "Value error" not in ended.err


def test_h34_low_a_version_that_a_number_cannot_hold_is_refused(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", "sync-1", "-p", "linux:kernel=5.10")
    assert ended.code == 2
    assert (
        "policy linux: parameter kernel = 5.10 is not 3.16, 4.14, android-4.14, 6.1, 6.6, 6.18 or 7.3"
        in ended.err
    )


def test_a_vendors_kernel_is_named() -> None:
    spec = PolicySpec.of("linux:kernel=android-4.14")
    assert (spec.label, spec.params) == ("linux:kernel=android-4.14", (("kernel", -4.14),))
    kernel = next(param for param in policy_info("linux").params if param.name == "kernel")
    assert (kernel.shown(-4.14), kernel.shown(6.1), kernel.shown(5.0)) == ("android-4.14", "6.1", "5")
    assert kernel.values() == "3.16, 4.14, android-4.14, 6.1, 6.6, 6.18, 7.3"
