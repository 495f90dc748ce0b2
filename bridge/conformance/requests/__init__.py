"""Requests to the judge, by the command line and from Python."""
