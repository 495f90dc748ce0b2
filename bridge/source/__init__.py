"""The project's sources, read as texts: Lean's declarations, and lines that pages show."""
