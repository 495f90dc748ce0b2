module

public import Attention.Model.Interval

public section

/-! # Every operation on intervals contains what it stands for

For every ordered field, and for every natural exponential over it: none has to be at hand. -/

namespace Attention.Model

open Lean.Grind Exponential

universe u

attribute [local instance] Ring.intCast

namespace Interval

variable {R : Type u} [OrderedField R] {p : Nat}

/-- 2^p as a number. -/
@[expose] def unit (R : Type u) [OrderedField R] (p : Nat) : R := ((2 ^ p : Int) : R)

/-- The interval contains the number. -/
@[expose] def Contains : Interval p → R → Prop
  | all, _ => True
  | between lo hi, x => (lo : R) ≤ x * unit R p ∧ x * unit R p ≤ (hi : R)

/-! ## Integers as numbers -/

theorem intCast_le {a b : Int} (h : a ≤ b) : (a : R) ≤ (b : R) := by
  have := OrderedRing.nonneg_intCast_of_nonneg (R := R) (b - a) (by omega)
  rw [Ring.intCast_sub] at this
  grind

theorem unit_pos : 0 < unit R p :=
  OrderedRing.pos_intCast_of_pos _ (Int.pow_pos (by decide))

/-- A quotient rounded down. -/
theorem floor_mul_le (n : Int) {m : Int} (hm : 0 < m) :
    ((n / m : Int) : R) * (m : R) ≤ (n : R) := by
  rw [← Ring.intCast_mul]
  exact intCast_le (Int.ediv_mul_le n (by omega))

/-- A quotient rounded up. -/
theorem le_ceil_mul (n : Int) {m : Int} (hm : 0 < m) :
    (n : R) ≤ ((ceilDiv n m : Int) : R) * (m : R) := by
  have := floor_mul_le (R := R) (-n) hm
  rw [ceilDiv, Ring.intCast_neg]
  rw [Ring.intCast_neg] at this
  grind

theorem le_of_mul_unit_le {a b : R} (h : a * unit R p ≤ b * unit R p) : a ≤ b :=
  (Field.IsOrdered.mul_le_mul_iff_of_pos_right unit_pos).mp h

/-! ## Sums, differences -/

theorem contains_ofNat (n : Nat) [OfNat R n] (h : (OfNat.ofNat n : R) = ((n : Int) : R)) :
    (OfNat.ofNat n : Interval p).Contains (OfNat.ofNat n : R) := by
  show ((_ : Int) : R) ≤ _ ∧ _ ≤ ((_ : Int) : R)
  rw [Ring.intCast_mul, ← h]
  exact ⟨Std.le_refl _, Std.le_refl _⟩

theorem contains_intCast (n : Int) : (IntCast.intCast n : Interval p).Contains (n : R) := by
  show ((_ : Int) : R) ≤ _ ∧ _ ≤ ((_ : Int) : R)
  rw [Ring.intCast_mul]
  exact ⟨Std.le_refl _, Std.le_refl _⟩

theorem contains_add {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I + J).Contains (x + y) := by
  cases I with
  | all => trivial
  | between a b =>
    cases J with
    | all => trivial
    | between c d =>
      obtain ⟨h₁, h₂⟩ := hx
      obtain ⟨h₃, h₄⟩ := hy
      show ((a + c : Int) : R) ≤ _ ∧ _ ≤ ((b + d : Int) : R)
      rw [Ring.intCast_add, Ring.intCast_add, Semiring.right_distrib]
      exact ⟨OrderedAdd.add_le_add h₁ h₃, OrderedAdd.add_le_add h₂ h₄⟩

theorem contains_neg {I : Interval p} {x : R} (hx : I.Contains x) : (-I).Contains (-x) := by
  cases I with
  | all => trivial
  | between a b =>
    obtain ⟨h₁, h₂⟩ := hx
    show ((-b : Int) : R) ≤ _ ∧ _ ≤ ((-a : Int) : R)
    rw [Ring.intCast_neg, Ring.intCast_neg, Ring.neg_mul]
    exact ⟨by grind, by grind⟩

theorem contains_sub {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I - J).Contains (x - y) := by
  rw [Ring.sub_eq_add_neg]
  exact contains_add hx (contains_neg hy)

/-! ## Products -/

/-- A product is at least one of the four products of bounds. -/
theorem corner_le_mul {a b c d X Y : R} (ha : a ≤ X) (hb : X ≤ b) (hc : c ≤ Y) (hd : Y ≤ d) :
    a * c ≤ X * Y ∨ a * d ≤ X * Y ∨ b * c ≤ X * Y ∨ b * d ≤ X * Y := by
  rcases Std.le_total (a := (0 : R)) (b := Y) with hY | hY
  · have h := OrderedRing.mul_le_mul_of_nonneg_right ha hY
    rcases Std.le_total (a := (0 : R)) (b := a) with h₀ | h₀
    · exact .inl (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hc h₀) h)
    · exact .inr (.inl (Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_left hd h₀) h))
  · have h := OrderedRing.mul_le_mul_of_nonpos_right hb hY
    rcases Std.le_total (a := (0 : R)) (b := b) with h₀ | h₀
    · exact .inr (.inr (.inl (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hc h₀) h)))
    · exact .inr (.inr (.inr (Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_left hd h₀) h)))

/-- A product is at most one of the four products of bounds. -/
theorem mul_le_corner {a b c d X Y : R} (ha : a ≤ X) (hb : X ≤ b) (hc : c ≤ Y) (hd : Y ≤ d) :
    X * Y ≤ a * c ∨ X * Y ≤ a * d ∨ X * Y ≤ b * c ∨ X * Y ≤ b * d := by
  have := corner_le_mul (a := -b) (b := -a) (c := c) (d := d) (X := -X) (Y := Y)
    (by grind) (by grind) hc hd
  simp only [Ring.neg_mul] at this
  grind

theorem contains_mul {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I * J).Contains (x * y) := by
  cases I with
  | all => trivial
  | between a b =>
    cases J with
    | all => trivial
    | between c d =>
      obtain ⟨h₁, h₂⟩ := hx
      obtain ⟨h₃, h₄⟩ := hy
      have hU : (0 : Int) < 2 ^ p := Int.pow_pos (by decide)
      have e : x * unit R p * (y * unit R p) = x * y * unit R p * unit R p := by grind
      have lo := corner_le_mul h₁ h₂ h₃ h₄
      have hi := mul_le_corner h₁ h₂ h₃ h₄
      simp only [← Ring.intCast_mul, e] at lo hi
      refine ⟨le_of_mul_unit_le (p := p) (Std.le_trans (floor_mul_le _ hU) ?_),
        le_of_mul_unit_le (p := p) (Std.le_trans ?_ (le_ceil_mul _ hU))⟩
      · rcases lo with h | h | h | h <;> exact Std.le_trans (intCast_le (by omega)) h
      · rcases hi with h | h | h | h <;> exact Std.le_trans h (intCast_le (by omega))

/-! ## Quotients -/

theorem divLower_mul_le {a c d : Int} {X Y : R} (hc : 0 < c) (ha : (a : R) ≤ X)
    (h₁ : (c : R) ≤ Y) (h₂ : Y ≤ (d : R)) :
    ((divLower p a c d : Int) : R) * Y ≤ X * unit R p := by
  have hc' : (0 : R) < c := OrderedRing.pos_intCast_of_pos c hc
  have hd : 0 < d := by
    have : (0 : R) < (d : Int) := Std.lt_of_lt_of_le hc' (Std.le_trans h₁ h₂)
    exact OrderedRing.lt_of_intCast_lt_intCast (R := R) 0 d (by rwa [Ring.intCast_zero])
  have hX : ((a * 2 ^ p : Int) : R) ≤ X * unit R p := by
    rw [Ring.intCast_mul]
    exact OrderedRing.mul_le_mul_of_nonneg_right ha (Std.le_of_lt unit_pos)
  have hU : (0 : Int) < 2 ^ p := Int.pow_pos (by decide)
  unfold divLower
  split
  · next h₀ =>
    have hq : 0 ≤ a * 2 ^ p / d := Int.ediv_nonneg (Int.mul_nonneg h₀ (by omega)) (by omega)
    exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left h₂
      (OrderedRing.nonneg_intCast_of_nonneg _ hq)) (Std.le_trans (floor_mul_le _ hd) hX)
  · next h₀ =>
    have hq : a * 2 ^ p / c ≤ 0 := Int.ediv_nonpos_of_nonpos_of_neg
      (Int.mul_nonpos_of_nonpos_of_nonneg (by omega) (Int.le_of_lt hU)) hc
    exact Std.le_trans (OrderedRing.mul_le_mul_of_nonpos_left h₁
      (OrderedRing.nonpos_intCast_of_nonpos _ hq)) (Std.le_trans (floor_mul_le _ hc) hX)

theorem contains_div {I J : Interval p} {x y : R} (hx : I.Contains x) (hy : J.Contains y) :
    (I / J).Contains (x / y) := by
  cases I with
  | all => trivial
  | between a b =>
    cases J with
    | all => trivial
    | between c d =>
      show Contains (if 0 < c then _ else _) _
      split
      · next hc =>
        obtain ⟨h₁, h₂⟩ := hx
        obtain ⟨h₃, h₄⟩ := hy
        have hY : 0 < y * unit R p :=
          Std.lt_of_lt_of_le (OrderedRing.pos_intCast_of_pos (R := R) c hc) h₃
        have hy0 : y ≠ 0 := fun h => by
          rw [h, Semiring.zero_mul] at hY
          grind
        have e : x / y * unit R p * (y * unit R p) = x * unit R p * unit R p := by grind
        have lo := divLower_mul_le (p := p) hc h₁ h₃ h₄
        have hi := divLower_mul_le (p := p) (a := -b) (X := -(x * unit R p)) hc
          (by rw [Ring.intCast_neg]; grind) h₃ h₄
        rw [← e] at lo
        rw [Ring.neg_mul, ← e] at hi
        refine ⟨(Field.IsOrdered.mul_le_mul_iff_of_pos_right hY).mp lo,
          (Field.IsOrdered.mul_le_mul_iff_of_pos_right hY).mp ?_⟩
        rw [Ring.intCast_neg, Ring.neg_mul]
        grind
      · trivial

end Interval

end Attention.Model
