"""Vectors as Python values, an operation each."""
