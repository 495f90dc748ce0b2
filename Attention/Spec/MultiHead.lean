module

public import Attention.Spec.Heads
public import Attention.Spec.Linear

public section

/-! # Multi-head attention with its projections

Queries, keys and values are projected to num_heads · d components each, which are split to the
heads: head h has the components from h · d on. The outputs of the heads are put side by side again
and projected.
Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2; PyTorch,
`nn.MultiheadAttention`. -/

namespace Attention.Spec

universe u

variable {R : Type u} {n q_len kv_len num_heads d d_model : Nat}

/-- Component `c` of head `h` among those of all heads. -/
@[expose] def headColumn (h : Fin num_heads) (c : Fin d) : Fin (num_heads * d) :=
  ⟨h.val * d + c.val, by
    have h₁ := Nat.mul_le_mul_right d (Nat.succ_le_of_lt h.isLt)
    have h₂ := c.isLt
    rw [Nat.succ_mul] at h₁
    omega⟩

/-- The columns of a matrix split to the heads: a matrix for each head. -/
@[expose] def splitHeads (X : Matrix R n (num_heads * d)) : Vector (Matrix R n d) num_heads :=
  Vec.ofFn fun h => Vec.ofFn fun i => Vec.ofFn fun c => X[i][headColumn h c]

/-- The outputs of all heads side by side: row i is row i of the first head, then of the second, and
so on. -/
@[expose] def concatHeads (heads : Vector (Matrix R n d) num_heads) :
    Matrix R n (num_heads * d) :=
  Vec.ofFn fun i => ⟨(heads.toList.flatMap fun head => head[i].toList).toArray, by
    simp [List.length_flatMap, List.map_const']⟩

/-- The parameters of multi-head attention between vectors of length `d_model`. -/
structure MultiHead (R : Type u) (d_model num_heads d : Nat) where
  /-- The queries' projection. -/
  query : Linear R d_model (num_heads * d)
  /-- The keys' projection. -/
  key : Linear R d_model (num_heads * d)
  /-- The values' projection. -/
  value : Linear R d_model (num_heads * d)
  /-- The projection of the heads' outputs. -/
  output : Linear R (num_heads * d) d_model

variable [Add R] [Mul R] [Div R] [OfNat R 0] [Exp R R]

/-- Attention of all heads between projected queries, keys and values, and the projection of what
they give. -/
@[expose] def MultiHead.attend (scale : R) (mask : Mask q_len kv_len)
    (W : MultiHead R d_model num_heads d) (Q : Matrix R q_len (num_heads * d))
    (K V : Matrix R kv_len (num_heads * d)) : Matrix R q_len d_model :=
  W.output.rows (concatHeads (multiHead scale (fun _ => mask.toScoreMod) (splitHeads Q)
    (splitHeads K) (splitHeads V)))

/-- Multi-head attention with its projections: self-attention for Q = K = V, cross-attention for
K = V. -/
@[expose] def MultiHead.rows (scale : R) (mask : Mask q_len kv_len)
    (W : MultiHead R d_model num_heads d) (Q : Matrix R q_len d_model)
    (K V : Matrix R kv_len d_model) : Matrix R q_len d_model :=
  W.attend scale mask (W.query.rows Q) (W.key.rows K) (W.value.rows V)

end Attention.Spec
