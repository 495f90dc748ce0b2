"""What the public functions and the implementations share. Not part of the public interface."""
