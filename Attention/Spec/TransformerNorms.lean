module

public import Attention.Spec.Transformer

public section

/-! # Transformers, wherever they normalise

Layers are normalised before or after, and behind the last one the rows may be normalised once more.
Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1: layers normalised after, and
nothing more; PyTorch, `torch.nn.Transformer`: layers of either kind, and a normalisation behind the
encoder's and one behind the decoder's. -/

namespace Attention.Spec

universe u

/-- The normalisations behind a transformer's encoder and decoder, where there are such. -/
structure FinalNorms (R : Type u) (d_model : Nat) where
  /-- That behind the encoder's layers. -/
  encoder : Option (LayerNorm R d_model)
  /-- That behind the decoder's. -/
  decoder : Option (LayerNorm R d_model)

variable {R : Type u} {m n s t s_vocab t_vocab d d_model num_heads d_ff : Nat}
variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1]

/-- Rows that are normalised if there is a normalisation. -/
@[expose] def finalNorm (sqrt : R → R) (ε : R) (norm : Option (LayerNorm R d)) (X : Matrix R m d) :
    Matrix R m d :=
  match norm with
  | none => X
  | some N => N.rows sqrt ε X

variable [Max R] [Exp R R] (sqrt : R → R) (ε scale : R) (normFirst : Bool)

/-- An encoder layer, normalised before or, without `normFirst`, after. -/
@[expose] def EncoderLayer.rows (mask : Mask n n) (L : EncoderLayer R d_model num_heads d d_ff)
    (X : Matrix R n d_model) : Matrix R n d_model :=
  if normFirst then L.preNorm sqrt ε scale mask X else L.postNorm sqrt ε scale mask X

/-- A decoder layer, normalised before or, without `normFirst`, after. -/
@[expose] def DecoderLayer.rows (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (X : Matrix R t d_model) : Matrix R t d_model :=
  if normFirst then L.preNorm sqrt ε scale mask crossMask context X
  else L.postNorm sqrt ε scale mask crossMask context X

/-- The encoder: layer after layer, and a normalisation behind them if there is one. -/
@[expose] def encodeNormed (mask : Mask n n)
    (layers : List (EncoderLayer R d_model num_heads d d_ff)) (norm : Option (LayerNorm R d_model))
    (X : Matrix R n d_model) : Matrix R n d_model :=
  finalNorm sqrt ε norm (layers.foldl (fun X L => L.rows sqrt ε scale normFirst mask X) X)

/-- The decoder: layer after layer, each with the same output of the encoder, and a normalisation
behind them if there is one. -/
@[expose] def decodeNormed (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (norm : Option (LayerNorm R d_model))
    (context : Matrix R s d_model) (X : Matrix R t d_model) : Matrix R t d_model :=
  finalNorm sqrt ε norm
    (layers.foldl (fun X L => L.rows sqrt ε scale normFirst mask crossMask context X) X)

/-- The logits of a transformer, wherever it normalises. -/
@[expose] def Transformer.logitsNormed (norms : FinalNorms R d_model)
    (position : Nat → Vec R d_model) (sourceMask : Mask s s) (targetMask : Mask t t)
    (crossMask : Mask t s) (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) : Matrix R t t_vocab :=
  let context := encodeNormed sqrt ε scale normFirst sourceMask T.encoder norms.encoder
    (addPositions position (embed T.source source))
  T.output.rows (decodeNormed sqrt ε scale normFirst targetMask crossMask T.decoder norms.decoder
    context (addPositions position (embed T.target target)))

end Attention.Spec
