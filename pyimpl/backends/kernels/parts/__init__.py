"""What the kernels share: functions that run inside of them, and how they are launched."""
