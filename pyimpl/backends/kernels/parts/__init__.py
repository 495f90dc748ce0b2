"""Shared by the kernels: functions that run inside of them, and how they are launched."""
