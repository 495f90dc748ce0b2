module

public import Attention.Proof.Rounding.OutputParts
public import Attention.WrongVariants.RoundedUnderflow
import Attention.Algebra.FinRange

public section

/-! # Wrong variants of what underflows of an output

A bound that counts one loss for the product of a weight with its value, and none for the sums.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-- What a key adds to an output of denominator `l` against the reference point `m`. -/
@[expose] def exactShare [Exp R R] (m l : R) (key : ComputedKey R) : R :=
  match key.score with
  | none => 0
  | some _ => exp (key.computed - m) / l * key.value

/-- What is lost of it: of its weight twice as much as of its product, once each for products, sums
and exponentials of no rescaling. -/
@[expose] def shareLoss (ν l v : R) : R := numeral 6 * (ν / l) * (2 * absolute v + 1)

/-- The claim of `tiny_output_parts` for runs that round nothing, nor rescale, with any loss of a
key. -/
abbrev OutputsLose [Exponential R R] (loss : R → R → R → R := shareLoss) : Prop :=
  ∀ (ν m y : R) (n : Nat) (key : Fin n → ComputedKey R) (part : Part R), 0 ≤ ν →
    TinyRun (tinyOnly 0) ν 0 m part → part.rescalings = 0 → 0 < part.l →
    part.keys = (List.finRange n).map key → TinyTimes 0 ν 5 (part.o / part.l) y →
    AtMost (sumOver (fun j => loss ν part.l (key j).value) (List.finRange n) + numeral 5 * ν)
      (y - sumOver (fun j => exactShare m part.l (key j)) (List.finRange n))

private theorem one_over (n : Nat) : (1 : R) / (1 - 0) ^ n = 1 := by
  rw [show (1 : R) - 0 = 1 by grind, Semiring.one_pow]
  grind

private theorem over_one (x : R) (n : Nat) : x / (1 - 0) ^ n = x := by
  rw [show (1 : R) - 0 = 1 by grind, Semiring.one_pow]
  grind

private theorem plus_none (n : Nat) : ((1 : R) + 0) ^ n = 1 := by
  rw [show (1 : R) + 0 = 1 by grind, Semiring.one_pow]

private theorem share_close [Exponential R R] {ν m l : R} {N : Nat} {key : ComputedKey R}
    {w t e : R} (h : Proof.OutputPart (tinyOnly 0) ν m l N 0 key w t e) :
    AtMost (shareLoss ν l key.value) (w * key.value * t + e - exactShare m l key) := by
  have factor : AtMost (((1 : R) + 0) ^ N * (1 / ((1 : R) - 0) ^ (0 + 1)) - 1) (t - 1) :=
    h.factor
  have lost : AtMost (((1 : R) + 0) ^ N * (numeral (0 + 6) * (ν / ((1 : R) - 0) ^ 0 / l)
    * (2 * absolute key.value + 1))) e := h.lost
  rw [one_over, plus_none, Semiring.one_mul] at factor
  rw [over_one, plus_none, Semiring.one_mul] at lost
  have ht : t = 1 := by
    obtain ⟨h₁, h₂⟩ := factor
    grind
  have share : w * key.value = exactShare m l key := by
    cases hs : key.score with
    | none =>
      rw [(h.masked hs).1, exactShare, hs]
      exact Semiring.zero_mul _
    | some s =>
      obtain ⟨G, h₁, h₂, z, ⟨θ, hθ, hz⟩, hw, -⟩ := h.weight (by simp [hs])
      have one : (exp ((tinyOnly (0 : R)).unit * (m - key.computed)) : R) = 1 := by
        show (exp (0 * (m - key.computed) : R) : R) = 1
        rw [Semiring.zero_mul, exp_zero]
      rw [one, Semiring.mul_one] at h₁ h₂
      have hw : AtMost (0 / ((1 : R) - 0) ^ 0 / l * (1 / ((1 : R) - 0) ^ (0 + 1))) (w - z) := hw
      rw [one_over, over_one, Field.div_eq_mul_inv, Semiring.zero_mul, Semiring.zero_mul] at hw
      have hθ : AtMost 0 θ := hθ
      have e₁ : θ = 0 := by
        obtain ⟨h₁, h₂⟩ := hθ
        grind
      have e₂ : w = G / l := by
        obtain ⟨h₁, h₂⟩ := hw
        rw [e₁] at hz
        grind
      have e₃ : G = exp (key.computed - m) := Std.le_antisymm h₁ h₂
      rw [e₂, e₃, exactShare, hs]
  rw [ht, ← share, Semiring.mul_one, show w * key.value + e - w * key.value = e by grind]
  exact lost

private theorem sum_close {α : Type v} {a x y : α → R} {xs : List α}
    (h : ∀ i ∈ xs, AtMost (a i) (x i - y i)) :
    AtMost (sumOver a xs) (sumOver x xs - sumOver y xs) := by
  induction xs with
  | nil => exact ⟨by simp only [sumOver_nil]; grind, by simp only [sumOver_nil]; grind⟩
  | cons i xs ih =>
    have h₁ := (h i (by simp)).add (ih fun j hj => h j (by simp [hj]))
    simp only [sumOver_cons]
    rwa [show x i + sumOver x xs - (y i + sumOver y xs)
      = x i - y i + (sumOver x xs - sumOver y xs) by grind]

/-- Positive control: the loss of the theorem. -/
theorem outputs_lose [Exponential R R] : OutputsLose (R := R) :=
  fun ν m y n key part hν run hr hl keys hy => by
    have h₀ := OrderedRing.zero_lt_one (R := R)
    obtain ⟨w, t, e, parts, hsum, -⟩ := Proof.tiny_output_parts (tinyOnly_precise (Std.le_refl _))
      hν (Std.le_of_lt h₀) h₀ run (fun h => absurd hr h) (nodup_finRange n) keys hl hy
    have hsum : AtMost (((1 : R) + 0) ^ 5 * (numeral 5 * ν)) _ := hsum
    rw [plus_none, Semiring.one_mul] at hsum
    rw [hr] at parts
    have h := (sum_close fun j hj => share_close (parts j hj)).add hsum
    generalize sumOver (fun j => w j * (key j).value * t j + e j) (List.finRange n) = S at *
    generalize sumOver (fun j => exactShare m part.l (key j)) (List.finRange n) = E at *
    rwa [show S - E + (y - S) = y - E by grind] at h

/-- Of a weight twice ν, and of its product ν. -/
@[expose] def oneLossOfProducts (ν _ v : R) : R := numeral 2 * ν * absolute v + ν

/-- A number that is off by ν, no more than it is. -/
private theorem one_more_of {ν x : R} (h₀ : 0 ≤ ν) (h : ν ≤ x) : Stored (0 : R) ν x (x + ν) := by
  rw [Stored, Proof.absolute_of_nonneg (Std.le_trans h₀ h), Semiring.zero_mul,
    OrderedField.max_def, if_pos h₀, show x + ν - x = ν by grind]
  exact ⟨⟨by grind, Std.le_refl _⟩, ⟨by grind, h⟩⟩

private theorem several_more_of {ν x : R} (h₀ : 0 ≤ ν) (h : ν ≤ x) :
    ∀ n : Nat, ν ≤ x + numeral n * ν ∧ TinyTimes 0 ν n x (x + numeral n * ν)
  | 0 => by
    rw [show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul, Semiring.add_zero]
    exact ⟨h, rfl⟩
  | n + 1 => by
    obtain ⟨h₁, h₂⟩ := several_more_of h₀ h n
    rw [Proof.numeral_succ, show x + (numeral n + 1) * ν = x + numeral n * ν + ν by grind]
    exact ⟨by grind, _, h₂, one_more_of h₀ h₁⟩

private theorem small_weight_of_three [NaturalExp R] :
    0 < (exp (0 - 3 : R) : R) ∧ 4 * (exp (0 - 3 : R) : R) ≤ 1 := by
  have pos := exp_pos (R := R) (0 - 3 : R)
  refine ⟨pos, ?_⟩
  have h := NaturalExp.one_add_le_exp (3 : R)
  have e : (exp (0 - 3 : R) : R) * exp (3 : R) = 1 := by rw [exp_sub_mul, exp_zero]
  have := OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt pos)
  generalize (exp (0 - 3 : R) : R) = x at *
  grind

/-- The keys (0, ν) and (−3, 1/16), of weights 1 and 16 ν: of both products ν is lost, and of their
sum. -/
private theorem run_thrice [NaturalExp R] {x : R} (hx : x = exp (0 - 3 : R)) (pos : 0 < x) :
    TinyRun (tinyOnly (0 : R)) (x / 16) 0 0
      ⟨[exactKey 0 (x / 16), exactKey (0 - 3) (1 / 16)], 1 + x, 5 * (x / 16), 1, 0⟩ := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hν : 0 ≤ x / 16 := by grind
  have itself : ∀ z : R, Stored 0 (x / 16) z z := Proof.stored_refl (Std.le_refl _)
  have a : TinyRun (tinyOnly (0 : R)) (x / 16) 0 0
      (singlePart 0 (x / 16) 1 (x / 16 + x / 16)) :=
    .key (x := 0 - 0) (w := 1) (w' := 1) (by simp [exactKey]) (Std.le_refl _)
      (.inl (rounded_refl (Std.le_refl _) _))
      (by rw [exp_sub_self]; exact itself _) (Proof.stored_refl (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored hν (by
        show Stored 0 (x / 16) (1 * (x / 16)) _
        rw [Semiring.one_mul]
        exact one_more_of hν (Std.le_refl _)))
  have b : TinyRun (tinyOnly (0 : R)) (x / 16) 0 0
      (singlePart (0 - 3) (1 / 16) x (x / 16 + x / 16)) :=
    .key (x := 0 - 3 - 0) (w := x) (w' := x) (by simp [exactKey])
      (by show (0 : R) - 3 ≤ 0; grind) (.inl (rounded_refl (Std.le_refl _) _))
      (by
        rw [show (0 : R) - 3 - 0 = 0 - 3 by grind, ← hx]
        exact itself _) (Proof.stored_refl (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored hν (by
        show Stored 0 (x / 16) (x * (1 / 16)) _
        rw [show x * (1 / 16) = x / 16 by grind]
        exact one_more_of hν (Std.le_refl _)))
  refine .join (p := tinyOnly (0 : R)) (m := 0) (a := 0) (k := 1) (r := 0)
    (parts := [singlePart 0 (x / 16) 1 (x / 16 + x / 16),
      singlePart (0 - 3) (1 / 16) x (x / 16 + x / 16)])
    (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl
      · exact a
      · exact b)
    (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl <;> exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
    (.add (xs := [singlePart 0 (x / 16) 1 (x / 16 + x / 16)])
      (ys := [singlePart (0 - 3) (1 / 16) x (x / 16 + x / 16)]) .one .one
      (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _)) ?_
  refine .tiny (xs := [singlePart 0 (x / 16) 1 (x / 16 + x / 16)])
    (ys := [singlePart (0 - 3) (1 / 16) x (x / 16 + x / 16)]) .one .one
    ⟨_, List.mem_singleton.mpr rfl, fun h => ?_⟩ ⟨_, List.mem_singleton.mpr rfl, fun h => ?_⟩
    (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _) ?_
  · exact absurd (h _ (List.mem_singleton.mpr rfl)) (by simp [exactKey])
  · exact absurd (h _ (List.mem_singleton.mpr rfl)) (by simp [exactKey])
  · show AtMost (x / 16) (5 * (x / 16) - (x / 16 + x / 16 + (x / 16 + x / 16)))
    exact ⟨by grind, by grind⟩

theorem oneLossOfProducts_refuted [NaturalExp R] :
    ¬ OutputsLose (R := R) oneLossOfProducts := fun claim => by
  obtain ⟨pos, small⟩ := small_weight_of_three (R := R)
  generalize hx : (exp (0 - 3 : R) : R) = x at *
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hl : 0 < 1 + x := by grind
  have d : (1 + x) * (5 * (x / 16) / (1 + x)) = 5 * (x / 16) :=
    OrderedField.mul_div_cancel (by grind) _
  have big : x / 16 ≤ 5 * (x / 16) / (1 + x) := by
    rw [OrderedField.le_div_iff hl]
    have := OrderedRing.mul_le_mul_of_nonneg_left small (Std.le_of_lt pos)
    grind
  have h := (claim (x / 16) 0 _ 2 (fun j => if j = 0 then exactKey 0 (x / 16)
    else exactKey (0 - 3) (1 / 16)) _ (by grind) (run_thrice hx.symm pos) rfl hl rfl
    (several_more_of (by grind) big 5).2).2
  have e₁ : ∀ f : Fin 2 → R, sumOver f (List.finRange 2) = f 0 + (f 1 + 0) := fun _ => rfl
  rw [e₁, e₁] at h
  have e₂ : exp ((0 : R) - 0) = (1 : R) := exp_sub_self _
  have h : oneLossOfProducts (x / 16) (1 + x) (x / 16)
      + (oneLossOfProducts (x / 16) (1 + x) (1 / 16) + 0) + numeral 5 * (x / 16)
      ≥ 5 * (x / 16) / (1 + x) + numeral 5 * (x / 16)
        - (exp ((0 : R) - 0) / (1 + x) * (x / 16)
          + (exp ((0 : R) - 3 - 0) / (1 + x) * (1 / 16) + 0)) := h
  rw [e₂, show (0 : R) - 3 - 0 = 0 - 3 by grind, hx, oneLossOfProducts, oneLossOfProducts,
    Proof.absolute_of_nonneg (by grind), Proof.absolute_of_nonneg (by grind),
    show (numeral 2 : R) = 2 by
      rw [Proof.numeral_succ, Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
      grind] at h
  generalize numeral 5 * (x / 16) = n at *
  have d₁ : (1 + x) * (1 / (1 + x)) = 1 := OrderedField.mul_div_cancel (by grind) _
  have d₂ : (1 + x) * (x / (1 + x)) = x := OrderedField.mul_div_cancel (by grind) _
  generalize 5 * (x / 16) / (1 + x) = a at *
  generalize 1 / (1 + x) = b at *
  generalize x / (1 + x) = c at *
  have k := OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt hl)
  have k₁ := OrderedRing.mul_le_mul_of_nonneg_left small (Std.le_of_lt pos)
  have k₂ := OrderedRing.mul_le_mul_of_nonneg_left k₁ (Std.le_of_lt pos)
  have e : (1 + x) * (a + n - (b * (x / 16) + (c * (1 / 16) + 0)))
      = (1 + x) * a + (1 + x) * n - ((1 + x) * b * (x / 16) + (1 + x) * c * (1 / 16)) := by
    clear claim h big k k₁ k₂ d d₁ d₂
    grind
  rw [e, d, d₁, d₂, Semiring.one_mul] at k
  clear claim h big d d₁ d₂ e hx e₁ e₂
  grind

end Attention.WrongVariants
