"""Measures what scheduling costs on 4 to 32 equal cores and writes docs/reports/truth/cores.md.

A measurement, not a test: nothing fails if the figures are bad, and nothing is tuned to them. It may be stopped at any
time and goes on later: what it has measured is kept in --results, and what was measured with other programs, another
clock or other code in the kernel is measured anew.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from ampsched_lab.campaign.run import Group, carry_out
from ampsched_lab.campaign.store import Store
from ampsched_lab.cores import report
from ampsched_lab.cores.points import CORES, QUANTA_US, SCHEDULERS, points


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--programs", type=Path, required=True, help="folder of the compiled C programs")
    options.add_argument("--peers", type=Path, required=True, help="folder of the other scheduler's program")
    options.add_argument("--loader", type=Path, help="loads our policies (default: the installed one)")
    options.add_argument("--results", type=Path, required=True, help="folder of what is measured")
    options.add_argument(
        "--page", type=Path, help="in which the region is replaced, with a picture beside it"
    )
    options.add_argument("--cores", default=_words(CORES), help="some of %(default)s")
    options.add_argument("--quanta", default=_words(QUANTA_US), help="in us, some of %(default)s")
    options.add_argument("--schedulers", default=_words(SCHEDULERS), help="some of %(default)s")
    options.add_argument("--only-report", action="store_true", help="write the page from what there is")
    options.add_argument(
        "--jobs", type=int, default=1, help="virtual machines at a time (default %(default)s)"
    )
    return options


def _words(values: tuple[object, ...]) -> str:
    return ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def measure(arguments: argparse.Namespace, folder: Path, store: Store) -> list[str]:
    """Runs what the store does not have yet; returns what has failed."""
    cores = [int(word) for word in arguments.cores.split(",")]
    quanta_us = [float(word) for word in arguments.quanta.split(",")]
    names = arguments.schedulers.split(",")
    groups = [
        Group(
            point.guest(folder, arguments.programs.resolve()),
            point.scheduler(name, arguments.peers, arguments.loader and arguments.loader.resolve()),
            point.mixes(),
        )
        for point in points(cores, quanta_us)
        for name in names
    ]
    failures = carry_out(groups, [[0]], store, jobs=arguments.jobs, tell=lambda line: print(line, flush=True))
    store.note(failures, [group.name for group in groups])
    return failures


def main() -> None:
    """Measures and writes."""
    arguments = parser().parse_args()
    store = Store(arguments.results)
    with tempfile.TemporaryDirectory(prefix="ampsched-cores-") as name:
        folder = Path(name)
        failures = [] if arguments.only_report else measure(arguments, folder, store)
        results = report.Results.read(store, folder, arguments.programs.resolve(), arguments.peers)
        if arguments.page:
            picture = arguments.page.with_name("many-cores.svg")
            report.draw(results, picture)
            arguments.page.write_text(report.text(results, picture.name), "utf-8")
            print(f"wrote {arguments.page}")
    if failures:
        sys.exit(f"{len(failures)} boots have failed, see above; what was measured is kept")


if __name__ == "__main__":
    main()
