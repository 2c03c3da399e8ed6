"""Whether what is said to be the cause of a miss is one: under the condition that takes it away, the miss is gone."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ampsched.markdown import table
from ampsched_lab.shared.claims.comparisons import Verdict
from ampsched_lab.shared.claims.dependence import Dependence
from ampsched_lab.shared.claims.judging import Claim, Judged, Result
from ampsched_lab.shared.claims.tables import MARKS

State = Literal["confirmed", "in part", "open", "refuted"]
STATES: tuple[State, ...] = ("confirmed", "in part", "open", "refuted")
"""From the best to the worst."""
HALF, TENTH = 0.5, 0.1
"""Shares of the distance to the paper's value that a cause must take away: to be one in part, and not to be refuted."""
ORDER: tuple[Verdict, ...] = ("not testable here", "not reproduced", "direction only", "reproduced")
MISSED: tuple[Verdict, ...] = ("not reproduced", "direction only")

RULE = (
    "A cause is *confirmed* if the claim is reproduced under a condition that takes the cause away, *in part* if "
    "half the distance to the paper's value is gone, if that value is passed, or if the verdict is better, *refuted* "
    "if less than a tenth of the distance is gone, else *open*; open is also what no condition can test."
)


@dataclass(frozen=True, slots=True)
class Tested:
    """The cause of a miss, and what a test of it says."""

    judged: Judged
    condition: str
    """Under which the cause is away; empty if there is none."""
    result: Result | None
    """What the claim yields then."""
    state: State
    gone: float = 0.0
    """Share of the distance to the paper's number that is gone."""


def checked_causes(claims: Sequence[Judged], found: Sequence[Dependence]) -> list[Tested]:
    """A test of the cause of each counted miss: the one of its conditions that goes furthest.

    Args:
        claims: What was judged.
        found: The same claims under conditions.
    """
    under = {each.claim.id: each.results for each in found}
    missed = [each for each in claims if each.result.verdict in MISSED and not each.claim.apart]
    return [_best(each, under.get(each.claim.id, {})) for each in missed]


def _best(judged: Judged, under: Mapping[str, Result]) -> Tested:
    before = next(iter(under.values()), judged.result)
    tests = [_test(judged, name, before, under[name]) for name in judged.claim.tests if name in under]
    none = Tested(judged, "", None, "open")
    return min(tests, key=lambda test: (STATES.index(test.state), -test.gone), default=none)


def _test(judged: Judged, name: str, before: Result, after: Result) -> Tested:
    state, gone = state_of(judged.claim, before, after), _gone(judged.claim, before, after)
    return Tested(judged, name, after, state, gone)


def state_of(claim: Claim, before: Result, after: Result) -> State:
    """What a test says of a cause.

    Args:
        claim: A claim that is missed.
        before: As judged, with the test's seeds.
        after: Under the condition.
    """
    if after.verdict == "reproduced":
        return "confirmed"
    gone = _gone(claim, before, after)
    if gone >= HALF or ORDER.index(after.verdict) > ORDER.index(before.verdict):
        return "in part"
    return "open" if gone >= TENTH else "refuted"


def _gone(claim: Claim, before: Result, after: Result) -> float:
    """Share of the distance to the paper's number that is gone, 1 if that is passed; 0 if there is no number."""
    paper = None if isinstance(claim.check, str) else claim.check.paper.value
    if not isinstance(paper, float) or before.value is None or after.value is None or before.value == paper:
        return 0.0
    return min(1.0, (before.value - after.value) / (before.value - paper))


def checks_records(claims: Sequence[Judged], found: Sequence[Dependence]) -> list[dict[str, str]]:
    """A flat record per miss: the condition that says most of its cause, and what it says."""
    return [
        {"id": test.judged.claim.id, "condition": test.condition, "cause": test.state}
        for test in checked_causes(claims, found)
    ]


def checks_section(claims: Sequence[Judged], found: Sequence[Dependence]) -> str:
    """The tests of all causes as a section of a report; empty if no condition was run or nothing is missed."""
    tests = checked_causes(claims, found)
    if not found or not tests:
        return ""
    counts = Counter(test.state for test in tests)
    unexplained = counts["open"] + counts["refuted"]
    summary = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    rows = [
        [
            test.judged.claim.id,
            test.judged.claim.published,
            test.judged.result.text,
            test.condition or "–",
            f"{MARKS[test.result.verdict]} {test.result.text}" if test.result else "",
            test.state,
        ]
        for test in tests
    ]
    heads = ["id", "paper", "ours", "condition", "under it", "the cause is"]
    text = f"{RULE} Of {len(tests)} misses {summary}: {unexplained} are unexplained."
    return f"## Tests of causes\n\n{text}\n\n{table(heads, rows)}"
