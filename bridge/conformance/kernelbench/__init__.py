"""KernelBench: a problem's operation learned from its `Model`, and models judged as it."""
