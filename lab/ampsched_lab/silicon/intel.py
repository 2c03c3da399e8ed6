"""How much Intel's hybrid cores draw, by facts of a chip that is not in the catalogue (lab/data/silicon/intel.toml).

No table of voltages is published. The law is `C V^2 f` with `V = low + (high - low) x^q`, x being the clock over the
core's highest. C of a P-core, C of an E-core and q are those with which the i9-12900K draws what was measured and
loses as much work as was measured when its limit is lowered to its base power.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from scipy.optimize import brentq

from ampsched_lab.silicon.data import FOLDER, kept
from ampsched_lab.silicon.simulated import alone, profile

STEP_MHZ = 100
LIKE = {"redwood-cove": "golden-cove", "crestmont": "gracemont"}
"""Cores of the next generation, for which nothing was found: estimates."""
SIBLINGS = 1.2
"""Two threads of a core do so much of one: Li et al. (ISLPED 2004), as in the machine files."""


@cache
def facts() -> Mapping[str, Any]:
    """What intel.toml says."""
    return tomllib.loads((FOLDER / "intel.toml").read_text("utf-8"))


def volt(share: float, power: float) -> float:
    """The voltage, in V.

    Args:
        share: The clock over the core's highest one, 0 to 1.
        power: The law's q.
    """
    volts = facts()["volts"]
    return float(volts["low"] + (volts["high"] - volts["low"]) * share**power)


def watts(coefficient: float, mhz: float, highest: float, power: float) -> float:
    """Power of a busy core, in W, by its C in uW / MHz / V^2."""
    return coefficient * mhz * volt(mhz / highest, power) ** 2 / 1e6


class Law:
    """The law for one value of q.

    Attributes:
        power: q.
        coefficients: C by core type, in uW / MHz / V^2.
    """

    def __init__(self, power: float) -> None:
        """Takes the C with which all cores, and the E-cores alone, draw what was measured."""
        self.chip = facts()["i9-12900k"]
        self.power = power
        e_w = (self.chip["e_w"] - self.chip["idle_w"]) / self.chip["e"]["cores"]
        p_w = (self.chip["all_w"] - self.chip["e_w"]) / self.chip["p"]["cores"]
        self.coefficients = {
            self.chip[kind]["core_type"]: core_w / watts(1, self.chip[kind]["all"], self.chip[kind]["highest"], power)
            for kind, core_w in (("p", p_w), ("e", e_w))
        }  # fmt: skip

    def all_w(self, lost_mhz: float) -> float:
        """What all cores draw when every clock is so much lower, in W."""
        each = [self.chip[kind] for kind in ("p", "e")]
        cores_w = sum(
            kind["cores"]
            * watts(
                self.coefficients[kind["core_type"]],
                kind["all"] - lost_mhz,
                kind["highest"],
                self.power,
            )
            for kind in each
        )
        return float(self.chip["idle_w"] + cores_w)

    def work(self, limit_w: float, per_mhz: Mapping[str, float]) -> float:
        """What all cores do under a limit.

        Args:
            limit_w: The limit, in W.
            per_mhz: Speed of a core per MHz by core type, with all of its threads.
        """
        lost = brentq(lambda mhz: self.all_w(mhz) - limit_w, 0, self.chip["e"]["all"])
        each = [self.chip[kind] for kind in ("p", "e")]
        return float(sum(kind["cores"] * per_mhz[kind["core_type"]] * (kind["all"] - lost) for kind in each))


def fitted() -> dict[str, Any]:
    """What is fitted: q and C by core type."""
    chip = facts()["i9-12900k"]
    types = [chip[kind]["core_type"] for kind in ("p", "e")]
    per_mhz = dict(
        zip(types, alone([(name, 2048, 1000) for name in types], profile("coremark")), strict=True)
    )
    per_mhz[types[0]] *= SIBLINGS

    def missing(power: float) -> float:
        law = Law(power)
        share = law.work(chip["base_w"], per_mhz) / law.work(chip["turbo_w"], per_mhz)
        return share - float(chip["at_base"])

    power = round(brentq(missing, 1, 12), 2)
    found = {name: round(value) for name, value in Law(power).coefficients.items()}
    return {"power": power, "uw_per_mhz_v2": found}


def voltage(share: float) -> float:
    """The voltage at a share of the highest clock, in V, as it was fitted."""
    return volt(share, kept("fitted")["intel"]["power"])


def coefficient(core_type: str) -> float:
    """C of a core type, in uW / MHz / V^2, as it was fitted."""
    return float(kept("fitted")["intel"]["uw_per_mhz_v2"][LIKE.get(core_type, core_type)])
