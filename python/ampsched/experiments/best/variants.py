"""The policy with other values of its parameters."""

from ampsched.experiments.best.choice import POLICY
from ampsched.experiments.best.runs import INGREDIENTS, ablation
from ampsched.policy import policies
from ampsched.registry import Param


def param(name: str) -> Param:
    """A parameter of the policy, from the registry."""
    [info] = (info for info in policies() if info.name == POLICY)
    [found] = (each for each in info.params if each.name == name)
    return found


def ablations() -> dict[str, str]:
    """By the ingredient that is left out, the policy without it."""
    return {name: ablation(name) for name in INGREDIENTS}
