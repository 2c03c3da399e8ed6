"""Prop-SP's machines, mixes and policies (Saez et al., Euro-Par 2014 workshops, section 4)."""

from ampsched_lab.papers.registry import EXPERIMENTS, RULES

REPETITIONS = 3
"""A program restarts until each has ended so often."""
IDEAL, SMALL, LARGE = "opteron-2FC-2SC-ideal", "opteron-2FC-2SC", "opteron-2FC-10SC"
MODEL_POLICIES = {"hsp": "hsp", "rr": "rr-amp", "prop-sp": "prop-sp:static=1"}
"""Policies that the analytical model knows, by their names there."""
POLICIES = ("rr-amp", "a-dwrr", "camp", "hsp", "prop-sp:static=1", "prop-sp")
"""The paper's schedulers (Figure 2): RR, A-DWRR, CAMP, HSP, Prop-SP static and dynamic."""
DYNAMIC = ("camp", "hsp", "prop-sp")
"""Those of them that ask for speed-ups while programs run."""
SINGLE_THREADED = (
    "4sth",
    "3sth-1stm",
    "3sth-1stl-a",
    "3sth-1stl-b",
    "2sth-2stm-a",
    "2sth-2stm-b",
    "2sth-2stl-a",
    "2sth-2stl-b",
    "1sth-1stm-2stl",
)
MULTITHREADED = (
    "3sth-1hph",
    "1psh-1hpm",
    "1sth-1stm-1stl-1psh",
    "1psh-1psl",
    "2psh-1hpm",
    "1psh-1hpl",
    "1hph-1hpl",
    "1psh-1hph",
)
MIXES = {**dict.fromkeys(SINGLE_THREADED, SMALL), **dict.fromkeys(MULTITHREADED, LARGE)}
"""Table 3: mixes and the machine of each. One row of the table is lost in our copy."""
NICE = (0, 5, 10)
LINUX = EXPERIMENTS["prop-sp"].baseline.policy
PRIORITY_POLICIES = (LINUX, RULES, "a-dwrr", "prop-sp")


def workload_of(mix: str) -> str:
    """Name of a mix in the catalogue."""
    return f"prop-sp-{mix.lower()}"
