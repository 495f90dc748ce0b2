"""Whether a Triton kernel computes attention: verdicts on its own intermediate representation."""
