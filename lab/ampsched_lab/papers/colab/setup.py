"""COLAB's machines, policies and workloads (CGO 2020, section 5.1): 26 on four machines.

Also the 38 workloads of the evaluation draft ("tex") on two machines.
"""

from ampsched._core import InputError, suggest
from ampsched_lab.papers.registry import EXPERIMENTS, RULES
from ampsched_lab.shared.normalised import LINUX, Case, Filter

MACHINES = ("2B2S", "2B4S", "4B2S", "4B4S")
CORES = {"2B2S": 4, "2B4S": 6, "4B2S": 6, "4B4S": 8}
BASELINE = EXPERIMENTS["colab"].baseline
POLICIES = (BASELINE.policy, "wash", "colab")
STAND_INS = (RULES, "linux:kernel=4.14", "linux:kernel=7.3")
"""What is run beside the baseline: rules, the next generation, and the present one."""
VARIANT = "colab-collaboration-only"
"""Of the draft only."""
NAMES = (LINUX, "wash", "colab", VARIANT)
"""What claims call the policies."""
SHOWN = {LINUX: "CFS"}
"""What the paper calls them in figures, if it is not their name."""
TEX_MACHINES = ("2B2S", "4B4S")
SINGLE = (
    "blackscholes",
    "bodytrack",
    "dedup",
    "ferret",
    "fluidanimate",
    "freqmine",
    "swaptions",
    "radix",
    "lu_ncb",
    "lu_cb",
    "ocean_cp",
    "fft",
)
"""Programs of Figure 4, which leaves out fmm, water_nsquared and water_spatial (section 5.2)."""
CLASSES = {"sync": 4, "nsync": 4, "comm": 4, "comp": 4, "rand": 10}
# Table 4 of the paper: threads of each workload, and programs (the rest have four).
THREADS = {
    "sync": (4, 18, 9, 20),
    "nsync": (4, 16, 8, 20),
    "comm": (4, 16, 9, 20),
    "comp": (4, 17, 8, 20),
    "rand": (19, 10, 9, 8, 6, 21, 20, 17, 55, 53),
}
TWO_PROGRAMS = frozenset(
    [f"{name}-{number}" for name in ("sync", "nsync", "comm", "comp") for number in (1, 2)]
    + [f"rand-{number}" for number in range(1, 6)]
)
TEX_CLASSES = {"tex-2B": 10, "tex-3B": 9, "tex-4B": 10, "tex-6B": 9}
TEX = tuple(f"{name}-{number}" for name, count in TEX_CLASSES.items() for number in range(1, count + 1))
SINGLES = tuple(f"single-{name}" for name in SINGLE)


def workloads(*classes: str) -> list[str]:
    """Names of the workloads of some classes, or of all."""
    return [f"{name}-{number}" for name in classes or CLASSES for number in range(1, CLASSES[name] + 1)]


def _named(names: tuple[str, ...]) -> Filter:
    return lambda case: case.workload in names


def threads_of(workload: str) -> int:
    """Threads of a workload in Table 4."""
    name, number = workload.rsplit("-", 1)
    return THREADS[name][int(number) - 1]


def few_threads(case: Case) -> bool:
    """Fewer threads than the machine has cores (Figure 8, left)."""
    return case.workload in set(workloads()) and threads_of(case.workload) < CORES[case.machine]


def many_threads(case: Case) -> bool:
    """At least twice as many threads as the greatest machine has cores (Figure 8, right)."""
    return case.workload in set(workloads()) and threads_of(case.workload) >= 2 * max(CORES.values())


def _two_programs(case: Case) -> bool:
    return case.workload in TWO_PROGRAMS


def _four_programs(case: Case) -> bool:
    return case.workload in set(workloads()) - TWO_PROGRAMS


def _drafts(programs: str = "") -> Filter:
    return _named(tuple(name for name in TEX if name.startswith(f"tex-{programs}")))


GROUPS: dict[str, Filter] = {
    "single": _named(SINGLES),
    "all": _named(tuple(workloads())),
    **{name: _named(tuple(workloads(name))) for name in CLASSES},
    "few threads": few_threads,
    "many threads": many_threads,
    "two programs": _two_programs,
    "four programs": _four_programs,
    "draft": _drafts(),
    **{f"draft {name[4:-1]}": _drafts(name[4:]) for name in TEX_CLASSES},
}
"""Groups of workloads by their names in claims; the number behind the draft is that of their programs."""


def cases_of(text: str) -> Filter:
    """Cases as claims name them: groups or workloads, and machines if not all: ``sync,rand-1 on 2B2S,4B4S``.

    Raises:
        InputError: If a name is unknown.
    """
    names, _, machines = text.partition(" on ")
    filters = [_group(name) for name in names.split(",")]
    places = machines.split(",") if machines else MACHINES
    for place in places:
        if place not in MACHINES:
            raise InputError(f'unknown machine "{place}" ({suggest(place, MACHINES)})')
    return lambda case: case.machine in places and any(fits(case) for fits in filters)


def _group(name: str) -> Filter:
    known = (*GROUPS, *SINGLES, *workloads(), *TEX)
    if name not in known:
        raise InputError(f'unknown workload or group "{name}" ({suggest(name, known)})')
    return GROUPS[name] if name in GROUPS else _named((name,))
