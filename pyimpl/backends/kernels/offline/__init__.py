"""The kernels compiled without a GPU: each case, and what it needs."""
