module

public import Attention.Claims.Heads.Basic

public section

/-! # Heads whose projections are packed

Implementations hold the projections of all heads in one matrix, W_q = [W_q,1 | … | W_q,h], project
once, and cut what comes of it into heads: so does the code of the document 003, so do
`torch.nn.MultiheadAttention` and `pyimpl`. It is multi-head attention as the document defines it,
for any number of heads and any widths; d_k = d_v = d / h, as PyTorch has it, is one case. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len n h c_q c_k c_v d d_v d_o : Nat}

/-- The weights of all heads side by side: those of head κ are the columns κ · d, …, κ · d + d − 1,
and these components of the biases. -/
structure PackedWeights (S : Type u) (R : Type v) (h c_q c_k c_v d d_v d_o : Nat) where
  /-- The weights of the queries of all heads. -/
  w_q : Matrix S c_q (h * d)
  /-- Their bias. -/
  b_q : Vec S (h * d)
  /-- The weights of the keys of all heads. -/
  w_k : Matrix S c_k (h * d)
  /-- Their bias. -/
  b_k : Vec S (h * d)
  /-- The weights of the values of all heads. -/
  w_v : Matrix R c_v (h * d_v)
  /-- Their bias. -/
  b_v : Vec R (h * d_v)
  /-- The weights of the output. -/
  w_o : Matrix R (h * d_v) d_o
  /-- The bias of the output. -/
  b_o : Vec R d_o

/-- The weights of each head. -/
@[expose] def PackedWeights.unpack (P : PackedWeights S R h c_q c_k c_v d d_v d_o) :
    MultiHeadWeights S R h c_q c_k c_v d d_v d_o where
  head κ :=
    { w_q := Vec.map (headPart κ) P.w_q
      b_q := headPart κ P.b_q
      w_k := Vec.map (headPart κ) P.w_k
      b_k := headPart κ P.b_k
      w_v := Vec.map (headPart κ) P.w_v
      b_v := headPart κ P.b_v }
  w_o := P.w_o
  b_o := P.b_o

/-- The weights of the heads side by side. -/
@[expose] def MultiHeadWeights.pack (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) :
    PackedWeights S R h c_q c_k c_v d d_v d_o where
  w_q := concatHeads (Vec.ofFn fun κ => (W.head κ).w_q)
  b_q := joinRow fun κ => (W.head κ).b_q
  w_k := concatHeads (Vec.ofFn fun κ => (W.head κ).w_k)
  b_k := joinRow fun κ => (W.head κ).b_k
  w_v := concatHeads (Vec.ofFn fun κ => (W.head κ).w_v)
  b_v := joinRow fun κ => (W.head κ).b_v
  w_o := W.w_o
  b_o := W.b_o

/-- Multi-head attention as it is computed: the inputs are projected once for all heads, cut into
heads, each head attends, and the outputs side by side are projected. -/
@[expose] def packedMultiHeadAttention [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R]
    [OfNat R 0] [Exp S R] (scale : S) (modify : Fin h → ScoreMod S q_len kv_len)
    (P : PackedWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) : Matrix R q_len d_o :=
  let heads := multiHead scale modify (splitHeads (Vec.map (affine P.w_q P.b_q) Q))
    (splitHeads (Vec.map (affine P.w_k P.b_k) K)) (splitHeads (Vec.map (affine P.w_v P.b_v) V))
  Vec.map (affine P.w_o P.b_o) (concatHeads heads)

/-- A head's part of a projection is the projection by its columns. -/
theorem headPart_affine [Add R] [Mul R] [OfNat R 0] (W : Matrix R n (h * d)) (b : Vec R (h * d))
    (κ : Fin h) (x : Vec R n) :
    headPart κ (affine W b x) = affine (Vec.map (headPart κ) W) (headPart κ b) x := by
  refine Vector.ext fun t ht => ?_
  simp only [headPart, affine, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map]

private theorem getElem_splitHeads_affine [Add R] [Mul R] [OfNat R 0] (W : Matrix R n (h * d))
    (b : Vec R (h * d)) (κ : Fin h) (X : Matrix R q_len n) :
    (splitHeads (Vec.map (affine W b) X))[κ]
      = Vec.map (affine (Vec.map (headPart κ) W) (headPart κ b)) X := by
  refine Vector.ext fun i hi => ?_
  refine (splitHeads_row _ κ ⟨i, hi⟩).trans ?_
  rw [Fin.getElem_fin, Vec.getElem_map, Vec.getElem_map, headPart_affine]

/-- **packed-heads**: projecting once for all heads and cutting into heads is multi-head attention
with the heads' own columns of the weights. -/
theorem packedMultiHeadAttention_eq [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R]
    [OfNat R 0] [Exp S R] (scale : S) (modify : Fin h → ScoreMod S q_len kv_len)
    (P : PackedWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    packedMultiHeadAttention scale modify P Q K V
      = multiHeadAttention scale modify P.unpack Q K V := by
  simp only [packedMultiHeadAttention, multiHead, getElem_splitHeads_affine]
  rfl

private theorem map_headPart_concatHeads (heads : Fin h → Matrix R n d) (κ : Fin h) :
    Vec.map (headPart κ) (concatHeads (Vec.ofFn heads)) = heads κ := by
  refine Vector.ext fun i hi => ?_
  have e := concatHeads_row (Vec.ofFn heads) ⟨i, hi⟩
  simp only [Fin.getElem_fin, Vec.getElem_ofFn] at e
  rw [Vec.getElem_map, e, headPart_joinRow]

/-- Weights that are packed and cut again are what they were. -/
theorem unpack_pack (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) : W.pack.unpack = W := by
  simp only [MultiHeadWeights.pack, PackedWeights.unpack, map_headPart_concatHeads,
    headPart_joinRow]

/-- So multi-head attention with any weights is computed with the packed ones. -/
theorem multiHeadAttention_eq_packed [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R]
    [OfNat R 0] [Exp S R] (scale : S) (modify : Fin h → ScoreMod S q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    multiHeadAttention scale modify W Q K V
      = packedMultiHeadAttention scale modify W.pack Q K V := by
  rw [packedMultiHeadAttention_eq, unpack_pack]

end Attention.Claims
