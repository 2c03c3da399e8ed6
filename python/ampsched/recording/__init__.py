"""Recordings of programs: made by ``ampsched record``, imported from other tools' traces, replayed and lifted."""

from ampsched._core import Recording
from ampsched.recording.files import load, save

__all__ = ["Recording", "load", "save"]
