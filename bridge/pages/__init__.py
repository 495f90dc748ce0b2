"""Pages and tests that are written from the vectors: `docs/vectors.md`, `tests/generated`."""
