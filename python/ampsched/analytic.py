"""The analytical model of Prop-SP: what a share of fast-core time is worth, and what the best shares are.

Saez et al. (Euro-Par 2014 workshops), section 2. Nothing is simulated: each policy is the share of time that every
program spends on a fast core, and throughput and fairness follow from it. The page "The analytical model" derives the
formulas.

Example:
    >>> mix = table_1("W6")
    >>> [f"{each.policy} {each.asp:.4f} {each.unfairness:.4f}" for each in predict_all(mix, ["hsp", "prop-sp"])]
    ['hsp 2.6000 1.6000', 'prop-sp 2.2706 1.2272']
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum
from numbers import Integral, Real

from ampsched import metrics
from ampsched._core import InputError
from ampsched.naming import unknown

# Far beyond any processor, and nearer to 1 than anybody can measure. Within these limits rounding errors of shares,
# which are losses divided by gains, stay below 1e-9.
SPEEDUP_MAX = 1000.0
GAIN_MIN = 1e-5
WEIGHT_MIN, WEIGHT_MAX = 1e-6, 1e6
CORES_MAX = 1024
"""Fast cores, and slow cores; the tables of `most_asp` grow with the square."""
TOLERANCE = 1e-9
"""By how much shares may miss what they must add up to."""

TABLE_1: dict[str, tuple[float, ...]] = {
    "W1": (3.4, 3.4, 1.2, 1.2),
    "W2": (3.4, 3.4, 2.3, 2.3),
    "W3": (2.3, 2.3, 1.9, 1.9),
    "W4": (3.4, 3.4, 2.7, 2.7),
    "W5": (3.4, 3.4, 3.4, 3.4),
    "W6": (2.5, 2.1, 1.6, 1.2),
    "W7": (3.0, 2.1, 2.1, 2.1),
    "W8": (3.4, 3.0, 2.5, 2.1),
    "W9": (2.9, 2.5, 2.1, 1.2),
}
"""Speed-ups of the paper's workloads (Table 1)."""


@dataclass(frozen=True, slots=True)
class Mix:
    """Single-threaded programs side by side on a machine of fast and slow cores, at most one program per core.

    With as many programs as cores, as in the paper, every core is busy. With fewer, no program is on a slow core while
    a fast one idles, and slow cores are left over. More programs than cores would have to wait, which the model does
    not know, so they are refused.

    Raises:
        InputError: If a number is not within its limits, or there are more programs than cores.
    """

    name: str
    speedups: tuple[float, ...]
    """Speed on a fast core / speed on a slow one, 1 to 1,000; 1, or at least 1.00001."""
    fast: int = 2
    """Fast cores, 1 to 1,024. The default machine, two and two, is the one of the paper's tables."""
    slow: int = 2
    """Slow cores, 0 to 1,024."""
    weights: tuple[float, ...] | None = None
    """Static weights (priorities), above 0; only their ratios count, and only for Prop-SP. None: all alike."""

    def __post_init__(self) -> None:
        _check("fast", self.fast, 1, CORES_MAX, whole=True)
        _check("slow", self.slow, 0, CORES_MAX, whole=True)
        for place, value in enumerate(self.speedups):
            _check(f"speedups[{place}]", value, 1.0, SPEEDUP_MAX)
            if 1.0 < value < 1.0 + GAIN_MIN:
                raise InputError(f"speedups[{place}] = {value} is too near to 1 to be told from it (use 1)")
        for place, value in enumerate(self.weights or ()):
            _check(f"weights[{place}]", value, WEIGHT_MIN, WEIGHT_MAX)
        programs, cores = len(self.speedups), self.fast + self.slow
        if not programs:
            raise InputError("speedups: no program, at least 1 is needed")
        if programs > cores:
            raise InputError(
                f"speedups: {programs} programs for {cores} cores (fast + slow), but the model has no waiting, "
                "so there may be at most one program per core"
            )
        if self.weights is not None and len(self.weights) != programs:
            raise InputError(f"weights: {len(self.weights)} values for {programs} programs")

    @property
    def fast_time(self) -> int:
        """What the programs' shares of fast-core time add up to: the fast cores that are used."""
        return min(self.fast, len(self.speedups))

    @property
    def slow_time(self) -> int:
        """What their shares of slow-core time add up to."""
        return len(self.speedups) - self.fast_time

    def gains(self) -> list[float]:
        """1 - 1/speed-up of each program: the part of its speed that it loses on a slow core, 0 to 1."""
        return [_gain(speedup) for speedup in self.speedups]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of a mix under a policy; one value per program in the order of the mix."""

    policy: str
    fast_shares: tuple[float, ...]
    """F: share of time on a fast core, 0 to 1."""
    instruction_shares: tuple[float, ...]
    """f: share of instructions retired on a fast core, 0 to 1."""
    slowdowns: tuple[float, ...]
    """Completion time / completion time alone on a fast core, 1 to the speed-up."""
    asp: float
    """Aggregate speed-up: the sum of completion time on a slow core / completion time - 1; higher is better."""
    unfairness: float
    """Greatest slowdown / smallest; 1 is fair."""


def table_1(name: str, fast: int = 2, slow: int = 2, weights: tuple[float, ...] | None = None) -> Mix:
    """A workload of the paper's Table 1, ``"W1"`` to ``"W9"``.

    Raises:
        InputError: If there is no such workload, or see `Mix`.
    """
    if name not in TABLE_1:
        raise unknown("workload", name, TABLE_1)
    return Mix(name, TABLE_1[name], fast, slow, weights)


# From a share of time to throughput and fairness -------------------------------------------------


def instruction_shares(fast_shares: Sequence[float], speedups: Sequence[float]) -> list[float]:
    """Share f of its instructions that each program retires on a fast core, F SF / (1 + F (SF - 1)).

    In a unit of time it retires F SF on fast cores and 1 - F on slow ones, in units of what a slow core does.
    """
    return [
        share * speedup / (1.0 + share * (speedup - 1.0))
        for share, speedup in zip(fast_shares, speedups, strict=True)
    ]


def slowdowns(instruction_share: Sequence[float], speedups: Sequence[float]) -> list[float]:
    """Completion time / completion time alone on a fast core, f + (1 - f) SF (Table 2 of the paper).

    An instruction takes 1 on a fast core and SF on a slow one.
    """
    return [
        share + (1.0 - share) * speedup for share, speedup in zip(instruction_share, speedups, strict=True)
    ]


def aggregate_speedup(slowdown: Sequence[float], speedups: Sequence[float]) -> float:
    """ASP: the sum of CT_slow / CT_sched - 1 (Equation 3 of the paper), where CT_slow / CT_sched = SF / slowdown."""
    return fsum(speedup / slow - 1.0 for slow, speedup in zip(slowdown, speedups, strict=True))


def predict(mix: Mix, policy: str) -> Prediction:
    """What the model says of a mix under one of the `POLICIES`.

    Raises:
        InputError: If there is no such policy.
    """
    if policy not in POLICIES:
        raise unknown("policy", policy, POLICIES, f"known: {', '.join(POLICIES)}")
    fast_share = _checked(mix, POLICIES[policy](mix))
    instruction_share = instruction_shares(fast_share, mix.speedups)
    slowdown = slowdowns(instruction_share, mix.speedups)
    return Prediction(
        policy=policy,
        fast_shares=tuple(fast_share),
        instruction_shares=tuple(instruction_share),
        slowdowns=tuple(slowdown),
        asp=aggregate_speedup(slowdown, mix.speedups),
        unfairness=metrics.unfairness(slowdown),
    )


def predict_all(mix: Mix, policies: Sequence[str] | None = None) -> list[Prediction]:
    """What the model says of a mix under several policies; by default all.

    Raises:
        InputError: If there is no such policy.
    """
    return [predict(mix, policy) for policy in (POLICIES if policies is None else policies)]


# Policies: shares of fast-core time ---------------------------------------------------------------


def hsp(mix: Mix) -> list[float]:
    """HSP: the programs with the greatest speed-ups stay on fast cores; among equals the first ones.

    No other shares have a higher ASP, which is the sum of F (SF - 1).
    """
    fast = set(_greatest_first(mix.speedups)[: mix.fast_time])
    return [1.0 if place in fast else 0.0 for place in range(len(mix.speedups))]


def rr(mix: Mix) -> list[float]:
    """RR: every program has the same share."""
    return [mix.fast_time / len(mix.speedups)] * len(mix.speedups)


def prop_sp(mix: Mix) -> list[float]:
    """Prop-SP: shares in proportion to (speed-up - 1) x static weight, the dynamic weight of section 3.

    A single-threaded program cannot use more than one core. What becomes of the rest is a reconstruction, as the paper
    does not say: the others have it in the same proportion. If no program gains from a fast core, all have the same
    share.
    """
    weights = mix.weights or [1.0] * len(mix.speedups)
    return capped_shares(
        mix.fast_time,
        [(speedup - 1.0) * weight for speedup, weight in zip(mix.speedups, weights, strict=True)],
    )


def opt_unfairness(mix: Mix) -> list[float]:
    """Opt-Unfairness: the shares with the least unfairness, exactly.

    A program with share F has the progress (1 / slowdown) 1 - (1 - F) g, where g = 1 - 1/SF. Let everybody lose the
    same progress d, by slow-core shares d/g, except those with g < d, which never leave the slow cores and lose g. Take
    the d at which the slow cores are used up. No shares have a smaller greatest loss: all who lose d would need more
    fast-core time, and the others have none to give. And the greatest progress of any program is at least 1 - min g,
    whatever the shares. So unfairness, greatest progress / least, is at least max(1, (1 - min g) / (1 - d)), and these
    shares reach it. They are the only ones that do (but for programs with g = 0, to which all cores are alike: they
    take slow-core time first), so there is no ASP to choose by.
    """
    gains = mix.gains()
    alike = gains.count(0.0)
    taken = min(mix.slow_time, alike)
    first = iter(capped_shares(taken, [0.0] * alike))
    others = iter(capped_shares(mix.slow_time - taken, [1.0 / gain for gain in gains if gain != 0.0]))
    return [1.0 - next(first if gain == 0.0 else others) for gain in gains]


def opt_asp_ref(mix: Mix) -> list[float]:
    """Opt-ASP-Ref: the shares with the highest ASP that are not less fair than Prop-SP's, exactly."""
    return most_asp(mix, predict(mix, "prop-sp").unfairness)


def most_asp(mix: Mix, unfairness_max: float) -> list[float]:
    """The shares of fast-core time with the highest ASP under a limit on unfairness, exactly.

    Fix the greatest loss of progress, D. Unfairness at most u means that everybody's loss is within max(0, 1 - u (1 -
    D)) and D, so slow-core shares, loss / g, have limits, too. Slow-core time costs (SF - 1) of ASP each, so it goes to
    the smallest speed-ups first, up to their limits. This is best for this D. As D changes, cost is a straight line,
    except where a limit has a kink (D = g; 1 - u (1 - D) = 0) or where slow-core time ends exactly between two
    programs. These points, and the ends of the range in which slow-core time can be placed, are all looked at: one of
    them is the optimum. Equal programs have equal shares. Of several optima the one with the smallest D is taken.

    Args:
        mix: The programs.
        unfairness_max: Limit, at least 1.

    Raises:
        InputError: If no shares are so fair.
    """
    least_possible = predict(mix, "opt-unfairness").unfairness
    if not unfairness_max >= least_possible * (1.0 - TOLERANCE):
        raise InputError(
            f"unfairness_max = {unfairness_max:g} is below {least_possible:g}, the least that is possible"
        )
    # One column per distinct speed-up, in ascending order.
    members = sorted(Counter(mix.speedups).items())
    gain, count = [_gain(speedup) for speedup, _ in members], [number for _, number in members]
    price = [speedup - 1.0 for speedup, _ in members]
    knots = _kinks(gain, unfairness_max)
    filled = [_filled(_slow_limits(loss, gain, unfairness_max), count) for loss in knots]
    # One per column and one more, as they fall.
    ends = [_where(mix.slow_time, column, knots) for column in zip(*filled, strict=True)]
    losses = sorted({min(max(loss, ends[-1]), ends[0]) for loss in [*knots, *ends]})
    cost, best = float("inf"), [0.0]
    for loss in losses:
        slow = _cheapest(mix.slow_time, _slow_limits(loss, gain, unfairness_max), count)
        # Rounded, so that equally good ones are recognised as such.
        here = round(fsum(map(float.__mul__, slow, price)), 12)
        if here < cost:
            cost, best = here, slow
    share = {speedup: 1.0 - slow / number for (speedup, number), slow in zip(members, best, strict=True)}
    return [share[speedup] for speedup in mix.speedups]


POLICIES: dict[str, Callable[[Mix], list[float]]] = {
    "hsp": hsp,
    "rr": rr,
    "prop-sp": prop_sp,
    "opt-unfairness": opt_unfairness,
    "opt-asp-ref": opt_asp_ref,
}
"""The policies of section 2 by name: each gives the share of fast-core time of each program of a mix."""


def capped_shares(total: float, weights: Sequence[float]) -> list[float]:
    """Divides a number of cores in proportion to weights, at most one core each: min(1, level x weight).

    What is above one core goes to the others in the same proportion, and to weights of 0, equally, when all others have
    one.

    Args:
        total: Cores, 0 to the number of weights.
        weights: 0 or more.
    """
    shares = [0.0] * len(weights)
    order = _greatest_first(weights)
    # What the weights of each rank and those below it add up to.
    sums = list(accumulate(weights[place] for place in reversed(order)))[::-1]
    left = float(total)
    # In descending order nobody is capped after the first one who is not, so one pass is enough.
    for rank, place in enumerate(order):
        part = weights[place] / sums[rank] if weights[place] > 0.0 else 1.0 / (len(order) - rank)
        shares[place] = min(1.0, left * part)
        left -= shares[place]
    return shares


def _gain(speedup: float) -> float:
    return (speedup - 1.0) / speedup


def _greatest_first(values: Sequence[float]) -> list[int]:
    """The places of values from the greatest to the smallest; equal ones stay in order."""
    return sorted(range(len(values)), key=lambda place: -values[place])


def _kinks(gain: list[float], unfairness: float) -> list[float]:
    """Greatest losses D at which a limit of `_slow_limits` has a kink, and both ends of D's range, in ascending order.

    Beyond the upper end the least gain is below the lower limit of losses.
    """
    end = 1.0 - (1.0 - gain[0]) / unfairness
    inner = [*gain, 1.0 - 1.0 / unfairness]
    return sorted({0.0, end, *(loss for loss in inner if 0.0 < loss < end)})


Limits = list[tuple[float, float]]
"""The least and greatest slow-core share of each gain."""


def _slow_limits(loss: float, gain: list[float], unfairness: float) -> Limits:
    """The limits at one greatest loss D."""
    smallest = max(0.0, 1.0 - unfairness * (1.0 - loss))
    return [(_least(smallest, loss, each), _slow_share(loss, each)) for each in gain]


def _least(smallest: float, greatest: float, gain: float) -> float:
    return min(_slow_share(smallest, gain), _slow_share(greatest, gain)) if gain > 0.0 else 0.0


def _slow_share(loss: float, gain: float) -> float:
    """The slow-core share at which a loss is reached; 1 if it never is."""
    return loss / gain if loss < gain else 1.0


def _filled(limits: Limits, count: list[int]) -> list[float]:
    """Slow-core time taken if the first k columns are at their upper limits, the others at lower ones, for each k.

    Each grows with D.
    """
    before = accumulate((most * number for (_, most), number in zip(limits, count, strict=True)), initial=0.0)
    least = [low * number for (low, _), number in zip(limits, count, strict=True)]
    after = list(accumulate(reversed(least), initial=0.0))[::-1]
    return [taken + rest for taken, rest in zip(before, after, strict=True)]


def _cheapest(total: float, limits: Limits, count: list[int]) -> list[float]:
    """Slow-core time of each column within its limits, as much as possible to the first ones."""
    slow = [low * number for (low, _), number in zip(limits, count, strict=True)]
    left = total - fsum(slow)
    for place, ((low, most), number) in enumerate(zip(limits, count, strict=True)):
        more = min(max(left, 0.0), (most - low) * number)
        slow[place] += more
        left -= more
    return slow


def _where(value: float, rising: Sequence[float], knots: list[float]) -> float:
    """Where a function, given at knots and straight between them, reaches a value; the nearer end if it never does."""
    at = bisect_left(rising, value)
    if at in (0, len(knots)):
        return knots[min(at, len(knots) - 1)]
    part = (value - rising[at - 1]) / (rising[at] - rising[at - 1])
    return knots[at - 1] + part * (knots[at] - knots[at - 1])


def _checked(mix: Mix, shares: list[float]) -> list[float]:
    """The shares without rounding errors beyond 0 and 1."""
    assert abs(fsum(shares) - mix.fast_time) < TOLERANCE * len(shares), "fast cores are used up"
    assert all(-TOLERANCE < share < 1.0 + TOLERANCE for share in shares), "a share is within 0 and 1"
    return [min(max(share, 0.0), 1.0) for share in shares]


def _check(place: str, value: float, low: float, high: float, *, whole: bool = False) -> None:
    """Refuses what is not a number within limits."""
    if not isinstance(value, Integral if whole else Real):
        raise InputError(f"{place} = {value!r} is not a {'whole ' if whole else ''}number")
    if not low <= value <= high:
        raise InputError(f"{place} = {value:g} is not within {low:g} to {high:g}")
