"""Policies on this computer: real programs under ``ampsched-live``, measured and compared."""

from ampsched.live.compare import LiveComparison, LiveRun, LiveSummaryRow, compare_live
from ampsched.live.mix import Mix, MixProgram, read_mix
from ampsched.live.program import live_program
from ampsched.live.running import run_programs

__all__ = [
    "LiveComparison",
    "LiveRun",
    "LiveSummaryRow",
    "Mix",
    "MixProgram",
    "compare_live",
    "live_program",
    "read_mix",
    "run_programs",
]
