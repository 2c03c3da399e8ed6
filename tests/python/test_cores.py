"""Which cores to give a program: the sets that are tried, what they mean, and what is typed."""

from dataclasses import replace
from pathlib import Path

import pytest

import ampsched
from ampsched import Catalog
from ampsched.cli.advising import lines
from ampsched.keeping import clocks
from ampsched.recording.advice import advise
from ampsched.recording.answer import BASELINE, Advice
from ampsched.recording.cores import Cores, core_sets
from ampsched.recording.imports import import_file
from ampsched.recording.replay import replayed
from ampsched.recording.search import Found, Tried
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "crates/recording/tests/samples"
EVEN = ROOT / "docs/reports/recordings/exact/barriers-even.ampr"


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        ("2B2S", ["the big cores", "the little cores"]),
        ("sym-2", []),
        ("snapdragon-865", ["the prime cores", "the gold+prime cores", "the silver cores"]),
    ],
)
def test_sets_are_classes_of_cores(machine: str, names: list[str]) -> None:
    found = core_sets(Catalog.shipped().machine(machine))
    assert [sorted(each.name.split()[1].split("+")) for each in found] == [
        sorted(name.split()[1].split("+")) for name in names
    ]


def test_second_threads_of_cores_are_left_out() -> None:
    machine = Catalog.shipped().machine("i7-1360p")
    found = {each.name: each for each in core_sets(machine)}
    assert set(found) == {
        "one thread per core",
        "the p cores",
        "the p cores, one thread per core",
        "the e0+e1 cores",
    }
    seconds = {max(one, other) for one, other, _ in machine.siblings}
    assert seconds
    for name, each in found.items():
        assert bool(seconds & set(each.cpus)) == (name == "the p cores")


@pytest.mark.parametrize(
    ("cpus", "text"), [((0,), "0"), ((0, 1, 2), "0-2"), ((0, 2, 3, 7), "0,2-3,7"), ((5, 6), "5-6")]
)
def test_lists_are_those_of_linux(cpus: tuple[int, ...], text: str) -> None:
    assert Cores("some", cpus).list == text


@pytest.mark.parametrize("policy", ["linux", "cfs", "colab", "abreast"])
@pytest.mark.parametrize("order", ["as-is", "little-first"])
def test_a_program_stays_on_its_cores(policy: str, order: str) -> None:
    """The cores are those of the machine as it says, however its cores are numbered in a run."""
    machine, mix = Catalog.shipped().machine("2B2S"), Catalog.shipped().workload("ferret:n=2")
    (big, _) = core_sets(machine)
    outcome = ampsched.simulate(machine, mix.on_cores(machine, big.cpus), policy, core_order=order)  # type: ignore[arg-type]
    little = [each for each in outcome.clusters if each.name == "little"]
    assert [each.busy_ns for each in little] == [0]
    assert outcome.makespan_ns > ampsched.simulate(machine, mix, policy).makespan_ns / 2


def test_the_best_cores_are_typed() -> None:
    advice = advise(EVEN, "2B4S", (BASELINE, "acfs"), speedup=2.5, repeat=2)
    assert {each.setting.policy for each in advice.found.tried} == {BASELINE, "acfs"}
    changes = [each.change.mean for each in advice.found.tried]
    assert changes == sorted(changes)
    on_some = [each.setting for each in advice.found.tried if each.setting.cores]
    assert {each.cores and each.cores.name for each in on_some} == {"the big cores", "the little cores"}

    def last(setting: Setting, where: str, command: list[str], advice: Advice = advice) -> str:
        """What is typed if that is the best."""
        tried = Tried(setting, (0.5, 0.5), Estimate(-0.5, -0.5, -0.5, 2))
        verdict = replace(advice.verdict, word="better", best=setting.name, alike=(setting.name,))
        return lines(replace(advice, found=Found((tried,), ()), verdict=verdict), where, command)[-1]

    (pinned,) = (each for each in on_some if each.policy == BASELINE and each.cores.name == "the big cores")
    assert last(pinned, "2B4S", ["./even", "4"]) == "on 2B4S: taskset --cpu-list 0-1 ./even 4"
    # Parts of a machine are numbered anew.
    assert last(pinned, "8B:big=2", ["./even"]) == "on 8B:big=2: taskset --cpu-list CPUS ./even"
    assert last(pinned, "this computer", ["./even"]) == "here: taskset --cpu-list 0-1 ./even"
    both = replace(pinned, policy="acfs")
    # A live session gives threads to the cores that it may use itself, and overrules its program's own.
    start = "on 2B4S: taskset --cpu-list 0-1 ampsched live run --policy acfs -- ./even (if"
    assert last(both, "2B4S", ["./even"]).startswith(start)
    window = replace(advice, target=("--pid", "PID"))
    assert last(pinned, "2B4S", [], window) == "on 2B4S: taskset --all-tasks --cpu-list --pid 0-1 PID"
    loops = Setting(environment=(("OMP_SCHEDULE", "dynamic,4"),), governor="powersave")
    powersave = (
        "on 2B4S: sudo cpupower frequency-set --governor powersave && env OMP_SCHEDULE=dynamic,4 ./even ("
    )
    told = last(loops, "2B4S", ["./even"])
    assert told == f"{powersave}{clocks.condition(is_here=False)})"
    assert last(loops, "2B4S", [], window).startswith(
        "on 2B4S: sudo cpupower frequency-set --governor powersave ("
    )
    # What is asked about the machine is asked about it again.
    openmp = replace(
        advice, is_openmp=True, found=Found((Tried(pinned, (0.5,), Estimate(-0.5, -0.5, -0.5, 2)),), ())
    )
    for where, again in (
        ("2B4S", "ampsched advise -m 2B4S -- env"),
        ("this computer", "ampsched advise -- env"),
    ):
        assert f"to compare: {again} OMP_NUM_THREADS={{threads}} {advice.target[0]}" in "\n".join(
            lines(openmp, where, [])
        )
    assert "OMP_NUM_THREADS" not in "\n".join(lines(replace(openmp, target=("--pid", "PID")), "2B4S", []))
    nothing = replace(advice, verdict=replace(advice.verdict, word="not known"))
    assert lines(nothing, "2B4S", [])[-1] == f"on 2B4S: leave it as it is, under {BASELINE}"


def test_cores_of_the_computer_that_recorded_are_the_machines_first() -> None:
    """Sets of CPUs that a trace told were taken together with cores of the machine, as if both had one numbering."""
    recording = import_file(SAMPLES / "cgroups.txt", cgroups=SAMPLES / "cgroups.side")
    assert any(cpus for *_, cpus, _, _ in recording.asks)
    machine, catalog = Catalog.shipped().machine("2B2S"), Catalog.shipped()
    workload = replayed(catalog, recording, SAMPLES / "cgroups.txt").workload
    for cores in core_sets(machine):
        outcome = ampsched.simulate(machine, workload.on_cores(machine, cores.cpus), "linux")
        used = {cpu for cpu, core in enumerate(outcome.cores) if core.busy_ns}
        assert used
        assert used <= set(cores.cpus)
