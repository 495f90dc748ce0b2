module

public import Attention.Spec.TransformerNorms

public section

/-! # The transformers of `Spec.Transformer` among those that normalise anywhere -/

namespace Attention.Proof

open Spec

universe u

variable {R : Type u} {n s t s_vocab t_vocab d d_model num_heads d_ff : Nat}
variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Max R] [Exp R R]
variable (sqrt : R → R) (ε scale : R)

/-- Layers normalised before, and nothing behind them. -/
theorem encodeNormed_first (mask : Mask n n)
    (layers : List (EncoderLayer R d_model num_heads d d_ff)) (X : Matrix R n d_model) :
    encodeNormed sqrt ε scale true mask layers none X = encode sqrt ε scale mask layers X := rfl

/-- Layers normalised after, and a normalisation behind them. -/
theorem encodeNormed_after (mask : Mask n n)
    (layers : List (EncoderLayer R d_model num_heads d d_ff)) (norm : LayerNorm R d_model)
    (X : Matrix R n d_model) :
    encodeNormed sqrt ε scale false mask layers (some norm) X
      = encodePostNorm sqrt ε scale mask layers norm X := rfl

/-- A decoder's layers normalised after, and a normalisation behind them. -/
theorem decodeNormed_after (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (norm : LayerNorm R d_model)
    (context : Matrix R s d_model) (X : Matrix R t d_model) :
    decodeNormed sqrt ε scale false mask crossMask layers (some norm) context X
      = decodePostNorm sqrt ε scale mask crossMask layers norm context X := rfl

/-- The logits of a transformer whose layers are normalised before, and nothing behind them. -/
theorem logitsNormed_first (position : Nat → Vec R d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) :
    T.logitsNormed sqrt ε scale true ⟨none, none⟩ position sourceMask targetMask crossMask source
        target
      = T.logits sqrt ε scale position sourceMask targetMask crossMask source target := rfl

end Attention.Proof
