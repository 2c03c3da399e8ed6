"""On what each claim depends: its verdicts under conditions that differ in one thing each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched_lab.shared.claims.comparisons import Verdict
from ampsched_lab.shared.claims.judging import Claim, Result, measure
from ampsched_lab.shared.claims.tables import MARKS

HOLDS: tuple[Verdict, ...] = ("reproduced", "direction only")
HEADING = "## conditions: What each claim depends on"


@dataclass(frozen=True, slots=True)
class Dependence:
    """A claim and its results, by the name of the condition; the first condition changes nothing."""

    claim: Claim
    results: Mapping[str, Result]

    @property
    def kind(self) -> str:
        """Whether it holds: always, never, or under some conditions."""
        holding = sum(result.verdict in HOLDS for result in self.results.values())
        if holding == len(self.results):
            return "always"
        return "if ..." if holding else "contradicted"

    @property
    def exceptions(self) -> list[str]:
        """The conditions under which it is otherwise than as judged, with the results."""
        first, *others = self.results.items()
        holds = first[1].verdict in HOLDS
        return [
            f"{name} ({MARKS[result.verdict]} {result.text})"
            for name, result in others
            if (result.verdict in HOLDS) != holds
        ]


def dependences(claims: Sequence[Claim], results: Mapping[str, object]) -> list[Dependence]:
    """What claims of one part depend on.

    Args:
        claims: Claims of the part; those that cannot be checked or are not counted are left out.
        results: The part's results by the name of the condition, as its measurements take them.
    """
    return [
        Dependence(claim, {name: measure(claim, each) for name, each in results.items()})
        for claim in claims
        if not isinstance(claim.check, str) and not claim.apart
    ]


def dependence_section(found: Sequence[Dependence], conditions: str) -> str:
    """A section of a report.

    Args:
        found: All claims.
        conditions: What was changed, and with how many seeds; Markdown.
    """
    counts = {kind: sum(each.kind == kind for each in found) for kind in ("always", "if ...", "contradicted")}
    text = (
        f"{conditions} A claim *holds* if it is reproduced or has the direction. Of {len(found)} claims "
        f"{counts['always']} hold always, {counts['if ...']} under some conditions, {counts['contradicted']} never."
    )
    rows = []
    for each in found:
        as_judged = next(iter(each.results.values()))
        rows.append(
            [
                each.claim.id,
                each.claim.text,
                each.claim.published,
                f"{MARKS[as_judged.verdict]} {as_judged.text}",
                each.kind,
                "; ".join(each.exceptions),
            ]
        )
    heads = ["id", "claim", "paper", "ours", "holds", "otherwise under"]
    return f"{HEADING}\n\n{text}\n\n{_counts(found)}\n\n{table(heads, rows)}"


def _counts(found: Sequence[Dependence]) -> str:
    """How many claims have which verdict under each condition, of those that were judged under it."""
    verdicts = [verdict for verdict in MARKS if verdict != "not testable here"]
    names = dict.fromkeys(name for each in found for name in each.results)
    rows = []
    for name in names:
        under = [each.results[name].verdict for each in found if name in each.results]
        rows.append([name, *(str(under.count(verdict)) for verdict in verdicts), str(len(under))])
    return table(["condition", *verdicts, "claims"], rows, ALL_BUT_FIRST)


def dependence_records(found: Sequence[Dependence]) -> list[dict[str, Any]]:
    """A flat record per claim and condition."""
    return [
        {
            "id": each.claim.id,
            "condition": name,
            "ours": result.text,
            "value": result.value,
            "low": result.low,
            "high": result.high,
            "verdict": result.verdict,
        }
        for each in found
        for name, result in each.results.items()
    ]
