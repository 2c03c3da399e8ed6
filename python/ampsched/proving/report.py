"""What users may attach to an issue: what was predicted and measured on which cores, and nothing that names anybody.

No name, path, host, serial number or command is in it; of the kernel its version only, as others name their own builds;
of policies those that are shipped.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ampsched
from ampsched._core import core_kinds
from ampsched.cpus import allowed_cpus
from ampsched.files import write_text
from ampsched.policy import policies
from ampsched.proving.measuring import Measured
from ampsched.recording.check import LINUX
from ampsched.recording.model_error import ModelError, setting_errors
from ampsched.recording.setting import Setting
from ampsched.uncertainty import ModelErrors

FORMAT, VERSION = "ampsched-proof", 1
OWN = "own"
"""What a policy is called that is not shipped."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A prediction and what was measured.

    Attributes:
        kind: What the program is in the table of the model's errors.
        program: Which of the self-test's programs; none: a user's own.
        advised: The setting, against all cores under Linux.
        predicted: Change of the time: -0.1 is 10 % less.
        band: The same with the model's own error.
        measured: What was measured.
    """

    kind: str
    program: str | None
    advised: Setting
    predicted: float
    band: tuple[float, float]
    measured: Measured

    @property
    def error(self) -> float:
        """Of the predicted time as a part of the measured one: 0.05 is 5 % too long."""
        return (1 + self.predicted) / (1 + self.measured.change.mean) - 1

    @property
    def is_inside(self) -> bool:
        """Whether what was measured may lie in the band, by its interval."""
        change = self.measured.change
        return change.high >= self.band[0] and change.low <= self.band[1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "kind": self.kind,
            "program": self.program,
            "setting": self.advised.name,
            "predicted": self.predicted,
            "band": self.band,
            "error": self.error,
            "is_inside": self.is_inside,
            **self.measured.to_dict(),
        }

    def anonymous(self) -> dict[str, Any]:
        """What of it names nobody."""
        setting, shipped = self.advised, {each.name for each in policies()}
        policy = setting.policy if setting.policy.partition(":")[0] in shipped else OWN
        cpus = setting.cores and len(setting.cores.cpus)
        return {
            "kind": self.kind,
            "program": self.program,
            "setting": {"policy": policy, "threads": setting.threads, "cpus": cpus},
            "predicted": self.predicted,
            "band": self.band,
            "measured": self.measured.to_dict(),
        }


def errors_of(setting: Setting, known: ModelError) -> ModelErrors:
    """The model's own errors of such a change: of threads and cores under Linux, or of a policy."""
    return setting_errors() if setting.policy == LINUX else known.of_changes


def report_text(proofs: Sequence[Proof]) -> str:
    """The content of the file."""
    version = re.match(r"\d+(\.\d+)*", platform.release())
    kinds = [
        {"core_type": each.core_type, "is_known": each.is_known, "cpus": len(each.cpus)}
        for each in core_kinds(allowed_cpus())
    ]
    value = {
        "format": FORMAT,
        "version": VERSION,
        "ampsched": ampsched.__version__,
        "kernel": version[0] if version else "",
        "architecture": platform.machine(),
        "cores": kinds,
        "proofs": [each.anonymous() for each in proofs],
    }
    return json.dumps(value, indent=1) + "\n"


def write_report(proofs: Sequence[Proof], path: Path) -> str:
    """Writes the file; its content."""
    text = report_text(proofs)
    write_text(path, text)
    return text
