"""Modules for PyTorch that are built on `pyimpl.attention`."""

from pyimpl.modules.decoder import Decoder, DecoderLayer
from pyimpl.modules.encoder import Encoder, EncoderLayer
from pyimpl.modules.feed_forward import FeedForward
from pyimpl.modules.keys_values import KeysValues
from pyimpl.modules.multi_head_attention import MultiHeadAttention
from pyimpl.modules.positions import sinusoidal_encoding
from pyimpl.modules.transformer import Transformer

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "KeysValues",
    "MultiHeadAttention",
    "Transformer",
    "sinusoidal_encoding",
]
