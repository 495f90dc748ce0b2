"""The results of other libraries' attention on the vectors: run, recomputed exactly, kept."""
