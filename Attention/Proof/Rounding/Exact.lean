module

public import Attention.Proof.Rounding.Masked
public import Attention.Proof.Rounding.Basic

public section

/-! # Rows of which nothing is forgiven

A row with every key masked, and a function that rounds nothing: their results are exact. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- A row with every key masked has result exactly 0, however it is computed. -/
theorem rounded_attention_masked {p : Precision R} {m : R} {part : Part R}
    (run : Run p m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (masked : ∀ key ∈ row, key.score = none) {u : R} {k : Nat} {o : R}
    (result : RoundedTimes u k (part.o / part.l) o) : o = 0 ∧ (attend row)[j] = 0 := by
  obtain ⟨t, rfl, _⟩ := roundedTimes_factor result
  have h : ∀ key ∈ part.keys, key.score = none := fun key hk => by
    have h₁ := List.mem_map_of_mem (f := fun k => (k.score, k.value)) hk
    rw [same] at h₁
    obtain ⟨key', hk', he⟩ := List.mem_map.mp h₁
    exact (congrArg Prod.fst he).symm.trans (masked key' hk')
  obtain ⟨_, h₂⟩ := run_masked run h
  rw [h₂, attend_masked masked, Vec.getElem_zero, Field.div_eq_mul_inv]
  exact ⟨by grind, rfl⟩

omit [Exponential R R] in
private theorem smaller_le_left (x y : R) : smaller x y ≤ x := by
  rw [smaller]
  split
  · exact Std.le_refl _
  · grind

omit [Exponential R R] in
private theorem smaller_zero {x : R} (h : 0 ≤ x) : smaller x 0 = 0 ∧ smaller 0 x = 0 := by
  rw [smaller, smaller, if_pos h]
  exact ⟨by split <;> grind, rfl⟩

omit [Exponential R R] in
private theorem share_nonneg_of_exact {keys : List (BoundedWeight R)}
    (hw : ∀ k ∈ keys, 0 ≤ k.weight) (hfactor : ∀ k ∈ keys, k.factor = 1) :
    ∀ k ∈ keys, 0 ≤ mostShare (lowTotal keys) k := fun k hk => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hlow : 0 ≤ lowTotal keys := sumOver_nonneg fun k hk => by
    rw [hfactor k hk]
    exact OrderedField.div_nonneg (hw k hk) h₀
  rw [mostShare, smaller, hfactor k hk, Semiring.mul_one]
  split
  · by_cases h : 0 < lowTotal keys
    · exact OrderedField.div_nonneg (hw k hk) h
    · rw [show lowTotal keys = 0 by grind, Field.div_eq_mul_inv, Field.inv_zero, Semiring.mul_zero]
      exact Std.le_refl _
  · exact Std.le_of_lt h₀

omit [Exponential R R] in
/-- Storing weights exactly loses nothing of their sum. -/
private theorem storingErrors_zero {denominator : Denominator} {rescalings : Nat}
    {keys : List (BoundedWeight R)} (h : ∀ k ∈ keys, 0 ≤ mostShare (lowTotal keys) k) :
    storingErrors (⟨0, 0, 0, 0, 0, denominator⟩ : Precision R) rescalings keys = 0 := by
  have e : max (0 : R) 0 = 0 := by
    rw [OrderedField.max_def]
    split <;> rfl
  have hs : sumOver (fun k => smaller (mostShare (lowTotal keys) k) 0) keys = 0 :=
    sumOver_eq_zero fun k hk => (smaller_zero (h k hk)).1
  simp only [storingErrors, storingError, tinyShare, Semiring.zero_mul, e, hs]
  rw [Semiring.add_zero]
  exact (smaller_zero (Std.le_refl _)).1

/-- A function that rounds nothing, of scores that are exact, is allowed nothing. -/
theorem tolerance_exact_le {denominator : Denominator} {row : List (BoundedKey R)}
    (h : ∀ key ∈ row, key.score ≠ none → key.error = 0) (roundings rescalings : Nat)
    (negligible : R) :
    tolerance ⟨0, 0, 0, 0, 0, denominator⟩ roundings rescalings negligible row ≤ 0 := by
  have hfactor : ∀ k ∈ boundedWeights ⟨0, 0, 0, 0, 0, denominator⟩ rescalings row,
      k.factor = 1 := fun k hk => by
    rw [boundedWeights] at hk
    obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hk
    unfold boundedWeight
    split
    next s m hs hm =>
      have e₁ : (1 : R) - 0 = 1 := by grind
      have e₂ : (0 : R) + 0 * (m - s + 0 + largestError row) = 0 := by grind
      rw [h key hkey (by simp [hs]), e₁, e₂, exp_zero, power_eq, Semiring.one_pow]
      grind
    next => rfl
  have hγ : ∀ k, gamma k (0 : R) = 0 := fun k => by
    rw [gamma, Semiring.mul_zero]
    grind
  have hweight : ∀ k ∈ boundedWeights ⟨0, 0, 0, 0, 0, denominator⟩ rescalings row,
      0 ≤ k.weight := fun k hk => by
    rw [boundedWeights] at hk
    obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hk
    unfold boundedWeight
    split
    · exact Std.le_of_lt (exp_pos _)
    · exact Std.le_refl _
  rw [tolerance, toleranceTerms]
  simp only [hγ, Semiring.zero_mul, Semiring.add_zero]
  generalize boundedWeights ⟨0, 0, 0, 0, 0, denominator⟩ rescalings row = keys at *
  have hexcess : ∀ f : BoundedWeight R → R,
      sumOver (fun k => k.weight * (k.factor - 1) * f k) keys = 0 := fun f =>
    sumOver_eq_zero fun k hk => by
      rw [hfactor k hk]
      grind
  have hshare := share_nonneg_of_exact hweight hfactor
  have hmax : max (0 : R) 0 = 0 := by
    rw [OrderedField.max_def]
    split <;> rfl
  have htiny : ∀ f : BoundedWeight R → R,
      sumOver (fun k => smaller (mostShare (lowTotal keys) k) 0 * f k) keys = 0 := fun f =>
    sumOver_eq_zero fun k hk => by
      rw [(smaller_zero (hshare k hk)).1, Semiring.zero_mul]
  simp only [hexcess, storingErrors_zero hshare, storingError, tinyShare, Semiring.zero_mul, hmax,
    htiny, Semiring.add_zero]
  have e : (0 : R) / lowTotal keys = 0 := by
    rw [Field.div_eq_mul_inv, Semiring.zero_mul]
  have e₀ : (0 : R) / (1 - 0) = 0 := by grind
  have smaller_le : ∀ x : R, smaller 0 x ≤ 0 := fun x => smaller_le_left 0 x
  have stored : ∀ most : R, overRemainder 0 0 most ≤ 0 := fun most => by
    have := OrderedRing.zero_lt_one (R := R)
    rw [overRemainder, if_neg (by grind), e₀]
    exact smaller_le most
  have both : ∀ x y : R, x ≤ 0 → y ≤ 0 → x + y ≤ 0 := fun x y _ _ => by grind
  rw [e, e₀, Semiring.add_zero]
  cases denominator with
  | unrounded =>
    exact both _ _ (smaller_le _) (Std.le_trans (smaller_le_left _ _) (smaller_le_left _ _))
  | rounded => exact both _ _ (smaller_le _) (stored _)

/-- Where nothing is rounded and the scores are exact but for a constant that all share, the
quotient is the exact attention. -/
theorem run_exact_attention {denominator : Denominator} {m : R} {part : Part R}
    (run : Run ⟨0, 0, 0, 0, 0, denominator⟩ m part) {d : Nat}
    {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (exact : ∀ key ∈ part.keys, key.score ≠ none → key.error = 0)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s → key.computed = s + c) :
    part.o / part.l = (attend row)[j] := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have hclose : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)) := fun key hk s hs => by
    rw [exact key hk (by simp [hs]), close key hk s hs]
    exact ⟨by grind, by grind⟩
  have hresult : RoundedTimes (0 : R) 5 (part.o / part.l) (part.o / part.l) := by
    have h : ∀ k, RoundedTimes (0 : R) k (part.o / part.l) (part.o / part.l) := fun k => by
      induction k with
      | zero => rfl
      | succ k ih => exact ⟨_, ih, 0, AtMost.zero (Std.le_refl _), by grind⟩
    exact h 5
  obtain ⟨h₂, h₃⟩ := (rounded_attention (precise_zero _) run hj same attained hclose (Nat.le_refl _)
    (Nat.le_refl _) (fun _ => by
      refine Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left
        (storingErrors_le (precise_zero _) _ _) (by grind)) ?_
      show 3 * (0 + _ * ((0 : R) / (1 - 0) ^ _)) ≤ 1
      rw [Field.div_eq_mul_inv, Semiring.zero_mul, Semiring.mul_zero]
      grind) (by rw [Semiring.mul_zero]; exact h₁) (by rw [Semiring.mul_zero]; exact h₁)
    hresult 0).mono (tolerance_exact_le (fun key hk => by
      obtain ⟨key', hk', rfl⟩ := List.mem_map.mp hk
      exact exact key' hk') _ _ _)
  grind

end Attention.Proof
