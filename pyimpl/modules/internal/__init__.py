"""Shared by the modules. Not part of the public interface."""
