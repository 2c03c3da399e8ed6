"""Which cores to give a program: the sets that are tried, what they mean, and what is typed."""

from dataclasses import replace
from pathlib import Path

import pytest

import ampsched
from ampsched import Catalog
from ampsched.cli.advising import lines
from ampsched.recording.advice import BASELINE, advise
from ampsched.recording.cores import Cores, core_sets
from ampsched.recording.imports import import_file
from ampsched.recording.replay import replayed

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "crates/recording/tests/samples"
EVEN = ROOT / "docs/reports/recordings/exact/barriers-even.ampr"


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        ("2B2S", ["only big", "only little"]),
        ("sym-2", []),
        ("snapdragon-865", ["only prime", "only gold+prime", "only silver"]),
    ],
)
def test_sets_are_classes_of_cores(machine: str, names: list[str]) -> None:
    found = core_sets(Catalog.shipped().machine(machine))
    assert [sorted(each.name.removeprefix("only ").split("+")) for each in found] == [
        sorted(name.removeprefix("only ").split("+")) for name in names
    ]


def test_second_threads_of_cores_are_left_out() -> None:
    machine = Catalog.shipped().machine("i7-1360p")
    found = {each.name: each for each in core_sets(machine)}
    assert set(found) == {"one thread per core", "only p", "only p, one thread per core", "only e0+e1"}
    seconds = {max(one, other) for one, other, _ in machine.siblings}
    assert seconds
    for name, each in found.items():
        assert bool(seconds & set(each.cpus)) == (name == "only p")


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
    assert {each.policy for each in advice.on_cores} <= {BASELINE, advice.verdict.best}
    changes = [each.change.mean for each in advice.on_cores]
    assert changes == sorted(changes)
    first = next(each for each in advice.on_cores if each.policy == BASELINE)
    chosen = replace(
        advice, setting=replace(advice.setting, word="better", best=first.name, alike=(first.name,))
    )
    assert chosen.best_on_cores == first
    assert (
        lines(chosen, "2B4S", ["./even", "4"])[-1]
        == f"on 2B4S: taskset --cpu-list {first.cores.list} ./even 4"
    )
    # Parts of a machine are numbered anew.
    assert lines(chosen, "8B:big=2", ["./even"])[-1] == "on 8B:big=2: taskset --cpu-list CPUS ./even"
    assert lines(chosen, "this computer", ["./even"])[-1].startswith("here: taskset --cpu-list ")
    best = next(each for each in advice.on_cores if each.policy != BASELINE)
    both = replace(advice, setting=replace(advice.setting, word="better", best=best.name, alike=(best.name,)))
    # A live session gives threads to the cores that it may use itself, and overrules its program's own.
    start = (
        f"on 2B4S: taskset --cpu-list {best.cores.list} ampsched live run --policy {best.policy} -- ./even"
    )
    assert lines(both, "2B4S", ["./even"])[-1].startswith(start)
    enough = replace(both, setting=replace(both.setting, alike=(best.name, advice.verdict.best)))
    assert enough.best_on_cores is None, "the same policy on all cores is no worse"
    window = replace(chosen, target="--pid PID")
    assert (
        lines(window, "2B4S", [])[-1]
        == f"on 2B4S: taskset --all-tasks --cpu-list --pid {first.cores.list} PID"
    )
    nothing = replace(
        chosen,
        setting=replace(chosen.setting, word="not known"),
        verdict=replace(advice.verdict, word="first"),
    )
    assert lines(nothing, "2B4S", [])[-1] == f"on 2B4S: leave it as it is, under {BASELINE}"
    told = advice.to_dict()["on_cores"]
    assert [(each["cpus"], each["policy"]) for each in told] == [
        (list(each.cores.cpus), each.policy) for each in advice.on_cores
    ]


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
