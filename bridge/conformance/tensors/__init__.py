"""The vectors as tensors, with the options that `pyimpl` takes."""
