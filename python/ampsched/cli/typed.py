"""What one types to run what was advised: here, or on the machine that was asked about."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ampsched._core import InputError
from ampsched.catalog import is_this
from ampsched.keeping import clocks

if TYPE_CHECKING:
    from ampsched.recording.answer import Advice
    from ampsched.recording.search import Tried
    from ampsched.recording.setting import Setting

HERE = "this computer"
"""What this computer is called in answers, if nobody has named a machine."""


def line(advice: Advice, where: str, command: Sequence[str]) -> str:
    """The last line of an answer.

    Args:
        advice: The answer.
        where: What the machine is called.
        command: The command that was recorded; empty if a recording was given.
    """
    words = command or advice.target
    if is_here(where):
        return f"here: {_here(advice, where, words)}"
    found = advice.choices_of_settings
    return f"on {where}: {_there(found[0].setting, where, words) if found else _usual(advice, words)}"


def is_here(where: str) -> bool:
    """Whether a machine's name means this computer."""
    return where == HERE or is_this(where)


def runnable(advice: Advice) -> Tried | None:
    """The first of the settings that are worth it that can run on this computer; none if there is none."""
    found = (each for each in advice.choices_of_settings if not _is_refused(each.setting))
    return next(found, None)


def _here(advice: Advice, where: str, words: Sequence[str]) -> str:
    """What to type on this computer, and why it is not the best if it is not."""
    found = advice.choices_of_settings
    if not found:
        return _usual(advice, words)
    best, can = found[0], runnable(advice)
    policy = best.setting.policy
    refused = f"{policy} cannot run (see: ampsched live doctor)"
    if can is None:
        return f"{refused}; on virtual cores: ampsched vm run --policy {policy} ..."
    run = _typed(can.setting, where, words)
    return run if can == best else f"{refused}, {can.setting.name} can ({can.change.mean:+.1%}): {run}"


def _there(setting: Setting, where: str, words: Sequence[str]) -> str:
    from ampsched.recording.answer import BASELINE

    run = _typed(setting, where, words)
    return run if setting.policy == BASELINE else f"{run} (if ampsched live doctor there allows it)"


def _usual(advice: Advice, words: Sequence[str]) -> str:
    """That everything may stay as it is; with a number of threads, the command for it."""
    from ampsched.recording.answer import BASELINE

    if advice.usual.threads is None:
        return f"leave it as it is, under {BASELINE}"
    return shlex.join(advice.usual.argv(words))


def _typed(setting: Setting, where: str, words: Sequence[str]) -> str:
    # Parts of a machine are numbered anew, so of these nobody knows what Linux calls them.
    is_part = ":" in where and not is_this(where)
    run = shlex.join(setting.argv(words, "CPUS" if is_part else None))
    if not setting.governor:
        return run
    told = clocks.condition(is_here=is_here(where))
    return f"{clocks.command(setting.governor)}{f' && {run}' if run else ''} ({told})"


def _is_refused(setting: Setting) -> bool:
    """Whether no back end can run a setting's policy on this computer."""
    from ampsched.live.program import refusal
    from ampsched.recording.answer import BASELINE

    if setting.policy == BASELINE:
        return False
    # A live session gives threads to the cores that it may use itself, whatever `taskset` says of its program.
    try:
        return bool(refusal(setting.policy, []))
    except InputError:
        return True
