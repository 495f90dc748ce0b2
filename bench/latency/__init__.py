"""How long a call takes the host: `python -m bench.latency`."""
