"""Multi-head attention with its projections, as a module.

`docs/modules.md` lists the changes from the code of the source document, and why.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack

import torch
from torch import Tensor, nn

from pyimpl.attention import attention
from pyimpl.backends.dispatch import Backend
from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import Alignment, Window, compute_dtype
from pyimpl.internal.dropout import checked_p
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import Changes, takes_changes
from pyimpl.modules.internal import conversion, masking
from pyimpl.modules.internal.in_shards import checked_context, together
from pyimpl.modules.internal.sizes import check_dtype, check_like_module, positive
from pyimpl.modules.keys_values import KeysValues

if TYPE_CHECKING:
    from pyimpl.distributed import ContextParallel


class _Given(NamedTuple):
    """Checked arguments of a call: query, key and value in their heads, `[batch, length, heads,
    dim]`, with the options of attention; the mask of keys as it was given; whether there is a batch
    dimension."""

    tensors: tuple[Tensor, Tensor, Tensor]
    options: dict[str, Any]
    key_mask: Tensor | None
    batched: bool


class MultiHeadAttention(nn.Module):
    """(head₁ | … | headₕ) Wₒ + bₒ, where headᵢ is attention on Q Wqᵢ + bqᵢ, K Wkᵢ + bkᵢ and
    V Wvᵢ + bvᵢ.

    It is `Attention.Spec.MultiHead.rows`, where num_kv_heads = num_heads; between the projections,
    which are `torch.nn.Linear`, it is `Attention.Spec.groupedQuery`, as `pyimpl.attention` computes
    it. Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2.

    Unlike `torch.nn.MultiheadAttention`, it has `batch_first` unless told otherwise, True in a mask
    means "may attend", and it returns the output alone. `from_torch` and `to_torch` convert.

    Args:
        query_dim: width of the queries.
        num_heads: heads of the queries.
        key_dim, value_dim: widths of the keys and values; query_dim if None.
        output_dim: width of the output; query_dim if None.
        head_dim: width of one head of projected queries and keys; query_dim / num_heads if None.
        value_head_dim: width of one head of projected values; head_dim if None.
        num_kv_heads: heads of the keys and values, a number that divides num_heads; num_heads if
            None. Query head h uses head h // (num_heads / num_kv_heads) of them.
        scale: the factor of the scores where `forward` is given none; 1/√head_dim if None.
        bias: whether the four projections add a bias.
        add_bias_kv: one more key and value, learned (`bias_k`, `bias_v`), after those of every
            sequence; no mask hides them.
        add_zero_attn: one more key and value, zero, which no mask hides: a sink of score 0.
        dropout: the probability with which a weight is dropped in training mode, as `dropout_p` of
            `pyimpl.attention`; none in eval mode.
        batch_first: the tensors are `[batch, length, width]`; otherwise `[length, batch, width]`.
        device, dtype: of the parameters.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """

    bias_k: nn.Parameter | None
    bias_v: nn.Parameter | None

    def __init__(
        self,
        query_dim: int,
        num_heads: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        output_dim: int | None = None,
        head_dim: int | None = None,
        value_head_dim: int | None = None,
        num_kv_heads: int | None = None,
        scale: float | None = None,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.query_dim = query_dim = positive("query_dim", query_dim)
        self.num_heads = num_heads = positive("num_heads", num_heads)
        if head_dim is None and query_dim % num_heads:
            raise ValueError(
                f"query_dim must be a multiple of num_heads, {num_heads}, not {query_dim}, "
                "unless head_dim is given"
            )
        self.key_dim = positive("key_dim", key_dim, query_dim)
        self.value_dim = positive("value_dim", value_dim, query_dim)
        self.output_dim = positive("output_dim", output_dim, query_dim)
        self.head_dim = positive("head_dim", head_dim, query_dim // num_heads)
        self.value_head_dim = positive("value_head_dim", value_head_dim, self.head_dim)
        self.num_kv_heads = positive("num_kv_heads", num_kv_heads, num_heads)
        if num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_kv_heads must divide num_heads, {num_heads}, which {self.num_kv_heads} does "
                "not"
            )
        flags = {
            "bias": bias,
            "add_bias_kv": add_bias_kv,
            "add_zero_attn": add_zero_attn,
            "batch_first": batch_first,
        }
        for name, flag in flags.items():
            check.check_bool(name, flag)
        self.dropout = checked_p("dropout", dropout)
        self.add_zero_attn = add_zero_attn
        self.batch_first = batch_first
        check_dtype(dtype)
        check.check_scale(scale, torch.get_default_dtype() if dtype is None else dtype)
        self.scale = None if scale is None else float(scale)

        def linear(inside: int, outside: int) -> nn.Linear:
            return nn.Linear(inside, outside, bias=bias, device=device, dtype=dtype)

        keys, values = self.num_kv_heads * self.head_dim, self.num_kv_heads * self.value_head_dim
        self.q_proj = linear(query_dim, num_heads * self.head_dim)
        self.k_proj = linear(self.key_dim, keys)
        self.v_proj = linear(self.value_dim, values)
        self.out_proj = linear(num_heads * self.value_head_dim, self.output_dim)
        for name, width in (("bias_k", keys), ("bias_v", values)):
            one = torch.empty(1, 1, width, device=device, dtype=dtype) if add_bias_kv else None
            self.register_parameter(name, None if one is None else nn.Parameter(one))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights uniform after Glorot and Bengio (Xavier), biases 0, `bias_k` and `bias_v` normal
        after the same."""
        for linear in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                nn.init.xavier_normal_(added)

    @implements("Attention.Spec.MultiHead.attend")
    @implements("Attention.Spec.MultiHead.rows")
    @takes_changes
    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        projected: KeysValues | None = None,
        attn_mask: Tensor | None = None,
        key_mask: Tensor | None = None,
        is_causal: bool = False,
        causal_alignment: Alignment = "top-left",
        window: Window = (None, None),
        dropout_seed: int | Tensor | None = None,
        context_parallel: ContextParallel | None = None,
        backend: Backend = "auto",
        **changes: Unpack[Changes],
    ) -> Tensor:
        """The output `[batch, q_len, output_dim]`, `[q_len, batch, output_dim]` without
        `batch_first`, or, for unbatched inputs, `[q_len, output_dim]`.

        Args:
            query: `[batch, q_len, query_dim]` (`[q_len, batch, query_dim]` without `batch_first`)
                or `[q_len, query_dim]`, of the dtype and device of the module.
            key: as many dimensions, kv_len for q_len and key_dim for query_dim; query if None.
            value: likewise, value_dim for query_dim; key if None.
            projected: the result of `project`, in the place of key and value.
            attn_mask: boolean, True = may attend, or floating, added to the scores after they are
                scaled; broadcastable to `[q_len, kv_len]` or `[batch, num_heads, q_len, kv_len]`,
                or `[batch · num_heads, q_len, kv_len]`. Keys that `add_bias_kv` and `add_zero_attn`
                add are not part of kv_len.
            key_mask: `[batch, kv_len]` (`[kv_len]` for unbatched inputs), boolean, True = may be
                attended to, or floating, added likewise. Both masks, causality and the window apply
                together.
            alibi_slopes: as for `pyimpl.attention`; not with `add_bias_kv`, whose key has no
                position.
            context_parallel: query, key and value are the parts of sequences that this process
                holds, and attention is over the whole (`pyimpl.distributed.ContextParallel`).
                key_mask is then of all keys in the order of the sequence, the same in every
                process; attn_mask as for the function that attends; dropout_seed must be given,
                where weights are dropped. Not with `add_bias_kv`. The gradients of the parameters
                are by the outputs of this process: their sum over the processes is that of all.
            The rest, with the `Changes` of the scores, as for `pyimpl.attention`, positions being
            those of query and key.

        A query that may attend to no key gets 0 from every head, so the output is the bias of
        `out_proj`. With `add_bias_kv`, causality and windows are made into a mask of q_len × kv_len
        booleans.

        Raises:
            TypeError, ValueError: as `pyimpl.attention` does; where it finds NaN or +∞ in a
                floating mask it names attn_mask, or bias if there is a boolean one.
            NotImplementedError: as `pyimpl.attention`.
        """
        context = checked_context(context_parallel)

        def prepare() -> _Given:
            return self._check_and_project(
                query, key, value, projected, attn_mask, key_mask, context,
                is_causal=is_causal, causal_alignment=causal_alignment, window=window, **changes,
            )  # fmt: skip

        tensors, options, _, batched = together(
            context, "MultiHeadAttention", query, prepare, lambda x: {"key_mask": x.key_mask}
        )
        options |= {
            "dropout_p": self.dropout if self.training else 0.0,
            "dropout_seed": dropout_seed,
            "enable_gqa": True,
            "backend": backend,
        }
        if context is None:
            heads = attention(*tensors, layout="bnhd", **options)
        else:
            heads = context.attend(*tensors, **options)
        assert isinstance(heads, Tensor)
        out = heads.flatten(-2)
        if not batched:
            out = out[0]
        elif not self.batch_first:
            out = out.transpose(0, 1)
        result: Tensor = self.out_proj(out)
        return result

    def _check_and_project(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        projected: KeysValues | None,
        attn_mask: Tensor | None,
        key_mask: Tensor | None,
        context: ContextParallel | None,
        *,
        is_causal: bool,
        causal_alignment: Alignment,
        window: Window,
        **changes: Unpack[Changes],
    ) -> _Given:
        """The arguments of `forward`, checked and projected."""
        if projected is None:
            if context is not None and key is None and context.key_shards is not None:
                raise ValueError(
                    "the key_shards of context_parallel must be None where the keys are of the "
                    "queries' sequence"
                )
            key = query if key is None else key
            value = key if value is None else value
            order = self._check_inputs(query=query, key=key, value=value)
            batched = len(order) == 2
            projected = self._project(key, value)
            q = self._sequences(self.q_proj(query))
        else:
            if key is not None or value is not None:
                raise ValueError("key and value must be None with projected, which is both")
            batched = len(self._check_inputs(query=query)) == 2
            q = self._sequences(self.q_proj(query))
            self._check_projected(q, projected)
        k, v = projected.keys, projected.values
        pairs = (q.shape[1], k.shape[1]) if context is None else context.pairs(q.shape[1])
        sizes = (q.shape[0], self.num_heads, *pairs)
        masks: list[Tensor] = []
        if attn_mask is not None:
            masks.append(masking.checked_attn_mask(attn_mask, q, sizes))
        if key_mask is not None:
            masks.append(masking.checked_key_mask(key_mask, q, sizes, batched=batched))
        if self.bias_k is not None and self.bias_v is not None:
            if context is not None:
                raise ValueError(
                    "context_parallel must be None with add_bias_kv: the key that it adds is in no "
                    "shard"
                )
            if changes.get("alibi_slopes") is not None:
                raise ValueError(
                    "alibi_slopes must be None with add_bias_kv: the key that it adds has no "
                    "position"
                )
            positions = masking.window_mask(sizes, is_causal, causal_alignment, window, q.device)
            masks += [] if positions is None else [positions]
            is_causal, window = False, (None, None)
            k, v = _append_row(k, self.bias_k), _append_row(v, self.bias_v)
        visible, bias = masking.combine(masks, q.dtype)
        if self.bias_k is not None:
            visible, bias = masking.widen(visible), masking.widen(bias)
        # Alone it keeps the name under which it may be refused.
        visible, bias = (bias, None) if visible is None else (visible, bias)
        changes["sinks"] = self._sinks(changes.get("sinks"), q)
        if changes.get("scale") is None:
            changes["scale"] = self.scale
        tensors = (
            _heads(q, self.num_heads, self.head_dim),
            _heads(k, self.num_kv_heads, self.head_dim),
            _heads(v, self.num_kv_heads, self.value_head_dim),
        )
        options = {
            "attn_mask": visible,
            "bias": bias,
            "is_causal": is_causal,
            "causal_alignment": causal_alignment,
            "window": window,
            **changes,
        }
        return _Given(tensors, options, key_mask, batched)

    def project(self, key: Tensor, value: Tensor | None = None) -> KeysValues:
        """The keys and values that attention works on, to be kept and given as `projected`: a
        decoder's cache. `key`, `value` (key if None) and errors as for `forward`.

        The key of `add_bias_kv` is not among them; each call of `forward` adds it behind the last.
        """
        value = key if value is None else value
        self._check_inputs(key=key, value=value)
        return self._project(key, value)

    def _project(self, key: Tensor, value: Tensor) -> KeysValues:
        """`project` of checked inputs."""
        return KeysValues(self._sequences(self.k_proj(key)), self._sequences(self.v_proj(value)))

    def _sequences(self, projected: Tensor) -> Tensor:
        """As `[batch, length, width]`."""
        if projected.dim() == 2:
            return projected[None]
        return projected if self.batch_first else projected.transpose(0, 1)

    def _check_projected(self, q: Tensor, projected: KeysValues) -> None:
        """Raises TypeError or ValueError unless `project` made this for these queries."""
        if not isinstance(projected, KeysValues):
            raise TypeError(
                f"projected must be the result of project, not {type(projected).__name__}"
            )
        widths = (self.k_proj.out_features, self.v_proj.out_features)
        for name, width in zip(("keys", "values"), widths, strict=True):
            given: Tensor = getattr(projected, name)
            wanted = [q.shape[0], projected.length, width]
            if check.shape(given) != wanted:
                raise ValueError(
                    f"the {name} of projected must be of shape {wanted}, [batch, kv_len, width], "
                    f"not {check.shape(given)}"
                )

    def _check_inputs(self, **named: Tensor) -> tuple[str, ...]:
        """The names of the dimensions before the last, ("length",) without a batch; raises
        TypeError or ValueError for tensors that the projections cannot take. `named`: query, key
        and value, or some of them."""
        order: tuple[str, ...] = ("batch", "length") if self.batch_first else ("length", "batch")
        leading = next(iter(named.values()))
        if isinstance(leading, Tensor) and leading.dim() == 2:
            order = ("length",)
        for name, given in named.items():
            width = getattr(self, f"{name}_dim")
            check.check_floating({name: given}, (*order, f"{name}_dim"))
            if given.shape[-1] != width:
                raise ValueError(
                    f"the last dimension of {name} must be {name}_dim, {width}, not "
                    f"{given.shape[-1]}"
                )
            check_like_module(name, given, self.q_proj.weight)
        # Before a key is added, after which the sentence would count it.
        for (first, other), (name, given) in pairwise(named.items()):
            for dim, size in enumerate(order):
                if given.shape[dim] != other.shape[dim] and (size == "batch" or name == "value"):
                    raise ValueError(
                        f"{name} must have the {size} of {first}, {other.shape[dim]}, not "
                        f"{given.shape[dim]}"
                    )
        return order

    def _sinks(self, sinks: Tensor | None, q: Tensor) -> Tensor | None:
        """The sinks, with that of `add_zero_attn`: the score of a zero key is 0, its value adds
        nothing, and two sinks are one whose exponential is the sum of theirs."""
        if not self.add_zero_attn:
            return sinks
        zero = q.new_zeros(self.num_heads, dtype=compute_dtype(q.dtype))
        if sinks is None:
            return zero
        sinks = check.check_per_head("sinks", sinks, q, [[self.num_heads]])
        return torch.logaddexp(sinks.to(zero.dtype), zero)

    def extra_repr(self) -> str:
        """The sizes and options that the projections do not show."""
        said = f"num_heads={self.num_heads}"
        if self.num_kv_heads != self.num_heads:
            said += f", num_kv_heads={self.num_kv_heads}"
        if self.scale is not None:
            said += f", scale={self.scale:g}"
        for name in ("add_zero_attn", "dropout", "batch_first"):
            said += f", {name}={getattr(self, name)}"
        return f"{said}, add_bias_kv={self.bias_k is not None}"

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> Self:
        """A module with copies of the parameters, and the mode, of a `torch.nn.MultiheadAttention`,
        whose outputs it equals (`docs/modules.md` has the exceptions).

        Raises:
            TypeError: `module` is something else.
        """
        return conversion.from_torch(cls, module)

    def to_torch(self) -> nn.MultiheadAttention:
        """A `torch.nn.MultiheadAttention` with copies of the parameters, and the mode, of this one.

        A parameter of which it holds three in one requires a gradient if one of them does.

        Raises:
            ValueError: it cannot hold this module's widths or heads.
        """
        return conversion.to_torch(self)


def _append_row(projected: Tensor, added: Tensor) -> Tensor:
    """`[batch, length, width]` with one more row, the same in every sequence."""
    row = added.to(projected.dtype).expand(projected.shape[0], 1, -1)
    return torch.cat((projected, row), dim=1)


@implements("Attention.Spec.splitHeads")
def _heads(projected: Tensor, count: int, width: int) -> Tensor:
    """`[batch, length, count · width]` as `[batch, length, count, width]`."""
    return projected.reshape(*projected.shape[:-1], count, width)
