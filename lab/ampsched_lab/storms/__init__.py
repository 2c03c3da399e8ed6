"""Storms: everything that threads can do to a scheduler, drawn, in kernels of exact virtual machines."""
