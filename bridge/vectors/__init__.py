"""Vectors made by running the Lean definitions: their schema, loading and exact recomputation."""
