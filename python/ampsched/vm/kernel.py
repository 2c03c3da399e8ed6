"""Kernels with sched_ext from Debian's archive.

Debian's trixie-backports kernels have SCHED_CLASS_EXT and BTF; trixie's own 6.12 and bookworm's backports have no
SCHED_CLASS_EXT, and backports' 7.2 refuses sched_ext schedulers (malformed BTF of its kfuncs).
"""

import lzma
from dataclasses import dataclass
from pathlib import Path

from ampsched.vm.archive import VERIFIED, Archive, selections
from ampsched.vm.error import VmError

DEFAULT_KERNEL = "6.18"
ARCHITECTURES = ("x86_64", "aarch64")


def kernels(architecture: str = "x86_64") -> dict[str, str]:
    """Releases (``uname -r``) of the kernels that can be had, by the version that names them."""
    found = {}
    for selection in selections().values():
        kind, _, rest = selection.name.partition("-")
        version, _, built_for = rest.partition("-")
        if (kind, built_for) == ("linux", architecture):
            package = next(iter(selection.packages)).partition(":")[0]
            found[version] = package.split("-", 2)[2]
    return found


@dataclass(frozen=True)
class Kernel:
    """A kernel in the cache.

    Attributes:
        image: What a loader boots.
        config: The configuration with which it was built; none if the archive no longer has it.
        release: What it calls itself (``uname -r``).
    """

    image: Path
    config: Path | None
    release: str

    def module(self, name: str) -> bytes:
        """A module of this kernel, as it is loaded.

        Raises:
            VmError: What was fetched has none of that name.
        """
        folder = next(path for path in self.image.parents if (path / VERIFIED).exists())
        found = list(folder.glob(f"usr/lib/modules/*/kernel/**/{name}.ko.xz"))
        if len(found) != 1:
            raise VmError(
                f"{folder}: has {len(found)} modules named {name}; remove the folder to fetch it anew"
            )
        return lzma.decompress(found[0].read_bytes())


def fetch_kernel(
    version: str = DEFAULT_KERNEL, architecture: str = "x86_64", archive: Archive | None = None
) -> Kernel:
    """A kernel, fetched from Debian's archive if the cache does not have it.

    Args:
        version: Version that names it, such as 6.18.
        architecture: ``x86_64`` or ``aarch64``.
        archive: Where it comes from.

    Raises:
        VmError: There is no such kernel, or it cannot be fetched.
    """
    known = kernels(architecture)
    if version not in known:
        # All are told: a number that looks like another one is not nearly the same kernel.
        raise VmError(f'unknown kernel for {architecture} "{version}" (known: {", ".join(known)})')
    folder = (archive or Archive()).folder(f"linux-{version}-{architecture}")
    image = _the_one(folder, "vmlinuz")
    if image is None:
        raise VmError(f"{folder}: has no kernel; remove the folder to fetch it anew")
    return Kernel(image, _the_one(folder, "config"), known[version])


def _the_one(folder: Path, name: str) -> Path | None:
    """The file of a kernel, wherever that version's packages have it."""
    found = [*folder.glob(f"boot/{name}-*"), *folder.glob(f"usr/lib/modules/*/{name}")]
    if len(found) > 1:
        raise VmError(f"{folder}: has {len(found)} files named {name}; remove the folder to fetch it anew")
    return found[0] if found else None
