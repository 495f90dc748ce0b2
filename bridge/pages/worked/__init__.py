"""Vectors and one layer worked step by step in exact fractions, by the Spec in Python
(`bridge.spec`). If one does not end in Lean's numbers, it raises SourceError, and no page is
written."""
