"""What Triton compiled, PTX, run on a CPU: `launch.run` runs a launch, `machine` one program."""
