"""Kernel and simulator side by side, on cores that are exactly as unequal in both: `make -C lab truth`."""
