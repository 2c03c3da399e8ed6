"""ThreadSanitizer: which toolchain can build with it, the rounds built with it, and whether it sees a race.

The standard library has to be built with it, too, or else everything that it synchronizes looks like a race. That takes
the sources of the standard library, which rustup installs with `rustup component add rust-src`, for any toolchain: the
one in use is taken if it has them, and otherwise the first one that has.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from workers import ROOT, cargo, environment, host, target_dir

PROGRAM = "attack-rounds"
RACE_EXIT = 66
"""Exit code of a program that ThreadSanitizer has stopped; see `workers.environment`."""


class Missing(Exception):
    """What ThreadSanitizer needs and this computer does not have."""


@dataclass(frozen=True)
class Toolchain:
    """A Rust toolchain; without a name, the one in use."""

    name: str
    version: str
    sysroot: Path

    @property
    def serves(self) -> bool:
        """Whether it has the standard library's sources and the sanitizer's library."""
        of_rust = self.sysroot / "lib/rustlib"
        libraries = (of_rust / host() / "lib").glob("librustc-*_rt.tsan.a")
        return (of_rust / "src/rust/library/std").exists() and any(libraries)


def chosen(name: str) -> dict[str, str]:
    """The variable that makes rustup use a toolchain."""
    return {"RUSTUP_TOOLCHAIN": name} if name else {}


def told(*command: str, toolchain: str = "") -> str:
    """What a command prints; nothing if it fails."""
    variables = {**os.environ, **chosen(toolchain)}
    try:
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def toolchain() -> Toolchain:
    """The first toolchain that serves.

    Raises:
        Missing: there is none.
    """
    others = [line.split()[0] for line in told("rustup", "toolchain", "list").splitlines()]
    for name in ["", *others]:
        sysroot = told("rustc", "--print", "sysroot", toolchain=name)
        found = Toolchain(name, told("rustc", "--version", toolchain=name), Path(sysroot))
        if sysroot and found.serves:
            return found
    raise Missing(
        "no installed Rust toolchain has the standard library's sources (`rustup component add rust-src`) "
        "and ThreadSanitizer's library"
    )


def build() -> tuple[Path, Toolchain]:
    """Builds the rounds and everything below them, down to the standard library, with ThreadSanitizer.

    Raises:
        Missing: no toolchain can.
    """
    used, target = toolchain(), target_dir() / "tsan"
    variables = {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": "-Zsanitizer=thread", **chosen(used.name)}
    what = ["-p", "ampsched-attack", "--bin", PROGRAM, "-Zbuild-std", "--target", host()]
    cargo(*what, "--target-dir", str(target), environment=variables)
    return target / host() / "attack" / PROGRAM, used


def sees_races(program: Path) -> bool:
    """Whether it stops a program whose tasks write one place in memory at the same time."""
    command = [str(program), "--race"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    return done.returncode == RACE_EXIT and "data race" in done.stderr
