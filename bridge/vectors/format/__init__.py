"""The files of vectors: their shapes, what a shape cannot say, and how they are read."""
