module

public import Attention.Spec.Tangent

public section

/-! # The backward pass

From the gradient of a loss by attention's output and by its log-sum-exp to that by queries, keys,
values and an additive bias. P is computed as a whole matrix here; `BackwardTiles` computes it tile
by tile.

Scores may be of another type than values: `toValue` makes values of them. Where both are one type
it does nothing. Where they are not, as in the exact model with exp k = 2 ^ k, the gradients by
queries and keys are those of the natural exponential divided by ln 2.
Source: Dao et al. 2022, "FlashAttention", appendix B.2; Dao 2023, "FlashAttention-2",
section 2.3.2; the gradient by the log-sum-exp is taken from D, as PyTorch's FlexAttention does it.
-/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- The gradients of a loss by the inputs of attention. -/
structure Gradients (R : Type v) (q_len kv_len d d_v : Nat) where
  /-- By the queries. -/
  dQ : Matrix R q_len d
  /-- By the keys. -/
  dK : Matrix R kv_len d
  /-- By the values. -/
  dV : Matrix R kv_len d_v
  /-- By a bias that is added to the scores after they have been transformed. -/
  dBias : Matrix R q_len kv_len

section
variable [Add R] [Sub R] [Mul R] [OfNat R 0]

/-- The number that a row subtracts from dP: D = rowsum (dO ∘ O), less the gradient by its
log-sum-exp. -/
@[expose] def rowDelta (O dO : Matrix R q_len d_v) (dLse : Vec R q_len) : Vec R q_len :=
  Vec.ofFn fun i => Vec.dot dO[i] O[i] - dLse[i]

/-- The gradient by one transformed score: p · (⟨dO, v⟩ − D). -/
@[expose] def scoreGradient (p : R) (dO v : Vec R d_v) (delta : R) : R :=
  p * (Vec.dot dO v - delta)

end

section
variable [Add S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len) (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- The gradients by all transformed scores: dS = P ∘ (dP − D), with dP = dO Vᵀ. -/
@[expose] def scoreGradients (dO : Matrix R q_len d_v) (dLse : Vec R q_len) :
    Matrix R q_len kv_len :=
  let P : Matrix R q_len kv_len := probabilities scale modify Q K
  let delta := rowDelta (attention scale modify Q K V) dO dLse
  Vec.ofFn fun i => Vec.ofFn fun j => scoreGradient P[i][j] dO[i] V[j] delta[i]

/-- The backward pass of attention, from the gradients `dO` by its output and `dLse` by its
log-sum-exp (vector-Jacobian product): dV = Pᵀ dO, dQ = scale · dZ K and dK = scale · dZᵀ Q, where
dZ is dS times the slope of the score transformation; the gradient by the bias is dS. -/
@[expose] def vjp (toValue : S → R) (dO : Matrix R q_len d_v) (dLse : Vec R q_len) :
    Gradients R q_len kv_len d d_v :=
  let P : Matrix R q_len kv_len := probabilities scale modify Q K
  let dS := scoreGradients scale modify Q K V dO dLse
  let dZ : Matrix R q_len kv_len :=
    Vec.ofFn fun i => Vec.ofFn fun j => dS[i][j] * slope i j (scale * Vec.dot Q[i] K[j])
  { dQ := Vec.ofFn fun i => Vec.smul (toValue scale)
      (Vec.sumOver (fun j => Vec.smul dZ[i][j] (Vec.map toValue K[j])) (List.finRange kv_len))
    dK := Vec.ofFn fun j => Vec.smul (toValue scale)
      (Vec.sumOver (fun i => Vec.smul dZ[i][j] (Vec.map toValue Q[i])) (List.finRange q_len))
    dV := Vec.ofFn fun j =>
      Vec.sumOver (fun i => Vec.smul P[i][j] dO[i]) (List.finRange q_len)
    dBias := dS }

end

end Attention.Spec
