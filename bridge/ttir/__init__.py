"""Triton's own intermediate representation of a kernel: made, parsed and run over exact numbers."""
