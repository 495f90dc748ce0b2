module

public import Attention.Model.UnderflowOverflow
public import Attention.Proof.Rounding.OverflowSums
public import Attention.Proof.Rounding.UnderflowNumbers
import Attention.Proof.Rounding.Sum

public section

/-! # Numbers and sums that underflow and stay in the range

Each operation may grow a number by `ν` besides its relative error; each addition of a sum may, of
two numbers that are not free. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {u ν largest : R}

/-- How large a stored number is. -/
theorem stored_size {b x y : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (h : Stored u ν x y) (hx : AtMost b x) :
    AtMost ((1 + u) * b + ν) y := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left (absolute_le hx) hu
  have h₂ := OrderedRing.mul_nonneg hu (absolute_nonneg x)
  have h₃ := hx.add (h.1.mono (b := u * b + ν) (by
    rw [OrderedField.max_def]
    split <;> grind))
  rw [show x + (y - x) = y by grind] at h₃
  exact h₃.mono (by grind)

/-- A number within the range is stored. -/
theorem limited_store {b x : R} {y : Option R} (hu : 0 ≤ u) (hν : 0 ≤ ν)
    (h : Limited largest (Stored u ν) x y) (hx : AtMost b x) (hb : b ≤ largest) :
    ∃ z, y = some z ∧ Stored u ν x z ∧ AtMost ((1 + u) * b + ν) z := by
  obtain ⟨z, e, hz⟩ := h (hx.mono hb)
  exact ⟨z, e, hz, stored_size hu hν hz hx⟩

private theorem grow_step {u ν G b n : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (hG : 1 ≤ G)
    (hb : 0 ≤ b + n * ν) : G * (b + n * ν) ≤ G * (1 + u) * (b + (n + 1) * ν) ∧
      (1 + u) * (G * (b + n * ν)) + ν ≤ G * (1 + u) * (b + (n + 1) * ν) := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hG hν
  have h₂ := OrderedRing.mul_nonneg (a := G) (by grind) hb
  have h₃ := OrderedRing.mul_nonneg hu h₂
  have h₄ := OrderedRing.mul_nonneg hu (OrderedRing.mul_nonneg (a := G) (by grind) hν)
  exact ⟨by grind, by grind⟩

/-- So is a number that is stored often. -/
theorem limitedTinyTimes {b x : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {k : Nat} {y : Option R}
    (h : LimitedTinyTimes largest u ν k x y) (hx : AtMost b x)
    (hb : (1 + u) ^ k * (b + numeral k * ν) ≤ largest) :
    ∃ z, y = some z ∧ TinyTimes u ν k x z ∧ AtMost ((1 + u) ^ k * (b + numeral k * ν)) z := by
  have h₀ := hx.nonneg
  induction k generalizing y with
  | zero =>
    refine ⟨x, h, rfl, ?_⟩
    rw [Semiring.pow_zero, Semiring.one_mul, show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul,
      Semiring.add_zero]
    exact hx
  | succ k ih =>
    obtain ⟨w, hw, hy⟩ := h
    have n := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) hν
    obtain ⟨i₁, i₂⟩ := grow_step (G := (1 + u) ^ k) (b := b) (n := numeral k) hu hν
      (OrderedField.one_le_pow (by grind) k) (by grind)
    rw [← Semiring.pow_succ, ← numeral_succ] at i₁ i₂
    have hb' := Std.le_trans i₁ hb
    obtain ⟨w', rfl, h₁, h₂⟩ := ih hw hb'
    obtain ⟨z, e, h₃, h₄⟩ := limited_store hu hν (hy w' rfl) h₂ hb'
    exact ⟨z, e, ⟨w', h₁, h₃⟩, h₄.mono i₂⟩

section
variable {α : Type v} {free : α → Prop} {f t : α → R} {k : Nat} {parts : List α}

/-- How large a sum is of which numbers below the normal ones are lost: `t` has room for `ν` of each
thing that is not free. -/
theorem sumOf_size (hu : 0 ≤ u) (hν : 0 ≤ ν) {z : R} (h : SumOf u ν free f k parts z)
    (hm : ∀ part ∈ parts, free part → f part = 0) (ht₀ : ∀ part ∈ parts, 0 ≤ t part)
    (ht : ∀ part ∈ parts, ¬free part → AtMost (t part - ν) (f part)) :
    ((∃ part ∈ parts, ¬free part) → AtMost ((1 + u) ^ k * (sumOver t parts - ν)) z) ∧
      ((∀ part ∈ parts, free part) → z = 0) := by
  obtain ⟨z₀, c, h₁, h₂, h₃⟩ := sumOf_near hu hν h hm
  have h₄ := (roundedSum_size hu h₁ fun part _ => atMost_absolute (f part)).add h₃
  rw [show z₀ + (z - z₀) = z by grind, ← Semiring.left_distrib] at h₄
  have zero : absolute (0 : R) = 0 := absolute_of_nonneg (Std.le_refl _)
  refine ⟨fun some => h₄.mono ?_, fun all => ?_⟩
  · have h₅ := h₂.counted some (fun part => t part - absolute (f part)) (fun part hp => by
      by_cases hf : free part
      · have e : absolute (f part) = 0 := by rw [hm part hp hf, zero]
        have := ht₀ part hp
        simp only [e]
        grind
      · have := absolute_le (ht part hp hf)
        simp only
        grind) fun part hp hf => by
      have := absolute_le (ht part hp hf)
      simp only
      grind
    rw [sumOver_sub] at h₅
    refine OrderedRing.mul_le_mul_of_nonneg_left (by grind) ?_
    have := OrderedField.one_le_pow (x := 1 + u) (by grind) k
    have := OrderedRing.zero_lt_one (R := R)
    grind
  · have e : sumOver (fun part => absolute (f part)) parts = 0 :=
      sumOver_eq_zero fun part hp => by rw [hm part hp (all part hp), zero]
    rw [e, h₂.nothing all, Semiring.add_zero, Semiring.mul_zero] at h₄
    obtain ⟨i₁, i₂⟩ := h₄
    grind

/-- The same of all sums. -/
theorem sumOf_atMost (hu : 0 ≤ u) (hν : 0 ≤ ν) {z : R} (h : SumOf u ν free f k parts z)
    (hm : ∀ part ∈ parts, free part → f part = 0) (ht₀ : ∀ part ∈ parts, 0 ≤ t part)
    (ht : ∀ part ∈ parts, ¬free part → AtMost (t part - ν) (f part)) :
    AtMost ((1 + u) ^ k * sumOver t parts) z := by
  have one := OrderedRing.zero_lt_one (R := R)
  have pos := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  obtain ⟨h₁, h₂⟩ := sumOf_size hu hν h hm ht₀ ht
  by_cases all : ∀ part ∈ parts, free part
  · rw [h₂ all]
    exact .zero (OrderedRing.mul_nonneg (by grind) (sumOver_nonneg ht₀))
  · refine (h₁ ?_).mono (OrderedRing.mul_le_mul_of_nonneg_left (by grind) (by grind))
    refine Classical.byContradiction fun hn => all fun part hp => ?_
    exact Classical.byContradiction fun hf => hn ⟨part, hp, hf⟩

/-- A sum, in whatever order, whose sizes and losses stay within the range as they grow, is one that
a function without a largest number may compute. -/
theorem limitedSumOf (hu : 0 ≤ u) (hν : 0 ≤ ν) {z : Option R}
    (h : LimitedSumOf largest u ν free f k parts z)
    (hm : ∀ part ∈ parts, free part → f part = 0) (ht₀ : ∀ part ∈ parts, 0 ≤ t part)
    (ht : ∀ part ∈ parts, ¬free part → AtMost (t part - ν) (f part))
    (fits : (1 + u) ^ k * sumOver t parts ≤ largest) :
    ∃ y, z = some y ∧ SumOf u ν free f k parts y := by
  have one := OrderedRing.zero_lt_one (R := R)
  -- The two numbers of an addition.
  have both : ∀ {k : Nat} {xs ys : List α} {x y : Option R},
      ((∀ part ∈ xs, free part → f part = 0) → (∀ part ∈ xs, 0 ≤ t part) →
        (∀ part ∈ xs, ¬free part → AtMost (t part - ν) (f part)) →
        (1 + u) ^ k * sumOver t xs ≤ largest → ∃ a, x = some a ∧ SumOf u ν free f k xs a) →
      ((∀ part ∈ ys, free part → f part = 0) → (∀ part ∈ ys, 0 ≤ t part) →
        (∀ part ∈ ys, ¬free part → AtMost (t part - ν) (f part)) →
        (1 + u) ^ k * sumOver t ys ≤ largest → ∃ b, y = some b ∧ SumOf u ν free f k ys b) →
      (∀ part ∈ xs ++ ys, free part → f part = 0) → (∀ part ∈ xs ++ ys, 0 ≤ t part) →
      (∀ part ∈ xs ++ ys, ¬free part → AtMost (t part - ν) (f part)) →
      (1 + u) ^ (k + 1) * sumOver t (xs ++ ys) ≤ largest →
      ∃ a b, x = some a ∧ y = some b ∧ SumOf u ν free f k xs a ∧ SumOf u ν free f k ys b ∧
        absolute a + absolute b ≤ largest := by
    intro k xs ys x y ihx ihy hm ht₀ ht fits
    have hmx : ∀ part ∈ xs, free part → f part = 0 := fun part h => hm part (by simp [h])
    have hmy : ∀ part ∈ ys, free part → f part = 0 := fun part h => hm part (by simp [h])
    have tx : ∀ part ∈ xs, 0 ≤ t part := fun part h => ht₀ part (by simp [h])
    have ty : ∀ part ∈ ys, 0 ≤ t part := fun part h => ht₀ part (by simp [h])
    have bx : ∀ part ∈ xs, ¬free part → AtMost (t part - ν) (f part) :=
      fun part h => ht part (by simp [h])
    have by' : ∀ part ∈ ys, ¬free part → AtMost (t part - ν) (f part) :=
      fun part h => ht part (by simp [h])
    have pos := OrderedField.one_le_pow (x := 1 + u) (by grind) k
    have h₁ := OrderedRing.mul_nonneg (a := (1 + u) ^ k) (by grind) (sumOver_nonneg tx)
    have h₂ := OrderedRing.mul_nonneg (a := (1 + u) ^ k) (by grind) (sumOver_nonneg ty)
    have h₃ := OrderedRing.mul_nonneg hu h₁
    have h₄ := OrderedRing.mul_nonneg hu h₂
    rw [sumOver_append, Semiring.pow_succ] at fits
    obtain ⟨a, rfl, ha⟩ := ihx hmx tx bx (by clear ihx ihy hm ht ht₀; grind)
    obtain ⟨b, rfl, hb⟩ := ihy hmy ty by' (by clear ihx ihy hm ht ht₀; grind)
    have h₅ := absolute_le (sumOf_atMost hu hν ha hmx tx bx)
    have h₆ := absolute_le (sumOf_atMost hu hν hb hmy ty by')
    exact ⟨a, b, rfl, rfl, ha, hb, by clear ihx ihy hm ht ht₀; grind⟩
  induction h with
  | nil => exact ⟨0, rfl, .nil⟩
  | one => exact ⟨_, rfl, .one⟩
  | @free k a as z ha _ ih =>
    have pos := OrderedField.one_le_pow (x := 1 + u) (by grind) k
    have h₁ := OrderedRing.mul_nonneg (a := (1 + u) ^ k) (by grind) (ht₀ a (by simp))
    rw [sumOver_cons, Semiring.left_distrib] at fits
    obtain ⟨y, e, h⟩ := ih (fun part h => hm part (by simp [h]))
      (fun part h => ht₀ part (by simp [h])) (fun part h => ht part (by simp [h])) (by grind)
    exact ⟨y, e, .free ha h⟩
  | add _ _ hz ihx ihy =>
    obtain ⟨a, b, rfl, rfl, ha, hb, sizes⟩ := both ihx ihy hm ht₀ ht fits
    obtain ⟨a', b', ha', hb', rfl⟩ := hz a rfl b rfl sizes
    exact ⟨_, rfl, .add ha hb ha' hb'⟩
  | tiny _ _ sx sy hz ihx ihy =>
    obtain ⟨a, b, rfl, rfl, ha, hb, sizes⟩ := both ihx ihy hm ht₀ ht fits
    obtain ⟨a', b', c, ha', hb', hc, rfl⟩ := hz a rfl b rfl sizes
    exact ⟨_, rfl, .tiny ha hb sx sy ha' hb' hc⟩
  | permute _ perm ih =>
    rw [← sumOver_perm _ perm] at fits
    obtain ⟨y, e, h⟩ := ih (fun part h => hm part (perm.mem_iff.mp h))
      (fun part h => ht₀ part (perm.mem_iff.mp h)) (fun part h => ht part (perm.mem_iff.mp h)) fits
    exact ⟨y, e, .permute h perm⟩

end

end Attention.Proof
