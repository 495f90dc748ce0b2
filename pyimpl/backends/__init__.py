"""The implementations: the reference, the tile loop and the Triton kernels, and which of them runs
(`dispatch`). Not part of the public interface."""
