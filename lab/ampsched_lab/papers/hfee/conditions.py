"""Under which conditions HFEE's claims are judged again: one thing is changed at a time."""

from dataclasses import replace

from ampsched.execution import Progress
from ampsched_lab.papers.hfee.runs import schedulers
from ampsched_lab.papers.hfee.runs.schedulers import Results
from ampsched_lab.papers.hfee.setup import (
    COMPARED,
    LINUX,
    LITTLE,
    PAPER,
    SCHEDULERS,
    Scheduler,
)
from ampsched_lab.papers.registry import RULES
from ampsched_lab.shared.conditions import (
    AS_JUDGED,
    BUSY,
    IDLE,
    XU3_SHARING,
    Condition,
)
from ampsched_lab.shared.constants import with_other_constants
from ampsched_lab.shared.machines import changed_machine
from ampsched_lab.shared.progress import shares


def run_under(
    condition: Condition, jobs: int, orders: range, progress: Progress, as_judged: Results | None
) -> Results:
    """Runs every workload under the schedulers of the claims on the paper's machine, but for what was run already.

    Args:
        condition: What is changed.
        jobs: Processors to use; 0: all. Results do not depend on it.
        orders: Seeds of the orders.
        progress: Called with the number of finished simulations and of all.
        as_judged: The results if nothing is changed, if there are some.
    """
    known = as_judged if as_judged and condition.changes_policies_only else None
    names = condition.policies if known else COMPARED
    under = [
        Scheduler(each.name, condition.policies.get(each.name, each.policy), each.governor)
        for each in SCHEDULERS
        if each.name in names
    ]
    where = changed_machine(PAPER, condition.lines)
    if condition.mhz:
        caps = {name: f"@{mhz}" for name, mhz in condition.mhz.items()}
        where = where.part([f"{name}={count}{caps.get(name, '')}" for name, _, count, _, _ in where.clusters])
    found = schedulers.run(jobs, orders, progress, machines=[where], under=under, condition=condition)
    kept = (row for row in known.rows if row.scheduler not in names) if known else ()
    return Results((*kept, *(replace(row, machine=PAPER) for row in found.rows)))


BLIND_LINUX = Condition("Linux is not told capacities", lines={'sees = "capacities"': 'sees = "nothing"'})
FIXED_CLOCK = Condition("HFEE at a fixed 2 GHz", policies={"HFEE": "hfee:clock=0"})
CONDITIONS = (
    AS_JUDGED,
    IDLE,
    BUSY,
    XU3_SHARING,
    Condition("each program takes 30 s alone", length_ms=30_000),
    Condition("each program takes 100 s alone", length_ms=100_000),
    Condition("little cores at most at 1000 MHz", mhz={LITTLE: 1000}),
    Condition("little cores at most at 700 MHz", mhz={LITTLE: 700}),
    BLIND_LINUX,
    Condition("against Linux 3.16", policies={LINUX.name: "linux:kernel=3.16"}),
    Condition("against Linux 7.3", policies={LINUX.name: "linux:kernel=7.3"}),
    Condition("against rules (cfs)", policies={LINUX.name: RULES}),
    Condition("Min-Fair as in the scripts", policies={"Min-Fair": "min-fair-hfee"}),
    Condition("HFEE as in the scripts", policies={"HFEE": "hfee-as-published"}),
    FIXED_CLOCK,
    Condition("HFEE hardly minds waiting", policies={"HFEE": "hfee:k=1000"}),
    Condition("HFEE measures ratios while it runs", policies={"HFEE": "hfee:online=1"}),
    Condition("HFEE holds the uniformity of progress", policies={"HFEE": "hfee:reading=2"}),
    *with_other_constants(
        "hfee", {str(each.policy): each.name for each in SCHEDULERS if each.name in COMPARED}
    ),
)
"""The first one changes nothing. Variants of HFEE follow, then constants that the papers do not print.

Shorter programs than 30 s make no sense: HFEE decides once a second, and the paper's run for minutes.
"""


def run(jobs: int, repeats: int, progress: Progress | None) -> dict[str, Results]:
    """Runs all conditions with some orders; results by the name of the condition.

    Args:
        jobs: Processors to use; 0: all. Results do not depend on it.
        repeats: Orders.
        progress: Called with the number of finished simulations and of all.
    """
    steps = shares(progress, dict.fromkeys((each.name for each in CONDITIONS), 1))
    orders = range(1, repeats + 1)
    found: dict[str, Results] = {}
    for each in CONDITIONS:
        found[each.name] = run_under(each, jobs, orders, steps[each.name], found.get(AS_JUDGED.name))
    return found
