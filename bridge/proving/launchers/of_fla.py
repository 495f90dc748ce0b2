"""flash-linear-attention's softmax attention (fla-core), which is causal: `--layout bnhd`."""

from fla.ops.attn.parallel import parallel_attn as _parallel_attn


def parallel_attn(query, key, value, is_causal, scale):
    if not is_causal or query.shape[1] != key.shape[1]:
        raise ValueError("causal attention of as many keys as queries is computed")
    return _parallel_attn(query, key, value, scale=scale)
