"""A copy of the checkout in which files may be changed and built without touching the original or its target folder."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Stamps of the Makefile (see there): the copy has the checkout's .venv.
STAMPS = ("tools", "venv", "libraries")
# Files that are older than what was built from another copy's version of them.
CHANGED_BY_AUTHORS = ("crates/policy/src/policies/mod.rs",)


@dataclass(frozen=True)
class Copy:
    """A copy with a git repository of its own, in which everything is committed."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """For commands in it. What an outer `make` has set is left out."""
        outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYO3_PYTHON", "CARGO_TARGET_DIR")
        return {
            key: value for key, value in os.environ.items() if key not in outer and not key.startswith("GIT_")
        }

    def git(self, *arguments: str) -> str:
        """What git prints."""
        own = ("-c", "user.name=author", "-c", "user.email=author@localhost", "-c", "commit.gpgsign=false")
        command = ["git", *own, "-c", "core.hooksPath=/dev/null", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment(), check=True, capture_output=True, text=True
        )
        return done.stdout


def copy(name: str) -> Copy:
    """Copies all files that git knows or would know into ``.build/NAME/checkout``.

    What is built goes to ``.build/NAME/target``, which is kept from one copy to the next: cargo takes path and time of
    a source for its identity, so a folder shared with the original would leave the copy's policies in the original's
    programs. What others wrote is the same everywhere, and taken from the original's target folder at first.
    """
    where = ROOT / ".build" / name
    made, target = Copy(where / "checkout"), where / "target"
    shutil.rmtree(made.folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for file in filter(None, listed.stdout.split("\0")):
        if (ROOT / file).is_file():
            (made.folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, made.folder / file)
    for file in CHANGED_BY_AUTHORS:
        (made.folder / file).touch()
    made.git("init", "--quiet")
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "The checkout")
    (made.folder / ".venv").symlink_to(ROOT / ".venv")
    (made.folder / "target").symlink_to(target)
    (made.folder / ".git/info/exclude").write_text("/.venv\n/target\n")
    (made.folder / ".build").mkdir()
    for stamp in STAMPS:
        (made.folder / ".build" / stamp).touch()
    if not target.exists():
        for profile in ("debug", "try"):
            _seed(ROOT / "target" / profile, target / profile)
    return made


def _seed(source: Path, target: Path) -> None:
    """Copies what cargo has built of crates that others wrote."""
    for part in (".fingerprint", "build", "deps"):
        (target / part).mkdir(parents=True, exist_ok=True)
        for path in (source / part).glob("*") if source.exists() else ():
            own = path.name.removeprefix("lib").startswith("ampsched")
            if path.is_dir() and not own:
                shutil.copytree(path, target / part / path.name, symlinks=True)
            elif path.suffix in (".rlib", ".rmeta", ".so", ".d") and not own:
                shutil.copy2(path, target / part / path.name)
