"""What the scripts of this folder need in a guest beside themselves: Python, a compiler, tools, tables of users."""

import encodings
import re
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import cache_from_source
from modulefinder import ModuleFinder
from pathlib import Path

FOLDER = Path(__file__).parent
TOOLS = ("bash", "sh", "sort", "cmp", "gzip", "xz", "taskset", "chrt")
PLACES = (Path("/bin/sh"), Path("/etc/passwd"), Path("/etc/group"))
"""What programs name by its place."""
COMPILER = ("gcc", "as", "ld")
COMPILER_PARTS = ("cc1", "collect2")
LINKER_PLUGIN = "liblto_plugin.so"


@cache
def belongings() -> tuple[Path, ...]:
    """Files, folders and programs of this computer that all scripts need."""
    scripts = sorted(FOLDER.glob("guest*.py"))
    return (*scripts, *_modules(scripts), *map(_tool, TOOLS), *PLACES)


@cache
def compiler(source: str) -> tuple[Path, ...]:
    """The parts of gcc, and what it reads when it compiles a program in C."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "source.c")
        file.write_text(source)
        headers = _gcc("-O2", "-M", str(file)).replace("\\\n", " ").split()[2:]
        linked = re.findall(
            r"^\(?(/[^()\s]+)", _gcc("-Wl,--trace", "-o", f"{folder}/out", str(file)), re.MULTILINE
        )
    parts = [_gcc(f"-print-prog-name={part}").strip() for part in COMPILER_PARTS]
    plugin = _gcc(f"-print-file-name={LINKER_PLUGIN}").strip()
    found = map(Path, dict.fromkeys([*parts, plugin, *headers, *linked]))
    return (*map(_tool, COMPILER), *(file for file in found if file.exists()))


def _tool(name: str) -> Path:
    found = shutil.which(name)
    assert found is not None, f"{name} is missing"
    return Path(found)


def _modules(scripts: list[Path]) -> list[Path]:
    """What the scripts import of Python's own library, compiled where it has been."""
    finder = ModuleFinder()
    for script in scripts:
        finder.run_script(str(script))
    files = [Path(module.__file__) for module in finder.modules.values() if module.__file__]
    compiled = [Path(cache_from_source(file)) for file in files if file.suffix == ".py"]
    # Which encodings are imported is decided when Python starts.
    return [*files, *(file for file in compiled if file.exists()), Path(encodings.__file__).parent]


def _gcc(*arguments: str) -> str:
    return subprocess.run(["gcc", *arguments], capture_output=True, text=True, check=True).stdout
