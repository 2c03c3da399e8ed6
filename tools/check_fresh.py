"""Follows the README on an empty Debian, as an ordinary user: its packages, then `make demo` and `make test`.

    make check-fresh                          Debian 12 and 13, both commands: half an hour on two cores
    make check-fresh SUITES=bookworm          Debian 12 only
    make check-fresh COMMANDS="'make demo'"   other commands

Needs root and debootstrap. Debian comes from the archive that this computer's apt uses; how packages are reached (name
servers, proxies, certificates, indexes) is taken over from this computer as it is. Rust is Debian's own; only where
that is older than the sources allow (Debian 12), this computer's is taken over.
Nothing of the checkout is used but what is committed.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".build" / "fresh-debian"
SUITES = ["bookworm", "trixie"]
HERE = platform.machine()
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Debian's names."""
COMMANDS = ["make demo", "make test"]
RUST_TOO_OLD = {"bookworm"}
"""Where people install Rust from elsewhere."""
USER, HOME = "newcomer", "/home/newcomer"
RUST = "/opt/rust"
NETWORK = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/ssl/certs",
    "/usr/local/share/ca-certificates",
    "/etc/apt/apt.conf.d",
]
"""What says how packages are reached, wherever it exists."""

OF_NETWORK = re.compile(r"proxy|cert|ssl|_ca_|^pip_|^cargo_(http|net|registries|source)", re.IGNORECASE)
"""Variables that say the same; files and folders that they name are taken over, too."""


def run(*command: str | Path, quiet: bool = True) -> None:
    """Runs a command; what it says is shown if it fails."""
    done = subprocess.run([*map(str, command)], check=False, capture_output=quiet, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:] if quiet else ""
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{said}")


def archive() -> str:
    """The archive that apt uses here."""
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for source in filter(Path.is_file, sources):
        for pattern in (r"^URIs:\s*(\S+)", r"^deb\s+(?:\[[^]]*\]\s*)?(\S+)"):
            found = re.search(pattern, source.read_text(), re.MULTILINE)
            if found:
                return found[1]
    sys.exit("apt has no archive here")


def packages(readme: str) -> list[str]:
    """The packages that a README names first; those with which everything is built."""
    found = re.search(r"`apt\s+install\s+([^`]+)`", readme)
    names = found[1].split() if found else []
    if "make" not in names:
        sys.exit(
            f"README.md names no packages with which the project is built, but {' '.join(names) or 'none'}"
        )
    return names


def copy(source: Path, root: Path) -> None:
    """Takes a file or folder over, under the same name, links followed."""
    target = root / source.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore_dangling_symlinks=True)
    elif source.is_file():
        target.unlink(missing_ok=True)
        shutil.copy(source, target)


def environment() -> dict[str, str]:
    """Variables for commands there."""
    kept = {key: value for key, value in os.environ.items() if OF_NETWORK.search(key)}
    path = f"{RUST}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**kept, "PATH": path, "LANG": "C.UTF-8", "HOME": HOME, "USER": USER}


def inside(root: Path, command: str, *, user: bool) -> list[str]:
    """A command that runs there, in namespaces that take their mounts and processes with them.

    What the kernel shows of itself and terminals are there as on any computer; shared memory (/dev/shm) is not. Rust
    is there if it has a folder, and an ordinary user is in the clone of the checkout if there is one.
    """
    mounts = [
        f"mount -t proc proc {root}/proc",
        f"mount -t sysfs -o ro sysfs {root}/sys",
        f"mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts {root}/dev/pts",
    ]
    if (root / RUST.strip("/")).is_dir():
        mounts.append(f"mount --bind {toolchain()} {root}{RUST}")
    who = f"--userspec={USER}:{USER} " if user else ""
    variables = environment() if user else {**environment(), "HOME": "/root", "USER": "root"}
    assigned = " ".join(f"{key}={quote(value)}" for key, value in variables.items())
    clone = f"{HOME}/ampsched"
    there = f"cd {clone if (root / clone.strip('/')).is_dir() else HOME} && " if user else ""
    script = (
        f"{' && '.join(mounts)} && exec chroot {who}{root} env -i {assigned} sh -c {quote(there + command)}"
    )
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]


def toolchain() -> str:
    """The folder of this computer's Rust."""
    command = ["rustc", "--print", "sysroot"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def quote(text: str) -> str:
    """One word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def debian(suite: str, names: list[str], machine: str = HERE) -> Path:
    """An empty Debian with these packages and an ordinary user, for this or another architecture of computers."""
    architecture = ARCHITECTURES[machine]
    root = PLACE / f"{suite}-{architecture}"
    empty = root.with_name(f"{root.name}-empty")
    if not (empty / "made").exists():
        shutil.rmtree(empty, ignore_errors=True)
        run("debootstrap", f"--arch={architecture}", "--variant=minbase", suite, empty, archive())
        (empty / "made").touch()
    remove(root)
    run("cp", "-a", empty, root)
    named = [value for key, value in environment().items() if OF_NETWORK.search(key) and os.path.isabs(value)]
    for name in filter(os.path.exists, [*NETWORK, *named]):
        copy(Path(name), root)
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -y"
    run(*inside(root, f"apt-get update && {install} {' '.join(names)}", user=False))
    run("chroot", root, "useradd", "--create-home", USER)
    return root


def checkout(suite: str, more: Sequence[str] = ()) -> Path:
    """An empty Debian with the README's and more packages, a Rust that is new enough, and a clone of the checkout."""
    names = packages((ROOT / "README.md").read_text())
    is_too_old = suite in RUST_TOO_OLD
    root = debian(suite, [name for name in names if not (is_too_old and name == "cargo")] + [*more])
    if is_too_old:
        (root / RUST.strip("/")).mkdir()
    run("git", "clone", "--quiet", "--no-local", ROOT, root / HOME.strip("/") / "ampsched")
    run("chroot", root, "chown", "-R", f"{USER}:{USER}", HOME)
    return root


def remove(root: Path) -> None:
    """Removes a Debian."""
    run("rm", "-rf", "--one-file-system", root)


def need_root() -> None:
    """Stops where no Debian can be made."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.exit("ampsched: a fresh Debian needs root and debootstrap (Debian: apt install debootstrap)")


def need_emulation(machine: str) -> None:
    """Stops where programs of another architecture do not run."""
    if machine != HERE and not Path(f"/proc/sys/fs/binfmt_misc/qemu-{machine}").exists():
        sys.exit(
            f"ampsched: programs for {machine} do not run here (Debian: apt install qemu-user-static binfmt-support)"
        )


def attempt(root: Path, commands: list[str]) -> list[str]:
    """Runs commands in a Debian, one after the other; returns what is to be told of failures."""
    failed = []
    for command in commands:
        start = time.monotonic()
        code = subprocess.run(inside(root, command, user=True), check=False).returncode
        outcome = "passed" if code == 0 else f"exit code {code}"
        told = f"{root.name}: {command}: {outcome} in {time.monotonic() - start:.0f} s"
        print(told, flush=True)
        failed += [told] if code else []
    return failed


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "commands", nargs="*", default=COMMANDS, help="what is run there (make demo, make test)"
    )
    parser.add_argument("--suites", default=" ".join(SUITES), help="which versions of Debian")
    parser.add_argument("--packages", default="", help="packages beside the README's")
    arguments = parser.parse_args()
    need_root()
    failed = []
    for suite in arguments.suites.split():
        root = checkout(suite, arguments.packages.split())
        failed += attempt(root, arguments.commands)
        remove(root)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
