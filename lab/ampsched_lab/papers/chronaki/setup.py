"""The machine, programs and methods of Chronaki et al. (JPDC 2018, section 4)."""

from dataclasses import dataclass, replace

from ampsched._core import Machine, Workload
from ampsched.catalog import Catalog
from ampsched_lab.papers.registry import EXPERIMENTS
from ampsched_lab.shared.conditions import AS_JUDGED, Condition
from ampsched_lab.shared.machines import changed_machine
from ampsched_lab.shared.workloads import work_factor

BIG_MHZ, LITTLE_MHZ = 1600, 800
"""Fixed in the paper, so that heat changes nothing."""


@dataclass(frozen=True, slots=True, order=True)
class Cores:
    """Cores that are on."""

    big: int
    little: int

    def __str__(self) -> str:
        """As the paper writes it in section 5: big + little."""
        return f"{self.big}+{self.little}"

    @property
    def all(self) -> int:
        """Number of cores, and of threads."""
        return self.big + self.little

    def ideal(self, ratio: float) -> float:
        """Speed-up over one little core that no schedule exceeds, for that ratio of speeds."""
        return self.big * ratio + self.little


ONE_LITTLE = Cores(0, 1)
FOUR = (Cores(0, 4), Cores(2, 2), Cores(4, 0))
"""Configurations of four cores (section 5.1)."""
EIGHT = tuple(Cores(4, little) for little in range(5))
"""Four big cores and up to four little ones (section 5.2)."""
CORES = (ONE_LITTLE, *FOUR, *EIGHT[1:])


@dataclass(frozen=True, slots=True)
class Method:
    """Who divides the work among threads, and who places the threads."""

    name: str
    variant: str
    """Of the program."""
    policy: str
    """Of the operating system."""


STATIC = Method("static", "static", "static")
GTS = Method("GTS", "static", "gts")
TASK = Method("task", "tasks", "static")
METHODS = (STATIC, GTS, TASK)
"""Sections 5.1 and 5.2."""
SPINNING = Method("GTS, no way down", "static", "gts:down=0")
"""No method of the paper: GTS if waiting threads keep their load, as those do that spin at a barrier."""
LINUX = Method("Linux", "static", EXPERIMENTS["chronaki"].baseline.policy)
"""No method of the paper: the fair class without GTS's patch, and threads that are not pinned."""
BESIDE = (SPINNING, LINUX)
"""What is run beside the paper's methods."""
LOOP_STATIC = Method("loop static", "loop-static", "static")
LOOP_DYNAMIC = Method("loop dynamic", "loop-dynamic", "static")
LOOPS = (STATIC, LOOP_STATIC, LOOP_DYNAMIC, TASK)
"""Section 5.3."""

RATIOS = {
    "blackscholes": 2.18,
    "bodytrack": 4.16,
    "canneal": 1.73,
    "dedup": 2.67,
    "facesim": 3.40,
    "ferret": 3.59,
    "fluidanimate": 3.32,
    "streamcluster": 3.48,
    "swaptions": 2.78,
}
"""Table 1: speed of a big core over that of a little one."""
PROGRAMS = tuple(RATIOS)
PIPELINES = ("bodytrack", "dedup", "ferret")
"""As section 5.1 groups them."""
BARRIERS = tuple(program for program in PROGRAMS if program not in PIPELINES)
RANDOM = ("dedup", "ferret")
"""The programs with random amounts; without noise every seed yields the same for the others."""
WITH_LOOPS = ("blackscholes", "bodytrack", "fluidanimate", "swaptions")
"""The programs of Figure 9."""


BOARD = "exynos5422"


def machine(cores: Cores, *, big_first: bool = True, condition: Condition = AS_JUDGED) -> Machine:
    """The board with so many cores on; a cluster without cores is off and draws nothing."""
    board = changed_machine(BOARD, condition.lines)
    shares = [f"big={cores.big}@{BIG_MHZ}", f"little={cores.little}@{LITTLE_MHZ}"]
    return board.part(shares).ordered(fastest_first=big_first)


def workload(program: str, method: Method, threads: int, condition: Condition = AS_JUDGED) -> Workload:
    """A program alone with so many threads, as it is under a condition.

    A stated length is that of the pthreads version on the four big cores; all versions get as many times as much work.
    """
    alike = replace(condition, length_ms=None)
    found = alike.of(Catalog.shipped().workload(f"chronaki-{program}-{method.variant}:n={threads}"))
    if condition.length_ms is not None:
        four_big = workload(program, STATIC, FOUR[-1].all)
        found = found.with_work([work_factor(four_big, condition.length_ms, machine(FOUR[-1]))])
    policy = condition.task_policies.get(method.variant)
    return found.with_task_policy(policy) if policy else found
