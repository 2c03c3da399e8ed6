"""What can go wrong with a virtual machine."""

from ampsched._core import InputError


class VmError(InputError):
    """The virtual machine cannot be had here, or did not do what it should; the text says why and what helps."""
