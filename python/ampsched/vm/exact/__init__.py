"""A virtual machine whose cores are exactly as unequal as a machine's file says, in virtual time of its own."""

from ampsched.vm.exact.clock import Report
from ampsched.vm.exact.machine import Done, Exact, Work, find_program, run
from ampsched.vm.exact.policy import core_options, loader, under
from ampsched.vm.exact.record import fastest, record, record_calls, slowest, with_speedup

__all__ = [
    "Done",
    "Exact",
    "Report",
    "Work",
    "core_options",
    "fastest",
    "find_program",
    "loader",
    "record",
    "record_calls",
    "run",
    "slowest",
    "under",
    "with_speedup",
]
