module

public import Attention.Spec.Backward
public import Attention.Spec.Heads

public section

/-! # The backward pass of grouped-query attention

A head of keys and values that several query heads share gets the sum of their gradients.
Source: flash-attention, `mha_varlen_bwd`, which sums `dk_expanded` over the group; the derivative
of PyTorch's `repeat_interleave`. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v num_kv_heads group : Nat}

/-- The gradients of a loss by the inputs of grouped-query attention, head by head. -/
structure GroupedGradients (R : Type v) (q_len kv_len d d_v num_heads num_kv_heads : Nat) where
  /-- By the queries. -/
  dQ : Vector (Matrix R q_len d) num_heads
  /-- By the keys. -/
  dK : Vector (Matrix R kv_len d) num_kv_heads
  /-- By the values. -/
  dV : Vector (Matrix R kv_len d_v) num_kv_heads
  /-- By a bias, which each query head has of its own. -/
  dBias : Vector (Matrix R q_len kv_len) num_heads

/-- The query heads that share the head `c` of keys and values. -/
@[expose] def groupHeads (group : Nat) (c : Fin num_kv_heads) :
    List (Fin (num_kv_heads * group)) :=
  (List.finRange (num_kv_heads * group)).filter fun h => kvHead h == c

/-- A sum of matrices. -/
@[expose] def sumMatrices {α : Type} [Add R] [OfNat R 0] {m n : Nat} (X : α → Matrix R m n)
    (xs : List α) : Matrix R m n :=
  Vec.ofFn fun i => Vec.sumOver (fun x => (X x)[i]) xs

/-- The gradients of grouped heads from those of each query head by itself: dK and dV summed over
the heads that share a head of keys and values. -/
@[expose] def groupGradients [Add R] [OfNat R 0]
    (each : Vector (Gradients R q_len kv_len d d_v) (num_kv_heads * group)) :
    GroupedGradients R q_len kv_len d d_v (num_kv_heads * group) num_kv_heads :=
  { dQ := Vec.ofFn fun h => each[h].dQ
    dK := Vec.ofFn fun c => sumMatrices (fun h => each[h].dK) (groupHeads group c)
    dV := Vec.ofFn fun c => sumMatrices (fun h => each[h].dV) (groupHeads group c)
    dBias := Vec.ofFn fun h => each[h].dBias }

variable [Add S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [Exp S R]

/-- The backward pass of grouped-query attention: that of each query head, dK and dV summed over the
heads that share a head of keys and values. -/
@[expose] def groupedQueryVjp (scale : S)
    (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (slope : Fin (num_kv_heads * group) → ScoreSlope S R q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads)
    (toValue : S → R) (dO : Vector (Matrix R q_len d_v) (num_kv_heads * group))
    (dLse : Vector (Vec R q_len) (num_kv_heads * group)) :
    GroupedGradients R q_len kv_len d d_v (num_kv_heads * group) num_kv_heads :=
  groupGradients <| Vec.ofFn fun h =>
    vjp scale (modify h) (slope h) Q[h] K[kvHead h] V[kvHead h] toValue dO[h] dLse[h]

/-- The derivative of grouped-query attention along the rates `dQ`, `dK` and `dV`, and those in
`modify`: grouped-query attention, run over dual numbers. -/
@[expose] def groupedQueryJvp {S : Type u} [Add S] [Sub S] [Mul S] [Div S] [OfNat S 0] [Exp S S]
    (scale : S) (modify : Fin (num_kv_heads * group) → ScoreMod (Dual S) q_len kv_len)
    (Q dQ : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K dK : Vector (Matrix S kv_len d) num_kv_heads)
    (V dV : Vector (Matrix S kv_len d_v) num_kv_heads) :
    Vector (Matrix S q_len d_v) (num_kv_heads * group) :=
  let O := groupedQuery (Dual.const scale) modify (Vec.ofFn fun h => Q[h].dual dQ[h])
    (Vec.ofFn fun c => K[c].dual dK[c]) (Vec.ofFn fun c => V[c].dual dV[c])
  Vec.ofFn fun h => O[h].tangent

end Attention.Spec
