"""The claims of Prop-SP (Saez et al., Euro-Par 2014 workshops), one row per number: those of the analytical model, section 2."""

from collections.abc import Sequence
from dataclasses import dataclass

from ampsched.analytic import POLICIES, TABLE_1, Prediction, predict_all, table_1
from ampsched.experiments.claims import Claim, Result, judge_change, judge_count
from ampsched.experiments.prop_sp_figures import figure_1
from ampsched.metrics import geometric_mean
from ampsched.statistics import Estimate

RULE = """\
The model has no random amounts, so its numbers have no confidence interval. A comparison that the paper makes for all \
workloads is counted over the nine of Table 1; equal is not better. A range is reproduced if no workload is outside of it, \
a named extreme if it is where the paper says. "Very close" is taken as no effect: within 3 percentage points."""

VERY_CLOSE = "very close"

# Far above rounding errors of the model, far below what its tables print.
EQUAL = 1e-9


def analytic() -> list[Claim]:
    """Section 2 and Figure 1: nine workloads under five policies on two fast and two slow cores."""
    model = _Model.of_table_1()
    rows = _Rows(model)
    others = [policy for policy in POLICIES if policy != "hsp"]
    beaten = set[str]().union(*(model.faster(other, "hsp") for other in others))
    least_fair = set(TABLE_1).intersection(*(model.fairer(other, "hsp") for other in others))
    rows.everywhere("P1a", "HSP: no other policy has a higher ASP", set(TABLE_1) - beaten)
    rows.everywhere("P1b", "HSP: less fair than every other policy", least_fair)
    rows.loss("P2a", "Opt-Unfairness: loss of ASP against HSP, worst", "opt-unfairness", -0.20)
    rows.add("P2b", "the same: worst for which workload", "W2", _named(model.worst("opt-unfairness"), "W2"))
    rows.everywhere("P3a", "RR: lower ASP than Opt-Unfairness", model.faster("opt-unfairness", "rr"))
    rows.everywhere("P3b", "RR: less fair than Opt-Unfairness", model.fairer("opt-unfairness", "rr"))
    rows.loss("P3c", "RR: loss of ASP against HSP, worst", "rr", -0.47)
    rows.everywhere("P4a", "Prop-SP: higher ASP than RR", model.faster("prop-sp", "rr"))
    rows.everywhere(
        "P4b", "Prop-SP: higher ASP than Opt-Unfairness", model.faster("prop-sp", "opt-unfairness")
    )
    rows.add(
        "P5", "Prop-SP: normalised unfairness", "0 to 10 %", _within(_normalised_unfairness(), 0.0, 0.10)
    )
    mean = judge_change(model.mean_loss("prop-sp", "opt-asp-ref"), 0.0)
    rows.add("P6a", "Prop-SP: loss of ASP against Opt-ASP-Ref, mean", VERY_CLOSE, mean)
    rows.loss("P6b", "the same, worst", "prop-sp", 0.0, against="opt-asp-ref")
    return rows.rows


@dataclass(frozen=True, slots=True)
class _Model:
    """What the model says of Table 1, by workload and policy."""

    predictions: dict[tuple[str, str], Prediction]

    @staticmethod
    def of_table_1() -> "_Model":
        return _Model({(name, each.policy): each for name in TABLE_1 for each in predict_all(table_1(name))})

    def faster(self, policy: str, other: str) -> set[str]:
        """The workloads for which a policy has a higher ASP than another."""
        return {name for name in TABLE_1 if self.ratio(name, policy, other) > 1.0 + EQUAL}

    def fairer(self, policy: str, other: str) -> set[str]:
        """The workloads for which a policy has a lower unfairness than another."""
        of = self.predictions
        return {
            name
            for name in TABLE_1
            if of[name, policy].unfairness < of[name, other].unfairness * (1.0 - EQUAL)
        }

    def ratio(self, workload: str, policy: str, other: str) -> float:
        """ASP / ASP under another policy."""
        return self.predictions[workload, policy].asp / self.predictions[workload, other].asp

    def worst(self, policy: str, against: str = "hsp") -> str:
        """The workload with the smallest ratio of ASP."""
        return min(TABLE_1, key=lambda name: self.ratio(name, policy, against))

    def mean_loss(self, policy: str, against: str) -> Estimate:
        """Change of ASP, geometric mean of the ratios."""
        return _exact(geometric_mean([self.ratio(name, policy, against) for name in TABLE_1]) - 1.0)


class _Rows:
    """Builds rows over the model."""

    def __init__(self, model: _Model) -> None:
        self.model = model
        self.rows: list[Claim] = []

    def add(self, id_: str, statement: str, paper: str, result: Result) -> None:
        """A claim and what is measured for it; the model is so small that it has been computed already."""
        self.rows.append(Claim(id_, statement, paper, "fig1", lambda: result, CAUSES.get(id_, "")))

    def everywhere(self, id_: str, statement: str, where: set[str]) -> None:
        """A claim for all workloads, which holds for some."""
        count = len(TABLE_1)
        self.add(id_, statement, "all", judge_count((len(where), count), (count, count)))

    def loss(self, id_: str, statement: str, policy: str, paper: float, against: str = "hsp") -> None:
        """The greatest loss of ASP."""
        name = self.model.worst(policy, against)
        ours = _exact(self.model.ratio(name, policy, against) - 1.0)
        text = f"up to {100 * paper:+.0f} %" if paper else VERY_CLOSE
        self.add(id_, statement, text, judge_change(ours, paper, of=name))


def _normalised_unfairness() -> list[float]:
    return [point.unfairness_normalised for point in figure_1(policies=["prop-sp"]).points]


def _exact(value: float) -> Estimate:
    """A value without randomness."""
    return Estimate(value, value, value, n=1)


def _within(values: Sequence[float], low: float, high: float) -> Result:
    """Whether all values are within a range that the paper states."""
    holds = low <= min(values) and max(values) <= high
    text = f"{100 * min(values):.1f} to {100 * max(values):.1f} %"
    return Result(text, "reproduced" if holds else "not reproduced", max(values), min(values), max(values))


def _named(ours: str, paper: str) -> Result:
    """Whether an extreme is where the paper says."""
    return Result(ours, "reproduced" if ours == paper else "not reproduced")


_ALIKE = "In W5 the four programs are alike: RR, Prop-SP and both optima are the same schedule, and every schedule has the same ASP."
# Why claims are missed; printed only beside a claim that is missed.
CAUSES: dict[str, str] = {
    "P1b": "W1: RR (1.417) is less fair than HSP (1.200), because the two programs that HSP leaves on slow cores lose little there.",
    "P3a": _ALIKE,
    "P3b": _ALIKE,
    "P4a": _ALIKE,
    "P4b": f"{_ALIKE} In W9 Opt-Unfairness (3.0300) is 0.1 % above Prop-SP (3.0255): it leaves the program with speed-up 1.2 on the slow "
    "cores for good. The difference cannot be seen in a plot.",
    "P6b": "The paper gives no number. 4.7 % (W6) is close in a plot, and above our rule for no effect.",
}
