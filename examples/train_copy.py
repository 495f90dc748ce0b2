"""Train a Transformer to copy

An encoder and decoder of `pyimpl.modules` learns to repeat sequences of 2 to 6 symbols, and is
judged on sequences that it decodes greedily, token by token with a cache. For longer sequences, or
to reverse them, there is `pyimpl.modules.demonstration`.

It prints:

    more than 95% of 200 sequences copied exactly
"""

import torch
from torch import Tensor, nn

from pyimpl.modules import Transformer

PAD, BOS, EOS, FIRST, LAST, LONGEST = 0, 1, 2, 3, 8, 6

torch.manual_seed(0)
model = Transformer(
    LAST + 1, LAST + 1, d_model=48, num_heads=4, num_encoder_layers=1, num_decoder_layers=1,
    dim_feedforward=96, dropout=0.0, tie_embeddings=True,
)  # fmt: skip


def batch(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sequences with padding, their lengths, and the same with EOS behind each."""
    lens = torch.randint(2, LONGEST + 1, (size,))
    padding = torch.arange(LONGEST) >= lens[:, None]
    source = torch.randint(FIRST, LAST + 1, (size, LONGEST)).masked_fill(padding, PAD)
    target = nn.functional.pad(source, (0, 1), value=PAD).scatter(1, lens[:, None], EOS)
    return source, lens, target


STEPS = 250
optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=1e-2, total_steps=STEPS)
for _ in range(STEPS):
    source, lens, target = batch(64)
    before = nn.functional.pad(target[:, :-1], (1, 0), value=BOS)  # each token from those before it
    logits = model(source, before, src_lens=lens)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    schedule.step()

source, lens, target = batch(200)
found = model.eval().generate(source, LONGEST + 1, bos=BOS, eos=EOS, src_lens=lens)
found = nn.functional.pad(found, (0, LONGEST + 1 - found.shape[1]), value=EOS)
right = ((found == target) | (target == PAD)).all(dim=1)
assert right.float().mean() > 0.95
print(f"more than 95% of {len(right)} sequences copied exactly")
