module

public import Attention.Proof.Softmax.Maximum
public import Attention.Spec.Softmax

public section

/-! # Softmax is a distribution, and only differences of scores matter -/

namespace Attention.Proof

open Spec Exponential

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-! ## Weights -/

/-- Weights are non-negative. -/
theorem weight_nonneg (s : Option S) : (0 : R) ≤ weight s := by
  cases s with
  | none => exact Std.le_refl _
  | some s => have := exp_pos (R := R) s; simp only [weight]; grind

/-- The weight against the reference point m, multiplied by exp m, is the weight. -/
theorem exp_mul_rescale (s : Option S) (m : S) : (exp m : R) * rescale s (some m) = weight s := by
  cases s with
  | none => simp only [rescale, weight]; grind
  | some s =>
    have := exp_sub_mul (R := R) s m
    simp only [rescale, weight]
    grind

/-- The denominator of a row with an unmasked key is positive. -/
theorem denominator_pos {row : List (Option S)} {s : S} (h : some s ∈ row) :
    (0 : R) < denominator row := by
  have h₁ := le_sumOver (R := R) (f := weight) (fun s _ => weight_nonneg s) h
  have h₂ := exp_pos (R := R) s
  unfold denominator
  simp only [weight] at h₁
  grind

/-- The denominator is 0 exactly when every score is masked. -/
theorem denominator_eq_zero {row : List (Option S)} :
    (denominator row : R) = 0 ↔ ∀ s ∈ row, s = none := by
  refine ⟨fun h s hs => ?_, fun h => sumOver_eq_zero fun s hs => by rw [h s hs, weight]⟩
  cases s with
  | none => rfl
  | some s =>
    have := denominator_pos (R := R) hs
    grind

/-! ## Softmax -/

/-- Each softmax weight is the weight divided by the denominator. -/
theorem softmax_eq (row : List (Option S)) :
    softmax (R := R) row = row.map fun s => weight s / denominator row := by
  simp only [softmax]
  congr 1
  funext s
  cases s
  · simp only [weight]; grind
  · rfl

private theorem sumOver_id_softmax (row : List (Option S)) :
    sumOver (fun p : R => p) (softmax row) = (denominator row)⁻¹ * denominator row := by
  rw [softmax_eq, sumOver_map, denominator, ← sumOver_mul_left]
  exact sumOver_congr fun s _ => by grind

/-- **softmax-sum-one**: the softmax weights of a row with an unmasked key sum to 1; those of a
fully masked row are all 0. -/
theorem softmax_sum_one (row : List (Option S)) :
    ((∃ s : S, some s ∈ row) → sumOver (fun p : R => p) (softmax row) = 1) ∧
    ((∀ s ∈ row, s = none) → softmax (R := R) row = row.map fun _ => 0) := by
  refine ⟨fun ⟨s, h⟩ => ?_, fun h => ?_⟩
  · have := denominator_pos (R := R) h
    rw [sumOver_id_softmax]
    grind
  · simp only [softmax]
    exact List.map_congr_left fun s hs => by rw [h s hs]

/-- **softmax-nonneg**: softmax weights are non-negative. -/
theorem softmax_nonneg (row : List (Option S)) : ∀ p ∈ softmax (R := R) row, 0 ≤ p := by
  intro p hp
  rw [softmax_eq] at hp
  obtain ⟨s, hs, rfl⟩ := List.mem_map.mp hp
  cases s with
  | none => simp only [weight]; grind
  | some s =>
    have h₁ := denominator_pos (R := R) hs
    have h₂ := exp_pos (R := R) s
    exact OrderedField.div_nonneg (by simp only [weight]; grind) (by grind)

private theorem mem_zip_self {α : Type u} {xs : List α} {p : α × α} (h : p ∈ xs.zip xs) :
    p.1 = p.2 := by
  induction xs with
  | nil => cases h
  | cons x xs ih =>
    rcases List.mem_cons.mp h with rfl | h
    · rfl
    · exact ih h

/-- The softmax weight that goes with a score. -/
theorem mem_zip_softmax {row : List (Option S)} {x : Option S × R}
    (h : x ∈ row.zip (softmax (R := R) row)) : x.2 = weight x.1 / denominator row := by
  rw [softmax_eq, List.zip_map_right] at h
  obtain ⟨p, hp, rfl⟩ := List.mem_map.mp h
  simp only [Prod.map, id, mem_zip_self hp]

/-- **softmax-proportional**: softmax weights are to each other as the exponentials of their scores,
a masked key's counting 0. Together with softmax-sum-one this determines them. -/
theorem softmax_proportional (row : List (Option S)) :
    ∀ x ∈ row.zip (softmax (R := R) row), ∀ y ∈ row.zip (softmax (R := R) row),
      x.2 * weight y.1 = y.2 * weight x.1 := by
  intro x hx y hy
  rw [mem_zip_softmax hx, mem_zip_softmax hy]
  grind

/-- A shift of the score multiplies the weight. -/
theorem weight_shift (c : S) (s : Option S) :
    (weight (s.map (· + c)) : R) = exp c * weight s := by
  cases s with
  | none => simp only [Option.map, weight]; grind
  | some s => simp only [Option.map, weight, exp_add]; grind

/-- A shift of all unmasked scores multiplies the denominator. -/
theorem denominator_shift (c : S) (row : List (Option S)) :
    (denominator (row.map (Option.map (· + c))) : R) = exp c * denominator row := by
  rw [denominator, denominator, sumOver_map, ← sumOver_mul_left]
  exact sumOver_congr fun s _ => weight_shift c s

/-- **softmax-shift-invariant**: adding one number to every unmasked score changes nothing. -/
theorem softmax_shift_invariant (c : S) (row : List (Option S)) :
    softmax (R := R) (row.map (Option.map (· + c))) = softmax row := by
  rw [softmax_eq, softmax_eq, List.map_map, denominator_shift]
  refine List.map_congr_left fun s _ => ?_
  simp only [Function.comp, weight_shift, OrderedField.mul_div_mul_left (exp_ne_zero c)]

private theorem exp_mul_sumOver_rescale (m : S) (row : List (Option S)) :
    (exp m : R) * sumOver (fun s => rescale s (some m)) row = denominator row := by
  rw [← sumOver_mul_left]
  exact sumOver_congr fun s _ => exp_mul_rescale s m

/-- Subtracting the maximum first, as every kernel does, gives the same softmax. -/
theorem safeSoftmax_eq_softmax (row : List (Option S)) :
    safeSoftmax (R := R) row = softmax row := by
  simp only [safeSoftmax, softmax]
  refine List.map_congr_left fun s hs => ?_
  cases s with
  | none => rfl
  | some s =>
    cases hm : rowMax row with
    | none => exact absurd (rowMax_eq_none.mp hm _ hs) (by simp)
    | some m =>
      show rescale (some s) (some m) / _ = weight (some s) / denominator row
      rw [← exp_mul_sumOver_rescale m row, ← exp_mul_rescale (some s) m,
        OrderedField.mul_div_mul_left (exp_ne_zero m)]

end Attention.Proof
