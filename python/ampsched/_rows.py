"""Rows of the registries as the compiled part gives them."""

from typing import TypedDict

Laws = tuple[list[int | None], list[tuple[str, int, int, int]], list[dict[str, float]]]
"""What a replay must obey: work of threads in ns; bonds of cause and effect; parts of the critical path by speed."""
CoreDomain = tuple[list[int], int, list[int], float | None, list[tuple[int, float]]]
"""Cores with one clock: their numbers, class, clocks in MHz, speed, points of operation."""


class ParamRow(TypedDict):
    """A parameter of a policy, governor, task policy or task program."""

    name: str
    default: float
    min: float
    max: float
    flag: bool
    choices: tuple[str, ...]
    one_of: tuple[float, ...]
    names: tuple[str, ...]
    help: str


class WordRow(TypedDict):
    """A word of a policy; see `ampsched.words.Word`."""

    name: str
    doc: str
    payload: list[tuple[str, str]]
    reads: list[str]
    readers: list[str]
    hides: list[str]
    reads_load: bool
    kernel: str
    daemon: str


class WordGroupRow(TypedDict):
    """Words of one part."""

    part: str
    name: str
    doc: str
    words: list[WordRow]


class RegistryRow(TypedDict):
    """A policy or governor."""

    name: str
    summary: str
    documentation: str
    source: str
    params: list[ParamRow]


class TaskPolicyRow(RegistryRow):
    """A task policy."""

    off_line: bool


class TaskProgramRow(TypedDict):
    """A task program."""

    name: str
    summary: str
    documentation: str
    ratio: float
    params: list[ParamRow]
