"""Writes docs/reports/truth/contention.md: `python -m ampsched_lab.truth.contention.run`.

A measurement, not a test: nothing fails if the figures differ, and nothing is tuned to make them agree.
"""

import argparse
import tempfile
from pathlib import Path

from ampsched.markdown import page
from ampsched_lab.shared import summaries
from ampsched_lab.truth.contention import bandwidth, l2, smt

HEAD = """\
# Contention beside measurements

Written by `make -C lab truth-contention`; nothing was fitted to these figures. [Threads that slow each other
down](../../explanation/contention.md) explains the mechanisms."""
PARTS = (
    (
        """\
## A shared L2, beside real caches

The [exact virtual machine](../../howto/run-on-cores-you-do-not-have.md) has an L2 for all CPUs of a class (`--caches`).
Here its caches are driven directly, by threads that load in known ways: an L2 of 1 MiB, 20 cycles for it and 100 more
for the memory. Profiles state only misses with 512 KiB and 2 MiB. *uniform*: any line of the data; *skewed*: the
logarithm of the line's rank is uniform; *stream*: one line after the other.""",
        l2.section,
        "Most of the error comes from the profile: two sizes say little about data of 3 MiB, alone as well.",
    ),
    (
        """\
## Bandwidth, beside published measurements

One thread's bandwidth sets the speed of the loop, the highest published bandwidth sets the memory, the data sheet its
channels. Texas Instruments measured the A53s (LMBench, report SPRADG0A of 2024), the authors of kerncraft at RRZE
Erlangen the Xeons (likwid-bench; in kerncraft's example machine files). The latency of the Xeons' memory is assumed to
be 90 ns.""",
        bandwidth.section,
        """\
Errors above 10 % lie where the memory begins to saturate. Real memory loses bandwidth there by opening rows and by
turning from reads to writes, which a queue does not know.""",
    ),
    (
        """\
## Two threads of a core, beside published measurements

Loops over data in the L2 on four cores of a Skylake (Xeon Gold 5122, kerncraft's file). One core with one and with two
threads sets `smt_speed`; more cores are compared. The last column has one value for all loops, as a machine's file
does.""",
        smt.section,
        """\
So one value is wrong by up to a fifth for single loops: state that of your programs. A second thread that does harm, as
in copying, cannot be stated.""",
    ),
)


def main() -> None:
    """Compares, and writes."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--page", type=Path, default=Path("docs/reports/truth/contention.md"))
    arguments = options.parse_args()
    blocks = [HEAD]
    for head, section, rest in PARTS:
        with tempfile.TemporaryDirectory() as folder:
            blocks += [head, section(Path(folder)), rest]
        print("\n\n".join(blocks[-3:]) + "\n")
    summaries.write(arguments.page, page(*blocks), summaries.kind_of(Path("contention.md")))


if __name__ == "__main__":
    main()
