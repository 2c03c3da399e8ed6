"""Kernels of x86-64 guests as programs, not as archives that unpack themselves.

Unpacking takes an imitated core a thousand million instructions, nearly half of all that a boot takes; here it takes
part of a second, once. QEMU starts such a program by the kernel's PVH entry (CONFIG_PVH, which Debian's kernels have).
"""

import struct
import subprocess
import tempfile
from pathlib import Path

from ampsched.vm.archive import VERIFIED, Archive
from ampsched.vm.error import VmError
from ampsched.vm.exact.qemu import packaged
from ampsched.vm.kernel import Kernel

SECTOR_BYTES = 512
SETUP_SECTORS, PAYLOAD = 0x1F1, 0x248
"""Places in an image (Linux, Documentation/arch/x86/boot.rst): sectors before the kernel less one; where the archive
is from there, and its length, in bytes."""
SIZE_BYTES = 4
"""Behind the archive stands how long it is unpacked."""
UNPACK_S = 300


def program_of(kernel: Kernel, archive: Archive) -> Path:
    """A kernel for x86-64 as a program, beside its image in the cache.

    Raises:
        VmError: It cannot be unpacked.
    """
    folder = next(path for path in kernel.image.parents if (path / VERIFIED).exists())
    program = folder / "vmlinux"
    if not program.exists():
        unpacked = _unpack(kernel.image, archive)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".vmlinux-", delete=False) as file:
            file.write(unpacked)
        Path(file.name).replace(program)
    return program


def _unpack(image: Path, archive: Archive) -> bytes:
    packed = payload(image.read_bytes())
    command = [*packaged(archive.folder("zstd"), "zstd"), "-dc"]
    try:
        done = subprocess.run(  # noqa: S603
            command, input=packed, capture_output=True, check=False, timeout=UNPACK_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VmError(f"{image}: cannot be unpacked: {error}") from None
    if done.returncode or not done.stdout.startswith(b"\x7fELF"):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise VmError(f"{image}: cannot be unpacked: {said[-1] if said else 'there is no kernel in it'}")
    return done.stdout


def payload(image: bytes) -> bytes:
    """The archive in a kernel's image, without what stands behind it."""
    sectors = image[SETUP_SECTORS]
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    begin = (sectors + 1) * SECTOR_BYTES + offset
    return image[begin : begin + length - SIZE_BYTES]
