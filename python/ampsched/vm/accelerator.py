"""Whether the processor's virtualisation can be used, found by booting once."""

import subprocess
from enum import Enum
from pathlib import Path

from ampsched.vm.archive import cache_folder

PROBE_S = 8


class Accelerator(Enum):
    """How QEMU executes the guest's instructions."""

    KVM = "kvm"
    TCG = "tcg,thread=multi"

    @property
    def cpu(self) -> str:
        """QEMU's model of the CPU."""
        return "host" if self is Accelerator.KVM else "max"


def find_accelerator(kernel: Path) -> Accelerator:
    """KVM if a kernel comes up with it, else translation; the answer is remembered until this computer boots again.

    A nested /dev/kvm may exist and yet fail on the first instruction that its host does not emulate, so only a try
    tells.

    Args:
        kernel: Image of a Linux kernel.
    """
    if not Path("/dev/kvm").exists():
        return Accelerator.TCG
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    memory = cache_folder() / "accelerator"
    if memory.exists():
        known_boot, known = memory.read_text("utf-8").split()
        if known_boot == boot:
            return Accelerator[known]
    found = Accelerator.KVM if _boots(kernel) else Accelerator.TCG
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(f"{boot} {found.name}\n", "utf-8")
    return found


def _boots(kernel: Path) -> bool:
    """Whether a kernel without a root file system gets as far as missing it."""
    command = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-machine", "q35", "-m", "512M"]
    command += ["-display", "none", "-nic", "none", "-no-reboot", "-serial", "stdio", "-monitor", "none"]
    command += ["-kernel", str(kernel), "-append", "console=ttyS0 panic=-1"]
    try:
        done = subprocess.run(  # noqa: S603 (a command of ours)
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return b"Unable to mount root" in done.stdout
