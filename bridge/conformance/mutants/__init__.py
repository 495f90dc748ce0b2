"""Mistakes that real kernels had or could have: as edits of `pyimpl`, planted, and seen."""
