"""Draw tiles, errors and states

`pyimpl.visualize` draws the numbers that are printed otherwise; it needs matplotlib. Which tiles of
scores a causal window lets be skipped, and which need a mask. The errors of a row of float32, one
number of which is spoiled, against the tolerance that `conform` judges by. And the state of one
query from block to block: m only rises, and o / l ends in attention.

![of 8 × 8 tiles those near the diagonal are visited](images/picture-tiles.png)

![errors of 32 elements below a line, one far above it](images/picture-errors.png)

![three curves in steps over the keys seen](images/picture-states.png)

It prints:

    tiles: 30 of 64 visited, 17 of them with a mask
    errors: 31 of 32 within the tolerance
    states: the last of 6 is attention
"""

import sys
from pathlib import Path

import torch

from bridge.conformance.tolerances.rounding_model import CHOICES
from bridge.conformance.tolerances.tolerance import attention_tolerance
from pyimpl import attention, visualize
from pyimpl.state import finish

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/pictures")
folder.mkdir(parents=True, exist_ok=True)

window = {"is_causal": True, "window": (200, None)}
visualize.draw_tiles(512, 512, **window).savefig(folder / "picture-tiles.png")
tiles = visualize.visited_tiles(512, 512, **window)
print(
    f"tiles: {(tiles != visualize.SKIPPED).sum()} of {tiles.numel()} visited,",
    f"{(tiles == visualize.MASKED).sum()} of them with a mask",
)

torch.manual_seed(0)
q, k, v = (torch.randn(1, 1, 40, 32) for _ in range(3))
got = attention(q, k, v)[0, 0, 0]
got[7] += 1e-3
expected = attention(q.double(), k.double(), v.double())[0, 0, 0]
rounding = CHOICES["generous"]("float32")
allowed = attention_tolerance(q[0, 0], k[0, 0], v[0, 0], scale=32**-0.5, rounding=rounding)
row = got.double(), expected, torch.from_numpy(allowed[0])
visualize.draw_errors(*row).savefig(folder / "picture-errors.png")
within = (row[0] - row[1]).abs() <= row[2]
print(f"errors: {within.sum()} of {len(within)} within the tolerance")

scores = k[0, 0].double() @ q[0, 0, 0].double() * 32**-0.5
values = v[0, 0, :, :3].double()
visualize.draw_states(scores, values, block_n=8).savefig(folder / "picture-states.png")
states = visualize.states_by_block(scores, values, block_n=8)
torch.testing.assert_close(finish(states[-1])[0], torch.softmax(scores, 0) @ values)
print(f"states: the last of {len(states)} is attention")
