"""The report: a page of what was measured.

``python -m ampsched_lab.best FOLDER`` writes ``report.md``, its figures and what they are made of.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from ampsched.markdown import ALL_BUT_FIRST, page, table
from ampsched.report.words import listed, percent
from ampsched_lab.best import choice, frontier, losses, papers, runs, versions
from ampsched_lab.best.aims import Judged
from ampsched_lab.best.choice import CANDIDATES, POLICY, candidate
from ampsched_lab.best.measured import LOSING, Measured, read, read_first
from ampsched_lab.best.mixes import COUNT, LATEST_MS
from ampsched_lab.best.rows import NAMES, Changes, Row, changes
from ampsched_lab.best.runs import PEERS
from ampsched_lab.best.tables import HEADS, best_other, cells, first, places, rank, ranking
from ampsched_lab.best.variants import ablations, with_fairness
from ampsched_lab.optimum import report as optimum
from ampsched_lab.papers.colab.setup import CORES, threads_of
from ampsched_lab.shared.summary import opening

FIGURE = "frontier.svg"
AIMS = Changes(h_antt=-0.29, h_stp=0.26, makespan=-0.36, unfairness=-0.34)
"""What was aimed at on COLAB's mixes, before the policy existed."""
KEPT_AIM, DISTANCE_AIM = 0.9, 0.08
WORST = 8
CROWDS = {"at most one per core": 1.0, "up to three per core": 3.0, "more": math.inf}
"""Groups of mixes by threads per core."""
SETS = {"colab": "COLAB", "fresh": "random"}


def write_page(folder: Path) -> None:
    """The page and its figure, from what was measured before."""
    found = read(folder)
    frontier.draw(folder / FIGURE, found.section("colab"), found.section("ablations, colab"))
    (folder / "report.md").write_text(text(found, read_first(folder, found)), "utf-8")


def text(found: Measured, before: Measured) -> str:
    """The report in Markdown."""
    return page(
        "# Programs abreast: one policy for turnaround, throughput and fairness",
        answer(found),
        *_idea(),
        *_choice(found),
        *_colab(found),
        *_threads(found),
        *_fresh(found),
        *versions.lengths(found),
        *versions.graphs(found),
        *_machines(found),
        *_knowledge(found),
        *versions.sleepers(found, before),
        *_ingredients(found),
        *versions.energy(found),
        *papers.sections(found.papers),
        *_optimum(found),
        *_losses(found),
        *versions.both(found, before),
        *_aims(found, before),
        "## Again",
        "`python -m ampsched_lab.best docs/reports/best` measures all of this and writes this page, with the "
        "same figures. The mixes' rule is in `ampsched_lab.best.mixes`, the policy in "
        "`crates/policy/src/policies/abreast.rs`. Each version was committed before it was run on any test set, and not "
        "changed after. What was measured of the first is kept in `first`; `--version FOLDER` measures the policy of a build "
        "in the same way.",
    )


def answer(found: Measured) -> str:
    """The report's first sentences and figure."""
    colab, fresh = found.section("colab"), found.section("fresh")
    own = colab[POLICY]
    firsts = [NAMES[key] for key in NAMES if rank(colab, key) == 1]
    aims = judged(found)
    return opening(
        [
            f"**On COLAB's 26 mixes and four machines abreast changes, against cfs, H_ANTT by {percent(own.h_antt)}, H_STP "
            f"by {percent(own.h_stp)}, makespan by {percent(own.makespan)} and unfairness by "
            f"{percent(own.unfairness)}, and of {len(colab)} policies it is first in {listed(firsts) or 'none'}.**",
            f"Its place is {places(colab)}; on {COUNT['fresh']} fresh random mixes it is {places(fresh)}; if it knows how "
            f"long programs are, H_ANTT on COLAB's changes by {percent(versions.known(found).h_antt)}.",
            f"Of {len(aims)} aims that were set before the policy existed, {sum(aim.met for aim in aims)} are met.",
        ],
        FIGURE,
        "Mean turnaround and unfairness against cfs: abreast for each value of its parameter, and others",
    )


def _idea() -> list[str]:
    return [
        "## Idea",
        "A policy for unequal cores has to share out two things, fast cores and time, among threads. Users have "
        "programs. We therefore ask of each program how far it is behind, compared with itself alone on fast cores, and of "
        "each thread how much of its program hangs on it.",
        "*How far behind*: a program that could have used d cores (its runnable threads, 1 to all cores) and did w "
        "ns of work, in time on a fast core, would have needed w / d alone. Its slowdown S is the time in which it could "
        "run over the sum of these.",
        "*How much hangs on a thread*: while d threads of a program can run, each does 1 / d of it. If three wait for "
        "the fourth, all of it. No blame, no labels and no graph of who waits for whom are needed: who waits is not runnable.",
        "*The claim*: S^f / d. Fast cores go to the greatest claim x (1 - 1 / speed-up), which is the gain in the program's "
        "progress. The power f sets how much fairness counts: with 0 "
        "it is throughput alone. Programs that began together are behind as 1 / (what they have done), and for lengths of "
        "which nothing is known (equally many between 1 and 2 s as between 2 and 4 s), Gittins' index of mean relative "
        "turnaround is 1 / (what they have done)^2: f = 2. A greater f is fairer.",
        "*Known lengths*: where a program's length L was measured beforehand, the index is 1 / (L x what is left); where a runtime "
        "tells how long the chain is that begins with a thread's task, the thread's claim is in proportion to it.",
        "*Energy*: with a price e, clocks are those with the least (e P / p + 1) / v, P being the power of the busy cores, v "
        "their speed and p the mean power so far; that makes energy^e x time least.",
        "*The rest* are rules that a kernel carries out by itself: CFS within each kind of core, with short periods; who has no "
        "fast core and sleeps now and then wakes up anywhere; a fast core that idles takes a running thread from a slow one. The [policy's "
        "page](../../reference/policies/abreast.md) has all rules and constants.",
    ]


def _choice(found: Measured) -> list[str]:
    value = choice.chosen(found.choice)
    best = [name for name in found.choice if not name.startswith(POLICY)]
    least = sorted(best, key=lambda name: found.choice[name].unfairness)[:3]
    fast = sorted(best, key=lambda name: found.choice[name].h_antt)[:3]
    names = [*map(candidate, CANDIDATES), *dict.fromkeys([*fast, *least])]
    return [
        "## How its parameter was chosen",
        f"On {COUNT['train']} random training mixes of shipped programs on four machines; in every second one "
        f"programs arrive within {LATEST_MS / 1000:g} s; a sweep of all policies. The rule: the least whole number with "
        f"which programs are slowed down as evenly as by any other shipped policy. That is {value}. The other constants are "
        "round numbers to which results hardly react.",
        ranking({name: found.choice[name] for name in names}),
    ]


def _colab(found: Measured) -> list[str]:
    return [
        "## COLAB's mixes",
        "26 mixes on four machines, both core orders, true speed-ups; geometric means of changes against cfs.",
        ranking(first(found.section("colab"))),
    ]


def _threads(found: Measured) -> list[str]:
    groups: dict[str, list[Row]] = {name: [] for name in CROWDS}
    for row in found.of("colab"):
        crowd = threads_of(row.workload) / CORES[row.machine]
        groups[next(name for name, most in CROWDS.items() if crowd <= most)].append(row)
    lines = [
        [name, str(len({(row.machine, row.workload) for row in of})), *cells(own[POLICY]), best_other(own)]
        for name, of in groups.items()
        for own in [changes(of)]
    ]
    return [
        "**The same mixes by the number of their threads**",
        table(["threads", "mixes", *HEADS, "H_ANTT, best other"], lines, ALL_BUT_FIRST),
    ]


def _fresh(found: Measured) -> list[str]:
    return [
        "## Random mixes",
        f"{COUNT['fresh']} mixes of the same rule as the training mixes but other seeds, on the same machines; no version was run "
        "on them before.",
        ranking(first(found.section("fresh"))),
    ]


def _machines(found: Measured) -> list[str]:
    measured = found.of("machines")
    machines = list(dict.fromkeys(row.machine for row in measured))
    heads = ["machine", *HEADS, "H_ANTT, best other"]
    lines = []
    for machine in machines:
        own = changes([row for row in measured if row.machine == machine])
        lines.append([machine, *cells(own[POLICY]), best_other(own)])
    return [
        "## Other machines",
        f"{runs.FEW} of the random mixes on machines from one core of each kind to 24 cores, against cfs; beside "
        f"{listed([*PEERS])}. On machines of three kinds of core all but the slowest count as fast.",
        table(heads, lines, ALL_BUT_FIRST),
    ]


def _knowledge(found: Measured) -> list[str]:
    oracle = found.section("colab")[POLICY]
    names = ("predicted", "unknown", "idle noise", "busy noise", "predicted, busy noise")
    lines = [["true speed-ups, no noise", *cells(oracle), ""]]
    for name in names:
        own = found.section(name)
        lines.append([name, *cells(own[POLICY]), best_other(own)])
    return [
        "## Predicted speed-ups, none, and noise",
        "COLAB's mixes again: speed-ups predicted by the shipped models from simulated counters, no speed-ups at all, and "
        "what the system does beside (an idle and a busy desktop).",
        table(["", *HEADS, "H_ANTT, best other"], lines, ALL_BUT_FIRST),
    ]


def _ingredients(found: Measured) -> list[str]:
    parts = {
        "demand": "each thread counts by 1 / d",
        "gain": "fast cores by 1 - 1 / speed-up",
        "turns": "threads of a program take turns",
        "roaming": "who has no fast core and sleeps wakes up anywhere",
        "periods": "periods of CFS as on one core",
        "pull": "an idle fast core takes a running thread",
    }
    sets = {name: found.section(f"ablations, {name}") for name in SETS}
    lines = [["nothing", *(cell for own in sets.values() for cell in cells(own[POLICY]))]]
    for key, policy in ablations().items():
        lines.append([parts[key], *(cell for own in sets.values() for cell in cells(own[policy]))])
    values = [
        [str(value), *(cell for own in sets.values() for cell in cells(own[with_fairness(value)]))]
        for value in CANDIDATES
    ]
    heads = [f"{NAMES[key]} %, {where}" for where in SETS.values() for key in NAMES]
    return [
        "## What each ingredient earns",
        "Left out one at a time; COLAB's mixes and the random ones.",
        table(["left out", *heads], lines, ALL_BUT_FIRST),
        f"Speed-ups in the claim earn {_earned(sets['colab'], 'gain')} points of H_ANTT on COLAB's mixes and "
        f"{_earned(sets['fresh'], 'gain')} on the random ones: with as many threads as here, who is behind says more than "
        "who gains. They count where programs are few and differ (Prop-SP's mixes, below). Roaming is for sleepers. On the mixes with "
        f"sleepers above it takes {_late_without(found, 'roaming')}, short periods take {_late_without(found, 'periods')} off "
        "their lateness; roaming counts where sleepers are many and cores few ([live](../live/report.md#abreast), `deadlines`).",
        "And with other values of `fairness`:",
        table(["fairness", *heads], values, ALL_BUT_FIRST),
    ]


def _earned(found: Mapping[str, Changes], ingredient: str) -> str:
    return f"{100 * (found[ablations()[ingredient]].h_antt - found[POLICY].h_antt):.1f}"


def _late_without(found: Measured, ingredient: str) -> str:
    late = versions.mean_late_ms(found)
    return f"{100 * (1 - late[POLICY] / late[ablations()[ingredient]]):.0f} %"


def _optimum(found: Measured) -> list[str]:
    antt = [row for row in found.optimum if row.objective == "h_antt"]
    proven = [row for row in antt if row.proven]
    lines = [
        [policy, f"{100 * mean:.1f}", f"{100 * fmean(row.distance(policy) for row in proven):.1f}"]
        for policy, mean in optimum.means(antt)
    ]
    return [
        "## How far from what any policy could do",
        f"Of [{len(antt)} small cases](../optimum/report.md) the best schedule is known, of {len(proven)} by proof. Mean "
        "distance of H_ANTT from it:",
        table(["policy", "all cases %", "proven %"], lines, ALL_BUT_FIRST),
        "The best schedule knows all lengths and runs short programs first. Only abreast with `lengths=1` knows them here; "
        "for the others, part of the distance is the price of not knowing.",
    ]


def _losses(found: Measured) -> list[str]:
    everything = losses.losses([row for name in LOSING for row in found.of(name)])
    lines = [
        [
            f"{each.workload} on {each.machine}",
            each.other,
            f"{100 * each.loss:.1f}",
            f"{each.unfairness:.2f}",
            f"{each.other_unfairness:.2f}",
        ]
        for each in everything[:WORST]
    ]
    worst = everything[: len(found.orders)]
    fairer = sum(each.unfairness < each.other_unfairness for each in worst)
    why = sum(each.is_why for each in found.orders)
    return [
        "## Where it loses",
        f"Against the best of all other policies *for each mix*, chosen when the result is known, its H_ANTT is "
        f"{100 * fmean(each.loss for each in everything):.1f} % higher on average. Where it loses most:",
        table(
            [
                "mix",
                "best policy",
                "H_ANTT of abreast is higher by %",
                "unfairness of abreast",
                "of that policy",
            ],
            lines,
            slice(2, None),
        ),
        f"In the quarter of mixes in which it loses most ({len(worst)}), it is the fairer one in {fairer}. Is it that the "
        "winner runs the shortest program first, which it cannot know to be the shortest? Tested program by program: in "
        f"{why} of {len(worst)} the winner slows the shortest program down less and the longest more than abreast does.",
    ]


def on_colab(own: Changes) -> list[Judged]:
    """The aims on COLAB's mixes."""
    return [
        Judged(
            f"COLAB's mixes, {name}: {percent(aim)}",
            percent(value),
            value <= aim if aim < 0 else value >= aim,
        )
        for key, name in NAMES.items()
        for value, aim in [(getattr(own, key), getattr(AIMS, key))]
    ]


def judged(found: Measured) -> list[Judged]:
    """The aims and their outcomes."""
    own = found.section("colab")[POLICY]
    result = on_colab(own)
    for name in ("predicted", "idle noise", "busy noise"):
        kept = _kept(own, found.section(name)[POLICY])
        least = min(kept.values())
        outcome = ", ".join(f"{NAMES[key]} {100 * value:.0f} %" for key, value in kept.items())
        result.append(Judged(f"At least 90 % of each with {name}", outcome, least >= KEPT_AIM))
    antt = [row for row in found.optimum if row.objective == "h_antt"]
    distance = dict(optimum.means(antt))[POLICY]
    result.append(
        Judged(
            "Small cases: at most 8 % above the best schedule",
            f"{100 * distance:.1f} %",
            distance <= DISTANCE_AIM,
        )
    )
    return result + papers.judged(found.papers)


def _aims(found: Measured, before: Measured) -> list[str]:
    known = on_colab(versions.known(found))
    told = [_outcome(each) for each in known]
    now, earlier = judged(found), judged(before)
    told += [""] * (len(now) - len(told))
    lines = [
        [each.aim, _outcome(first), _outcome(each), if_told]
        for each, first, if_told in zip(now, earlier, told, strict=True)
    ]
    met = sum(each.met for each in known)
    return [
        "## Aims",
        f"Set before the policy existed; **bold** where they are met. If it knows the lengths of programs, it meets {met} of the first "
        f"{len(known)} at once. No policy here that does not know them meets all: throughput alone ({candidate(0)}) has H_STP "
        f"{percent(found.section('ablations, colab')[candidate(0)].h_stp)}, and the power that meets the aim of unfairness has "
        "less. What the kernel makes of it is in [the report on live runs](../live/report.md).",
        table(["aim", "first version", "now", "if it knows lengths"], lines),
    ]


def _outcome(each: Judged) -> str:
    return f"**{each.outcome}**" if each.met else each.outcome


def _kept(whole: Changes, part: Changes) -> dict[str, float]:
    return {key: getattr(part, key) / getattr(whole, key) for key in NAMES}
