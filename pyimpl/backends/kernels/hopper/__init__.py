"""Kernels for Hopper GPUs (compute capability 9.0), in Gluon."""
