"""Triton kernels, one operation a file. Importing a module of this package imports Triton."""
