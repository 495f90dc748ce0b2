"""Code that runs in the process of a function under test.

It sees no vectors and nothing of `bridge`: these files need the standard library and PyTorch alone,
and are loaded as a package of their own (`zygote`).
"""
