"""What a report begins with: the answer in three sentences and one figure."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ampsched_lab.shared import plots
from ampsched_lab.shared.claims.comparisons import Verdict
from ampsched_lab.shared.claims.dependence import Dependence
from ampsched_lab.shared.claims.judging import Judged
from ampsched_lab.shared.claims.tables import answer_text, verdicts, verdicts_by_figure

COLOURS: dict[Verdict, str] = {
    "reproduced": plots.BLUE,
    "direction only": plots.SKY,
    "not reproduced": plots.RED,
    "not testable here": "#DDDDDD",
}


def answer(claims: Sequence[Judged], headline: str, depend: Sequence[Dependence]) -> str:
    """How many claims hold, what became of the main one, and what they depend on.

    Args:
        claims: The judged claims of the report.
        headline: Id of the paper's main claim; it may be of a part that the report does not have.
        depend: Claims under conditions; none if no condition was run.
    """
    counts = answer_text(verdicts(claims))
    if not counts:
        return ""
    sentences = [f"**{counts}**"]
    sentences += [
        f"The main one, {each.claim.text}: the paper has {each.claim.published}, we have {each.result.text} "
        f"({each.result.verdict})."
        for each in claims
        if each.claim.id == headline
    ]
    counted = [each for each in depend if not each.claim.apart]
    if counted:
        kinds = Counter(each.kind for each in counted)
        sentences.append(
            f"Under {len(counted[0].results)} conditions, each of which changes one thing, {kinds['always']} claims hold "
            f"always, {kinds['if ...']} under some, and {kinds['contradicted']} never."
        )
    return " ".join(sentences)


def draw_verdicts(claims: Sequence[Judged], path: Path) -> None:
    """Draws how many claims of each of the paper's figures, tables and sections have which verdict."""
    counts = verdicts(claims)
    judged = counts.total() - counts["not testable here"]
    title = f"{counts['reproduced']} of {judged} claims are reproduced, {counts['direction only']} more have the direction"
    rows = dict(sorted(verdicts_by_figure(claims).items(), key=lambda row: _place(row[0])))
    plots.stacked(path, title, rows, COLOURS, "claims")


def _place(name: str) -> tuple[int, list[float], str]:
    """For sorting: figures, tables and sections by their numbers, then what has none."""
    kinds = ("Figure", "Table", "section")
    kind = next((place for place, kind in enumerate(kinds) if name.startswith(kind)), len(kinds))
    return kind, [float(part) for part in re.findall(r"\d+", name)], name
