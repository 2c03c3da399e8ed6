"""What the report's tables have in common: changes against the baseline in percent, the best ones bold."""

from collections.abc import Mapping

from ampsched.markdown import ALL_BUT_FIRST, table
from ampsched.report.words import listed
from ampsched_lab.best import rows
from ampsched_lab.best.choice import POLICY
from ampsched_lab.best.rows import HIGHER_IS_BETTER, NAMES, Changes

SHOWN = 14
"""Policies in a table of all."""
HEADS = tuple(f"{name} %" for name in NAMES.values())


def rank(found: Mapping[str, Changes], key: str) -> int:
    """The policy's place among all by a measure."""
    values: list[float] = [getattr(each, key) for each in found.values()]
    own: float = getattr(found[POLICY], key)
    return 1 + sum(value > own if key in HIGHER_IS_BETTER else value < own for value in values)


def places(found: Mapping[str, Changes]) -> str:
    """Its places by all measures."""
    return listed([f"{rank(found, key)} in {name}" for key, name in NAMES.items()])


def first(found: Mapping[str, Changes]) -> dict[str, Changes]:
    """The first by H_ANTT, and who is first in anything else."""
    names = sorted(found, key=lambda name: found[name].h_antt)
    best = {key: rows.best([*found.values()], key) for key in NAMES}
    winners = {name for name, each in found.items() for key in NAMES if getattr(each, key) == best[key]}
    kept = [name for place, name in enumerate(names) if place < SHOWN or name in winners | {"linux", "colab"}]
    return {name: found[name] for name in kept}


def ranking(found: Mapping[str, Changes]) -> str:
    """A table of policies."""
    best = {key: rows.best([*found.values()], key) for key in NAMES}

    def cell(each: Changes, key: str) -> str:
        value = getattr(each, key)
        shown = f"{100 * value:+.1f}"
        return f"**{shown}**" if value == best[key] else shown

    lines = [[name, *(cell(each, key) for key in NAMES)] for name, each in found.items()]
    return table(["policy", *HEADS], lines, ALL_BUT_FIRST)


def cells(each: Changes) -> list[str]:
    """The changes by all measures."""
    return [f"{100 * getattr(each, key):+.1f}" for key in NAMES]


def best_other(found: Mapping[str, Changes]) -> str:
    """Who of the others has the least H_ANTT, and its change."""
    name = min((each for each in found if each != POLICY), key=lambda each: found[each].h_antt)
    return f"{name} {100 * found[name].h_antt:+.1f}"
