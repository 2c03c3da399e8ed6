"""The programs of Chronaki et al. and parts of machines."""

import subprocess
import sys
from itertools import product

import pytest
from conftest import ROOT, Ampsched

import ampsched
from ampsched.catalog import Catalog

CATALOG = Catalog.shipped()
PROGRAMS = [entry.name for entry in CATALOG.entries("program") if entry.name.startswith("chronaki-")]
TOTAL_S = 100.0
"""Work of each program on one little core."""


def part(big: int, little: int) -> ampsched.Machine:
    return CATALOG.machine(f"exynos5422:big={big}@1600:little={little}@800")


def test_files_are_what_the_script_writes() -> None:
    script = ROOT / "lab" / "calibration" / "chronaki" / "make_programs.py"
    ended = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_work_and_ratio_are_those_of_table_1(program: str) -> None:
    name = program.split("-")[1]
    [ratio] = [info.ratio for info in ampsched.task_programs() if info.name == name]
    little, big = (
        ampsched.simulate(part(*cores), _single(program), "cfs").makespan_ns / 1e9
        for cores in ((0, 1), (1, 0))
    )
    assert little == pytest.approx(TOTAL_S, rel=0.02)
    assert little / big == pytest.approx(ratio, rel=0.005)


def test_there_are_the_variants_of_the_paper() -> None:
    names = {info.name for info in ampsched.task_programs()}
    loops = {"blackscholes", "bodytrack", "fluidanimate", "swaptions"}
    expected = set(product(names, ("static", "tasks"))) | set(product(loops, ("loop-static", "loop-dynamic")))
    assert set(PROGRAMS) == {f"chronaki-{name}-{variant}" for name, variant in expected}


def test_a_part_of_a_machine_by_name(ampsched_here: Ampsched) -> None:
    machine = CATALOG.machine("exynos5422:big=2@1600:little=1")
    assert (machine.name, machine.cores) == ("exynos5422:big=2@1600:little=1", 3)
    assert [(row[0], row[2], row[3]) for row in machine.clusters] == [("little", 1, 1400), ("big", 2, 1600)]
    ended = ampsched_here(
        "simulate", "-m", "exynos5422:big=1:little=0", "-w", "two-threads", "-p", "cfs", "--energy"
    )
    assert ended.code == 0, ended.err
    for text, message in (
        ("exynos5422:bigg=1", 'there is no cluster "bigg" (did you mean "big"?)'),
        ("exynos5422:big=9", "9 cores of cluster big, which has 4"),
        ("exynos5422:big=1@100", "at most at 100 MHz, but its frequencies are 200 to 2000 MHz"),
        ("exynos:big=1", "exynos"),
    ):
        ended = ampsched_here("simulate", "-m", text, "-w", "two-threads", "-p", "cfs")
        assert ended.code == 2
        assert message in ended.err.replace("\n", " ")


def test_a_program_with_parameters_by_name(ampsched_here: Ampsched) -> None:
    outcome = ampsched.simulate("sym-4", "chronaki-ferret-static:n=3", "cfs")
    assert len(outcome.threads) == 2 + 4 * 3
    for text, message in (
        ("ferret:m=3", 'unknown parameter "m"'),
        ("ferret:n=x", 'n = "x" is not a number'),
        ("ferrt:n=3", 'did you mean "ferret"?'),
    ):
        ended = ampsched_here("simulate", "-m", "sym-4", "-w", text, "-p", "cfs")
        assert ended.code == 2
        assert message in ended.err.replace("\n", " ")


def _single(program: str) -> ampsched.Workload:
    return CATALOG.workload(f"{program}:n=1")
