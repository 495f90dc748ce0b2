"""A simulator of the Gluon operations of Hopper GPUs: kernels of several warp groups run on a CPU,
in schedules that a seed chooses, over float32 or over exact numbers."""
