"""Calibration of the computer that this runs on: kinds of cores, speeds, counters.

Linux only. Whatever cannot be read or measured is left out and said.
"""
