"""What attention functions of other libraries do on the vectors: run, recomputed exactly, kept."""
