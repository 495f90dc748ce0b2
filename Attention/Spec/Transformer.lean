module

public import Attention.Spec.Embedding
public import Attention.Spec.Masks
public import Attention.Spec.TransformerLayer

public section

/-! # The transformer

An encoder makes rows of the source tokens, a decoder rows of the target tokens and of those of the
encoder, and a linear layer with a softmax probabilities of that.
Source: Vaswani et al. 2017, "Attention Is All You Need", section 3; the layers are normalised
before (`EncoderLayer.preNorm`) or after (`EncoderLayer.postNorm`). -/

namespace Attention.Spec

universe u

/-- The parameters of a transformer. -/
structure Transformer (R : Type u) (s_vocab t_vocab d_model num_heads d d_ff : Nat) where
  /-- The embeddings of the source's tokens. -/
  source : Matrix R s_vocab d_model
  /-- The embeddings of the target's tokens. -/
  target : Matrix R t_vocab d_model
  /-- The encoder's layers. -/
  encoder : List (EncoderLayer R d_model num_heads d d_ff)
  /-- The decoder's layers. -/
  decoder : List (DecoderLayer R d_model num_heads d d_ff)
  /-- The layer of the logits. -/
  output : Linear R d_model t_vocab

variable {R : Type u} {n s t s_vocab t_vocab d_model num_heads d d_ff : Nat}

/-- The place of the largest component, the first if there are several; none in a vector without
components. -/
@[expose] def argmax [LE R] [DecidableLE R] (x : Vec R n) : Option (Fin n) :=
  (List.finRange n).foldl (fun best j =>
    match best with
    | none => some j
    | some b => if x[j] ≤ x[b] then some b else some j) none

variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Max R] [Exp R R]

omit [Sub R] [Mul R] [OfNat R 1] [Max R] in
/-- The softmax of a vector, none of whose components is masked. -/
@[expose] def softmaxVec (x : Vec R n) : Vec R n :=
  ⟨(softmax (x.toList.map some)).toArray, by simp [softmax]⟩

variable (sqrt : R → R) (ε scale : R)

/-- The encoder: layer after layer, normalised before. -/
@[expose] def encode (mask : Mask n n) (layers : List (EncoderLayer R d_model num_heads d d_ff))
    (X : Matrix R n d_model) : Matrix R n d_model :=
  layers.foldl (fun X L => L.preNorm sqrt ε scale mask X) X

/-- The decoder: layer after layer, normalised before, each with the same output of the encoder. -/
@[expose] def decode (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (context : Matrix R s d_model)
    (X : Matrix R t d_model) : Matrix R t d_model :=
  layers.foldl (fun X L => L.preNorm sqrt ε scale mask crossMask context X) X

/-- The encoder with layers that are normalised after, and a normalisation at its end. -/
@[expose] def encodePostNorm (mask : Mask n n)
    (layers : List (EncoderLayer R d_model num_heads d d_ff)) (norm : LayerNorm R d_model)
    (X : Matrix R n d_model) : Matrix R n d_model :=
  norm.rows sqrt ε (layers.foldl (fun X L => L.postNorm sqrt ε scale mask X) X)

/-- The decoder with layers that are normalised after, and a normalisation at its end. -/
@[expose] def decodePostNorm (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (norm : LayerNorm R d_model)
    (context : Matrix R s d_model) (X : Matrix R t d_model) : Matrix R t d_model :=
  norm.rows sqrt ε
    (layers.foldl (fun X L => L.postNorm sqrt ε scale mask crossMask context X) X)

/-- The output of a transformer's encoder for a sequence of source tokens. -/
@[expose] def Transformer.encode (position : Nat → Vec R d_model) (mask : Mask s s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) : Matrix R s d_model :=
  Spec.encode sqrt ε scale mask T.encoder (addPositions position (embed T.source source))

/-- The logits of a transformer: row i goes with target token i. -/
@[expose] def Transformer.logits (position : Nat → Vec R d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) : Matrix R t t_vocab :=
  let context := T.encode sqrt ε scale position sourceMask source
  T.output.rows (decode sqrt ε scale targetMask crossMask T.decoder context
    (addPositions position (embed T.target target)))

/-- The probabilities that a transformer gives: row i, those of the token after target token i. -/
@[expose] def Transformer.probabilities (position : Nat → Vec R d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) : Matrix R t t_vocab :=
  Vec.map softmaxVec (T.logits sqrt ε scale position sourceMask targetMask crossMask source target)

end Attention.Spec
