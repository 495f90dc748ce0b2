"""This attention where other libraries look for theirs.

`sdpa` has PyTorch's signature and replaces `scaled_dot_product_attention` for a while; `layers`
swaps the `torch.nn.MultiheadAttention` of a model; `flash` enters it in PyTorch's table of
flash-attention implementations; `transformers` registers it with Hugging Face's library; `flops`
has PyTorch count its operations. Neither library is changed by an import.
"""
