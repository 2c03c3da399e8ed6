"""An exact virtual machine from start to end: what it is given, QEMU, what it hands out."""

import codecs
import os
import platform
import re
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from subprocess import Popen
from typing import Any

from ampsched._core import Machine
from ampsched.children import child_in_group, ended_by_signals, last_line, why_not_run
from ampsched.files import temporary_folder, writing
from ampsched.vm.archive import Archive
from ampsched.vm.error import VmError
from ampsched.vm.exact.clock import Report, clock_file, settings
from ampsched.vm.exact.costs import ClassCosts, RateChoice, costs
from ampsched.vm.exact.devicetree import Cluster
from ampsched.vm.exact.foreign import Foreign
from ampsched.vm.exact.frequencies import (
    DRIVER,
    FLAVOUR,
    GOVERNORS,
    REGION_BYTES,
    Frequencies,
    check_governor,
    frequencies,
    start_script,
)
from ampsched.vm.exact.guest import BUSYBOX, FILES, MODULES, OUTPUT, RESULT, TRACE, init_script
from ampsched.vm.exact.image import program_of
from ampsched.vm.exact.initramfs import Initramfs
from ampsched.vm.exact.priorities import KERNELS as TAKE_PRIORITIES
from ampsched.vm.exact.qemu import Architecture, Boot, architecture
from ampsched.vm.exact.siblings import Pairs
from ampsched.vm.exact.trace import EVENTS, SUFFIX, write_trace
from ampsched.vm.kernel import DEFAULT_KERNEL, Kernel, fetch_kernel
from ampsched.vm.results import results

LOOK_S = 0.05
TRACE_HEAD_LINES = 12
FOLDERS = ("proc", "sys", "dev", "tmp", "run", "root", "boot")


@dataclass(frozen=True)
class Exact:
    """A virtual machine whose cores are exactly as unequal as a machine's file says.

    Attributes:
        machine: Clusters and core types.
        kernel: Version that names the kernel, such as 6.18.
        architecture: ``x86_64`` or ``aarch64``.
        mips: Million plain integer instructions per second of the fastest core.
        quantum_us: Cores take turns of that length (virtual time): what is shorter than it cannot be told.
        memory_mb: Memory in MB.
        caches: Whether loads and stores that miss caches cost more.
        speeds: What the cores of each cluster execute, if not what their types say.
        governor: One of Linux's governors, which changes the clusters' frequencies; arm64 guests only. Without, they
            stay at the highest.
        archive: Where QEMU and kernels come from.
        cpu: QEMU's model of the cores; by default one that can do what the machine's core types can.
        priorities: The kernel knows which cores are faster and uses them first (ITMT); x86-64 guests only.
        shares_cores: Threads of one core are siblings, as the machine says; else each is a core of its own.

    Raises:
        VmError: There is no such governor, or it or priorities are not for that architecture.
    """

    machine: Machine
    kernel: str = DEFAULT_KERNEL
    architecture: str = "x86_64"
    mips: float = 1000.0
    quantum_us: float = 50.0
    memory_mb: int = 1536
    caches: bool = False
    speeds: Sequence[ClassCosts] | None = None
    governor: str | None = None
    archive: Archive = field(default_factory=Archive)
    cpu: str | None = None
    priorities: bool = False
    shares_cores: bool = True

    def cpu_model(self) -> str:
        """QEMU's model of its cores."""
        core_types = [core_type for _, core_type, *_ in self.machine.clusters]
        return self.cpu or architecture(self.architecture).cpu_of(core_types)

    def __post_init__(self) -> None:
        """Checks the governor and priorities."""
        for (name, *_, mhz, _), bounds in zip(self.machine.clusters, self.machine.bounds(), strict=True):
            if bounds and bounds[1] < mhz:
                raise VmError(
                    f"{self.machine.name}: a guest is told of all clocks of cluster {name} up to {mhz} MHz; bound them "
                    "there (scaling_max_freq), or leave out those above (CLUSTER=CORES@MHZ)"
                )
        if self.governor is not None:
            check_governor(self.governor, self.architecture)
        if self.priorities and self.architecture != "x86_64":
            raise VmError(
                "priorities of cores: only x86-64 guests have them (--arch x86); others know capacities"
            )
        if self.priorities and self.kernel not in TAKE_PRIORITIES:
            known = ", ".join(TAKE_PRIORITIES)
            raise VmError(
                f"priorities of cores: Linux {self.kernel} does not take them here (--kernel {known})"
            )

    def clusters(self) -> list[Cluster]:
        """Its cores, by their numbers in the guest, and their speeds for integer code."""
        owners = list(enumerate(self.machine.cluster_of_core))
        return [
            Cluster(
                [core for core, owner in owners if owner == place],
                speed.rate_kips,
                chosen,
                [pair for pair in self.siblings() if self.machine.cluster_of_core[pair[0]] == place],
            )
            for place, (speed, chosen) in enumerate(zip(self._speeds(), self._frequencies(), strict=True))
        ]

    def siblings(self) -> Pairs:
        """CPUs that share a core."""
        return self.machine.siblings if self.shares_cores else ()

    def clock_settings(self) -> str:
        """What the clock is told."""
        clusters = [
            replace(speed, choice=RateChoice(chosen.choice, chosen.rates_kips(speed.rate_kips)))
            if chosen
            else speed
            for speed, chosen in zip(self._speeds(), self._frequencies(), strict=True)
        ]
        return settings(
            [clusters[owner] for owner in self.machine.cluster_of_core],
            self.quantum_us,
            self.siblings(),
            has_gaps=self.architecture == "x86_64",
        )

    def fetch_kernel(self) -> Kernel:
        """Its kernel, fetched if the cache does not have it.

        Raises:
            VmError: There is no such kernel, or it cannot be fetched.
        """
        flavour = f"{FLAVOUR}-{self.architecture}" if self.governor else self.architecture
        kernel = fetch_kernel(self.kernel, flavour, self.archive)
        if self.architecture != "x86_64":
            return kernel
        return replace(kernel, image=program_of(kernel, self.archive))

    def _speeds(self) -> Sequence[ClassCosts]:
        return self.speeds or costs(self.machine, self.mips, caches=self.caches)

    def _frequencies(self) -> Sequence[Frequencies | None]:
        """Those of each cluster; none without a governor."""
        if self.governor is None:
            return [None] * len(self.machine.clusters)
        end = architecture(self.architecture).memory_begin + (self.memory_mb << 20)
        return frequencies(self.machine, end // REGION_BYTES * REGION_BYTES - REGION_BYTES)


@dataclass(frozen=True)
class Work:
    """What is to be done in a virtual machine.

    Attributes:
        command: Program and arguments.
        files: Files, folders and programs of this computer that it needs beside the program itself.
        variables: Further variables of its environment.
        cwd: Folder in which it runs; empty there but for what is named.
        placed: Further files of this computer, by their absolute paths in the machine.
        linked: Programs of this computer whose libraries are to be there, in their own places.
        path: Where the command finds programs (``$PATH``); that of this computer by default.
    """

    command: Sequence[str]
    files: Sequence[Path] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = field(default_factory=Path.cwd)
    placed: Mapping[Path, Path] = field(default_factory=dict)
    linked: Sequence[Path] = ()
    path: str = field(default_factory=lambda: os.environ.get("PATH", os.defpath))


@dataclass(frozen=True)
class Done:
    """What has come out of it.

    Attributes:
        code: Exit code of the command; none if the machine went away before it ended.
        output: What it has written.
        console: What the kernel has written.
        timed_out: It was stopped at its time limit.
        took_s: How long the command took, in the guest's time, to 10 ms.
        report: What the clock says.
        lost_events: Events that are not in the trace, for its memory was full; the oldest.
    """

    code: int | None
    output: str
    console: str
    timed_out: bool
    took_s: float | None
    report: Report | None
    lost_events: int = 0

    def results(self) -> list[Any]:
        """What a script of ours has found: the values in JSON behind ``RESULT`` in lines of the output, in order."""
        return results(self.output)


def run(
    exact: Exact,
    work: Work,
    *,
    out: Path | None = None,
    trace: Path | None = None,
    events: Mapping[str, str] = EVENTS,
    limit_s: float = 600.0,
    echo: Callable[[str], None] = lambda text: None,
) -> Done:
    """Boots an exact virtual machine, runs a command as root in it and switches it off. Needs no rights.

    Args:
        exact: The machine.
        work: The command.
        out: Folder for the files that the command leaves in its own; they are thrown away by default.
        trace: File for who ran on which core: traced as simulations are if its name ends in ``.pftrace``, else the text
            of Linux's function tracer.
        events: The events that are traced, with their groups.
        limit_s: Time of this computer in s after which the machine is stopped.
        echo: Is told the output as it comes.

    Raises:
        VmError: Something that is needed is missing, or QEMU does not start.
    """
    guest = architecture(exact.architecture)
    clock = clock_file()  # first, as what is fetched is of no use without
    kernel = exact.fetch_kernel()
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        traced = stack.enter_context(writing(trace)) if trace else None
        folder = stack.enter_context(temporary_folder("ampsched-vm-"))
        _check_folder(folder)
        (folder / "clock.txt").write_text(exact.clock_settings(), "utf-8")
        files = _initramfs(exact, work, guest, kernel, trace=events if trace else None)
        files.write(folder / "initramfs")
        boot = Boot(
            exact.archive,
            guest,
            kernel,
            exact.clusters(),
            exact.memory_mb,
            exact.quantum_us,
            clock,
            exact.cpu_model(),
            exact.priorities,
        )
        with child_in_group(boot.command(folder)) as process:
            timed_out = not _follow(process, folder / OUTPUT, time.monotonic() + limit_s, echo)
            if not timed_out and process.returncode:
                why = last_line(process.stderr, f"exit code {process.returncode}")
                raise VmError(f"QEMU does not work: {why}")
        if traced and trace and (folder / TRACE).exists():
            if trace.suffix == SUFFIX:
                write_trace(folder / TRACE, exact.machine, traced)
            else:
                with (folder / TRACE).open("rb") as file:
                    shutil.copyfileobj(file, traced)
        return _done(folder, timed_out=timed_out, out=out)


def _check_folder(folder: Path) -> None:
    wrong = [letter for letter in str(folder) if letter in ",=\"'" or not letter.isprintable()]
    if wrong:
        raise VmError(
            f"{folder}: QEMU cannot be told of files with {wrong[0]!r} in their path (TMPDIR names another)"
        )


def _initramfs(
    exact: Exact, work: Work, guest: Architecture, kernel: Kernel, *, trace: Mapping[str, str] | None
) -> Initramfs:
    files = Initramfs(guest.name, Foreign(exact.archive))
    for name in FOLDERS:
        files.folder(Path("/", name))
    files.character_device(Path("/dev/console"), 5, 1)
    files.copy(exact.archive.folder(f"busybox-{guest.name}") / "bin/busybox", BUSYBOX)
    if kernel.config:
        files.copy(kernel.config, Path(f"/boot/config-{kernel.release}"))
    program = find_program(work.command[0], work.cwd, guest.name)
    if program is not None:
        files.program(program)
    for file in work.files:
        _include(files, work.cwd / file)
    for place, file in work.placed.items():
        files.copy(file, place)
    files.libraries(work.linked)
    # What the program is called may decide what it does.
    words = [str(program.absolute()), *work.command[1:]] if program else work.command
    begin = _add_modules(files, exact.governor, kernel) if exact.governor else ""
    script = init_script(
        words,
        work.cwd.absolute(),
        work.path,
        work.variables,
        trace=trace is not None,
        events=trace or {},
        begin=begin,
    )
    files.text(Path("/init"), script, 0o755)
    return files


def _add_modules(files: Initramfs, governor: str, kernel: Kernel) -> str:
    """Adds what a governor needs; returns what starts it."""
    for name in filter(None, [DRIVER, GOVERNORS[governor]]):
        files.content(MODULES / f"{name}.ko", kernel.module(name))
    return start_script(governor, str(MODULES))


def find_program(name: str, cwd: Path, architecture: str) -> Path | None:
    """The program of this computer that a command names, by its place or in the path.

    None for a name without a place in guests of another architecture: there it is one of the guest's own tools.

    Raises:
        VmError: There is none.
    """
    if os.sep not in name and architecture != platform.machine():
        return None
    place = str(cwd / name) if os.sep in name else name
    found = shutil.which(place)
    if found is None:
        raise VmError(f"{name}: {why_not_run(place)}")
    return Path(found)


def _include(files: Initramfs, path: Path) -> None:
    if path.is_file() and os.access(path, os.X_OK):
        files.program(path)
        return
    files.include(path)
    if path.is_dir():
        files.libraries([each for each in path.rglob("*") if each.is_file()])


def _follow(process: "Popen[bytes]", output: Path, until: float, echo: Callable[[str], None]) -> bool:
    """Passes on what a file gets until a process ends; false if it has not by a time (monotonic clock)."""
    seen, text = 0, codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        ended = process.poll() is not None
        if output.exists():
            with output.open("rb") as file:
                file.seek(seen)
                new = file.read()
            seen += len(new)
            if new:
                echo(text.decode(new))
        if ended:
            return True
        if time.monotonic() > until:
            return False
        time.sleep(LOOK_S)


def _done(folder: Path, *, timed_out: bool, out: Path | None) -> Done:
    result = _text(folder / RESULT).split()
    code, took_s = None, None
    if result:
        code, took_s = int(result[0]), round(float(result[2]) - float(result[1]), 2)
        if out is not None:
            unpack(folder / FILES, out)
    report = _text(folder / "report.txt")
    return Done(
        code,
        _text(folder / OUTPUT),
        _text(folder / "console"),
        timed_out,
        took_s,
        Report.read(report) if report else None,
        lost_events(folder / TRACE),
    )


def lost_events(trace: Path) -> int:
    """How many events a trace of Linux's function tracer has lost, as its head says; 0 without a trace."""
    if not trace.exists():
        return 0
    with trace.open(encoding="utf-8", errors="replace") as file:
        head = "".join(islice(file, TRACE_HEAD_LINES))
    found = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", head)
    return int(found[2]) - int(found[1]) if found else 0


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace") if path.exists() else ""


def unpack(archive: Path, out: Path) -> None:
    """Puts the files that a guest has handed out into a folder, and nothing anywhere else.

    Raises:
        VmError: Something is no ordinary file, would get elsewhere or cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        if archive.stat().st_size:
            with tarfile.open(archive, ignore_zeros=True) as files:
                for member in files:
                    _unpack(files, member, out.resolve())
    except (tarfile.TarError, OSError) as error:
        raise VmError(f"{out}: what the virtual machine hands out is refused: {error}") from None


def _unpack(files: tarfile.TarFile, member: tarfile.TarInfo, out: Path) -> None:
    target = (out / member.name).resolve()
    content = files.extractfile(member) if member.isfile() else None
    if content is None or not target.is_relative_to(out):
        raise tarfile.ExtractError(f"{member.name!r} is no file of this folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(content, file)
    target.chmod(member.mode & 0o777)
