"""The features of anybody's function, and the operation that it computes."""
