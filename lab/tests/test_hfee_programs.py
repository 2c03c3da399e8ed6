"""The programs and workloads of HFEE are what the script writes, and have the published properties."""

import subprocess
import sys
from pathlib import Path

import pytest

import ampsched

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab" / "calibration" / "hfee" / "make_programs.py"
CATALOG = ampsched.Catalog.shipped()


@pytest.fixture(scope="module")
def table():
    """The published table; its module's name is that of another script's, too."""
    namespace: dict = {"__name__": "hfee_subjects"}
    exec((SCRIPT.parent / "subjects.py").read_text(), namespace)
    return namespace


def test_the_committed_files_are_what_the_script_writes() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_programs_run_as_long_and_as_fast_as_published(table) -> None:
    big = CATALOG.machine("exynos5422-2B2S").only_big()
    for subject in table["SUBJECTS"]:
        workload = CATALOG.workload(f"hfee-{subject.name}")
        outcome = ampsched.simulate(big, workload)
        assert outcome.makespan_ns / 1e6 == pytest.approx(subject.time_ms, rel=1e-3)
        assert outcome.threads[0].instructions == subject.instructions
        assert workload.energy_ratios == [subject.eer]


def test_classes_are_those_of_the_instruction_rates_but_for_what_the_paper_prints(table) -> None:
    """Table 2: L below 1e9 instructions per s, M up to 1.5e9, H above; two programs stand in the next lower class."""
    subjects = {subject.name: subject for subject in table["SUBJECTS"]}
    found = {name: "LMH"[(each.ips_m >= 1000) + (each.ips_m > 1500)] for name, each in subjects.items()}
    others = {name for name, each in subjects.items() if each.speed_class != found[name]}
    assert others == {"omnetpp", "astar"}


def test_workloads_have_six_programs_of_the_published_classes(table) -> None:
    subjects = {subject.name: subject for subject in table["SUBJECTS"]}
    assert len(subjects) == 28
    assert len(table["WORKLOADS"]) == 15
    for name, (classes, _) in table["WORKLOADS"].items():
        programs = [app for app, _, _ in CATALOG.workload(f"hfee-{name}").apps]
        assert len(programs) == 6
        assert sorted(subjects[program].speed_class for program in programs) == sorted(classes)
