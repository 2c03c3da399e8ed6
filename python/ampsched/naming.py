"""Names that nothing has, and those that were perhaps meant: the one way in which all commands and functions say it."""

from collections.abc import Collection, Iterable

from ampsched._core import InputError, suggest
from ampsched.files import shown

LISTED = {
    "policy": "policies",
    "governor": "governors",
    "task policy": "task-policies",
    "task program": "task-programs",
}
"""What ``ampsched list`` shows of registered things."""


def unknown(what: str, name: str, known: Iterable[str], otherwise: str = "") -> InputError:
    """The error about a name that nothing has.

    Args:
        what: What has no such name, such as ``policy``.
        name: The name.
        known: The names that there are. The nearest one is told, if it is near.
        otherwise: What to do if none is near; where it is absent, all names are told, or the command that lists them.
    """
    name = shown(name)
    hint = suggest(name, list(known))
    if not otherwise and what in LISTED:
        otherwise = f"see: ampsched list {LISTED[what]}"
    if otherwise and not hint.startswith("did you mean"):
        hint = otherwise
    return InputError(f'unknown {what} "{name}" ({hint})')


def check_known(what: str, name: str, known: Collection[str]) -> None:
    """Refuses a name that nothing has.

    Raises:
        InputError: As `unknown` says it.
    """
    if name not in known:
        raise unknown(what, name, known)
