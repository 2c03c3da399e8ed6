"""Metrics and statistics against vectors computed by hand."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampsched import metrics
from ampsched.statistics import estimate, t_quantile

# COLAB's Figure 1 with our amounts: turnarounds alone on two big cores and in the mix, in 1/1000 of a unit.
ALONE = (4_500, 4_167, 2_000)
WASH = (8_167, 8_000, 5_667)
COLAB = (5_000, 6_500, 4_000)


@pytest.mark.parametrize(("mix", "h_antt", "h_stp"), [(WASH, 2.189, 1.425), (COLAB, 1.557, 2.041)])
def test_figure_1(mix: tuple[int, ...], h_antt: float, h_stp: float) -> None:
    measured = metrics.mix_metrics(mix, ALONE)
    assert measured.h_antt == pytest.approx(h_antt, abs=1e-3)
    assert measured.h_stp == pytest.approx(h_stp, abs=1e-3)
    assert measured.antt is None
    assert measured.stp is None


def test_uniformity_has_four_variants() -> None:
    slowdown = (1.2, 1.4, 1.6, 2.0)
    measured = [
        metrics.uniformity(slowdown, of_progress=progress, sample=sample)
        for progress in (False, True)
        for sample in (False, True)
    ]
    assert measured == pytest.approx([0.8092, 0.7796, 0.8174, 0.7891], abs=1e-4)
    assert metrics.uniformity([1.7], sample=True) == 1.0


@given(st.lists(st.floats(0.1, 1e4), min_size=2, max_size=12), st.booleans())
def test_uniformity_is_as_exact_fractions_have_it(slowdown: list[float], sample: bool) -> None:
    sigma = (statistics.stdev if sample else statistics.pstdev)(slowdown)
    exact = 1.0 - sigma / statistics.fmean(slowdown)
    assert metrics.uniformity(slowdown, sample=sample) == pytest.approx(exact, rel=0, abs=1e-14)


@given(st.floats(0.1, 1e4), st.integers(1, 50))
def test_equal_slowdowns_are_uniform(slowdown: float, count: int) -> None:
    assert metrics.uniformity([slowdown] * count) == 1.0


def test_asp_is_what_time_on_fast_cores_gains() -> None:
    """Prop-SP's W6 under Prop-SP: CT_sched = CT_slow / (1 + F (SF - 1)), so ASP = sum of F (SF - 1)."""
    speedups, shares = (2.5, 2.1, 1.6, 1.2), (0.882353, 0.647059, 0.352941, 0.117647)
    slow = [1e9 * speedup for speedup in speedups]
    gains = [share * (speedup - 1) for share, speedup in zip(shares, speedups, strict=True)]
    sched = [time / (1 + gain) for time, gain in zip(slow, gains, strict=True)]
    assert metrics.asp(sched, slow) == pytest.approx(sum(gains)) == pytest.approx(2.2706, abs=1e-4)
    slowdown = metrics.slowdowns(sched, [1e9] * 4)
    assert slowdown == pytest.approx((1.076, 1.227, 1.320, 1.172), abs=1e-3)
    assert metrics.unfairness(slowdown) == pytest.approx(1.2272, abs=1e-4)


def test_asp_of_nothing_gained_is_zero() -> None:
    assert metrics.asp([3, 5], [3, 5]) == 0.0
    assert metrics.asp([10], [5]) == -0.5
    for wrong in (([], []), ([1, 2], [1]), ([1], [0])):
        with pytest.raises(ValueError, match=r"at least one application|longer|shorter"):
            metrics.asp(*wrong)


def test_fairness_of_a_mix() -> None:
    measured = metrics.mix_metrics((1_200, 1_400, 1_600, 2_000), (1_000,) * 4, (1_000, 1_400, 1_600, 1_000))
    assert measured.unfairness == pytest.approx(2.0 / 1.2)
    assert measured.min_fairness == pytest.approx(0.5)
    assert measured.antt == pytest.approx((1.2 + 1.0 + 1.0 + 2.0) / 4)
    assert measured.stp == pytest.approx(1 / 1.2 + 1 + 1 + 0.5)


@pytest.mark.parametrize(("mix", "alone"), [((), ()), ((1,), (0,)), ((0,), (1,)), ((1, 2), (1,))])
def test_slowdowns_of_nothing_are_refused(mix: tuple[int, ...], alone: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"slowdowns need|zip\(\) argument"):
        metrics.slowdowns(mix, alone)


def test_geometric_mean() -> None:
    assert metrics.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert metrics.geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_interval_is_students() -> None:
    # t(2) = 4.3027, s = 1, n = 3.
    measured = estimate([1.0, 2.0, 3.0])
    assert measured.mean == 2.0
    assert measured.half_width == pytest.approx(4.302653 / math.sqrt(3), abs=1e-5)
    assert not measured.excludes_zero
    assert estimate([5.0, 5.1]).excludes_zero


# scipy.special.stdtrit(degrees, 0.975) of scipy 1.17.1.
QUANTILES = {
    1: 12.706204736174694,
    2: 4.302652729749462,
    3: 3.1824463052837078,
    4: 2.7764451051977934,
    5: 2.5705818356363146,
    7: 2.364624251592784,
    9: 2.262157162798205,
    10: 2.228138851986274,
    19: 2.0930240544083087,
    20: 2.085963447265864,
    29: 2.045229642132703,
    49: 2.0095752371292392,
    50: 2.008559112100761,
    99: 1.9842169515864174,
    100: 1.9839715185235518,
    199: 1.9719565442517533,
    999: 1.9623414611334493,
    10_000: 1.960201239890626,
}


@pytest.mark.parametrize(("degrees", "quantile"), QUANTILES.items())
def test_quantiles_are_scipys(degrees: int, quantile: float) -> None:
    assert t_quantile(degrees) == pytest.approx(quantile, rel=1e-11)


def test_one_seed_has_no_interval() -> None:
    measured = estimate([0.25])
    assert (measured.low, measured.mean, measured.high, measured.n) == (0.25, 0.25, 0.25, 1)
    with pytest.raises(ValueError, match="at least one"):
        estimate([])
