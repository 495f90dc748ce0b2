module

public import Attention.Model.IntervalSound

public section

/-! # The interval of exponentials contains what it stands for

For every natural exponential: 1 + x ≤ exp x is all that is used of it. -/

namespace Attention.Model.Interval

open Lean.Grind Exponential

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {p : Nat}

private theorem square_le {y : R} {a : Int} (h₀ : 0 ≤ a) (h : (a : R) ≤ exp y * unit R p) :
    (((a * a) >>> p : Int) : R) ≤ exp (y + y) * unit R p := by
  have ha : (0 : R) ≤ (a : R) := OrderedRing.nonneg_intCast_of_nonneg a h₀
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left h ha
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h (Std.le_trans ha h)
  have h₃ := shift_mul_le (R := R) (a * a) p
  rw [Ring.intCast_mul a a] at h₃
  refine le_of_mul_unit_le (p := p) (Std.le_trans h₃ (Std.le_trans h₁ (Std.le_trans h₂ ?_)))
  rw [exp_add]
  grind

private theorem squarings_le : ∀ (k : Nat) {y : R} {a : Int}, 0 ≤ a → (a : R) ≤ exp y * unit R p →
    ((squarings p k a : Int) : R) ≤ exp (((2 ^ k : Int) : R) * y) * unit R p := by
  intro k
  induction k with
  | zero =>
    intro y a _ h
    have : ((2 ^ 0 : Int) : R) * y = y := by rw [Int.pow_zero, Ring.intCast_one, Semiring.one_mul]
    rwa [this, squarings]
  | succ k ih =>
    intro y a h₀ h
    have h₁ := ih (by
      rw [Int.shiftRight_eq_div_pow]
      exact Int.ediv_nonneg (Int.mul_nonneg h₀ h₀) (Int.natCast_nonneg _)) (square_le h₀ h)
    have : ((2 ^ (k + 1) : Int) : R) * y = ((2 ^ k : Int) : R) * (y + y) := by
      rw [Int.pow_succ, Ring.intCast_mul, Ring.intCast_ofNat]
      grind
    rwa [this, squarings]

/-- (1 + x / 2^k)^(2^k) ≤ exp x, rounded down. -/
theorem expLower_le {k : Nat} {x : R} {n : Int} (h : (n : R) ≤ x * unit R p) :
    ((expLower p k n : Int) : R) ≤ exp x * unit R p := by
  have hK : (0 : Int) < 2 ^ k := Int.pow_pos (by decide)
  have hK' : (0 : R) < ((2 ^ k : Int) : R) := OrderedRing.pos_intCast_of_pos _ hK
  have hU : (0 : R) < unit R p := unit_pos
  have hy : ((2 ^ k : Int) : R) * (x / ((2 ^ k : Int) : R)) = x :=
    OrderedField.mul_div_cancel (ne_of_pos hK') x
  have start : ((max 0 (2 ^ p + n >>> k) : Int) : R)
      ≤ exp (x / ((2 ^ k : Int) : R)) * unit R p := by
    rcases Int.le_total (2 ^ p + n >>> k) 0 with h₀ | h₀
    · rw [Int.max_eq_left h₀, Ring.intCast_zero]
      exact OrderedRing.mul_nonneg (Std.le_of_lt (exp_pos _)) (Std.le_of_lt hU)
    · rw [Int.max_eq_right h₀, Ring.intCast_add]
      have h₁ : ((n >>> k : Int) : R) ≤ x / ((2 ^ k : Int) : R) * unit R p := by
        refine (Field.IsOrdered.mul_le_mul_iff_of_pos_right hK').mp ?_
        rw [CommSemiring.mul_comm (x / _ * _), ← Semiring.mul_assoc, hy]
        exact Std.le_trans (shift_mul_le n k) h
      have h₂ := OrderedRing.mul_le_mul_of_nonneg_right
        (NaturalExp.one_add_le_exp (x / ((2 ^ k : Int) : R))) (Std.le_of_lt hU)
      refine Std.le_trans ?_ h₂
      rw [Semiring.right_distrib, Semiring.one_mul]
      exact OrderedAdd.add_le_add (Std.le_refl _) h₁
  have := squarings_le k (by omega) start
  rwa [hy] at this

/-- exp x = 1 / exp (−x), rounded up. -/
theorem le_expUpper {k : Nat} {x : R} {n m : Int} (h : x * unit R p ≤ (n : R))
    (hm : expUpper p k n = some m) : exp x * unit R p ≤ (m : R) := by
  simp only [expUpper] at hm
  split at hm
  · next hc =>
    obtain rfl := Option.some.inj hm
    have h₁ : ((expLower p k (-n) : Int) : R) ≤ exp (-x) * unit R p :=
      expLower_le (by rw [Ring.intCast_neg, Ring.neg_mul]; exact neg_le_neg h)
    have h₂ := le_ceil_mul (R := R) (2 ^ p * 2 ^ p) hc
    have h₃ : (0 : R) ≤ exp x * unit R p :=
      OrderedRing.mul_nonneg (Std.le_of_lt (exp_pos _)) (Std.le_of_lt unit_pos)
    refine (Field.IsOrdered.mul_le_mul_iff_of_pos_right
      (OrderedRing.pos_intCast_of_pos _ hc)).mp ?_
    refine Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left h₁ h₃) (Std.le_trans ?_ h₂)
    have h₄ : (exp x : R) * exp (-x) = 1 := by
      rw [← exp_add, AddCommGroup.add_neg_cancel, exp_zero]
    have h₅ : ((2 ^ p * 2 ^ p : Int) : R) = unit R p * unit R p := by rw [Ring.intCast_mul]; rfl
    have h₆ : exp x * unit R p * (exp (-x) * unit R p)
        = exp x * exp (-x) * (unit R p * unit R p) := by grind
    rw [h₅, h₆, h₄, Semiring.one_mul]
    exact Std.le_refl _
  · cases hm

/-- **exp-enclosed**: the interval of exponentials contains exp x for every x in the interval. -/
theorem contains_exp {I : Interval p} {x : R} (hx : I.Contains x) :
    (Attention.exp I : Interval p).Contains (exp x : R) := by
  cases I with
  | all => trivial
  | between a b =>
    show Contains (match expUpper p (numSquarings p) b with | none => all | some hi => _) _
    cases hm : expUpper p (numSquarings p) b with
    | none => trivial
    | some m => exact ⟨expLower_le hx.1, le_expUpper hx.2 hm⟩

end Attention.Model.Interval
