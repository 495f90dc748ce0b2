"""The files of vectors: their shapes, further conditions on them, and their readers."""
