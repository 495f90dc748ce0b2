"""The declarations of the Lean library, read from Lean's stored files and checked against its text."""
