"""The analytical model of Prop-SP against tables computed independently, linear programming, and chance."""

import csv
import doctest
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from ampsched import InputError, analytic
from ampsched.analytic import POLICIES, TABLE_1, Mix, most_asp, predict, predict_all, table_1

# Table 1 on two fast and two slow cores, to the printed digits. Computed by another program from the paper's
# definitions; its optima were found by bisection and by a scan.
TABLES = list(csv.DictReader((Path(__file__).parent / "data/analytic_tables.csv").read_text().splitlines()))
SEEDS = range(150)
# HiGHS solves to 1e-7 in shares; slowdowns of large speed-ups amplify that.
SOLVER = 1e-5


@pytest.mark.parametrize("row", TABLES, ids=lambda row: f"{row['workload']}-{row['policy']}")
def test_tables(row: dict[str, str]) -> None:
    ours = predict(table_1(row["workload"]), row["policy"])
    for field in ("fast_shares", "instruction_shares", "slowdowns"):
        assert " ".join(f"{value:.3f}" for value in getattr(ours, field)) == row[field], field
    assert f"{ours.asp:.4f}" == row["asp"]
    assert f"{ours.unfairness:.4f}" == row["unfairness"]


def test_the_tables_are_complete() -> None:
    assert [(row["workload"], row["policy"]) for row in TABLES] == [
        (name, policy) for name in TABLE_1 for policy in POLICIES
    ]


def test_fairness_can_be_out_of_reach() -> None:
    """W9: a program with speed-up 1.2 that never leaves the slow cores is still slowed down less than the others."""
    ours = predict(table_1("W9"), "opt-unfairness")
    assert ours.fast_shares[3] == 0.0
    assert ours.slowdowns[3] == 1.2
    assert ours.slowdowns[0] == pytest.approx(ours.slowdowns[2])
    # The three others share two slow-core halves: d = 1 / (sum of 1/g), here with g = 19/29, 3/5, 11/21.
    loss = 1 / (29 / 19 + 5 / 3 + 21 / 11)
    assert ours.unfairness == pytest.approx(1 / 1.2 / (1 - loss), rel=1e-12)


def random_mix(seed: int) -> Mix:
    """Any machine, any number of programs that it holds; often equal speed-ups, ones, extremes."""
    rng = np.random.default_rng(seed)
    fast, slow = int(rng.integers(1, 6)), int(rng.integers(0, 8))
    count = int(rng.integers(1, fast + slow + 1))
    kinds = [
        lambda: rng.uniform(1.0, 4.0, count),
        lambda: np.round(rng.uniform(1.0, 4.0, count), 1),
        lambda: rng.choice([1.0, 1.2, 2.0, 3.4], count),
        lambda: 1.0 + 10.0 ** rng.uniform(-5, 2.9, count),
    ]
    speedups = kinds[seed % len(kinds)]()
    weights = tuple(10.0 ** rng.uniform(-2, 2, count)) if seed % 3 == 0 else None
    return Mix(f"seed {seed}", tuple(speedups.tolist()), fast, slow, weights)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_uses_the_cores_up(seed: int, policy: str) -> None:
    mix = random_mix(seed)
    ours = predict(mix, policy)
    shares, speedups = np.array(ours.fast_shares), np.array(mix.speedups)
    assert np.all((shares >= 0) & (shares <= 1))
    assert np.sum(shares) == pytest.approx(mix.fast_time, abs=1e-9)
    # The short forms that follow from the paper's Table 2 and Equation 3.
    assert ours.slowdowns == pytest.approx(speedups / (1 + shares * (speedups - 1)), rel=1e-12)
    assert ours.asp == pytest.approx(np.sum(shares * (speedups - 1)), rel=1e-9, abs=1e-9)
    assert ours.unfairness >= 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_order_of_the_policies(seed: int) -> None:
    by_name = {each.policy: each for each in predict_all(random_mix(seed))}
    best, fairest, limited = by_name["hsp"], by_name["opt-unfairness"], by_name["opt-asp-ref"]
    for each in by_name.values():
        assert each.asp <= best.asp * (1 + 1e-12)
        assert each.unfairness >= fairest.unfairness * (1 - 1e-12)
    assert limited.unfairness <= by_name["prop-sp"].unfairness * (1 + 1e-9)
    assert limited.asp >= by_name["prop-sp"].asp * (1 - 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_opt_unfairness_is_what_linear_programming_finds(seed: int) -> None:
    """Least greatest progress for a least progress of 1, all scaled by t: F t, t and the greatest progress."""
    mix = random_mix(seed)
    count, gains = len(mix.speedups), np.array(mix.gains())
    # Progress of each program times t is (1 - g) t + g (F t).
    progress = np.hstack([np.diag(gains), (1 - gains)[:, None], np.zeros((count, 1))])
    greatest = np.hstack([np.zeros((count, count + 1)), np.ones((count, 1))])
    at_most_t = np.hstack([np.eye(count), -np.ones((count, 1)), np.zeros((count, 1))])
    found = linprog(
        [0.0] * (count + 1) + [1.0],
        A_ub=np.vstack([progress - greatest, -progress, at_most_t]),
        b_ub=np.concatenate([np.zeros(count), -np.ones(count), np.zeros(count)]),
        A_eq=[[1.0] * count + [-float(mix.fast_time), 0.0]],
        b_eq=[0.0],
    )
    assert found.status == 0
    assert predict(mix, "opt-unfairness").unfairness == pytest.approx(found.fun, rel=SOLVER)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", ["prop-sp", "hsp", "rr"])
def test_most_asp_is_what_linear_programming_finds(seed: int, policy: str) -> None:
    """Under the unfairness of another policy.

    Variables: F and the least progress q; everybody's is within q and u q.
    """
    mix = random_mix(seed)
    limit = predict(mix, policy).unfairness
    count, gains = len(mix.speedups), np.array(mix.gains())
    speedups = np.array(mix.speedups)
    found = linprog(
        np.append(1.0 - speedups, 0.0),
        A_ub=np.vstack(
            [
                np.hstack([np.diag(gains), np.full((count, 1), -limit)]),
                np.hstack([-np.diag(gains), np.ones((count, 1))]),
            ]
        ),
        b_ub=np.concatenate([gains - 1, 1 - gains]),
        A_eq=[[1.0] * count + [0.0]],
        b_eq=[float(mix.fast_time)],
        bounds=[(0, 1)] * (count + 1),
    )
    assert found.status == 0
    shares = np.array(most_asp(mix, limit))
    assert np.sum(shares) == pytest.approx(mix.fast_time, abs=1e-9)
    assert np.sum(shares * (speedups - 1)) == pytest.approx(-found.fun, rel=SOLVER, abs=SOLVER)
    progress = 1 - (1 - shares) * gains
    assert np.max(progress) / np.min(progress) <= limit * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_no_random_shares_beat_the_optima(seed: int) -> None:
    """Brute force that shares nothing with the derivation: thousands of random shares that use the cores up."""
    mix = random_mix(seed)
    rng = np.random.default_rng(seed)
    speedups = np.array(mix.speedups)
    fairest, limited = predict(mix, "opt-unfairness"), predict(mix, "opt-asp-ref")
    limit = predict(mix, "prop-sp").unfairness
    for center in (fairest.fast_shares, limited.fast_shares):
        for width in (1.0, 0.1, 0.01):
            shares = np.clip(center + width * rng.normal(size=(2000, len(speedups))), 0, 1)
            # Scaled towards the right sum: down to 0 if there is too much, up to 1 if too little.
            total, full = shares.sum(axis=1, keepdims=True), len(speedups)
            too_much = total > mix.fast_time
            down = mix.fast_time / np.where(too_much, total, 1.0)
            up = (full - mix.fast_time) / np.where(too_much | (total == full), np.inf, full - total)
            shares = np.where(too_much, shares * down, 1 - (1 - shares) * up)
            assert np.allclose(shares.sum(axis=1), mix.fast_time)
            slowdown = speedups / (1 + shares * (speedups - 1))
            unfairness = slowdown.max(axis=1) / slowdown.min(axis=1)
            assert unfairness.min() >= fairest.unfairness * (1 - 1e-9)
            asp = (shares * (speedups - 1)).sum(axis=1)
            assert asp[unfairness <= limit].max(initial=0.0) <= limited.asp * (1 + 1e-9) + 1e-9


def test_the_limit_trades_throughput_for_fairness() -> None:
    """From Opt-Unfairness to HSP, ASP grows with the limit."""
    mix = table_1("W8")
    limits = np.linspace(1.0, predict(mix, "hsp").unfairness, 50)
    gained = [float(np.sum(most_asp(mix, limit) * (np.array(mix.speedups) - 1))) for limit in limits]
    assert gained[0] == pytest.approx(predict(mix, "opt-unfairness").asp)
    assert gained[-1] == pytest.approx(predict(mix, "hsp").asp)
    assert np.all(np.diff(gained) >= -1e-12)


def test_most_asp_refuses_what_is_out_of_reach() -> None:
    with pytest.raises(InputError, match=r"unfairness_max = 1.03 is below 1.03648, the least"):
        most_asp(table_1("W9"), 1.03)
    with pytest.raises(InputError, match="unfairness_max = nan"):
        most_asp(table_1("W9"), float("nan"))


def test_static_weights_are_priorities() -> None:
    """Weights (2, 1, 1, 1) x (1.5, 1.1, 0.6, 0.2): 3 of 4.9 of two cores would be 1.22, so 1; the rest is shared."""
    ours = predict(Mix("m", (2.5, 2.1, 1.6, 1.2), weights=(2, 1, 1, 1)), "prop-sp")
    assert ours.fast_shares == pytest.approx((1.0, 1.1 / 1.9, 0.6 / 1.9, 0.2 / 1.9))
    scaled = predict(Mix("m", (2.5, 2.1, 1.6, 1.2), weights=(200, 100, 100, 100)), "prop-sp")
    assert scaled.fast_shares == pytest.approx(ours.fast_shares)


def test_the_cap_may_reach_several_programs() -> None:
    """8 : 4 : 1 : 1 of three cores: 1.71, so 1; then 4 of 6 of two cores 1.33, so 1; the rest is shared."""
    ours = predict(Mix("m", (9.0, 5.0, 2.0, 2.0), fast=3, slow=1), "prop-sp")
    assert ours.fast_shares == pytest.approx((1.0, 1.0, 0.5, 0.5))


def test_programs_without_gain() -> None:
    """To them all cores are alike: Prop-SP gives them what is left, the fairest shares let them wait for nothing."""
    one = predict(Mix("m", (3.0, 1.0, 1.0, 1.0)), "prop-sp")
    assert one.fast_shares == pytest.approx((1.0, 1 / 3, 1 / 3, 1 / 3))
    assert predict(Mix("m", (1.0, 1.0, 1.0, 1.0)), "prop-sp").fast_shares == (0.5,) * 4
    fair = predict(Mix("m", (3.0, 1.0, 2.0, 2.0)), "opt-unfairness")
    # One of two slow cores for the second program, the other for the rest, by 1/g = 3/2, 2, 2.
    assert fair.fast_shares == pytest.approx((1 - 3 / 11, 0.0, 1 - 4 / 11, 1 - 4 / 11))
    assert predict(Mix("m", (3.0, 1.0, 1.0, 1.0)), "opt-unfairness").unfairness == 1.0


def test_fewer_programs_than_cores() -> None:
    mix = Mix("m", (3.0, 2.0, 1.5), fast=2, slow=10)
    assert predict(mix, "rr").fast_shares == pytest.approx((2 / 3,) * 3)
    for each in predict_all(Mix("m", (3.0, 1.5), fast=2, slow=2)):
        assert each.fast_shares == (1.0, 1.0)
        assert (each.asp, each.unfairness) == (2.5, 1.0)


def test_hsp_breaks_ties_by_order() -> None:
    assert predict(Mix("m", (2.0, 3.0, 3.0, 3.0)), "hsp").fast_shares == (0.0, 1.0, 1.0, 0.0)


def test_prop_sp_can_be_beaten_in_both() -> None:
    """Beyond Table 1 the ordering of the paper's section 2 does not hold: with many more slow cores than fast ones,
    Opt-Unfairness leaves programs of small speed-up on them for good, Prop-SP does not."""
    rng = np.random.default_rng(1)
    mix = Mix("m", tuple(rng.uniform(1.2, 3.4, 256).tolist()), fast=64, slow=192)
    by_name = {each.policy: each for each in predict_all(mix)}
    assert by_name["opt-asp-ref"].asp > by_name["opt-unfairness"].asp > by_name["prop-sp"].asp
    assert by_name["opt-unfairness"].unfairness < by_name["prop-sp"].unfairness


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"speedups": ()}, "speedups: no program"),
        ({"speedups": (2.0, 0.0)}, "speedups[1] = 0 is not within 1 to 1000"),
        ({"speedups": (2.0, -1.0)}, "speedups[1] = -1 is not within 1 to 1000"),
        ({"speedups": (1.000001,)}, "speedups[0] = 1.000001 is too near to 1 to be told from it (use 1)"),
        ({"speedups": (float("nan"),)}, "speedups[0] = nan is not within"),
        ({"speedups": (float("inf"),)}, "speedups[0] = inf is not within"),
        ({"speedups": ("fast",)}, "speedups[0] = 'fast' is not a number"),
        ({"speedups": (2.0,), "weights": (0.0,)}, "weights[0] = 0 is not within 1e-06 to 1e+06"),
        ({"speedups": (2.0,), "weights": (1.0, 1.0)}, "weights: 2 values for 1 programs"),
        ({"speedups": (2.0,), "weights": ()}, "weights: 0 values for 1 programs"),
        ({"speedups": (2.0,), "fast": 0}, "fast = 0 is not within 1 to 1024"),
        ({"speedups": (2.0,), "fast": 1.5}, "fast = 1.5 is not a whole number"),
        ({"speedups": (2.0,), "slow": -1}, "slow = -1 is not within 0 to 1024"),
        ({"speedups": (2.0,) * 5}, "5 programs for 4 cores"),
    ],
)
def test_mixes_that_are_refused(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(InputError) as refused:
        Mix("m", **arguments)  # type: ignore[arg-type]
    assert text in str(refused.value)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r'unknown workload "W10" \(did you mean "W1"\?\)'):
        table_1("W10")
    with pytest.raises(InputError, match=r'unknown policy "prop_sp" \(did you mean "prop-sp"\?\)'):
        predict(table_1("W1"), "prop_sp")


def test_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(analytic).failed == 0
    assert doctest.testmod(analytic).attempted > 0
