"""Runs inside the virtual machine: speeds of its cores, then all mixes under each scheduler.

Argument: a JSON object, see `truth.gain.measure`. Each result is a line of JSON behind ``RESULT``.
"""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

from ampsched.live import MixProgram, run_programs
from ampsched.live._under import loaded


def speeds(programs: Path, works: list[int]) -> list[float]:
    """Nanoseconds per iteration on each core, all at the same time."""
    running = [
        subprocess.Popen(
            [str(programs / "hogs"), "--cpus", str(cpu), "--nice", "0", "--work", str(work)],
            stdout=subprocess.PIPE,
        )
        for cpu, work in enumerate(works)
    ]
    reports = [json.loads(process.communicate()[0]) for process in running]
    return [report["turnaround_ns"] / work for report, work in zip(reports, works, strict=True)]


def tell(what: list[str], value: object) -> None:
    print("RESULT " + json.dumps({"what": what, "value": value}), flush=True)


def main() -> None:
    job = json.loads(sys.argv[1])
    mixes = {name: [MixProgram(**row) for row in rows] for name, rows in job["mixes"].items()}
    tell(["speeds"], speeds(Path(job["programs"]), job["works"]))
    programs = {program.name: program for rows in mixes.values() for program in rows}
    for number in range(job["alone_repetitions"]):
        for name, program in programs.items():
            tell(["alone", name, number], run_programs([program], job["big_cpus"], job["limit_s"])[0])
    for policy, command in job["schedulers"].items():
        # What checks a scheduler's program is slow enough on a big core.
        with loaded(["taskset", "--cpu-list", job["big"], *command]) if command else nullcontext():
            for round_ in job["rounds"]:
                for name, rows in mixes.items():
                    tell(["mix", policy, name, round_], run_programs(rows, job["cpus"], job["limit_s"]))


main()
