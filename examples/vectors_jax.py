"""The vectors from JAX

The same export, read with numpy: the bits of each array row by row, and the tolerance of each
element. It judges a function of `jax.numpy`; put your own in its place, which may take the vectors'
arguments beside masks, too. `conform` judges a JAX function through one that takes and returns
tensors of PyTorch ([a layout of one's own](conform.md#a-layout-of-ones-own)).

Run:

    .venv/bin/python -m pip install 'jax>=0.10'
    .venv/bin/python -m bridge export build/hex --family causal --tolerances float32
    .venv/bin/python examples/vectors_jax.py build/hex/causal.json

It prints:

    18 vectors, 0 fail
"""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def numbers(array: dict[str, Any], name: str) -> np.ndarray:
    """The numbers whose bits, the sign first, stand there in hex."""
    kind = {"float32": ">f4", "float64": ">f8"}[name]
    flat = np.frombuffer(bytes.fromhex("".join(array[name])), kind)
    return flat.reshape(array["shape"]).astype(kind[1:])


@jax.jit
def attention(query: Any, key: Any, value: Any, visible: Any, factor: float) -> Any:
    """[length, dim] each, one head; a query that sees no key gives 0."""
    scores = jnp.where(visible, factor * (query @ key.T), -jnp.inf)
    largest = jnp.max(scores, axis=-1, keepdims=True)
    weights = jnp.exp(scores - jnp.where(visible.any(-1, keepdims=True), largest, 0))
    total = weights.sum(-1, keepdims=True)
    return weights @ value / jnp.where(total == 0, 1, total)


with open(sys.argv[1], encoding="utf-8") as file:
    vectors = json.load(file)["vectors"]
failed = 0
for one in vectors:
    inputs = (numbers(one[name], "float32") for name in ("q", "k", "v"))
    visible = np.array([[mark == "1" for mark in row] for row in one["visible"]])
    factor = float(numbers(one["score_factor"], "float64"))
    out = np.asarray(attention(*inputs, visible, factor))
    output, tolerance = one["expected"]["output"], one["tolerance"]["output"]
    error = np.abs(out - numbers(output, "float64"))
    # Written so that NaN is no pass.
    if not (error <= numbers(tolerance, "float64")).all():
        print(f"{one['id']} fails")
        failed += 1
print(f"{len(vectors)} vectors, {failed} fail")
sys.exit(failed != 0)
