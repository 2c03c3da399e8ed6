"""The command line: what it prints, and how it ends."""

import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ampsched, command_path

import ampsched
from ampsched.cli import app
from ampsched.cpus import allowed_cpus
from ampsched.governor import governors
from ampsched.policy import policies
from ampsched.registry import Registered

HUGE_TABLE = 80


def assert_fits(text: str) -> None:
    """No line of a table is wider than the terminal; lines of notes may be."""
    table = [line for line in text.splitlines() if "─" in line]
    assert table
    assert max(map(len, table)) <= HUGE_TABLE


def test_help_names_all_commands(ampsched_here: Ampsched) -> None:
    for arguments in ((), ("--help",), ("-h",)):
        ended = ampsched_here(*arguments)
        assert ended.code == 0
        for command in (
            "compare",
            "simulate",
            "list",
            "describe",
            "import-rtapp",
            "analytic",
            "reproduce",
            "live",
        ):
            assert f" {command} " in ended.out


@pytest.mark.parametrize("command", ["compare", "simulate", "list", "describe", "import-rtapp", "analytic"])
def test_help_has_examples(ampsched_here: Ampsched, command: str) -> None:
    ended = ampsched_here(command, "--help")
    assert ended.code == 0
    assert "Example" in ended.out
    assert f"ampsched {command}" in ended.out.split("Example")[1]


def test_version(ampsched_here: Ampsched) -> None:
    told = ampsched_here("--version").out
    assert re.fullmatch(r"ampsched (\S+) \((?:[0-9a-f]{7,40}, )?[\w-]+, \w+(?:-\w+)+\)\n", told)
    assert told.startswith(f"ampsched {ampsched.__version__} (")


WHAT = ["machines", "workloads", "programs", "policies", "governors", "profiles", "core-types"]


@pytest.mark.parametrize("what", WHAT)
def test_list(ampsched_here: Ampsched, what: str) -> None:
    ended = ampsched_here("list", what)
    assert ended.code == 0
    assert_fits(ended.out)
    rows = json.loads(ampsched_here("list", what, "--json").out)
    assert len(rows) >= 5
    shown = ended.out.replace("\n", "")
    for row in rows:
        assert row["name"] in shown
        assert row["description"]


def test_everything_listed_can_be_described(ampsched_here: Ampsched) -> None:
    kinds = {"machines": "machine", "programs": "program", "profiles": "profile", "core-types": "core_type"}
    for what, kind in kinds.items():
        for row in json.loads(ampsched_here("list", what, "--json").out):
            found = json.loads(ampsched_here("describe", row["name"], "--json").out)
            assert kind in [each["kind"] for each in found]


@pytest.mark.parametrize("info", [*policies(), *governors()], ids=lambda info: info.name)
def test_describe_policy_or_governor(ampsched_here: Ampsched, info: Registered) -> None:
    ended = ampsched_here("describe", info.name)
    assert ended.code == 0
    kind = "governor" if isinstance(info, ampsched.GovernorInfo) else "policy"
    assert ended.out.startswith(f"{kind} {info.name}: ")
    for word in ("Purpose", "Algorithm", "Constants", "Example", "Limits", "Source"):
        assert word in ended.out
    for param in info.params:
        assert param.name in ended.out


def test_compare_prints_what_python_computes(ampsched_here: Ampsched) -> None:
    arguments = ("compare", "-m", "2B2S", "-w", "sync-2", "-p", "cfs,colab:literal=1", "--repeat", "2")
    ended = ampsched_here(*arguments, "--details")
    assert ended.code == 0
    assert_fits(ended.out)
    rows = ampsched.compare("2B2S", "sync-2", ["cfs", "colab:literal=1"], repeat=2).summary()
    assert f"{rows[0].h_antt.mean:.3f}" in ended.out
    assert f"{100 * rows[1].h_antt_change.mean:+.1f} ±" in ended.out
    assert f"{rows[1].switches:,.0f}" in ended.out
    printed = json.loads(ampsched_here(*arguments, "--json").out)
    assert printed["summary"][1]["h_stp"]["mean"] == rows[1].h_stp.mean
    assert len(printed["runs"]) == 8
    assert {app["program"] for app in printed["runs"][0]["apps"]} == {"dedup", "fluidanimate"}


def test_best_policy_is_marked(ampsched_here: Ampsched) -> None:
    ended = ampsched_here("compare", "-m", "2B2S", "-w", "single-ferret", "-p", "static,colab")
    marked = [line.split()[0] for line in ended.out.splitlines() if "*" in line and "best" not in line]
    rows = ampsched.compare("2B2S", "single-ferret", ["static", "colab"]).summary()
    assert marked == [min(rows, key=lambda row: row.h_antt.mean).policy]


def test_compare_on_several_machines_and_workloads(ampsched_here: Ampsched) -> None:
    ended = ampsched_here(
        "compare", "-m", "2B2S,4B2S", "-w", "sync-1,fft", "-p", "cfs", "--core-order", "big-first"
    )
    titles = [line for line in ended.out.splitlines() if " on " in line and "over" not in line]
    assert titles == ["sync-1 on 2B2S", "fft on 2B2S", "sync-1 on 4B2S", "fft on 4B2S"]
    assert "core order big-first" in ended.out


def test_simulate(ampsched_here: Ampsched) -> None:
    arguments = ("simulate", "-m", "tensor", "-w", "sync-1", "-p", "eevdf", "--seed", "7", "--check")
    ended = ampsched_here(*arguments)
    assert ended.code == 0
    assert_fits(ended.out)
    assert "water_nsquared/worker.1" in ended.out
    printed = json.loads(ampsched_here(*arguments, "--json").out)
    assert printed == json.loads(json.dumps(ampsched.simulate("tensor", "sync-1", "eevdf", seed=7).to_dict()))


def test_traces_are_written_per_policy(ampsched_here: Ampsched, tmp_path: Path) -> None:
    trace = tmp_path / "out.pftrace"
    base = ("compare", "-m", "2B2S", "-w", "sync-1", "--trace", str(trace))
    assert "trace written to" in ampsched_here(*base, "-p", "cfs").out
    assert trace.stat().st_size > 1000
    printed = json.loads(ampsched_here(*base, "-p", "cfs,colab:literal=1", "--json").out)
    names = [Path(path).name for path in printed["traces"]]
    assert names == ["out.cfs.pftrace", "out.colab-literal-1.pftrace"]
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
    assert (tmp_path / names[0]).read_bytes() == trace.read_bytes()


def test_own_files(ampsched_here: Ampsched, tmp_path: Path) -> None:
    program = tmp_path / "mine.toml"
    program.write_text('[[threads]]\nname = "t"\nbody = [ { run_us = 2000, profile = "fft" } ]\n')
    workload = tmp_path / "w.toml"
    workload.write_text('[workloads.w]\napps = [{ program = "mine" }, { program = "two-threads" }]\n')
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", str(workload), "--file", str(program))
    assert ended.code == 0, ended.err
    assert "mine/t" in ended.out
    refused = ampsched_here("simulate", "-m", "2B2S", "-w", str(workload))
    assert refused.code == 2
    assert 'w.toml:2: workloads.w.apps[0].program: unknown program "mine"' in refused.err


def test_import_rtapp(ampsched_here: Ampsched, tmp_path: Path) -> None:
    file = tmp_path / "video.json"
    file.write_text(
        '{"tasks": {"decode": {"loop": 50, "run": 2000, "resume": "show", "timer": {"ref": "frame", "period": 16666}},'
        ' "show": {"loop": 50, "suspend": "show", "run": 1000}}, "global": {"ftrace": "main"}}'
    )
    ended = ampsched_here("import-rtapp", str(file))
    assert ended.code == 0, ended.err
    assert "thread decode" in ended.out
    assert "ftrace" in ended.out
    printed = json.loads(ampsched_here("import-rtapp", str(file), "--json").out)
    assert printed["threads"] == 2
    assert any("ftrace" in note for note in printed["notes"])
    outcome = json.loads(ampsched_here("simulate", "-m", "2B2S", "-w", str(file), "--json").out)
    assert 0.8e9 < outcome["makespan_ns"] < 0.9e9


def test_process_ends_with_code_2_and_one_line(ampsched_process: Ampsched) -> None:
    ended = ampsched_process("compare", "-m", "2B2S", "-w", "sync-2", "-p", "cfs,colap")
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err == 'error: unknown policy "colap" (did you mean "colab"?)\n'


def test_python_dash_m(ampsched_process: Ampsched) -> None:
    assert ampsched_process("list", "policies").out.startswith("policies")


def test_low_reader_that_leaves_early_gets_no_traceback(tmp_path: Path) -> None:
    import subprocess

    command = f"{command_path()} list profiles --json | head -1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ended.stdout == "[\n"
    assert ended.stderr == ""


def test_h34_a_file_whose_reader_has_left_is_named(ampsched_here: Ampsched, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    os.mkfifo(page)
    reader = threading.Thread(target=lambda: page.open("rb").close(), daemon=True)
    reader.start()
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", "sync-1", "-p", "cfs", "--html", str(page))
    assert (ended.code, ended.err) == (2, f"error: {page}: Broken pipe\n")


def test_h34_a_kernel_that_names_no_cpus_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_is_enough(_: int) -> set[int]:
        raise OverflowError("could not allocate a large enough CPU set")

    monkeypatch.setattr(os, "sched_getaffinity", none_is_enough)
    with pytest.raises(OSError, match="does not say which CPUs"):
        allowed_cpus()


def test_shell_completion(ampsched_process: Ampsched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AMPSCHED_COMPLETE", "complete_bash")
    for words, wanted in {
        "ampsched comp": "compare",
        "ampsched compare --policy cfs,eev": "cfs,eevdf",
        "ampsched describe exynos5422-": "exynos5422-2B2S",
        "ampsched compare -w nsync-": "nsync-3",
        "ampsched analytic -w W1,W": "W1,W9",
        "ampsched analytic -p opt-u": "opt-unfairness",
    }.items():
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert wanted in ampsched_process().out.split()


class PanicException(BaseException):
    """What a library written in Rust raises where it gives up."""


def given_up(module: str) -> None:
    """Gives up in a module of that name."""
    exec("raise PanicException('no thread')", {"__name__": module, "PanicException": PanicException})


@pytest.mark.parametrize(
    ("what", "code", "says"),
    [
        (lambda: given_up("polars.frame"), 2, "error: polars cannot work here: no thread\n"),
        (lambda: __import__("polars.missing"), 2, "error: polars.missing cannot be loaded"),
        (lambda: Path("x" * 300).write_text(""), 2, "error: xxx"),
        (lambda: raised(BrokenPipeError(32, "Broken pipe", "out.csv")), 2, "error: out.csv: Broken pipe\n"),
        (lambda: raised(BrokenPipeError(32, "Broken pipe")), 1, ""),
        (
            lambda: raised(RuntimeError("can't start new thread")),
            2,
            "error: can't start new thread: no memory",
        ),
    ],
)
def test_h34_what_libraries_and_the_system_refuse_is_one_line(
    what: Callable[[], object],
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(app, "_command", lambda _: what())
    monkeypatch.setattr(app, "_discard_output", lambda: None)
    with pytest.raises(SystemExit) as ended:
        app.main([])
    said = capsys.readouterr().err
    assert ended.value.code == code
    assert said.startswith(says)
    assert said.count("\n") == bool(says)


def raised(error: Exception) -> None:
    """Raises it."""
    raise error


def test_h34_a_panic_of_our_own_is_none_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_command", lambda _: given_up("ampsched.api"))
    with pytest.raises(PanicException):
        app.main([])
