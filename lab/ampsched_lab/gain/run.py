"""Measures what policies gain over other schedulers in real kernels, simulates the same, and writes the report.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree. It goes on
where the last one stopped: results are kept.
"""

import argparse
import time
from pathlib import Path

from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.run import carry_out
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain import report
from ampsched_lab.gain.campaign import alone, blocks, kept, mixed
from ampsched_lab.gain.machines import ARM, MACHINES, OURS, PEERS, X86, Workshop

SCHEDULERS = (KERNEL, *PEERS, *OURS)
FIRST, LAST = 1, 30


def main() -> None:
    """Measures until the time is over, unless told only to report, and reports."""
    arguments = parser().parse_args()
    store = Store(arguments.results)
    if not arguments.only_report:
        loaders = dict(each.split("=", 1) for each in arguments.loader)
        workshop = Workshop(
            arguments.programs.resolve(),
            arguments.peers.resolve(),
            arguments.inputs.resolve(),
            {architecture: Path(path).resolve() for architecture, path in loaders.items()},
        )
        places = arguments.machines.split(","), arguments.architectures.split(",")
        until_s = time.monotonic() + 60 * arguments.minutes if arguments.minutes else None
        common = {"jobs": arguments.jobs, "until_s": until_s, "keep": kept, "tell": _tell}
        references = alone(workshop, *places)
        failures = carry_out(references, [[0]], store, **common)
        groups = mixed(workshop, *places, arguments.schedulers.split(","))
        failures += carry_out(groups, blocks(arguments.first, arguments.last), store, **common)
        store.note(failures, [group.name for group in (*references, *groups)])
    report.write(arguments.out, store)
    print(f"wrote {arguments.out / 'report.md'}")


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=Path, required=True, help="folder of the compiled C programs")
    options.add_argument("--peers", type=Path, required=True, help="folder of the other schedulers' programs")
    options.add_argument("--inputs", type=Path, required=True, help="folder for what real programs work on")
    options.add_argument("--results", type=Path, required=True, help="folder of what is measured")
    options.add_argument("--out", type=Path, required=True, help="folder of the report")
    options.add_argument(
        "--loader", action="append", default=[], metavar="ARCHITECTURE=FILE",
        help="the program that puts our policies into a kernel (default: the installed one)",
    )  # fmt: skip
    options.add_argument("--machines", default=",".join(MACHINES))
    options.add_argument("--architectures", default=f"{X86},{ARM}")
    options.add_argument("--schedulers", default=",".join(SCHEDULERS))
    options.add_argument("--first", type=int, default=FIRST, help="first offset (default %(default)s)")
    options.add_argument("--last", type=int, default=LAST, help="last offset (default %(default)s)")
    options.add_argument(
        "--jobs", type=int, default=1, help="virtual machines at a time (default %(default)s)"
    )
    options.add_argument("--minutes", type=float, help="begin no boot after that time")
    options.add_argument("--only-report", action="store_true", help="make the report anew from what there is")
    return options


def _tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
