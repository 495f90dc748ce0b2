"""Shared by the public functions and the implementations. Not part of the public interface."""
