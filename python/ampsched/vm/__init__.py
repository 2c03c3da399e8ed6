"""A virtual machine with a kernel that has sched_ext, on this computer's own files, with big and little cores.

Nothing is installed in it: its root is this computer's root, read-only, through virtiofs. So what runs here runs there.
"""

from ampsched.vm.accelerator import Accelerator, find_accelerator
from ampsched.vm.error import VmError
from ampsched.vm.kernel import KERNEL_RELEASE, fetch_kernel
from ampsched.vm.machine import Outcome, run, shell
from ampsched.vm.shape import CoreShape, Shape
from ampsched.vm.speeds import Speeds, measure

__all__ = [
    "KERNEL_RELEASE",
    "Accelerator",
    "CoreShape",
    "Outcome",
    "Shape",
    "Speeds",
    "VmError",
    "fetch_kernel",
    "find_accelerator",
    "measure",
    "run",
    "shell",
]
