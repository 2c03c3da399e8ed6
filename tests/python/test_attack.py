"""What `make attack` is driven by: counts are exact and nothing that fails is lost, whatever ends its programs."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "attack"))

import attack  # noqa: E402
import records  # noqa: E402
import workers  # noqa: E402
from progress import Progress  # noqa: E402
from workers import Done, Failure, Job, Worker, shares, together  # noqa: E402

# Numbered work as the attack's programs do it: 3 per number, of which 1 is refused; some numbers fail or crash.
PROGRAM = """
import argparse, os, sys
p = argparse.ArgumentParser()
for name in ("seed", "first", "count"): p.add_argument("--" + name, type=int)
p.add_argument("--step", type=int, default=1)
p.add_argument("--progress")
a = p.parse_args()
number, done, refused = a.first, 0, 0
while done < a.count:
    open(a.progress, "w").write(f"{number:20} {done:20} {refused:20}\\n")
    if number % 7 == 5: sys.exit("it crashes")
    if number % 10 == 3: print(f"FAILED\\t{number}\\tcfs\\tit is wrong", flush=True)
    number, done, refused = number + a.step, done + 3, refused + 1
print(f"DONE\\t{done}\\t{refused}")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_text(f"#!{sys.executable}\n{PROGRAM}")
    path.chmod(0o755)
    return path


def job(program: Path, count: int, first: int = 0, step: int = 1) -> Job:
    return Job(program, 1, first, step, "--count", count, "--first {}", program.with_name(f"at-{first}"))


def test_work_goes_on_behind_what_crashes_and_all_is_counted(program: Path) -> None:
    progress = Progress("work", 120)
    done = together([job(program, 60, 0, 2), job(program, 60, 1, 2)], progress)
    crashed = [f for f in done.failures if "it crashes" in f.what]
    wrong = [f for f in done.failures if f.what == "cfs: it is wrong"]
    assert len(crashed) + len(wrong) == len(done.failures)
    numbers = {int(f.repeat.split()[-1]) for f in crashed}
    assert numbers == {n for n in range(max(numbers) + 1) if n % 7 == 5}
    assert {int(f.repeat.split()[-1]) for f in wrong} >= {3, 13, 23, 43}, (
        "also those of processes that crash later"
    )
    whole = (done.count - len(crashed)) // 3
    assert done.count == 3 * whole + len(crashed)
    assert done.count >= 120
    assert done.refused == whole


def test_kinds_are_added_up_and_one_that_compares_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nprintf 'KIND\\tone\\t2\\t7\\nKIND\\tother\\t2\\t0\\nDONE\\t4\\t0\\n'\n")
    program.chmod(0o755)
    monkeypatch.setattr(workers, "build", lambda _: program)
    done = attack.references(attack.Task(8, 1, 2, tmp_path, False, Progress("work", 8)))
    assert done.count == 8
    assert done.notes == ["one: 4 cases, 14 values", "other: 4 cases, 0 values"]
    assert [failure.what for failure in done.failures] == ["other: nothing was compared"]


def test_who_always_crashes_is_given_up(program: Path) -> None:
    worker = Worker(job(program, 60, 5, 7))
    done = worker.run()
    assert 1 < len(done.failures) < 60
    assert done.count == len(done.failures)


def test_a_program_that_cannot_begin_fails(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho no such option >&2; exit 2\n")
    program.chmod(0o755)
    done = Worker(job(program, 10)).run()
    assert done.count == 0
    assert [f.what for f in done.failures] == ["exit code 2: no such option"]


@pytest.mark.parametrize(("count", "jobs", "parts"), [(10, 3, [4, 3, 3]), (2, 4, [1, 1]), (5, 1, [5])])
def test_shares_are_all_there_is(count: int, jobs: int, parts: list[int]) -> None:
    assert shares(count, jobs) == parts


def test_progress_says_how_long_it_takes() -> None:
    progress = Progress("inputs", 2000)
    progress.reach(500)
    assert progress.line(100) == "inputs: 500 of 2,000 (25 %), 5 min left"
    progress.add(1490)
    assert progress.line(1990) == "inputs: 1,990 of 2,000 (99 %), 10 s left"


def test_the_page_tells_parts_of_several_runs(tmp_path: Path) -> None:
    head = records.told("git", "rev-parse", "--short", "HEAD")
    state = records.State(head, False)
    for part, done in [
        ("rounds", Done(90, failures=[Failure("task 3: 1 is not 2", "attack-rounds --first 7")])),
        ("simulations", Done(100, notes=["5 refused", "word " * 31])),
    ]:
        records.keep(tmp_path, records.record(part, part.title(), "What holds.", 100, 7, state, 60, done))
    records.render(tmp_path, ["simulations", "parsers", "rounds"])
    page = (tmp_path / "report.md").read_text()
    assert page.index("| Simulations | 100 | 7 | 1.0 | 0 |") < page.index(
        "| Rounds | 90 of 100 | 7 | 1.0 | 1 |"
    )
    assert "* **failed**: task 3: 1 is not 2; `attack-rounds --first 7`" in page
    assert "* 5 refused" in page
    assert all(len(line) <= records.WIDTH for line in page.splitlines() if not line.startswith("|"))
    assert page.count("word") == 31
    assert head in page


def test_the_command_refuses_what_it_does_not_know() -> None:
    for wrong in (["--parts", "simulatoins"], ["--rounds", "0"], ["--jobs", "0"]):
        ran = subprocess.run(
            [sys.executable, ROOT / "tests/attack/attack.py", *wrong],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            check=False,
        )
        assert ran.returncode == 2
        assert "Traceback" not in ran.stderr


def test_low_two_calls_do_not_delete_each_other_s_work(tmp_path: Path) -> None:
    done = Done()

    def part(task: attack.Task) -> Done:
        (task.out / "at").write_text("17")
        with pytest.raises(
            attack.InUse, match=r"/rounds: another attack works here \(wait for it, or attack in"
        ):
            attack.attack("rounds", task)
        assert (task.out / "at").read_text() == "17"
        done.count = task.count
        return done

    task = attack.Task(3, 1, 1, tmp_path / "out" / "rounds", False, Progress("work", 3))
    told = attack.PARTS["rounds"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(attack.PARTS, "rounds", dataclasses.replace(told, run=part))
        assert attack.attack("rounds", task).failures == []
        # Whoever is through leaves it free.
        assert attack.attack("rounds", task).failures == []
