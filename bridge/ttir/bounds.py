"""The bounds that a launch of the forward kernel keeps to, so that no integer in it overflows.

`Attention.Kernel.Problem.Within` and, of packed sequences, `Attention.Kernel.Packed.Within` are
hypotheses in Lean; whether the launcher sees to them is asked here, of the launch that it makes.
"""

from __future__ import annotations

from pyimpl.backends.kernels.parts.launch import Launch

_PACKED_STRIDES = ("qh", "qm", "kh", "kn", "vh", "vn", "oh", "om", "lh", "xb", "yb")
_STRIDES = ("qb", "qh", "qm", "kb", "kh", "kn", "vb", "vh", "vn", "ob", "oh", "om", "lb", "lh")


def beyond(launch: Launch) -> list[str]:
    """The fields of these structures that the launch does not meet, `BV` as `BD`. Offsets that pass
    32 bits, and strides, make another text, which is in 64 bits and of which no theorem speaks:
    nothing is asked of it."""
    types, _ = launch.specialisation()
    far = any(types[name] == "i64" for name in types if name.startswith("stride_"))
    if launch.constants["FAR"] or far:
        return []

    def number(name: str) -> int:
        found = {**launch.arguments, **launch.constants}[name]
        assert isinstance(found, int)
        return found

    packed = launch.arguments["cu_q_ptr"] is not None
    q_len, kv_len, shift, block_n = (
        number(name) for name in ("q_len", "kv_len", "shift", "BLOCK_N")
    )
    left, right = launch.arguments["left"], launch.arguments["right"]
    # For packed sequences q_len and kv_len are the sums over all of them.
    lowest, highest = shift, shift
    if launch.constants["BOTTOM_RIGHT"]:
        lowest, highest = shift - q_len, shift + kv_len
    strides = [number(f"stride_{axis}") for axis in (_PACKED_STRIDES if packed else _STRIDES)]
    met = {
        "BM": number("BLOCK_M") <= 2**20,
        "BN": block_n <= 2**20,
        "BD": max(number("BLOCK_D"), number("BLOCK_V")) <= 256,
        "qLen": q_len < 2**29,
        "kvLen": kv_len < 2**29,
        "maxLen": not packed or number("max_q_len") <= q_len,
        "programs": launch.programs < 2**31,
        "keys": block_n * number("stride_kn") + 256 <= 2**31,
        "values": block_n * number("stride_vn") + 256 <= 2**31,
        "strides": all(0 <= stride < 2**31 for stride in strides),
        "shift": -(2**29) < shift < 2**29,
        "left": left is None or (left >= 0 and q_len - 1 + highest - left > 0),
        "right": right is None or (right >= 0 and lowest + right < kv_len - 1),
    }
    return [name for name, holds in met.items() if not holds]
