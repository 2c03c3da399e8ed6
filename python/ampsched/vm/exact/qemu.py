"""The command line of QEMU for an exact virtual machine."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ampsched.naming import unknown
from ampsched.vm.archive import Archive
from ampsched.vm.error import VmError
from ampsched.vm.exact import priorities
from ampsched.vm.exact.devicetree import Cluster, device_tree
from ampsched.vm.exact.guest import CHANNELS
from ampsched.vm.exact.siblings import Pairs, topology
from ampsched.vm.kernel import Kernel

LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
LOADER = "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
FIRMWARE = ("usr/share/qemu", "usr/share/seabios")
BEGIN = "2026-01-01T00:00:00"
"""The guest's date at power-on, the same in all runs."""


@dataclass(frozen=True)
class Architecture:
    """What differs between guests.

    Attributes:
        name: As the kernel calls it.
        machine: QEMU's model of the computer.
        cpu: QEMU's model of the cores, unless somebody wants another one.
        switched_off: What models of cores have and guests may not use.
        shared: What models of cores must have if some share a core; without, the device tree says who does.
        models: QEMU's models of core types that cannot do all that `cpu` does, by their names.
        console: The kernel's name of the first serial line.
        has_capacities: The guest is told how fast its cores are, by a device tree.
        memory_begin: Where its memory begins, in bytes.
    """

    name: str
    machine: str
    cpu: str
    console: str
    has_capacities: bool = False
    switched_off: str = ""
    shared: str = ""
    memory_begin: int = 0
    models: Mapping[str, str] = field(default_factory=dict)

    def cpu_of(self, core_types: Collection[str]) -> str:
        """QEMU's model of cores that can do what all these can: a guest has one model only."""
        return next((self.models[name] for name in core_types if name in self.models), self.cpu)


CORTEX_A57 = "cortex-a57"
"""Armv8.0: without the atomic instructions of Armv8.1 (LSE)."""
ARCHITECTURES = {
    each.name: each
    for each in (
        # MONITOR and MWAIT would let idle cores spin instead of halting. QEMU's "max" is a core of AMD's, which says by
        # TOPOEXT that it has threads.
        Architecture("x86_64", "q35", "max", "ttyS0", switched_off=",-monitor", shared=",+topoext"),
        Architecture(
            "aarch64",
            "virt,gic-version=3",
            "cortex-a76",
            "ttyAMA0",
            has_capacities=True,
            models=dict.fromkeys(("cortex-a53", "cortex-a57", "cortex-a73"), CORTEX_A57),
            memory_begin=1 << 30,
        ),
    )
}


def architecture(name: str) -> Architecture:
    """The architecture of that name.

    Raises:
        VmError: There is none.
    """
    if name not in ARCHITECTURES:
        raise VmError(str(unknown("architecture", name, ARCHITECTURES)))
    return ARCHITECTURES[name]


def packaged(packages: Path, name: str, preload: Path | None = None) -> list[str]:
    """The command that starts a program of unpacked packages, with the libraries with which it was built.

    Args:
        packages: Where they are.
        name: The program.
        preload: A library whose functions come before those of all others.
    """
    libraries = ":".join(str(packages / library) for library in LIBRARIES)
    first = ["--preload", str(preload)] if preload else []
    program = str(packages / "usr/bin" / name)
    return [str(packages / LOADER), "--library-path", libraries, *first, program]


@dataclass(frozen=True)
class Boot:
    """How a machine is booted.

    Attributes:
        archive: Where QEMU is.
        guest: Architecture of the guest.
        kernel: Its kernel.
        clusters: Its cores.
        memory_mb: Its memory in MB.
        quantum_us: Length of the cores' turns.
        clock: The plugin.
        cpu: QEMU's model of the cores.
        priorities: The kernel is told which cores are faster.
    """

    archive: Archive
    guest: Architecture
    kernel: Kernel
    clusters: Sequence[Cluster]
    memory_mb: int
    quantum_us: float
    clock: Path
    cpu: str
    priorities: bool = False

    def command(self, folder: Path) -> list[str]:
        """The command that boots it; what belongs to this run is in a folder.

        Args:
            folder: Has ``initramfs`` and ``clock.txt``, gets the device tree, ``console``, ``report.txt`` and what the
                guest hands out.
        """
        words = [*self._computer(), *self._devices(folder), *self._files(folder)]
        words += self._frequencies(folder)
        if self.priorities:
            (folder / "priorities").write_bytes(priorities.table(self.clusters))
            words += ["-acpitable", f"file={folder}/priorities"]
        if self.guest.has_capacities:
            tree = device_tree(self._computer(), self.clusters, self._tool("dtc"))
            (folder / "tree.dtb").write_bytes(tree)
            words += ["-dtb", f"{folder}/tree.dtb"]
        return words

    def _tool(self, name: str, preload: Path | None = None) -> list[str]:
        """A program beside QEMU, with the libraries with which it was built."""
        return packaged(self.archive.folder(f"qemu-{self.guest.name}"), name, preload)

    def _computer(self) -> list[str]:
        packages = self.archive.folder(f"qemu-{self.guest.name}")
        pairs = self._pairs() if self.guest.shared else ()
        smp, cpus = topology(self._cores(), pairs, self.cpu.split(",")[0])
        options = {
            "accel": "tcg,thread=single",
            "machine": self.guest.machine,
            "cpu": self.cpu + self.guest.switched_off + (self.guest.shared if pairs else ""),
            "smp": smp,
            "m": f"{self.memory_mb}M",
            "display": "none",
            "seed": "1",
            "rtc": f"clock=vm,base={BEGIN}",
        }
        firmware = [word for folder in FIRMWARE for word in ("-L", str(packages / folder))]
        # The clock comes first, as it also tells QEMU the date (`gettimeofday` in clock.c).
        program = self._tool(f"qemu-system-{self.guest.name}", preload=self.clock)
        return [*program, "-nodefaults", "-no-reboot", *firmware, *_words(options), *cpus]

    def _cores(self) -> int:
        return sum(len(cluster.cores) for cluster in self.clusters)

    def _pairs(self) -> Pairs:
        return [pair for cluster in self.clusters for pair in cluster.siblings]

    def _devices(self, folder: Path) -> list[str]:
        # Without an event file the device does its work when the guest asks for it, not when the host has time.
        words = ["-device", "virtio-serial-pci,ioeventfd=off"]
        for name in CHANNELS:
            words += ["-chardev", f"file,id={name},path={folder}/{name}"]
            words += ["-device", f"virtserialport,chardev={name},name={name}"]
        return words

    def _frequencies(self, folder: Path) -> list[str]:
        """The controllers of frequencies, which are memory that has some content at the start."""
        each = [cluster.frequencies for cluster in self.clusters if cluster.frequencies]
        if not each:
            return []
        latency_us = math.ceil(self.quantum_us)  # a choice counts from the next quantum on
        (folder / "frequencies").write_bytes(b"".join(one.registers(latency_us) for one in each))
        return ["-device", f"loader,file={folder}/frequencies,addr={each[0].address:#x},force-raw=on"]

    def _files(self, folder: Path) -> list[str]:
        boot = f"console={self.guest.console} panic=-1 quiet loglevel=5 cryptomgr.notests=1"
        return _words(
            {
                "kernel": str(self.kernel.image),
                "initrd": f"{folder}/initramfs",
                "append": boot + self._x86_words() if self.guest.name == "x86_64" else boot,
                "serial": f"file:{folder}/console",
                "plugin": f"{self.clock},settings={folder}/clock.txt,report={folder}/report.txt",
            }
        )

    def _x86_words(self) -> str:
        # A kernel need not keep room for threads that no core has.
        possible = f" possible_cpus={self._cores()}" if self._pairs() else ""
        return f" idle=halt{possible}{priorities.OPTION if self.priorities else ''}"


def _words(options: Mapping[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in (f"-{name}", value)]
