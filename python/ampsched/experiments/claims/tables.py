"""Judged claims as tables of reports, causes and flat records."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ampsched.experiments.claims.comparisons import Verdict
from ampsched.experiments.claims.judging import Judged
from ampsched.markdown import table

MARKS: dict[Verdict, str] = {
    "reproduced": "✓",
    "direction only": "~",
    "not reproduced": "✗",
    "not testable here": "–",
}


def verdicts(claims: Sequence[Judged]) -> Counter[Verdict]:
    """How many claims have which verdict."""
    return Counter(each.result.verdict for each in claims)


def claims_section(claims: Sequence[Judged]) -> str:
    """The claims as a section of a report; results with predicted speed-ups get a column of their own."""
    if not claims:
        return ""
    has_predictions = any(each.predicted for each in claims)
    heads = ["", "id", "claim", "paper", "ours", "verdict", *(["predicted"] if has_predictions else [])]
    rows = [_row(each, has_predictions) for each in claims]
    return f"## Claims\n\n{table(heads, rows)}"


def _row(judged: Judged, has_predictions: bool) -> list[str]:
    claim, result, again = judged.claim, judged.result, judged.predicted
    cells = [MARKS[result.verdict], claim.id, claim.text, claim.published, result.text, result.verdict]
    if has_predictions:
        cells.append(f"{MARKS[again.verdict]} {again.text}" if again else "")
    return cells


def causes_section(claims: Sequence[Judged]) -> str:
    """Why claims are missed, where it is known, as a section of a report."""
    causes: dict[str, list[str]] = {}
    for each in claims:
        if each.cause:
            causes.setdefault(each.cause, []).append(each.claim.id)
    if not causes:
        return ""
    lines = [f"- **{', '.join(ids)}:** {cause}" for cause, ids in causes.items()]
    return "\n".join(["## Causes of misses, where we found one", "", *lines])


def claim_records(claims: Sequence[Judged]) -> list[dict[str, Any]]:
    """The claims as flat records, with the results of predicted speed-ups if there are any."""
    has_predictions = any(each.predicted for each in claims)
    return [_record(each) | (_predicted(each) if has_predictions else {}) for each in claims]


def _record(judged: Judged) -> dict[str, Any]:
    claim, result = judged.claim, judged.result
    return {
        "id": claim.id,
        "claim": claim.text,
        "source": claim.source,
        "paper": claim.published,
        "ours": result.text,
        "value": result.value,
        "low": result.low,
        "high": result.high,
        "verdict": result.verdict,
    }


def _predicted(judged: Judged) -> dict[str, Any]:
    again = judged.predicted
    return {
        "predicted": again.text if again else None,
        "predicted_verdict": again.verdict if again else None,
    }
