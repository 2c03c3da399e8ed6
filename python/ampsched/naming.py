"""Names that nothing has, and those that were perhaps meant."""

from collections.abc import Collection

from ampsched._core import InputError, suggest
from ampsched.files import shown


def unknown(what: str, name: str, known: Collection[str], otherwise: str = "") -> InputError:
    """The error about a name that nothing has.

    Args:
        what: What has no such name, such as ``policy``.
        name: The name.
        known: The names that there are. The nearest one is told, if it is near.
        otherwise: What to do if none is near; all names are told without it.
    """
    name = shown(name)
    hint = suggest(name, list(known))
    if otherwise and not hint.startswith("did you mean"):
        hint = otherwise
    return InputError(f'unknown {what} "{name}" ({hint})')
