"""The programs and workloads of HFEE (IEEE Transactions on Computers 2020), with what is known of them.

Time, instruction rate and energy-efficiency ratio (EER) are those in the scripts that the authors have published: each
program alone on a big core at 2 GHz. Classes and workloads are the paper's Tables 2 and 3.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """A program of SPEC CPU2006."""

    number: int
    name: str
    speed_class: str
    """Class by instruction rate in the paper's Table 2: L, M, H."""
    time_ms: int
    ips_m: float
    """Million instructions per second."""
    eer: float
    profile: str
    measured: bool
    """Whether the profile is of this program or a close relative; else one that computes similarly (assumption)."""

    @property
    def instructions(self) -> int:
        """Instructions of a run."""
        return round(self.time_ms * self.ips_m * 1e3)


SUBJECTS = (
    Subject(998, "specrand998", "L", 3279, 218.9, 0.92, "perl", False),
    Subject(999, "specrand999", "L", 4661, 219.2, 0.89, "perl", False),
    Subject(429, "mcf", "L", 92563, 229.9, 1.80, "mcf", True),
    Subject(400, "perlbench", "L", 120528, 883.2, 1.12, "perl", True),
    Subject(403, "gcc", "M", 214224, 1080.1, 1.13, "gcc", True),
    Subject(450, "soplex", "M", 191415, 1206.6, 1.31, "soplex", True),
    Subject(445, "gobmk", "M", 63778, 1214.3, 1.31, "gnugo", True),
    Subject(471, "omnetpp", "L", 51877, 1221.4, 1.08, "canneal", False),
    Subject(473, "astar", "L", 12436, 1225.7, 1.30, "mcf", False),
    Subject(458, "sjeng", "M", 435498, 1369.2, 1.25, "sjeng", True),
    Subject(459, "GemsFDTD", "M", 42445, 1380.9, 1.09, "ocean_cp", False),
    Subject(453, "povray", "M", 47497, 1460.9, 0.96, "povray", True),
    Subject(433, "milc", "M", 88130, 1475.1, 0.97, "ocean_ncp", False),
    Subject(436, "cactusADM", "M", 200896, 1488.9, 1.08, "ocean_cp", False),
    Subject(401, "bzip2", "H", 66360, 1543.0, 1.26, "bzip2", True),
    Subject(416, "gamess", "H", 251564, 1558.7, 0.97, "calculix", False),
    Subject(454, "calculix", "H", 34253, 1612.3, 0.96, "calculix", True),
    Subject(483, "xalancbmk", "H", 7139, 1621.2, 1.30, "xalan", True),
    Subject(465, "tonto", "H", 29643, 1621.4, 1.06, "calculix", False),
    Subject(434, "zeusmp", "H", 98751, 1701.6, 1.05, "ocean_cp", False),
    Subject(435, "gromacs", "H", 40342, 1761.9, 0.91, "gromacs", True),
    # The scripts have 1.13 in W15, the only value that is not the same everywhere.
    Subject(410, "bwaves", "H", 127320, 1775.0, 1.12, "ocean_cp", False),
    Subject(437, "leslie3d", "H", 160751, 1776.5, 1.27, "ocean_cp", False),
    Subject(444, "namd", "H", 720325, 1795.7, 1.04, "gromacs", False),
    Subject(470, "lbm", "H", 188156, 1799.4, 1.02, "ocean_ncp", False),
    Subject(456, "hmmer", "H", 210945, 1880.4, 1.04, "hmmer2", True),
    Subject(462, "libquantum", "H", 34848, 1905.8, 2.12, "libquantum", True),
    Subject(464, "h264ref", "H", 139759, 1934.8, 1.27, "h264c", True),
)

# Table 3. W1 is printed with five letters and six programs.
WORKLOADS = {
    "w1": ("LLLLLL", "omnetpp specrand998 mcf perlbench specrand999 astar"),
    "w2": ("MMMMMM", "gobmk sjeng GemsFDTD povray milc cactusADM"),
    "w3": ("HHHHHH", "bzip2 gamess calculix xalancbmk tonto zeusmp"),
    "w4": ("HHMMLL", "libquantum h264ref gcc soplex mcf perlbench"),
    "w5": ("HHHHML", "leslie3d zeusmp lbm hmmer povray perlbench"),
    "w6": ("HHHHHL", "gromacs bwaves leslie3d zeusmp lbm perlbench"),
    "w7": ("HHHMMM", "hmmer libquantum h264ref povray milc cactusADM"),
    "w8": ("HMMMML", "xalancbmk soplex GemsFDTD povray milc perlbench"),
    "w9": ("MMMLLL", "GemsFDTD povray milc omnetpp mcf perlbench"),
    "w10": ("MMMMLL", "cactusADM GemsFDTD povray milc perlbench omnetpp"),
    "w11": ("MMMMML", "soplex GemsFDTD povray milc cactusADM omnetpp"),
    "w12": ("MMLLLL", "gcc soplex omnetpp astar mcf perlbench"),
    "w13": ("MHLLLL", "gobmk bwaves astar mcf perlbench omnetpp"),
    "w14": ("HHHLLL", "leslie3d namd lbm perlbench omnetpp mcf"),
    "w15": ("HHLLLL", "gromacs bwaves omnetpp astar mcf perlbench"),
}
