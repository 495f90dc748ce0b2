"""Vectors as Python values, an operation each, and the answers of those that no file has."""
