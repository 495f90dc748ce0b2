"""The gradients of the public functions, as PyTorch's operators ask for them. Not part of the
public interface."""
