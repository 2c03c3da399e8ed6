"""Finds out by its content what a source is."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ampsched._core import InputError
from ampsched.catalog import THIS
from ampsched.files import read_bytes, shown, temporary_folder
from ampsched.machine_file.making import this_computer
from ampsched.machine_file.tree import Source

BYTES_MAX = 64 << 20
_HEAD = 1 << 16
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_TREE = b"\xd0\x0d\xfe\xed"
_FORMATS = (
    "a saved tree of /sys (folder, tar), what the script of --collector prints, lscpu (-J), hwloc's XML, a device "
    "tree (.dtb, .dts), LISA's plat_info"
)


@contextmanager
def opened(what: str) -> Iterator[Source]:
    """The source of that name: ``this``, or a file or folder; its tree of files is gone afterwards.

    Raises:
        InputError: There is no such file, or it is none that can be read.
    """
    if what == THIS:
        yield this_computer()
        return
    with temporary_folder("ampsched-machine-") as folder:
        yield _source(Path(what), folder)


def _source(path: Path, folder: Path) -> Source:
    from ampsched.machine_file import saved, tree_text

    title = " ".join(shown(path.name or path.resolve().name).split()) or "/"
    if path.is_dir():
        return saved.from_folder(path, folder, title)
    content = read_bytes(path, BYTES_MAX)
    if content.startswith(_ARCHIVES) or content[257:262] == b"ustar":
        return saved.from_archive(path, folder, title)
    if content.startswith(saved.FIRST_LINE.encode()):
        return saved.from_text(content, folder, title)
    is_tree = content.startswith(_TREE)
    if not is_tree and tree_text.is_text_of_tree(content, path):
        content, is_tree = tree_text.compiled(content, path, title), True
    if is_tree:
        from ampsched.machine_file import devicetree

        return devicetree.from_bytes(content, folder, title)
    found = _of_text(content, folder, title)
    if found is None:
        raise InputError(f"{shown(path)}: is none of what is understood: {_FORMATS}")
    return found


def _of_text(content: bytes, folder: Path, title: str) -> Source | None:
    from ampsched.machine_file import hwloc, lscpu, plat_info

    text = content.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    head = text[:_HEAD]
    if head.startswith("{"):
        return lscpu.from_json(text, folder, title)
    if head.startswith("<") and "<topology" in head:
        return hwloc.from_xml(text, folder, title)
    if re.search(r"^On-line CPU\(s\) list:", head, re.MULTILINE):
        return lscpu.from_text(text, folder, title)
    if re.search(
        r"^\s*(platform-info|cpu-capacities|freq-domains|nrg-model|kernel|cpus-count):", head, re.MULTILINE
    ):
        return plat_info.from_yaml(text, folder, title)
    return None
