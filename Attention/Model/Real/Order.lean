module

public import Attention.Model.Real.Ring

public section

/-! # The order of the real numbers is linear

x ≤ y if the sequence of x is below that of y but for as little as one likes; x < y if it is below
by some distance that is the same from some index on. -/

namespace Attention.Model.Real

open Lean.Grind

/-- x ≤ y. -/
@[expose] def le : Real → Real → Prop :=
  Quotient.lift₂ (fun f g => Below f.seq g.seq) fun _ _ _ _ h h' => propext
    ⟨fun hb => (h.symm.below.trans hb).trans h'.below,
      fun hb => (h.below.trans hb).trans h'.symm.below⟩

instance : LE Real := ⟨le⟩
instance : LT Real := ⟨fun x y => ¬ y ≤ x⟩

section
variable {f g : Nat → Rat} {hf : IsCauchy f} {hg : IsCauchy g}

/-- x ≤ y, by their sequences. -/
theorem mk_le : mk f hf ≤ mk g hg ↔ Below f g := (Iff.rfl)

/-- x < y if and only if the sequence of x is below that of y by some distance. -/
theorem mk_lt : mk f hf < mk g hg ↔ ∃ ε, 0 < ε ∧ Eventually fun n => f n + ε ≤ g n :=
  ⟨Below.exists_of_not hf hg, Below.not_of_exists⟩

/-- 0 < x if and only if the sequence of x is at least some positive number, from some index on. -/
theorem mk_pos : 0 < mk f hf ↔ ∃ ε, 0 < ε ∧ Eventually fun n => ε ≤ f n := by
  rw [zero_eq, ofRat, mk_lt]
  exact ⟨fun ⟨ε, hε, h⟩ => ⟨ε, hε, h.mono fun n hn => by grind⟩,
    fun ⟨ε, hε, h⟩ => ⟨ε, hε, h.mono fun n hn => by grind⟩⟩

end

/-- The order of the real numbers is linear. -/
instance : Std.IsLinearOrder Real where
  le_refl x := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    exact mk_le.mpr (.of_le fun n => Std.le_refl _)
  le_trans x y z := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    obtain ⟨g, hg, rfl⟩ := exists_mk y
    obtain ⟨h, hh, rfl⟩ := exists_mk z
    exact fun h₁ h₂ => mk_le.mpr ((mk_le.mp h₁).trans (mk_le.mp h₂))
  le_antisymm x y := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    obtain ⟨g, hg, rfl⟩ := exists_mk y
    exact fun h₁ h₂ => mk_eq.mpr ((mk_le.mp h₁).close (mk_le.mp h₂))
  le_total x y := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    obtain ⟨g, hg, rfl⟩ := exists_mk y
    refine Classical.or_iff_not_imp_right.mpr fun h => mk_le.mpr fun ε hε => ?_
    obtain ⟨δ, hδ, h⟩ := mk_lt.mp h
    exact h.mono fun n hn => by grind

instance : Std.LawfulOrderLT Real where
  lt_iff x y := ⟨fun h => ⟨(Std.le_total (a := x) (b := y)).resolve_right h, h⟩, And.right⟩

/-- A product of positive numbers is positive. -/
private theorem mul_pos {x y : Real} : 0 < x → 0 < y → 0 < x * y := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  obtain ⟨g, hg, rfl⟩ := exists_mk y
  rw [mk_mul, mk_pos, mk_pos, mk_pos]
  rintro ⟨δ, hδ, h⟩ ⟨ε, hε, h'⟩
  refine ⟨δ * ε, OrderedRing.mul_pos hδ hε, (h.and h').mono fun n ⟨h₁, h₂⟩ => ?_⟩
  exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left h₂ (Std.le_of_lt hδ))
    (OrderedRing.mul_le_mul_of_nonneg_right h₁ (by grind))

instance : OrderedAdd Real where
  add_le_left_iff {x y} z := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    obtain ⟨g, hg, rfl⟩ := exists_mk y
    obtain ⟨h, hh, rfl⟩ := exists_mk z
    rw [mk_add, mk_add, mk_le, mk_le]
    refine ⟨Below.add_right, fun hb ε hε => (hb ε hε).mono fun n hn => ?_⟩
    grind

/-- The order agrees with sums and products. -/
instance : OrderedRing Real where
  zero_lt_one := by
    rw [one_eq, ofRat, mk_pos]
    exact ⟨1, by grind, .of_forall fun n => Std.le_refl _⟩
  mul_lt_mul_of_pos_left {a b c} h hc := by
    have h := mul_pos hc (OrderedAdd.sub_pos_iff.mpr h)
    have e : c * (b - a) = c * b - c * a := by grind
    exact OrderedAdd.sub_pos_iff.mp (e ▸ h)
  mul_lt_mul_of_pos_right {a b c} h hc := by
    have h := mul_pos hc (OrderedAdd.sub_pos_iff.mpr h)
    have e : c * (b - a) = b * c - a * c := by grind
    exact OrderedAdd.sub_pos_iff.mp (e ▸ h)

/-- Rationals are ordered as reals are. -/
theorem ofRat_le {p q : Rat} : ofRat p ≤ ofRat q ↔ p ≤ q := by
  rw [ofRat, ofRat, mk_le]
  refine ⟨fun h => ?_, fun h => .of_le fun _ => h⟩
  refine Classical.byContradiction fun hn => ?_
  obtain ⟨N, hN⟩ := h ((p - q) / 2) (by grind)
  have := hN N (Nat.le_refl N)
  grind

/-- Rationals are ordered as reals are. -/
theorem ofRat_lt {p q : Rat} : ofRat p < ofRat q ↔ p < q := by
  have := ofRat_le (p := q) (q := p)
  grind

/-- Every real number is at most a natural number. -/
theorem exists_natCast_le (x : Real) : ∃ N : Nat, x ≤ ofRat N := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  obtain ⟨B, hB, h⟩ := hf.bounded
  obtain ⟨N, hN⟩ := exists_le_natCast B
  refine ⟨N, mk_le.mpr fun ε hε => h.mono fun n hn => ?_⟩
  have := hn.2
  grind

end Attention.Model.Real
