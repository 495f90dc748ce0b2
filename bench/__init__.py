"""Time attention against its peers, side by side in one process: `python -m bench`."""
