"""Virtual machines with unequal cores and a kernel that has sched_ext, and what is fetched for them."""

from ampsched.vm.error import VmError
from ampsched.vm.kernel import fetch_kernel

__all__ = ["VmError", "fetch_kernel"]
