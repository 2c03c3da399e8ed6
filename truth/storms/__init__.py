"""Storms: everything that threads can do to a scheduler, drawn, for a long time in kernels of exact virtual machines."""
