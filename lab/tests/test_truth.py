"""The truth check: programs run on both sides with the same threads, and figures are computed as the page says.

Nothing here boots a machine. How well the figures agree is measured by `make -C lab truth`.
"""

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

from ampsched import Catalog
from ampsched_lab.campaign.boot import Guest, Scheduler
from ampsched_lab.campaign.plan import SETTLE_US
from ampsched_lab.campaign.store import Store
from ampsched_lab.shared.page import replace_region
from ampsched_lab.truth.pairs import quanta, run
from ampsched_lab.truth.pairs.machine import FIELDS, Costs, machine_file, read, read_look_us
from ampsched_lab.truth.pairs.report import Cell, summary
from ampsched_lab.truth.pairs.simulated import Simulator
from ampsched_lab.truth.pairs.workloads import WORKLOADS, Program, Workload

SOURCES = Path(__file__).resolve().parents[2] / "lab/ampsched_lab/programs"
LEAST = {"rounds": 3, "items": 5, "period-us": 500, "step-us": 100}


def tiny(program: Program) -> Program:
    """The program with a thousandth of the work in as few rounds as possible."""
    spins = {name: max(1, count // 1000) for name, count in program.spins.items()}
    numbers = {name: LEAST.get(name, count) for name, count in program.numbers.items()}
    return dataclasses.replace(program, spins=spins, numbers=numbers)


PROGRAMS = list({program.model: program for each in WORKLOADS for program in each.programs}.values())


def costs() -> Costs:
    """As they might be measured: a slow core takes 2.5 times as long."""
    found = {
        ("iteration", 0): 4.0,
        ("start of a program", 0): 500_000.0,
        ("start of a thread", 0): 30_000.0,
        ("tick", 0): 3_000.0,
        ("turn, same CPU", 0): 5_000.0,
        ("turn, another CPU", 0): -100.0,
        ("waking call, another CPU", 0): 1_200.4,
        ("move within class", 0): 400.0,
        ("move between classes", 0): 700.0,
    }
    slow = {(name, 1): ns * 2.5 for (name, _), ns in found.items()}
    return Costs({**found, **slow}, 4_000_000)


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled programs."""
    folder = tmp_path_factory.mktemp("truth")
    for name in {"costs", *(program.binary for program in PROGRAMS)}:
        sources = [SOURCES / f"{name}.c", SOURCES / "truth.c"]
        subprocess.run(["cc", "-O1", "-std=gnu11", "-pthread", "-o", folder / name, *sources], check=True)
    return folder


def simulator(folder: Path) -> Simulator:
    """On the machine of the page, with costs as above."""
    machine = Catalog.shipped().machine(run.MACHINE)
    path = folder / "m.toml"
    path.write_text(machine_file("m", "for tests", machine, run.MIPS, costs()), "utf-8")
    return Simulator(folder, path, costs().ns_per_iteration, costs().ratio, costs().start_us)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.model)
def test_both_sides_run_the_same_threads(program: Program, binaries: Path, tmp_path: Path) -> None:
    small = tiny(program)
    words = small.guest().words
    done = subprocess.run(
        [str(binaries / program.binary), *words[1:]], capture_output=True, text=True, check=True
    )
    threads = json.loads(done.stdout)["threads"]
    outcome = simulator(tmp_path).outcome(Workload("w", "one", (small,)), [0], "cfs")
    names = [thread.name.split(".")[0].split("-nice")[0] for thread in outcome.threads]
    # The thread that starts the others is not told by the C program.
    assert names[0] == "main"
    assert sorted(names[1:]) == sorted(thread["name"] for thread in threads)


def test_starts_and_ratios_are_those_of_the_guest(tmp_path: Path) -> None:
    outcome = simulator(tmp_path).outcome(WORKLOADS[0], [20_000], "cfs")
    assert outcome.threads[0].start_ns == SETTLE_US * 1000 + 20_000_000
    # The first thread executes the start of the program, of 0.5 ms, before it makes others.
    assert outcome.threads[1].start_ns - outcome.threads[0].start_ns == pytest.approx(500_000, rel=0.05)
    # One of three hogs of 200 ms has a little core from beginning to end; ticks take their share.
    took_ns = outcome.apps[0].turnaround_ns - 500_000
    assert took_ns == pytest.approx(500e6 / (1 - 7.5 / 4000), rel=0.002)


def test_fields_follow_the_rule(tmp_path: Path) -> None:
    fast, slow = costs().fields(0), costs().fields(1)
    assert tuple(fast) == FIELDS
    assert fast["context_switch_ns"] == 5_000 - 1_200
    assert (fast["wake_ns"], slow["wake_ns"]) == (1_200, 3_001)
    assert fast["wakeup_latency_ns"] == 0, "what is less than nothing counts as nothing"
    text = machine_file("m", "for tests", Catalog.shipped().machine("2B2S"), run.MIPS, costs())
    path = tmp_path / "m.toml"
    path.write_text(text, "utf-8")
    assert [mhz for *_, mhz, _ in Catalog.shipped().machine(path).clusters] == [1000, 400]


def test_the_micro_benchmarks_say_what_the_rule_needs(binaries: Path) -> None:
    source = (SOURCES / "costs.c").read_text("utf-8")
    for benchmark in {name for name, _ in costs().measured}:
        assert f'"{benchmark}"' in source
    rows = '{"benchmark": "tick", "class": 1, "ns": 2.5}\nsomething else\n'
    assert read(rows) == {("tick", 1): 2.5}


def cell(
    kernel_ns: tuple[int, ...], simulated_ns: tuple[int, ...], switches: tuple[int, int] = (9, 9)
) -> Cell:
    switched = [(count,) * len(kernel_ns) for count in switches]
    return Cell("w", "p", "cfs", kernel_ns, simulated_ns, simulated_ns, simulated_ns, *switched)


def test_errors_are_those_of_the_simulation() -> None:
    one = cell((100, 200), (110, 190), (9, 19))
    assert one.error == pytest.approx(0)
    assert one.errors == pytest.approx([0.1, -0.05])
    assert one.factor == pytest.approx(39 / 19)
    assert not one.is_good
    assert cell((100,), (104,)).is_good
    assert not cell((100,), (106,)).is_good
    text = summary([one, cell((100,), (106,))])
    assert "| `cfs` | 3.0% | +6.0% (`w`) |" in text


def test_ties_show_where_a_few_us_decide() -> None:
    tied = dataclasses.replace(cell((100, 90), (120, 91)), least_ns=(99, 91), most_ns=(120, 91))
    assert tied.is_tied
    assert tied.hits == 2
    assert dataclasses.replace(tied, kernel_ns=(97, 80)).hits == 0
    assert not cell((100,), (104,)).is_tied


def test_looks_are_read_from_what_a_session_says() -> None:
    text = "x: wash as written for 0.3 s: 4 threads, {} epochs, 3 decisions, 1.5 % of a CPU, 44 us per look at 4 threads; all"
    assert read_look_us(text.format(33)) == 44
    assert read_look_us(text.format(0)) == 0


def test_tables_replace_only_what_is_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    begin, end = "<!-- begin -->", "<!-- end -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    replace_region(page, begin, end, r"new \1")
    assert page.read_text() == f"before\n{begin}\n\nnew \\1\n\n{end}\nafter\n"


def test_spreads_are_over_quanta(tmp_path: Path) -> None:
    store, scheduler = Store(tmp_path), Scheduler("eevdf-kernel")
    base = Guest("g", run.exact_machine(), tmp_path)
    for number, guest in enumerate(quanta.guests(base)):
        rows = [
            {
                "mix": name,
                "offset": offset,
                "programs": [{"report": {"turnaround_ns": (10 + number) * 1_000_000}}],
            }
            for name in quanta.NAMES
            for offset in quanta.OFFSETS
        ]
        store.add(guest.name, guest.system, scheduler.name, rows)
    text = quanta.quanta_table(base, [scheduler], store)
    assert text.splitlines()[2] == "| `hogs-7` | `eevdf-kernel` | 10.0 | 11.0 | 12.0 | 20.0% |"
