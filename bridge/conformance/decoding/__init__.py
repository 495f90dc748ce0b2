"""Functions that are called step by step with a cache."""
