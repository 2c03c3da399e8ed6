"""Loop schedules of OpenMP programs: which are offered, what a replay makes of them, and what to type."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ampsched.api import simulate
from ampsched.recording.files import load
from ampsched.recording.schedules import (
    AT_RUN_TIME,
    NO_RUNTIME,
    is_openmp,
    schedules,
    shared_part,
)

ROOT = Path(__file__).parents[2]
THREADS = ROOT / "docs/reports/recordings/exact/barriers-uneven.ampr"
RECORD = (sys.executable, "-m", "ampsched", "record", "--by", "library")
LOOP = """
int main(void) {
    double sum = 0;
    for (int round = 0; round < 3; round++) {
        #pragma omp parallel for num_threads(4) schedule(static) reduction(+:sum)
        for (int i = 0; i < 40000000; i++) sum += 1.0 / (1 + i);
    }
    return sum < 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of three even loops on four threads."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("loops")
    (folder / "loop.c").write_text(LOOP)
    subprocess.run(
        [compiler, "-O1", "-fopenmp", "loop.c", "-o", "loop"], cwd=folder, check=True, capture_output=True
    )
    return folder / "loop"


@pytest.fixture(scope="module")
def recorded(program: Path) -> Path:
    """Its recording."""
    command = [*RECORD, "-o", "loop.ampr", "--", str(program)]
    subprocess.run(command, cwd=program.parent, check=True, capture_output=True, timeout=60)
    return program.parent / "loop.ampr"


def test_h38_2_an_openmp_program_gets_schedules_and_others_only_what_tasks_would_do(recorded: Path) -> None:
    recording = load(recorded)
    assert is_openmp(recording)
    assert shared_part(recording) > 0.8
    found = {each.name: each for each in schedules(recording)}
    assert list(found) == ["static", "dynamic", "guided", "aid-static", "aid-hybrid"]
    assert [found[name].environment for name in ("static", "dynamic", "guided")] == [
        (("OMP_SCHEDULE", word),) for word in ("static", "dynamic", "guided")
    ]
    assert all(found[name].needs.startswith(AT_RUN_TIME) for name in ("static", "dynamic", "guided"))
    assert [found[name].params["sharing"] for name in found] == [3, 2, 4, 5, 6]
    assert (found["aid-static"].environment, found["aid-static"].needs) == ((), NO_RUNTIME)
    (own,) = schedules(load(THREADS))
    assert (own.name, own.environment) == ("piece by piece", ())


def test_h38_2_shares_by_speed_beat_equal_ones_on_unequal_cores(recorded: Path) -> None:
    """Not by all that closed forms say: at the end of equal shares, Linux moves threads to big cores that are free."""
    times = {}
    for each in schedules(load(recorded)):
        given = f"{recorded}:speedup=2:spread=0:sharing={each.params['sharing']:g}"
        times[each.name] = simulate("2B2S", given, "linux", noise="none").makespan_ns
    least_ns = load(recorded).cpu_ns / (2 + 2 / 2)
    for name in ("dynamic", "aid-static", "aid-hybrid"):
        assert 0.99 * least_ns < times[name] < 0.88 * times["static"], times


def test_h38_2_what_is_typed_is_understood(program: Path, recorded: Path) -> None:
    typed = [each.environment for each in schedules(load(recorded)) if each.environment]
    for what in (*typed, (("OMP_SCHEDULE", "dynamic,64"),)):
        environment = os.environ | dict(what) | {"OMP_DISPLAY_ENV": "true"}
        ran = subprocess.run([str(program)], env=environment, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0
        assert "nvalid" not in ran.stderr, ran.stderr
        assert what[0][1].split(",")[0].upper() in ran.stderr.upper()
