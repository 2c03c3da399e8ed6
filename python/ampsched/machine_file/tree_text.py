"""Device trees as text: made into compiled ones by ``dtc``, after ``cpp`` where they are written for it.

As Linux compiles its own (scripts/Makefile.lib): cpp without its own files and macros, then dtc, both with the folders
of the tree.
"""

import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ampsched._core import InputError
from ampsched.children import child_in_group
from ampsched.files import temporary_folder

TOOL_S = 20
OUTPUT_BYTES_MAX = 16 << 20
"""Of one program; trees of real boards have less than 1 MiB."""
MEMORY_BYTES_MAX = 2 << 30
PARENTS_MAX = 12
"""How far above a file the folder of `include/dt-bindings` is looked for; Linux has up to 6."""
_HEAD = 1 << 16
_FOR_CPP = re.compile(rb"^[ \t]*#[ \t]*(include|define|if|ifdef|ifndef)[ \t(<\"]", re.MULTILINE)
_FIRST = re.compile(rb"/dts-v1/\s*;")
_LIMITS = f"ulimit -f {OUTPUT_BYTES_MAX >> 9} && ulimit -v {MEMORY_BYTES_MAX >> 10} && ulimit -t {TOOL_S}"
_SAID = re.compile(r"\b(?:fatal )?error:? ?", re.IGNORECASE)
_PACKAGES = {"dtc": "device-tree-compiler", "cpp": "cpp"}


def is_text_of_tree(content: bytes, path: Path) -> bool:
    """Whether it says that it is a device tree; parts of one (.dtsi), which do not, are known by their name."""
    return bool(_FIRST.search(content[:_HEAD])) or path.suffix in (".dts", ".dtsi")


def compiled(content: bytes, path: Path, title: str) -> bytes:
    """The compiled tree of a text; what it includes is looked for where the file is.

    Args:
        content: The text.
        path: Its file, whose folder and those above it have what it includes.
        title: What errors call it.

    Raises:
        InputError: A program is missing, or refuses the text, or takes too much time or room.
    """
    folders = _folders(path.resolve().parent)
    with temporary_folder("ampsched-tree-") as work:
        if _FOR_CPP.search(content):
            flags = ["-nostdinc", "-undef", "-D__DTS__", "-Wfatal-errors", "-x", "assembler-with-cpp"]
            flags += [word for folder in folders for word in ("-I", str(folder))]
            content = _run("cpp", flags, content, folders, work, title)
        if not _FIRST.search(content):
            content = b"/dts-v1/;\n" + _marker(title) + content
        flags = ["-q", "-I", "dts", "-O", "dtb"]
        flags += [word for folder in folders for word in ("-i", str(folder))]
        return _run("dtc", flags, content, folders, work, title)


def _folders(own: Path) -> list[Path]:
    """Where included files may be: the file's folder; within a tree of sources, those above it and the bindings."""
    above = [own, *own.parents][:PARENTS_MAX]
    for place, top in enumerate(above):
        if (top / "include/dt-bindings").is_dir():
            return [*above[: place + 1], top / "include", top / "scripts/dtc/include-prefixes"]
    return [own]


def _run(
    tool: str, flags: Sequence[str], content: bytes, folders: Sequence[Path], work: Path, title: str
) -> bytes:
    """What a program makes of a text."""
    program = shutil.which(tool)
    if program is None:
        raise InputError(
            f"{title}: is a device tree's source, which needs {tool}: apt install {_PACKAGES[tool]} "
            f"(or take its compiled tree, .dtb)"
        )
    source, out, said = (work / f"{tool}.{end}" for end in ("in", "out", "said"))
    source.write_bytes(_marker(title) + content)
    script = f'{_LIMITS} && exec "$@" >"$0" 2>&1'
    command = ["sh", "-c", script, str(said), program, *flags, "-o", str(out), str(source)]
    try:
        with child_in_group(command) as process:
            process.communicate(timeout=TOOL_S)
    except subprocess.TimeoutExpired:
        raise InputError(f"{title}: {tool} takes longer than {TOOL_S} s") from None
    if process.returncode == 0 and out.is_file():
        return out.read_bytes()
    raise InputError(_why(said, process.returncode, (*folders, work), title, tool))


def _marker(title: str) -> bytes:
    """A line that says where the next one comes from."""
    name = "".join(letter if letter.isprintable() and letter not in '"\\' else "?" for letter in title)
    return f'#line 1 "{name}"\n'.encode()


def _why(said: Path, code: int, folders: Sequence[Path], title: str, tool: str) -> str:
    """The first error that a program told, on one line, with its place."""
    text = said.read_text("utf-8", "replace")[:_HEAD] if said.is_file() else ""
    if code == -signal.SIGXFSZ or "File size limit" in text:
        return f"{title}: {tool} makes more than {OUTPUT_BYTES_MAX >> 20} MiB of it"
    for folder in sorted(map(str, folders), key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
    errors = [line for line in text.splitlines() if _SAID.search(line)] or [f"ends with {code}"]
    line = " ".join(_SAID.sub("", errors[0], count=1).split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)[:300]
    return f"{line} ({tool})" if re.match(r"\S+:\d", line) else f"{title}: {line} ({tool})"
