"""What the attention of a sequence in shards is made of. Not part of the public interface."""
