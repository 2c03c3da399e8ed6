"""Virtual machines with unequal cores and a kernel that has sched_ext.

`ampsched.vm.exact` has cores that are exactly unequal and the files that it is given. The one of this module has cores
that pause, and this computer's own root, read-only, through virtiofs: what runs here runs there.
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
