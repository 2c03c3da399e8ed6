"""Under which conditions COLAB's claims are judged again: one thing is changed at a time."""

from typing import Any, ClassVar

from ampsched.policy import Policy, PolicyLike, PolicySpec
from ampsched_lab.papers.colab.setup import BASELINE, VARIANT
from ampsched_lab.papers.registry import RULES
from ampsched_lab.shared.conditions import (
    ACTIVE,
    AS_JUDGED,
    BUSY,
    HANDOVER,
    IDLE,
    LENGTH_300,
    LENGTH_1000,
    PREDICTED,
    SPIN,
    Condition,
    sharing,
)
from ampsched_lab.shared.constants import with_other_constants
from ampsched_lab.shared.normalised import LINUX


class CfsAndPull(Policy):
    """CFS, and nothing of COLAB but step 4: an idle big core pulls a running thread from a little one."""

    name = "cfs+pull"
    base = "cfs"
    rules: ClassVar = {"steal": ("own_cluster", "other_clusters", "running_on_slower")}


def run_as(condition: Condition, policy: str) -> PolicyLike:
    """What is run under a condition for a policy of the experiment."""
    name = LINUX if policy == BASELINE.policy else policy
    return condition.policies.get(name, policy)


def names_under(condition: Condition) -> dict[str, Any]:
    """Arguments of `Normalised` that have it find what was run by the names in claims."""
    labels = {name: PolicySpec.of(policy).label for name, policy in condition.policies.items()}
    return {"linux": labels.pop(LINUX, BASELINE.policy), "others": labels}


SHARING = sharing(12_800, 1, ("class = 0", "class = 1"))
"""gem5's own memory if nothing else is said, DDR3-1600 on 64 bit; the paper does not say."""
ONE_DOMAIN = Condition(
    "all cores in one domain",
    # Kernels of arm64 before 5.5 have a domain per cluster of the device tree, whatever cache there is.
    lines={
        'sees = "capacities"': 'sees = "nothing"',
        'last_level_cache = "cluster"': 'last_level_cache = "machine"',
    },
)
NEXT_LINUX = Condition("against Linux 4.14", policies={LINUX: "linux:kernel=4.14"})
BLIND_LINUX = Condition(
    "against Linux 4.14 without capacities",
    lines={'sees = "capacities"': 'sees = "nothing"'},
    policies={LINUX: "linux:kernel=4.14"},
)
AGAINST_RULES = Condition("against rules (cfs)", policies={LINUX: RULES})
NO_PULL = Condition("COLAB without step 4", policies={"colab": "colab:min_gain=60"})
ONLY_PULL = Condition("cfs and step 4 in COLAB's place", policies={"colab": CfsAndPull})
LITTLE_MHZ = "mhz = 1200"
LITTLE_800 = Condition("little cores at 800 MHz", lines={LITTLE_MHZ: "mhz = 800"})
CONDITIONS = (
    AS_JUDGED,
    IDLE,
    BUSY,
    SPIN,
    ACTIVE,
    SHARING,
    HANDOVER,
    LENGTH_300,
    LENGTH_1000,
    ONE_DOMAIN,
    NEXT_LINUX,
    BLIND_LINUX,
    Condition("against Linux 7.3", policies={LINUX: "linux:kernel=7.3"}),
    AGAINST_RULES,
    LITTLE_800,
    Condition("little cores at 1600 MHz", lines={LITTLE_MHZ: "mhz = 1600"}),
    PREDICTED,
    NO_PULL,
    ONLY_PULL,
    Condition("COLAB without labels", policies={"colab": "colab:min_cv=10"}),
    Condition("COLAB without equal progress", policies={"colab": VARIANT}),
    Condition("COLAB with CFS's balancing", policies={"colab": "colab:balance=1"}),
    Condition("COLAB as printed (strict)", policies={"colab": "colab:strict=1"}),
    *with_other_constants("colab"),
)
"""The first one changes nothing. Six ablations and variants follow, then constants that the papers do not print."""
