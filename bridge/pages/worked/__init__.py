"""Vectors and one layer worked step by step in exact fractions, by the Spec in Python
(`bridge.spec`). What does not end in Lean's numbers raises SourceError, and no page is written."""
