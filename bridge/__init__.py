"""From the Lean definitions of attention to checked kernels."""
