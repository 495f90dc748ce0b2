module

public import Attention.Spec.Backward
public import Attention.Spec.Slopes

public section

/-! # A temperature for each head

The scores of a head are multiplied by one learned number, after the scale. Rather than the scores,
an implementation may multiply the queries by it: `Proof/Scores/Temperature.lean`.
Source: Henry et al. 2020, "Query-Key Normalization for Transformers", section 3.1, the parameter g;
Liu et al. 2022, "Swin Transformer V2", equation (2), 1/τ. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- Each score of the head, times its temperature `t`. -/
@[expose] def ScoreMod.temperature [Mul S] (t : S) : ScoreMod S q_len kv_len :=
  fun _ _ s => some (t * s)

/-- A matrix multiplied by a number, row by row. -/
@[expose] def scaleRows [Mul R] {m n : Nat} (t : R) (A : Matrix R m n) : Matrix R m n :=
  Vec.ofFn fun i => Vec.smul t A[i]

/-- The gradients of a loss by the inputs of a head and by its temperature. -/
structure TemperatureGradients (R : Type v) (q_len kv_len d d_v : Nat) where
  /-- By queries, keys, values and a bias. -/
  inputs : Gradients R q_len kv_len d d_v
  /-- By the temperature. -/
  dTemperature : R

variable [Add S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [Exp S R]

/-- The backward pass of a head with a temperature: that of attention at the queries times t, and
the chain rule. With dQ' the gradient by those, dQ = t · dQ', and the gradient by t is ⟨dQ', Q⟩. -/
@[expose] def temperatureVjp (scale t : S) (modify : ScoreMod S q_len kv_len)
    (slope : ScoreSlope S R q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (toValue : S → R) (dO : Matrix R q_len d_v) (dLse : Vec R q_len) :
    TemperatureGradients R q_len kv_len d d_v :=
  let g := vjp scale modify slope (scaleRows t Q) K V toValue dO dLse
  { inputs := { g with dQ := scaleRows (toValue t) g.dQ }
    dTemperature := Matrix.inner g.dQ (Vec.ofFn fun i => Vec.map toValue Q[i]) }

end Attention.Spec
