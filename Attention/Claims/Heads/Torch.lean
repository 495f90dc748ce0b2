module

public import Attention.Claims.Heads.Basic

public section

/-! # Multi-head attention with the parameters of `torch.nn.MultiheadAttention`

PyTorch holds a projection by its transpose, a row for each output (`torch.nn.Linear` computes
x Aᵀ + b), those of all heads in one matrix, and the three biases, and with equal widths the three
matrices, in one. It is the document's definition with d_k = d_v = d / h, whose weights are blocks
of rows of these, transposed: the weights as the document copies them. -/

namespace Attention.Claims

open Spec

universe u

variable {R : Type u} {q_len kv_len m n h d_h c c_k c_v : Nat}

/-- The rows of the transposed matrix are the columns. -/
@[expose] def transpose (A : Matrix R m n) : Matrix R n m :=
  Vec.ofFn fun j => Vec.ofFn fun i => A[i][j]

/-- `torch.nn.functional.linear`: x Aᵀ + b. -/
@[expose] def linear [Add R] [Mul R] [OfNat R 0] (A : Matrix R n c) (b : Vec R n) (x : Vec R c) :
    Vec R n :=
  Vec.ofFn fun t => Vec.dot x A[t] + b[t]

/-- The parameters, d = h · d_h components of queries and outputs. -/
structure TorchParameters (R : Type u) (h d_h c_k c_v : Nat) where
  /-- The queries of all heads, d × d. -/
  q_proj_weight : Matrix R (h * d_h) (h * d_h)
  /-- The keys of all heads, d × c_k. -/
  k_proj_weight : Matrix R (h * d_h) c_k
  /-- The values of all heads, d × c_v. -/
  v_proj_weight : Matrix R (h * d_h) c_v
  /-- The biases of queries, keys and values, one after the other. -/
  in_proj_bias : Vec R (3 * (h * d_h))
  /-- The output, d × d. -/
  out_proj_weight : Matrix R (h * d_h) (h * d_h)
  /-- The bias of the output. -/
  out_proj_bias : Vec R (h * d_h)

/-- With equal widths the three matrices are blocks of d rows of `in_proj_weight`. -/
@[expose] def TorchParameters.ofInProj (in_proj_weight : Matrix R (3 * (h * d_h)) (h * d_h))
    (in_proj_bias : Vec R (3 * (h * d_h))) (out_proj_weight : Matrix R (h * d_h) (h * d_h))
    (out_proj_bias : Vec R (h * d_h)) : TorchParameters R h d_h (h * d_h) (h * d_h) :=
  ⟨headPart 0 in_proj_weight, headPart 1 in_proj_weight, headPart 2 in_proj_weight, in_proj_bias,
    out_proj_weight, out_proj_bias⟩

/-- As PyTorch computes it: three projections, cut into heads, attention of each, and the output. -/
@[expose] def torchMultiHeadAttention [Add R] [Mul R] [Div R] [OfNat R 0] [Exp R R] (scale : R)
    (modify : Fin h → ScoreMod R q_len kv_len) (P : TorchParameters R h d_h c_k c_v)
    (Q : Matrix R q_len (h * d_h)) (K : Matrix R kv_len c_k) (V : Matrix R kv_len c_v) :
    Matrix R q_len (h * d_h) :=
  let b : Fin 3 → Vec R (h * d_h) := fun i => headPart i P.in_proj_bias
  let heads := multiHead scale modify (splitHeads (Vec.map (linear P.q_proj_weight (b 0)) Q))
    (splitHeads (Vec.map (linear P.k_proj_weight (b 1)) K))
    (splitHeads (Vec.map (linear P.v_proj_weight (b 2)) V))
  Vec.map (linear P.out_proj_weight P.out_proj_bias) (concatHeads heads)

/-- The document's weights: those of head κ are the rows κ · d_h, …, κ · d_h + d_h − 1, transposed,
and these components of the biases. -/
@[expose] def TorchParameters.weights (P : TorchParameters R h d_h c_k c_v) :
    MultiHeadWeights R R h (h * d_h) c_k c_v d_h d_h (h * d_h) where
  head κ :=
    { w_q := transpose (headPart κ P.q_proj_weight)
      b_q := headPart κ (headPart 0 P.in_proj_bias)
      w_k := transpose (headPart κ P.k_proj_weight)
      b_k := headPart κ (headPart 1 P.in_proj_bias)
      w_v := transpose (headPart κ P.v_proj_weight)
      b_v := headPart κ (headPart 2 P.in_proj_bias) }
  w_o := transpose P.out_proj_weight
  b_o := P.out_proj_bias

section
variable [Add R] [Mul R] [OfNat R 0]

/-- x Aᵀ + b, for the document's W = Aᵀ. -/
theorem linear_eq_affine (A : Matrix R n c) (b : Vec R n) (x : Vec R c) :
    linear A b x = affine (transpose A) b x := by
  refine Vector.ext fun t ht => ?_
  simp only [linear, affine, transpose, Vec.dot, Fin.getElem_fin, Vec.getElem_ofFn]

/-- A head's part of a projection is the projection by its rows. -/
theorem headPart_linear (A : Matrix R (h * d_h) c) (b : Vec R (h * d_h)) (κ : Fin h)
    (x : Vec R c) : headPart κ (linear A b x)
      = affine (transpose (headPart κ A)) (headPart κ b) x := by
  rw [← linear_eq_affine]
  refine Vector.ext fun t ht => ?_
  simp only [headPart, linear, Fin.getElem_fin, Vec.getElem_ofFn]

private theorem getElem_splitHeads_linear (A : Matrix R (h * d_h) c) (b : Vec R (h * d_h))
    (κ : Fin h) (X : Matrix R n c) : (splitHeads (Vec.map (linear A b) X))[κ]
      = Vec.map (affine (transpose (headPart κ A)) (headPart κ b)) X := by
  refine Vector.ext fun i hi => ?_
  refine (splitHeads_row _ κ ⟨i, hi⟩).trans ?_
  rw [Fin.getElem_fin, Vec.getElem_map, Vec.getElem_map, headPart_linear]

/-- **torch-heads**: what PyTorch computes is the document's multi-head attention with its weights
taken from PyTorch's parameters so. -/
theorem torchMultiHeadAttention_eq [Div R] [Exp R R] (scale : R)
    (modify : Fin h → ScoreMod R q_len kv_len) (P : TorchParameters R h d_h c_k c_v)
    (Q : Matrix R q_len (h * d_h)) (K : Matrix R kv_len c_k) (V : Matrix R kv_len c_v) :
    torchMultiHeadAttention scale modify P Q K V
      = multiHeadAttention scale modify P.weights Q K V := by
  have out : linear P.out_proj_weight P.out_proj_bias
      = affine (transpose P.out_proj_weight) P.out_proj_bias :=
    funext (linear_eq_affine P.out_proj_weight P.out_proj_bias)
  simp only [torchMultiHeadAttention, multiHead, getElem_splitHeads_linear, out]
  rfl

end

end Attention.Claims
