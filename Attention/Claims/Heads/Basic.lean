module

public import Attention.Claims.Heads.Joined
public import Attention.Claims.Attention.Order
public import Attention.Claims.Masking.Weights

public section

/-! # Multi-head attention as the document 003 defines it

(Attn_W₁(Q, K, V) | … | Attn_Wₕ(Q, K, V)) W_o + 1 b_oᵀ, with a mask for each head or without, and of
one input or three. What all of them share is that the output projection acts row by row: row i of
the output is made of the rows i of the heads. -/

namespace Attention.Claims

open Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len m n h c_q c_k c_v c d d_v d_o : Nat}

/-- The weights 𝒲₀, …, 𝒲ₕ: those of h heads, and of the output. -/
structure MultiHeadWeights (S : Type u) (R : Type v) (h c_q c_k c_v d d_v d_o : Nat) where
  /-- The weights of each head's projections. -/
  head : Fin h → Weights S R c_q c_k c_v d d_v
  /-- The weights of the output. -/
  w_o : Matrix R (h * d_v) d_o
  /-- The bias of the output. -/
  b_o : Vec R d_o

/-! ## Definitions -/

section
variable [Add R] [Mul R] [OfNat R 0]

/-- (O₁ | … | Oₕ) W_o + 1 b_oᵀ. -/
@[expose] def MultiHeadWeights.output (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o)
    (heads : Vector (Matrix R n d_v) h) : Matrix R n d_o :=
  Vec.map (affine W.w_o W.b_o) (concatHeads heads)

variable [Add S] [Mul S] [OfNat S 0] [Div R] [Exp S R]

/-- Multi-head attention, with a score transformation for each head. With none it is the document's
MHAttn(Q, K, V), for the scale 1/√d_k. -/
@[expose] def multiHeadAttention (scale : S) (modify : Fin h → ScoreMod S q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) : Matrix R q_len d_o :=
  W.output (Vec.ofFn fun κ => weightedAttention scale (modify κ) (W.head κ) Q K V)

/-- MMHAttn(Q, K, V): masked multi-head attention, with the mask B κ in head κ. -/
@[expose] def maskedMultiHeadAttention [OfNat S 1] (scale : S)
    (B : Fin h → Matrix (Option S) q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) : Matrix R q_len d_o :=
  W.output (Vec.ofFn fun κ => maskedWeightedAttention scale (B κ) (W.head κ) Q K V)

/-- Multi-head self-attention, with a score transformation for each head; with none it is
MHSAttn(X). As for `weightedSelfAttention`, ι says how a number of X is read as a value. -/
@[expose] def multiHeadSelfAttention (ι : S → R) (scale : S) (modify : Fin h → ScoreMod S n n)
    (W : MultiHeadWeights S R h c c c d d_v d_o) (X : Matrix S n c) : Matrix R n d_o :=
  multiHeadAttention scale modify W X X (Vec.map (Vec.map ι) X)

/-- MMHSAttn(X): masked multi-head self-attention. -/
@[expose] def maskedMultiHeadSelfAttention [OfNat S 1] (ι : S → R) (scale : S)
    (B : Fin h → Matrix (Option S) n n) (W : MultiHeadWeights S R h c c c d d_v d_o)
    (X : Matrix S n c) : Matrix R n d_o :=
  maskedMultiHeadAttention scale B W X X (Vec.map (Vec.map ι) X)

/-! ## Row by row -/

omit [Add S] [Mul S] [OfNat S 0] [Div R] [Exp S R] in
/-- Row i of the output is W_oᵀ (oᵢ⁽¹⁾ | … | oᵢ⁽ʰ⁾)ᵀ + b_o. -/
theorem getElem_output (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o)
    (heads : Vector (Matrix R n d_v) h) (i : Fin n) :
    (W.output heads)[i] = affine W.w_o W.b_o (joinRow fun κ => heads[κ][i]) := by
  rw [← concatHeads_row, MultiHeadWeights.output, Fin.getElem_fin, Fin.getElem_fin,
    Vec.getElem_map]

omit [Add S] [Mul S] [OfNat S 0] [Div R] [Exp S R] in
/-- **The lifting lemma.** Whatever takes rows of each head's output to rows of another does so with
the output of all heads: if row i of each of `heads'` is row σ i of that of `heads`, row i of the
output is row σ i. -/
theorem output_reindex {W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o} (σ : Fin m → Fin n)
    {heads : Fin h → Matrix R n d_v} {heads' : Fin h → Matrix R m d_v}
    (hσ : ∀ κ, heads' κ = reindex σ (heads κ)) :
    W.output (Vec.ofFn heads') = reindex σ (W.output (Vec.ofFn heads)) := by
  refine Vector.ext fun i hi => ?_
  have e := getElem_output W (Vec.ofFn heads') ⟨i, hi⟩
  have e' := getElem_output W (Vec.ofFn heads) (σ ⟨i, hi⟩)
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, hσ, getElem_reindex] at e e' ⊢
  exact e.trans e'.symm

omit [Add S] [Mul S] [OfNat S 0] [Div R] [Exp S R] in
/-- One row alone: if row i of each of `heads'` is row i of that of `heads`, so it is of the
outputs. -/
theorem output_row_congr {W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o} {i : Fin n}
    {heads heads' : Fin h → Matrix R n d_v} (hi : ∀ κ, (heads' κ)[i] = (heads κ)[i]) :
    (W.output (Vec.ofFn heads'))[i] = (W.output (Vec.ofFn heads))[i] := by
  have e := getElem_output W (Vec.ofFn heads') i
  have e' := getElem_output W (Vec.ofFn heads) i
  simp only [Fin.getElem_fin, Vec.getElem_ofFn] at hi e e' ⊢
  rw [e, e']
  simp only [hi]

end

end Attention.Claims
