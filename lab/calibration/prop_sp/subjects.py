"""The programs and mixes of Prop-SP's Table 3 (Saez et al., Euro-Par 2014 workshops), with what is known of them.

Class (H, M, L: high, medium, low speed-up) and kind (ST single-threaded, HP highly parallel, PS partially sequential:
more than a quarter of the time) are the paper's. The rest has its source beside it, or is an assumption that says so.
"""

from dataclasses import dataclass

# The speed-ups of a program on the paper's machine lie between 1.2, the least of its Table 1, and the ratio of clocks,
# 2600 MHz / 800 MHz: fast and slow cores differ in nothing else. Assumption, as the paper prints no limits: the classes
# are thirds of that.
RATIO_MIN, RATIO_MAX = 1.2, 2600 / 800
THIRD = (RATIO_MAX - RATIO_MIN) / 3
LOWEST = {"L": RATIO_MIN, "M": RATIO_MIN + THIRD, "H": RATIO_MIN + 2 * THIRD}


def middle(speedup_class: str) -> float:
    """The middle of a class."""
    return LOWEST[speedup_class] + THIRD / 2


def class_of(ratio: float) -> str:
    """The class of a speed-up; what is below all of them counts as low."""
    return max((name for name in LOWEST if LOWEST[name] <= ratio), key=LOWEST.__getitem__, default="L")


@dataclass(frozen=True)
class Single:
    """A single-threaded program of SPEC CPU2006."""

    number: int
    name: str
    speedup_class: str
    reference_s: int
    """SPEC's reference time: on a Sun Ultra Enterprise 2 with 296 MHz (SPEC CPU2006 result pages)."""
    inputs: int
    """Runs of the reference workload, each with another input (SPEC CPU2006 documentation)."""
    profile: str
    measured: bool
    """Whether the profile is of this program or a close relative; else one that computes similarly (assumption)."""


@dataclass(frozen=True)
class Parallel:
    """A program with several threads that repeats a sequential and a parallel part."""

    name: str
    kind: str
    speedup_class: str
    what: str
    work_s: float
    """Work of all threads on a fast core."""
    work_source: str
    sequential: float
    """Share of the work that one thread does alone."""
    sequential_source: str
    rounds: int
    """Sequential and parallel parts."""
    profile: str
    measured: bool


SINGLE = (
    Single(400, "perlbench", "H", 9770, 3, "perl", True),
    Single(401, "bzip2", "H", 9650, 6, "bzip2", True),
    Single(416, "gamess", "H", 19580, 3, "calculix", False),
    Single(433, "milc", "L", 9180, 1, "ocean_ncp", False),
    Single(437, "leslie3d", "M", 9400, 1, "ocean_cp", False),
    Single(444, "namd", "H", 8020, 1, "gromacs", False),
    Single(445, "gobmk", "H", 10490, 5, "gnugo", True),
    Single(450, "soplex", "L", 8340, 2, "soplex", True),
    Single(453, "povray", "H", 5320, 1, "povray", True),
    Single(456, "hmmer", "H", 9330, 2, "hmmer2", True),
    Single(458, "sjeng", "H", 12100, 1, "sjeng", True),
    Single(464, "h264ref", "H", 22130, 3, "h264c", True),
    Single(470, "lbm", "L", 13740, 1, "ocean_ncp", False),
    Single(471, "omnetpp", "L", 6250, 1, "canneal", False),
    Single(473, "astar", "M", 7020, 2, "mcf", False),
    Single(482, "sphinx3", "M", 19490, 1, "sphinx", True),
    Single(483, "xalancbmk", "M", 6900, 1, "xalan", True),
)

# SPEC OMPM2001's reference times are of an SGI 2100 with four processors (its result pages).
REFERENCE = "SPEC's reference time of {} s / 1000, by four processors"
COVERED = "Aslot and Eigenmann (2001) found more than 99 % in parallel sections"
LEAST = "assumption: the roundest share with which more than a quarter of the time is sequential from two threads on"
AVERAGE_S, AVERAGE = 10.0, "assumption: as long as most of the SPEC programs"
STEPS, TURNS = 1000, 10
"""Rounds of SPEC OMP's time steps (assumption) and of the other programs (assumption)."""

PARALLEL = (
    Parallel(
        "wupwise_m",
        "HP",
        "M",
        "SPEC OMPM2001 310.wupwise_m",
        24.0,
        REFERENCE.format(6000),
        0.01,
        COVERED,
        STEPS,
        "lu_ncb",
        False,
    ),
    Parallel(
        "equake_m",
        "HP",
        "L",
        "SPEC OMPM2001 320.equake_m",
        10.4,
        REFERENCE.format(2600),
        0.01,
        COVERED,
        STEPS,
        "cholesky",
        False,
    ),
    Parallel(
        "fma3d_m",
        "HP",
        "H",
        "SPEC OMPM2001 328.fma3d_m",
        18.4,
        REFERENCE.format(4600),
        0.01,
        COVERED,
        STEPS,
        "calculix",
        False,
    ),
    Parallel(
        "BLAST", "PS", "H", "BLAST (sequence search)", AVERAGE_S, AVERAGE, 0.15, LEAST, TURNS, "hmmer2", False
    ),
    Parallel(
        "semphy",
        "PS",
        "H",
        "SEMPHY (phylogenetic trees)",
        AVERAGE_S,
        AVERAGE,
        0.15,
        LEAST,
        TURNS,
        "barnes",
        False,
    ),
    Parallel(
        "FFTW3D", "PS", "L", "FFTW, three dimensions", AVERAGE_S, AVERAGE, 0.15, LEAST, TURNS, "fft", False
    ),
    Parallel(
        "blackscholes",
        "PS",
        "H",
        "PARSEC blackscholes with its input and output",
        AVERAGE_S,
        AVERAGE,
        0.22,
        "recorded: reading and writing of the options is 22 % of the CPU time (lab/calibration/recordings)",
        1,
        "blackscholes",
        True,
    ),
)

RECONSTRUCTED = "reconstructed from a damaged copy of the table"


@dataclass(frozen=True)
class Mix:
    """A row of Table 3: programs, and threads where they have several."""

    label: str
    programs: tuple[tuple[str, int], ...]
    note: str = ""

    @property
    def name(self) -> str:
        """Name of the workload."""
        return f"prop-sp-{self.label.lower().replace('_', '-')}"


MULTITHREADED = (
    Mix("3STH-1HPH", (("hmmer", 1), ("gobmk", 1), ("h264ref", 1), ("fma3d_m", 9))),
    Mix("1PSH-1HPM", (("BLAST", 4), ("wupwise_m", 8)), f"label and threads of wupwise_m {RECONSTRUCTED}"),
    Mix(
        "1STH-1STM-1STL-1PSH",
        (("gamess", 1), ("astar", 1), ("soplex", 1), ("blackscholes", 9)),
        f"label {RECONSTRUCTED}",
    ),
    Mix("1PSH-1PSL", (("semphy", 6), ("FFTW3D", 6))),
    Mix("2PSH-1HPM", (("BLAST", 4), ("semphy", 4), ("wupwise_m", 4))),
    Mix("1PSH-1HPL", (("semphy", 6), ("equake_m", 6))),
    Mix("1HPH-1HPL", (("fma3d_m", 6), ("equake_m", 6))),
    Mix("1PSH-1HPH", (("blackscholes", 6), ("fma3d_m", 6))),
)
"""On 2FC-10SC. A ninth row of the table is lost."""


def _singles(label: str, *programs: str) -> Mix:
    return Mix(label, tuple((program, 1) for program in programs))


SINGLE_THREADED = (
    _singles("4STH", "povray", "gobmk", "bzip2", "sjeng"),
    _singles("3STH-1STM", "povray", "h264ref", "perlbench", "astar"),
    _singles("3STH-1STL_A", "hmmer", "namd", "perlbench", "soplex"),
    _singles("3STH-1STL_B", "hmmer", "h264ref", "gobmk", "milc"),
    _singles("2STH-2STM_A", "povray", "bzip2", "leslie3d", "sphinx3"),
    _singles("2STH-2STM_B", "gamess", "gobmk", "xalancbmk", "astar"),
    _singles("2STH-2STL_A", "hmmer", "gobmk", "lbm", "soplex"),
    _singles("2STH-2STL_B", "povray", "h264ref", "lbm", "omnetpp"),
    _singles("1STH-1STM-2STL", "sjeng", "leslie3d", "lbm", "soplex"),
)
"""On 2FC-2SC."""
