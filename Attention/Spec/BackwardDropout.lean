module

public import Attention.Spec.BackwardHeads
public import Attention.Spec.Dropout

public section

/-! # The backward pass of attention with dropout

To drop the weights of a query is to multiply the values as it sees them, by factors Z that the
backward pass draws again. So the backward pass is that of each query with values of its own,
followed by that of the products: the gradient by a value is Z times that by the product, summed
over the queries. By components that is FlashAttention's: dV = (P ∘ Z)ᵀ dO and dP = Z ∘ (dO Vᵀ),
with D from the output as without dropout.
Source: Dao et al. 2022, "FlashAttention", algorithm 4, lines 15 to 17. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- Row `i` of a matrix, as a matrix. -/
@[expose] def oneRow {α : Type u} {n : Nat} (A : Matrix α q_len n) (i : Fin q_len) : Matrix α 1 n :=
  Vec.ofFn fun _ => A[i]

variable [Add S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len) (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)

/-- The backward pass of one query with the values as it sees them. -/
@[expose] def vjpRow (toValue : S → R) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)
    (i : Fin q_len) : Gradients R 1 kv_len d d_v :=
  vjp scale (fun _ j => modify i j) (fun _ j => slope i j) (oneRow Q i) K (droppedValues V Z i)
    toValue (oneRow dO i) (Vec.ofFn fun _ => dLse[i])

/-- The backward pass of attention with dropout, from the gradients `dO` by its output and `dLse` by
its log-sum-exp, for any factors Z. -/
@[expose] def vjpDropout (toValue : S → R) (dO : Matrix R q_len d_v) (dLse : Vec R q_len) :
    Gradients R q_len kv_len d d_v :=
  let rows : Vector (Gradients R 1 kv_len d d_v) q_len :=
    Vec.ofFn fun i => vjpRow scale modify slope Q K V Z toValue dO dLse i
  { dQ := Vec.ofFn fun i => rows[i].dQ[(0 : Fin 1)]
    dK := sumMatrices (fun i => rows[i].dK) (List.finRange q_len)
    dV := sumMatrices (fun i => droppedValues rows[i].dV Z i) (List.finRange q_len)
    dBias := Vec.ofFn fun i => rows[i].dBias[(0 : Fin 1)] }

/-- The derivative of attention with dropout along the rates `dQ`, `dK` and `dV`, and those in
`modify`; the factors do not change. -/
@[expose] def jvpDropout [Exp R R] (scale : R) (modify : ScoreMod (Dual R) q_len kv_len)
    (Z : WeightFactor R q_len kv_len) (Q dQ : Matrix R q_len d) (K dK : Matrix R kv_len d)
    (V dV : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  Matrix.tangent (attentionDropout (Dual.const scale) modify (Matrix.dual Q dQ) (Matrix.dual K dK)
    (Matrix.dual V dV) fun i j => Dual.const (Z i j))

end Attention.Spec
