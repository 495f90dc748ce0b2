module

public import Attention.Spec.FeedForward
public import Attention.Spec.LayerNorm
public import Attention.Spec.MultiHead

public section

/-! # The layers of a transformer

A layer adds to its input what attention makes of it, and to that what the feed-forward network
makes of that. With `preNorm` what enters each of these parts is normalised before; with `postNorm`
each sum is, after.
Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1 (normalised after); Xiong et
al. 2020, "On Layer Normalization in the Transformer Architecture", table 1 (before and after). -/

namespace Attention.Spec

universe u

/-- The parameters of an encoder layer. -/
structure EncoderLayer (R : Type u) (d_model num_heads d d_ff : Nat) where
  /-- Self-attention. -/
  attention : MultiHead R d_model num_heads d
  /-- The normalisation that goes with self-attention. -/
  attentionNorm : LayerNorm R d_model
  /-- The feed-forward network. -/
  feedForward : FeedForward R d_model d_ff
  /-- The normalisation that goes with the feed-forward network. -/
  feedForwardNorm : LayerNorm R d_model

/-- The parameters of a decoder layer: those of an encoder layer, and attention to the output of the
encoder. -/
structure DecoderLayer (R : Type u) (d_model num_heads d d_ff : Nat) where
  /-- Self-attention. -/
  attention : MultiHead R d_model num_heads d
  /-- The normalisation that goes with self-attention. -/
  attentionNorm : LayerNorm R d_model
  /-- Attention to the output of the encoder. -/
  cross : MultiHead R d_model num_heads d
  /-- The normalisation that goes with the attention to the output of the encoder. -/
  crossNorm : LayerNorm R d_model
  /-- The feed-forward network. -/
  feedForward : FeedForward R d_model d_ff
  /-- The normalisation that goes with the feed-forward network. -/
  feedForwardNorm : LayerNorm R d_model

variable {R : Type u} {n s t d_model num_heads d d_ff : Nat}
variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Max R] [Exp R R]
variable (sqrt : R → R) (ε scale : R)

/-- An encoder layer, normalised before: LN, attention, sum; LN, feed-forward, sum. -/
@[expose] def EncoderLayer.preNorm (mask : Mask n n) (L : EncoderLayer R d_model num_heads d d_ff)
    (X : Matrix R n d_model) : Matrix R n d_model :=
  let A := L.attentionNorm.rows sqrt ε X
  let X := addRows X (L.attention.rows scale mask A A A)
  addRows X (L.feedForward.rows (L.feedForwardNorm.rows sqrt ε X))

/-- An encoder layer, normalised after: attention, sum, LN; feed-forward, sum, LN. -/
@[expose] def EncoderLayer.postNorm (mask : Mask n n) (L : EncoderLayer R d_model num_heads d d_ff)
    (X : Matrix R n d_model) : Matrix R n d_model :=
  let X := L.attentionNorm.rows sqrt ε (addRows X (L.attention.rows scale mask X X X))
  L.feedForwardNorm.rows sqrt ε (addRows X (L.feedForward.rows X))

/-- A decoder layer, normalised before. `mask` is that of the self-attention, `crossMask` that of
the attention to the rows of `context`. -/
@[expose] def DecoderLayer.preNorm (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (X : Matrix R t d_model) : Matrix R t d_model :=
  let A := L.attentionNorm.rows sqrt ε X
  let X := addRows X (L.attention.rows scale mask A A A)
  let X := addRows X
    (L.cross.rows scale crossMask (L.crossNorm.rows sqrt ε X) context context)
  addRows X (L.feedForward.rows (L.feedForwardNorm.rows sqrt ε X))

/-- A decoder layer, normalised after. -/
@[expose] def DecoderLayer.postNorm (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (X : Matrix R t d_model) : Matrix R t d_model :=
  let X := L.attentionNorm.rows sqrt ε (addRows X (L.attention.rows scale mask X X X))
  let X := L.crossNorm.rows sqrt ε
    (addRows X (L.cross.rows scale crossMask X context context))
  L.feedForwardNorm.rows sqrt ε (addRows X (L.feedForward.rows X))

end Attention.Spec
