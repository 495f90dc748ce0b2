"""The Spec in Python: each definition of `Attention/Spec` as a function over any kind of number.

All modules but `core` are written by `.venv/bin/python -m bridge translate` from Lean's own terms,
and are not edited by hand. Vectors are lists, matrices lists of rows; a masked score is None. What
a definition leaves to an instance of a class (a number 0, the exponential) is the keyword `num`, an
`Arithmetic`; lengths that Lean infers from types are keywords where the definition computes with
them.
"""
