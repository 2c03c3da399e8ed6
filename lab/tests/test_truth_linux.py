"""Linux's own scheduler beside what stands for it: figures, and traces as text. Nothing here boots a machine."""

import json
from pathlib import Path

import pytest
from conftest import ROOT

from ampsched import Catalog
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.plan import Run, plan
from ampsched_lab.campaign.store import Store
from ampsched_lab.truth.pairs import causes, linux, run
from ampsched_lab.truth.pairs import linux_report as report
from ampsched_lab.truth.pairs.machine import Costs
from ampsched_lab.truth.pairs.simulated import Ended
from ampsched_lab.truth.pairs.systems import POLICY_OF, SYSTEMS, system
from ampsched_lab.truth.pairs.traces import simulated_text, text_of
from ampsched_lab.truth.pairs.workloads import WORKLOADS


def ended(
    turnaround_ns: int, switches: int = 9, moves: int = 4, big_ns: int = 30, little_ns: int = 10
) -> Ended:
    return Ended("p", turnaround_ns, switches, moves, big_ns, little_ns)


def test_figures_compare_sums_over_all_offsets() -> None:
    row = report.Row(
        "w",
        "p",
        (ended(100), ended(200, big_ns=10, little_ns=30)),
        (ended(120, switches=19, moves=5), ended(180, switches=9, moves=5, big_ns=20, little_ns=20)),
    )
    assert row.error == pytest.approx(0)
    assert row.points == pytest.approx((50 - 40) / 80)
    assert row.switches == pytest.approx(30 / 20)
    assert row.moves == pytest.approx(12 / 10)
    assert row.cells()[4:7] == ["50.0%", "62.5%", "+12.5"]
    assert report.figures([row])[0] == "0.0%"
    assert report.figures([row])[5:] == ["0 of 1", "1 of 1", "1 of 1"]


def test_every_system_has_something_that_stands_for_its_scheduler() -> None:
    assert set(POLICY_OF) == {each.name for each in SYSTEMS}
    assert system(SYSTEMS[-1].name) is SYSTEMS[-1]
    with pytest.raises(ValueError, match="gone: one of "):
        system("gone")


def test_one_workload_is_shown_beside_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["linux", "--only", "hogs-3", "--offsets", "1", "--each", "--jobs", "1"])
    linux.main()
    first, row, offset = capsys.readouterr().out.splitlines()[:3]
    assert first.split()[:2] == ["workload,", "program"]
    assert row.startswith("hogs-3, hogs ")
    assert offset.split()[:2] == ["offset", "1"]


def test_measured_runs_have_what_is_compared() -> None:
    for each in SYSTEMS:
        found = Store(linux.RESULTS).read(each.machine, f"{each.architecture}-{each.kernel}", KERNEL)
        names = {(workload.name, offset) for workload in WORKLOADS for offset in range(1, linux.OFFSETS + 1)}
        assert names <= set(found)
        assert all(len(program["on_class_us"]) == 2 for run in found.values() for program in run["programs"])


FORKED = "sched_process_fork: comm={0} pid={1} child_comm={0} child_pid={2}"
SWITCHED = "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={} next_pid={} next_prio=120"
TRACE = [
    "        director-160     [000] .....     3.105618: " + FORKED.format("director", 160, 161),
    "        director-160     [000] d..2.     3.105622: sched_wakeup_new: comm=director pid=161 prio=120 target_cpu=001",
    "          <idle>-0       [001] d..2.     3.105626: "
    + SWITCHED.format("swapper/1", 0, "R", "director", 161),
    "        pipeline-161     [001] .....     3.106130: " + FORKED.format("pipeline", 161, 162),
    "          <idle>-0       [003] dNh2.     3.106140: sched_wakeup: comm=pipeline pid=162 prio=120 target_cpu=002",
    "        pipeline-161     [001] d..2.     3.113122: "
    "sched_migrate_task: comm=pipeline pid=162 prio=120 orig_cpu=0 dest_cpu=1",
    "        pipeline-161     [001] d..2.     3.113125: "
    + SWITCHED.format("pipeline", 161, "S", "kworker/1:1", 40),
]


def test_a_trace_names_threads_as_the_program_does() -> None:
    told = {
        "begin_ns": 3_100_000_000,
        "programs": [
            {
                "name": "pipeline",
                "start_ns": 5_600_000,
                "turnaround_ns": 9_000_000,
                "report": {"threads": [{"name": "source", "index": 0}]},
            }
        ],
    }
    told = json.loads(json.dumps(told))
    lines = list(text_of(TRACE, told, 4))
    assert lines == [
        "# pipeline: begins at 5.600 ms, takes 9.000 ms",
        "      5.618 cpu0 fork       pipeline:main by director",
        "      5.622 cpu0 wakeup_new pipeline:main on cpu1 by director",
        "      5.626 cpu1 switch     idle (R) -> pipeline:main",
        "      6.130 cpu1 fork       pipeline:source.0 by pipeline:main",
        "      6.140 cpu3 wakeup     pipeline:source.0 on cpu2 by interrupt",
        "     13.122 cpu1 migrate    pipeline:source.0: cpu0 -> cpu1 by pipeline:main",
        "     13.125 cpu1 switch     pipeline:main (S) -> kworker/1:1",
    ]
    assert len(list(text_of(TRACE, told, 1))) == 4


def test_a_simulated_run_is_told_in_the_same_form(tmp_path: Path) -> None:
    found = system("x86_64-6.18")
    simulator = linux.simulator_of(found, tmp_path, linux.RESULTS, linux.MACHINES)
    told = simulated_text(simulator, WORKLOADS[0], 1, POLICY_OF[found.name], 1)
    first, *lines = told
    assert first.startswith("# hogs: asked for at ")
    forked = [line.split(maxsplit=4) for line in lines if " wakeup_new hogs:hog." in line]
    assert len(forked) == 3
    assert {core for _, core, *_ in forked} <= {f"cpu{number}" for number in range(4)}
    assert any(" -> hogs:hog" in line and " switch " in line for line in lines)
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("name", "first"), [("aarch64-6.18", {2, 3}), ("aarch64-6.18-energy", {0, 1}), ("x86_64-6.18", {1, 2, 3})]
)
def test_programs_begin_where_the_kernels_director_lets_them(
    name: str, first: set[int], tmp_path: Path
) -> None:
    # As traces show: with clamps (energy) the real-time director is on a big core, so the little ones are idler.
    found = system(name)
    simulator = linux.simulator_of(found, tmp_path, linux.RESULTS, linux.MACHINES)
    workload = WORKLOADS[0]
    stories = simulator.stories(workload, workload.mix().starts_us(1), POLICY_OF[name])
    placed = {
        story.name.split("/")[1]: next(event.core for event in story.events if event.what == "runs")
        for story in stories
    }
    assert (placed["director"] in (2, 3)) == (name == "aarch64-6.18-energy")
    assert placed["main.0"] in first
    (ended,) = simulator.run(workload, workload.mix().starts_us(1), POLICY_OF[name])
    threads = simulator.outcome(workload, workload.mix().starts_us(1), POLICY_OF[name]).threads
    director = next(thread for thread in threads if thread.name == "director")
    all_ns = sum(thread.big_ns + thread.little_ns for thread in threads)
    assert ended.big_ns + ended.little_ns == all_ns - director.big_ns - director.little_ns > 0


def missed(ours: tuple[int, ...], real: tuple[int, ...] = (100,) * 4) -> report.Row:
    """A program at as many offsets, each run once on both sides."""
    return report.Row("w", "p", tuple(map(ended, real)), tuple(map(ended, ours)))


def examined(row: report.Row, **values: float) -> causes.Tested:
    given = {"again": 0.0, "one_less": row.error, "noise": row.error, "fixed": None, "interval": 0.0} | values
    return causes.Tested("s", row, **given)


def test_only_errors_above_5_percent_are_misses() -> None:
    rows = [missed((104,) * 4), missed((106,) * 4), missed((94,) * 4)]
    assert [causes.is_miss(row) for row in rows] == [False, True, True]
    found = causes.misses("s", rows, rows, rows, None, 4)
    assert [each.row for each in found] == rows[1:]


def test_the_cause_is_the_first_that_was_tested_and_holds() -> None:
    row = missed((110,) * 4)
    assert causes.cause(examined(row)) == "open"
    assert causes.cause(examined(row, again=-0.051)) == "tie"
    assert causes.cause(examined(row, again=-0.049)) == "open"
    assert causes.cause(examined(row, one_less=0.049)) == "one offset"
    assert causes.cause(examined(row, noise=-0.049)) == "noise"
    assert causes.cause(examined(row, noise=-0.06)) == "open"
    assert causes.cause(examined(row, fixed=0.01)) == "clocks"
    assert causes.cause(examined(row, interval=0.101)) == "chance"
    assert causes.cause(examined(row, again=0.1, one_less=0.0, noise=0.0, interval=1.0)) == "tie"
    assert causes.cause(examined(row, fixed=0.2, interval=0.101)) == "chance"


def test_one_offset_may_make_all_of_a_miss() -> None:
    # The kernel's second runs follow its first ones; the simulator has two seeds for each of two offsets.
    row = report.Row(
        "w", "p", tuple(map(ended, (100, 200, 100, 200))), tuple(map(ended, (100, 100, 300, 300)))
    )
    parts = row.by_offset(2)
    assert [[run.turnaround_ns for run in part.kernel] for part in parts] == [[100, 100], [200, 200]]
    assert [part.error for part in parts] == pytest.approx([0, 0.5])
    assert causes.one_less(row, 2) == pytest.approx(0)


def test_an_interval_is_that_of_differences_by_offset() -> None:
    # Differences 10, 10, 10, 30: mean 15, deviation 10, so 3.182446 x 10 / sqrt(4) of 100.
    assert causes.interval(missed((110, 110, 110, 130)), 4) == pytest.approx(0.1591223)


def test_each_miss_has_a_row_with_all_that_was_tested() -> None:
    row = missed((110,) * 4)
    *_, plain, other = causes.causes_table([examined(row), examined(row, fixed=-0.02)]).splitlines()
    assert plain == "| `s` | `w`, p | +10.0% | +0.0% | +10.0% | +10.0% |  | 0.0% | open |"
    assert other.endswith("| -2.0% | 0.0% | clocks |")


def test_a_plan_may_ask_for_traces() -> None:
    lines = plan([Run(WORKLOADS[0].mix(), 1)], [1, 0], "/campaign/traces").splitlines()
    assert lines[:3] == ["settle_us\t300000", "classes\t1\t0", "traces\t/campaign/traces"]


def committed(file: str) -> str:
    """What stands below the opening of a page."""
    return (ROOT / "docs/reports/truth" / file).read_text("utf-8").strip().split("\n\n", 4)[-1]


def test_each_part_has_a_page_of_its_own(tmp_path: Path) -> None:
    run.write(tmp_path, {"linux": committed("linux.md")})
    assert {path.name for path in tmp_path.iterdir()} == {"linux.md", "linux.svg"}
    run.write(tmp_path, {"sides": committed("kernel.md"), "quanta": committed("quantum.md")})
    for path in tmp_path.glob("*.md"):
        assert path.read_text("utf-8").strip().split("\n\n")[-1] == committed(path.name).split("\n\n")[-1]
    assert len(list(tmp_path.glob("*.md"))) == 3


def test_the_machine_with_frequencies_has_the_capacities_that_linux_works_out(tmp_path: Path) -> None:
    found = system("aarch64-6.18-energy")
    linux.write_machine(found, Costs.load(linux.RESULTS / f"costs-{found.costs_name}.json"), tmp_path)
    machine = Catalog.shipped().machine(found.machine_file(tmp_path))
    assert [mhz for *_, mhz, _ in machine.clusters] == [400, 1000]
    assert [capacity for _, capacity, _ in machine.energy_model(0)] == [118, 221, 310, 379, 409]
