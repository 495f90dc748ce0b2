"""Continuous batching over a paged cache

Requests come and go while others are decoded. Their keys and values lie in pages of 4 tokens, taken
from one pool and given back when a request is done, as vLLM does it; a table says which pages are
whose. The batch of each step is whoever is there, `attention_decode` takes their different lengths,
and pages that belonged to others before are overwritten without being cleared.

It prints:

    step 0: [a 4 tokens] in 1 of 6 pages
    step 1: [a 5 tokens] [b 10 tokens] in 5 of 6 pages
    step 2: [a 6 tokens] [b 11 tokens] in 5 of 6 pages
    step 3: [b 12 tokens] [c 3 tokens] in 4 of 6 pages
    step 4: [b 13 tokens] [c 4 tokens] in 5 of 6 pages
    step 5: [c 5 tokens] in 2 of 6 pages
    every step: as over the tokens of each request alone
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from pyimpl import attention, attention_decode

PAGES, PAGE_SIZE, HEADS, KV_HEADS, DIM = 6, 4, 4, 2, 8

torch.manual_seed(0)
key_pool, value_pool = (torch.full((PAGES, KV_HEADS, PAGE_SIZE, DIM), torch.nan) for _ in range(2))
free = list(range(PAGES))


@dataclass
class Request:
    name: str
    arrives: int  # the step
    steps: int  # how many it is decoded for
    keys: Tensor  # [tokens, kv_heads, dim] of prompt and decoded tokens; here random
    values: Tensor
    length: int = 0
    pages: list[int] = field(default_factory=list)

    def append(self, count: int) -> None:
        """The next tokens into the pool, in new pages where the last one is full."""
        for t in range(self.length, self.length + count):
            if t % PAGE_SIZE == 0:
                self.pages.append(free.pop())
            slot = self.pages[-1], slice(None), t % PAGE_SIZE
            key_pool[slot], value_pool[slot] = self.keys[t], self.values[t]
        self.length += count


def request(name: str, arrives: int, prompt: int, steps: int) -> Request:
    keys, values = (torch.randn(prompt + steps, KV_HEADS, DIM) for _ in range(2))
    return Request(name, arrives, steps, keys, values)


waiting = [request("a", 0, 3, 3), request("b", 1, 9, 4), request("c", 3, 2, 3)]
running: list[Request] = []
step = 0
while waiting or running:
    for one in [one for one in waiting if one.arrives == step]:
        waiting.remove(one)
        one.append(len(one.keys) - one.steps)  # the prompt; a model computes it in one go
        running.append(one)
    for one in running:
        one.append(1)  # the token that was decoded last

    kv_lens = torch.tensor([one.length for one in running])
    # Rows of one length: entries behind a request's own pages are not read.
    table = torch.zeros(len(running), max(len(one.pages) for one in running), dtype=torch.int64)
    for row, one in zip(table, running, strict=True):
        row[: len(one.pages)] = torch.tensor(one.pages)
    query = torch.randn(len(running), HEADS, 1, DIM)
    out = attention_decode(
        query, key_pool, value_pool, kv_lens=kv_lens, page_table=table, enable_gqa=True
    )

    for n, one in enumerate(running):
        keys, values = (x[: one.length].transpose(0, 1)[None] for x in (one.keys, one.values))
        alone = attention(query[n : n + 1], keys, values, enable_gqa=True)
        torch.testing.assert_close(out[n : n + 1], alone)
    batch = " ".join(f"[{one.name} {one.length} tokens]" for one in running)
    print(f"step {step}: {batch} in {PAGES - len(free)} of {PAGES} pages")

    for one in running:
        one.steps -= 1
        if one.steps == 0:
            free += one.pages  # given back as they are
    running = [one for one in running if one.steps]
    step += 1
print("every step: as over the tokens of each request alone")
