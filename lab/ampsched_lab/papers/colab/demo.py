"""The main comparison of COLAB's paper, in a minute: ``python -m ampsched_lab.papers.colab.demo``.

26 mixes on four machines, big cores first and little cores first, under Linux as in the paper, WASH and COLAB. It needs
nothing but what the product needs; `ampsched reproduce colab` does the rest: more seeds, single programs, predicted
speed-ups, conditions, figures.
"""

from collections.abc import Iterator

from ampsched.api import compare
from ampsched.catalog import Catalog
from ampsched.cli.progress import progress_bar
from ampsched.comparison import Comparison
from ampsched.execution import Progress
from ampsched_lab.papers.colab.report import CLAIMS
from ampsched_lab.papers.colab.setup import BASELINE, MACHINES, POLICIES, workloads
from ampsched_lab.shared.claims.judging import measure
from ampsched_lab.shared.normalised import Normalised
from ampsched_lab.shared.progress import shares

SEEDS = 3
SHOWN = ("C2b", "C23a", "C2d", "C23b", "C10a", "C12a", "C16a", "C17a", "C18a")
"""Claims of the table: turnaround and throughput over all mixes, then turnaround by class of mixes."""


def run(progress: Progress | None = None) -> Comparison:
    """Runs the comparison; `progress` is called with the number of finished simulations and of all."""
    mixes = [Catalog.shipped().workload(name) for name in workloads()]
    steps = shares(progress, dict.fromkeys(MACHINES, len(mixes) * len(POLICIES) * 2 * SEEDS))
    some = [compare(machine, mixes, POLICIES, repeat=SEEDS, progress=steps[machine]) for machine in MACHINES]
    return Comparison(POLICIES, tuple(run for each in some for run in each.runs))


def lines(comparison: Comparison) -> Iterator[str]:
    """The table: each claim, the paper's value, and ours with its 95 % interval over seeds."""
    data = Normalised(comparison, linux=BASELINE.policy)
    by_id = {claim.id: claim for claim in CLAIMS.all}
    yield f"{'COLAB (CGO 2020), 26 mixes on 4 machines':<46}{'paper':>7}  here [95 % interval]"
    for name in SHOWN:
        claim = by_id[name]
        text = claim.text.partition(" (also")[0]
        yield f"  {text:<44}{claim.published:>7}  {measure(claim, data).text}"


def main() -> None:
    """Runs and prints."""
    with progress_bar("Comparing COLAB with its paper") as progress:
        comparison = run(progress)
    print("\n".join(lines(comparison)))
    print("  why they differ: docs/reports/colab/report.md")


if __name__ == "__main__":
    main()
