"""The Lean library's declarations, read from Lean's stored files and checked against its text."""
