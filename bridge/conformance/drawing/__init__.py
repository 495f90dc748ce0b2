"""Vectors that no file has, drawn from a seed."""
