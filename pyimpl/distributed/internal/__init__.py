"""The pieces of attention over a sequence in shards. Not part of the public interface."""
