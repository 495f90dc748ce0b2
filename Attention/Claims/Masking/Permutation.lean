module

public import Attention.Claims.Masking.Deletion
import Attention.Algebra.FinRange

public section

/-! # Permuted queries and keys, under a mask and with weights

Claimed: with a mask attention is not permutation equivariant, and not even position-agnostic;
without, and without biases in the projections, it is. True: with a mask whose rows and columns are
permuted with the queries and the keys it is; biases of the projections change nothing. A mask that
stays where it is keeps the order of the keys from mattering if and only if each of its rows is one
number. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {m n q_len kv_len d d_v c_q c_k c_v c : Nat}

/-! ## Permutations -/

/-- A permutation takes no number twice. -/
theorem IsPermutation.injective {σ : Fin n → Fin n} (h : IsPermutation σ) (a b : Fin n)
    (e : σ a = σ b) : a = b := by
  have := List.pairwise_map.mp (h.symm.nodup (nodup_finRange n))
  refine Classical.byContradiction fun hab => ?_
  have pair := List.pairwise_iff_getElem.mp this
  have hab : a.val ≠ b.val := fun h => hab (Fin.ext h)
  rcases Nat.lt_or_gt_of_ne hab with h | h
  · exact pair a.val b.val (by simp) (by simp) h (by simpa using e)
  · exact pair b.val a.val (by simp) (by simp) h (by simpa using e.symm)

/-- A permutation takes every number. -/
theorem IsPermutation.surjective {σ : Fin n → Fin n} (h : IsPermutation σ) (j : Fin n) :
    ∃ i, σ i = j := by
  obtain ⟨i, -, hi⟩ := List.mem_map.mp (h.symm.subset (List.mem_finRange j))
  exact ⟨i, hi⟩

/-- A function that is its own inverse is a permutation. -/
theorem isPermutation_of_involution {σ : Fin n → Fin n} (h : ∀ i, σ (σ i) = i) :
    IsPermutation σ := by
  refine List.perm_iff_count.mpr fun a => ?_
  rw [count_finRange, ← count_finRange (σ a), List.count, List.countP_map, List.count]
  refine List.countP_congr fun k _ => ?_
  simp only [Function.comp, beq_iff_eq]
  exact ⟨fun e => by rw [← e, h], fun e => by rw [e, h]⟩

section
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-! ## Softmax -/

/-- Permuted scores have permuted weights. -/
theorem softmax_permute {σ : Fin n → Fin n} (hσ : IsPermutation σ) (x : Fin n → Option S) :
    ∃ p : Fin n → R, softmax ((List.finRange n).map x) = (List.finRange n).map p ∧
      softmax ((List.finRange n).map fun j => x (σ j))
        = (List.finRange n).map fun j => p (σ j) := by
  refine ⟨fun j => weight (x j) / denominator ((List.finRange n).map x), ?_, ?_⟩
  · rw [Proof.softmax_eq, List.map_map]
    rfl
  · have e : (denominator ((List.finRange n).map fun j => x (σ j)) : R)
        = denominator ((List.finRange n).map x) := by
      have : (List.finRange n).map (fun j => x (σ j)) = ((List.finRange n).map σ).map x := by
        rw [List.map_map]
        rfl
      rw [this]
      exact sumOver_perm _ (hσ.map x)
    rw [Proof.softmax_eq, List.map_map, e]
    rfl

/-! ## Equivariance -/

/-- Queries taken by any numbers, and keys with their values permuted, give the output taken by the
queries' numbers, without a mask. -/
theorem attention_permute (scale : S) (τ : Fin m → Fin q_len) {σ : Fin kv_len → Fin kv_len}
    (hσ : IsPermutation σ) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) :
    attention scale Mask.full.toScoreMod (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (attention scale Mask.full.toScoreMod Q K V) :=
  attention_reindex scale Mask.full.toScoreMod τ hσ.injective Q K V fun _ j hj =>
    absurd (hσ.surjective j) fun ⟨t, ht⟩ => hj t ht

/-- With a mask whose rows are taken with the queries, and its columns with the
keys, the output is taken with the queries. -/
theorem maskedAttention_permute (scale : S) (B : Matrix (Option S) q_len kv_len)
    (τ : Fin m → Fin q_len) {σ : Fin kv_len → Fin kv_len} (hσ : IsPermutation σ)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    maskedAttention scale (reindexMask τ σ B) (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (maskedAttention scale B Q K V) :=
  maskedAttention_reindex scale B τ hσ.injective Q K V fun _ j hj =>
    absurd (hσ.surjective j) fun ⟨t, ht⟩ => hj t ht

/-- With weights, biases included. -/
theorem weightedAttention_permute (scale : S) (W : Weights S R c_q c_k c_v d d_v)
    (τ : Fin m → Fin q_len) {σ : Fin kv_len → Fin kv_len} (hσ : IsPermutation σ)
    (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    weightedAttention scale Mask.full.toScoreMod W (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (weightedAttention scale Mask.full.toScoreMod W Q K V) :=
  weightedAttention_reindex scale Mask.full.toScoreMod W τ hσ.injective Q K V fun _ j hj =>
    absurd (hσ.surjective j) fun ⟨t, ht⟩ => hj t ht

/-- With weights, biases included, and the mask permuted with queries and keys. -/
theorem maskedWeightedAttention_permute (scale : S) (B : Matrix (Option S) q_len kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (τ : Fin m → Fin q_len) {σ : Fin kv_len → Fin kv_len}
    (hσ : IsPermutation σ) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) :
    maskedWeightedAttention scale (reindexMask τ σ B) W (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (maskedWeightedAttention scale B W Q K V) :=
  maskedWeightedAttention_reindex scale B W τ hσ.injective Q K V fun _ j hj =>
    absurd (hσ.surjective j) fun ⟨t, ht⟩ => hj t ht

/-- Self-attention of permuted inputs is the output permuted, biases included. -/
theorem weightedSelfAttention_permute (ι : S → R) (scale : S) (W : Weights S R c c c d d_v)
    {σ : Fin n → Fin n} (hσ : IsPermutation σ) (X : Matrix S n c) :
    weightedSelfAttention ι scale Mask.full.toScoreMod W (reindex σ X)
      = reindex σ (weightedSelfAttention ι scale Mask.full.toScoreMod W X) := by
  simp only [weightedSelfAttention, map_reindex]
  exact weightedAttention_permute scale W σ hσ X X _

/-- With a mask that is permuted on both sides too. -/
theorem maskedSelfAttention_permute (ι : S → R) (scale : S) (B : Matrix (Option S) n n)
    (W : Weights S R c c c d d_v) {σ : Fin n → Fin n} (hσ : IsPermutation σ) (X : Matrix S n c) :
    maskedSelfAttention ι scale (reindexMask σ σ B) W (reindex σ X)
      = reindex σ (maskedSelfAttention ι scale B W X) :=
  maskedSelfAttention_reindex ι scale B W hσ.injective X fun _ j hj =>
    absurd (hσ.surjective j) fun ⟨t, ht⟩ => hj t ht

/-! ## A mask that stays where it is -/

private theorem scale_cancel {a x y : S} (ha : 0 < a) (h : a * x = a * y) : x = y := by
  refine Classical.byContradiction fun hn => ?_
  have : x < y ∨ y < x := by grind
  rcases this with h' | h'
  · have := OrderedRing.mul_lt_mul_of_pos_left h' ha
    grind
  · have := OrderedRing.mul_lt_mul_of_pos_left h' ha
    grind

private theorem weight_inj {a : S} (ha : 0 < a) {b b' : Option S}
    (h : (weight (b.map fun b => a * b) : R) = weight (b'.map fun b => a * b)) : b = b' := by
  have pos := exp_pos (S := S) (R := R)
  cases b with
  | none => cases b' with
    | none => rfl
    | some b' =>
      have := pos (a * b')
      simp only [Option.map_none, Option.map_some, weight] at h
      grind
  | some b => cases b' with
    | none =>
      have := pos (a * b)
      simp only [Option.map_none, Option.map_some, weight] at h
      grind
    | some b' =>
      simp only [Option.map_some, weight, exp_inj] at h
      rw [scale_cancel ha h]

/-- The output for zero queries, and values that are 1 for key j and 0 for others, is the weight of
the mask's entry over the sum of them. -/
private theorem maskedAttention_indicator (scale : S) (B : Matrix (Option S) q_len kv_len)
    (i : Fin q_len) (K : Matrix S kv_len 0) (j : Fin kv_len) (V : Matrix R kv_len 1)
    (hV : ∀ k : Fin kv_len, V[k][(0 : Fin 1)] = if k = j then 1 else 0) :
    (maskedAttention scale B (Vec.ofFn fun _ => Vec.zero) K V)[i][(0 : Fin 1)]
      = (weight (B[i][j].map fun b => scale * b) : R)
        / sumOver (fun k : Fin kv_len => weight (B[i][k].map fun b => scale * b))
            (List.finRange kv_len) := by
  have e : ∀ k, score 1 (scaledBias scale B) (Vec.ofFn fun _ => Vec.zero) K i k
      = B[i][k].map fun b => scale * b := fun k => by
    rw [score_scaledBias]
    congr 1
    funext b
    have : ∀ x y : Vec S 0, Vec.dot x y = 0 := fun _ _ => rfl
    rw [this, Semiring.add_comm, Semiring.add_zero]
  rw [maskedAttention, Proof.getElem_attention_eq_weights]
  simp only [e, hV]
  congr 1
  rw [← sumOver_ite_eq (fun k : Fin kv_len => (weight (B[i][k].map fun b => scale * b) : R)) j]
  refine sumOver_congr fun k _ => ?_
  by_cases h : k = j
  · rw [if_pos h, if_pos h, Semiring.mul_one]
  · rw [if_neg h, if_neg h, Semiring.mul_zero]

/-- Under a mask the order of the keys does not matter if and only if each
row of the mask is one number, or masks every key: that is, if the mask does nothing but leave out
queries. -/
theorem maskedAttention_order_iff {scale : S} (hscale : 0 < scale)
    (B : Matrix (Option S) q_len kv_len) :
    (∀ (d d_v : Nat) (σ : Fin kv_len → Fin kv_len), IsPermutation σ → ∀ (Q : Matrix S q_len d)
        (K : Matrix S kv_len d) (V : Matrix R kv_len d_v),
        maskedAttention scale B Q (reindex σ K) (reindex σ V) = maskedAttention scale B Q K V)
      ↔ ∀ (i : Fin q_len) (j j' : Fin kv_len), B[i][j] = B[i][j'] := by
  constructor
  · intro h i j j'
    obtain ⟨σ, hσ⟩ : ∃ σ : Fin kv_len → Fin kv_len, ∀ k, σ k
        = if k = j then j' else if k = j' then j else k := ⟨_, fun _ => rfl⟩
    have invol : ∀ k, σ (σ k) = k := fun k => by
      rw [hσ (σ k), hσ k]
      grind
    have swapped : ∀ k, σ k = j ↔ k = j' := fun k => by
      rw [hσ k]
      grind
    have e₁ := maskedAttention_indicator (R := R) scale B i (Vec.ofFn fun _ => Vec.zero) j
      (Vec.ofFn fun k => Vec.ofFn fun _ => if k = j then 1 else 0) fun k => by simp
    have e₂ := maskedAttention_indicator (R := R) scale B i
      (reindex σ (Vec.ofFn fun _ => Vec.zero)) j'
      (reindex σ (Vec.ofFn fun k => Vec.ofFn fun _ => if k = j then 1 else 0)) fun k => by
        simp only [Fin.getElem_fin, getElem_reindex, Vec.getElem_ofFn, Fin.eta, swapped]
    have e := e₂.symm.trans ((congrArg (fun O : Matrix R q_len 1 => O[i][(0 : Fin 1)])
      (h 0 1 σ (isPermutation_of_involution invol) _ _ _)).trans e₁)
    have nonneg : ∀ k ∈ List.finRange kv_len,
        (0 : R) ≤ weight (B[i][k].map fun b => scale * b) := fun k _ => Proof.weight_nonneg _
    refine weight_inj hscale (R := R) ?_
    by_cases hl : sumOver (fun k : Fin kv_len => (weight (B[i][k].map fun b => scale * b) : R))
        (List.finRange kv_len) = 0
    · have h₁ := le_sumOver nonneg (List.mem_finRange j)
      have h₂ := le_sumOver nonneg (List.mem_finRange j')
      rw [hl] at h₁ h₂
      rw [Std.le_antisymm h₁ (nonneg j (List.mem_finRange j)),
        Std.le_antisymm h₂ (nonneg j' (List.mem_finRange j'))]
    · have e' := congrArg (sumOver (fun k : Fin kv_len =>
        (weight (B[i][k].map fun b => scale * b) : R)) (List.finRange kv_len) * ·) e
      simp only [OrderedField.mul_div_cancel hl] at e'
      exact e'.symm
  · intro h d d_v σ hσ Q K V
    have e := maskedAttention_permute (R := R) scale B id hσ Q K V
    have r : ∀ {α : Type u} (X : Vector α q_len), reindex id X = X := fun X =>
      Vector.ext fun i hi => by simp
    have r' : reindex id (maskedAttention scale B Q K V) = maskedAttention scale B Q K V :=
      Vector.ext fun i hi => by simp
    have b : reindexMask id σ B = B := Vector.ext fun i hi => Vector.ext fun j hj =>
      (getElem_reindexMask id σ B ⟨i, hi⟩ ⟨j, hj⟩).trans (h ⟨i, hi⟩ (σ ⟨j, hj⟩) ⟨j, hj⟩)
    rwa [b, r, r'] at e

end

end Attention.Claims
