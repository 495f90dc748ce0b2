"""The kernels compiled without a GPU: each case, and its registers and memory."""
