"""What programs and libraries say of themselves: architecture, loader, the libraries that they need (elf(5)).

Only what is needed to bring a program along with its libraries.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ampsched.vm.error import VmError

MAGIC = b"\x7fELF"
OF_64_BITS = b"\x02\x01"
"""What follows in files of 64 bits, little-endian. Of others only the architecture is read."""
MACHINES = {"x86_64": 62, "aarch64": 183}
"""Numbers of architectures (e_machine)."""
LOADED, DYNAMIC, INTERPRETER = 1, 2, 3
"""Kinds of parts (p_type): memory, what is needed at the start, the name of the loader."""
NEEDED, STRINGS, RPATH, RUNPATH = 1, 5, 15, 29
"""Kinds of entries of what is needed at the start (d_tag)."""


def is_elf(path: Path) -> bool:
    """Whether a file is a program or a library."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


@dataclass(frozen=True)
class Elf:
    """A program or a library.

    Attributes:
        machine: Number of its architecture.
        loader: The program that loads it with its libraries; none of libraries and of what is linked statically.
        needed: Names of the libraries that it needs.
        folders: Where it wants them to be looked for first; ``$ORIGIN`` stands for its own folder.
    """

    machine: int
    loader: str | None
    needed: tuple[str, ...]
    folders: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "Elf | None":
        """Of a file; none if it is something else.

        Raises:
            VmError: It is cut off.
        """
        content = path.read_bytes()
        if content[: len(MAGIC)] != MAGIC:
            return None
        try:
            if content[len(MAGIC) :][:2] != OF_64_BITS:
                return cls(struct.unpack_from("<18xH", content)[0], None, (), ())
            return _Reader(content).elf()
        except (struct.error, ValueError):
            raise VmError(f"{path}: is no whole program") from None


@dataclass(frozen=True)
class _Part:
    kind: int
    offset: int
    address: int
    size: int


@dataclass(frozen=True)
class _Reader:
    content: bytes

    def elf(self) -> Elf:
        machine, first, size, count = struct.unpack_from("<18xH12xQ14xHH", self.content)
        parts = [self._part(first + size * index) for index in range(count)]
        loaders = [self._text(part.offset) for part in parts if part.kind == INTERPRETER]
        entries = [entry for part in parts if part.kind == DYNAMIC for entry in self._entries(part)]
        strings = next((self._offset(value, parts) for kind, value in entries if kind == STRINGS), 0)
        names = {
            wanted: [self._text(strings + value) for kind, value in entries if kind == wanted]
            for wanted in (NEEDED, RPATH, RUNPATH)
        }
        # A run path makes the older one void.
        folders = [name for path in names[RUNPATH] or names[RPATH] for name in path.split(":") if name]
        return Elf(machine, loaders[0] if loaders else None, tuple(names[NEEDED]), tuple(folders))

    def _part(self, at: int) -> _Part:
        kind, offset, address, size = struct.unpack_from("<I4xQQ8xQ", self.content, at)
        return _Part(kind, offset, address, size)

    def _entries(self, part: _Part) -> Iterator[tuple[int, int]]:
        for at in range(part.offset, part.offset + min(part.size, len(self.content)), 16):
            kind, value = struct.unpack_from("<QQ", self.content, at)
            if kind == 0:
                return
            yield kind, value

    def _offset(self, address: int, parts: list[_Part]) -> int:
        """Where in the file is what is at an address in memory."""
        for part in parts:
            if part.kind == LOADED and part.address <= address < part.address + part.size:
                return address - part.address + part.offset
        raise ValueError

    def _text(self, at: int) -> str:
        return self.content[at : self.content.index(b"\0", at)].decode()
