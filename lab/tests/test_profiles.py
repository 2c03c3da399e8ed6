"""The shipped profiles are what the script makes of the measurements."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lab" / "calibration" / "profiles" / "make_profiles.py"
PROFILES = ROOT / "python" / "ampsched" / "data" / "profiles"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False
    )


def test_the_committed_profiles_are_what_the_script_writes() -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr


def test_the_check_notices_a_changed_number(tmp_path: Path) -> None:
    assert run("--target", str(tmp_path)).returncode == 0
    assert run("--check", "--target", str(tmp_path)).returncode == 0
    changed = tmp_path / "parsec.toml"
    changed.write_text(changed.read_text().replace("branch_mpki = 13.3682", "branch_mpki = 13.3683"))
    done = run("--check", "--target", str(tmp_path))
    assert done.returncode == 1
    assert "parsec.toml" in done.stderr


def test_every_measured_program_and_stage_has_a_profile() -> None:
    names = {path.stem: set(tomllib.loads(path.read_text())["profiles"]) for path in PROFILES.glob("*.toml")}
    counts = {"splash3": 14, "parsec": 10, "spec": 16, "stages": 11}
    assert {suite: len(names[suite]) for suite in counts} == counts
    assert {"water_nsquared", "water_spatial"} <= names["splash3"]
    assert {"dedup.compress", "ferret.rank"} <= names["stages"]


def test_every_number_states_its_source() -> None:
    for suite in ("splash3", "parsec", "spec", "stages"):
        for line in (PROFILES / f"{suite}.toml").read_text().splitlines():
            key, _, value = line.partition(" = ")
            if value and value[0].isdigit():
                assert len(value.partition("#")[2].strip()) > 3, f"{suite}: {key}"
