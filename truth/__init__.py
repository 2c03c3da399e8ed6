"""Kernels and simulations: what is measured of both (`make truth`, `make gain`)."""
