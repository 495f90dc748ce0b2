module

public import Attention.Spec.Transformer
public import Attention.Vectors.Natural
public import Attention.Vectors.Random

public section

/-! # The parameters of a transformer's parts: over other numbers, listed, and drawn -/

namespace Attention.Vectors

open Spec

universe u

variable {m n d d_in d_out d_model num_heads d_ff s_vocab t_vocab : Nat}

/-! ## Over other numbers -/

section
variable {R : Type u} (f : Rat → R)

/-- `f` of each number of a matrix. -/
@[expose] def mapRows (X : Matrix Rat m n) : Matrix R m n := Vec.map (Vec.map f) X

/-- `f` of each number of a linear layer. -/
@[expose] def mapLinear (W : Linear Rat d_in d_out) : Linear R d_in d_out :=
  ⟨mapRows f W.weight, Vec.map f W.bias⟩

/-- `f` of each number of a normalisation. -/
@[expose] def mapLayerNorm (N : LayerNorm Rat d) : LayerNorm R d :=
  ⟨Vec.map f N.gain, Vec.map f N.bias⟩

/-- `f` of each number of a feed-forward network. -/
@[expose] def mapFeedForward (F : FeedForward Rat d d_ff) : FeedForward R d d_ff :=
  ⟨mapLinear f F.hidden, mapLinear f F.output⟩

/-- `f` of each number of multi-head attention. -/
@[expose] def mapMultiHead (W : MultiHead Rat d_model num_heads d) :
    MultiHead R d_model num_heads d :=
  ⟨mapLinear f W.query, mapLinear f W.key, mapLinear f W.value, mapLinear f W.output⟩

/-- `f` of each number of an encoder layer. -/
@[expose] def mapEncoder (L : EncoderLayer Rat d_model num_heads d d_ff) :
    EncoderLayer R d_model num_heads d d_ff :=
  ⟨mapMultiHead f L.attention, mapLayerNorm f L.attentionNorm, mapFeedForward f L.feedForward,
    mapLayerNorm f L.feedForwardNorm⟩

/-- `f` of each number of a decoder layer. -/
@[expose] def mapDecoder (L : DecoderLayer Rat d_model num_heads d d_ff) :
    DecoderLayer R d_model num_heads d d_ff :=
  ⟨mapMultiHead f L.attention, mapLayerNorm f L.attentionNorm, mapMultiHead f L.cross,
    mapLayerNorm f L.crossNorm, mapFeedForward f L.feedForward, mapLayerNorm f L.feedForwardNorm⟩

/-- `f` of each number of a transformer. -/
@[expose] def mapTransformer (T : Transformer Rat s_vocab t_vocab d_model num_heads d d_ff) :
    Transformer R s_vocab t_vocab d_model num_heads d d_ff :=
  ⟨mapRows f T.source, mapRows f T.target, T.encoder.map (mapEncoder f),
    T.decoder.map (mapDecoder f), mapLinear f T.output⟩

end

/-! ## Every number that is given -/

/-- The numbers of a matrix. -/
@[expose] def rowNumbers (X : Matrix Rat m n) : List Rat := X.toList.flatMap (·.toList)

/-- The numbers of a linear layer. -/
@[expose] def linearNumbers (W : Linear Rat d_in d_out) : List Rat := rowNumbers W.weight ++ W.bias.toList

/-- The numbers of a normalisation. -/
@[expose] def layerNormNumbers (N : LayerNorm Rat d) : List Rat := N.gain.toList ++ N.bias.toList

/-- The numbers of a feed-forward network. -/
@[expose] def feedForwardNumbers (F : FeedForward Rat d d_ff) : List Rat :=
  linearNumbers F.hidden ++ linearNumbers F.output

/-- The numbers of multi-head attention. -/
@[expose] def multiHeadNumbers (W : MultiHead Rat d_model num_heads d) : List Rat :=
  linearNumbers W.query ++ linearNumbers W.key ++ linearNumbers W.value ++ linearNumbers W.output

/-- The numbers of an encoder layer. -/
@[expose] def encoderNumbers (L : EncoderLayer Rat d_model num_heads d d_ff) : List Rat :=
  multiHeadNumbers L.attention ++ layerNormNumbers L.attentionNorm
    ++ feedForwardNumbers L.feedForward ++ layerNormNumbers L.feedForwardNorm

/-- The numbers of a decoder layer. -/
@[expose] def decoderNumbers (L : DecoderLayer Rat d_model num_heads d d_ff) : List Rat :=
  multiHeadNumbers L.attention ++ layerNormNumbers L.attentionNorm ++ multiHeadNumbers L.cross
    ++ layerNormNumbers L.crossNorm ++ feedForwardNumbers L.feedForward
    ++ layerNormNumbers L.feedForwardNorm

/-- The numbers of a transformer. -/
@[expose] def transformerNumbers (T : Transformer Rat s_vocab t_vocab d_model num_heads d d_ff) : List Rat :=
  rowNumbers T.source ++ rowNumbers T.target ++ T.encoder.flatMap encoderNumbers
    ++ T.decoder.flatMap decoderNumbers ++ linearNumbers T.output

/-! ## Drawn -/

/-- A vector of `n` draws. -/
def drawVec {α : Type} [Inhabited α] (gen : Gen α) (n : Nat) : Gen (Vector α n) := do
  let xs ← draws gen n
  return Vec.ofFn fun i => xs[i.val]!

/-- A random multiple of 1 / `per` between −`bound` / `per` and `bound` / `per`. -/
def fraction (bound per : Nat) : Gen Rat := return mkRat (← between (-bound) bound) per

/-- Random rows: multiples of 1/8 between −3 and 3. -/
def drawRows (m n : Nat) : Gen (Matrix Rat m n) := drawVec (drawVec (fraction 24 8) n) m

/-- A random linear layer: multiples of 1 / `per` between −6 / `per` and 6 / `per`. -/
def drawLinear (d_in d_out : Nat) (per : Nat := 4) : Gen (Linear Rat d_in d_out) :=
  return ⟨← drawVec (drawVec (fraction 6 per) d_in) d_out, ← drawVec (fraction 6 per) d_out⟩

/-- A random normalisation: gains of both signs, none of them 0 or 1, so that one that is left out
shows. -/
def drawLayerNorm (d : Nat) : Gen (LayerNorm Rat d) := do
  let gain : Gen Rat := do
    let x := mkRat (2 + (← below 9)) 8
    return if (← below 3) = 0 then -x else if x = 1 then 3 / 2 else x
  return ⟨← drawVec gain d, ← drawVec (fraction 6 8) d⟩

/-- A random feed-forward network. -/
def drawFeedForward (d d_ff : Nat) : Gen (FeedForward Rat d d_ff) :=
  return ⟨← drawLinear d d_ff, ← drawLinear d_ff d 8⟩

/-- Random multi-head attention, its numbers so small that no key has nearly all of the weight. -/
def drawMultiHead (d_model num_heads d : Nat) : Gen (MultiHead Rat d_model num_heads d) :=
  return ⟨← drawLinear d_model (num_heads * d) 8, ← drawLinear d_model (num_heads * d) 8,
    ← drawLinear d_model (num_heads * d) 8, ← drawLinear (num_heads * d) d_model 8⟩

/-- A random encoder layer. -/
def drawEncoder (d_model num_heads d d_ff : Nat) :
    Gen (EncoderLayer Rat d_model num_heads d d_ff) :=
  return ⟨← drawMultiHead d_model num_heads d, ← drawLayerNorm d_model,
    ← drawFeedForward d_model d_ff, ← drawLayerNorm d_model⟩

/-- A random decoder layer. -/
def drawDecoder (d_model num_heads d d_ff : Nat) :
    Gen (DecoderLayer Rat d_model num_heads d d_ff) :=
  return ⟨← drawMultiHead d_model num_heads d, ← drawLayerNorm d_model,
    ← drawMultiHead d_model num_heads d, ← drawLayerNorm d_model, ← drawFeedForward d_model d_ff,
    ← drawLayerNorm d_model⟩

end Attention.Vectors
