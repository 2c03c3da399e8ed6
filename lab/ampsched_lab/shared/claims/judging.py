"""A claim, what was measured for it, and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter

from ampsched_lab.papers.registry import RULES
from ampsched_lab.shared.claims.comparisons import Comparison, Published, Verdict
from ampsched_lab.shared.claims.measured import Measurement, Number, Unit


@dataclass(frozen=True, slots=True)
class Check:
    """How a claim is checked."""

    measurement: Measurement
    """Where our number comes from."""
    comparison: Comparison
    paper: Published
    unit: Unit


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable statement; a claim of the paper with several numbers has several."""

    id: str
    part: str
    """The part of the experiment whose results it needs."""
    text: str
    source: str
    """Section, figure or table of the paper."""
    published: str
    """The paper's value, as printed."""
    check: Check | str
    """How it is checked, or why it cannot be."""
    apart: str = ""
    """Why it is not counted, if it is not."""
    cause_names: tuple[str, ...] = ()
    """Names of `cause` and `change`."""
    cause: str = ""
    """Why it is missed, if it is and we know. Braces hold the names of facts that were measured."""
    change: str = ""
    """Why the verdict depends on what stands for Linux, if it does and we know; likewise."""
    tests: tuple[str, ...] = ()
    """Conditions under which the cause is away."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured for a claim."""

    text: str
    """As printed."""
    verdict: Verdict
    value: float | None = None
    low: float | None = None
    high: float | None = None
    is_wide: bool = False
    """Whether more seeds could change the verdict: the interval is too wide for one."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim and what came out."""

    claim: Claim
    result: Result
    cause: str = ""
    """Why it is missed, if it is and we know."""
    predicted: Result | None = None
    """The result with speed-ups predicted from counters, not exact; None where they play no part."""
    stand_ins: Mapping[str, Result] = field(default_factory=dict)
    """The result with other policies in Linux's place, by the policy; none where Linux plays no part."""
    change: str = ""
    """Why the verdict depends on what stands for Linux, if it does and we know."""
    is_changed: bool = False
    """Whether the verdict is another one with rules in Linux's place."""


def measure(claim: Claim, results: object) -> Result:
    """What results of the claim's part say of it."""
    if isinstance(claim.check, str):
        return Result(claim.check, "not testable here")
    check = claim.check
    ours = check.measurement(results)
    is_wide = (
        check.comparison.needs_narrow
        and isinstance(ours, Number)
        and not check.paper.is_narrow(ours.estimate)
    )
    verdict = check.comparison.judge(ours, check.paper)
    value, low, high = ours.numbers
    return Result(ours.printed(check.unit), verdict, value, low, high, is_wide)


def wide_claims(claims: Sequence[Claim], results: object) -> list[Claim]:
    """Those whose number has an interval that is too wide for a verdict."""
    return [claim for claim in claims if measure(claim, results).is_wide]


def _filled(reason: str, facts: Mapping[str, object] | None) -> str:
    """A reason with the facts that it names; none if one was not measured, as the experiment was run in part."""
    known = facts or {}
    named = {name for _, name, _, _ in Formatter().parse(reason) if name}
    return reason.format_map(known) if named <= known.keys() else ""


def judge(
    claims: Sequence[Claim],
    results: object,
    predicted: object | None = None,
    facts: Mapping[str, object] | None = None,
    stand_ins: Mapping[str, object] | None = None,
) -> list[Judged]:
    """Judges claims of one part.

    Args:
        claims: Claims of the part.
        results: The part's results, as its measurements take them.
        predicted: The same with predicted speed-ups, if there are such.
        facts: What was measured for the causes of misses, by name.
        stand_ins: The same results with other policies in Linux's place, by the policy.
    """
    judged = []
    for claim in claims:
        result = measure(claim, results)
        missed = result.verdict in ("not reproduced", "direction only")
        cause = _filled(claim.cause, facts) if missed else ""
        again = measure(claim, predicted) if predicted is not None else None
        others = {policy: measure(claim, with_it) for policy, with_it in (stand_ins or {}).items()}
        changed = RULES in others and others[RULES].verdict != result.verdict
        change = _filled(claim.change, facts) if changed else ""
        judged.append(Judged(claim, result, cause, again, others, change, changed))
    return judged
