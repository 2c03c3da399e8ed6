"""Other tools' traces as recordings, from the command line and from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ampsched
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

from ampsched import InputError
from ampsched._core import work_ns
from ampsched.catalog import Catalog
from ampsched.recording import Recording, load, summary
from ampsched.recording.imports import FORMS, import_file

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "crates/recording/tests/samples"
RECORDINGS = ROOT / "lab/calibration/recordings"
S, R, X = 1, 0, 16


def test_a_trace_becomes_a_file_with_what_it_tells(ampsched_here: Ampsched, tmp_path: Path) -> None:
    out = tmp_path / "prog.ampr"
    arguments = (
        "import",
        str(SAMPLES / "trace-7.dat"),
        "--command",
        "prog",
        "--speeds",
        "1,0.5",
        "-o",
        str(out),
    )
    ended = ampsched_here(*arguments)
    assert ended.code == 0, ended.err
    assert "worker" in ended.out
    assert "cause known of 100.0%" in ended.out
    recording = load(out)
    assert [name for name, *_ in recording.threads] == ["prog", "worker", "child"]
    assert [core["speed"] for core in json.loads(recording.info)["cores"]] == [1.0, 0.5]
    told = json.loads(ampsched_here(*arguments[:-2], "--json").out)
    assert told["recorder"] == "trace-cmd"
    assert sum(row["threads"] for row in told["threads"]) == 3


def test_what_is_wrong_is_one_line(ampsched_here: Ampsched, tmp_path: Path) -> None:
    sample = str(SAMPLES / "ftrace.txt")
    for arguments, text in {
        ("none.dat",): "none.dat: cannot be read: No such file",
        (str(SAMPLES / "prog.c"),): "is no trace of a form that is read",
        (sample, "--command", "nobody"): "has no thread of nobody",
        (sample, "--speeds", "1,x"): "is no list of numbers",
        (sample, "--speeds", "1"): "1 speeds for 2 cores",
    }.items():
        ended = ampsched_here("import", *arguments)
        assert ended.code == 2
        assert text in ended.err
        assert ended.err.count("\n") == 1


def test_threads_keep_what_stands_beside_a_trace(ampsched_here: Ampsched, tmp_path: Path) -> None:
    sample, side = str(SAMPLES / "cgroups.txt"), SAMPLES / "cgroups.side"
    ended = ampsched_here("import", sample, "--cgroups", str(side))
    assert ended.code == 0, ended.err
    assert "/background" in ended.out
    assert "uclamp_max" in ended.out
    windows = tmp_path / "windows.txt"
    windows.write_text(side.read_text(), encoding="utf-16")
    names = tmp_path / "names.txt"
    names.write_bytes(b"/dev/cpuset/\xff\xfe/cpus:0\n" + side.read_bytes().replace(b"\n", b"\r\n"))
    found = [import_file(SAMPLES / "cgroups.txt", cgroups=path) for path in (side, windows, names)]
    assert found[0].asks == found[1].asks == found[2].asks
    assert ("rr", "/top-app", "4-7", 100, None) in found[0].asks
    rows = {row.group: row for row in summary.asks(found[0]) if row.cpus == "0-3"}
    assert rows["/background"].threads == 2
    for text, message in {
        "": "is empty",
        "hello": "has no line of a control group or a thread (PATH:VALUE)",
        "/dev/cpuset/a/cpus:x": "no line can be read; line 1: /dev/cpuset/a/cpus:x",
    }.items():
        side = tmp_path / "bad.txt"
        side.write_text(text)
        ended = ampsched_here("import", sample, "--cgroups", str(side))
        assert ended.code == 2
        assert message in ended.err
    recorded = ampsched_here("import", str(RECORDINGS / "fft.npz.zst"), "--cgroups", str(windows))
    assert recorded.code == 2
    assert "has no numbers of threads" in recorded.err


def test_columns_of_numpy_have_their_name_and_no_recorder_in_them() -> None:
    for name in ("fft", "lu_cb", "bodytrack"):
        recording = import_file(RECORDINGS / f"{name}.npz.zst")
        beside = json.loads((RECORDINGS / f"{name}.json").read_text())
        assert json.loads(recording.info)["name"] == name
        assert len(recording.threads) == beside["threads"]
        cpu_s = sum(cpu_ns for *_, cpu_ns, _ in recording.threads) / 1e9
        assert cpu_s == pytest.approx(beside["cpu_s"], rel=0.05)


Add = Callable[[int, int, int, "object"], None]


def _events() -> list[tuple[int, int, int, tuple[object, ...]]]:
    """Two threads of a process that wake each other ten times on two cores: time, core, thread, event."""
    rows: list[tuple[int, int, int, tuple[object, ...]]] = [
        (0, 0, 10, ("new", 11, 0x10000)),
        (1000, 1, 0, ("switch", 0, R, 11)),
    ]
    for turn in range(10):
        at = 10_000 + 10_000 * turn
        rows += [
            (at, 1, 11, ("switch", 11, S, 0)),
            (at + 4000, 0, 10, ("waking", 11)),
            (at + 6000, 1, 0, ("switch", 0, R, 11)),
        ]
    return [*rows, (200_000, 1, 11, ("switch", 11, X, 0)), (210_000, 0, 10, ("switch", 10, X, 0))]


NAMES = {0: "swapper", 10: "alpha", 11: "beta"}


def _fill(bundle: proto.FtraceEventBundle, core: int) -> None:
    for at, cpu, tid, what in _events():
        if cpu != core:
            continue
        event = bundle.event.add(timestamp=at, pid=tid, common_flags=0)
        if what[0] == "switch":
            _, before, state, after = what
            switch = event.sched_switch
            switch.prev_pid, switch.prev_state, switch.next_pid = before, state, after
            switch.prev_comm, switch.next_comm = NAMES[before], NAMES[after]
        elif what[0] == "waking":
            event.sched_waking.pid, event.sched_waking.comm = what[1], NAMES[what[1]]
        else:
            event.task_newtask.pid, event.task_newtask.clone_flags = what[1], what[2]
            event.task_newtask.comm = "alpha"


def _fill_compact(bundle: proto.FtraceEventBundle, core: int) -> None:
    compact = bundle.compact_sched
    compact.intern_table.extend(["swapper", "alpha", "beta"])
    index = {0: 0, 10: 1, 11: 2}
    last = {"switch": 0, "waking": 0}
    for at, cpu, tid, what in _events():
        if cpu != core:
            continue
        if what[0] == "new":
            event = bundle.event.add(timestamp=at, pid=tid, common_flags=0)
            event.task_newtask.pid, event.task_newtask.clone_flags = what[1], what[2]
            continue
        since, last[what[0]] = at - last[what[0]], at
        if what[0] == "switch":
            compact.switch_timestamp.append(since)
            compact.switch_prev_state.append(what[2])
            compact.switch_next_pid.append(what[3])
            compact.switch_next_prio.append(120)
            compact.switch_next_comm_index.append(index[what[3]])
        else:
            compact.waking_timestamp.append(since)
            compact.waking_pid.append(what[1])
            compact.waking_target_cpu.append(1)
            compact.waking_prio.append(120)
            compact.waking_comm_index.append(index[what[1]])
            compact.waking_common_flags.append(0)


def _perfetto(path: Path, fill: Callable[[proto.FtraceEventBundle, int], None]) -> Recording:
    trace = proto.Trace()
    tree = trace.packet.add().process_tree
    tree.processes.add(pid=10, ppid=1, cmdline=["/usr/bin/alpha"])
    tree.threads.add(tid=11, tgid=10, name="beta")
    for core in (0, 1):
        bundle = trace.packet.add().ftrace_events
        bundle.cpu = core
        fill(bundle, core)
    path.write_bytes(trace.SerializeToString())
    return import_file(path, speeds=[1.0, 0.5])


@pytest.mark.parametrize("fill", [_fill, _fill_compact])
def test_perfetto(tmp_path: Path, fill: Callable[[proto.FtraceEventBundle, int], None]) -> None:
    recording = _perfetto(tmp_path / "x.pftrace", fill)
    assert json.loads(recording.info)["recorder"] == "perfetto"
    rows = {name: (process, cpu_ns, wait_ns) for name, process, _, cpu_ns, wait_ns in recording.threads}
    # Of 210 us alpha has all; beta is blocked 4 us ten times, and waits 2 us for its core.
    assert rows == {"alpha": (0, 210_000, 0), "beta": (0, 199_000 - 60_000, 40_000)}
    assert summary.pairs(recording) == [("alpha", "beta", 10, 40_000)]


def _clocked(path: Path) -> Path:
    """A thread of nice 10 that runs for 10 ms on core 1, whose clock is 2 GHz, then 1 GHz after 4 ms."""
    trace = proto.Trace()
    bundle = trace.packet.add().ftrace_events
    bundle.cpu = 1
    for at_ms, khz in ((0, 2_000_000), (4, 1_000_000)):
        event = bundle.event.add(timestamp=at_ms * 1_000_000, pid=0)
        event.cpu_frequency.state, event.cpu_frequency.cpu_id = khz, 1
    for at_ms, before, after in ((0, 0, 7), (10, 7, 0)):
        event = bundle.event.add(timestamp=at_ms * 1_000_000, pid=before)
        switch = event.sched_switch
        switch.prev_pid, switch.prev_state, switch.next_pid = before, S, after
        switch.prev_comm = switch.next_comm = "alpha"
        switch.prev_prio = switch.next_prio = 130
    limits = bundle.event.add(timestamp=11_000_000, pid=0).cpu_frequency_limits
    limits.min_freq, limits.max_freq, limits.cpu_id = 500_000, 2_500_000, 1
    boost = bundle.event.add(timestamp=11_000_000, pid=0).sched_pi_setprio
    boost.pid, boost.oldprio, boost.newprio = 7, 130, 49
    path.write_bytes(trace.SerializeToString())
    return path


DUO = """
name = "duo"
clusters = [
  { name = "big", core_type = "cortex-a57", cores = [1], class = 1, opps = [{ mhz = 1000 }, { mhz = 4000 }] },
  { name = "little", core_type = "cortex-a53", cores = [0], class = 0, opps = [{ mhz = 1000 }] },
]
[costs]
context_switch_ns = 2000
migrate_same_cluster_ns = 5000
migrate_cross_cluster_ns = 15000
wakeup_latency_ns = 4000
"""


def test_work_is_at_the_clock_of_the_moment(ampsched_here: Ampsched, tmp_path: Path) -> None:
    path = _clocked(tmp_path / "x.pftrace")
    (tmp_path / "duo.toml").write_text(DUO)
    duo = Catalog.shipped().machine(tmp_path / "duo.toml")
    (work,) = work_ns(import_file(path))
    # The highest clock that the trace names is a limit of 2.5 GHz.
    assert work == pytest.approx((4 * 2 + 6) / 2.5 * 1e6)
    found = import_file(path, traced=duo)
    assert work_ns(found) == pytest.approx([(4 * 2 + 6) / 4 * 1e6])
    cores = json.loads(found.info)["cores"]
    assert [core["kind"] for core in cores] == ["cortex-a53", "cortex-a57"]
    assert cores[1]["speed"] == 1
    assert cores[0]["speed"] == pytest.approx(duo.energy_model(1)[0][1] / 1024, rel=1e-5)
    # If core 1 is the little one, it never ran at its highest clock of 1 GHz.
    (work,) = work_ns(import_file(path, traced=duo, cpus="big=0 little=1"))
    assert work == pytest.approx((4 * 2 + 6) * cores[0]["speed"] * 1e6, rel=1e-4)
    ended = ampsched_here("import", str(path), "-m", str(tmp_path / "duo.toml"), "--cpus", "big=0 little=1")
    assert ended.code == 0
    assert "unknown: why core 1 had clocks above the machine's highest" in ended.out


def test_what_is_wrong_with_a_machine_is_one_line(ampsched_here: Ampsched, tmp_path: Path) -> None:
    trace = str(_clocked(tmp_path / "x.pftrace"))
    (tmp_path / "duo.toml").write_text(DUO)
    duo = ("--machine", str(tmp_path / "duo.toml"))
    for arguments, text in {
        ("--machine", "nothing"): 'unknown machine "nothing"',
        (*duo, "--speeds", "1,1"): "state either --machine or --speeds",
        ("--cpus", "big=1"): "state it, too (--machine)",
        (*duo, "--cpus", "big"): '"big" is no CLUSTER=CPUS',
        (*duo, "--cpus", "bog=1 little=0"): 'unknown cluster of duo "bog" (known: big, little)',
        (*duo, "--cpus", "big=1 little=x"): "--cpus little",
        (*duo, "--cpus", "big=0,1 little=0"): "CPU 0 is of two clusters",
        (*duo, "--cpus", "big=0,1"): "2 CPUs of big, duo has 1 such cores",
        (*duo, "--cpus", "big=0 little=7"): "CPU 1 is of no cluster",
        ("--machine", "duo:little=0"): "unknown machine",
        ("--machine", f"{duo[1]}:little=0"): "has 2 cores, the machine 1",
    }.items():
        ended = ampsched_here("import", trace, *arguments)
        assert ended.code == 2, arguments
        assert text in ended.err, (text, ended.err)
        assert ended.err.count("\n") == 1
    columns = str(RECORDINGS / "fft.npz.zst")
    ended = ampsched_here("import", columns, *duo)
    assert ended.code == 2
    assert "tells no clocks" in ended.err


def test_a_trace_of_a_simulation_says_that_it_has_no_kernel(tmp_path: Path) -> None:
    trace = proto.Trace()
    trace.packet.add(timestamp=1).track_event.track_uuid = 1
    path = tmp_path / "x.pftrace"
    path.write_bytes(trace.SerializeToString())
    with pytest.raises(InputError, match="1 track events, as traces of simulations have"):
        import_file(path)


def test_forms_are_those_of_the_page() -> None:
    page = (ROOT / "docs/reference/imports.md").read_text("utf-8")
    for name in FORMS:
        assert f"`{name}`" in page
