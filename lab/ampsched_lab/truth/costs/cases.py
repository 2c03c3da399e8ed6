"""What checks share that run C programs in exact virtual machines whose cores are two halves."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ampsched.vm.exact import Exact, Work, run
from ampsched_lab.shared import two_kinds

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SPEEDS = {"equal": (1000, 1000), "unequal": (1000, 400)}
"""Million instructions per second of each half of the cores."""

F = TypeVar("F", bound="DataclassInstance")


def exact_machine(folder: Path, kind: str, cores: int, **settings: Any) -> Exact:
    """So many cores of a kind in ``SPEEDS``."""
    return two_kinds.two_kinds(folder, "halves", cores, SPEEDS[kind], **settings)


def machine_text(kind: str, cores: int) -> str:
    """The same as a machine's file for the simulator, with which equal cores are of one class."""
    first, second = SPEEDS[kind]
    text = two_kinds.MACHINE.format(name="halves", cores=cores, half=cores // 2, first=first, second=second)
    return text.replace("class = 1", "class = 0") if first == second else text


def ratio(kind: str) -> float:
    """Speed of the first half over that of the second."""
    first, second = SPEEDS[kind]
    return first / second


def told(exact: Exact, work: Work, form: type[F]) -> F:
    """What a program says in JSON in the last line of its output; fields of another name are left out."""
    said = json.loads(run(exact, work).output.strip().splitlines()[-1])
    return form(**{field.name: said[field.name] for field in fields(form)})


def kept(path: Path, form: type[F]) -> list[F]:
    """What was measured."""
    return [form(**each) for each in json.loads(path.read_text("utf-8"))]


def keep(path: Path, found: Sequence["DataclassInstance"]) -> None:
    """Writes it, a line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(each)) for each in found]
    path.write_text("[\n " + ",\n ".join(lines) + "\n]\n", "utf-8")
