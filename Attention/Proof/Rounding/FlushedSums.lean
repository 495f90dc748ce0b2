module

public import Attention.Proof.Rounding.BelowNormal
public import Attention.Proof.Rounding.UnderflowNumbers

public section

/-! # Sums of numbers that are off, where sums are flushed to 0

An addition loses a little below the normal numbers, unless one of its numbers is a sum of nothing
but 0: so a sum loses as much once for each of its numbers that is not 0, but for one.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}

/-! ## Counts -/

/-- Two errors for each of `n` numbers. -/
theorem numeral_twice_le {n m : Nat} (h : n ≤ m) :
    (numeral n : R) + numeral n ≤ numeral (2 * m) := by
  have e : (numeral (n + n) : R) = numeral n + numeral n := by
    rw [numeral_eq, numeral_eq, Semiring.natCast_add]
  rw [← e]
  exact numeral_le_numeral (by omega)

/-- The same of an error that is not negative. -/
theorem twice_lost_le {n m : Nat} (h : n ≤ m) {ν : R} (hν : 0 ≤ ν) :
    numeral n * ν + numeral n * ν ≤ numeral (2 * m) * ν := by
  have := OrderedRing.mul_le_mul_of_nonneg_right (numeral_twice_le (R := R) h) hν
  rwa [Semiring.right_distrib] at this

/-- There is one addition less than there are numbers. -/
theorem Flushed.le_length {ν c : R} {free : α → Prop} {xs : List α} (hν : 0 ≤ ν)
    (h : Flushed ν free xs c) : c ≤ numeral (xs.length - 1) * ν := by
  by_cases some : ∃ x ∈ xs, ¬free x
  · have h₁ := h.counted some (fun _ => ν) (fun _ _ => hν) fun _ _ _ => Std.le_refl _
    obtain ⟨x, hx, -⟩ := some
    have hn : xs.length - 1 + 1 = xs.length := by
      have := List.length_pos_of_mem hx
      omega
    rw [sumOver_const, ← numeral_eq, ← hn, numeral_succ] at h₁
    generalize (numeral (xs.length - 1) : R) = m at *
    grind
  · rw [h.nothing fun x hx => Classical.byContradiction fun hn => some ⟨x, hx, hn⟩]
    exact OrderedRing.mul_nonneg (numeral_nonneg _) hν

/-! ## Sums -/

/-- A sum of numbers that are off is off by what its additions lose, too. -/
theorem Majorised.flushedSum {u ν z : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {k : Nat} {a b f g t : α → R}
    {xs : List α} (hz : FlushedSum u ν f k xs z)
    (h : ∀ x ∈ xs, Majorised (a x) (b x) (f x) (g x)) (ht : ∀ x ∈ xs, 0 ≤ t x)
    (ht' : ∀ x ∈ xs, f x ≠ 0 → ν ≤ t x) :
    Majorised ((1 + u) ^ k * sumOver (fun x => a x + t x) xs) (sumOver b xs) z
      (sumOver g xs) := by
  obtain ⟨z₀, c, h₁, h₂, h₃⟩ := sumOf_near hu hν hz fun _ _ h => h
  refine ((Majorised.roundedSum hu h₁ h).near h₃).mono ?_
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left (h₂.le hν ht ht')
    (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hu) k))
  rw [sumOver_add, Semiring.left_distrib]
  exact OrderedAdd.add_le_right _ h₄

/-- So it is where each number, 0 or not, counts once. -/
theorem Majorised.flushedSum_each {u ν z : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {k : Nat}
    {a b f g : α → R} {xs : List α} (hz : FlushedSum u ν f k xs z)
    (h : ∀ x ∈ xs, Majorised (a x) (b x) (f x) (g x)) :
    Majorised ((1 + u) ^ k * sumOver (fun x => a x + ν) xs) (sumOver b xs) z (sumOver g xs) :=
  Majorised.flushedSum hu hν hz h (fun _ _ => hν) fun _ _ _ => Std.le_refl _

/-- Of nothing but 0 the sum is 0. -/
theorem flushedSum_nothing {u ν : R} {f : α → R} {k : Nat} {xs : List α} {z : R}
    (h : FlushedSum u ν f k xs z) : (∀ x ∈ xs, f x = 0) → z = 0 := by
  have rounded : ∀ {x y : R}, x = 0 → Rounded u x y → y = 0 := fun hx h => by
    obtain ⟨θ, -, rfl⟩ := h
    rw [hx, Semiring.zero_mul]
  induction h with
  | nil => exact fun _ => rfl
  | one => exact fun h₀ => h₀ _ (List.mem_singleton.mpr rfl)
  | free _ _ ih => exact fun h₀ => ih fun x hx => h₀ x (List.mem_cons_of_mem _ hx)
  | add _ _ hx hy ihx ihy =>
    intro h₀
    rw [rounded (ihx fun x h => h₀ x (List.mem_append_left _ h)) hx,
      rounded (ihy fun x h => h₀ x (List.mem_append_right _ h)) hy, Semiring.add_zero]
  | tiny _ _ some =>
    intro h₀
    obtain ⟨x, hx, hn⟩ := some
    exact absurd (h₀ x (List.mem_append_left _ hx)) hn
  | permute _ hp ih => exact fun h₀ => ih fun x hx => h₀ x (hp.mem_iff.mp hx)

end Attention.Proof
