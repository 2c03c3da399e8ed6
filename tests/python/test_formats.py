"""Tables never lie: at any width every label and number of the JSON that a table claims to show is there, whole."""

import fcntl
import io
import json
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import ROOT, has
from typer.core import TyperGroup
from typer.main import get_command

from ampsched import Catalog, api
from ampsched.calibration import calibrate
from ampsched.cli import checking, living, main, render
from ampsched.cli.app import app
from ampsched.comparison import time_text
from ampsched.docs import commands
from ampsched.live import LiveComparison, LiveRun, Mix, MixProgram
from ampsched.metrics import mix_metrics
from ampsched.proving import selftest
from ampsched.proving.measuring import Measured
from ampsched.proving.report import Proof
from ampsched.recording import advice, summary
from ampsched.recording.cores import Cores
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate
from ampsched.training import train

WIDTHS = (60, 80, 120, None)
"""Columns of the terminal; none: a pipe."""
RECORDING = str(ROOT / "docs/reports/recordings/exact/barriers-uneven.ampr")
TRACE = str(ROOT / "crates/recording/tests/samples/trace-7.dat")


Shown = Iterator[str]
"""Texts that must be there, each as often as it is named."""


@dataclass(frozen=True)
class Case:
    """How a command is called, and what of its JSON its text claims to show."""

    arguments: Sequence[str]
    shown: Callable[[Any], Shown]


def estimate(value: Mapping[str, float]) -> Estimate:
    return Estimate(value["mean"], value["low"], value["high"], int(value["n"]))


def changed(value: Mapping[str, float]) -> str:
    return render.change(estimate(value), lower_is_better=True).plain


def listed(rows: Sequence[Mapping[str, str]]) -> Shown:
    for row in rows:
        yield row["name"]
        for key in set(row) - {"name"}:
            yield from row[key].split()


def compared(told: Mapping[str, Any]) -> Shown:
    policies = told["policies"]
    for number, row in enumerate(told["summary"]):
        yield from (
            row["policy"],
            render.fixed(row["h_antt"]["mean"], 3),
            render.fixed(row["h_stp"]["mean"], 3),
        )
        yield render.milliseconds(row["makespan_ms"]["mean"] * 1e6)
        if number % len(policies):
            yield from (
                changed(row["h_antt_change"]),
                changed(row["h_stp_change"]),
                changed(row["energy_change"]),
            )
        yield from (render.fixed(row["energy_j"]["mean"], 3), render.fixed(row["edp_js"]["mean"], 3))
        yield from map(render.count, (row["switches"], row["migrations"]))
        yield render.share(row["utilisation"])
        yield from (render.fixed(row["unfairness"], 2), render.fixed(row["uniformity"], 3))
    yield from (app["app"] for app in told["runs"][0]["apps"])
    for policy in policies:
        runs = [run["apps"] for run in told["runs"] if run["policy"] == policy]
        for apps in zip(*runs, strict=True):
            yield render.fixed(math.fsum(app["h_ntt"] for app in apps) / len(apps), 2)
    yield from (word for note in told["notes"] for word in note.split())


def simulated(told: Mapping[str, Any]) -> Shown:
    yield from (told["workload"], told["machine"], told["policy"])
    for row in told["apps"]:
        yield from (row["name"], str(row["threads"]), render.milliseconds(row["turnaround_ns"]))
    for thread in told["threads"]:
        yield f"{told['apps'][thread['app']]['name']}/{thread['name']}"
        waits_ns = (thread[key] for key in ("ready_ns", "blocked_ns", "blame_ns"))
        yield from map(render.milliseconds, (*thread["class_ns"], *waits_ns))
        yield from (render.count(thread[key]) for key in ("switches", "migrations"))
    for number, core in enumerate(told["cores"]):
        all_ns = core["busy_ns"] + core["idle_ns"] + core["noise_ns"]
        yield from (str(number), render.share(core["busy_ns"] / all_ns), render.count(core["switches"]))
    for cluster in told["clusters"]:
        yield cluster["name"]
        yield from (
            render.thousands(cluster["energy"][key] / 1e3) for key in ("running_uj", "idle_uj", "uncore_uj")
        )
    yield from (render.count(told["counts"][key]) for key in ("switches", "migrations", "wakeups"))


def analysed(told: Mapping[str, Any]) -> Shown:
    for mix in told["mixes"]:
        yield mix["name"]
        yield from (f"{each:g}" for each in mix["speedups"])
        for row in mix["policies"]:
            yield row["policy"]
            for key in ("fast_shares", "instruction_shares", "slowdowns"):
                yield from (render.fixed(value, 3) for value in row[key])
            yield from (render.fixed(row["asp"], 4), render.fixed(row["unfairness"], 4))


def ran(told: Sequence[Mapping[str, Any]]) -> Shown:
    for row in told:
        yield from (row["policy"], render.thousands(row["makespan_s"], 4))
        yield render.percent(row["makespan_s"] / told[0]["makespan_s"] - 1)
        yield render.fixed(100 * (row["makespan_s"] / row["lower_bound_s"] - 1), 2)
    yield render.thousands(told[0]["lower_bound_s"], 4)


def scheduled(told: Mapping[str, Any]) -> Shown:
    yield from (told["policy"], render.fixed(told["makespan_s"], 4))
    for worker, share in enumerate(told["utilisation"]):
        yield from (str(worker), render.share(share))


def drawn(told: Mapping[str, Any]) -> Shown:
    yield from map(str, (told["name"], render.count(told["tasks"]), render.count(told["links"])))
    for row in told["kinds"]:
        yield from (row["kind"], render.count(row["tasks"]), f"{row['work']:,.6g}")
        yield render.share(row["work"] / told["work"])


def imported(told: Mapping[str, Any]) -> Shown:
    for row in told["threads"][: summary.THREADS_MAX]:
        yield from (row["name"], row["process"]) if isinstance(row["process"], str) else (row["name"],)
        yield from (render.count(row[key]) for key in ("threads", "events"))
        yield from (render.milliseconds(row[key]) for key in ("cpu_ns", "work_ns", "blocked_ns"))
    for row in told["wake_ups"][: summary.PAIRS_MAX]:
        yield from (
            row["waker"],
            row["woken"],
            render.count(row["count"]),
            render.milliseconds(row["wait_ns"]),
        )


def lifted(told: Mapping[str, Any]) -> Shown:
    for row in told["report"]["groups"]:
        yield from (
            row["name"],
            str(row["threads"]),
            *row["count"].split(),
            f"{row['recorded_ns'] / 1e6:.4g}",
        )
    for row in told["report"]["objects"]:
        yield from (row["name"], row["kind"], *row["was"].split())


def advised(told: Mapping[str, Any]) -> Shown:
    yield from (told["program"], told["baseline"], *time_text(1e3 * told["baseline_s"]).split())
    (row,) = (row for row in told["settings"] if row["is_advised"])
    assert row["name"] == told["advised"]
    yield from (*row["name"].split(), *time_text(1e3 * row["time_s"]).split())


def explained(told: Mapping[str, Any]) -> Shown:
    yield from told["summary"].split()
    for event in told["events"]:
        yield from (render.fixed(event["at_ns"] / 1e6, 3), *event["sentence"].split())


def measured(told: Mapping[str, Any]) -> Shown:
    yield from told["kinds"]
    for row in told["speeds"]:
        yield from (row["kernel"], render.thousands(row["rounds_per_s"] / 1e6))


def trained(told: Mapping[str, Any]) -> Shown:
    for model in told["models"]:
        yield model["core_type"]
        errors = model["errors"]
        yield from errors["method"].split()
        rows = {"model": errors["leave_one_program_out"]}
        rows |= {key: value for key, value in errors.items() if key.startswith("baseline_")}
        for name, found in rows.items():
            yield name.removeprefix("baseline_")
            # Four decimals are in the file: what is rounded from them may differ in the last digit shown.
            yield from (render.share(found["worst"], 0), render.share(found["labels"], 0))


def lived(told: Mapping[str, Any]) -> Shown:
    for number, row in enumerate(told["summary"]):
        yield row["policy"]
        yield from (render.interval(estimate(row[key]), 3) for key in ("h_antt", "h_stp"))
        yield from (
            render.interval(estimate(row[key]), 2) for key in ("makespan_s", "unfairness", "uniformity")
        )
        yield render.share(row["overhead"])
        if number:
            yield from (changed(row["h_antt_change"]), changed(row["h_stp_change"]))


def imported_counters(told: Mapping[str, Any]) -> Shown:
    yield from map(str, (told["rows"], told["counters"], told["windows"], told["written"]))


def self_tested(told: Mapping[str, Any]) -> Shown:
    for row in told["rows"]:
        yield row["program"]
        yield from row["setting"].split()
        yield from (f"{row[key]:+.1%}" for key in ("predicted", "error"))
        yield str(row["pairs"])
    yield from (f"{told['mean']:.1%}", f"{told['shipped']:.1%}")


def limited(told: Mapping[str, Any]) -> Shown:
    bound = told["limit"]
    yield from (
        render.fixed(value, 3) for value in (bound["h_antt"], bound["h_stp"], bound["makespan_ns"] / 1e6)
    )
    for row in told["policies"]:
        yield row["policy"]
        yield from (render.fixed(row[key]["mean"], 3) for key in ("h_antt", "h_stp", "makespan_ms"))
        yield from map(render.share, row["distance"].values())


def swept(told: Mapping[str, Any]) -> Shown:
    for row in told["summary"]:
        yield from (row["policy"], render.significant(row["h_antt"]))
        if row["policy"] != told["baseline"]:
            values = (row[f"h_antt_change{end}"] for end in ("", "_low", "_high"))
            yield render.change(Estimate(*values, row["n"]), lower_is_better=True).plain


def checked(told: Mapping[str, Any]) -> Shown:
    for name, value in told["metrics"].items():
        if value is not None and "." not in name:
            yield from (name, checking.number(value))
    for thread in told["threads"][: checking.THREADS_MAX]:
        yield f"{thread['name']} {thread['tid']}".split()[-1]
        yield from (render.count(thread[key]) for key in ("switches", "migrations", "preemptions"))
    for text in told["unknown"]:
        yield from text.split()


CASES: dict[str, Case] = {
    "advise": Case([RECORDING, "-m", "2B2S", "-p", "linux,acfs,colab", "-r", "2"], advised),
    "compare": Case(
        [
            "-m",
            "pixel",
            "-w",
            "sync-2",
            "-p",
            "linux,wash,colab:literal=1:decay=0.8",
            "--repeat",
            "2",
            "--energy",
            "--details",
        ],
        compared,
    ),
    "simulate": Case(["-m", "pixel", "-w", "sync-2", "-p", "wash", "--energy"], simulated),
    "explain": Case(["-m", "2B2S", "-w", "sync-2", "-p", "colab", "--thread", "0", "--at", "20"], explained),
    "list": Case(["machines"], listed),
    "limit": Case(["-m", "2B2S", "-w", "sync-2", "-p", "linux,wash,colab:literal=1"], limited),
    "sweep": Case(["-m", "2B2S", "-w", "sync-2", "-p", "linux,colab:decay=0.5..1.0:3", "-r", "2"], swept),
    "describe": Case(["2B2S"], lambda told: (word for row in told for word in row["text"].split())),
    "check": Case([TRACE, "-m", "4B4S"], checked),
    "import": Case([TRACE, "--command", "prog"], imported),
    "import-rtapp": Case(["rt.json"], lambda told: iter(told["text"].split())),
    "lift": Case([RECORDING], lifted),
    "analytic": Case(["-w", "W1,W6"], analysed),
    "counters import": Case(
        ["perf.csv", "--from", "perf", "--program", "p", "--core-type", "t", "-o", "c.parquet"],
        imported_counters,
    ),
    "counters list": Case([], listed),
    "calibrate": Case(["--window-ms", "0.1", "--windows", "1"], measured),
    "selftest": Case(["--quick"], self_tested),
    "train": Case(["-m", "2B2S", "-k", "2"], trained),
    "tasks run": Case(["fluidanimate:frames=2", "-w", "4xbig,4xlittle", "-p", "fifo,cats:steal=1,heft"], ran),
    "tasks schedule": Case(["fluidanimate:frames=2", "-w", "4xbig,4xlittle", "-p", "heft"], scheduled),
    "tasks draw": Case(["run.csv"], scheduled),
    "tasks describe": Case(["ferret"], drawn),
    "live compare": Case(["mix.toml"], lived),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of all cases, in a process that measures no real programs and boots no machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    cases = (ROOT / "crates/model/tests/rtapp/good.cases").read_text()
    Path("rt.json").write_text(cases.partition("\n")[2].partition("--- expected\n")[0])
    Path("perf.csv").write_text("1.0,100,,cycles,1,100.00,,\n1.0,50,,instructions,1,100.00,,\n")
    Path("run.csv").write_text(RUN)
    Path("mix.toml").write_text("[[programs]]\ncommand = 'true'\n")
    for module, function in SLOW:
        monkeypatch.setattr(module, function, first_answer(getattr(module, function)))
    setting, change = Setting(cores=Cores("the big cores", (0, 1))), Estimate(-0.2, -0.22, -0.18, 8)
    measured = Measured(change, None, 1.0, 0.8, 8, 20.0, True, 0.02, 1)
    proof = Proof("threads", "queue", setting, -0.25, (-0.4, 0.1), measured)
    monkeypatch.setattr(selftest, "selftest", lambda **_: selftest.Selftest((proof,), (), "no meter"))
    monkeypatch.setattr(living, "compare_live", lambda *_, **__: live_comparison())
    return tmp_path


SLOW = (
    (calibrate, "calibrate"),
    (train, "train"),
    (api, "compare"),
    (advice, "advise"),
)
"""What is asked once in a test, and answers the same to all further calls: it takes long, or measures."""


def first_answer(function: Callable[..., Any]) -> Callable[..., Any]:
    found: list[Any] = []

    def answer(*arguments: object, **named: object) -> object:
        if not found:
            found.append(function(*arguments, **named))
        return found[0]

    return answer


RUN = """\
# workers big:2.5x1,little:1x1
task,kind,worker,start_s,end_s,after
a,POTRF,0,0,0.002,
"b, c",TRSM,1,0.0021,0.006,a
"""


def live_comparison() -> LiveComparison:
    mix = Mix("m", (MixProgram("first", ("a",)), MixProgram("second-program", ("b",))))

    def run(policy: str, number: int, times_s: tuple[float, float]) -> LiveRun:
        return LiveRun(
            policy, number, times_s, mix_metrics([round(1e9 * each) for each in times_s], [10**9, 10**9])
        )

    times_s = {"default": (2.0, 4.0), "scx_bpfland": (1.5, 1.75)}
    runs = [
        run(policy, number, (first + 0.1 * number, second))
        for policy, (first, second) in times_s.items()
        for number in range(3)
    ]
    return LiveComparison(mix, tuple(times_s), (1.0, 1.0), (0,), tuple(runs))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    captured = capsys.readouterr()
    assert ended.value.code == 0, captured.err
    return captured.out


def test_every_command_that_knows_formats_is_tested() -> None:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    with_format = {
        name
        for name, command in commands(root)
        if any("--format" in parameter.opts for parameter in command.params)
    }
    assert with_format == set(CASES)
    with_json = {
        name
        for name, command in commands(root)
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert with_json == with_format, "one option, declared once"


@pytest.mark.parametrize("name", CASES)
def test_text_has_every_label_and_number_of_the_json(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    command = [*name.split(), *case.arguments]
    wanted = Counter(case.shown(json.loads(said(capsys, *command, "--json"))))
    assert wanted, "the case claims to show nothing"
    for width in WIDTHS:
        if width is None:
            monkeypatch.delenv("COLUMNS", raising=False)
        else:
            monkeypatch.setenv("COLUMNS", str(width))
        text = said(capsys, *command)
        missing = [word for word, count in wanted.items() if not has(text, word, count)]
        assert not missing, f"at {width} columns\n{text}"
        assert "…" not in text


@pytest.mark.parametrize("name", CASES)
def test_csv_has_a_line_per_row_and_markdown_its_tables(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*name.split(), *CASES[name].arguments]
    told = said(capsys, *command, "--format", "csv")
    frame = pl.read_csv(io.StringIO(told), infer_schema_length=None)
    assert frame.height >= 1
    assert all(kind not in (pl.List, pl.Struct) for kind in frame.dtypes)
    text = said(capsys, *command, "--format", "markdown")
    assert not re.search(r"\x1b|─|█", text)
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|"), line


HELP = [[], *(name.split() for name in CASES), ["tasks", "convert"], ["vm", "run"], ["record"]]


@pytest.mark.parametrize("command", HELP, ids=" ".join)
def test_help_is_whole_in_narrow_terminals(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = said(capsys, *command, "--help")
    assert "Usage: ampsched" in text
    assert "…" not in text


def test_formats_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["list", "machines", "--json", "--format", "csv"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: --json and --format csv exclude each other\n"


def test_a_real_terminal_is_as_wide_as_it_says(folder: Path) -> None:
    """A pseudo terminal of 60 columns, without COLUMNS."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    command = [sys.executable, "-m", "ampsched", "list", "machines"]
    with subprocess.Popen(command, env=environment, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        text = b"".join(iter(partial(_read, master), b"")).decode()
    assert process.returncode == 0
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    assert 50 < max(map(len, lines)) <= 60
    assert "…" not in text
    assert all(has(text, entry.name) for entry in Catalog.shipped().entries("machine"))


def test_a_terminal_of_ascii_gets_no_other_characters(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "ampsched",
        "compare",
        "-m",
        "2B2S",
        "-w",
        "sync-2",
        "-p",
        "cfs,wash",
        "-r",
        "2",
    ]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    ended = subprocess.run(command, env=environment, capture_output=True, check=True)
    text = ended.stdout.decode("ascii")
    assert " +-" in text
    assert "?" not in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody has the other end any more
        return b""
