"""Kernels and simulations: what is measured of both (`make -C lab truth`, `make -C lab gain`)."""
