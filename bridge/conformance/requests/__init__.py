"""What is asked of the judge, by the command line and from Python."""
