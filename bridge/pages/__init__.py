"""Pages and tests that are written: `docs/vectors.md`, `docs/claims.md`, `tests/generated`, …"""
