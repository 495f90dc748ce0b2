module

public import Attention.Claims.Heads.Basic
import Attention.Algebra.FinRange

public section

/-! # Every definition of the document 003 is masked multi-head attention

No mask is the mask of zeros; one head is put out by the identity, without a bias; no weights are
identities, without biases; and self-attention has one input in three places. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len n h c_q c_k c_v c d d_v d_o : Nat}

/-! ## The particular arguments -/

/-- The mask of zeros, 0_{M×N}. -/
@[expose] def zeroMask [OfNat S 0] : Matrix (Option S) q_len kv_len :=
  Vec.ofFn fun _ => Vec.ofFn fun _ => some 0

/-- The identity matrix. -/
@[expose] def identity [OfNat R 0] [OfNat R 1] : Matrix R n n :=
  Vec.ofFn fun i => Vec.ofFn fun j => if i = j then 1 else 0

/-- The identity, as the output weights of one head: (1 · d_v) rows are d_v. -/
@[expose] def identityOutput [OfNat R 0] [OfNat R 1] : Matrix R (1 * d_v) d_v :=
  Vec.ofFn fun i => Vec.ofFn fun j => if Proof.componentOf i = j then 1 else 0

/-- The weights that leave queries, keys and values as they are. -/
@[expose] def Weights.identity [OfNat S 0] [OfNat S 1] [OfNat R 0] [OfNat R 1] :
    Weights S R d d d_v d d_v :=
  ⟨Claims.identity, Vec.zero, Claims.identity, Vec.zero, Claims.identity, Vec.zero⟩

/-- One head, whose output is put out as it is: 𝒲₀ = (I, 0), 𝒲₁ = 𝒲. -/
@[expose] def Weights.oneHead [OfNat R 0] [OfNat R 1] (W : Weights S R c_q c_k c_v d d_v) :
    MultiHeadWeights S R 1 c_q c_k c_v d d_v d_v :=
  ⟨fun _ => W, identityOutput, Vec.zero⟩

/-! ## What they do -/

/-- Every entry of the mask of zeros is the number 0. -/
theorem getElem_zeroMask [OfNat S 0] (i : Fin q_len) (j : Fin kv_len) :
    (zeroMask : Matrix (Option S) q_len kv_len)[i][j] = some 0 := by
  simp only [zeroMask, Fin.getElem_fin, Vec.getElem_ofFn]

/-- Of products with 1 at one number and 0 elsewhere, the sum is what stands at that number. -/
private theorem sumOver_select [CommRing R] (f : Fin n → R) (t : Fin n) (p : Fin n → Prop)
    [DecidablePred p] (hp : ∀ k, p k ↔ k = t) :
    sumOver (fun k => f k * if p k then 1 else 0) (List.finRange n) = f t := by
  suffices h : ∀ xs : List (Fin n), xs.Nodup →
      sumOver (fun k => f k * if p k then 1 else 0) xs = if t ∈ xs then f t else 0 by
    exact (h _ (nodup_finRange n)).trans (if_pos (List.mem_finRange t))
  intro xs hxs
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    obtain ⟨hx, hxs⟩ := List.nodup_cons.mp hxs
    rw [sumOver_cons, ih hxs]
    by_cases h : x = t
    · subst h
      rw [if_pos ((hp _).mpr rfl), if_neg hx, if_pos (by simp), Semiring.mul_one,
        Semiring.add_zero]
    · have : t ∈ x :: xs ↔ t ∈ xs := by simp [Ne.symm h]
      rw [if_neg (fun hx => h ((hp _).mp hx)), Semiring.mul_zero, Semiring.add_comm,
        Semiring.add_zero]
      simp only [this]

/-- The identity without a bias leaves a vector as it is. -/
theorem affine_identity [CommRing R] (x : Vec R n) : affine identity Vec.zero x = x := by
  refine Vector.ext fun t ht => ?_
  simp only [affine, identity, Vec.getElem_ofFn, Vec.getElem_zero, Fin.getElem_fin]
  rw [sumOver_select (fun k => x[k.val]) ⟨t, ht⟩ (· = ⟨t, ht⟩) fun k => Iff.rfl]
  exact Semiring.add_zero _

private theorem affine_identityOutput [OrderedField R] (x : Fin 1 → Vec R d_v) :
    affine identityOutput Vec.zero (joinRow x) = x 0 := by
  refine Vector.ext fun t ht => ?_
  simp only [affine, identityOutput, Vec.getElem_ofFn, Vec.getElem_zero, Fin.getElem_fin]
  rw [sumOver_select (fun k : Fin (1 * d_v) => (joinRow x)[k.val]) (headColumn 0 ⟨t, ht⟩)
    (Proof.componentOf · = ⟨t, ht⟩) fun k =>
      ⟨fun hk => ?_, fun hk => hk ▸ Proof.componentOf_headColumn _ _⟩]
  · exact (Semiring.add_zero _).trans (getElem_joinRow x 0 ⟨t, ht⟩)
  · rw [← Proof.headColumn_headOf k, hk, Subsingleton.elim (Proof.headOf k) 0]

private theorem map_id {α : Type u} (f : α → α) (hf : ∀ x, f x = x) (X : Vector α n) :
    Vec.map f X = X :=
  Vector.ext fun i hi => by rw [Vec.getElem_map, hf]

/-- One head that is put out as it is. -/
theorem output_oneHead [OrderedField R] (W : Weights S R c_q c_k c_v d d_v)
    (heads : Fin 1 → Matrix R q_len d_v) : W.oneHead.output (Vec.ofFn heads) = heads 0 := by
  refine Vector.ext fun i hi => ?_
  have e := getElem_output W.oneHead (Vec.ofFn heads) ⟨i, hi⟩
  simp only [Weights.oneHead, affine_identityOutput] at e
  rw [Fin.getElem_fin, Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn] at e
  exact e

variable [OrderedCommRing S] [OrderedField R] [Exponential S R] (scale : S)

/-! ## The seven reductions of the document -/

/-- Attn_W is MAttn_W with the mask of zeros. -/
theorem weightedAttention_eq_masked (W : Weights S R c_q c_k c_v d d_v) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    weightedAttention scale Mask.full.toScoreMod W Q K V
      = maskedWeightedAttention scale zeroMask W Q K V :=
  (maskedAttention_const (fun i j => getElem_zeroMask i j) _ _ _).symm

/-- MHAttn is MMHAttn with masks of zeros. -/
theorem multiHeadAttention_eq_masked (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o)
    (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    multiHeadAttention scale (fun _ => Mask.full.toScoreMod) W Q K V
      = maskedMultiHeadAttention scale (fun _ => zeroMask) W Q K V := by
  simp only [multiHeadAttention, maskedMultiHeadAttention, weightedAttention_eq_masked]

/-- MAttn_W is MMHAttn of one head, put out by (I, 0). -/
theorem maskedWeightedAttention_eq_multiHead (B : Matrix (Option S) q_len kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) :
    maskedWeightedAttention scale B W Q K V
      = maskedMultiHeadAttention scale (fun _ => B) W.oneHead Q K V :=
  (output_oneHead W fun _ => maskedWeightedAttention scale B W Q K V).symm

/-- Attn_W is MMHAttn of one head with the mask of zeros. -/
theorem weightedAttention_eq_multiHead (W : Weights S R c_q c_k c_v d d_v) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    weightedAttention scale Mask.full.toScoreMod W Q K V
      = maskedMultiHeadAttention scale (fun _ => zeroMask) W.oneHead Q K V := by
  rw [weightedAttention_eq_masked, maskedWeightedAttention_eq_multiHead]

/-- SAttn_W(X) is MMHAttn of one head with the mask of zeros, of X three times. -/
theorem weightedSelfAttention_eq_multiHead (ι : S → R) (W : Weights S R c c c d d_v)
    (X : Matrix S n c) :
    weightedSelfAttention ι scale Mask.full.toScoreMod W X
      = maskedMultiHeadAttention scale (fun _ => zeroMask) W.oneHead X X
          (Vec.map (Vec.map ι) X) :=
  weightedAttention_eq_multiHead scale W X X _

/-- MSAttn_W(X) is MMHAttn of one head, of X three times. -/
theorem maskedSelfAttention_eq_multiHead (ι : S → R) (B : Matrix (Option S) n n)
    (W : Weights S R c c c d d_v) (X : Matrix S n c) :
    maskedSelfAttention ι scale B W X
      = maskedMultiHeadAttention scale (fun _ => B) W.oneHead X X (Vec.map (Vec.map ι) X) :=
  maskedWeightedAttention_eq_multiHead scale B W X X _

/-- MHSAttn(X) is MMHAttn with masks of zeros, of X three times. -/
theorem multiHeadSelfAttention_eq_masked (ι : S → R)
    (W : MultiHeadWeights S R h c c c d d_v d_o) (X : Matrix S n c) :
    multiHeadSelfAttention ι scale (fun _ => Mask.full.toScoreMod) W X
      = maskedMultiHeadAttention scale (fun _ => zeroMask) W X X (Vec.map (Vec.map ι) X) :=
  multiHeadAttention_eq_masked scale W X X _

/-! ## Those without weights -/

/-- Weights that are identities without biases do nothing. -/
theorem weightedAttention_identity (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    weightedAttention scale modify Weights.identity Q K V = attention scale modify Q K V := by
  simp only [weightedAttention, Weights.queries, Weights.keys, Weights.values, Weights.identity]
  rw [map_id _ affine_identity Q, map_id _ affine_identity K, map_id _ affine_identity V]

/-- MAttn_B is MMHAttn of one head whose projections are identities without biases. -/
theorem maskedAttention_eq_multiHead (B : Matrix (Option S) q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    maskedAttention scale B Q K V
      = maskedMultiHeadAttention scale (fun _ => B) Weights.identity.oneHead Q K V := by
  rw [← maskedWeightedAttention_eq_multiHead]
  exact (weightedAttention_identity 1 (scaledBias scale B) Q K V).symm

/-- Attention is MMHAttn of one head whose mask is zeros and whose projections are identities
without biases. -/
theorem attention_eq_multiHead (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) :
    attention scale Mask.full.toScoreMod Q K V
      = maskedMultiHeadAttention scale (fun _ => zeroMask) Weights.identity.oneHead Q K V := by
  rw [← maskedAttention_eq_multiHead]
  exact (maskedAttention_const (fun i j => getElem_zeroMask i j) _ _ _).symm

end Attention.Claims
