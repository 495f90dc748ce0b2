"""Run attention functions over the vectors and judge each element by a derived tolerance."""
