"""Every workload and program on every machine under every policy, with invariants checked after every event.

    make sweep             one combination of machine and workload in 20
    make sweep EVERY=1     all of them, which takes about ten minutes

What fails is printed, as the command that repeats it; the exit code is 1 then.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from rich.progress import track

from ampsched.catalog import Catalog
from ampsched.execution import job_of, run_one
from ampsched.policy import PolicySpec, policies
from ampsched.settings import RunSettings

UNTIL_MS = 2000.0
"""Long programs are stopped then: they repeat themselves."""


def commands(case: tuple[str, str]) -> list[str]:
    """Runs a workload on a machine under every policy; the commands that failed, with their errors."""
    machine, workload = case
    settings, catalog = RunSettings(check=True, until_ms=UNTIL_MS), Catalog.shipped()
    where, what = catalog.machine(machine), catalog.workload(workload)
    failed = []
    for info in policies():
        policy = PolicySpec.of(info.name)
        try:
            run_one(job_of(settings, where, what, policy), policy)
        except Exception as error:
            command = f"ampsched simulate --machine {machine} --workload {workload} --policy {info.name} --until-ms {UNTIL_MS:g} --check"
            failed.append(f"{command}\n    {type(error).__name__}: {error}")
    return failed


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=20, help="one combination in so many (20)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (one per CPU)")
    arguments = parser.parse_args()
    catalog = Catalog.shipped()
    machines = [entry.name for entry in catalog.entries("machine")]
    workloads = [entry.name for kind in ("workload", "program") for entry in catalog.entries(kind)]
    chosen = list(product(machines, workloads))[arguments.first :: arguments.every]
    failed = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        done = pool.map(commands, chosen)
        for lines in track(done, "Simulating", len(chosen), disable=not sys.stderr.isatty()):
            failed += lines
    print(
        f"{len(chosen)} of {len(machines) * len(workloads)} combinations under {len(policies())} policies: {len(failed)} failed"
    )
    print(os.linesep.join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
