"""The program models are what the fit makes of the recordings, and they behave like them."""

import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the fit of program models needs numpy (extra: calibrate)")
pytest.importorskip("zstandard", reason="the fit of program models needs zstandard (extra: calibrate)")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab" / "calibration" / "fit"))

import fit  # noqa: E402
import report  # noqa: E402
import workloads  # noqa: E402
from evaluate import measure  # noqa: E402
from phases import Phase, find_loops, similar_within  # noqa: E402

CHEAP = [
    "blackscholes",
    "bodytrack",
    "bzip2",
    "ferret",
    "fft",
    "freqmine",
    "mcf",
    "radix",
    "swaptions",
    "water_nsquared",
]
"""Programs whose fit takes a fraction of a second; `make -C lab calibrate` does all."""


@pytest.mark.parametrize("name", CHEAP)
def test_the_committed_program_is_what_the_fit_writes(name: str) -> None:
    fitted = fit.FITS[name]()
    assert fit.differing(fit.outputs([fitted])) == []


@pytest.mark.parametrize("name", CHEAP)
def test_the_model_has_the_recorded_work_and_events(name: str) -> None:
    fitted = fit.FITS[name]()
    recorded, model = fitted.observed, report.compare(fitted).model
    # Log-normal draws leave some error in the sums even over five runs.
    assert model.giga_instructions == pytest.approx(recorded.giga_instructions, rel=0.03)
    assert model.barriers == recorded.barriers
    assert model.items == recorded.items
    assert model.pairs == pytest.approx(recorded.pairs, rel=0.02)
    assert model.segments.mean == pytest.approx(recorded.segments.mean, rel=0.03)
    assert model.segments.cv == pytest.approx(recorded.segments.cv, abs=0.1)


@pytest.mark.parametrize("name", fit.FITS)
def test_every_fitted_program_ends_with_any_number_of_threads(name: str) -> None:
    text = (fit.DATA / "programs" / f"{name}.toml").read_text()
    if "n" not in tomllib.loads(text)["params"]:
        assert measure(text, {}).span > 0
        return
    works = []
    for n in (1, 3, 8):
        measured = measure(text, {"n": float(n)})
        works.append(sum(sum(each) for each in measured.work.values()))
    # The input is fixed; loops over locks round, and draws vary.
    assert max(works) < 1.25 * min(works)


def test_workload_files_are_what_the_rule_says() -> None:
    assert fit.differing(fit.workload_files()) == []


@pytest.mark.parametrize("name", workloads.CGO)
def test_thread_counts_meet_table_4(name: str) -> None:
    programs, total = workloads.CGO[name]
    names = programs.split()
    parameters = workloads.split(names, total)
    assert sum(workloads.threads(each, n) for each, n in zip(names, parameters, strict=True)) == total
    for each, n in zip(names, parameters, strict=True):
        assert n == workloads.LIMITED.get(each, n)
        assert each not in workloads.POWER_OF_TWO or n & (n - 1) == 0


def test_the_program_files_have_the_threads_of_the_papers_formulas() -> None:
    for name in workloads.SINGLE.split():
        text = (fit.DATA / "programs" / f"{name}.toml").read_text()
        measured = measure(text, {"n": 2.0})
        assert sum(len(threads) for threads in measured.work.values()) == workloads.threads(name, 2), name


def test_impossible_totals_are_refused() -> None:
    with pytest.raises(ValueError, match="add up to 5"):
        workloads.split(["water_nsquared", "fmm"], 5)


def phase(mean_ns: int) -> Phase:
    return Phase((mean_ns, mean_ns), (0, 0), 0, (0, 0), 0, 0, frozenset())


def test_loops_are_found_in_a_sequence_of_phases() -> None:
    lengths = [900_000] + 3 * [100_000, 500_000] + 2 * [2_000_000]
    blocks = find_loops([phase(length) for length in lengths], similar_within(0.1, 0))
    found = [(block.repeat, [group[0].cpu_ns[0] for group in block.members]) for block in blocks]
    assert found[:2] == [(1, [900_000]), (3, [100_000, 500_000])]
    assert sum(block.repeat * len(block.members) for block in blocks) == len(lengths)


def test_a_deadlock_is_reported() -> None:
    text = """
[params]
n = 1
[barriers.b]
parties = 2
[[threads]]
name = "t"
body = [ { barrier = "b" } ]
"""
    with pytest.raises(RuntimeError, match="1 threads wait for ever"):
        measure(text, {})
