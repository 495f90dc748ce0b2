"""What the modules share. Not part of the public interface."""
