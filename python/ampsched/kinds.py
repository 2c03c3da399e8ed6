"""Kinds of files."""

from typing import Literal

Kind = Literal["machine", "core_type", "profile", "program", "workload"]
