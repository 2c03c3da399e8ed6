"""A check that can fail: what a recording's replay must obey at several speeds (issue 35, item 4)."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from by_hand import Event, Thread, drawn, written

from ampsched import Catalog, InputError, api
from ampsched._core import Workload
from ampsched.cli import main
from ampsched.cli.recording import tell
from ampsched.recording import Recording, check, load, save
from ampsched.recording.advice import advise
from ampsched.recording.check import ONE_CORE, SPEEDS, Check
from ampsched.recording.imports import import_file
from ampsched.recording.summary import KEPT, follows_text
from ampsched.results import Outcome

ROOT = Path(__file__).resolve().parents[2]
EXACT = sorted((ROOT / "docs/reports/recordings/exact").glob("*.ampr"))
SAMPLES = ROOT / "crates/recording/tests/samples"
SHORT = [SAMPLES / name for name in ("trace-7.dat", "ftrace.txt", "perf-script.txt", "perfetto.pftrace")]
FILE = Path("by-hand.ampr")
EVERYWHERE = [*SPEEDS, ONE_CORE]


def checked(recording: Recording) -> Check:
    return check.check(recording, FILE, Catalog.shipped(), seeds=1)


def of_cores(recording: Recording, speeds: list[float]) -> Recording:
    """The same, made on other cores."""
    info = json.loads(recording.info) | {"cores": [{"speed": speed} for speed in speeds]}
    return recording.with_info(json.dumps(info))


def main_thread(*events: Event, end: float) -> Thread:
    return Thread("main", [Event("start", 0), *events, Event("exit", end)])


def busy(work: float = 40) -> Recording:
    """A thread that works."""
    return written([main_thread(Event("sleep", work, work=work), end=work)])


def parent_and_child(*, has_creation: bool = True, has_join: bool = True, early: float = 0) -> Recording:
    """A thread works for 20 ms, creates another one, which works for 30 ms, waits for it, and works for 10 ms."""
    start = 20 - early
    parent = [
        *([Event("create", 20, work=20, object=1)] if has_creation else [Event("sleep", 20, work=20)]),
        *([Event("join", start + 30, wait=start + 10, object=1)] if has_join else []),
    ]
    end = start + 40 if has_join else 30
    child = Thread("child", [Event("start", start, aux=1), Event("exit", start + 30, work=30)])
    return written([main_thread(*parent, Event("exit", end, work=10), end=end), child], cores=2)


def mixed(kind: Event, *, work: float) -> Recording:
    """A thread works, waits as an event says, and ends."""
    return written([main_thread(Event("sleep", work, work=work), kind, end=kind.at)])


# --- The share that follows the cores


@pytest.mark.parametrize(("work", "sleep"), [(40, 0), (0, 40), (20, 20), (30, 10)])
def test_h35_4_the_share_is_that_of_the_work(work: float, sleep: float) -> None:
    found = checked(mixed(Event("sleep", 40, wait=sleep), work=work))
    assert found.violations == ()
    assert found.follows == pytest.approx(work / 40, abs=0.01)
    assert found.rest["clock"] == pytest.approx(sleep / 40, abs=0.01)
    assert found.follows + sum(found.rest.values()) == pytest.approx(1)
    # Of a makespan that is work and waits, elasticities tell the same: -ln of the shrinking by ln of the speed.
    at = {speed: work / speed + sleep for speed in SPEEDS.values()}
    expected = [check.elasticity((a, at[a]), (b, at[b])) for a, b in [(0.5, 1.0), (1.0, 2.0), (2.0, 10.0)]]
    assert found.elasticities == pytest.approx(expected, abs=0.01)


def periodic(step: float) -> Recording:
    """A thread wakes at fixed times, 10 ms apart, and works meanwhile."""
    ticks = [Event("sleep", 10 * (n + 1), work=step, wait=10 - step, aux=1) for n in range(5)]
    return written([main_thread(*ticks, end=50)])


def unrecorded_start() -> Recording:
    return written(
        [
            main_thread(Event("sleep", 10, work=10), end=10),
            Thread("stray", [Event("start", 30), Event("exit", 40, work=10)]),
        ],
        cores=2,
    )


def timed_out() -> Recording:
    waits = [Event("cond-wait", 10, work=10, object=7), Event("cond-wake", 40, wait=30, object=7, aux=1)]
    return written([main_thread(*waits, end=40)])


REST = {
    "sleep": ("clock", mixed(Event("sleep", 40, wait=30), work=10)),
    "period": ("clock", periodic(2)),
    "condition timed out": ("clock", timed_out()),
    "timer of the kernel": ("clock", mixed(Event("block", 40, wait=30, aux=2), work=10)),
    "input": ("outside", mixed(Event("io", 40, wait=30), work=10)),
    "disk": ("device", mixed(Event("io", 40, wait=30, aux=5), work=10)),
    "other": ("outside", mixed(Event("block", 40, wait=30, aux=1), work=10)),
    "futex": ("unknown", mixed(Event("futex-wait", 40, wait=30, object=9), work=10)),
    "unknown wake-up": ("unknown", mixed(Event("block", 40, wait=30), work=10)),
    "parent not recorded": ("start", unrecorded_start()),
}


@pytest.mark.parametrize(("part", "recording"), list(REST.values()), ids=list(REST))
def test_h35_4_the_rest_is_named_by_its_kind(part: str, recording: Recording) -> None:
    found = checked(recording)
    assert found.violations == ()
    assert found.rest[part] == pytest.approx(1 - found.follows, abs=0.01)
    assert found.rest[part] > 0.7
    text = follows_text(found.follows, found.rest)
    assert (
        text
        == f"{found.follows:.0%} of its time would shrink on faster cores; {found.rest[part]:.0%} {KEPT[part]}"
    )


def test_h35_4_a_wait_that_work_hides_counts_where_it_shows() -> None:
    """On the recording's cores a worker ends after the clock; on faster ones the clock is what is waited for."""
    worker = Thread("worker", [Event("start", 0, aux=1), Event("exit", 40, work=40)])
    waits = [Event("create", 0, object=1), Event("sleep", 38, wait=38), Event("join", 40, wait=2, object=1)]
    found = checked(written([main_thread(*waits, end=40), worker], cores=2))
    assert found.violations == ()
    assert found.follows == pytest.approx(0.1, abs=0.01)
    assert found.rest["clock"] == pytest.approx(0.9, abs=0.01)


def test_h35_4_words_add_up_and_name_no_crumbs() -> None:
    rest = dict.fromkeys(KEPT, 0.0) | {"clock": 0.04, "outside": 0.02, "unknown": 0.004}
    assert follows_text(0.936, rest) == (
        "94% of its time would shrink on faster cores; 4% is waiting for a clock; "
        "2% is input and output with others: networks, people, clients of a server"
    )
    assert follows_text(1.0, dict.fromkeys(KEPT, 0.0)) == "100% of its time would shrink on faster cores"


# --- Laws that recordings break


def test_h35_4_a_child_at_a_fixed_time_comes_before_its_cause_on_slow_cores() -> None:
    found = checked(parent_and_child(has_creation=False))
    assert abs(found.error) < 0.02  # on its own cores there is nothing to be seen
    (line,) = found.violations
    assert line == (
        "an effect comes before its cause at half the speed: child.1, created by main.0, begins after 20 ms, "
        "20 ms too early"
    )
    assert checked(parent_and_child()).violations == ()


def test_h35_4_a_recording_that_obeys_passes_on_any_number_of_cores() -> None:
    threads = [
        main_thread(
            Event("create", 1, work=1, object=1),
            Event("create", 2, work=1, object=2),
            Event("sem-post", 12, work=10, object=5),
            Event("join", 32, wait=20, object=1),
            Event("join", 42, wait=10, object=2),
            end=42,
        ),
        Thread(
            "first",
            [Event("start", 1, aux=1), Event("sem-wait", 12, wait=11, object=5), Event("exit", 32, work=20)],
        ),
        Thread("second", [Event("start", 2, aux=1), Event("exit", 42, work=40)]),
    ]
    for cores in (1, 2, 3):
        assert checked(written(threads, cores=cores)).violations == ()


@pytest.mark.parametrize("seed", range(24))
def test_h35_4_whatever_keeps_causes_obeys(seed: int) -> None:
    """Threads by lot that create, join, hand over, sleep and share a mutex, on equal and unequal cores."""
    speeds = [[1.0], [1.0] * 2, [1.0] * 3, [1.0, 0.4], [1.0, 1.0, 0.4, 0.4]][seed % 5]
    found = checked(of_cores(drawn(seed), speeds))
    assert found.violations == ()
    assert found.follows + sum(found.rest.values()) == pytest.approx(1)


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.name)
def test_h35_4_short_traces_obey_though_slices_and_ticks_do_not_scale(path: Path) -> None:
    found = check.check(import_file(path), path, Catalog.shipped(), seeds=1)
    assert found.violations == ()


@pytest.mark.parametrize("path", EXACT, ids=lambda path: path.stem)
def test_h35_4_the_shipped_recordings_obey(path: Path) -> None:
    found = check.check(load(path), path, Catalog.shipped(), seeds=1)
    assert found.violations == ()
    assert found.follows + sum(found.rest.values()) == pytest.approx(1)


# --- Laws that a wrong replay breaks: it does something else than the recording


def replaying(
    monkeypatch: pytest.MonkeyPatch,
    other: Recording,
    *,
    only: float | None = None,
    speed: float | None = None,
) -> None:
    """Lets the replay be that of another recording: everywhere, or at one speed only."""
    replay = check._workload

    def workload(recording: Recording, path: Path, catalog: Catalog, at: float) -> Workload:
        wrong = only is None or at == only
        return replay(other if wrong else recording, path, catalog, speed or at if wrong else at)

    monkeypatch.setattr(check, "_workload", workload)


def taking(monkeypatch: pytest.MonkeyPatch, change: Callable[[int, Outcome], Outcome]) -> None:
    """Lets executions without noise end as somebody says, by their number: of each speed, then of one core."""
    simulate, count = api.simulate, iter(range(10**6))

    def changed(*arguments: object, **settings: object) -> Outcome:
        outcome: Outcome = simulate(*arguments, **settings)  # type: ignore[arg-type]
        return outcome if "noise" in settings else change(next(count), outcome)

    monkeypatch.setattr(check.api, "simulate", changed)


@pytest.mark.parametrize(("where", "speed"), list(SPEEDS.items()))
def test_h35_4_lost_work_is_found(where: str, speed: float, monkeypatch: pytest.MonkeyPatch) -> None:
    replaying(monkeypatch, busy(30), only=speed)
    lines = checked(busy(40)).violations
    assert f"work is not conserved {where}: main.0 does 30 ms of 40 ms" in lines
    # The single core has the recorded speed, too.
    assert (f"work is not conserved {ONE_CORE}: main.0 does 30 ms of 40 ms" in lines) == (speed == 1.0)


def test_h35_4_a_replay_that_is_as_fast_everywhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    replaying(monkeypatch, busy(), speed=1.0)
    lines = checked(busy()).violations
    assert "work is not conserved at half the speed: main.0 does 20 ms of 40 ms" in lines
    assert "work is not conserved at ten times the speed: main.0 does 400 ms of 40 ms" in lines
    assert not any("at the recorded speed:" in line for line in lines)


def test_h35_4_a_join_that_does_not_wait_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    replaying(monkeypatch, parent_and_child(has_join=False))
    (line, *_) = checked(parent_and_child()).violations
    assert line.startswith(
        "an effect comes before its cause at half the speed: main.0, joined by child.1, ends after"
    )


def kernel_pair(*, waker: bool = True) -> Recording:
    """A thread is woken by another one when that has worked, as a kernel tells it, and works."""
    cause = 0 + 3 if waker else 0
    worker = Thread(
        "worker", [Event("start", 0), Event("block", 20, wait=20, aux=cause), Event("exit", 40, work=20)]
    )
    if not waker:
        worker = Thread("worker", [Event("start", 0), Event("exit", 40, work=20)])
    return written([main_thread(Event("wake", 20, work=20, object=1), end=20), worker], cores=2)


def test_h35_4_a_wake_up_that_nobody_waits_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(kernel_pair()).violations == ()
    replaying(monkeypatch, kernel_pair(waker=False))
    (line, *_) = checked(kernel_pair()).violations
    assert line == (
        "an effect comes before its cause at half the speed: worker.1, woken by main.0, ends after 40 ms, "
        "40 ms too early"
    )


def handed_over(*, is_tied: bool = True) -> Recording:
    """Two threads, one after the other by a semaphore; who causes what cannot be seen in outcomes."""
    wait = Event("sem-wait", 20, wait=20, object=5) if is_tied else Event("sem-post", 20, object=6)
    second = Thread("second", [Event("start", 0), wait, Event("exit", 40, work=20)])
    return written([main_thread(Event("sem-post", 20, work=20, object=5), end=20), second], cores=2)


def test_h35_4_a_time_below_the_critical_path_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(handed_over()).violations == ()
    replaying(monkeypatch, handed_over(is_tied=False))
    lines = checked(handed_over()).violations
    assert lines[0] == (
        "its time is below the critical path at half the speed: it is 40 ms of 80 ms at least"
    )
    # On one core it takes as long, whoever begins.
    assert [line.split(":")[0] for line in lines] == [
        f"its time is below the critical path {where}" for where in SPEEDS
    ]


@pytest.mark.parametrize(("number", "where"), list(enumerate(EVERYWHERE)))
def test_h35_4_a_time_below_work_over_capacity_is_found(
    number: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hogs = [Thread(f"hog{n}", [Event("start", 0), Event("exit", 60, work=20)]) for n in range(3)]
    recording = written(hogs, cores=2 if where != ONE_CORE else 1, wall_ns=30_000_000)
    assert checked(recording).violations == ()

    def shorter(this: int, outcome: Outcome) -> Outcome:
        return replace(outcome, makespan_ns=outcome.makespan_ns * 7 // 10) if this == number else outcome

    taking(monkeypatch, shorter)
    lines = [line for line in checked(recording).violations if "capacity" in line]
    assert [line.split(":")[0] for line in lines] == [
        f"its time is below the work over the cores' capacity {where}"
    ]


@pytest.mark.parametrize(
    ("number", "factor", "says"),
    [(2, 3.0, "-0.58 between"), (0, 1.3, "1.38 between"), (3, 20.0, "-0.86 between")],
)
def test_h35_4_a_time_that_grows_with_the_speed_or_shrinks_more_is_found(
    number: int, factor: float, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def longer(this: int, outcome: Outcome) -> Outcome:
        return (
            replace(outcome, makespan_ns=round(outcome.makespan_ns * factor)) if this == number else outcome
        )

    taking(monkeypatch, longer)
    lines = checked(busy()).violations
    assert any(
        line.startswith(f"the elasticity of its time is not within 0 and 1: it is {says}") for line in lines
    )


# --- The critical path is what as many full-speed cores as threads need


@pytest.mark.parametrize("seed", range(12))
def test_h35_4_the_critical_path_is_the_time_on_as_many_cores_as_threads(seed: int) -> None:
    recording = of_cores(drawn(seed, has_mutexes=False), [1.0] * 6)
    speeds = [0.5, 1.0, 4.0]
    *_, paths = recording.laws(speeds)
    machine = check._own_machine(recording, FILE, Catalog.shipped())
    for speed, path in zip(speeds, paths, strict=True):
        workload = check._workload(recording, FILE, Catalog.shipped(), speed)
        took_ns = api.simulate(machine, workload, "linux", core_order="as-is").makespan_ns
        assert sum(path.values()) == pytest.approx(took_ns, rel=0.01)
        assert sum(path.values()) <= took_ns + check.ROUNDING_NS


# --- What is said and refused


def saved(recording: Recording, folder: Path) -> Path:
    save(recording, folder / FILE)
    return folder / FILE


def test_h35_4_advise_refuses_a_defective_replay_and_record_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(parent_and_child(has_creation=False), tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["advise", str(path), "-m", "2B2S", "-p", "linux,acfs", "-r", "2"])
    said = capsys.readouterr().err.splitlines()[-1]
    assert ended.value.code == 2
    assert said == (
        f"error: {path} is no basis of advice: in its replay, an effect comes before its cause at half the speed: "
        "child.1, created by main.0, begins after 20 ms, 20 ms too early (--anyway takes it as it is)"
    )
    found = tell(load(path), path)
    said = capsys.readouterr().err
    assert "  its replay is defective: an effect comes before its cause at half the speed: child.1" in said
    assert found is not None
    assert f"  {follows_text(found.follows, found.rest)}\n" in said
    with pytest.raises(SystemExit) as ended:
        main(["advise", str(path), "-m", "2B2S", "-p", "linux,acfs", "-r", "2", "--anyway", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert values["violations"] == list(found.violations)
    # One number with one meaning in all places.
    assert (values["follows"], values["rest"]) == (found.follows, dict(found.rest))


def test_h35_4_a_sleeper_is_refused_with_the_kind(tmp_path: Path) -> None:
    path = saved(mixed(Event("io", 100, wait=70), work=30), tmp_path)
    with pytest.raises(InputError) as failed:
        advise(path, "2B2S", ("linux", "acfs"), repeat=2)
    assert str(failed.value) == (
        f"{path} is no basis of advice: only 30% of its time would shrink on faster cores; 70% is input and output with "
        "others: networks, people, clients of a server (--anyway takes it as it is)"
    )
    found = advise(path, "2B2S", ("linux", "acfs"), repeat=2, anyway=True)
    assert found.answer("2B2S")[0].startswith("no basis of advice: only 30% of its time would shrink")


def test_h35_4_the_page_has_the_share(tmp_path: Path) -> None:
    path = saved(mixed(Event("sleep", 100, wait=20), work=80), tmp_path)
    page = tmp_path / "page.html"
    with pytest.raises(SystemExit) as ended:
        main(["advise", str(path), "-m", "2B2S", "-p", "linux,acfs", "-r", "2", "--html", str(page)])
    assert ended.value.code == 0
    text = "80% of its time would shrink on faster cores; 20% is waiting for a clock"
    assert text in page.read_text()


def test_h35_4_a_command_is_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both its recording and the advice need the check."""
    from ampsched.recording import advice, preload

    recording = busy()
    calls: list[Path] = []
    original = check.check

    def counted(recording: Recording, path: Path, *arguments: object) -> Check:
        calls.append(path)
        return original(recording, path, *arguments)  # type: ignore[arg-type]

    def record(_command: list[str], out: Path) -> object:
        save(recording, out)
        return type("Told", (), {"recording": recording})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(check, "check", counted)
    monkeypatch.setattr(advice, "check", counted)
    monkeypatch.setattr(preload, "record", record)
    told = []
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main(["advise", "-m", "2B2S", "-p", "linux,acfs", "-r", "2", "--json", "--", "busy"])
        assert ended.value.code == 0
        told.append(capsys.readouterr().out)
    assert calls == [Path("busy.ampr")] * 2
    assert told[0] == told[1]


@pytest.mark.parametrize("recording", [parent_and_child(), periodic(2), load(EXACT[0])])
def test_h35_4_the_check_is_deterministic(recording: Recording) -> None:
    assert checked(recording) == checked(recording)
