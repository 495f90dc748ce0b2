"""The declarations and theorems of the library, and whether the documents state them truly."""
