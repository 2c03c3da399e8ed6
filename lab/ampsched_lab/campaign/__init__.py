"""Campaigns: many short runs of mixes of real programs, under schedulers in kernels of exact virtual machines."""
