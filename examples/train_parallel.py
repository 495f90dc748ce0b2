"""Train on four processes

The demonstration of `pyimpl.modules`, a Transformer that learns to reverse sequences, with the
heads of every attention divided among four processes: the projections are parallel in their
tensors, as PyTorch's own plan makes them, and attention finds DTensors and computes its part. One
process trains the same model beside it, and every loss is the same. `ring_attention` is for
sequences that are too long for a device, instead of models too wide.

Run:

    .venv/bin/torchrun --standalone --nproc-per-node 4 examples/train_parallel.py

It prints:

    8 steps on 4 processes, a head on each: the losses of one process, and falling
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from pyimpl.modules import MultiHeadAttention
from pyimpl.modules.demonstration import Demonstration, Settings

PROCESSES, STEPS = 4, 8

if not dist.is_initialized():
    dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (PROCESSES,))


def losses(parallel: bool) -> Tensor:
    """Of each step; all processes draw the same batches, from the seed of the settings."""
    demonstration = Demonstration(Settings("reverse", num_heads=4, num_layers=1, held_out=10))
    model = demonstration.model.double()
    if parallel:
        # Their outputs stay DTensors, so that attention knows which heads they are.
        columns = ColwiseParallel(use_local_output=False)
        plan = {f"{name}_proj": columns for name in "qkv"} | {"out_proj": RowwiseParallel()}
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                parallelize_module(module, mesh, plan)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=False)
    found = []
    for _ in range(STEPS):
        loss = demonstration.loss(demonstration.batch(8))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.detach())
    return torch.stack(found)


parallel, alone = losses(True), losses(False)
torch.testing.assert_close(parallel, alone)
assert parallel[-3:].mean() < parallel[:3].mean()
if dist.get_rank() == 0:
    print(f"{STEPS} steps on {PROCESSES} processes, a head on each: the losses of one process,",
          "and falling")  # fmt: skip
