"""Under which conditions HFEE's claims are judged again: one thing is changed at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ampsched.execution import Progress
from ampsched.experiments.hfee.runs import schedulers
from ampsched.experiments.hfee.runs.schedulers import Results
from ampsched.experiments.hfee.setup import COMPARED, LINUX, PAPER, SCHEDULERS, Scheduler, machine
from ampsched.experiments.machines import changed_machine
from ampsched.experiments.progress import shares


@dataclass(frozen=True, slots=True)
class Condition:
    """What is changed on the paper's machine."""

    name: str
    noise: str = "none"
    lines: Mapping[str, str] = field(default_factory=dict)
    """Of the machine's file: what stands there, and what stands there instead."""
    schedulers: Mapping[str, str] = field(default_factory=dict)
    """By the scheduler's name, the policy that is run instead."""

    def run(self, jobs: int, orders: range, progress: Progress, as_judged: Results | None) -> Results:
        """Runs every workload under the schedulers of the claims, but for what was run already.

        Args:
            jobs: Processors to use; 0: all. Results do not depend on it.
            orders: Seeds of the orders.
            progress: Called with the number of finished simulations and of all.
            as_judged: The results if nothing is changed, if there are some.
        """
        changes_all = as_judged is None or self.noise != "none" or self.lines
        under = [
            Scheduler(each.name, self.schedulers.get(each.name, each.policy), each.governor)
            for each in SCHEDULERS
            if (each.name in COMPARED if changes_all else each.name in self.schedulers)
        ]
        where = changed_machine(PAPER, self.lines) if self.lines else machine(PAPER)
        found = schedulers.run(jobs, orders, progress, machines=[where], under=under, noise=self.noise)
        if changes_all:
            return found
        assert as_judged is not None
        kept = (row for row in as_judged.rows if row.scheduler not in self.schedulers)
        return Results((*kept, *found.rows))


AS_JUDGED = Condition("as judged")
BLIND_LINUX = Condition("Linux is not told capacities", lines={'sees = "capacities"': 'sees = "nothing"'})
FIXED_CLOCK = Condition("HFEE at a fixed 2 GHz", schedulers={"HFEE": "hfee:clock=0"})
CONDITIONS = (
    AS_JUDGED,
    Condition("noise: idle system", noise="idle"),
    Condition("noise: busy system", noise="busy"),
    BLIND_LINUX,
    Condition("against Linux 3.16", schedulers={LINUX.name: "linux:kernel=3.16"}),
    Condition("against Linux 7.3", schedulers={LINUX.name: "linux:kernel=7.3"}),
    Condition("against rules (cfs)", schedulers={LINUX.name: "cfs"}),
    Condition("Min-Fair as in the scripts", schedulers={"Min-Fair": "min-fair-hfee"}),
    Condition("HFEE as in the scripts", schedulers={"HFEE": "hfee-as-published"}),
    FIXED_CLOCK,
)
"""The first one changes nothing."""


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
        found[each.name] = each.run(jobs, orders, steps[each.name], found.get(AS_JUDGED.name))
    return found
