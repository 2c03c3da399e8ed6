"""Digests of all code that determines a result, so that an edit computes anew what it may touch."""

import ast
import functools
import inspect
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from ampsched import _core
from ampsched._core import InputError
from ampsched.comparison import run_row
from ampsched.files import read_text
from ampsched.policy import Policy, PolicySpec
from ampsched.sweeps.digests import sha

_ROWS = (
    "execution.py",
    "metrics.py",
    "results.py",
    "outcome_parts.py",
    "policy.py",
    "timeliness.py",
    "sweeps/work.py",
)
"""Modules of this package that make a row of an outcome."""


@functools.cache
def engine() -> str:
    """Digest of the code that every simulation runs, and of what makes a row of it."""
    package = files("ampsched")
    rows = [package.joinpath(name).read_text(encoding="utf-8") for name in _ROWS]
    return sha(_core.CODE_DIGEST, inspect.getsource(run_row), *rows)


def of_policy(given: str | type[Policy], spec: PolicySpec) -> str:
    """Digest of a Python policy's own code: its file, what that imports of its folder, and its base.

    Empty for a shipped policy, whose code belongs to the engine's.

    Raises:
        InputError: If the source of a class can't be found.
    """
    if spec.make is None:
        return ""
    sources = list(_sources_of(given))
    base = [f"{name}={value:g}" for name, value in spec.params]
    return sha(spec.name, *base, *sources)


def _sources_of(given: str | type[Policy]) -> Iterator[str]:
    if isinstance(given, str):
        yield from _with_imports(Path(given.strip().partition(":")[0]))
        return
    for each in given.__mro__:
        if issubclass(each, Policy) and each is not Policy:
            try:
                yield inspect.getsource(inspect.getmodule(each) or each)
            except (OSError, TypeError):
                raise InputError(
                    f"policy {each.__name__}: its source can't be read, so that its results could not be told "
                    "from those of another version; put it into a file"
                ) from None


_imported_texts: dict[Path, str] = {}
"""What this process may have imported: Python reads a module once."""


def _with_imports(file: Path) -> Iterator[str]:
    """The text of a file, and of those beside it that it imports, directly or not."""
    folder, open_, seen = file.parent, [file], {file}
    while open_:
        path = open_.pop()
        text = read_text(path)
        if path != file and _imported_texts.setdefault(path.resolve(), text) != text:
            raise InputError(
                f"{path}: has changed since this process has imported it for {file.name}; start a new process"
            )
        yield text
        for name in _imported(text):
            place = folder.joinpath(*name.split("."))
            for path in sorted([place.with_suffix(".py"), *place.glob("*.py")]):
                if path.is_file() and path not in seen:
                    seen.add(path)
                    open_.append(path)


def _imported(text: str) -> list[str]:
    """Names of modules that a source imports; none if it is no Python, which whoever executes it reports."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found |= {module, *(f"{module}.{alias.name}".strip(".") for alias in node.names)} - {""}
    return sorted(found)
