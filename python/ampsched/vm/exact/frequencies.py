"""Frequencies among which an arm64 guest chooses: what its kernel reads of them, and where it writes its choice.

Linux's driver for MediaTek's frequency hardware (drivers/cpufreq/mediatek-cpufreq-hw.c, the device tree's
`mediatek,cpufreq-hw`) wants nothing but registers that behave like memory. So a page of the guest's own memory, which
its kernel is told to leave alone, is such a controller: the table of frequencies and powers is there before the kernel
starts, and the clock reads the number that the kernel writes.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ampsched._core import Machine
from ampsched.naming import unknown
from ampsched.vm.error import VmError

GOVERNORS: dict[str, str | None] = {
    "schedutil": None,
    "performance": None,
    "powersave": "cpufreq_powersave",
    "ondemand": "cpufreq_ondemand",
    "conservative": "cpufreq_conservative",
    "userspace": "cpufreq_userspace",
}
"""Linux's governors, and the module of each that Debian's kernels do not have built in."""
DRIVER = "mediatek-cpufreq-hw"
"""The module that drives the controllers."""
FLAVOUR = "cpufreq"
"""Debian's cloud kernels cannot change frequencies; so the packages of those that can are called."""

PAGE_BYTES = 4096
"""Each cluster's controller has a page of its own."""
REGION_BYTES = 2 << 20
"""The kernel maps memory in blocks of that size, so one is left out as a whole: the last one."""
TABLE, SWITCH_ON, CHOICE, STATE, POWERS, LATENCY = 0x0, 0x84, 0x88, 0x8C, 0x90, 0x110
"""Places of the registers: frequencies in MHz, on or off, chosen number, state, powers in uW, latency in us."""
IS_READY = 3
"""The state of a controller that works (its two lowest bits)."""
FREQUENCIES_MAX, MHZ_MAX = 32, 4095
"""The table has as many rows, and 12 bits for a frequency."""


@dataclass(frozen=True)
class Frequencies:
    """What a cluster's cores can be clocked with.

    Attributes:
        address: Place of its controller in the guest's memory, in bytes.
        mhz: Frequencies in MHz, the highest first.
        power_uw: Power of a busy core at each of them, in uW; 0 where it is not known.
    """

    address: int
    mhz: tuple[int, ...]
    power_uw: tuple[int, ...]

    @property
    def choice(self) -> int:
        """Place of the word that has the number of the chosen frequency."""
        return self.address + CHOICE

    def rates_kips(self, rate_kips: int) -> tuple[int, ...]:
        """What cores execute at each frequency, if that is what they do at the highest, in the same unit."""
        return tuple(max(1, round(rate_kips * mhz / self.mhz[0])) for mhz in self.mhz)

    def registers(self, latency_us: int) -> bytes:
        """The page of the controller when the guest is switched on.

        Args:
            latency_us: How long a change takes in us.
        """
        page = bytearray(PAGE_BYTES)
        # A row that repeats the one before ends the table.
        rows = [*self.mhz, self.mhz[-1]][:FREQUENCIES_MAX]
        struct.pack_into(f"<{len(rows)}I", page, TABLE, *rows)
        struct.pack_into(f"<{len(self.power_uw)}I", page, POWERS, *self.power_uw)
        struct.pack_into("<I", page, STATE, IS_READY)
        struct.pack_into("<I", page, LATENCY, latency_us)
        return bytes(page)


def frequencies(machine: Machine, region: int) -> list[Frequencies]:
    """What the clusters of a machine can be clocked with, as its file says, in their order.

    Powers are those of the machine's energy model, which the simulator's `eas` believes, too.

    Args:
        machine: The machine.
        region: Place in the guest's memory that its kernel leaves alone, in bytes.

    Raises:
        VmError: A cluster has more frequencies than a controller can tell of, or higher ones.
    """
    return [
        _of_cluster(name, machine.energy_model(index), region + PAGE_BYTES * index)
        for index, (name, *_) in enumerate(machine.clusters)
    ]


def _of_cluster(name: str, points: Sequence[tuple[int, float, float]], address: int) -> Frequencies:
    falling = sorted(points, reverse=True)
    mhz = tuple(mhz for mhz, _, _ in falling)
    if len(mhz) > FREQUENCIES_MAX:
        raise VmError(f"cluster {name} has {len(mhz)} frequencies: a guest can be told of {FREQUENCIES_MAX}")
    if mhz[0] > MHZ_MAX:
        raise VmError(f"cluster {name} has {mhz[0]} MHz: a guest can be told of {MHZ_MAX} MHz at most")
    return Frequencies(address, mhz, tuple(round(power_mw * 1000) for _, _, power_mw in falling))


def check_governor(name: str, architecture: str) -> None:
    """Refuses what is no governor, and guests whose clusters have one frequency.

    Raises:
        VmError: That.
    """
    if name not in GOVERNORS:
        raise VmError(str(unknown("governor of Linux", name, GOVERNORS)))
    if architecture != "aarch64":
        raise VmError(f"governor {name}: only arm64 guests can change frequencies (--arch arm64)")


def start_script(governor: str, folder: str) -> str:
    """What makes a guest choose frequencies: loads the modules of a folder, and says who decides.

    The kernel looks anew at the cores' capacities and energy when it has them.
    """
    modules = [DRIVER, *filter(None, [GOVERNORS[governor]])]
    loads = [f"insmod {folder}/{name}.ko" for name in modules]
    tells = f"for policy in /sys/devices/system/cpu/cpufreq/policy*; do echo {governor} >$policy/scaling_governor; done"
    return "\n".join([*loads, tells])
