"""Pages of results that were saved: what commands print with ``--json``, and folders of ``ampsched reproduce``."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ampsched import laboratory
from ampsched._core import DATA_BYTES_MAX, InputError
from ampsched.files import read_text
from ampsched.report import advising, comparing, living, single, sweeping, tasks
from ampsched.report.asked import Asked
from ampsched.report.page import Page

FORMS: tuple[tuple[str, frozenset[str], Callable[[Any, Asked], Page]], ...] = (
    ("compare", frozenset({"policies", "summary", "runs", "notes", "caveats"}), comparing.page),
    ("sweep", frozenset({"baseline", "simulated", "told", "summary", "simulations"}), sweeping.page),
    ("live compare", frozenset({"mix", "alone_s", "alone_cpus", "summary", "runs", "notes"}), living.page),
    ("advise", frozenset({"program", "baseline", "choices", "is_worth_it", "equals"}), advising.page),
    ("simulate", frozenset({"makespan_ns", "apps", "threads", "cores", "clusters", "policy"}), single.page),
)
"""Of each command: its name, the keys by which its JSON is known, and who makes its page."""
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, StopIteration)
"""What values that are missing or of a wrong kind lead to."""
TASKS = frozenset({"policy", "makespan_s", "lower_bound_s", "utilisation"})


def page(path: Path) -> Page:
    """The page of a saved result.

    Raises:
        InputError: If it cannot be read, or is no result of a command.
    """
    if path.is_dir():
        page_of_folder: Callable[[Path, Asked], Page] = laboratory.module("shared.html").page
        return page_of_folder(path, Asked())
    text = read_text(path, DATA_BYTES_MAX)
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: is no JSON: line {error.lineno}: {error.msg}") from None
    except ValueError:
        raise InputError(f"{path}: is no JSON that can be read: a number has too many digits") from None
    except RecursionError:
        raise InputError(f"{path}: is no JSON: nested too deeply") from None
    make = _maker(values)
    if make is None:
        known = ", ".join(name for name, _, _ in FORMS)
        raise InputError(f"{path}: is not the JSON of a command that compares ({known}, tasks run)")
    try:
        return make(values, Asked())
    except DAMAGE as error:
        what = f"{type(error).__name__} {error}"
        raise InputError(f"{path}: is damaged, or of another version of ampsched: {what}") from None


def _maker(values: object) -> Callable[[Any, Asked], Page] | None:
    """Who makes a page of these values; none if nobody knows them."""
    if isinstance(values, list):
        are_tasks = bool(values) and all(isinstance(row, Mapping) and row.keys() >= TASKS for row in values)
        return tasks.page if are_tasks else None
    if not isinstance(values, Mapping):
        return None
    return next((make for _, keys, make in FORMS if values.keys() >= keys), None)
