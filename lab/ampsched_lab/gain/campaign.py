"""The campaign behind the report: what is run, and what is kept of it."""

from collections.abc import Sequence
from typing import Any

from ampsched_lab.campaign.plan import Mix
from ampsched_lab.campaign.run import Group
from ampsched_lab.gain.machines import Workshop
from ampsched_lab.gain.mixes import MIXES

BLOCK = 5
"""Offsets per boot: all mixes are run for each. The kernel follows scx_lavd's programs for 15 s before it has them."""


def blocks(first: int, last: int) -> list[list[int]]:
    """Offsets that are run after the same boot."""
    return [list(range(begin, min(begin + BLOCK, last + 1))) for begin in range(first, last + 1, BLOCK)]


def alone(workshop: Workshop, machines: Sequence[str], architectures: Sequence[str]) -> list[Group]:
    """Each program alone on as many fast cores, under the kernel's own scheduler."""
    return [
        Group(workshop.guest(machine, architecture, alone=True), workshop.kernel(), alone_mixes())
        for machine in machines
        for architecture in architectures
    ]


def alone_mixes() -> tuple[Mix, ...]:
    """A mix of one program for each that differs."""
    mixes: dict[str, Mix] = {}
    for chosen in MIXES:
        for name, each in chosen.programs.items():
            program = each.run(name)
            key = " ".join(program.words)
            mixes.setdefault(key, Mix(f"{chosen.name}-{name}", each.what, (program,)))
    return tuple(mixes.values())


def alone_names() -> dict[tuple[str, str], str]:
    """By mix and program the name of the mix in which it runs alone."""
    by_words = {mix.programs[0].words: mix.name for mix in alone_mixes()}
    return {
        (chosen.name, name): by_words[each.run(name).words]
        for chosen in MIXES
        for name, each in chosen.programs.items()
    }


def mixed(
    workshop: Workshop, machines: Sequence[str], architectures: Sequence[str], schedulers: Sequence[str]
) -> list[Group]:
    """All mixes under each scheduler, the most interesting first."""
    mixes = tuple(chosen.mix() for chosen in MIXES)
    return [
        Group(workshop.guest(machine, architecture), scheduler, mixes)
        for name in schedulers
        for architecture in architectures
        for machine in machines
        for scheduler in workshop.schedulers(architecture)
        if scheduler.name == name
    ]


def kept(row: dict[str, Any]) -> dict[str, Any]:
    """What the report needs of a run: of what programs say themselves, how late they were."""
    return {**row, "programs": [_kept_program(program) for program in row["programs"]]}


def _kept_program(program: dict[str, Any]) -> dict[str, Any]:
    report = program.get("report") or {}
    own = {
        name: report[name] for name in ("sleeps", "missed", "late_p50_ns", "late_p99_ns") if name in report
    }
    return {name: value for name, value in program.items() if name != "report"} | own
