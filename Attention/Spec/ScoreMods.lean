module

public import Attention.Spec.Masks

public section

/-! # Score transformations that are not masks: additive bias, ALiBi, softcap -/

namespace Attention.Spec

universe u

variable {S : Type u} {q_len kv_len : Nat}

/-- One transformation after the other; masked stays masked. -/
@[expose] def ScoreMod.andThen (f g : ScoreMod S q_len kv_len) : ScoreMod S q_len kv_len :=
  fun i j s => (f i j s).bind (g i j)

/-- Additive bias: an entry of the matrix is added to the score; `none` masks the pair. -/
@[expose] def ScoreMod.bias [Add S] (B : Matrix (Option S) q_len kv_len) :
    ScoreMod S q_len kv_len :=
  fun i j s => B[i][j].map (s + ·)

/-- How far query `i` is from key `j`, on either side. -/
@[expose] def distance (alignment : Alignment) (i : Fin q_len) (j : Fin kv_len) : Nat :=
  (i.val + alignment.shift q_len kv_len - (j.val : Int)).natAbs

/-- Attention with linear biases: the distance of query and key, times −slope, is added.
Source: Press et al. 2022, "Train Short, Test Long", section 3; without a causal mask and for
unequal lengths as in flash-attention's `alibi_slopes`. -/
@[expose] def ScoreMod.alibi [Add S] [Mul S] [IntCast S] (alignment : Alignment) (slope : S) :
    ScoreMod S q_len kv_len := fun i j s =>
  some (s + slope * ((-(distance alignment i j : Int) : Int) : S))

section
variable [Add S] [Sub S] [Mul S] [Div S] [OfNat S 1] [Exp S S]

/-- The hyperbolic tangent, (e − 1) / (e + 1) with e = exp 2x. -/
@[expose] def tanh (x : S) : S :=
  let e : S := exp (x + x)
  (e - 1) / (e + 1)

/-- Softcap: the score is squeezed into (−cap, cap).
Source: Gemma Team 2024, "Gemma 2", section 2, "Logit soft-capping". -/
@[expose] def ScoreMod.softcap (cap : S) : ScoreMod S q_len kv_len :=
  fun _ _ s => some (cap * tanh (s / cap))

end

end Attention.Spec
