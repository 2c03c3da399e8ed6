"""Machines, core types, profiles, programs and workloads: the shipped ones, and the user's own files."""

import functools
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import get_args

from ampsched import _core
from ampsched._core import DATA_BYTES_MAX, InputError, Machine, Workload
from ampsched.files import named, read_text, shown
from ampsched.kinds import RECORDING, Kind
from ampsched.naming import unknown
from ampsched.spec import parse_spec

KINDS: tuple[Kind, ...] = get_args(Kind)
FOLDERS: dict[Kind, str] = {
    "machine": "machines",
    "core_type": "core_types",
    "profile": "profiles",
    "program": "programs",
    "workload": "workloads",
}
SUFFIXES = (".toml", ".json")
THIS = "this"
"""The machine that is this computer."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a listing."""

    name: str
    description: str


class Catalog:
    """Everything that can be named, by kind.

    `Catalog.shipped()` has what comes with ampsched. Where a machine or a workload is asked for, the path of a
    file (``.toml``, ``.json``) does as well as a name; files that it refers to are read, too.
    """

    def __init__(self, core: _core.Catalog) -> None:
        self._core = core

    @staticmethod
    def shipped() -> "Catalog":
        """The catalogue of the files that come with ampsched."""
        return Catalog(_shipped_core())

    @property
    def core(self) -> _core.Catalog:
        """The compiled part."""
        return self._core

    def with_files(self, *paths: str | Path) -> "Catalog":
        """A catalogue that has these files as well; they take the place of shipped ones of the same name.

        Raises:
            InputError: If a file cannot be read or is wrong.
        """
        core = self._core.copy()
        for path in paths:
            text = read_text(Path(path))
            kind = _core.Catalog.detect(shown(path), text)
            core.add(kind, shown(Path(path).stem), shown(path), text)
        _add_missing(core)
        return Catalog(core)

    def machine(self, machine: "str | Path | Machine") -> Machine:
        """The machine of that name, or that a file describes.

        ``exynos5422:big=2@1600:little=0`` is a part of it: two big cores at up to 1600 MHz, no little core.
        ``exynos5422:big@600-1600`` bounds its clock, as Linux does for who writes ``scaling_min_freq`` and
        ``scaling_max_freq``. ``this`` is this computer at this moment.

        Raises:
            InputError: If there is no such name, file or part, or the file is wrong.
        """
        if isinstance(machine, Machine):
            return machine
        whole, shares = split_shares(str(machine), "=@")
        if shares:
            return self.machine(whole).part(shares)
        if not is_path(machine):
            return self._named_machine(str(machine))
        core = self._with_path(str(machine), ("machine",))
        return core.machine(shown(machine))

    def _named_machine(self, name: str) -> Machine:
        core = self._with_this(name)
        if core is self._core:
            self._require(name, "machine")
        return core.machine(name)

    def _with_this(self, name: str) -> _core.Catalog:
        """The compiled catalogue; if the name is ``this``, one that has this computer, as it is now, as well."""
        if name != THIS or self._core.has("machine", name):
            return self._core
        from ampsched.machine_file.making import make, this_computer

        core = self._core.copy()
        core.add("machine", name, name, make(this_computer(), name).text)
        return core

    def workload(self, workload: "str | Path | Workload") -> Workload:
        """The workload of that name, or in a file; a program is a workload of that program alone.

        ``mixes.toml:night`` names one of the workloads of a file, ``ferret:n=8`` a program with parameters,
        ``run.ampr`` a recording, which is replayed: ``run.ampr:speedup=2`` if its code is twice as fast on the
        fastest kind of core as on the slowest, ``run.ampr:speed=1.5`` if the machine is 1.5 times as fast as the
        computer that recorded it, both at their fastest.

        Raises:
            InputError: If there is no such name, file or parameter, or the file is wrong.
        """
        if isinstance(workload, Workload):
            return workload
        program, params = split_shares(str(workload))
        if params:
            return self._program(program, ":".join(params))
        path, name = _split_path(str(workload))
        if not is_path(path):
            self._require(path, "workload", "program")
            return self._core.workload(path)
        core = self._with_path(path, ("workload", "program"))
        if not name:
            return core.workload(shown(path))
        known = core.workloads_of_file(shown(path))
        if name not in known:
            raise unknown(
                f"workload of {shown(path)}",
                name,
                known,
                "" if known else "it is a program; leave the name out",
            )
        return core.workload(name)

    def _program(self, program: str, params: str) -> Workload:
        """A program alone with parameters such as ``n=8:items=100``, which are part of the workload's name."""
        _, values = parse_spec(f"program:{params}", f"program {program}")
        if is_path(program):
            found = self._with_path(program, ("program",)).program(shown(program), values)
        else:
            self._require(program, "program")
            found = self._core.program(program, values)
        return found.named(f"{found.name}:{params}")

    def entries(self, kind: Kind) -> list[Entry]:
        """All names of a kind with their descriptions, in alphabetical order."""
        return [Entry(name, description) for name, description in self._core.entries(kind)]

    def describe(self, name: str) -> list[tuple[Kind, str]]:
        """A text of several lines about each thing of that name, with its kind; a path describes the file.

        Raises:
            InputError: If there is nothing of that name, or it is wrong.
        """
        core, name = self._resolve(name)
        found: list[tuple[Kind, str]] = [
            (kind, core.describe(kind, name)) for kind in KINDS if core.has(kind, name)
        ]
        if found:
            return found
        of_file = core.workloads_of_file(name)
        if of_file:
            return [("workload", core.describe("workload", workload)) for workload in of_file]
        known = [known for kind in KINDS for known, _ in core.entries(kind)]
        raise unknown("name", name, known, "see: ampsched list --help")

    def notes(self, program: str) -> list[str]:
        """What an imported program honours differently from its own tool, one line each."""
        core, name = self._resolve(program)
        return core.notes(name)

    def parameters(self, workload: object) -> list[str]:
        """The parameters that a program has, by name; none of workloads of several programs, and of objects.

        Raises:
            InputError: If its file cannot be read or is wrong.
        """
        if not isinstance(workload, str | Path):
            return []
        core, name = self._resolve(split_shares(str(workload))[0])
        return [key for key, _ in core.params(name)] if core.has("program", name) else []

    def references(self, workload: object) -> list[tuple[str, dict[str, float]]]:
        """What each application of a workload refers to: a program's name or path, and the parameters that stand there.

        Empty of all that is no workload, and of objects.

        Raises:
            InputError: If its file cannot be read or is wrong.
        """
        if not isinstance(workload, str | Path):
            return []
        path, name = _split_path(str(workload))
        core = self._core
        if is_path(path):
            if not path.endswith(SUFFIXES) or split_shares(str(workload))[1]:
                return []
            text = read_text(Path(path))
            if _core.Catalog.detect(shown(path), text) != "workload":
                return []
            core = _core.Catalog()
            _add(core, "workload", path, text)
        return [(program, dict(params)) for program, params in core.references(shown(name or path))]

    def _require(self, name: str, *kinds: Kind) -> None:
        """Refuses a name that nothing of these kinds has."""
        name = shown(name)
        known = [known for kind in kinds for known, _ in self._core.entries(kind)]
        if name not in known and not self._core.workloads_of_file(name):
            raise unknown(kinds[0], name, known, f"see: ampsched list {FOLDERS[kinds[0]]}")

    def _resolve(self, name: str) -> tuple[_core.Catalog, str]:
        path, workload = _split_path(name)
        if not is_path(path):
            return self._with_this(name), shown(name)
        return self._with_path(path, KINDS), shown(workload or path)

    def _with_path(self, path: str, wanted: tuple[Kind, ...]) -> _core.Catalog:
        text = "" if path.endswith(RECORDING) else read_text(Path(path))
        kind: Kind = _core.Catalog.detect(shown(path), text) if text else "program"
        if kind not in wanted:
            words = " or ".join(word.replace("_", " ") for word in wanted)
            raise InputError(f"{path}: describes a {kind.replace('_', ' ')}, a {words} is needed")
        core = self._core.copy()
        _add(core, kind, path, text)
        _add_missing(core)
        return core

    def with_recording(
        self, path: str, recording: _core.Recording, like: str, speedup: float = 0.0, spread: float = 0.0
    ) -> "Catalog":
        """A catalogue that has a recording as well, as the program in its file whose code behaves like a profile.

        Its speed-up, and by how much pieces of its work vary, are these unless its parameters say otherwise.

        Raises:
            InputError: If there is no such profile.
        """
        self._require(like, "profile")
        core = self._core.copy()
        core.add_recording(shown(path), shown(path), recording, like, speedup, spread)
        return Catalog(core)


def is_this(name: str) -> bool:
    """Whether a machine's name means this computer, or a part of it."""
    return name.partition(":")[0] == THIS


def machine_note(machine: Machine) -> list[str]:
    """What a reader must know of a machine that is this computer: of what it is made, and what is not known."""
    return (
        [f"{machine.name}: the computer that this runs on, as it is now: {machine.description}"]
        if is_this(machine.name)
        else []
    )


def is_path(name: str | Path) -> bool:
    """Whether a name means a file."""
    return isinstance(name, Path) or name.endswith((*SUFFIXES, RECORDING)) or "/" in name


def _split_path(text: str) -> tuple[str, str]:
    """Splits ``mixes.toml:night`` into path and name; anything else has no name."""
    for suffix in SUFFIXES:
        path, found, name = text.partition(f"{suffix}:")
        if found:
            return path + suffix, name
    return text, ""


def split_shares(text: str, signs: str = "=") -> tuple[str, list[str]]:
    """Splits ``name:key=value:key=value`` into the name or path and the rest, whose first has one of the signs."""
    whole, *shares = text.split(":")
    return (whole, shares) if shares and set(signs) & set(shares[0]) else (text, [])


def _add(core: _core.Catalog, kind: Kind, path: str, text: str) -> None:
    """Adds a file under its path: a text, or a recording."""
    name = shown(path)
    if path.endswith(RECORDING):
        from ampsched.recording.files import load

        core.add_recording(name, name, load(named(path)), _core.TYPICAL_PROFILE)
    else:
        core.add(kind, name, name, text)


def _add_missing(core: _core.Catalog) -> None:
    """Adds the files that added ones refer to; one that is not there is reported where it is referred to."""
    tried: set[tuple[Kind, str]] = set()
    while missing := [item for item in core.missing_files() if item not in tried]:
        tried.update(missing)
        for kind, path in missing:
            file = named(path)
            if file.is_file():
                _add(core, kind, path, "" if path.endswith(RECORDING) else read_text(file))
    for path in core.missing_graphs():
        if named(path).is_file():
            core.add_graph(path, read_text(named(path), DATA_BYTES_MAX))


@functools.cache
def _shipped_core() -> _core.Catalog:
    """The shipped files; never changed, as every addition is made to a copy."""
    core = _core.Catalog()
    data = files("ampsched") / "data"
    for kind, folder in FOLDERS.items():
        for file in _files_of(data / folder):
            core.add(
                kind, file.name.rsplit(".", 1)[0], f"{folder}/{file.name}", file.read_text(encoding="utf-8")
            )
    return core


def _files_of(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return sorted(
        (file for file in folder.iterdir() if file.name.endswith(SUFFIXES)), key=lambda file: file.name
    )
