"""What once slipped through the readers, the writers and the command line, item by item."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import ROOT, Ampsched

import ampsched
from ampsched import files
from ampsched._core import DATA_BYTES_MAX, DESCRIPTION_BYTES_MAX
from ampsched.cli import render
from ampsched.files import EXECUTIONS, PROOF
from ampsched.proving.report import write_report

ONE_TASK = "a,1,,\n"


def run_apart(*arguments: str, **how: object) -> "subprocess.CompletedProcess[bytes]":
    """Runs the command line in a process of its own."""
    command = [sys.executable, "-m", "ampsched", *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **how)  # type: ignore[call-overload, no-any-return]


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if ".draft" in path.name)


# Limits


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "{}.toml"),
        ("compare", "-m", "2B2S", "-w", "{}.toml", "-p", "cfs"),
        ("compare", "-m", "{}.toml", "-w", "sync-1", "-p", "cfs"),
        ("compare", "-m", "2B2S", "-w", "sync-1", "-p", "{}.py:Any"),
        ("list", "machines", "--file", "{}.toml"),
        ("tasks", "describe", "{}.csv"),
        ("tasks", "draw", "{}.csv"),
        ("counters", "import", "{}.csv", "--from", "perf", "-o", "{}-out.csv"),
        ("train", "{}.csv", "--big", "a", "--little", "b"),
        ("compare", "-m", "2B2S", "-w", "sync-1", "-p", "colab", "--factors", "predicted:{}.json"),
    ],
)
def test_low_a_file_without_end_is_refused(
    ampsched_here: Ampsched, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for suffix in (".toml", ".py", ".csv", ".json"):
        (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    ended = ampsched_here(*(each.format(tmp_path / "zero") for each in arguments))
    assert ended.code == 2
    assert " MiB, which is the limit" in ended.err
    assert "zero" in ended.err


def test_low_an_empty_counter_table_is_refused(ampsched_here: Ampsched, tmp_path: Path) -> None:
    file = tmp_path / "empty.csv"
    file.write_text("")
    ended = ampsched_here("train", str(file), "--big", "a", "--little", "b")
    assert (ended.code, ended.err) == (2, f"error: {file}: is no CSV table: empty CSV\n")


def test_low_a_file_as_long_as_allowed_is_read(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_bytes(b"x" * 100)
    assert files.read_text(file, 100) == "x" * 100
    with pytest.raises(ampsched.InputError, match="is longer than 0 MiB"):
        files.read_text(file, 99)
    assert 0 < DESCRIPTION_BYTES_MAX < DATA_BYTES_MAX
    file.write_bytes(b"a\r\nb\rc\n")
    assert files.read_text(file) == "a\nb\nc\n"


# Outputs that are whole or not there


def test_low_an_output_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    path.chmod(0o640)

    def fails(error: BaseException) -> None:
        with files.writing(path) as file:
            file.write(b"half")
            raise error

    for error in (ValueError("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            fails(error)
        assert path.read_text() == "old"
    assert leftovers(tmp_path) == []
    files.write_text(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    link = tmp_path / "link.txt"
    link.symlink_to("out.txt")
    files.write_text(link, "through")
    assert link.is_symlink()
    assert path.read_text() == "through"


def test_low_an_output_that_is_no_file_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    files.write_text(pipe, "text")
    reader.join(10)
    assert read == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_low_an_output_may_be_standard_output(tmp_path: Path) -> None:
    (tmp_path / "stdout.csv").symlink_to("/dev/stdout")
    ended = run_apart("tasks", "convert", "blackscholes", str(tmp_path / "stdout.csv"))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(b"0,")
    assert (tmp_path / "stdout.csv").is_symlink()


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "-m", "2B2S", "-w", "sync-1", "--trace", "{}"),
        ("compare", "-m", "2B2S", "-w", "sync-1", "-p", "cfs", "--trace", "{}"),
        ("tasks", "schedule", "{tasks}", "--gantt", "{}.svg"),
        ("tasks", "schedule", "{tasks}", "--trace", "{}"),
        ("tasks", "schedule", "{tasks}", "--csv", "{}"),
        ("tasks", "convert", "{tasks}", "{}.dot"),
        ("counters", "import", "{counters}", "--from", "gem5", "-o", "{}.csv"),
    ],
)
def test_low_a_full_disk_is_told_with_the_files_name(
    ampsched_here: Ampsched, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for suffix in ("", ".svg", ".dot", ".csv", ".parquet", ".png"):
        (tmp_path / f"full{suffix}").symlink_to("/dev/full")
    (tmp_path / "tasks.csv").write_text(ONE_TASK)
    places = {
        "tasks": tmp_path / "tasks.csv",
        "counters": next((ROOT / "crates/predict/tests/gem5").glob("*.txt")),
    }
    ended = ampsched_here(*(each.format(tmp_path / "full", **places) for each in arguments))
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert f"{tmp_path / 'full'}" in ended.err
    assert "No space left on device" in ended.err


@pytest.mark.parametrize("arguments", [("list", "machines"), ("list", "machines", "--json"), ("--help",)])
def test_low_a_full_disk_behind_standard_output_is_told(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "ampsched", *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr == b"error: standard output: No space left on device\n"


def test_low_a_folder_that_is_not_there_is_told_with_the_files_name(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    path = tmp_path / "none" / "x.pftrace"
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", "sync-1", "--trace", str(path))
    hint = f"there is no folder {path.parent} (make it first)"
    assert (ended.code, ended.err) == (2, f"error: --trace {path}: {hint}\n")


FOREIGN = {
    "page": ("compare -m 2B2S -w sync-1 -p cfs,rr -r 1 --html FILE", "notes.html", "report"),
    "page of saved results": ("report none.json --html FILE", "notes.html", "report"),
    "table": ("tasks schedule g.csv --csv FILE", "notes.csv", "table of executions"),
    "proof": ("advise --check --report FILE -- true", "notes.json", "report"),
}


@pytest.mark.parametrize(("line", "name", "what"), FOREIGN.values(), ids=FOREIGN)
def test_low_somebody_elses_file_is_not_replaced_by_a_report(
    ampsched_here: Ampsched, tmp_path: Path, line: str, name: str, what: str
) -> None:
    path = tmp_path / name
    path.write_text("my notes")
    ended = ampsched_here(*line.replace("FILE", str(path)).split())
    assert ended.code == 2
    assert f"{path}: is there already and is no {what} that ampsched has written" in ended.err
    assert path.read_text() == "my notes"


def test_low_an_earlier_report_and_an_empty_file_are_replaced(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    path = tmp_path / "r.html"
    path.touch()
    for seed in ("1", "2"):
        line = f"compare -m 2B2S -w sync-1 -p cfs,rr --no-limits --seed {seed} --html {path}"
        assert ampsched_here(*line.split()).code == 0
        assert f"--seed {seed}" in path.read_text("utf-8")


def test_low_marks_of_files_are_in_them(tmp_path: Path) -> None:
    ampsched.run_tasks("fluidanimate:frames=2", "2x2", "heft").to_polars().write_csv(tmp_path / "e.csv")
    assert EXECUTIONS.has_made(tmp_path / "e.csv")
    write_report([], tmp_path / "p.json")
    assert PROOF.has_made(tmp_path / "p.json")


# Names and terminals

NASTY = """
[[threads]]
name = "t[/x]"
body = [{ sleep_us = 1000 }]
[[threads]]
name = "map[i]"
body = [{ sleep_us = 1000 }]
[[threads]]
name = "\\u001b[31mred\\u0007\\u009b1m\\u202e"
body = [{ sleep_us = 1000 }]
"""


def test_low_names_are_no_markup_and_command_no_terminal(ampsched_here: Ampsched, tmp_path: Path) -> None:
    program = tmp_path / "nasty[bold].toml"
    program.write_text(NASTY)
    for arguments in (
        ("simulate", "-m", "2B2S", "-w", str(program)),
        ("compare", "-m", "2B2S", "-w", str(program), "-p", "cfs", "--details"),
        ("describe", str(program)),
    ):
        ended = ampsched_here(*arguments)
        assert ended.code == 0, ended.err
        for text in ("\x1b", "\x07", "\x9b", "\u202e"):
            assert text not in ended.out
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", str(program))
    assert "nasty[bold]/t[/x]" in ended.out
    assert "nasty[bold]/map[i]" in ended.out
    assert "\\x1b[31mred" in ended.out


def test_low_kinds_of_tasks_are_told_apart(ampsched_here: Ampsched, tmp_path: Path) -> None:
    graph = tmp_path / "g.csv"
    graph.write_text("a,1,map[i],\nb,1,map[j],\nc,1,\x1b[2J,\n")
    out = ampsched_here("tasks", "describe", str(graph)).out
    assert "map[i]" in out
    assert "map[j]" in out
    assert "\\x1b[2J" in out
    assert "\x1b" not in out


def test_low_errors_command_no_terminal(ampsched_here: Ampsched, tmp_path: Path) -> None:
    ended = ampsched_here("describe", str(tmp_path / "\x1b[2J.toml"))
    assert ended.code == 2
    assert "\x1b" not in ended.err
    assert "\\x1b[2J.toml" in ended.err


@pytest.mark.parametrize(
    ("encoding", "arguments"),
    [
        ("latin1", ("compare", "-m", "2B2S", "-w", "sync-1", "-p", "cfs,wash")),
        ("ascii", ("compare", "-m", "2B2S", "-w", "sync-1", "-p", "cfs", "--json")),
        ("ascii", ("describe", "colab")),
        ("latin1", ("tasks", "schedule", "fluidanimate:frames=1")),
    ],
)
def test_low_terminals_without_unicode_get_text(encoding: str, arguments: tuple[str, ...]) -> None:
    ended = run_apart(*arguments, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == b""
    ended.stdout.decode(encoding)


def test_low_a_name_that_is_not_unicode_is_refused_in_a_line(tmp_path: Path) -> None:
    ended = run_apart("describe", os.fsdecode(os.fsencode(tmp_path) + b"/\xff.toml"))
    assert ended.returncode == 2
    assert ended.stderr.startswith(b"error: ")
    assert ended.stderr.count(b"\n") == 1


def test_visible_keeps_what_can_be_read() -> None:
    text = "ä µ █ 中 🦀 a\tb\nc"
    assert render.visible(text) == text
    assert render.visible("a\x00\x7f\u2066\ud800") == "a\\x00\\x7f\\u2066\\ud800"


# Drawings and conversions


@pytest.mark.parametrize("command", [("schedule", "{}"), ("draw", "{}")])
def test_m18_a_drawing_that_is_no_svg_is_refused(
    ampsched_here: Ampsched, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "g.csv").write_text(ONE_TASK)
    picture = tmp_path / "x.png"
    arguments = [each.format(tmp_path / "g.csv") for each in command]
    ended = ampsched_here("tasks", *arguments, "--gantt", str(picture))
    assert (ended.code, ended.err) == (2, f"error: --gantt {picture} does not end with .svg\n")
    assert not picture.exists()
    schedule = ampsched.run_tasks(tmp_path / "g.csv", "1x1", "fifo")
    with pytest.raises(ampsched.InputError, match="does not end with"):
        schedule.write_gantt(picture)


def test_m17_a_conversion_loses_no_sizes(ampsched_here: Ampsched, tmp_path: Path) -> None:
    graph, out = tmp_path / "g.dot", tmp_path / "o.csv"
    graph.write_text("digraph g { a [work=1]; b [work=1]; a -> b [size=100] }")
    ended = ampsched_here("tasks", "convert", str(graph), str(out))
    assert ended.code == 2
    assert "CSV cannot hold sizes of data, which g has (write .dot)" in ended.err
    assert not out.exists()
    timed = ampsched_here(
        "tasks", "convert", str(graph), str(tmp_path / "o.dot"), "--bandwidth-mb-s", "0.0001"
    )
    assert timed.code == 0
    assert "[comm=1]" in (tmp_path / "o.dot").read_text()


def test_m17_a_conversion_says_that_no_format_holds_a_ratio(ampsched_here: Ampsched, tmp_path: Path) -> None:
    ended = ampsched_here("tasks", "convert", "fluidanimate:frames=1", str(tmp_path / "o.csv"))
    assert ended.code == 0
    assert "note: no format holds the program's ratio of speeds" in ended.out


# Policies in Python


class Even(ampsched.Policy):
    """Nothing but CFS, with a number."""

    limit: int = 2
    share: float = 0.5


@pytest.mark.parametrize(
    ("members", "hint"),
    [
        ({"epcoh": lambda self, view, plan: None, "epoch_ms": 10}, '"epcoh" (did you mean "epoch"?)'),
        ({"on_evnt": lambda self, view, event, plan: None}, '"on_evnt" (did you mean "on_event"?)'),
        ({"slice": lambda self, view, thread, core: 1000}, '"slice" (did you mean "slice_ns"?)'),
        ({"preempt": lambda self, view, woken, running, core: True}, '"preempt" (did you mean "preempts"?)'),
        ({"bases": "eevdf"}, '"bases" (did you mean "base"?)'),
    ],
)
def test_low_a_misspelt_hook_is_refused(members: dict[str, object], hint: str) -> None:
    with pytest.raises(ampsched.InputError) as caught:
        ampsched.simulate("2B2S", "sync-1", type("Mine", (ampsched.Policy,), members))
    assert str(caught.value) == f"policy Mine: nothing uses {hint}"


def test_low_a_method_of_ones_own_may_sound_like_a_hook() -> None:
    class Helped(ampsched.Policy):
        def kick(self, core: int) -> int:
            return core

        def pick(self, view: ampsched.View, core: int) -> ampsched.Pick:
            return view.by_rules_pick((lambda: self.kick(core))())

    assert ampsched.simulate("2B2S", "sync-1", Helped).policy == "Helped"


def test_low_two_instances_of_a_class_can_be_compared() -> None:
    plain, wide, named = Even(), Even(), Even()
    wide.limit = 3
    named.name = "named"  # type: ignore[misc]
    labels = [ampsched.policy.PolicySpec.of(each).label for each in (plain, wide, named)]
    assert labels == ["Even", "Even:limit=3", "named"]
    result = ampsched.compare("2B2S", "sync-1", [plain, wide, named])
    assert result.policies == ("Even", "Even:limit=3", "named")


def test_low_representations_are_short() -> None:
    result = ampsched.compare("2B2S", "sync-1", ["cfs", "wash"], repeat=3)
    assert len(repr(result.runs[0].outcome)) < 200
    assert "sync-1" in repr(result.runs[0].outcome)


def test_low_representations_of_sweeps_are_short() -> None:
    result = ampsched.compare("2B2S", "sync-1", ["cfs", "wash"], repeat=3)
    assert repr(result) == "<Comparison of cfs, wash: 12 runs>"
    assert len(repr(result.runs[0])) < 300


class Broken(ampsched.Policy):
    """Fails when it is first asked."""

    def place(self, view: ampsched.View, thread: int) -> int:
        raise ZeroDivisionError("by nothing")


def test_low_exceptions_name_the_policy() -> None:
    with pytest.raises(ZeroDivisionError, match="by nothing") as caught:
        ampsched.compare("2B2S", "sync-1", ["cfs", Broken])
    assert caught.value.__notes__ == ["under policy Broken"]


def test_low_errors_of_a_batch_name_what_was_run(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("compare", "-m", "2B2S", "-w", "sync-1", "-p", "eevdf,cfs", "--limit-s", "0.0001")
    assert ended.code == 2
    assert "has not ended" in ended.err
    assert ended.err.endswith(" (alone, as the measure of what others add)\n")


# Named cores, stated durations

PINNED = """
[[threads]]
name = "t"
cores = [0]
body = [{ compute = 2e8, profile = "fft" }]
[[threads]]
name = "u"
body = [{ set_cores = [1] }, { compute = 2e8, profile = "fft" }]
"""
MACHINE = "exynos5422-2B2S"  # little cores first


def pinned(tmp_path: Path) -> Path:
    (tmp_path / "pinned.toml").write_text(PINNED)
    return tmp_path / "pinned.toml"


def test_m12_named_cores_are_the_same_in_every_order(tmp_path: Path) -> None:
    stated = ampsched.simulate(MACHINE, pinned(tmp_path), energy=True)
    assert all(thread.big_ns < 1e6 for thread in stated.threads)
    for order in ("big-first", "little-first"):
        outcome = ampsched.simulate(MACHINE, pinned(tmp_path), energy=True, core_order=order)  # type: ignore[arg-type]
        assert all(thread.big_ns < 1e6 for thread in outcome.threads)
        assert outcome.energy_j == pytest.approx(stated.energy_j, rel=1e-3)
    result = ampsched.compare(MACHINE, pinned(tmp_path), ["cfs"], energy=True, repeat=1)
    assert [run.core_order for run in result.runs] == ["big-first", "little-first"]
    assert [run.outcome.energy_j for run in result.runs] == pytest.approx([stated.energy_j] * 2, rel=1e-3)
    assert [run.metrics.antt for run in result.runs] == pytest.approx([1.0] * 2)


def test_m12_cores_of_rtapp_are_those_of_the_machine(tmp_path: Path) -> None:
    file = tmp_path / "pinned.json"
    file.write_text('{"tasks": {"t": {"cpus": [0], "loop": 5, "run": 1000}}}')
    result = ampsched.compare(MACHINE, file, ["cfs"], repeat=1)
    assert [sum(thread.big_ns for thread in run.outcome.threads) for run in result.runs] == [0, 0]


TIMED = '{"global": {"duration": 1}, "tasks": {"t": {"instance": 6, "loop": -1, "run": 1000, "sleep": 100}}}'


def test_m15_programs_that_time_stops_are_compared_by_their_work(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    file = tmp_path / "timed.json"
    file.write_text(TIMED)
    result = ampsched.compare("2B2S", file, ["cfs", "static"])
    assert result.timed("2B2S", "timed") == ["timed"]
    rows = result.summary()
    assert all(row.h_antt.mean == 1.0 for row in rows)
    assert rows[0].instructions.mean != rows[1].instructions.mean
    ended = ampsched_here("compare", "-m", "2B2S", "-w", str(file), "-p", "cfs,static")
    assert "1.000*" not in ended.out
    assert "10^9 instr." in ended.out
    assert "a duration stops timed under every policy: compare work done" in ended.out


def test_m15_a_program_that_ends_before_its_duration_is_compared_by_its_turnaround(tmp_path: Path) -> None:
    file = tmp_path / "short.json"
    file.write_text(TIMED.replace('"loop": -1', '"loop": 3'))
    result = ampsched.compare("2B2S", file, ["cfs", "static"])
    assert result.timed("2B2S", "short") == []
    assert result.caveats() == []
