module

public import Attention.Model.Real.Field
public import Attention.Model.Real.Squarings

public section

/-! # A set of real numbers with an upper bound has a least one

It is found by bisection: a rational number that is no upper bound and one that is one approach each
other, and the sequence of those that are is the least. -/

namespace Attention.Model.Real

open Lean.Grind

/-- Every number of the set is at most `u`. -/
@[expose] def IsUpper (S : Real → Prop) (u : Real) : Prop := ∀ x, S x → x ≤ u

/-- `s` is the least of the upper bounds. -/
@[expose] def IsSupremum (S : Real → Prop) (s : Real) : Prop :=
  IsUpper S s ∧ ∀ u, IsUpper S u → s ≤ u

/-- Every positive number is at least a positive rational one. -/
theorem exists_ofRat_le {x : Real} : 0 < x → ∃ ε, 0 < ε ∧ ofRat ε ≤ x := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  rw [mk_pos]
  rintro ⟨ε, hε, h⟩
  exact ⟨ε, hε, mk_le.mpr fun δ hδ => h.mono fun n hn => by grind⟩

/-- A number that is at most `y` but for as little as one likes is at most `y`. -/
theorem le_of_le_add {x y : Real} (h : ∀ ε, 0 < ε → x ≤ y + ofRat ε) : x ≤ y := by
  refine Classical.byContradiction fun hn => ?_
  obtain ⟨ε, hε, hle⟩ := exists_ofRat_le (x := x - y) (by grind)
  have h₁ := h (ε / 2) (by grind)
  have h₂ := ofRat_lt.mpr (by grind : ε / 2 < ε)
  grind

section Bisection

variable (S : Real → Prop) (lo hi : Rat)

open Classical in
/-- The interval after n halvings: the half in which the upper bounds begin. -/
private noncomputable def bisect : Nat → Rat × Rat
  | 0 => (lo, hi)
  | n + 1 =>
    let (a, b) := bisect n
    if IsUpper S (ofRat ((a + b) / 2)) then (a, (a + b) / 2) else ((a + b) / 2, b)

variable {S lo hi}

private theorem bisect_spec (hlo : ¬ IsUpper S (ofRat lo)) (hhi : IsUpper S (ofRat hi)) (n : Nat) :
    ¬ IsUpper S (ofRat (bisect S lo hi n).1) ∧ IsUpper S (ofRat (bisect S lo hi n).2) := by
  induction n with
  | zero => exact ⟨hlo, hhi⟩
  | succ n ih =>
    simp only [bisect]
    split
    · next h => exact ⟨ih.1, h⟩
    · next h => exact ⟨h, ih.2⟩

private theorem bisect_width (n : Nat) :
    (bisect S lo hi n).2 - (bisect S lo hi n).1 = (hi - lo) / twoPow n := by
  induction n with
  | zero =>
    simp only [bisect, twoPow_zero]
    grind
  | succ n ih =>
    have := twoPow_pos n
    simp only [bisect, twoPow_succ]
    split <;> grind

private theorem bisect_mono (h : lo ≤ hi) {m n : Nat} (hmn : m ≤ n) :
    (bisect S lo hi m).1 ≤ (bisect S lo hi n).1 ∧
      (bisect S lo hi n).1 ≤ (bisect S lo hi n).2 ∧
      (bisect S lo hi n).2 ≤ (bisect S lo hi m).2 := by
  have base : ∀ n, (bisect S lo hi n).1 ≤ (bisect S lo hi n).2 := fun n => by
    induction n with
    | zero => exact h
    | succ n ih =>
      simp only [bisect]
      split <;> grind
  refine ⟨?_, base n, ?_⟩
  · induction hmn with
    | refl => exact Std.le_refl _
    | @step n _ ih =>
      have := base n
      simp only [bisect]
      split <;> grind
  · induction hmn with
    | refl => exact Std.le_refl _
    | @step n _ ih =>
      have := base n
      simp only [bisect]
      split <;> grind

end Bisection

/-- **real-complete**: a set of real numbers that is not empty and has an upper bound has a least
upper bound. -/
theorem exists_supremum {S : Real → Prop} (hS : ∃ x, S x) (hb : ∃ u, IsUpper S u) :
    ∃ s, IsSupremum S s := by
  obtain ⟨x, hx⟩ := hS
  obtain ⟨u, hu⟩ := hb
  obtain ⟨N, hN⟩ := exists_natCast_le u
  obtain ⟨M, hM⟩ := exists_natCast_le (-x)
  have hhi : IsUpper S (ofRat N) := fun y hy => Std.le_trans (hu y hy) hN
  have hlo : ¬ IsUpper S (ofRat (-(M : Rat) - 1)) := fun h => by
    have h₁ := h x hx
    have h₂ := ofRat_lt.mpr (by grind : -(M : Rat) - 1 < -M)
    rw [ofRat_neg] at h₂
    grind
  have hle : -(M : Rat) - 1 ≤ N := by grind
  generalize -(M : Rat) - 1 = lo at hlo hle
  generalize (N : Rat) = hi at hhi hle
  have spec := bisect_spec hlo hhi
  have width := bisect_width (S := S) (lo := lo) (hi := hi)
  have mono := fun m n => bisect_mono (S := S) hle (m := m) (n := n)
  generalize bisect S lo hi = b at spec width mono
  have small : ∀ ε, 0 < ε → ∃ n, (b n).2 ≤ (b n).1 + ε := fun ε hε => by
    obtain ⟨n, hn⟩ := eventually_div_twoPow_le (hi - lo) hε
    exact ⟨n, by have := width n; have := hn n (Nat.le_refl n); grind⟩
  have hf : IsCauchy fun n => (b n).2 := fun ε hε => by
    obtain ⟨N, hN⟩ := small ε hε
    refine ⟨N, fun m n hm hn => ?_⟩
    have h₁ := mono N m hm
    have h₂ := mono N n hn
    exact ⟨by grind, by grind⟩
  have above : ∀ n, mk _ hf ≤ ofRat (b n).2 := fun n => mk_le.mpr fun ε hε => ⟨n, fun m hm => by
    have := mono n m hm
    grind⟩
  have below : ∀ n, ofRat (b n).1 ≤ mk _ hf := fun n => mk_le.mpr fun ε hε => ⟨n, fun m hm => by
    have := mono n m hm
    grind⟩
  have near : ∀ ε, 0 < ε → ∃ n, ofRat (b n).2 ≤ ofRat (b n).1 + ofRat ε := fun ε hε => by
    obtain ⟨n, hn⟩ := small ε hε
    exact ⟨n, by rw [← ofRat_add]; exact ofRat_le.mpr hn⟩
  refine ⟨mk _ hf, fun y hy => le_of_le_add fun ε hε => ?_, fun v hv => le_of_le_add fun ε hε => ?_⟩
  · obtain ⟨n, hn⟩ := near ε hε
    have h₁ := (spec n).2 y hy
    have h₂ := below n
    grind
  · obtain ⟨n, hn⟩ := near ε hε
    have h₁ := above n
    have h₂ : ofRat (b n).1 ≤ v := Classical.byContradiction fun h =>
      (spec n).1 fun y hy => Std.le_trans (hv y hy) (by grind)
    grind

end Attention.Model.Real
