"""What to type for a governor, what it needs, and how it is put back."""

from __future__ import annotations

from pathlib import Path

POLICIES = Path("/sys/devices/system/cpu/cpufreq")
"""cpufreq's: Documentation/admin-guide/pm/cpufreq.rst."""
_OF_ALL = "scaling_governor"


def command(governor: str) -> str:
    """What gives all cores a governor."""
    return f"sudo cpupower frequency-set --governor {governor}"


def condition(*, is_here: bool) -> str:
    """What the command needs, how long it lasts, and what puts back the governor of before.

    Args:
        is_here: Whether it is for this computer, whose governors can be asked.
    """
    found = (
        sorted({path.read_text().strip() for path in POLICIES.glob(f"policy*/{_OF_ALL}")}) if is_here else []
    )
    if is_here and not found:
        return f"this computer shows no governor below {POLICIES}, so cpupower can set none"
    back = f"note today's first: grep . {POLICIES}/policy*/{_OF_ALL}"
    if len(found) == 1:
        back = command(found[0])
    elif found:
        back = f"cores have several ({', '.join(found)}); {back}"
    return f"cpupower needs root, and its governor stays, for all programs, until a restart; to put it back: {back}"
