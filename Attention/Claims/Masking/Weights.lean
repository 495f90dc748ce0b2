module

public import Attention.Proof.Scores.ScoreMods
public import Attention.Spec.Masks

public section

/-! # Attention with a mask of numbers, and with weights

The document of multi-head attention adds a mask B to the inner products and divides both by √d; and
it makes the queries, keys and values from its inputs by affine maps. Here the first is compared
with the mask that is added to the scaled scores, and the maps are held in one structure. An entry
of a mask is a number, or `none` where the document lets one tend to −∞. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len n d d_v c_q c_k c_v c : Nat}

/-! ## A mask added before the scale -/

/-- An entry of the mask is added to the inner product, and the sum multiplied by the scale; `none`
masks the pair. -/
@[expose] def scaledBias [Add S] [Mul S] (scale : S) (B : Matrix (Option S) q_len kv_len) :
    ScoreMod S q_len kv_len :=
  fun i j s => B[i][j].map fun b => scale * (s + b)

/-- MAttn_B(Q, K, V) = softmax((Q Kᵀ + B) · scale) V, for the document's scale 1/√d_k. -/
@[expose] def maskedAttention [Add S] [Mul S] [OfNat S 0] [OfNat S 1] [Add R] [Mul R] [Div R]
    [OfNat R 0] [Exp S R] (scale : S) (B : Matrix (Option S) q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  attention 1 (scaledBias scale B) Q K V

/-- Every entry of a mask multiplied by a number; `none` stays. -/
@[expose] def scaleMask [Mul S] (a : S) (B : Matrix (Option S) q_len kv_len) :
    Matrix (Option S) q_len kv_len :=
  Vec.map (Vec.map (Option.map (a * ·))) B

/-! ## Weights -/

/-- The row vector x W + b. -/
@[expose] def affine [Add R] [Mul R] [OfNat R 0] (W : Matrix R c d) (b : Vec R d) (x : Vec R c) :
    Vec R d :=
  Vec.ofFn fun t => sumOver (fun k => x[k] * W[k][t]) (List.finRange c) + b[t]

/-- The weights (W_q, b_q, W_k, b_k, W_v, b_v) that make queries of d components from rows of c_q,
keys of d from rows of c_k, and values of d_v from rows of c_v. -/
structure Weights (S : Type u) (R : Type v) (c_q c_k c_v d d_v : Nat) where
  /-- The weights of the queries. -/
  w_q : Matrix S c_q d
  /-- The bias of the queries. -/
  b_q : Vec S d
  /-- The weights of the keys. -/
  w_k : Matrix S c_k d
  /-- The bias of the keys. -/
  b_k : Vec S d
  /-- The weights of the values. -/
  w_v : Matrix R c_v d_v
  /-- The bias of the values. -/
  b_v : Vec R d_v

section
variable [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [OfNat R 0]

/-- Q W_q + 1 b_qᵀ. -/
@[expose] def Weights.queries (W : Weights S R c_q c_k c_v d d_v) (Q : Matrix S n c_q) :
    Matrix S n d :=
  Vec.map (affine W.w_q W.b_q) Q

/-- K W_k + 1 b_kᵀ. -/
@[expose] def Weights.keys (W : Weights S R c_q c_k c_v d d_v) (K : Matrix S n c_k) :
    Matrix S n d :=
  Vec.map (affine W.w_k W.b_k) K

/-- V W_v + 1 b_vᵀ. -/
@[expose] def Weights.values (W : Weights S R c_q c_k c_v d d_v) (V : Matrix R n c_v) :
    Matrix R n d_v :=
  Vec.map (affine W.w_v W.b_v) V

variable [Div R] [Exp S R]

/-- Attention with weights, and with any score transformation: attention of the projected queries,
keys and values. With no transformation it is Attn_W(Q, K, V), for the document's scale 1/√d_k. -/
@[expose] def weightedAttention (scale : S) (modify : ScoreMod S q_len kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) : Matrix R q_len d_v :=
  attention scale modify (W.queries Q) (W.keys K) (W.values V)

/-- MAttn_W(Q, K, V): masked attention with weights. -/
@[expose] def maskedWeightedAttention [OfNat S 1] (scale : S) (B : Matrix (Option S) q_len kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) : Matrix R q_len d_v :=
  maskedAttention scale B (W.queries Q) (W.keys K) (W.values V)

/-- Self-attention with weights, and with any score transformation: queries, keys and values are
made of one X. Where scores and values are numbers of two types, ι says how a number of X is read as
a value: the identity where they are one. With no transformation it is SAttn_W(X). -/
@[expose] def weightedSelfAttention (ι : S → R) (scale : S) (modify : ScoreMod S n n)
    (W : Weights S R c c c d d_v) (X : Matrix S n c) : Matrix R n d_v :=
  weightedAttention scale modify W X X (Vec.map (Vec.map ι) X)

/-- MSAttn_W(X): masked self-attention with weights. -/
@[expose] def maskedSelfAttention [OfNat S 1] (ι : S → R) (scale : S)
    (B : Matrix (Option S) n n) (W : Weights S R c c c d d_v) (X : Matrix S n c) :
    Matrix R n d_v :=
  maskedWeightedAttention scale B W X X (Vec.map (Vec.map ι) X)

end

/-! ## What is proved of them -/

/-- An entry of a mask multiplied by a number. -/
theorem getElem_scaleMask [Mul S] (a : S) (B : Matrix (Option S) q_len kv_len) (i : Fin q_len)
    (j : Fin kv_len) : (scaleMask a B)[i][j] = B[i][j].map (a * ·) := by
  simp only [scaleMask, Fin.getElem_fin, Vec.getElem_map]

section
variable [OrderedCommRing S]

/-- The score under the mask: scale · (⟨Qᵢ, Kⱼ⟩ + bᵢⱼ), or `none`. -/
theorem score_scaledBias (scale : S) (B : Matrix (Option S) q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (i : Fin q_len) (j : Fin kv_len) :
    score 1 (scaledBias scale B) Q K i j
      = B[i][j].map fun b => scale * (Vec.dot Q[i] K[j] + b) := by
  rw [score, scaledBias, Semiring.one_mul]

variable [OrderedField R] [Exponential S R]

/-- Two score transformations, and two scales, that give the same scores give the same attention. -/
theorem attention_congr_score {scale scale' : S} {modify modify' : ScoreMod S q_len kv_len}
    {Q Q' : Matrix S q_len d} {K K' : Matrix S kv_len d}
    (h : ∀ i j, score scale modify Q K i j = score scale' modify' Q' K' i j)
    (V : Matrix R kv_len d_v) :
    attention scale modify Q K V = attention scale' modify' Q' K' V := by
  simp only [attention, scored, h]

/-- A mask that is divided by √d together with the scores is one that is added to the scaled scores,
its entries divided by √d. -/
theorem maskedAttention_eq_bias (scale : S) (B : Matrix (Option S) q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    maskedAttention scale B Q K V = attention scale (.bias (scaleMask scale B)) Q K V := by
  refine attention_congr_score (fun i j => ?_) V
  rw [score_scaledBias, score, ScoreMod.bias, getElem_scaleMask, Option.map_map]
  congr 1
  funext b
  exact Semiring.left_distrib ..

/-- And a mask that is added to the scaled scores, as PyTorch's `attn_mask` is, is one that is
divided by √d with them, its entries multiplied by √d. -/
theorem bias_eq_maskedAttention {scale a : S} (h : scale * a = 1)
    (B : Matrix (Option S) q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) :
    attention scale (.bias B) Q K V = maskedAttention scale (scaleMask a B) Q K V := by
  refine attention_congr_score (fun i j => ?_) V
  rw [score_scaledBias, score, ScoreMod.bias, getElem_scaleMask, Option.map_map]
  congr 1
  funext b
  rw [Function.comp, Semiring.left_distrib, ← Semiring.mul_assoc, h, Semiring.one_mul]

/-- A mask whose rows are each one number does nothing. -/
theorem maskedAttention_const {scale : S} {B : Matrix (Option S) q_len kv_len} {b : Fin q_len → S}
    (h : ∀ i : Fin q_len, ∀ j : Fin kv_len, B[i][j] = some (b i)) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    maskedAttention scale B Q K V = attention scale Mask.full.toScoreMod Q K V := by
  refine Vector.ext fun i hi => ?_
  have e := Proof.attention_bias_const (R := R) scale (Mask.full (kv_len := kv_len)).toScoreMod
    Q K V (B := scaleMask scale B) (i := ⟨i, hi⟩) (b := scale * b ⟨i, hi⟩) fun k => by
      rw [getElem_scaleMask, h, Option.map_some]
  rw [maskedAttention_eq_bias]
  refine Eq.trans ?_ e
  refine congrArg (·[i]) (attention_congr_score (fun i j => ?_) V)
  rfl

/-- Attention with weights, written out: with q̂, k̂ and v̂ the projected rows, component t of row i
is Σⱼ wⱼ v̂ⱼₜ / Σⱼ wⱼ, where wⱼ is exp of scale · ⟨q̂ᵢ, k̂ⱼ⟩. -/
theorem weightedAttention_formula (scale : S) (W : Weights S R c_q c_k c_v d d_v)
    (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) (i : Fin q_len)
    (t : Fin d_v) :
    let w : Fin kv_len → R := fun j =>
      exp (scale * Vec.dot (affine W.w_q W.b_q Q[i]) (affine W.w_k W.b_k K[j]))
    (weightedAttention scale Mask.full.toScoreMod W Q K V)[i][t]
      = sumOver (fun j => w j * (affine W.w_v W.b_v V[j])[t]) (List.finRange kv_len)
        / sumOver w (List.finRange kv_len) := by
  rw [weightedAttention, Proof.getElem_attention_eq_weights]
  simp only [score, Mask.toScoreMod, Mask.full, if_true, weight, Weights.queries, Weights.keys,
    Weights.values, Fin.getElem_fin, Vec.getElem_map]

end

end Attention.Claims
