"""What one types to run what was advised: here, or on the machine that was asked about."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ampsched._core import InputError
from ampsched.catalog import THIS

if TYPE_CHECKING:
    from ampsched.recording.advice import Advice
    from ampsched.recording.cores import Cores

HERE = "this computer"
"""What this computer is called in answers, if nobody has named a machine."""


def line(advice: Advice, where: str, command: list[str], *, is_chosen: bool) -> str:
    """The last line of an answer.

    Args:
        advice: The answer.
        where: What the machine is called.
        command: The command that was recorded; empty if a recording was given.
        is_chosen: Whether the command has a number of threads that is best, so that it is an answer by itself.
    """
    target = f"-- {shlex.join(command)}" if command else advice.target
    is_here = where == HERE or where.partition(":")[0] == THIS
    found = _found(advice, where, target, is_here=is_here) or (shlex.join(command) if is_chosen else "")
    if not found:
        from ampsched.recording.advice import BASELINE

        found = f"leave it as it is, under {BASELINE}"
    return f"{'here' if is_here else f'on {where}'}: {found}"


def _found(advice: Advice, where: str, target: str, *, is_here: bool) -> str:
    """The command; empty if everything may stay as it is."""
    from ampsched.recording.advice import BASELINE

    cores = advice.best_on_cores
    if cores is not None and cores.policy == BASELINE:
        return _on_cores(target, _numbers(cores.cores, where))
    if cores is not None and not (is_here and _is_refused(cores.policy)):
        # A live session gives threads to the cores that it may use itself.
        run = f"taskset --cpu-list {_numbers(cores.cores, where)} {_live(cores.policy, target)}"
        return run if is_here else f"{run} (if ampsched live doctor there allows it)"
    if not (advice.is_worth_it and advice.suggested):
        return ""
    if not is_here:
        return f"{_live(advice.suggested[0].policy, target)} (if ampsched live doctor there allows it)"
    best = advice.suggested[0].policy
    for choice in advice.suggested:
        if not _is_refused(choice.policy):
            run = _live(choice.policy, target)
            refused = f"{best} cannot run (see: ampsched live doctor), {choice.policy} can"
            return run if choice.policy == best else f"{refused} ({choice.change.mean:+.1%}): {run}"
    return f"{best} cannot run (see: ampsched live doctor); on virtual cores: ampsched vm run --policy {best} ..."


def _is_refused(policy: str) -> bool:
    """Whether no back end can run a policy on this computer."""
    from ampsched.live.program import refusal

    try:
        return bool(refusal(policy, []))
    except InputError:
        return True


def _live(policy: str, target: str) -> str:
    return f"ampsched live run --policy {policy} {target}"


def _numbers(cores: Cores, where: str) -> str:
    """The cores' numbers; parts of a machine are numbered anew, so of these nobody knows what Linux calls them."""
    is_part = ":" in where and where.partition(":")[0] != THIS
    return "CPUS" if is_part else cores.list


def _on_cores(target: str, cpus: str) -> str:
    """The target on some of the cores only."""
    if target.startswith("--pid"):
        return f"taskset --all-tasks --cpu-list --pid {cpus} PID"
    return f"taskset --cpu-list {cpus} {target.removeprefix('-- ')}"
