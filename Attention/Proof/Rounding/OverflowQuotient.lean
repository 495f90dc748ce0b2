module

public import Attention.Proof.Rounding.OverflowSizes
import Attention.Proof.Rounding.UnderflowNumbers

public section

/-! # Quotients of numerators and denominators are no larger than the values

But for roundings: part by part, whatever the scores are. -/

namespace Attention.Proof.Overflow

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

variable {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
variable (hu : p.unit ≤ p.accumulation)
include hp ha hu

private theorem run_quotient_join {value : R} {parts : List (Part R)} {a k r : Nat} {l o : R}
    (hV : 0 ≤ value) (hbound : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (s : ∀ part ∈ parts, 0 ≤ part.l ∧ AtMost (2 * ratio p ^ (part.additions + part.rescalings + 1)
      * value * part.l) part.o)
    (hl : RoundedSum p.unit k (parts.map (·.l)) l)
    (ho : AtMost ((1 + p.accumulation) ^ k * sumOver (fun part => absolute part.o) parts) o) :
    0 ≤ l ∧ AtMost (2 * ratio p ^ (a + k + r + 1) * value * l) o := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have nonneg : ∀ x ∈ parts.map (·.l), 0 ≤ x := fun x hx => by
    obtain ⟨part, h, rfl⟩ := List.mem_map.mp hx
    exact (s part h).1
  have h₁ := le_roundedSum z₁ (by grind) hl nonneg
  have h₂ : 0 ≤ sumOver id (parts.map (·.l)) := sumOver_nonneg nonneg
  have h₃ : sumOver (fun part => absolute part.o) parts
      ≤ 2 * ratio p ^ (a + r + 1) * value * sumOver id (parts.map (·.l)) := by
    rw [sumOver_map, ← sumOver_mul_left]
    refine sumOver_le_sumOver fun part h => Std.le_trans (absolute_le (s part h).2) ?_
    have i₁ := ratio_mono hp ha (k := part.additions + part.rescalings + 1) (n := a + r + 1)
      (by have := hbound part h; omega)
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_left i₁ (c := 2) (by grind)
    exact OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedRing.mul_le_mul_of_nonneg_right i₂ hV) (s part h).1
  have h₄ := pow_le_left (x := 1 - p.accumulation) (y := 1 - p.unit) (by grind) (by grind) k
  have h₅ := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right h₄.2 h₂) h₁
  have h₆ := Std.le_of_lt (ratio_pos hp ha k)
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_left h₅ h₆
  have e := ratio_pow ha k
  have h₈ := OrderedRing.mul_nonneg
    (OrderedRing.mul_nonneg (a := 2) (by grind) (Std.le_of_lt (ratio_pos hp ha (a + r + 1)))) hV
  have h₉ := OrderedRing.mul_le_mul_of_nonneg_left h₇ h₈
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left h₃
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.accumulation) (by grind) k))
  refine ⟨Std.le_trans (OrderedRing.mul_nonneg h₄.1 h₂) h₅, ho.mono (Std.le_trans i₁ ?_)⟩
  rw [show a + k + r + 1 = (a + r + 1) + k by omega,
    Semiring.pow_add (ratio p) (a + r + 1) k, ← e]
  exact quotient_sum h₉

/-- **quotient-size**: a denominator is not negative, and the numerator is at most twice the largest
value times the denominator, but for roundings. -/
theorem run_quotient [Exponential R R] {value m : R} (hV : 0 ≤ value) {part : Part R}
    (run : Run p m part)
    (hv : ∀ key ∈ part.keys, key.score ≠ none → AtMost value key.value) :
    0 ≤ part.l ∧ AtMost (2 * ratio p ^ (part.additions + part.rescalings + 1) * value * part.l)
      part.o := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  induction run with
  | masked =>
    refine ⟨Std.le_refl _, ?_⟩
    rw [Semiring.mul_zero]
    exact .zero (Std.le_refl _)
  | @key m x w w' o key hk hm hx hw hw' ho =>
    have pos := (rounded_exp z₆ hm hx hw).1
    have c : 0 ≤ w' ∧ w' ≤ 2 * w := by
      obtain ⟨-, h₁, h₂⟩ := hw'
      rw [absolute_of_nonneg (Std.le_of_lt pos)] at h₁ h₂
      exact ⟨by grind, by grind⟩
    have hadd : 0 ≤ added p.denominator w w' ∧ w' ≤ 2 * added p.denominator w w' := by
      cases p.denominator
      · exact ⟨Std.le_of_lt pos, c.2⟩
      · exact ⟨c.1, by simp only [added]; grind⟩
    have hv := hv key (by simp) hk
    refine ⟨hadd.1, (rounded_atMost ho
      ((show AtMost w' w' from ⟨by grind, Std.le_refl _⟩).mul hv)).mono ?_⟩
    have h₁ := one_add_le_ratio hp ha
    have h₂ := OrderedRing.mul_nonneg hv.nonneg hadd.1
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₁ h₂
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_right hadd.2 hv.nonneg
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := 1 + p.accumulation) (by grind)
    simp only [Nat.zero_add, Semiring.pow_one]
    generalize ratio p = g at *
    generalize added p.denominator w w' = A at *
    clear hx hw hw' ho pos c hadd
    grind
  | @join m l o parts a k r _ hbound hl ho ih =>
    have s := fun part h => ih part h fun key hk => hv key (List.mem_flatMap.mpr ⟨part, h, hk⟩)
    refine run_quotient_join hp ha hu hV hbound s hl (?_ : AtMost _ o)
    exact roundedSum_size z₂ ho fun part _ => atMost_absolute part.o
  | @rescale m m' x α l o part _ hm hx hα hl ho ih =>
    obtain ⟨i₁, i₂⟩ := ih hv
    have pos := (rounded_exp z₆ hm hx hα).1
    have h₀ := OrderedRing.mul_nonneg (Std.le_of_lt pos) i₁
    have low : (1 - p.accumulation) * (α * part.l) ≤ l := by
      obtain ⟨θ, ⟨hθ, -⟩, rfl⟩ := hl
      have := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 - p.accumulation) (b := 1 + θ)
        (by grind) h₀
      grind
    refine ⟨Std.le_trans (OrderedRing.mul_nonneg (by grind) h₀) low, ?_⟩
    show AtMost (2 * ratio p ^ (part.additions + (part.rescalings + 1) + 1) * value * l) o
    have h₁ := rounded_atMost ho ((show AtMost α α from ⟨by grind, Std.le_refl _⟩).mul i₂)
    refine h₁.mono ?_
    rw [show part.additions + (part.rescalings + 1) + 1
      = part.additions + part.rescalings + 1 + 1 by omega,
      Semiring.pow_succ (ratio p) (part.additions + part.rescalings + 1)]
    have h₂ := ratio_pow ha 1
    simp only [Semiring.pow_one] at h₂
    have h₃ := OrderedRing.mul_nonneg
      (OrderedRing.mul_nonneg (a := 2) (by grind) (Std.le_of_lt (ratio_pos hp ha
        (part.additions + part.rescalings + 1)))) hV
    have h₄ := Std.le_of_lt (ratio_pos hp ha 1)
    rw [Semiring.pow_one] at h₄
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_left low h₄
    have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₅ h₃
    exact quotient_step h₂ h₆

end Attention.Proof.Overflow
