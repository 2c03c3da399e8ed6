"""What goes into a guest so that the product runs there: Python, the package, and what that imports."""

import os
import re
import sys
import sysconfig
import tomllib
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import ampsched
from ampsched.vm.error import VmError
from ampsched.vm.exact import Done, Exact, Work, run

ROOT = Path(__file__).resolve().parents[3]
INSIDE = Path(__file__).with_name("inside.py")
HOME = Path("/proving")
LEFT_OUT = {
    "site-packages",
    "test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "ensurepip",
    "lib2to3",
    "__pycache__",
}
"""Of the standard library: what nothing of ours imports."""
MEMORY_MB = 6000
LIMIT_S = 3 * 3600.0
TOOLS = (Path("/usr/bin/taskset"), Path("/usr/bin/env"))


def interpreter() -> Path:
    """The interpreter itself, not that of an environment."""
    return Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")


def standard_library() -> tuple[list[Path], dict[Path, Path]]:
    """Its files and folders, and those of its modules that may be executed, whose interpreters need not be here."""
    found = [
        each for each in sorted(Path(sysconfig.get_paths()["stdlib"]).iterdir()) if each.name not in LEFT_OUT
    ]
    programs = [each for each in found if each.is_file() and os.access(each, os.X_OK)]
    return [each for each in found if each not in programs], {each: each for each in programs}


def requirements() -> list[str]:
    """The distributions that the package needs, and those that these need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found: dict[str, None] = {}
    left = list(project["dependencies"])
    while left:
        wanted = left.pop()
        name = re.match(r"[\w.-]+", wanted)
        if name is None or "extra" in wanted or name[0].lower() in found:
            continue
        try:
            left += metadata.requires(name[0]) or []
        except metadata.PackageNotFoundError:
            continue  # for another system or version
        found[name[0].lower()] = None
    return sorted(found)


def libraries() -> list[Path]:
    """Their folders and modules."""
    found = set()
    for name in requirements():
        distribution = metadata.distribution(name)
        tops = {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}
        found |= {Path(str(distribution.locate_file(top))) for top in tops}
    return sorted(found)


def run_python(
    exact: Exact, words: Sequence[str], *, placed: Mapping[Path, Path] | None = None, out: Path | None = None
) -> Done:
    """Runs Python, which finds the package, in a guest whose kinds of cores files tell, as computers' do.

    Args:
        exact: The machine.
        words: Python's arguments.
        placed: Further files of this computer by their places there.
        out: Gets the files that are left in `HOME`.

    Raises:
        VmError: It ends with an error, or the machine does not work.
    """
    package, python = Path(ampsched.__file__).parent, str(interpreter())
    library, modules = standard_library()
    clusters = {core: cluster for cluster in exact.clusters() for core in cluster.cores}
    khz = ",".join(str(round(clusters[core].speed)) for core in sorted(clusters))
    paths = dict.fromkeys(str(each.parent) for each in [package, *libraries()])
    work = Work(
        [python, "-I", "-S", str(INSIDE), khz, "--", python, *words],
        files=[*library, *libraries(), package, INSIDE, *TOOLS],
        variables={"PYTHONPATH": ":".join(paths), "HOME": "/root", "COLUMNS": "160", "PYTHONHASHSEED": "0"},
        cwd=HOME,
        placed={**modules, **(placed or {})},
        path="/usr/bin:/bin",
    )
    done = run(exact, work, out=out, limit_s=LIMIT_S, echo=lambda text: print(text, end="", flush=True))
    if done.code != 0:
        last = (done.output.strip() or done.console.strip()).splitlines()[-5:]
        raise VmError(f"{words[0]}: {'stopped at its limit' if done.timed_out else '; '.join(last)}")
    return done
