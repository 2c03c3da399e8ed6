"""What traces say of the schedulers that made them: ``ampsched check`` and ``ampsched explain TRACE``."""

import json
from pathlib import Path

import pytest
from conftest import Ampsched

from ampsched import InputError
from ampsched.catalog import Catalog
from ampsched.recording.around import Placed, around, generation, matched, simulated
from ampsched.recording.imports import import_file
from ampsched.recording.observed import observe
from ampsched.recording.trace_metrics import CLUSTER_METRICS, METRICS, culprits, limits, metrics

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "crates/recording/tests/samples"
MACHINE = "exynos5422:little=1:big=1"
MS = 1_000_000
SWITCHES = (
    # ms, CPU, who leaves in which state, who comes
    (0, 0, "swapper/0 0 R", "a 10"),
    (0, 1, "swapper/1 0 R", "b 20"),
    (15, 0, "a 10 R+", "c 30"),
    (20, 1, "b 20 S", "swapper/1 0"),
    (25, 0, "c 30 S", "a 10"),
    (40, 0, "a 10 R", "swapper/0 0"),
    (40.5, 1, "swapper/1 0 R", "a 10"),
    (100, 1, "a 10 S", "swapper/1 0"),
)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 ms of three threads on a little and a big core."""
    lines = [
        (10, "b-20 [001] d..2. 1.010000: sched_waking: comm=c pid=30 prio=120 target_cpu=000"),
    ]
    for ms, cpu, leaves, comes in SWITCHES:
        (left, tid, state), (name, to) = leaves.split(), comes.split()
        lines.append(
            (
                ms,
                f"{left}-{tid} [{cpu:03}] d..2. {1 + ms / 1e3:.6f}: sched_switch: prev_comm={left} prev_pid={tid} "
                f"prev_prio=120 prev_state={state} ==> next_comm={name} next_pid={to} next_prio=120",
            )
        )
    path = tmp_path_factory.mktemp("traces") / "hand.txt"
    path.write_text("".join(f"{line}\n" for _, line in sorted(lines, key=lambda line: line[0])))
    return path


def test_metrics_of_a_trace_made_by_hand(trace: Path) -> None:
    seen = observe(trace, Catalog.shipped().machine(MACHINE))
    found = {metric.name: metric.value(seen) for metric in metrics(seen.clusters)}
    assert found["duration_ms"] == 100
    assert found["busy_pct"] == pytest.approx(100 * 119.5 / 200)
    assert found["switches_per_s"] == pytest.approx(50)
    assert found["migrations_per_s"] == found["cluster_migrations_per_s"] == pytest.approx(10)
    assert found["preemptions_per_s"] == pytest.approx(20)
    assert found["latency_p50_ms"] == found["latency_max_ms"] == 5
    assert found["longest_wait_ms"] == 10
    assert found["runnable_mean"] == pytest.approx(1.35)
    assert found["beside_idle_ms_per_s"] == found["beside_idle_big_ms_per_s"] == pytest.approx(50)
    assert found["too_small_pct"] == pytest.approx(100 * 30 / 119.5)
    assert found["cpu_time_pct.little"] == pytest.approx(100 * 40 / 119.5)
    assert found["busy_pct.big"] == pytest.approx(79.5)
    assert found["busy_clock_mhz.big"] is None
    swapped = observe(trace, Catalog.shipped().machine(MACHINE), cpus="little=1 big=0")
    assert swapped.clusters == ("little", "big")
    assert [cpu.cluster for cpu in swapped.cpus] == [1, 0]
    alone = observe(trace, commands=["c"])
    assert [(thread.name, thread.cpu_ns) for thread in alone.threads] == [("c", {0: 10 * MS})]


def test_every_metric_of_every_sample_has_a_sensible_value() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    for name in ("ftrace.txt", "perf.data", "perf-script.txt", "trace-6.dat", "perfetto.pftrace"):
        seen = observe(SAMPLES / name)
        for metric in metrics():
            value = metric.value(seen)
            assert value is not None or metric.needs, metric.name
            assert value is None or value >= 0, metric.name
            assert value is None or metric.unit != "%" or value <= 100 + 1e-9, metric.name


def test_limits_decide_the_exit_code(ampsched_here: Ampsched, trace: Path) -> None:
    held = ampsched_here("check", str(trace), "--limit", "migrations_per_s<=10", "--limit", "busy_pct>=59.7%")
    assert held.code == 0, held.err
    assert "migrations_per_s" in held.out
    broken = ampsched_here(
        "check", str(trace), "-m", MACHINE, "--limit", "migrations_per_s<=8", "--limit", "busy_pct.big >= 90"
    )
    assert broken.code == 1
    assert broken.err.splitlines() == [
        "limit violated: migrations_per_s <= 8 1/s: it is 10 1/s, over by 2 1/s",
        "  most by a 10 (10 1/s)",
        f"  look: ampsched explain {trace} --machine {MACHINE} --thread 10 --at 40.500",
        "limit violated: busy_pct.big >= 90 %: it is 79.5 %, short by 10.5 %",
    ]
    data = ampsched_here("check", str(trace), "--limit", "latency_p99_ms<=4ms", "--json")
    assert data.code == 1
    values = json.loads(data.out)
    assert values["limits"] == [
        {
            "metric": "latency_p99_ms",
            "limit": "latency_p99_ms <= 4 ms",
            "holds": False,
            "excess": 1.0,
            "threads": [{"tid": 30, "name": "c", "value": 5.0, "unit": "ms", "at_ms": 15.0}],
        }
    ]
    assert values["cpus"][0]["busy_ns"] == 40 * MS
    rows = ampsched_here("check", str(trace), "--format", "csv").out.splitlines()
    assert len(rows) == 1 + len(METRICS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--limit", "migrations<=1"), 'unknown metric "migrations" (did you mean "migrations_per_s"?)'),
        (("--limit", "busy_pct=1"), "is no limit (NAME<=VALUE or NAME>=VALUE)"),
        (("--limit", "busy_pct<=many"), '"many" is not a number'),
        (("--limit", "busy_pct<=nan"), '"nan" is not a number'),
        (("--limit", "busy_pct<=5ms"), "busy_pct is in %, not in ms"),
        (
            ("--limit", "late_frames<=1%"),
            "late_frames_pct is not known: it needs frames: marks of Choreographer",
        ),
        (("--limit", "late_frames<=1"), 'unknown metric "late_frames"'),
        (("--limit", "migrations<=5ms"), 'unknown metric "migrations"'),
        (("--limit", "too_small_pct<=5"), "is not known: it needs --machine with unequal clusters"),
        (("--command", "nobody"), "has no thread of nobody"),
        (("-m", "2B2S:big=1:little=0"), "has CPU 1, and the machine has 1 cores"),
        (("-m", "nowhere"), 'machine "nowhere"'),
        (("--cpus", "little=0"), "--cpus little=0 needs --machine"),
        (("-m", MACHINE, "--cpus", "little=0"), "0 CPUs of big"),
    ],
)
def test_bad_checks_are_one_line(
    ampsched_here: Ampsched, trace: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = ampsched_here("check", str(trace), *arguments)
    assert ended.code == 2
    assert words in ended.err
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1


def test_every_part_of_a_thread_has_a_value_and_a_moment(trace: Path) -> None:
    seen = observe(trace, Catalog.shipped().machine(MACHINE))
    found = {metric.name: culprits(metric, seen) for metric in metrics(seen.clusters)}
    assert [culprit.name for culprit in found["busy_pct"]] == ["a", "b", "c"]
    assert [(each.name, each.at_ms) for each in found["too_small_pct"]] == [("a", 25.0)]
    assert [(each.name, each.value, each.at_ms) for each in found["longest_wait_ms"]] == [
        ("a", 10.0, 25.0),
        ("c", 5.0, 15.0),
    ]
    assert [(each.name, each.at_ms) for each in found["cpu_time_pct.big"]] == [("a", 40.5), ("b", 0.0)]
    assert found["lost_events"] == found["duration_ms"] == found["busy_clock_mhz.big"] == []
    moments = [each.at_ms for parts in found.values() for each in parts if each.at_ms is not None]
    assert min(moments) >= 0
    assert max(moments) <= seen.duration_ns / MS


def _frames(path: Path, late: int) -> Path:
    """40 frames, one each 16.667 ms, for which a clock wakes their thread; one takes 16.9 ms, the others 4."""
    lines = []

    def tell(us: float, who: str, words: str) -> None:
        lines.append(f"{who} [000] d.h2. {1 + us / 1e6:.6f}: {words}\n")

    def switch(one: str, state: str, other: str) -> str:
        (name, tid), (to_name, to_tid) = one.split(), other.split()
        left = f"prev_comm={name} prev_pid={tid} prev_prio=120 prev_state={state}"
        return f"sched_switch: {left} ==> next_comm={to_name} next_pid={to_tid} next_prio=120"

    for frame in range(40):
        # The one behind the late one begins late.
        begin_us = 16_667 * frame + 300 * (frame == late + 1)
        tell(begin_us, "<idle>-0", "sched_waking: comm=ui pid=10 prio=120 target_cpu=000")
        tell(begin_us + 10, "<idle>-0", switch("swapper/0 0", "R", "ui 10"))
        tell(begin_us + (16_900 if frame == late else 4_000), "ui-10", switch("ui 10", "S", "swapper/0 0"))
    path.write_text("".join(lines))
    return path


def test_late_frames_are_those_of_the_recording(ampsched_here: Ampsched, tmp_path: Path) -> None:
    trace = _frames(tmp_path / "frames.txt", late=5)
    seen = observe(trace)
    frames = json.loads(import_file(trace).interactive() or "")["frames"]
    assert seen.frames is not None
    assert frames["late"] == seen.frames.late == 1
    assert frames["frames"] == seen.frames.frames == 38
    values = {metric.name: metric.value(seen) for metric in METRICS}
    assert values["late_frames_pct"] == pytest.approx(100 / 38)
    assert values["frame_p50_ms"] == pytest.approx(4, rel=0.01)
    assert values["frame_max_ms"] == pytest.approx(16.9, rel=0.01)
    told = ampsched_here("check", str(trace), "--limit", "late_frames<=1%", "--limit", "frame_p99<=20ms")
    assert told.code == 1
    assert "a period of 16.7 ms was found in wake-ups of ui; 1 of 38 were late" in told.out
    first, *more = told.err.splitlines()
    assert first == "limit violated: late_frames_pct <= 1 %: it is 2.6316 %, over by 1.6316 %"
    assert more[0] == "  most by ui 10 (1 late frames)"
    assert more[1].startswith(f"  look: ampsched explain {trace} --thread 10 --at ")


def test_what_needs_an_event_says_so_without_it(tmp_path: Path, trace: Path) -> None:
    path = tmp_path / "no-wakes.txt"
    path.write_text("".join(f"{line}\n" for line in trace.read_text().splitlines() if "waking" not in line))
    seen = observe(path)
    assert any("sched_waking" in line for line in seen.unknown)
    (limit,) = limits(["latency_p50_ms<=1"], ())
    with pytest.raises(InputError, match="needs wake-ups"):
        limit.excess(seen)


def test_the_page_tells_residency_and_limits(ampsched_here: Ampsched, trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = ampsched_here("check", str(trace), "-m", MACHINE, "--limit", "busy_pct<=1", "--html", str(page))
    assert ended.code == 1
    text = page.read_text()
    assert "1 of 1 limits violated" in text
    assert "busy_pct &lt;= 1 %: a 10 (74.895 % of the CPU time), b 20 (16.736 % of the CPU time)" in text
    assert "little 40.0" in text
    assert all(f"{name}.big" in text for name, *_ in CLUSTER_METRICS[:2])


def test_what_happened_around_a_moment(trace: Path) -> None:
    on = Catalog.shipped().machine(MACHINE)
    seen, traced = around(trace, on, "a", 20, 5)
    assert traced is not None
    assert (seen.tid, seen.state, seen.cpu) == (10, "waiting", 0)
    assert [(step.at_ns / MS, step.what) for step in seen.steps] == [(15, "lost"), (25, "runs")]
    lost, runs = seen.steps
    assert lost.sentence == "loses CPU 0 (little) to c 30; elsewhere: 1 b 20"
    assert runs.sentence == "runs on CPU 0 (little) after 10.000 ms; elsewhere: 1 idle"
    later, _ = around(trace, on, "a", 41, 2)
    assert (later.state, later.cpu, [step.what for step in later.steps]) == ("running", 1, ["lost", "runs"])
    assert "moved from CPU 0 (little)" in later.steps[1].sentence
    woken, nothing = around(trace, None, "30", 12)
    assert nothing is None
    assert [step.what for step in woken.steps] == ["woken", "runs"]
    assert woken.steps[0].sentence.startswith("is woken by b 20 on CPU 1")
    assert [(each.woken_ns / MS, each.runs_ns / MS, each.core) for each in woken.placed] == [(10, 15, 0)]
    with pytest.raises(InputError, match='has no thread "d"'):
        around(trace, None, "d", 1)
    with pytest.raises(InputError, match=r"after the end of the trace at 100\.000 ms"):
        around(trace, None, "a", 101)


def test_a_replay_stands_beside_the_trace(ampsched_here: Ampsched, trace: Path) -> None:
    on = Catalog.shipped().machine(MACHINE)
    seen, traced = around(trace, on, "a", 20)
    assert traced is not None
    made = simulated(traced, on, seen, 20)
    assert made.policy == "linux:kernel=7.3"
    assert made.explanation.name.endswith("/a.0")
    told = ampsched_here("explain", str(trace), "-m", MACHINE, "--thread", "a", "--at", "20")
    assert told.code == 0, told.err
    assert "In the trace a 10 is waiting after CPU 0 (little) at 20.000 ms." in told.out
    assert "Under linux:kernel=7.3, in a replay:" in told.out
    both = ampsched_here("explain", str(trace), "-m", MACHINE, "--thread", "a", "--at", "20", "-p", "eas,gts")
    assert "Under eas, in a replay:" in both.out
    assert "Under gts: At " in both.out
    for arguments, words in {
        (str(trace), "-p", "eas"): "--policy eas needs --machine",
        (str(trace), "--seed", "7"): "the setting seed needs --machine",
        (str(trace), "--cpus", "little=0"): "--cpus little=0 needs --machine",
        (str(trace), "-m", MACHINE, "--cpus", "little=0"): "0 CPUs of big",
        ("-m", "2B2S", "-w", "sync-1", "--cpus", "little=0"): "--cpus little=0 needs a TRACE",
        (str(trace), "-w", "sync-1"): "exclude each other",
        ("-m", "2B2S"): "--workload NAME is missing (or give a TRACE)",
        (): "--machine NAME is missing (or give a TRACE)",
    }.items():
        ended = ampsched_here("explain", *arguments, "--thread", "a", "--at", "20")
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert words in ended.err


def test_generations_of_kernels() -> None:
    found = {
        release: generation(release)
        for release in (
            "3.18.20",
            "4.14.78-g1",
            "4.19.0-rc3",
            "5.15",
            "6.8.0",
            "6.18-rc1",
            "9.1",
            "4.14.190-perf+",
            "4.19.113-26203352",
            "4.9.84-android-x86_64",
            "5.4.86-qgki-g0123456789ab",
            "5.10.43-android12-9-00031-g5b153f189546-ab7618735",
            "4.19.0-27-amd64",
            "2.6.32",
            "",
        )
    }
    assert found == {
        "3.18.20": "linux:kernel=3.16",
        "4.14.78-g1": "linux:kernel=4.14",
        "4.19.0-rc3": "linux:kernel=4.14",
        "5.15": "linux:kernel=6.1",
        "6.8.0": "linux:kernel=6.6",
        "6.18-rc1": "linux:kernel=6.18",
        "9.1": "linux:kernel=7.3",
        "4.14.190-perf+": "linux:kernel=android-4.14",
        "4.19.113-26203352": "linux:kernel=android-4.14",
        "4.9.84-android-x86_64": "linux:kernel=android-4.14",
        "5.4.86-qgki-g0123456789ab": "linux:kernel=android-4.14",
        "5.10.43-android12-9-00031-g5b153f189546-ab7618735": "linux:kernel=6.1",
        "4.19.0-27-amd64": "linux:kernel=4.14",
        "2.6.32": "linux:kernel=3.16",
        "": "linux:kernel=7.3",
    }


def _placed(*at_ms: float) -> list[Placed]:
    return [Placed(round(ms * MS), round(ms * MS), 0) for ms in at_ms]


def test_wake_ups_are_matched_by_time_where_their_numbers_differ() -> None:
    in_order = [(0, 0), (1, 1), (2, 2)]
    assert matched(_placed(0, 10, 20), _placed(105, 180, 185), 100 * MS) == (in_order, "order")
    lost = matched(_placed(0, 16, 32, 48), _placed(100, 132.5, 148), 100 * MS)
    assert lost == ([(0, 0), (2, 1), (3, 2)], "time")
    more = matched(_placed(0, 16), _placed(0, 3, 16, 40), 0)
    assert more == ([(0, 0), (1, 2)], "time")
    drifted = matched(_placed(0, 100, 200, 300), _placed(0, 150, 250), 0)
    assert drifted == (in_order, "order")
    assert matched(_placed(1), [], 0) == ([], "order")


def test_cpus_say_which_cluster_a_cpu_is_of(ampsched_here: Ampsched, trace: Path) -> None:
    swapped = "little=1 big=0"
    told = ampsched_here(
        "explain", str(trace), "-m", MACHINE, "--cpus", swapped, "--thread", "a", "--at", "20", "-p", "eas"
    )
    assert told.code == 0, told.err
    assert "loses CPU 0 (big) to c 30" in told.out
    assert "Under eas, in a replay:" in told.out
