"""Claims of a paper, what we measure for them, and the verdict."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ampsched.statistics import Estimate

Verdict = Literal["reproduced", "direction only", "not reproduced", "not testable here"]

RULE = """\
A number counts as **reproduced** if ours has the claim's sign and the paper's value lies within our 95 % confidence \
interval widened by the tolerance: 3 percentage points or a quarter of the paper's value, whichever is more, unless \
the claim states a range. It counts as **direction only** if it has the sign and its interval excludes 0. A claim of \
no effect is reproduced if ours is within 3 percentage points of 0. A count is reproduced within a tenth of \
its total and has the direction if it lies on the same side of one half. An ordering is reproduced if it holds for the means. \
The rule was fixed before the experiment was run."""

TOLERANCE = 0.03
TOLERANCE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured for a claim."""

    text: str
    """As printed."""
    verdict: Verdict
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable statement; a claim of the paper with several numbers has several."""

    id: str
    statement: str
    paper: str
    """The paper's value, as printed."""
    figure: str
    """The figure whose runs it needs."""
    measure: Callable[[], Result]
    cause: str = ""
    """Why it is missed, if it is and we know."""


def judge_change(ours: Estimate, paper: float, *, tolerance: float | None = None, of: str = "") -> Result:
    """A relative change against the paper's."""
    if tolerance is None:
        tolerance = max(TOLERANCE, TOLERANCE_SHARE * abs(paper))
    same_sign = ours.mean * paper > 0
    near = ours.low - tolerance <= paper <= ours.high + tolerance
    verdict: Verdict = "not reproduced"
    if paper == 0.0:
        verdict = "reproduced" if abs(ours.mean) <= TOLERANCE else "not reproduced"
    elif same_sign and near:
        verdict = "reproduced"
    elif same_sign and ours.excludes_zero:
        verdict = "direction only"
    return Result(percent(ours) + (f" ({of})" if of else ""), verdict, ours.mean, ours.low, ours.high)


def judge_count(ours: tuple[int, int], paper: tuple[int, int]) -> Result:
    """A count out of a total against the paper's."""
    share, claimed = ours[0] / ours[1], paper[0] / paper[1]
    verdict: Verdict = "not reproduced"
    if abs(share - claimed) <= 0.1:
        verdict = "reproduced"
    elif (share - 0.5) * (claimed - 0.5) > 0:
        verdict = "direction only"
    return Result(f"{ours[0]} of {ours[1]}", verdict, share)


def judge_ordering(smaller: Estimate, greater: Estimate) -> Result:
    """Whether one mean is below another."""
    verdict: Verdict = "reproduced" if smaller.mean < greater.mean else "not reproduced"
    return Result(f"{percent(smaller)} against {percent(greater)}", verdict, smaller.mean - greater.mean)


def not_testable(why: str) -> Callable[[], Result]:
    """A claim that a simulation cannot check."""
    return lambda: Result(why, "not testable here")


def percent(value: Estimate) -> str:
    """A change with its interval if there is one, such as ``-11.2 % [-12.0, -10.4]``."""
    interval = f" [{100 * value.low:+.1f}, {100 * value.high:+.1f}]" if value.n > 1 else ""
    return f"{100 * value.mean:+.1f} %{interval}"


Judged = Sequence[tuple[Claim, Result]]
"""Claims with what was measured for them."""

MARKS: dict[Verdict, str] = {
    "reproduced": "✓",
    "direction only": "~",
    "not reproduced": "✗",
    "not testable here": "–",
}


def verdicts(claims: Judged) -> Counter[Verdict]:
    """How many claims have which verdict."""
    return Counter(result.verdict for _, result in claims)


def claims_table(claims: Judged, predicted: Sequence[Result | None] = ()) -> str:
    """The claims as a section of a report.

    `predicted` are the results with predicted instead of exact speed-ups, in the same order; they get a column of their own. None
    where speed-ups play no part.
    """
    if not claims:
        return ""
    heads = ["", "id", "claim", "paper", "ours", "verdict", *(["predicted"] if predicted else [])]
    lines = ["## Claims", "", f"| {' | '.join(heads)} |".replace("|  |", "| |"), "|" + "---|" * len(heads)]
    for place, (claim, result) in enumerate(claims):
        cells = [MARKS[result.verdict], claim.id, claim.statement, claim.paper, result.text, result.verdict]
        if predicted:
            again = predicted[place]
            cells.append(f"{MARKS[again.verdict]} {again.text}" if again else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def causes_of_misses(claims: Judged) -> str:
    """Why claims are missed, where it is known, as a section of a report."""
    causes: dict[str, list[str]] = {}
    for claim, result in claims:
        if claim.cause and result.verdict in ("not reproduced", "direction only"):
            causes.setdefault(claim.cause, []).append(claim.id)
    if not causes:
        return ""
    lines = [f"- **{', '.join(ids)}:** {cause}" for cause, ids in causes.items()]
    return "\n".join(["## Causes of misses, where we found one", "", *lines])


def claim_records(claims: Judged, predicted: Sequence[Result | None] = ()) -> list[dict[str, Any]]:
    """The claims as flat records, with the results of predicted speed-ups if there are any."""
    records: list[dict[str, Any]] = [
        {
            "id": claim.id,
            "claim": claim.statement,
            "paper": claim.paper,
            "ours": result.text,
            "value": result.value,
            "low": result.low,
            "high": result.high,
            "verdict": result.verdict,
        }
        for claim, result in claims
    ]
    for record, again in zip(records, predicted, strict=False):
        record["predicted"] = again.text if again else None
        record["predicted_verdict"] = again.verdict if again else None
    return records
