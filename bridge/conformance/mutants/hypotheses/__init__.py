"""Mutants as hypotheses about the fault of a function, sorted by the part that they change."""
