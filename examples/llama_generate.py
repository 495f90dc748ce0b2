"""Swap the attention of a Llama, and generate

A model of Hugging Face's transformers attends by `pyimpl.attention` after one line. This one is
tiny and has random weights, so that nothing is downloaded; `from_pretrained` takes
`attn_implementation=register()` for a real one. The prompts are padded on the left.

It prints:

    eager and pyimpl: the same 2 × 8 tokens, 5 of them different ones at least
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from pyimpl.integrations.transformers import register

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,  # grouped heads: two queries share a key
    initializer_range=0.5,  # far from 0, so that other tokens win than by rounding
    pad_token_id=0,
)
model = LlamaForCausalLM(config).eval()
prompts = torch.tensor([[11, 12, 13, 14], [0, 0, 21, 22]])


def generate() -> list[list[int]]:
    tokens = model.generate(
        prompts, attention_mask=prompts != 0, max_new_tokens=8, do_sample=False, eos_token_id=None
    )
    new: list[list[int]] = tokens[:, prompts.shape[1] :].tolist()
    return new


model.set_attn_implementation("eager")
expected = generate()
model.set_attn_implementation(register())
assert generate() == expected
assert len({*expected[0], *expected[1]}) >= 5  # a model that repeats one token shows nothing
print("eager and pyimpl: the same 2 × 8 tokens, 5 of them different ones at least")
