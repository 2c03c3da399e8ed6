"""A kernel with sched_ext from Debian, unpacked into a cache; nothing is installed.

Debian's trixie-backports kernel has SCHED_CLASS_EXT and BTF; trixie's own 6.12 and bookworm's backports have no SCHED_CLASS_EXT, and
backports' 7.2 refuses sched_ext schedulers (malformed BTF of its kfuncs). The version is pinned for that reason.
"""

import os
import shutil
import subprocess
from pathlib import Path

from ampsched.vm.error import VmError

KERNEL_RELEASE = "6.18.15+deb13-cloud-amd64"
PACKAGE = f"linux-image-{KERNEL_RELEASE}"
VERSION = "6.18.15-1~bpo13+1"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE = "trixie-backports"
FETCH_S = 300


def cache_folder() -> Path:
    """Where kernels are kept: ``$AMPSCHED_VM_CACHE``, or ``ampsched/vm`` in the user's cache folder."""
    given = os.environ.get("AMPSCHED_VM_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(base) / "ampsched" / "vm"


def fetch_kernel(cache: Path | None = None) -> Path:
    """Returns the kernel image, fetched by apt from Debian's archive if the cache does not have it.

    Args:
        cache: The folder in which to keep it; :func:`cache_folder` by default.

    Raises:
        VmError: apt or Debian's keys are missing, or the download fails.
    """
    folder = (cache or cache_folder()).resolve()
    image = folder / f"vmlinuz-{KERNEL_RELEASE}"
    if image.exists():
        return image
    for needed, hint in (
        (shutil.which("apt-get"), "apt install apt"),
        (KEYRING.exists(), "apt install debian-archive-keyring"),
    ):
        if not needed:
            raise VmError(
                f"the kernel {KERNEL_RELEASE} cannot be fetched: needs Debian's apt and keys ({hint})"
            )
    apt = _apt_options(folder / "apt")
    _call(["apt-get", *apt, "update"], folder)
    _call(["apt-get", *apt, "download", f"{PACKAGE}={VERSION}"], folder)
    package = next(folder.glob(f"{PACKAGE}_*.deb"))
    _call(["dpkg", "-x", str(package), str(folder / "unpacked")], folder)
    for name in ("config", "System.map"):
        shutil.copy(folder / "unpacked" / "boot" / f"{name}-{KERNEL_RELEASE}", folder)
    partial = image.with_suffix(".partial")
    shutil.copy(folder / "unpacked" / "boot" / image.name, partial)
    partial.rename(image)
    shutil.rmtree(folder / "unpacked")
    package.unlink()
    return image


def _apt_options(apt: Path) -> list[str]:
    """Options that keep apt away from the system's own lists, sources and packages."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    source = f"deb [signed-by={KEYRING}] http://deb.debian.org/debian {SUITE} main\n"
    (apt / "sources.list").write_text(source, "utf-8")
    settings = {
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt / "cache",
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Architecture": "amd64",
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _call(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603 (a command of ours)
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise VmError(f"{command[0]} took more than {FETCH_S} s while fetching {PACKAGE}") from None
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise VmError(f"{PACKAGE} {VERSION} cannot be fetched: {command[0]}: {reason[0]}")
