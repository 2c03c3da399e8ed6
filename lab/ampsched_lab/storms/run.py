"""Storms under policies in kernels of exact virtual machines, for hours of virtual time.

Each boot has one policy in one kernel; it goes on where it was stopped: what was run with the same seed, programs and
code in the kernel is not run again. The exit code is 1 if something happened that should not have; what a boot has
written is kept in --logs then.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from ampsched.vm.error import VmError
from ampsched.vm.exact import loader
from ampsched_lab.storms import report
from ampsched_lab.storms.boot import Outcome, Plan, Programs, storm
from ampsched_lab.storms.report import Entry

KERNELS = ("6.18", "7.3")
POLICIES = ("cfs", "eevdf", "a-dwrr", "rr", "gts", "colab", "wash", "hsp")
"""Every order of queues, and every way to place threads."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    usual = Plan()
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=Path, required=True, help="folder of the compiled storm")
    options.add_argument("--loader", type=Path, help="loads our policies (default: the installed one)")
    options.add_argument("--out", type=Path, required=True, help="folder of the report and its data")
    options.add_argument("--logs", type=Path, required=True, help="folder for what failed boots have written")
    options.add_argument("--kernels", default=",".join(KERNELS), help="default: %(default)s")
    options.add_argument("--policies", default=",".join(POLICIES), help="default: %(default)s")
    options.add_argument("--seed", type=int, default=usual.seed)
    options.add_argument("--cores", type=int, default=usual.cores)
    options.add_argument("--rounds", type=int, default=usual.rounds, help="storms per boot (%(default)s)")
    options.add_argument("--ms", type=int, default=usual.ms, help="of a storm (%(default)s)")
    options.add_argument("--pause-s", type=int, default=usual.pause_s, help="after each (%(default)s)")
    options.add_argument("--gone", type=int, default=usual.gone, help="CPUs go and come back (%(default)s)")
    options.add_argument("--only-report", action="store_true", help="write the page from what there is")
    options.add_argument(
        "--jobs", type=int, default=1, help="virtual machines at a time (default %(default)s)"
    )
    return options


def carry_out(arguments: argparse.Namespace, folder: Path) -> None:
    """Runs what there is no result of yet, and keeps each at once."""
    program = arguments.loader or loader("x86_64")
    programs = Programs(program.resolve(), program.with_name("ampsched-live"), arguments.programs / "storm")
    usual = Plan(
        arguments.seed, arguments.cores, arguments.rounds, arguments.ms, arguments.pause_s, arguments.gone
    )

    def one(kernel: str, policy: str) -> None:
        # Each boot has storms of its own.
        plan = replace(usual, seed=report.seed_of(usual.seed, kernel, policy))
        digest = report.digest(plan)
        known = report.read(arguments.out).get((kernel, policy))
        if known and known.digest == digest:
            return
        name, begin_s = f"{policy} on {kernel}", time.monotonic()
        try:
            outcome, log = storm(folder, programs, plan, kernel, policy, lambda text: tell(name, text))
        except VmError as error:
            outcome, log = Outcome(faults=(" ".join(str(error).split()),)), ""
        took_s = time.monotonic() - begin_s
        report.add(arguments.out, Entry(kernel, policy, plan, digest, round(took_s), outcome))
        if outcome.faults:
            arguments.logs.mkdir(parents=True, exist_ok=True)
            path = arguments.logs / f"{kernel}-{policy}-{plan.seed}.txt"
            path.write_text(log, "utf-8")
            print(f"{name}: {len(outcome.faults)} faults, see {path}", flush=True)
        print(f"{name}: {outcome.virtual_s:.0f} s in {took_s:.0f} s of this computer's", flush=True)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        cells = [
            (kernel, policy)
            for policy in arguments.policies.split(",")
            for kernel in arguments.kernels.split(",")
        ]
        for done in [pool.submit(one, *cell) for cell in cells]:
            done.result()


def tell(name: str, text: str) -> None:
    """Says how far a boot has come."""
    for line in text.splitlines():
        if line.startswith(("loaded ", "cpu ", "wrong ")) or (
            line.startswith("round ") and int(line.split()[1]) % 10 == 0
        ):
            print(f"{name}: {' '.join(line.split()[:4])}", flush=True)


def main() -> None:
    """Runs the storms and writes the page."""
    arguments = parser().parse_args()
    if not arguments.only_report:
        with tempfile.TemporaryDirectory(prefix="ampsched-storms-") as name:
            carry_out(arguments, Path(name))
    report.write(arguments.out)
    print(f"wrote {arguments.out / report.PAGE}")
    faults = sum(len(entry.outcome.faults) for entry in report.read(arguments.out).values())
    if faults:
        sys.exit(f"{faults} faults: see {arguments.out / report.PAGE}")


if __name__ == "__main__":
    main()
