"""Adapters called on the vectors, and each element of their answers judged."""
