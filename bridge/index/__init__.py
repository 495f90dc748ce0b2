"""What the Lean library declares, read from what Lean stores and checked against its text."""
