"""Which policies load into which kernels, and run there: the matrix of kernels."""
