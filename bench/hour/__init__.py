"""The parts of `python -m bench.gpu_hour` and `python -m bench.gpu_report`."""
