"""The analytical model of Prop-SP: what a share of fast-core time is worth, and what the best shares are.

Saez et al. (Euro-Par 2014 workshops), section 2. Nothing is simulated: each policy is the share of time that every
program spends on a fast core, and throughput and fairness follow from it. The page "The analytical model" derives the
formulas.

Example:
    >>> mix = table_1("W6")
    >>> [f"{each.policy} {each.asp:.4f} {each.unfairness:.4f}" for each in predict_all(mix, ["hsp", "prop-sp"])]
    ['hsp 2.6000 1.6000', 'prop-sp 2.2706 1.2272']
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from ampsched import metrics
from ampsched._core import InputError, suggest

Array = npt.NDArray[np.float64]
"""One number per program."""

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

    def speedup_array(self) -> Array:
        """The speed-ups."""
        return np.array(self.speedups, dtype=np.float64)

    def weight_array(self) -> Array:
        """The static weights."""
        return np.array(self.weights or [1.0] * len(self.speedups), dtype=np.float64)

    def gains(self) -> Array:
        """1 - 1/speed-up of each program: the part of its speed that it loses on a slow core, 0 to 1."""
        speedup = self.speedup_array()
        return (speedup - 1.0) / speedup


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
        raise InputError(f'unknown workload "{name}" ({suggest(name, list(TABLE_1))})')
    return Mix(name, TABLE_1[name], fast, slow, weights)


# From a share of time to throughput and fairness -------------------------------------------------


def instruction_shares(fast_shares: Array, speedups: Array) -> Array:
    """Share f of its instructions that each program retires on a fast core, F SF / (1 + F (SF - 1)).

    In a unit of time it retires F SF on fast cores and 1 - F on slow ones, in units of what a slow core does.
    """
    return fast_shares * speedups / (1.0 + fast_shares * (speedups - 1.0))


def slowdowns(instruction_share: Array, speedups: Array) -> Array:
    """Completion time / completion time alone on a fast core, f + (1 - f) SF (Table 2 of the paper).

    An instruction takes 1 on a fast core and SF on a slow one.
    """
    return instruction_share + (1.0 - instruction_share) * speedups


def aggregate_speedup(slowdown: Array, speedups: Array) -> float:
    """ASP: the sum of CT_slow / CT_sched - 1 (Equation 3 of the paper), where CT_slow / CT_sched = SF / slowdown."""
    return float(np.sum(speedups / slowdown - 1.0))


def predict(mix: Mix, policy: str) -> Prediction:
    """What the model says of a mix under one of the `POLICIES`.

    Raises:
        InputError: If there is no such policy.
    """
    if policy not in POLICIES:
        raise InputError(f'unknown policy "{policy}" ({suggest(policy, list(POLICIES))})')
    fast_share = _checked(mix, POLICIES[policy](mix))
    speedup = mix.speedup_array()
    instruction_share = instruction_shares(fast_share, speedup)
    slowdown = slowdowns(instruction_share, speedup)
    return Prediction(
        policy=policy,
        fast_shares=tuple(fast_share.tolist()),
        instruction_shares=tuple(instruction_share.tolist()),
        slowdowns=tuple(slowdown.tolist()),
        asp=aggregate_speedup(slowdown, speedup),
        unfairness=metrics.unfairness(slowdown.tolist()),
    )


def predict_all(mix: Mix, policies: Sequence[str] | None = None) -> list[Prediction]:
    """What the model says of a mix under several policies; by default all.

    Raises:
        InputError: If there is no such policy.
    """
    return [predict(mix, policy) for policy in (POLICIES if policies is None else policies)]


# Policies: shares of fast-core time ---------------------------------------------------------------


def hsp(mix: Mix) -> Array:
    """HSP: the programs with the greatest speed-ups stay on fast cores; among equals the first ones.

    No other shares have a higher ASP, which is the sum of F (SF - 1).
    """
    shares = np.zeros(len(mix.speedups))
    shares[np.argsort(-mix.speedup_array(), kind="stable")[: mix.fast_time]] = 1.0
    return shares


def rr(mix: Mix) -> Array:
    """RR: every program has the same share."""
    return np.full(len(mix.speedups), mix.fast_time / len(mix.speedups))


def prop_sp(mix: Mix) -> Array:
    """Prop-SP: shares in proportion to (speed-up - 1) x static weight, the dynamic weight of section 3.

    A single-threaded program cannot use more than one core. What becomes of the rest is a reconstruction, as the paper
    does not say: the others have it in the same proportion. If no program gains from a fast core, all have the same
    share.
    """
    return capped_shares(mix.fast_time, (mix.speedup_array() - 1.0) * mix.weight_array())


def opt_unfairness(mix: Mix) -> Array:
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
    alike = gains == 0.0
    taken = min(mix.slow_time, int(np.sum(alike)))
    slow = np.zeros(len(gains))
    slow[alike] = capped_shares(taken, gains[alike])
    slow[~alike] = capped_shares(mix.slow_time - taken, 1.0 / gains[~alike])
    return 1.0 - slow


def opt_asp_ref(mix: Mix) -> Array:
    """Opt-ASP-Ref: the shares with the highest ASP that are not less fair than Prop-SP's, exactly."""
    return most_asp(mix, predict(mix, "prop-sp").unfairness)


def most_asp(mix: Mix, unfairness_max: float) -> Array:
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
    _, first, member, count = np.unique(
        mix.speedup_array(), return_index=True, return_inverse=True, return_counts=True
    )
    gain, price = mix.gains()[first], mix.speedup_array()[first] - 1.0
    knots = _kinks(gain, unfairness_max)
    least, most = _slow_limits(knots, gain, unfairness_max)
    # Slow-core time taken if the first k columns are at their upper limits, the others at their lower ones: grows with
    # D.
    filled = _sums_before(most * count) + _sums_from(least * count)
    ends = np.array([np.interp(mix.slow_time, column, knots) for column in filled.T])
    losses = np.unique(np.clip(np.concatenate([knots, ends]), ends[-1], ends[0]))
    least, most = _slow_limits(losses, gain, unfairness_max)
    room = (most - least) * count
    left = mix.slow_time - np.sum(least * count, axis=1, keepdims=True)
    slow = least * count + np.clip(left - _sums_before(room)[:, :-1], 0.0, room)
    # Rounded, so that equally good ones are recognised as such.
    best = np.argmin(np.round(slow @ price, 12))
    return np.asarray(1.0 - (slow[best] / count)[member], dtype=np.float64)


POLICIES: dict[str, Callable[[Mix], Array]] = {
    "hsp": hsp,
    "rr": rr,
    "prop-sp": prop_sp,
    "opt-unfairness": opt_unfairness,
    "opt-asp-ref": opt_asp_ref,
}
"""The policies of section 2 by name: each gives the share of fast-core time of each program of a mix."""


def capped_shares(total: float, weights: Array) -> Array:
    """Divides a number of cores in proportion to weights, at most one core each: min(1, level x weight).

    What is above one core goes to the others in the same proportion, and to weights of 0, equally, when all others have
    one.

    Args:
        total: Cores, 0 to the number of weights.
        weights: 0 or more.
    """
    shares = np.zeros(len(weights))
    order = np.argsort(-weights, kind="stable")
    left = float(total)
    # In descending order nobody is capped after the first one who is not, so one pass is enough.
    for rank, place in enumerate(order):
        rest = weights[order[rank:]]
        part = weights[place] / np.sum(rest) if weights[place] > 0.0 else 1.0 / len(rest)
        shares[place] = min(1.0, left * part)
        left -= shares[place]
    return shares


def _kinks(gain: Array, unfairness: float) -> Array:
    """Greatest losses D at which a limit of `_slow_limits` has a kink, and both ends of D's range, in ascending order.

    Beyond the upper end the least gain is below the lower limit of losses.
    """
    end = 1.0 - (1.0 - gain[0]) / unfairness
    inner = np.append(gain, 1.0 - 1.0 / unfairness)
    return np.unique(np.concatenate([[0.0], inner[(inner > 0.0) & (inner < end)], [end]]))


def _slow_limits(losses: Array, gain: Array, unfairness: float) -> tuple[Array, Array]:
    """The least and greatest slow-core share of each gain (columns) for each greatest loss D (rows)."""
    greatest = losses[:, np.newaxis]
    smallest = np.maximum(0.0, 1.0 - unfairness * (1.0 - greatest))
    most = _slow_share(greatest, gain)
    least = np.where(gain > 0.0, np.minimum(_slow_share(smallest, gain), most), 0.0)
    return least, most


def _slow_share(loss: Array, gain: Array) -> Array:
    """The slow-core share at which a loss is reached; 1 if it never is."""
    ones = np.ones(np.broadcast_shapes(loss.shape, gain.shape))
    return np.divide(loss, gain, out=ones, where=loss < gain)


def _sums_before(values: Array) -> Array:
    """For each place of a row, and the end, the sum of what is before it."""
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))


def _sums_from(values: Array) -> Array:
    """For each place of a row, and the end, the sum of what is from there on."""
    return _sums_before(values[:, ::-1])[:, ::-1]


def _checked(mix: Mix, shares: Array) -> Array:
    """The shares without rounding errors beyond 0 and 1."""
    assert abs(np.sum(shares) - mix.fast_time) < TOLERANCE * len(shares), "fast cores are used up"
    assert np.all((shares > -TOLERANCE) & (shares < 1.0 + TOLERANCE)), "a share is within 0 and 1"
    return np.clip(shares, 0.0, 1.0)


def _check(place: str, value: float, low: float, high: float, *, whole: bool = False) -> None:
    """Refuses what is not a number within limits."""
    if not isinstance(value, Integral if whole else Real):
        raise InputError(f"{place} = {value!r} is not a {'whole ' if whole else ''}number")
    if not low <= value <= high:
        raise InputError(f"{place} = {value:g} is not within {low:g} to {high:g}")
