"""Kernel and simulator side by side on this computer, without a virtual machine: `make -C lab truth-host`."""
