"""Packages of Debian's archive, fetched by apt into a cache and unpacked there, without root; nothing is installed.

apt has its state, its cache and its sources to itself, takes the archive from where this computer's own apt does,
and believes nobody but Debian's keys. Which packages there are and their versions is in ``packages.toml``.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ampsched.files import temporary_folder
from ampsched.vm.error import VmError

TABLE = Path(__file__).with_name("packages.toml")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
VERIFIED = "verified.json"
"""What was unpacked into a folder: names of packages' files, sizes in bytes, SHA-256 sums. apt has verified them."""
FETCH_S = 900
SUITES = ("oldstable", "stable", "testing", "unstable", "sid", "bookworm", "trixie", "forky")
"""Suites of Debian's main archive by which it is told from others, such as that of security updates."""
ARCHITECTURE = "amd64"
"""Of the computers that can run what is fetched."""


@dataclass(frozen=True)
class Selection:
    """Packages that are fetched and unpacked together.

    Attributes:
        name: Name in the table.
        suites: Suites of the archive in which apt looks for them.
        packages: Version by name; a name may end in ``:`` and an architecture.
        fleeting: The same of packages that the archive drops long before the others, and without which one can do.
        dependencies: Whether what they depend on is fetched, too.
        keep: Glob patterns of the files that are kept; all of them if empty.
    """

    name: str
    suites: tuple[str, ...]
    packages: Mapping[str, str]
    dependencies: bool = False
    keep: tuple[str, ...] = ()
    fleeting: Mapping[str, str] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """Changes whenever something else would be fetched."""
        packages = sorted({**self.packages, **self.fleeting}.items())
        text = json.dumps([self.suites, packages, self.dependencies, self.keep])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def pins(self) -> list[str]:
        """What apt is asked for."""
        return pins(self.packages)


def pins(packages: Mapping[str, str]) -> list[str]:
    """Versions of packages as apt wants them."""
    return [f"{name}={version}" for name, version in packages.items()]


def selections(table: Path = TABLE) -> dict[str, Selection]:
    """All that can be fetched, by name."""
    rows = tomllib.loads(table.read_text("utf-8"))
    return {name: _selection(name, row) for name, row in rows.items()}


def _selection(name: str, row: Mapping[str, object]) -> Selection:
    packages, fleeting = row["packages"], row.get("fleeting", {})
    assert isinstance(packages, dict)
    assert isinstance(fleeting, dict)
    return Selection(
        name,
        suites=_words(row["suites"]),
        packages=packages,
        dependencies=bool(row.get("dependencies", False)),
        keep=_words(row.get("keep", ())),
        fleeting=fleeting,
    )


def _words(value: object) -> tuple[str, ...]:
    assert isinstance(value, list | tuple)
    return tuple(map(str, value))


def cache_folder() -> Path:
    """Where everything is kept: ``$AMPSCHED_VM_CACHE``, or ``ampsched/vm`` in the user's cache folder."""
    given = os.environ.get("AMPSCHED_VM_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(base) / "ampsched" / "vm"


@dataclass(frozen=True)
class Archive:
    """Debian's archive as far as the cache has it, and the way to the rest.

    Attributes:
        cache: Folder in which everything is kept.
        mirror: Address of the archive; by default ``$AMPSCHED_VM_MIRROR``, or that from which this computer's own
            apt has Debian.
    """

    cache: Path = field(default_factory=cache_folder)
    mirror: str | None = field(default_factory=lambda: os.environ.get("AMPSCHED_VM_MIRROR") or None)

    def folder(self, name: str) -> Path:
        """The folder with the unpacked files of a selection, which are fetched if the cache does not have them.

        Raises:
            VmError: There is no such selection; apt, Debian's keys or a mirror are missing; or a package cannot be
                fetched.
        """
        known = selections()
        if name not in known:
            raise VmError(f"there are no packages named {name} (known: {', '.join(known)})")
        return self.unpacked(known[name])

    def unpacked(self, selection: Selection) -> Path:
        """The same of a selection that need not be in the table.

        Raises:
            VmError: As for those of the table.
        """
        with contextlib.suppress(FileNotFoundError):
            self.cache.stat()  # says best that links go in a circle
        folder = Path(os.path.realpath(self.cache)) / f"{selection.name}-{selection.fingerprint()}"
        if not (folder / VERIFIED).exists():
            self._fetch(selection, folder)
        return folder

    def _fetch(self, selection: Selection, folder: Path) -> None:
        _check_tools(selection.name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(".fetch-", folder.parent) as work:
            apt = _Apt(work, selection)
            apt.configure(self.mirror or own_mirror())
            packages = apt.download()
            unpacked = work / "unpacked"
            unpacked.mkdir()
            for package in packages:
                apt.call(["dpkg", "-x", str(package), str(unpacked)])
            drop_all_but(selection.keep, unpacked)
            verified = {package.name: _sum(package) for package in packages}
            (unpacked / VERIFIED).write_text(json.dumps(verified, indent=1, sort_keys=True) + "\n", "utf-8")
            if (folder / VERIFIED).exists():
                return  # somebody else was faster, and uses it
            shutil.rmtree(folder, ignore_errors=True)  # it was not finished
            try:
                unpacked.rename(folder)
            except OSError:
                if not (folder / VERIFIED).exists():
                    raise


def _check_tools(what: str) -> None:
    for needed, hint in (
        (shutil.which("apt-get"), "Debian's apt"),
        (shutil.which("dpkg"), "Debian's dpkg"),
        (KEYRING.exists(), f"Debian's keys {KEYRING} (apt install debian-archive-keyring)"),
    ):
        if not needed:
            raise VmError(f"{what} cannot be fetched from Debian's archive: needs {hint}")


def _sum(package: Path) -> dict[str, object]:
    content = package.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def own_mirror() -> str:
    """The address from which this computer's own apt has Debian's archive, by what apt says that it would fetch.

    Raises:
        VmError: Its sources name none.
    """
    with temporary_folder("ampsched-apt-") as name:
        # A state of its own: without root, the system's cannot be locked.
        options = ["-o", f"Dir::State={name}", "-o", f"Dir::State::lists={name}", "-o", f"Dir::Cache={name}"]
        (name / "partial").mkdir()
        said = subprocess.run(  # noqa: S603
            ["apt-get", "update", "--print-uris", *options],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    mirror = mirror_of(said)
    if mirror is None:
        raise VmError(
            "this computer's apt sources name no archive of Debian: name one (AMPSCHED_VM_MIRROR=URL)"
        )
    return mirror


def mirror_of(uris: str) -> str | None:
    """The first address of Debian's main archive in what ``apt-get update --print-uris`` has said."""
    for address, suite in re.findall(r"^'(\S+)/dists/([^/\s]+)/InRelease'", uris, re.MULTILINE):
        if suite in SUITES:
            return str(address)
    return None


def drop_all_but(patterns: Sequence[str], folder: Path) -> None:
    """Removes files and links in a folder that match none of some glob patterns, and folders that are empty then."""
    if not patterns:
        return
    kept = {path for pattern in patterns for path in folder.glob(pattern)}
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in kept and kept.isdisjoint(path.parents):
            path.unlink()


@dataclass(frozen=True)
class _Apt:
    """An apt of our own in a folder that is removed afterwards."""

    work: Path
    selection: Selection

    def configure(self, mirror: str) -> None:
        """Writes its settings and its sources, and makes its folders."""
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.work / name).mkdir(parents=True)
        (self.work / "status").touch()
        (self.work / "sources.list").write_text("".join(self._sources(mirror)), "utf-8")
        (self.work / "apt.conf").write_text(apt_configuration(self.work, self._architectures()), "utf-8")

    def _sources(self, mirror: str) -> Iterator[str]:
        signed = f"signed-by={KEYRING} arch={','.join(self._architectures())}"
        for suite in self.selection.suites:
            yield f"deb [{signed}] {mirror} {suite} main\n"

    def _architectures(self) -> list[str]:
        named = {name.partition(":")[2] or ARCHITECTURE for name in self.selection.packages}
        return [ARCHITECTURE, *sorted(named - {ARCHITECTURE})]

    def download(self) -> list[Path]:
        """Fetches the packages; apt checks their sizes and sums against the index, and the index's signature."""
        self.apt("update")
        if self.selection.dependencies:
            self.apt("install", "--download-only", "--yes", "--no-install-recommends", *self.selection.pins())
            return sorted((self.work / "cache" / "archives").glob("*.deb"))
        self.apt("download", *self.selection.pins())
        for pin in pins(self.selection.fleeting):
            if self._has(pin):
                self.apt("download", pin)
        return sorted(self.work.glob("*.deb"))

    def _has(self, pin: str) -> bool:
        command = ["apt-cache", "-c", str(self.work / "apt.conf"), "show", pin]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603

    def apt(self, *words: str) -> None:
        self.call(["apt-get", "-qq", "-c", str(self.work / "apt.conf"), *words])

    def call(self, command: list[str]) -> None:
        try:
            done = subprocess.run(  # noqa: S603 (a command of ours)
                command,
                cwd=self.work,
                capture_output=True,
                text=True,
                timeout=FETCH_S,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired:
            raise VmError(self._failure(f"{command[0]} took more than {FETCH_S} s")) from None
        if done.returncode or "\nW: Failed" in f"\n{done.stderr}":
            raise VmError(self._failure(first_reason(done.stderr)))

    def _failure(self, reason: str) -> str:
        wanted = " ".join(self.selection.pins())
        return f"{self.selection.name} cannot be fetched from Debian's archive ({wanted}): {reason}"


def first_reason(said: str) -> str:
    """The first error or warning in what apt has said, in one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("E:", "W:"))] or lines[-1:]
    return re.sub(r"^[EW]: ", "", wrong[0]) if wrong else "no reason given"


def apt_configuration(work: Path, architectures: Sequence[str]) -> str:
    """Settings that keep apt away from the system's lists, sources, packages and hooks; proxies stay the computer's."""
    settings = {
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Cache::archives": work / "cache" / "archives",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Architecture": ARCHITECTURE,
        # As root, apt would become a user who may not write here.
        "APT::Sandbox::User": "root",
        "APT::Get::AllowUnauthenticated": "false",
        "Acquire::AllowInsecureRepositories": "false",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Retries": "3",
    }
    hooks = (
        "APT::Update::Post-Invoke",
        "APT::Update::Post-Invoke-Success",
        "DPkg::Post-Invoke",
        "DPkg::Pre-Install-Pkgs",
    )
    lines = [f"#clear {name};" for name in (*hooks, "APT::Architectures", "APT::Default-Release")]
    lines += [f'{name} "{value}";' for name, value in settings.items()]
    lines += [f'APT::Architectures:: "{name}";' for name in architectures]
    return "\n".join(lines) + "\n"
