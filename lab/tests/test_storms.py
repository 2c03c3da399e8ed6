"""Storms: the program checks its own work, what a guest says is judged, kept and shown; nothing is booted."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ampsched_lab.storms import report
from ampsched_lab.storms.boot import GUEST, HERE, PASSING, THIN, Outcome, Plan, read
from ampsched_lab.storms.report import KINDS, Entry

PLAN = Plan(seed=3, rounds=2, gone=0)
ROUND = json.dumps({"ms": 260, "forks": 5, "kills": 2})
GOOD = f"""release 6.18.15
loaded 50.10
round 1 0 enabled {ROUND}
round 2 0 enabled {ROUND}
threads 24 1 0
said ampsched-live-scx: cfs on big 0-1, little 2-3 (stated by hand)
said ampsched-live-scx: cfs as written for 3.1 s: 91 threads, 12 epochs, 7 decisions, 1 % of a CPU; all put back
code 143
after disabled
log [   90.000000] sched_ext: BPF scheduler "ampsched" disabled (unregistered from user space)
ended 90.35
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled storm."""
    path = tmp_path_factory.mktemp("storms") / "storm"
    sources = [HERE / "storm.c", HERE / "targets.c"]
    subprocess.run(["cc", "-O1", "-std=gnu11", "-pthread", "-o", path, *sources], check=True)
    return path


def counts(program: Path, *words: str) -> dict[str, int]:
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    found: dict[str, int] = json.loads(done.stdout)
    assert found.pop("ms") >= int(words[2])
    return found


LONG_MS = "400"


def test_what_happens_is_drawn_from_seed_and_round(program: Path) -> None:
    """In these rounds nobody needs rights. All that is drawn comes to happen, also on a busy computer."""
    found = [counts(program, "1", str(number), LONG_MS) for number in (3, 6)]
    assert all(list(each) == list(KINDS) for each in found)
    kinds = [{kind for kind, count in each.items() if count} for each in found]
    assert kinds[0] != kinds[1]
    assert {kind for kind, count in counts(program, "1", "3", LONG_MS).items() if count} == kinds[0]


def test_what_a_storm_executes_answers(program: Path) -> None:
    assert subprocess.run([program, "answer", "7"]).returncode == 7
    assert subprocess.run([program], capture_output=True).returncode == 2


def test_the_guest_s_script_is_one() -> None:
    subprocess.run(["sh", "-n", GUEST], check=True)
    assert {f"THIN={THIN} ", f"PASSING={PASSING} "} <= set(
        re.findall(r"^[A-Z]+=\d+ ", GUEST.read_text(), re.MULTILINE)
    )


def test_thin_storms_are_counted_apart() -> None:
    thin = json.dumps({"ms": 250 * THIN + 40, "forks": 1})
    outcome = read(f"{GOOD}round 4 0 enabled {thin}\ncpu 2 0 60.1\n", PLAN)
    assert (outcome.storm_s, outcome.thin_s, outcome.cpus) == (0.52, 30.04, 1)


def test_what_the_guest_says_is_summed_up() -> None:
    outcome = read(GOOD, PLAN)
    assert outcome == Outcome(
        release="6.18.15",
        virtual_s=90.35,
        policy_s=40.25,
        storm_s=0.52,
        rounds=2,
        counts={"forks": 10, "kills": 4},
        threads=(24, 1, 0),
        seen=(91, 12, 7),
    )


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("round 2 0 enabled", "round 2 1 enabled", "round 2: the storm ended with 1"),
        ("round 2 0 enabled", "round 2 0 disabled", "round 2: the scheduler was disabled"),
        (f"round 2 0 enabled {ROUND}\n", "", "1 of 2 rounds"),
        ("threads 24 1 0", "threads 24 1 2", "the session knows 24 threads: 1 are gone, 2 are missing"),
        ("threads 24 1 0", "threads 24 9 0", "the session knows 24 threads: 9 are gone, 0 are missing"),
        ("threads 24 1 0\n", "", "the session's status was read 0 times"),
        ("threads 24", 'wrong storm: "inherit" has failed: status 0x100\nthreads 24', 'storm: "inherit" has'),
        ("code 143", "code 1", "the session ended with ['1']"),
        ("all put back", "some not put back", "the session ended without"),
        ("after disabled", "after enabled", "the kernel's scheduler is ['enabled'] afterwards"),
        ("ended", "log [ 89.0] WARNING: CPU: 3 PID: 77\nended", "the kernel says: [ 89.0] WARNING"),
    ],
)
def test_what_should_not_happen_is_a_fault(old: str, new: str, fault: str) -> None:
    assert old in GOOD
    [found] = read(GOOD.replace(old, new), PLAN).faults
    assert found.startswith(fault)


def test_a_guest_that_stops_half_way_has_faults() -> None:
    outcome = read("\n".join(GOOD.splitlines()[:3]), PLAN)
    assert len(outcome.faults) >= 4
    assert read("", PLAN).faults


def test_what_is_known_is_noted() -> None:
    text = GOOD + "log [ 91.0] NOHZ tick-stop error: local softirq work is pending, handler #200!!!\n"
    assert (read(text, PLAN).noted, read(text, PLAN).faults) == (1, ())


def test_results_are_kept_and_shown(tmp_path: Path) -> None:
    good = Entry("6.18", "cfs", PLAN, report.digest(PLAN), 77, read(GOOD, PLAN))
    bad = replace(good, kernel="7.3", outcome=read(GOOD.replace("code 143", "code 1"), PLAN))
    for entry in (bad, good):
        report.add(tmp_path, entry)
    assert report.read(tmp_path) == {("6.18", "cfs"): good, ("7.3", "cfs"): bad}
    report.write(tmp_path)
    page = (tmp_path / report.PAGE).read_text()
    assert "| 6.18 | cfs | 3 | 90 | 0.5 | 0 | 2 | 0 | 24 | 12 | 7 | 77 | 0 |" in page
    assert report.STALE_NOTE not in page
    report.add(tmp_path, replace(good, digest="old"))
    report.write(tmp_path)
    assert "| 6.18 | cfs* | 3 |" in (tmp_path / report.PAGE).read_text()
    assert "* cfs on 7.3, seed 3: the session ended with ['1']" in page
    assert "| processes that end at once (`fork`) | 10 | 10 | 20 |" in page


def test_boots_have_seeds_of_their_own_and_plans_their_digests() -> None:
    assert (
        len({report.seed_of(1, kernel, policy) for kernel in ("6.18", "7.3") for policy in ("cfs", "rr")})
        == 4
    )
    assert report.seed_of(2, "7.3", "rr") == report.seed_of(1, "7.3", "rr") + 1_000_000
    assert report.digest(PLAN) != report.digest(replace(PLAN, seed=4))
