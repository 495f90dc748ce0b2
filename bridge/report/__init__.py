"""`make verify`: run every check of the chain from Lean to kernel, and report."""
