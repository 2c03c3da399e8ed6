"""Simulations compared with real programs on this computer's kernel: `make truth`."""
