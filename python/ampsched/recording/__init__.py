"""Recordings of programs: made by ``ampsched record``, imported from other tools' traces, replayed and lifted."""

from ampsched._core import Recording
from ampsched.recording.files import load, save
from ampsched.recording.lift import Lifted, lift

__all__ = ["Lifted", "Recording", "lift", "load", "save"]
