"""Kinds of files."""

from typing import Literal

Kind = Literal["machine", "core_type", "profile", "program", "workload"]

RECORDING = ".ampr"
"""How the names of recordings end."""
