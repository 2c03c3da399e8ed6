"""Virtual CPUs of unequal speed, by CPU quotas for the threads that run them."""

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ampsched.vm.error import VmError

CGROUPS = Path("/sys/fs/cgroup")
GROUP = "ampsched-vm-"
"""How names of groups begin."""
LEFT_S = 60.0
"""Age after which an empty group is taken for one that a killed run has left."""
BUSY_S = 1.0
"""Longest time that a group stays busy after its last thread has ended."""


@dataclass(frozen=True)
class CoreShape:
    """A kind of virtual core.

    Attributes:
        count: Number of cores.
        percent: Share of a host core that each may use at most.
    """

    count: int
    percent: float


@dataclass(frozen=True)
class Shape:
    """The cores of a virtual machine; big ones come first.

    Quotas below 1 ms per period do not bind, and a sum above the host's capacity makes them meaningless. The defaults,
    40 % and 16 % of a core per 100 ms, gave a measured big:little ratio of 2.48 +- 0.03 on a busy host with two cores.

    Attributes:
        big: The fast cores.
        little: The slow cores.
        period_us: Period of the quotas in us: within one a core runs at the host's full speed and then not at all.
        steady: Cores use up their share even while they idle. Otherwise one that was idle is as fast as the host's
            until its quota is used up, whatever its kind, which makes programs that wait a lot too fast.
        batch: No core loses its host core because another one wakes up, perhaps while it holds a lock for which all
            others wait; real cores never do. The price: kernels under emulation fail more often while they change their
            own code.
    """

    big: CoreShape = CoreShape(2, 40)
    little: CoreShape = CoreShape(2, 16)
    period_us: int = 100_000
    steady: bool = False
    batch: bool = False

    def __post_init__(self) -> None:
        for name, kind in (("big", self.big), ("little", self.little)):
            quota_us = kind.percent * self.period_us / 100
            if kind.count < 0 or (kind.count > 0 and not 1000 <= quota_us <= self.period_us):
                raise VmError(
                    f"{name} cores {kind.count}:{kind.percent:g} % are not possible: "
                    f"each needs between {100_000 / self.period_us:g} and 100 % of a host core"
                )
        if self.cores == 0:
            raise VmError("a virtual machine needs a core")

    @property
    def cores(self) -> int:
        """Number of virtual cores."""
        return self.big.count + self.little.count

    def quotas_us(self) -> list[int]:
        """CPU time per period of each core, in us."""
        kinds = (self.big, self.little)
        return [round(kind.percent * self.period_us / 100) for kind in kinds for _ in range(kind.count)]


@contextmanager
def cpu_groups(name: str, root: Path = CGROUPS) -> Iterator["CpuGroups"]:
    """CPU control groups of this run; removed, their threads back in their parent, at the end.

    Args:
        name: Name of the group.
        root: Where control groups are mounted.

    Raises:
        VmError: There is no CPU controller, or it may not be used.
    """
    groups = CpuGroups.find(name, root)
    groups.remove_left()
    try:
        yield groups
    finally:
        groups.remove()


@dataclass
class CpuGroups:
    """One control group per virtual core below a group of our own.

    Attributes:
        folder: Our own group.
        unified: Version 2 of control groups; else version 1.
    """

    folder: Path
    unified: bool

    @classmethod
    def find(cls, name: str, root: Path) -> "CpuGroups":
        """Where the CPU controller is mounted, version 1 or 2."""
        if (root / "cpu" / "cpu.cfs_quota_us").exists():
            return cls(root / "cpu" / name, unified=False)
        controllers = root / "cgroup.controllers"
        if controllers.exists() and "cpu" in controllers.read_text().split():
            return cls(root / name, unified=True)
        raise VmError(f"{root} has no CPU controller, so virtual cores cannot be slowed down (--no-throttle)")

    def limit(self, process: int, quotas_us: Mapping[int, int], period_us: int) -> None:
        """Gives threads of a process a quota each.

        Args:
            process: The process of the threads.
            quotas_us: Quota in us of each thread, by its id.
            period_us: Period of the quotas.
        """
        try:
            self.folder.mkdir(exist_ok=True)  # quotas may be given once more
            if self.unified:
                # Threads can be limited only below a group that holds their process.
                _write(self.folder.parent / "cgroup.subtree_control", "+cpu")
                _write(self.folder / "cgroup.procs", process)
            # Quotas are meant to be reached whatever else runs: 20 times the weight of an ordinary group.
            _write(
                self.folder / ("cpu.weight" if self.unified else "cpu.shares"),
                2000 if self.unified else 20480,
            )
            for thread, quota_us in quotas_us.items():
                self._limit_thread(thread, quota_us, period_us)
        except OSError as error:
            raise VmError(
                f"{error.filename}: {error.strerror}; virtual cores can be slowed down by root only (--no-throttle)"
            ) from None

    def _limit_thread(self, thread: int, quota_us: int, period_us: int) -> None:
        group = self.folder / str(thread)
        group.mkdir(exist_ok=True)
        if self.unified:
            _write(group / "cgroup.type", "threaded")
            # Allowed only once a child is threaded.
            _write(self.folder / "cgroup.subtree_control", "+cpu")
            _write(group / "cpu.max", f"{quota_us} {period_us}")
            _write(group / "cgroup.threads", thread)
        else:
            _write(group / "cpu.cfs_period_us", period_us)
            _write(group / "cpu.cfs_quota_us", quota_us)
            _write(group / "tasks", thread)

    def remove(self) -> None:
        """Removes the groups; what still runs in them goes back to the parent."""
        if not self.folder.exists():
            return
        members = "cgroup.procs" if self.unified else "tasks"
        for group in (*(path for path in self.folder.iterdir() if path.is_dir()), self.folder):
            listed = group / ("cgroup.threads" if self.unified else "tasks")
            for member in listed.read_text().split() if listed.exists() else []:
                try:
                    _write(self.folder.parent / members, member)
                except OSError:
                    continue  # It has ended meanwhile.
            _remove(group)

    def remove_left(self) -> None:
        """Removes what runs have left that were killed: groups without threads that were not made just now."""
        for folder in self.folder.parent.glob(f"{GROUP}*"):
            with contextlib.suppress(OSError):  # in use, or somebody else does the same
                if time.time() - folder.stat().st_mtime > LEFT_S:
                    for group in (*filter(Path.is_dir, folder.iterdir()), folder):
                        group.rmdir()


def _remove(group: Path) -> None:
    until = time.monotonic() + BUSY_S
    while True:
        try:
            group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise VmError(f"{group}: cannot be removed: {error.strerror}") from None
            time.sleep(0.01)
        else:
            return


def _write(path: Path, value: object) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, str(value).encode())
    finally:
        os.close(handle)
