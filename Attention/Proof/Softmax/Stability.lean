module

public import Attention.Proof.Flash.Basic

public section

/-! # What the output does not depend on, and where outputs and weights lie -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v

/-! ## The output depends on exponentials of numbers ≤ 0 alone -/

section
variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [OfNat R 0] [Div R]

/-- The tile loop of FlashAttention-2 with any function in the place of the exponential. -/
@[expose] def flashUsing (f : S → R) (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (block_m block_n : Nat) : List (Vec R d_v) :=
  have : Exp S R := ⟨f⟩
  flash scale modify Q K V block_m block_n

end

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}

private theorem rescale_using {f : S → R} (hf : ∀ x : S, x ≤ 0 → f x = exp x) {s m : Option S}
    (h : ScoreLE s m) : @rescale S R _ _ ⟨f⟩ s m = rescale s m := by
  cases s with
  | none => rfl
  | some s =>
    cases m with
    | none => cases h
    | some m => exact hf (s - m) (by have : s ≤ m := h; grind)

private theorem stepBlock_using {f : S → R} (hf : ∀ x : S, x ≤ 0 → f x = exp x)
    (s : State S R d) (block : List (ScoredValue S R d)) :
    @stepBlock S R d _ _ _ _ _ _ ⟨f⟩ s block = stepBlock s block := by
  have h₁ := le_maxScore_left s.m (rowMax (block.map (·.score)))
  have h₂ := fun key hk => (score_le_rowMax block key hk).trans
    (le_maxScore_right s.m (rowMax (block.map (·.score))))
  refine state_ext rfl ?_ fun j hj => ?_
  · simp only [stepBlock, rescale_using hf h₁]
    rw [sumOver_congr fun key hk => rescale_using hf (h₂ key hk)]
  · simp only [stepBlock, rescale_using hf h₁, Vec.getElem_add, Vec.getElem_sumOver,
      Vec.getElem_smul]
    rw [sumOver_congr fun key hk => congrArg (· * _) (rescale_using hf (h₂ key hk))]

/-- **nonpositive-exponents**: whatever function takes the place of the exponential, if it agrees
with it on numbers ≤ 0, the tile loop gives the same output. This speaks of the output: a loop that
evaluated exp of a positive number and multiplied it by 0 would satisfy it too. -/
theorem flashUsing_eq_flash {f : S → R} (hf : ∀ x : S, x ≤ 0 → f x = exp x) (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (block_m block_n : Nat) :
    flashUsing f scale modify Q K V block_m block_n
      = flash scale modify Q K V block_m block_n := by
  have h : @stepTile S R q_len kv_len d_v _ _ _ _ _ _ ⟨f⟩ (scored scale modify Q K V)
      = stepTile (scored scale modify Q K V) := by
    funext rows states cols
    simp only [stepTile, stepBlock_using hf]
  simp only [flashUsing, flash, tileLoop, h]

/-! ## Bounds of the state -/

omit [OrderedCommRing S] [Exponential S R] in
private theorem mul_mem_interval {p v B : R} (hp : 0 ≤ p) (h : -B ≤ v ∧ v ≤ B) :
    -(p * B) ≤ p * v ∧ p * v ≤ p * B := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left h.1 hp
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h.2 hp
  exact ⟨by grind, h₂⟩

/-- **state-bounded**: after any blocks with an unmasked key, 1 ≤ l ≤ n, the number of unmasked
keys, and if their values lie between −B and B, then |o| ≤ l · B: no step of the loop leaves the
range of n times the largest value. -/
theorem online_bounded (blocks : List (List (ScoredValue S R d)))
    (h : ∃ key ∈ blocks.flatten, key.score ≠ none) :
    1 ≤ (online blocks).l ∧
    (online blocks).l ≤ sumOver (fun key : ScoredValue S R d => match key.score with
      | none => 0
      | some _ => 1) blocks.flatten ∧
    ∀ (B : R) (j : Nat) (hj : j < d),
      (∀ key ∈ blocks.flatten, key.score ≠ none → -B ≤ key.value[j] ∧ key.value[j] ≤ B) →
      -((online blocks).l * B) ≤ (online blocks).o[j] ∧
        (online blocks).o[j] ≤ (online blocks).l * B := by
  have inv := online_invariant blocks
  have hm : (online blocks).m ≠ none := fun hm => by
    obtain ⟨key, hk, hs⟩ := h
    exact hs (inv.m_eq_none.mp hm key hk)
  refine ⟨inv.one_le_l hm, inv.l_le, fun B j hj hv => ?_⟩
  rw [online_eq_ofBlock]
  generalize blocks.flatten = row at hv ⊢
  have term : ∀ key ∈ row,
      -((rescale key.score (ofBlock row).m : R) * B)
          ≤ rescale key.score (ofBlock row).m * key.value[j] ∧
        (rescale key.score (ofBlock row).m : R) * key.value[j]
          ≤ rescale key.score (ofBlock row).m * B := fun key hk => by
    cases hs : key.score with
    | none => simp only [rescale_none_left, Semiring.zero_mul]; exact ⟨by grind, Std.le_refl _⟩
    | some x => exact mul_mem_interval (rescale_nonneg _ _) (hv key hk (by simp [hs]))
  have hl : (ofBlock row).l * B
      = sumOver (fun key => (rescale key.score (ofBlock row).m : R) * B) row := by
    rw [CommSemiring.mul_comm, ofBlock, ← sumOver_mul_left]
    exact sumOver_congr fun key _ => CommSemiring.mul_comm _ _
  have hn : -((ofBlock row).l * B)
      = sumOver (fun key => -((rescale key.score (ofBlock row).m : R) * B)) row := by
    rw [hl, sumOver_neg]
  rw [hn, hl, ofBlock_o]
  exact ⟨sumOver_le_sumOver fun key hk => (term key hk).1,
    sumOver_le_sumOver fun key hk => (term key hk).2⟩

/-! ## Where outputs lie -/

private theorem weight_mul_le {s : Option S} {a b : R} (h : s ≠ none → a ≤ b) :
    (weight s : R) * a ≤ weight s * b := by
  cases s with
  | none => simp only [weight, Semiring.zero_mul]; exact Std.le_refl _
  | some s => exact OrderedRing.mul_le_mul_of_nonneg_left (h (by simp)) (weight_nonneg _)

/-- **convex-hull**: each component of an output lies between the least and the greatest value of
the unmasked keys. (With an attention sink it may lie between them and 0.) -/
theorem attend_mem_interval {row : List (ScoredValue S R d)}
    (h : ∃ key ∈ row, key.score ≠ none) {a b : R} {j : Nat} (hj : j < d)
    (hv : ∀ key ∈ row, key.score ≠ none → a ≤ key.value[j] ∧ key.value[j] ≤ b) :
    a ≤ (attend row)[j] ∧ (attend row)[j] ≤ b := by
  have pos : (0 : R) < denominator (row.map (·.score)) := by
    obtain ⟨key, hk, hs⟩ := h
    obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hs
    exact denominator_pos (List.mem_map.mpr ⟨key, hk, hs⟩)
  have total : ∀ c : R, denominator (row.map (·.score)) * c
      = sumOver (fun key => (weight key.score : R) * c) row := fun c => by
    rw [CommSemiring.mul_comm, denominator, sumOver_map, ← sumOver_mul_left]
    exact sumOver_congr fun key _ => CommSemiring.mul_comm _ _
  rw [getElem_attend, OrderedField.le_div_iff pos, OrderedField.div_le_iff pos, total, total]
  exact ⟨sumOver_le_sumOver fun key hk => weight_mul_le fun hs => (hv key hk hs).1,
    sumOver_le_sumOver fun key hk => weight_mul_le fun hs => (hv key hk hs).2⟩

/-- **constant-values**: where all unmasked keys have one value, it is the output. -/
theorem attend_constant {row : List (ScoredValue S R d)}
    (h : ∃ key ∈ row, key.score ≠ none) {c : R} {j : Nat} (hj : j < d)
    (hv : ∀ key ∈ row, key.score ≠ none → key.value[j] = c) : (attend row)[j] = c := by
  have hc := attend_mem_interval h hj (a := c) (b := c) fun key hk hs => by
    rw [hv key hk hs]; exact ⟨Std.le_refl _, Std.le_refl _⟩
  exact Std.le_antisymm hc.2 hc.1

/-! ## Weights -/

/-- **dominance**: a key whose score lies Δ or more below that of another has a weight of at most
exp (−Δ), and of at most exp (−Δ) times the other's. -/
theorem softmax_dominance {row : List (Option S)} {x y Δ : S} (hΔ : x + Δ ≤ y) {p q : R}
    (hp : (some x, p) ∈ row.zip (softmax row)) (hq : (some y, q) ∈ row.zip (softmax row)) :
    p ≤ exp (-Δ) * q ∧ p ≤ exp (-Δ) := by
  have hy : some y ∈ row := (List.of_mem_zip hq).1
  have pos := denominator_pos (R := R) hy
  have hle : (exp x : R) ≤ exp (-Δ) * exp y := by
    rw [← exp_add]
    exact exp_le (by grind)
  have hD : (exp y : R) ≤ denominator row :=
    le_sumOver (f := weight) (fun s _ => weight_nonneg s) hy
  have h₀ := exp_pos (R := R) (-Δ)
  have hpx : p = exp x / denominator row := mem_zip_softmax hp
  have hqy : q = exp y / denominator row := mem_zip_softmax hq
  have h₁ : p ≤ exp (-Δ) * q := by
    rw [hpx, OrderedField.div_le_iff pos, hqy]
    have : (denominator row : R) * (exp (-Δ) * (exp y / denominator row))
        = exp (-Δ) * (denominator row * (exp y / denominator row)) := by
      rw [← Semiring.mul_assoc, ← Semiring.mul_assoc, CommSemiring.mul_comm (exp (-Δ))]
    rw [this, OrderedField.mul_div_cancel (by grind)]
    exact hle
  have h₂ : q ≤ 1 := by
    rw [hqy, OrderedField.div_le_iff pos, Semiring.mul_one]
    exact hD
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left h₂ (Std.le_of_lt h₀)
  exact ⟨h₁, Std.le_trans h₁ (by rwa [Semiring.mul_one] at h₃)⟩

end Attention.Proof
