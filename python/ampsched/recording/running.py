"""Which processes a user means that run already: by number, by systemd unit or by control group."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ampsched._core import InputError
from ampsched.files import shown

PROC = Path("/proc")
MEMBERS = "cgroup.procs"
UNIT_KINDS = (".service", ".scope", ".slice", ".socket", ".mount", ".swap")
_KERNEL_THREAD = 0x0020_0000
"""PF_KTHREAD: include/linux/sched.h."""


@dataclass(frozen=True, slots=True)
class Target:
    """Processes that run.

    Attributes:
        what: The option that names them, for messages.
        name: What the recording is called.
        pids: The processes that are wanted, with all below them; those of the control group if there is one.
        folder: The control group.
    """

    what: str
    name: str
    pids: tuple[int, ...] = ()
    folder: Path | None = None

    def processes(self) -> list[int]:
        """Those that are there now, in order: never this process, or threads of the kernel.

        Raises:
            InputError: The control group cannot be read.
        """
        found = _below(self.pids) if self.folder is None else _members(self.folder)
        return [pid for pid in found if pid != os.getpid() and _is_program(pid)]


def of_pids(pids: Sequence[str]) -> Target:
    """Processes by their numbers.

    Raises:
        InputError: One is no number of a process, or there is no such process.
    """
    found = [_checked(text) for text in pids]
    if not found:
        raise InputError("--pid: which process? (such as --pid 123,456)")
    return Target(f"--pid {','.join(map(str, found))}", _name(found[0]), tuple(dict.fromkeys(found)))


def of_cgroup(path: Path, mounts: Sequence[Path] | None = None) -> Target:
    """The processes of a control group and of those below it.

    Args:
        path: Its folder, or its path below where control groups are mounted.
        mounts: These places; those of the kernel by default.

    Raises:
        InputError: There is no such control group.
    """
    what = f"--cgroup {shown(path)}"
    if mounts is None:
        mounts = cgroup_mounts()
    below = [] if path == Path() else [mount / str(path).lstrip("/") for mount in mounts]
    for folder in [path.absolute(), *below]:
        try:
            if (folder / MEMBERS).is_file():
                return Target(what, shown(folder.name) or "cgroup", folder=folder)
        except (OSError, ValueError) as error:
            raise InputError(f"{what}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    where = f", below {shown(mounts[0])}" if mounts else "; none is mounted here"
    raise InputError(f"{what}: is no control group (a folder with a file {MEMBERS}{where})")


def of_unit(name: str, mounts: Sequence[Path] | None = None) -> Target:
    """The processes of a systemd unit.

    Args:
        name: The unit; ``.service`` may be left out.
        mounts: Where control groups are mounted; by default where the kernel says.

    Raises:
        InputError: There is no such unit, or it does not run.
    """
    if not re.fullmatch(r"[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*", name):
        raise InputError(f"--unit {shown(name)}: is no name of a unit (such as nginx.service)")
    unit = name if name.endswith(UNIT_KINDS) else f"{name}.service"
    what = f"--unit {unit}"
    if mounts is None:
        mounts = cgroup_mounts()
    told = _told_by_systemd(unit)
    group = told.get("ControlGroup", "").lstrip("/")
    folders = [mount / group for mount in mounts] if group else []
    found = next((folder for folder in folders if (folder / MEMBERS).is_file()), None)
    if (
        group or told.get("LoadState") != "loaded"
    ):  # else a container's would be taken for the one that does not run
        found = found or _group_called(unit, what, mounts)
    if found is None:
        raise InputError(f"{what}: {_why_no_unit(told)}")
    return Target(what, unit, folder=found)


def cgroup_mounts() -> list[Path]:
    """Where control groups are mounted: the unified hierarchy first, then systemd's, then the others."""
    try:
        lines = (PROC / "self/mounts").read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    rows = [line.split() for line in lines]
    rows = [row for row in rows if len(row) > 3 and row[2] in (b"cgroup2", b"cgroup")]
    rows.sort(key=lambda row: (row[2] != b"cgroup2", b"name=systemd" not in row[3]))
    return [Path(os.fsdecode(row[1])) for row in rows]


def _told_by_systemd(unit: str) -> dict[str, str]:
    """What systemd says of a unit; nothing if it does not run here."""
    program = shutil.which("systemctl")
    if program is None:
        return {}
    command = [program, "show", "--property=LoadState,ActiveState,ControlGroup", "--", unit]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, timeout=30, check=False)  # noqa: S603 (its own program)
        if done.returncode == 0:
            lines = os.fsdecode(done.stdout).splitlines()
            return {key: value for key, _, value in (line.partition("=") for line in lines)}
    return {}


def _group_called(unit: str, what: str, mounts: Sequence[Path]) -> Path | None:
    """The control group with the name of a unit, as those of users have that the system's own systemd does not know.

    Raises:
        InputError: Several are called so.
    """
    for mount in mounts:
        found = [Path(folder) for folder, *_ in os.walk(mount) if Path(folder).name == unit]
        if len(found) > 1:
            names = ", ".join(shown(folder) for folder in found)
            raise InputError(f"{what}: several are called so (name one of them with --cgroup: {names})")
        if found:
            return found[0]
    return None


def _why_no_unit(told: dict[str, str]) -> str:
    if not told:
        return "systemd does not run here, and no control group is called so (use --pid or --cgroup)"
    if told.get("LoadState") == "not-found":
        return "there is no such unit (see: systemctl list-units)"
    return f"does not run, it is {told.get('ActiveState') or 'inactive'} (start it first)"


def _checked(text: str) -> int:
    """A process that runs a program.

    Raises:
        InputError: It is none.
    """
    what = f"--pid {shown(text)}"
    if not (text.isascii() and text.isdigit()) or not 0 < len(text.lstrip("0")) < 10:
        raise InputError(f"{what}: is no number of a process")
    pid = int(text)
    group = _status(pid, "Tgid")
    if group is None:
        raise InputError(f"{what}: there is no such process")
    if int(group) != pid:
        raise InputError(f"{what}: is a thread of process {group} (--pid {group} records all of its threads)")
    if pid == os.getpid():
        raise InputError(f"{what}: is the recorder itself")
    fields = _fields(pid)
    if fields is None or _is_over(pid, fields):
        raise InputError(f"{what}: has ended")
    if int(fields[6]) & _KERNEL_THREAD:
        raise InputError(f"{what}: is a thread of the kernel, which is no program")
    return pid


def _read(path: Path) -> bytes | None:
    """What the kernel tells of a process; None if it is gone.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _status(pid: int, key: str) -> str | None:
    text = _read(PROC / f"{pid}/status")
    lines = [] if text is None else text.decode(errors="replace").splitlines()
    return next((line.split()[1] for line in lines if line.startswith(f"{key}:")), None)


def _fields(pid: int) -> list[str] | None:
    """Of a process's ``stat`` all behind its name: state, parent, ... (proc_pid_stat(5)); None if it is gone."""
    text = _read(PROC / f"{pid}/stat")
    return None if text is None else text.rpartition(b")")[2].decode().split()


def _is_over(pid: int, fields: Sequence[str]) -> bool:
    """Whether all of a process's threads have ended, and only nobody has waited for it."""
    return fields[0] in "ZX" and len(threads_of(pid)) <= 1


def _is_program(pid: int) -> bool:
    fields = _fields(pid)
    return fields is not None and not int(fields[6]) & _KERNEL_THREAD and not _is_over(pid, fields)


def threads_of(pid: int) -> list[int]:
    """The threads of a process; none if it is gone."""
    try:
        return [int(thread.name) for thread in (PROC / f"{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _name(pid: int) -> str:
    text = _read(PROC / f"{pid}/comm") or b""
    return shown(os.fsdecode(text.removesuffix(b"\n"))) or str(pid)


def command_of(pid: int) -> list[str]:
    """What a process has executed, with its arguments."""
    words = (_read(PROC / f"{pid}/cmdline") or b"").removesuffix(b"\0").split(b"\0")
    return [shown(os.fsdecode(word)) for word in words]


def _below(pids: Iterable[int]) -> list[int]:
    """Processes, and all that descend from them."""
    children: dict[int, list[int]] = {}
    for pid in [int(each.name) for each in PROC.iterdir() if each.name.isdigit()]:
        if (fields := _fields(pid)) is not None:
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    open_ = list(reversed(list(pids)))
    while open_:
        pid = open_.pop()
        if pid not in found:
            found.append(pid)
            open_ += reversed(children.get(pid, []))
    return found


def _members(folder: Path) -> list[int]:
    """Processes of a control group and of those below it.

    Raises:
        InputError: It cannot be read.
    """
    found: set[int] = set()

    def failed(error: OSError) -> None:
        if error.errno not in (errno.ENOENT, errno.ENODEV):  # it was removed meanwhile
            raise InputError(f"{shown(str(error.filename))}: cannot be read: {error.strerror}")

    for each, *_ in os.walk(folder, onerror=failed):
        for name in (MEMBERS, "cgroup.threads"):
            try:
                found.update(int(word) for word in Path(each, name).read_bytes().split())
                break
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:  # the group has threads only (cgroup.type)
                    failed(error)
                    break
            except ValueError:
                raise InputError(f"{shown(each)}/{name}: is no list of processes") from None
    return sorted(found - {0})
