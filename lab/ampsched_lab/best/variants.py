"""The policy with other values of its parameters, as the registry has them."""

from ampsched.policy import policies
from ampsched.registry import Param
from ampsched_lab.best.choice import POLICY, candidate


def param(name: str) -> Param:
    """A parameter of the policy."""
    [info] = (info for info in policies() if info.name == POLICY)
    [found] = (each for each in info.params if each.name == name)
    return found


def with_fairness(value: int) -> str:
    """The policy with a value of `fairness`; at the default under its plain name."""
    return POLICY if value == param("fairness").default else candidate(value)


def with_lengths() -> str:
    """The policy if it knows the lengths of programs."""
    return f"{POLICY}:lengths=1"


def with_energy(price: float) -> str:
    """The policy with a price of energy."""
    return f"{POLICY}:energy={price:g}"


def ablations() -> dict[str, str]:
    """By the ingredient that is left out, the policy without it."""
    _, *ingredients = param("without").choices
    return {name: f"{POLICY}:without={number}" for number, name in enumerate(ingredients, 1)}
