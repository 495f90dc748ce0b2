"""Run PTX, compiled by Triton, on a CPU: `launch.run` runs a launch, `machine` one program."""
