"""What scheduling costs on more and more cores, ours beside others in kernels of exact virtual machines."""
