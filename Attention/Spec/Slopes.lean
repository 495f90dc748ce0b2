module

public import Attention.Spec.ScoreMods
public import Attention.Spec.Tangent

public section

/-! # Slopes of score transformations

By what a change of a score is multiplied on its way through a transformation. Where masked, a slope
counts for nothing.
Source: flash-attention, `calculate_dtanh`, for softcap. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len : Nat}

/-- The slope of masks and additive biases: 1. -/
@[expose] def ScoreSlope.one [OfNat R 1] : ScoreSlope S R q_len kv_len := fun _ _ _ => 1

/-- The slope of softcap: 1 − tanh² (s / cap). -/
@[expose] def ScoreSlope.softcap [Add R] [Sub R] [Mul R] [Div R] [OfNat R 1] [Exp R R] (cap : R) :
    ScoreSlope R R q_len kv_len :=
  fun _ _ s =>
    let t := tanh (s / cap)
    1 - t * t

/-- The slope of one transformation after the other: the product of the slopes, that of the second
taken at what the first has made of the score. -/
@[expose] def ScoreSlope.andThen [Mul R] [OfNat R 0] (modify : ScoreMod S q_len kv_len)
    (slope slope' : ScoreSlope S R q_len kv_len) : ScoreSlope S R q_len kv_len :=
  fun i j s =>
    match modify i j s with
    | none => 0
    | some t => slope' i j t * slope i j s

/-- An additive bias that changes at the rates `dB`. -/
@[expose] def biasDual (B : Matrix (Option R) q_len kv_len) (dB : Matrix R q_len kv_len) :
    Matrix (Option (Dual R)) q_len kv_len :=
  Vec.ofFn fun i => Vec.ofFn fun j => B[i][j].map fun b => ⟨b, dB[i][j]⟩

/-- The bias after time `t` at the rates `dB`; what is masked stays masked. -/
@[expose] def biasMoved [Add R] [Mul R] (B : Matrix (Option R) q_len kv_len) (t : R)
    (dB : Matrix R q_len kv_len) : Matrix (Option R) q_len kv_len :=
  Vec.ofFn fun i => Vec.ofFn fun j => B[i][j].map (· + t * dB[i][j])

end Attention.Spec
