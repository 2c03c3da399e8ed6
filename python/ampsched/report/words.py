"""Numbers as a reader of a page wants them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ampsched.naming import in_number
from ampsched.report.page import Cell, Chart
from ampsched.statistics import Estimate

MINUS = "−"

Values = Mapping[str, Any]
"""An estimate as plain values: mean, low, high, n."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What runs are measured by."""

    key: str
    """In the summary of a comparison."""
    name: str
    lower_is_better: bool
    hint: str
    digits: int = 3
    factor: float = 1.0
    """What a value is multiplied with before it is shown."""
    change: str | None = None
    """The key of its change against the first policy."""


H_ANTT = Metric(
    "h_antt",
    "H_ANTT",
    True,
    "Mean slowdown of the programs against running alone on as many cores, all of them big; lower is better.",
    change="h_antt_change",
)
H_STP = Metric(
    "h_stp",
    "H_STP",
    False,
    "Sum of the programs' progress against running alone on big cores; higher is better.",
    change="h_stp_change",
)
MAKESPAN = Metric("makespan_ms", "makespan ms", True, "When the last program has ended; lower is better.", 1)
WORK = Metric(
    "instructions",
    "10⁹ instructions",
    False,
    "Work that was done until the programs were stopped; more is better.",
    3,
    1e-9,
    "instructions_change",
)
ENERGY = Metric(
    "energy_j", "energy J", True, "Energy of all clusters; lower is better.", change="energy_change"
)
EDP = Metric("edp_js", "energy × makespan J s", True, "Energy × makespan; lower is better.")


def number(value: float, digits: int = 3) -> str:
    """A number with so many digits behind the point and a true minus sign."""
    return f"{value:,.{digits}f}".replace("-", MINUS)


def percent(value: float, digits: int = 1) -> str:
    """A relative change with its sign: 0.1 is +10.0 %."""
    text = f"{100 * value:+.{digits}f}"
    return f"{text.lstrip('+-') if float(text) == 0 else text.replace('-', MINUS)} %"


def interval(value: Values, digits: int = 3, factor: float = 1.0) -> str:
    """Such as ``1.250 ±0.012``; the mean alone of one seed."""
    text = number(factor * value["mean"], digits)
    return f"{text} ±{number(factor * half_width(value), digits)}" if half_width(value) else text


def change_cell(value: Values, *, lower_is_better: bool) -> Cell:
    """A relative change with its interval, good or bad if the interval has one sign."""
    text = percent(value["mean"])
    if value["n"] > 1:
        text += f" ±{number(100 * half_width(value), 1)}"
    settled = value["n"] == 1 or excludes_zero(value)
    if not settled or text.startswith("0.0"):
        return Cell(text, value["mean"])
    return Cell(text, value["mean"], "good" if (value["mean"] < 0) == lower_is_better else "bad")


def intervals(
    policies: Sequence[str], metrics: Sequence[Metric], rows: Iterable[tuple[str, Values]], alt: str
) -> Chart:
    """The figure of metrics with their intervals, of which the reader chooses one.

    Args:
        policies: In order.
        metrics: What may be chosen; the first is shown.
        rows: A row of a summary for each policy and mix, behind the mix's name (empty if there is one).
        alt: The same in words.
    """
    some = list(rows)

    def of(metric: Metric) -> dict[str, Any]:
        shown = [
            {
                "mix": mix,
                "policy": row["policy"],
                **{key: metric.factor * row[metric.key][key] for key in ("mean", "low", "high")},
            }
            for mix, row in some
        ]
        return {"name": metric.name, "lower": metric.lower_is_better, "digits": metric.digits, "rows": shown}

    data = {"policies": list(policies), "metrics": [of(metric) for metric in metrics]}
    return Chart("intervals", "Policies side by side, with 95 % intervals", alt, data)


def sure(value: Values) -> str:
    """How sure the sign of a change is, in words."""
    if value["n"] <= 1:
        return "unknown"
    return "yes" if excludes_zero(value) else "no"


def half_width(value: Values) -> float:
    """Half the width of an interval."""
    return _estimate(value).half_width


def excludes_zero(value: Values) -> bool:
    """Whether an interval has one sign."""
    return _estimate(value).excludes_zero


def _estimate(value: Values) -> Estimate:
    return Estimate(**value)


def listed(items: list[str]) -> str:
    """Such as ``a, b and c``."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def plural(count: int, word: str) -> str:
    """Such as ``1 seed`` or ``3 seeds``."""
    return f"{count:,} {in_number(count, word)}"


def told(lines: Sequence[str]) -> tuple[str, str]:
    """A verdict's lines as the answer of a page, and how sure it is."""
    answer, *others = lines
    return f"{answer}.", " ".join(f"{line[:1].upper()}{line[1:]}." for line in others)
