"""Kernels of x86-64 guests as programs: how they are unpacked, and what is refused; no machine is started."""

import struct
from pathlib import Path

import pytest

from ampsched.vm import VmError
from ampsched.vm.archive import VERIFIED, Archive
from ampsched.vm.exact.image import PAYLOAD, SECTOR_BYTES, SETUP_SECTORS, payload, program_of
from ampsched.vm.kernel import Kernel

PROGRAM = b"\x7fELF and so on"


def image_of(archive: bytes) -> bytes:
    """A kernel's image with three sectors before the kernel and ten bytes before the archive."""
    image = bytearray(3 * SECTOR_BYTES)
    image[SETUP_SECTORS] = 2
    struct.pack_into("<II", image, PAYLOAD, 10, len(archive) + 4)
    return bytes(image) + bytes(10) + archive + struct.pack("<I", 1000) + b"behind"


class Fetched(Archive):
    """An archive that has an unpacker: one that adds what a program begins with."""

    def folder(self, name: str) -> Path:
        return self.cache / name


def fetched(folder: Path, archive: bytes) -> tuple[Kernel, Fetched, Path]:
    """A kernel in the cache, the cache, and the file that counts how often something was unpacked."""
    (folder / "linux/boot").mkdir(parents=True)
    (folder / "linux" / VERIFIED).touch()
    image = folder / "linux/boot/vmlinuz"
    image.write_bytes(image_of(archive))
    unpacker = folder / "zstd/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    unpacker.parent.mkdir(parents=True)
    unpacker.write_text(
        f"#!/bin/sh\necho >>{folder}/count\nprintf '\\177'\ncat\n[ $# = 4 ] || echo wrong >&2\n", "utf-8"
    )
    unpacker.chmod(0o755)
    return Kernel(image, None, "6.18"), Fetched(folder), folder / "count"


def test_the_archive_is_found_in_an_image() -> None:
    assert payload(image_of(b"packed")) == b"packed"


def test_a_kernel_is_unpacked_once(tmp_path: Path) -> None:
    kernel, archive, count = fetched(tmp_path, PROGRAM[1:])
    for _ in range(2):
        program = program_of(kernel, archive)
        assert program == tmp_path / "linux/vmlinux"
        assert program.read_bytes() == PROGRAM
    assert count.read_text() == "\n"


def test_what_is_no_kernel_is_refused_and_not_kept(tmp_path: Path) -> None:
    kernel, archive, _ = fetched(tmp_path, b"no program")
    with pytest.raises(VmError, match="vmlinuz: cannot be unpacked: there is no kernel in it"):
        program_of(kernel, archive)
    assert sorted(path.name for path in (tmp_path / "linux").iterdir()) == ["boot", VERIFIED]
