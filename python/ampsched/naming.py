"""Names that nothing has, and those that were perhaps meant: the one way in which all commands and functions say it."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

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


def in_number(count: int, word: str) -> str:
    """A word as it stands behind a number: ``thread`` behind 1, ``threads`` behind others."""
    return word if count == 1 else f"{word}s"


def told_apart(names: Sequence[str], given: Sequence[object]) -> list[str]:
    """The names; behind those that several files have, as much of each file's path as tells them apart.

    Args:
        names: Of what is in files, parameters included.
        given: The text that each comes from: a path, with parameters. Others than texts keep their names.
    """
    paths = [str(each).partition(":")[0] for each in given]
    heads = [name.partition(":")[0] for name in names]

    def told(number: int) -> str:
        mine = Path(paths[number])
        others = {
            Path(path)
            for head, path in zip(heads, paths, strict=True)
            if head == heads[number] and Path(path).resolve() != mine.resolve()
        }
        if not isinstance(given[number], str | Path) or not others or not mine.suffix:
            return names[number]
        tails = range(1, len(mine.parts) + 1)
        ending = next((n for n in tails if all(each.parts[-n:] != mine.parts[-n:] for each in others)), None)
        end = "/".join(mine.parts[-ending:]) if ending else str(mine)
        return f"{heads[number]} ({shown(end)}){names[number][len(heads[number]) :]}"

    return [told(number) for number in range(len(names))]
