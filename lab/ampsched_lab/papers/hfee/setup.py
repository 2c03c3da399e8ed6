"""HFEE's machine, programs, workloads and schedulers (IEEE Transactions on Computers 2020, section 5)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from ampsched._core import Machine, Workload
from ampsched.catalog import Catalog
from ampsched.execution import job_of, run_all
from ampsched.governor import Governors
from ampsched.policy import PolicyLike, PolicySpec
from ampsched.results import Outcome
from ampsched.settings import RunSettings
from ampsched_lab.papers.registry import EXPERIMENTS, RULES
from ampsched_lab.shared.conditions import AS_JUDGED

PAPER, SCRIPTS = "exynos5422-2B2S", "exynos5422-3B3S"
"""Two cores of each kind, as in the paper, and three, as in its authors' scripts."""
MACHINES = (PAPER, SCRIPTS)
BIG, LITTLE = "big", "little"
F_THRESHOLD_MHZ, STEP_MHZ = 1400, 100
UNIFORMITY_THRESHOLD = 0.75
CLASSES = {
    "w1": "LLLLLL",
    "w2": "MMMMMM",
    "w3": "HHHHHH",
    "w4": "HHMMLL",
    "w5": "HHHHML",
    "w6": "HHHHHL",
    "w7": "HHHMMM",
    "w8": "HMMMML",
    "w9": "MMMLLL",
    "w10": "MMMMLL",
    "w11": "MMMMML",
    "w12": "MMLLLL",
    "w13": "MHLLLL",
    "w14": "HHHLLL",
    "w15": "HHLLLL",
}
"""Table 3: workloads and the classes of their programs."""
WORKLOADS = tuple(CLASSES)


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A policy with a governor, as the paper compares them."""

    name: str
    policy: PolicyLike
    governor: str = "none"
    """Of the clusters whose frequency the policy does not set."""


BASELINE = EXPERIMENTS["hfee"].baseline
LINUX = Scheduler("Linux", BASELINE.policy, "performance")
SCHEDULERS = (
    LINUX,
    Scheduler("Linux, ondemand", BASELINE.policy, "ondemand"),
    Scheduler("Min-Fair", "min-fair", "performance"),
    Scheduler("Min-Fair, ondemand", "min-fair", "ondemand"),
    Scheduler("Min-Fair, scripts", "min-fair-hfee", "performance"),
    Scheduler("DTPM", "dtpm", "ondemand"),
    Scheduler("HFEE", "hfee"),
    Scheduler("HFEE, scripts", "hfee-as-published"),
)
"""The opponents of Figures 10 to 14, and variants."""
COMPARED = ("Linux", "Min-Fair", "HFEE", "DTPM")
"""The schedulers of the claims, which Figure 14 shows."""
STAND_INS = tuple(
    Scheduler(policy, policy, LINUX.governor) for policy in (RULES, "linux:kernel=3.16", "linux:kernel=7.3")
)
"""What is run beside the baseline: rules, the generation before, and the present one."""


def machine(name: str) -> Machine:
    """A machine of the catalogue."""
    return Catalog.shipped().machine(name)


@cache
def programs() -> tuple[str, ...]:
    """All programs of HFEE, by name."""
    names = (entry.name for entry in Catalog.shipped().entries("program"))
    return tuple(name.removeprefix("hfee-") for name in names if name.startswith("hfee-"))


def alone_workload(program: str) -> Workload:
    """A program alone."""
    return Catalog.shipped().workload(f"hfee-{program}")


def mix(name: str) -> Workload:
    """A workload of Table 3."""
    return Catalog.shipped().workload(f"hfee-{name}")


def in_order(name: str, seed: int) -> Workload:
    """A workload whose programs are started in an order drawn from the seed, all at time 0.

    The programs have no random amounts; who is placed first is what differs between repetitions.
    """
    workload = mix(name)
    order = list(range(len(workload.apps)))
    Random(f"{name} {seed}").shuffle(order)  # noqa: S311
    return workload.reordered(order)


def mhz_of(where: Machine, kind: str) -> list[int]:
    """Frequencies of the cluster of that name in MHz, ascending."""
    names = [row[0] for row in where.clusters]
    return where.frequencies_mhz(names.index(kind))


def fixed(mhz: Mapping[str, int]) -> Governors:
    """Clusters at fixed frequencies in MHz, by their names."""
    return Governors.parse(",".join(f"{name}=userspace:mhz={value}" for name, value in mhz.items()))


@cache
def _alone(program: str, length_ms: float | None = None) -> Outcome:
    """A program alone on a big core at the highest frequency, as long as stated if something is."""
    policy = PolicySpec.of("cfs")
    on_big = machine(PAPER).only_big()
    work = replace(AS_JUDGED, length_ms=length_ms).of(alone_workload(program), on_big)
    return run_all([(job_of(RunSettings(), on_big, work, policy), policy)], 1)[0]


def alone_ns(program: str, length_ms: float | None = None) -> int:
    """Time of a program alone on a big core at the highest frequency, as long as stated if something is."""
    return _alone(program, length_ms).makespan_ns


def alone_ips(program: str) -> float:
    """Instructions per s of a program alone on a big core at the highest frequency."""
    return _alone(program).threads[0].instructions * 1e9 / alone_ns(program)


def slowdowns_so_far(outcome: Outcome) -> list[float]:
    """Slowdown of each program since the start, by instructions retired, as HFEE observes it."""
    return [
        alone_ips(outcome.apps[thread.app].name)
        * (thread.end_ns - thread.start_ns)
        / 1e9
        / thread.instructions
        for thread in outcome.threads
    ]


def slowdowns_between(before: Outcome, after: Outcome) -> list[float]:
    """Slowdown of each program while a simulation went on longer than one that begins alike."""
    return [
        alone_ips(after.apps[late.app].name)
        * (late.end_ns - early.end_ns)
        / 1e9
        / (late.instructions - early.instructions)
        for early, late in zip(before.threads, after.threads, strict=True)
    ]
