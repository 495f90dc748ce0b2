module

public import Attention.Algebra.Tangent
public import Attention.Spec.TransformerNorms

public section

/-! # A transformer whose parameters change

As in training: each parameter is on a path, and has a number and a rate at time 0. What is `Apart`
keeps the hidden units of feed-forward networks away from the place where max (0, x) has no
derivative. -/

namespace Attention.Proof

open Spec

universe u v w

variable {R : Type u} [OrderedField R] {ι : Type v}
variable {n s t d d_in d_out s_vocab t_vocab d_model num_heads d_ff : Nat}

/-! ## Parameters -/

/-- The parameters of a linear layer change at the rates that `W'` has. -/
@[expose] def LinearTangent (W : ι → R → Linear R d_in d_out)
    (W' : ι → Linear (Dual R) d_in d_out) : Prop :=
  MatrixTangent (fun x t => (W x t).weight) (fun x => (W' x).weight)
    ∧ VecTangent (fun x t => (W x t).bias) fun x => (W' x).bias

/-- Those of a layer normalisation. -/
@[expose] def LayerNormTangent (N : ι → R → LayerNorm R d) (N' : ι → LayerNorm (Dual R) d) :
    Prop :=
  VecTangent (fun x t => (N x t).gain) (fun x => (N' x).gain)
    ∧ VecTangent (fun x t => (N x t).bias) fun x => (N' x).bias

/-- Those of a feed-forward network. -/
@[expose] def FeedForwardTangent (F : ι → R → FeedForward R d d_ff)
    (F' : ι → FeedForward (Dual R) d d_ff) : Prop :=
  LinearTangent (fun x t => (F x t).hidden) (fun x => (F' x).hidden)
    ∧ LinearTangent (fun x t => (F x t).output) fun x => (F' x).output

/-- The parameters of multi-head attention change at the rates that `W'` has. -/
structure MultiHeadTangent (W : ι → R → MultiHead R d_model num_heads d)
    (W' : ι → MultiHead (Dual R) d_model num_heads d) : Prop where
  /-- The queries' projection. -/
  query : LinearTangent (fun x t => (W x t).query) fun x => (W' x).query
  /-- The keys' projection. -/
  key : LinearTangent (fun x t => (W x t).key) fun x => (W' x).key
  /-- The values' projection. -/
  value : LinearTangent (fun x t => (W x t).value) fun x => (W' x).value
  /-- The projection of the heads' outputs. -/
  output : LinearTangent (fun x t => (W x t).output) fun x => (W' x).output

/-- Those of an encoder layer. -/
structure EncoderLayerTangent (L : ι → R → EncoderLayer R d_model num_heads d d_ff)
    (L' : ι → EncoderLayer (Dual R) d_model num_heads d d_ff) : Prop where
  /-- Self-attention. -/
  attention : MultiHeadTangent (fun x t => (L x t).attention) fun x => (L' x).attention
  /-- The normalisation that goes with self-attention. -/
  attentionNorm : LayerNormTangent (fun x t => (L x t).attentionNorm)
    fun x => (L' x).attentionNorm
  /-- The feed-forward network. -/
  feedForward : FeedForwardTangent (fun x t => (L x t).feedForward) fun x => (L' x).feedForward
  /-- The normalisation that goes with the feed-forward network. -/
  feedForwardNorm : LayerNormTangent (fun x t => (L x t).feedForwardNorm)
    fun x => (L' x).feedForwardNorm

/-- Those of a decoder layer. -/
structure DecoderLayerTangent (L : ι → R → DecoderLayer R d_model num_heads d d_ff)
    (L' : ι → DecoderLayer (Dual R) d_model num_heads d d_ff) : Prop where
  /-- Self-attention. -/
  attention : MultiHeadTangent (fun x t => (L x t).attention) fun x => (L' x).attention
  /-- The normalisation that goes with self-attention. -/
  attentionNorm : LayerNormTangent (fun x t => (L x t).attentionNorm)
    fun x => (L' x).attentionNorm
  /-- Attention to the output of the encoder. -/
  cross : MultiHeadTangent (fun x t => (L x t).cross) fun x => (L' x).cross
  /-- The normalisation that goes with the attention to the output of the encoder. -/
  crossNorm : LayerNormTangent (fun x t => (L x t).crossNorm) fun x => (L' x).crossNorm
  /-- The feed-forward network. -/
  feedForward : FeedForwardTangent (fun x t => (L x t).feedForward) fun x => (L' x).feedForward
  /-- The normalisation that goes with the feed-forward network. -/
  feedForwardNorm : LayerNormTangent (fun x t => (L x t).feedForwardNorm)
    fun x => (L' x).feedForwardNorm

/-- The parameters of a list of layers change, layer by layer; their number does not. -/
@[expose] def LayersTangent {A A' : Type w} (P : (ι → R → A) → (ι → A') → Prop)
    (layers : ι → R → List A) (layers' : ι → List A') : Prop :=
  ∃ Ls : List ((ι → R → A) × (ι → A')), (∀ L ∈ Ls, P L.1 L.2)
    ∧ (∀ x t, layers x t = Ls.map fun L => L.1 x t) ∧ ∀ x, layers' x = Ls.map fun L => L.2 x

/-- The parameters of a transformer change at the rates that `T'` has. -/
structure TransformerTangent (T : ι → R → Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (T' : ι → Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff) : Prop where
  /-- The embeddings of the source's tokens. -/
  source : MatrixTangent (fun x t => (T x t).source) fun x => (T' x).source
  /-- The embeddings of the target's tokens. -/
  target : MatrixTangent (fun x t => (T x t).target) fun x => (T' x).target
  /-- The encoder's layers. -/
  encoder : LayersTangent EncoderLayerTangent (fun x t => (T x t).encoder) fun x => (T' x).encoder
  /-- The decoder's layers. -/
  decoder : LayersTangent DecoderLayerTangent (fun x t => (T x t).decoder) fun x => (T' x).decoder
  /-- The layer of the logits. -/
  output : LinearTangent (fun x t => (T x t).output) fun x => (T' x).output

/-- Those of a normalisation that is there at all times or at none. -/
@[expose] def FinalNormTangent (N : ι → R → Option (LayerNorm R d))
    (N' : ι → Option (LayerNorm (Dual R) d)) : Prop :=
  (∀ x t, N x t = none) ∧ (∀ x, N' x = none)
    ∨ ∃ (M : ι → R → LayerNorm R d) (M' : ι → LayerNorm (Dual R) d), LayerNormTangent M M'
      ∧ (∀ x t, N x t = some (M x t)) ∧ ∀ x, N' x = some (M' x)

/-- Those of the normalisations behind a transformer's encoder and decoder. -/
structure FinalNormsTangent (N : ι → R → FinalNorms R d_model)
    (N' : ι → FinalNorms (Dual R) d_model) : Prop where
  /-- That behind the encoder's layers. -/
  encoder : FinalNormTangent (fun x t => (N x t).encoder) fun x => (N' x).encoder
  /-- That behind the decoder's. -/
  decoder : FinalNormTangent (fun x t => (N x t).decoder) fun x => (N' x).decoder

/-! ## Hidden units -/

/-- No hidden unit of the network is, at the row `r`, less than κ away from 0 before it is
rectified: where one is 0, the network has no derivative. -/
@[expose] def FeedForwardApart (κ : R) (F : FeedForward R d d_ff) (r : Vec R d) : Prop :=
  ∀ j : Fin d_ff, κ ≤ (F.hidden.row r)[j] ∨ (F.hidden.row r)[j] ≤ -κ

variable [NaturalExp R] (κ : R) (sqrt : R → R) (ε scale : R) (normFirst : Bool)

/-- No hidden unit of an encoder layer is less than κ away from 0 before it is rectified. -/
@[expose] def EncoderLayerApart (mask : Mask n n) (L : EncoderLayer R d_model num_heads d d_ff)
    (X : Matrix R n d_model) : Prop :=
  if normFirst then
    let A := L.attentionNorm.rows sqrt ε X
    let X := addRows X (L.attention.rows scale mask A A A)
    ∀ i : Fin n, FeedForwardApart κ L.feedForward (L.feedForwardNorm.rows sqrt ε X)[i]
  else
    let X := L.attentionNorm.rows sqrt ε (addRows X (L.attention.rows scale mask X X X))
    ∀ i : Fin n, FeedForwardApart κ L.feedForward X[i]

/-- Nor of a decoder layer. -/
@[expose] def DecoderLayerApart (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (X : Matrix R t d_model) : Prop :=
  if normFirst then
    let A := L.attentionNorm.rows sqrt ε X
    let X := addRows X (L.attention.rows scale mask A A A)
    let X := addRows X (L.cross.rows scale crossMask (L.crossNorm.rows sqrt ε X) context context)
    ∀ i : Fin t, FeedForwardApart κ L.feedForward (L.feedForwardNorm.rows sqrt ε X)[i]
  else
    let X := L.attentionNorm.rows sqrt ε (addRows X (L.attention.rows scale mask X X X))
    let X := L.crossNorm.rows sqrt ε
      (addRows X (L.cross.rows scale crossMask X context context))
    ∀ i : Fin t, FeedForwardApart κ L.feedForward X[i]

/-- Nor of any layer of an encoder, each at what the layers before it make of `X`. -/
@[expose] def EncodeApart (mask : Mask n n) :
    List (EncoderLayer R d_model num_heads d d_ff) → Matrix R n d_model → Prop
  | [], _ => True
  | L :: layers, X => EncoderLayerApart κ sqrt ε scale normFirst mask L X
    ∧ EncodeApart mask layers (L.rows sqrt ε scale normFirst mask X)

/-- Nor of any layer of a decoder. -/
@[expose] def DecodeApart (mask : Mask t t) (crossMask : Mask t s) (context : Matrix R s d_model) :
    List (DecoderLayer R d_model num_heads d d_ff) → Matrix R t d_model → Prop
  | [], _ => True
  | L :: layers, X => DecoderLayerApart κ sqrt ε scale normFirst mask crossMask L context X
    ∧ DecodeApart mask crossMask context layers
      (L.rows sqrt ε scale normFirst mask crossMask context X)

/-- Nor of any layer of a transformer, for these tokens. -/
@[expose] def TransformerApart (norms : FinalNorms R d_model) (position : Nat → Vec R d_model)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) : Prop :=
  EncodeApart κ sqrt ε scale normFirst sourceMask T.encoder
      (addPositions position (embed T.source source))
    ∧ DecodeApart κ sqrt ε scale normFirst targetMask crossMask
      (encodeNormed sqrt ε scale normFirst sourceMask T.encoder norms.encoder
        (addPositions position (embed T.source source))) T.decoder
      (addPositions position (embed T.target target))

end Attention.Proof
