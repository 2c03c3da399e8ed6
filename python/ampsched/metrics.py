"""Metrics that compare programs in a mix with the same programs running alone.

Slowdown (normalised turnaround time) is T_mix / T_alone. The ``h_`` metrics of COLAB (CGO 2020, section 5.1) take
T_alone from a machine of as many cores, all big; the classic ones (Eyerman and Eeckhout, IEEE Micro 2008) from the same
machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


def slowdowns(mix_ns: Sequence[float], alone_ns: Sequence[float]) -> tuple[float, ...]:
    """T_mix / T_alone of each application.

    Raises:
        ValueError: If there is no application, the lengths differ, or a time is not above 0.
    """
    if not mix_ns or min(*mix_ns, *alone_ns, 1) <= 0:
        raise ValueError("slowdowns need at least one application, and times above 0")
    return tuple(mix / alone for mix, alone in zip(mix_ns, alone_ns, strict=True))


def antt(slowdown: Sequence[float]) -> float:
    """Average normalised turnaround time: the mean slowdown; lower is better."""
    return fmean(slowdown)


def stp(slowdown: Sequence[float]) -> float:
    """System throughput: the sum of 1 / slowdown; higher is better, at most the number of applications."""
    return math.fsum(1.0 / value for value in slowdown)


def unfairness(slowdown: Sequence[float]) -> float:
    """Greatest slowdown / smallest slowdown (Prop-SP, Euro-Par 2014, section 2); 1 is fair.

    The paper's slowdowns are against CT_fast (`ampsched.references`), those of `MixMetrics` against the machine of only
    big cores.
    """
    return max(slowdown) / min(slowdown)


def asp(sched_ns: Sequence[float], slow_ns: Sequence[float]) -> float:
    """Aggregate speed-up (Prop-SP, Euro-Par 2014, section 2): the sum of CT_slow / CT_sched - 1; higher is better.

    0 if all programs run as if alone on slow cores; with constant speed-ups the sum of F (SF - 1), where F is the share
    of time on a fast core.

    Args:
        sched_ns: Completion time of each application in the mix.
        slow_ns: Completion time of each alone on slow cores only (`ampsched.references`).

    Raises:
        ValueError: If there is no application, the lengths differ, or a time is not above 0.
    """
    return math.fsum(1.0 / relative - 1.0 for relative in slowdowns(sched_ns, slow_ns))


def uniformity(slowdown: Sequence[float], *, of_progress: bool = False, sample: bool = False) -> float:
    """1 - sigma / mean; 1 is fair.

    HFEE (IEEE TC 2020, section 3) defines it on slowdowns and does not say which sigma; the authors' program applies
    the sample sigma to progress (1 / slowdown), Kim and Huh's (IEEE TC 2018) the population sigma.

    Args:
        slowdown: Slowdown of each application.
        of_progress: Take progress instead of slowdown.
        sample: Take the sample sigma (n - 1) instead of the population sigma; 0 for a single application.
    """
    values = [1.0 / value for value in slowdown] if of_progress else list(slowdown)
    if len(values) == 1:
        return 1.0
    mean = fmean(values)
    off = [value - mean for value in values]
    square = math.fsum(each * each for each in off) - math.fsum(off) ** 2 / len(values)  # the mean is rounded
    sigma = math.sqrt(max(0.0, square) / (len(values) - sample))
    return 1.0 - sigma / mean


def min_fairness(slowdown: Sequence[float]) -> float:
    """The least progress of any application (Kim and Huh, IEEE TC 2018); 1 is as if alone."""
    return 1.0 / max(slowdown)


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean of positive values; the mean for ratios, as it does not depend on which side is 1."""
    return math.exp(fmean(map(math.log, values)))


@dataclass(frozen=True, slots=True)
class MixMetrics:
    """Metrics of one run of a mix."""

    h_ntt: tuple[float, ...]
    """H_NTT of each application: its turnaround / alone on a machine of only big cores."""
    h_antt: float
    """Mean of `h_ntt`; lower is better."""
    h_stp: float
    """Sum of 1 / H_NTT; higher is better."""
    antt: float | None
    """Mean turnaround / alone on the same machine; None if those baselines were not run."""
    stp: float | None
    """Sum of the reciprocals of the same."""
    uniformity: float
    """Of the H_NTT, population sigma."""
    uniformity_progress: float
    """Of 1 / H_NTT, sample sigma."""
    unfairness: float
    """Greatest H_NTT / smallest."""
    min_fairness: float
    """1 / greatest H_NTT."""


def mix_metrics(
    mix_ns: Sequence[int], alone_big_ns: Sequence[int], alone_same_ns: Sequence[int] | None = None
) -> MixMetrics:
    """All metrics of a mix from the turnarounds of its applications.

    Args:
        mix_ns: Turnarounds in the mix.
        alone_big_ns: Turnarounds alone on the machine of only big cores.
        alone_same_ns: Turnarounds alone on the same machine, if known.
    """
    h_ntt = slowdowns(mix_ns, alone_big_ns)
    same = slowdowns(mix_ns, alone_same_ns) if alone_same_ns is not None else None
    return MixMetrics(
        h_ntt=h_ntt,
        h_antt=antt(h_ntt),
        h_stp=stp(h_ntt),
        antt=antt(same) if same else None,
        stp=stp(same) if same else None,
        uniformity=uniformity(h_ntt),
        uniformity_progress=uniformity(h_ntt, of_progress=True, sample=True),
        unfairness=unfairness(h_ntt),
        min_fairness=min_fairness(h_ntt),
    )
