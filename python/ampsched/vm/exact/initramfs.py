"""The first root file system of a guest: an archive in memory (newc, Documentation/driver-api/early-userspace).

Files come from this computer and keep their places, with the libraries that programs need, so a command finds what it
would find here. Times and numbers of files are constant: equal files make equal archives. Python's compiled modules,
which name the time of their source, are told that constant, too: otherwise a guest would compile each module anew.
"""

import os
import platform
import re
import shutil
import stat
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ampsched.vm.error import VmError
from ampsched.vm.exact.elf import MACHINES, Elf, is_elf
from ampsched.vm.exact.foreign import Foreign

NAME_MAX = 4096
INTERPRETERS_MAX = 4
"""Linux follows as many of scripts that interpret scripts (fs/exec.c)."""
ALIGNMENT = 4
TRAILER = "TRAILER!!!"
MODIFIED = 0
"""When all files were last modified, in s since 1970."""
COMPILED = ".pyc"
COMPILED_HEADER = struct.Struct("<4sIII")
"""Of a compiled module (PEP 552): a mark of the version, flags, and, without flags, the source's time and size."""


@dataclass(frozen=True)
class _Entry:
    mode: int
    content: bytes | Path = b""
    device: tuple[int, int] = (0, 0)


@dataclass
class Initramfs:
    """Files of a guest, by their absolute paths there.

    Attributes:
        architecture: Of the guest.
        foreign: The libraries of a guest of another architecture than this computer's.
    """

    architecture: str = field(default_factory=platform.machine)
    foreign: Foreign = field(default_factory=Foreign)
    _entries: dict[str, _Entry] = field(default_factory=dict)

    def folder(self, path: Path, mode: int = 0o755) -> None:
        """A folder, and those above it."""
        if path != path.parent:
            if str(path.parent) not in self._entries:
                self.folder(path.parent)
            self._entries.setdefault(str(path), _Entry(stat.S_IFDIR | mode))

    def text(self, path: Path, content: str, mode: int = 0o644) -> None:
        """A file with that text."""
        self.content(path, content.encode(), mode)

    def content(self, path: Path, content: bytes, mode: int = 0o644) -> None:
        """A file with that content."""
        self.folder(path.parent)
        self._entries[str(path)] = _Entry(stat.S_IFREG | mode, content)

    def copy(self, source: Path, path: Path) -> None:
        """A file of this computer in another place."""
        self.folder(path.parent)
        self._entries[str(path)] = _Entry(_mode(source), source)

    def character_device(self, path: Path, major: int, minor: int) -> None:
        """A device by its numbers."""
        self.folder(path.parent)
        self._entries[str(path)] = _Entry(stat.S_IFCHR | 0o600, device=(major, minor))

    def include(self, source: Path) -> None:
        """A file or folder of this computer in its own place and with its permissions, with the links on the way there.

        Raises:
            VmError: There is no such file, or it is neither file, folder nor link.
        """
        real = self._follow(source.absolute())
        if str(real) in self._entries and not real.is_dir():
            return
        if real.is_dir():
            self.folder(real.parent)
            self._entries[str(real)] = _Entry(stat.S_IFDIR | stat.S_IMODE(real.stat().st_mode))
            for child in sorted(real.iterdir()):
                if (
                    child.exists() or not child.is_symlink()
                ):  # links that lead nowhere lead nowhere there, too
                    self.include(child)
        elif real.is_file():
            self.copy(real, real)
        else:
            raise VmError(f"{source}: cannot be taken into the virtual machine: it is no file and no folder")

    def program(self, source: Path) -> None:
        """A program of this computer in its own place, with its interpreter and the libraries that it needs.

        Raises:
            VmError: A library or an interpreter is missing.
        """
        self.include(source)
        path = source
        for _ in range(INTERPRETERS_MAX):
            interpreter = interpreter_of(path)
            if interpreter is None:
                break
            path = interpreter
            self.include(path)
        self._check_architecture(path)
        # A loader looks beside the program itself ($ORIGIN), not beside a link to it.
        self.libraries([path.resolve()])

    def libraries(self, files: Sequence[Path]) -> None:
        """The libraries that programs and libraries need, in the places where their loader looks for them.

        Raises:
            VmError: One is missing.
        """
        if self.architecture == platform.machine():
            for path in needed_libraries(files):
                self.include(path)
            return
        for path, place in self.foreign.needed(files, self.architecture).items():
            if path == place:
                self.include(path)
            else:
                # This computer's own links are there, too: /lib may be one.
                self.copy(path.resolve(), self._follow(place.parent) / place.name)

    def _check_architecture(self, path: Path) -> None:
        elf = Elf.read(path)
        if elf is not None and elf.machine != MACHINES[self.architecture]:
            raise VmError(f"{path}: is not built for the guest's architecture, {self.architecture}")

    def _follow(self, path: Path) -> Path:
        """Takes links on the way to a path; returns where they lead."""
        reached = Path("/")
        parts = list(path.parts[1:])
        for _ in range(NAME_MAX):
            if not parts:
                return reached
            part = parts.pop(0)
            if part == "..":
                reached = reached.parent
                continue
            reached /= part
            if reached.is_symlink():
                target = reached.readlink()
                self.folder(reached.parent)
                self._entries[str(reached)] = _Entry(stat.S_IFLNK | 0o777, str(target).encode())
                parts = [*target.parts, *parts]
                reached = Path("/") if parts[0] == "/" else reached.parent
                parts = [part for part in parts if part != "/"]
        raise VmError(f"{path}: links lead round in a circle")

    def write(self, path: Path) -> None:
        """Writes the archive."""
        with path.open("wb") as file:
            for number, (name, entry) in enumerate(sorted(self._entries.items()), start=1):
                file.writelines(_newc(name.lstrip("/"), entry, number))
            file.writelines(_newc(TRAILER, _Entry(0), 0))


def _mode(source: Path) -> int:
    return stat.S_IFREG | stat.S_IMODE(source.stat().st_mode) & ~(stat.S_ISUID | stat.S_ISGID)


def _newc(name: str, entry: _Entry, number: int) -> Iterator[bytes]:
    content = entry.content.read_bytes() if isinstance(entry.content, Path) else entry.content
    if name.endswith(COMPILED):
        content = with_undated_source(content)
    encoded = name.encode() + b"\0"
    links, owner, group, check = 1, 0, 0, 0
    fields = [number, entry.mode, owner, group, links, MODIFIED, len(content), 0, 0]
    fields += [*entry.device, len(encoded), check]
    header = b"070701" + b"".join(b"%08X" % value for value in fields) + encoded
    for part in (header, content):
        yield part
        yield b"\0" * (-len(part) % ALIGNMENT)


def with_undated_source(compiled: bytes) -> bytes:
    """A compiled module of Python whose source has the time that all files of the archive have.

    What goes by its source's hash, or is no such module, stays as it is.
    """
    if len(compiled) < COMPILED_HEADER.size:
        return compiled
    mark, flags, _, size = COMPILED_HEADER.unpack_from(compiled)
    if flags:
        return compiled
    return COMPILED_HEADER.pack(mark, flags, MODIFIED, size) + compiled[COMPILED_HEADER.size :]


def interpreter_of(path: Path) -> Path | None:
    """The program that executes a script, by its first line; none for other files.

    Raises:
        VmError: It is missing.
    """
    with path.open("rb") as file:
        first = file.readline(NAME_MAX)
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode(errors="replace").split()
    if not words:
        return None
    # What `env` is to find is what executes it.
    named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    wanted = named[0] if Path(words[0]).name == "env" and named else words[0]
    found = shutil.which(wanted)
    if found is None:
        raise VmError(f"{path}: its interpreter {wanted} is missing")
    return Path(found)


def needed_libraries(files: Sequence[Path]) -> list[Path]:
    """The libraries that dynamically linked programs and libraries need, by what their loader finds (ldd(1)).

    Raises:
        VmError: One is missing.
    """
    dynamic = [path for path in files if is_elf(path)]
    if not dynamic:
        return []
    done = subprocess.run(  # noqa: S603
        ["ldd", *map(str, dynamic)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    missing = re.search(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE)
    if missing:
        raise VmError(f"{dynamic[0]}: its library {missing[1]} is missing")
    found = re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", done.stdout, re.MULTILINE)
    return [Path(name) for name in dict.fromkeys(found)]
