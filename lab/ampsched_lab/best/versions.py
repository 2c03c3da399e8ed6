"""Sections on what the second version has beyond the first, and both side by side."""

from collections.abc import Sequence
from statistics import fmean, geometric_mean

from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched_lab.best.choice import POLICY
from ampsched_lab.best.graphs import ALONE, BESIDE, COUNT
from ampsched_lab.best.measured import Measured
from ampsched_lab.best.rows import BASELINE, Changes, Row, baseline, by_policy, change, changes
from ampsched_lab.best.runs import BOARD, PRICES, known_lengths
from ampsched_lab.best.tables import HEADS, cells
from ampsched_lab.best.variants import ablations, with_energy, with_fairness, with_lengths

SETS = {
    "colab": "COLAB's mixes",
    "test": "test mixes of the first version",
    "fresh": "fresh mixes",
    "sleepers": "mixes with sleepers",
    "machines": "other machines",
    "predicted": "COLAB's, predicted",
    "busy noise": "COLAB's, busy noise",
}


def known(found: Measured) -> Changes:
    """On COLAB's mixes, if lengths are known."""
    return found.section("ablations, colab")[with_lengths()]


def lengths(found: Measured) -> list[str]:
    """What knowing lengths is worth."""
    lines = []
    for name, where in (("ablations, colab", "COLAB's"), ("ablations, fresh", "random")):
        own = found.section(name)
        for fairness, policy in known_lengths().items():
            for label, each in (("unknown", with_fairness(fairness)), ("known", policy)):
                lines.append([where, str(fairness), label, *cells(own[each])])
    return [
        "## If lengths are known",
        "With `lengths=1` it knows how much work each program needs, measured beforehand with the same input: what a user has who "
        "runs the same job every day. No other policy here is told that, so this is not part of the tables above. What wrong lengths "
        "cost was not tried.",
        table(["mixes", "fairness", "lengths", *HEADS], lines, slice(1, None)),
    ]


def graphs(found: Measured) -> list[str]:
    """What it is worth that a runtime tells paths."""
    of = found.of("graphs")
    own = {how: changes([row for row in of if row.workload.endswith(how)]) for how in (ALONE, BESIDE)}
    lines = [
        [
            f"`{policy}`",
            *(f"{100 * each[policy].h_antt:+.1f}" for each in own.values()),
            *cells(own[BESIDE][policy])[1:],
        ]
        for policy in own[ALONE]
    ]
    told, untold = (own[ALONE][policy].h_antt for policy in (with_lengths(), POLICY))
    return [
        "## If a runtime tells paths",
        f"{COUNT} random graphs of tasks, executed by four or eight workers of a program, alone and beside a program of the random mixes. "
        "With `lengths=1` the policy hears the bottom level of the task that each worker executes, and beside others the length of "
        f"programs, too. Alone, where only paths count, the time changes by {100 * ((1 + told) / (1 + untold) - 1):+.1f} %.",
        table(
            ["policy", "time alone %", "H_ANTT beside %", *(f"{head[:-2]} beside %" for head in HEADS[1:])],
            lines,
            ALL_BUT_FIRST,
        ),
    ]


def mean_late_ms(found: Measured) -> dict[str, float]:
    """How late sleepers wake up, by policy."""
    return {policy: _late_ms(own) for policy, own in by_policy(found.of("sleepers")).items()}


def _late_ms(own: Sequence[Row]) -> float:
    return fmean(row.late_ms or 0 for row in own)


def sleepers(found: Measured, before: Measured) -> list[str]:
    """How late sleepers wake up."""
    of, earlier = found.of("sleepers"), before.of("sleepers")
    base = baseline(of)
    left_out = {policy: f"without {name}" for name, policy in ablations().items()}
    by = {left_out.get(policy, policy): own for policy, own in by_policy(of).items()}
    by["the first version"] = [row for row in earlier if row.policy == POLICY]
    lines = [
        [
            name,
            f"{_late_ms(own):.2f}",
            f"{max(row.late_ms or 0 for row in own):.1f}",
            f"{100 * change(own, base, 'h_antt'):+.1f}",
            f"{100 * change(own, base, 'unfairness'):+.1f}",
        ]
        for name, own in sorted(by.items(), key=lambda item: _late_ms(item[1]))
    ]
    return [
        "## Sleepers",
        "Random mixes in which one program has threads that compute for a twentieth to a fifth of every period. How late they "
        "wake up, 99th percentile of a run: mean over the runs, and the worst.",
        table(["policy", "late, ms", "worst, ms", "H_ANTT %", "unfairness %"], lines, ALL_BUT_FIRST),
    ]


def energy(found: Measured) -> list[str]:
    """What a price of energy changes on random mixes."""
    of = found.of("energy")
    base, by = baseline(of), by_policy(of)
    prices = ", ".join(f"{price:g}" for price in PRICES)
    lines = [
        [
            f"`{name}`",
            f"{100 * change(own, base, 'edp'):+.1f}",
            f"{100 * _energy_change(own, base):+.1f}",
            f"{100 * change(own, base, 'makespan'):+.1f}",
            f"{100 * change(own, base, 'h_antt'):+.1f}",
            f"{100 * change(own, base, 'unfairness'):+.1f}",
        ]
        for name, own in by.items()
        if name != BASELINE
    ]
    plain, priced = (change(by[name], base, "edp") for name in (POLICY, with_energy(1)))
    return [
        "## A price of energy",
        f"The random mixes on {BOARD}, all clocks at their highest unless the policy limits them, against {BASELINE}; prices "
        f"{prices}. With the price of energy x delay that changes by {100 * priced:+.1f} %, at full speed by {100 * plain:+.1f} %.",
        table(
            ["policy", "energy x delay %", "energy %", "delay %", "H_ANTT %", "unfairness %"],
            lines,
            ALL_BUT_FIRST,
        ),
    ]


def _energy_change(own: list[Row], base: dict[tuple[str, str], Row]) -> float:
    def energy(row: Row) -> float:
        return (row.edp or 0) / row.makespan

    return geometric_mean(energy(row) / energy(base[row.machine, row.workload]) for row in own) - 1


def both(found: Measured, before: Measured) -> list[str]:
    """Both versions on every set that they ran."""
    lines = []
    for name, where in SETS.items():
        for version, measured in (("first", before), ("now", found)):
            lines.append([where, version, *cells(measured.section(name)[POLICY])])
    return [
        "## Two versions",
        "The first version also shared time on slow cores by claims (`weights`), had CFS's periods as they are, sent all who had "
        "no fast core to slow ones, and knew neither lengths nor energy. Weights earned little and made sleepers late, so the "
        "second has none, which costs some tenths of a point; short periods and roaming were chosen on training mixes with "
        "sleepers. It was made when the results of the first were known, those of the kernel's and the papers' mixes, too; the "
        "fresh mixes and the sleepers' were run by no version before. The rule that chose `fairness` was applied again.",
        table(["mixes", "version", *HEADS], lines, slice(2, None)),
    ]
