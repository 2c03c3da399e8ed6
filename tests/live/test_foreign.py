"""Programs of another architecture's packages run in its guests, with its libraries."""

import lzma
from pathlib import Path

from ampsched import Catalog
from ampsched.vm import exact
from ampsched.vm.archive import Archive, Selection

XZ = Selection("xz-aarch64", ("bookworm",), {"xz-utils:arm64": "5.4.1-1+deb12u1"}, keep=("usr/bin/xz",))
"""Linked dynamically, with two libraries; it works with two threads here."""


def test_a_packaged_program_of_arm64_runs_with_its_libraries(tmp_path: Path) -> None:
    text = b"".join(b"%d\n" % (number * 7919 % 20011) for number in range(20011))
    (tmp_path / "data").write_bytes(text)
    xz = Archive().unpacked(XZ) / "usr/bin/xz"
    command = [str(xz), "-k", "-1", "-T2", "--block-size=65536", "data"]
    guest = exact.Exact(Catalog.shipped().machine("2B2S"), architecture="aarch64")
    done = exact.run(
        guest, exact.Work(command, [Path("data")], cwd=tmp_path), out=tmp_path / "out", limit_s=300
    )
    assert done.code == 0, (done.output, done.console)
    assert lzma.decompress((tmp_path / "out" / "data.xz").read_bytes()) == text
