"""Predictions put to the test on this computer: two settings of a program run alternately, and what was predicted."""
