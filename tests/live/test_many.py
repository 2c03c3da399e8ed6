"""Loads for many cores and storms, a small part of each: the laboratory's truth-cores and storms have the rest."""

import subprocess
from pathlib import Path

from machines import BUILT, ROOT

from ampsched_lab.campaign.boot import boot
from ampsched_lab.campaign.plan import Run
from ampsched_lab.cores.points import SHARED, SOURCES, Point
from ampsched_lab.storms.boot import HERE, Plan, Programs, storm

CFLAGS = ("-O2", "-std=gnu11", "-pthread", "-static")


def compiled(folder: Path, name: str, *sources: Path) -> Path:
    """A program for guests."""
    subprocess.run(["cc", *CFLAGS, "-o", folder / name, *sources], check=True)
    return folder / name


def test_loads_for_many_cores_run_under_a_policy(loader: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    compiled(programs, "director", ROOT / "lab/ampsched_lab/campaign/director.c")
    for name in ("pairs", "groups", "wakers", "build"):
        compiled(programs, name, SOURCES / f"{name}.c", SOURCES / SHARED[0])
    point = Point(4, 50.0)
    runs = [Run(mix, 0) for mix in point.mixes()]
    rows = boot(point.guest(tmp_path, programs), point.scheduler("cfs", tmp_path, loader), runs)
    said = {row["key"]: {each["name"]: each["report"] for each in row["programs"]} for row in rows}
    assert said["pairs 0"]["pairs"]["wakeups"] > 4000
    assert said["groups 0"]["groups"]["messages"] > 4000
    # Cores are idle for half of the time.
    assert said["wakers 0"]["wakers"]["p99_ns"] < 1_000_000
    assert said["build 0"]["build"]["jobs"] > 20
    assert said["wakers+build 0"]["wakers"]["wakeups"] > 100
    assert said["wakers+build 0"]["build"]["jobs"] > 10


def test_a_storm_goes_by(loader: Path, tmp_path: Path) -> None:
    """Five seconds with four storms, in which everything happens but that CPUs go."""
    program = compiled(tmp_path, "storm", HERE / "storm.c", HERE / "targets.c")
    programs = Programs(loader, BUILT / "ampsched-live", program)
    plan = Plan(seed=1, cores=4, rounds=4, ms=250, pause_s=1, gone=0)
    outcome, log = storm(tmp_path, programs, plan, "6.18", "colab", print)
    assert outcome.faults == (), log
    assert outcome.storm_s >= 1
    assert min(outcome.counts.values()) > 0, outcome.counts
    assert outcome.seen[1] > 100, "epochs"
