"""Libraries of programs that were built for another architecture than this computer's.

They are looked for where the program says, then where this computer may have them for the other architecture
(Debian's multiarch folders, and those of its cross compilers), then in Debian's packages in the cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ampsched.vm.archive import Archive
from ampsched.vm.error import VmError
from ampsched.vm.exact.elf import MACHINES, Elf, is_elf

FOLDERS = ("usr/lib/{}-linux-gnu", "lib/{}-linux-gnu", "usr/{}-linux-gnu/lib")
"""Where libraries of an architecture may lie; in the first of them a guest gets them."""


@dataclass(frozen=True)
class Foreign:
    """Where libraries come from.

    Attributes:
        archive: Of Debian.
        root: Of this computer's files.
    """

    archive: Archive = field(default_factory=Archive)
    root: Path = Path("/")

    def needed(self, files: Sequence[Path], architecture: str) -> dict[Path, Path]:
        """The libraries that programs and libraries need, directly or not, with their loader.

        Args:
            files: What may be programs or libraries of that architecture; everything else needs nothing.
            architecture: Of the guest.

        Returns:
            The place in the guest of each file of this computer. Who says where its libraries are gets them there,
            others find them in the folder that their loader knows.

        Raises:
            VmError: A library is missing, or Debian's cannot be fetched.
        """
        found: dict[Path, Path] = {}
        left = [*files]
        while left:
            path = left.pop()
            for library, place in self._of(path, architecture):
                if library not in found:
                    found[library] = place
                    left.append(library)
        return found

    def _of(self, path: Path, architecture: str) -> Iterator[tuple[Path, Path]]:
        """What one file needs directly, and the places for that."""
        elf = Elf.read(path) if is_elf(path) else None
        if elf is None or elf.machine != MACHINES[architecture]:
            return
        if elf.loader:
            yield self._find(path, Path(elf.loader).name, architecture), Path(elf.loader)
        own = [Path(folder.replace("$ORIGIN", str(path.parent))) for folder in elf.folders]
        common = Path("/", FOLDERS[0].format(architecture))
        for name in elf.needed:
            near = next((folder / name for folder in own if (folder / name).is_file()), None)
            if near:
                yield near, near
            else:
                yield self._find(path, name, architecture), common / name

    def _find(self, path: Path, name: str, architecture: str) -> Path:
        for root in self._roots(architecture):
            for folder in FOLDERS:
                candidate = root / folder.format(architecture) / name
                if candidate.is_file():
                    return candidate
        raise VmError(
            f"{path}: its library {name} is neither here nor among those that are fetched for {architecture} (install "
            "it for that architecture, name its folder by a run path, or link it statically)"
        )

    def _roots(self, architecture: str) -> Iterator[Path]:
        yield self.root
        yield self.archive.folder(f"libraries-{architecture}")
