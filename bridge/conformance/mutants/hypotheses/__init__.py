"""Mutants as hypotheses of what is wrong with a function, by what they change."""
