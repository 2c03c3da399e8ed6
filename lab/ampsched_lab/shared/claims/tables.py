"""Judged claims as tables of reports, causes and flat records."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from ampsched.markdown import table
from ampsched_lab.papers.registry import RULES
from ampsched_lab.shared.claims.comparisons import Verdict
from ampsched_lab.shared.claims.judging import Judged, Result

MARKS: dict[Verdict, str] = {
    "reproduced": "✓",
    "direction only": "~",
    "not reproduced": "✗",
    "not testable here": "–",
}


def verdicts(claims: Sequence[Judged]) -> Counter[Verdict]:
    """How many of the claims that count have which verdict."""
    return Counter(each.result.verdict for each in claims if not each.claim.apart)


def figure_of(source: str) -> str:
    """The figure, table or section that a source of a claim names first."""
    return source.split(",")[0]


def answer_text(counts: Mapping[Verdict, int]) -> str:
    """How many of the claims that could be judged hold, in a sentence; empty if there are none."""
    judged = sum(count for verdict, count in counts.items() if verdict != "not testable here")
    if not judged:
        return ""
    reproduced, direction, missed = (
        counts.get(verdict, 0) for verdict in ("reproduced", "direction only", "not reproduced")
    )
    return (
        f"Of {judged} claims of the paper, {reproduced} are reproduced, {direction} have the right direction but "
        f"another size, and {missed} are missed."
    )


def verdicts_by_figure(claims: Sequence[Judged]) -> dict[str, Counter[Verdict]]:
    """The same by figure, table or section of the paper, in the order of the claims."""
    figures: dict[str, Counter[Verdict]] = {}
    for each in claims:
        if not each.claim.apart:
            figure = figure_of(each.claim.source)
            figures.setdefault(figure, Counter())[each.result.verdict] += 1
    return figures


def claims_section(claims: Sequence[Judged]) -> str:
    """The claims as a section of a report; results with predicted speed-ups get a column of their own."""
    if not claims:
        return ""
    has_predictions = any(each.predicted for each in claims)
    heads = ["", "id", "claim", "paper", "ours", "verdict", *(["predicted"] if has_predictions else [])]
    rows = [_row(each, has_predictions) for each in claims if not each.claim.apart]
    apart = [[*_row(each, False), each.claim.apart] for each in claims if each.claim.apart]
    blocks = [f"## Claims\n\n{table(heads, rows)}"] if rows else []
    if apart:
        blocks.append(f"## Not counted\n\n{table([*heads[:6], 'why apart'], apart)}")
    return "\n\n".join(blocks)


def _row(judged: Judged, has_predictions: bool) -> list[str]:
    claim, result, again = judged.claim, judged.result, judged.predicted
    cells = [MARKS[result.verdict], claim.id, claim.text, claim.published, result.text, result.verdict]
    if has_predictions:
        cells.append(f"{MARKS[again.verdict]} {again.text}" if again else "")
    return cells


def causes_section(claims: Sequence[Judged]) -> str:
    """Why claims are missed, where it is known, as a section of a report."""
    causes = _reasons((each.claim.id, each.cause) for each in claims)
    return f"## Causes of misses, where we found one\n\n{causes}" if causes else ""


def _reasons(reasons: Iterable[tuple[str, str]]) -> str:
    """A list of reasons, each behind the ids of its claims."""
    ids: dict[str, list[str]] = {}
    for id_, reason in reasons:
        if reason:
            ids.setdefault(reason, []).append(id_)
    return "\n".join(f"- **{', '.join(of)}:** {reason}" for reason, of in ids.items())


def changes_section(claims: Sequence[Judged], linux: str) -> str:
    """The claims whose verdict depends on what stands for Linux, as a section of a report; empty without claims.

    Args:
        claims: The claims of the report.
        linux: The policy that stands for Linux there.
    """
    others = list(dict.fromkeys(policy for each in claims for policy in each.stand_ins))
    if not claims:
        return ""
    if not others:
        return f"{CHANGES}\n\nNothing: no claim of this report is about Linux's fair class."
    claims = [each for each in claims if not each.claim.apart]
    changed = [each for each in claims if each.is_changed]
    testable = sum(bool(each.stand_ins) for each in claims)
    then, now = (verdicts_text(Counter(of)) for of in zip(*_before_and_after(claims), strict=True))
    text = (
        f"Every claim is judged with `{RULES}` in Linux's place, too, as it was before `{linux}`: {len(changed)} "
        f"of {testable} verdicts differ. With `{RULES}` they were: {then}. With `{linux}` they are: {now}."
    )
    if not changed:
        return f"{CHANGES}\n\n{text}"
    heads = ["id", "claim", "paper", *(f"`{policy}`" for policy in (RULES, linux, *others[1:]))]
    rows = [[each.claim.id, each.claim.text, each.claim.published, *_under_each(each)] for each in changed]
    reasons = _reasons((each.claim.id, each.change) for each in changed)
    return f"{CHANGES}\n\n{text}\n\n{table(heads, rows)}\n\n{reasons}".rstrip()


CHANGES = "## What changes with the kernel's own scheduler"


def verdict_counts(counts: Mapping[Verdict, int]) -> dict[str, int]:
    """The number of claims, and how many of them have each of all verdicts."""
    every: tuple[Verdict, ...] = get_args(Verdict)
    return {"claims": sum(counts.values()), **{verdict: counts.get(verdict, 0) for verdict in every}}


def verdicts_text(counts: Mapping[Verdict, int]) -> str:
    """Such as ``4 direction only, 3 reproduced``."""
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


def _before_and_after(claims: Sequence[Judged]) -> list[tuple[Verdict, Verdict]]:
    """Verdicts with rules in Linux's place, and now."""
    return [(each.stand_ins[RULES].verdict, each.result.verdict) for each in claims if each.stand_ins]


def _under_each(judged: Judged) -> list[str]:
    """Results with rules in Linux's place, with Linux, and with its other stand-ins."""
    before, *others = judged.stand_ins.values()
    return [f"{MARKS[each.verdict]} {each.text}" for each in (before, judged.result, *others)]


def claim_records(claims: Sequence[Judged]) -> list[dict[str, Any]]:
    """The claims as flat records, with the results of predicted speed-ups and of rules if there are any."""
    has_predictions = any(each.predicted for each in claims)
    has_rules = any(each.stand_ins for each in claims)
    return [
        _record(each)
        | (_again("predicted", each.predicted) if has_predictions else {})
        | (_again(RULES, each.stand_ins.get(RULES)) if has_rules else {})
        for each in claims
    ]


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
        "apart": claim.apart or None,
    }


def _again(name: str, again: Result | None) -> dict[str, Any]:
    """Another result of the same claim."""
    return {name: again.text if again else None, f"{name}_verdict": again.verdict if again else None}
