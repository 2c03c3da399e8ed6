"""The programs and mixes of Prop-SP's Table 3 are what the script writes, and have the published properties."""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import ampsched

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab" / "calibration" / "prop_sp" / "make_programs.py"
sys.path.insert(0, str(SCRIPT.parent))

import subjects  # noqa: E402

CATALOG = ampsched.Catalog.shipped()
PUBLISHED = {each.name: f"ST{each.speedup_class}" for each in subjects.SINGLE} | {
    each.name: each.kind + each.speedup_class for each in subjects.PARALLEL
}
MIXES = {mix.name: mix for mix in (*subjects.SINGLE_THREADED, *subjects.MULTITHREADED)}


def test_the_committed_files_are_what_the_script_writes() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_classes_are_thirds() -> None:
    assert pytest.approx({"L": 1.2, "M": 1.8833, "H": 2.5667}, abs=1e-4) == subjects.LOWEST
    assert [subjects.class_of(ratio) for ratio in (1.0, 1.88, 1.89, 2.56, 2.57, 3.4)] == list("LLMMHH")
    assert all(subjects.class_of(subjects.middle(name)) == name for name in "LMH")


@pytest.mark.parametrize("name", MIXES)
def test_programs_of_a_mix_are_those_of_its_label(name: str) -> None:
    label = re.sub(r"_[AB]$", "", MIXES[name].label)
    counts = {kind: int(number) for number, kind in re.findall(r"(\d)([A-Z]{3})", label)}
    assert Counter(PUBLISHED[program] for program, _ in MIXES[name].programs) == counts


@pytest.mark.parametrize("name", MIXES)
def test_there_are_as_many_threads_as_cores(name: str) -> None:
    single = MIXES[name] in subjects.SINGLE_THREADED
    machine = CATALOG.machine("opteron-2FC-2SC" if single else "opteron-2FC-10SC")
    apps = CATALOG.workload(name).apps
    assert {(app, threads) for app, _, threads in apps} == set(MIXES[name].programs)
    assert sum(threads for _, _, threads in apps) == machine.cores


def test_reconstructed_rows_say_so() -> None:
    said = {entry.name for entry in CATALOG.entries("workload") if "reconstructed" in entry.description}
    assert said == {"prop-sp-1psh-1hpm", "prop-sp-1sth-1stm-1stl-1psh"}


@pytest.mark.parametrize("subject", subjects.SINGLE, ids=lambda subject: subject.name)
def test_single_threaded_programs_have_the_published_class_and_length(subject: subjects.Single) -> None:
    (alone,) = ampsched.references("opteron-2FC-2SC-ideal", f"prop-sp-{subject.name}")
    assert subjects.class_of(alone.slow_ns / alone.fast_ns) == subject.speedup_class
    assert alone.fast_ns == pytest.approx(subject.reference_s * 1_000_000, rel=1e-6)


@pytest.mark.parametrize("subject", subjects.SINGLE, ids=lambda subject: subject.name)
def test_programs_with_several_inputs_have_phases(subject: subjects.Single) -> None:
    """The speed-up that a policy is told changes as often as there are phases."""
    seen: list[float] = []

    class Watch(ampsched.Policy):
        epoch_ms = 50.0

        def epoch(self, view: ampsched.View, _plan: ampsched.Plan) -> None:
            for thread in view.threads():
                ratio = round(view.speedup(thread), 3)
                if not seen or seen[-1] != ratio:
                    seen.append(ratio)

    outcome = ampsched.simulate("opteron-2FC-2SC-ideal", f"prop-sp-{subject.name}", Watch)
    assert outcome.apps[0].turnaround_ns > 0
    assert len(seen) == (2 * subject.inputs if subject.inputs > 1 else 1)
    assert len(set(seen)) == (2 if subject.inputs > 1 else 1)


@pytest.mark.parametrize("subject", subjects.PARALLEL, ids=lambda subject: subject.name)
def test_parallel_programs_are_sequential_as_long_as_published(subject: subjects.Parallel) -> None:
    text = (ROOT / f"python/ampsched/data/programs/prop-sp-{subject.name}.toml").read_text()
    share = tomllib.loads(text)["params"]["sequential"]
    threads = [n for mix in MIXES.values() for program, n in mix.programs if program == subject.name]
    assert threads
    for n in threads:
        of_time = share / (share + (1 - share) / n)
        assert (of_time > 0.25) == (subject.kind == "PS")
    # Simulated: the only worker is blocked while the main thread works alone.
    machine = CATALOG.machine("opteron-2FC-2SC-ideal").only_big()
    outcome = ampsched.simulate(machine, f"prop-sp-{subject.name}", core_order="as-is")
    instructions = sum(thread.instructions for thread in outcome.threads)
    workers = sum(thread.instructions for thread in outcome.threads if thread.name.startswith("worker"))
    n = len(outcome.threads)
    assert workers / instructions == pytest.approx((1 - share) * (n - 1) / n, rel=0.02)
