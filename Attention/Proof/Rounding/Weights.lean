module

public import Attention.Proof.Softmax.Attention
public import Attention.Proof.Rounding.Run
public import Attention.Proof.Rounding.Shares

public section

/-! # Weights as computed, against the exact ones

What the invariant of `Proof/Rounding/Run.lean` says of a weight, with the errors of the scores, is
at most its factor in the tolerance; and the exact weights make the output of attention.
Source: docs/tolerances.md, sections 1 and 2. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-! ## The exact weights and their factors -/

/-- No unmasked key has a larger error. -/
theorem error_le_largestError {row : List (BoundedKey R)} {key : BoundedKey R}
    (hk : key ∈ row) (hs : key.score ≠ none) : key.error ≤ largestError row := by
  have e : largestError row
      = row.foldl (fun y k => if k.score.isNone = true then y else max y k.error) 0 := by
    rw [largestError]
    congr
    funext y k
    cases k.score <;> simp
  rw [e]
  refine (le_foldl_max (fun k => k.error) (fun k => k.score.isNone = true) 0 row).2 key hk ?_
  rwa [Option.isNone_iff_eq_none]

variable [Exponential R R]

/-- The exact weights are taken against the maximum of the row. -/
theorem boundedWeights_eq {p : Precision R} {rescalings : Nat} {row : List (BoundedKey R)}
    {M : R} (hM : rowMax (row.map (·.score)) = some M) :
    boundedWeights p rescalings row
      = row.map (boundedWeight p rescalings (some M) (largestError row)) := by
  rw [boundedWeights, hM]

/-- A weight comes with the value of its key. -/
theorem boundedWeight_value (p : Precision R) (rescalings : Nat) (M Δ : R)
    (key : BoundedKey R) : (boundedWeight p rescalings (some M) Δ key).value = key.value := by
  unfold boundedWeight
  cases key.score <;> rfl

/-- A weight is the exact one, against the maximum of the row. -/
theorem exp_mul_boundedWeight (p : Precision R) (rescalings : Nat) (M Δ : R)
    (key : BoundedKey R) :
    exp M * (boundedWeight p rescalings (some M) Δ key).weight = weight key.score := by
  unfold boundedWeight
  cases key.score with
  | none => exact Semiring.mul_zero _
  | some s => exact exp_mul_rescale (some s) M

/-- The factor that the invariant gives a weight, with the errors of the scores, is at most that of
the tolerance. -/
private theorem factor_le {p : Precision R} (hp : Precise p) {r rescalings : Nat}
    (hr : r ≤ rescalings) {x y δ : R} (h : x ≤ y) :
    exp (p.unit * x) / (1 - p.exponential) ^ (r + 1) * exp δ
      ≤ exp (δ + p.unit * y) / power (1 - p.exponential) (rescalings + 1) := by
  have h₀ := hp.exponential
  have h₁ := hp.exponential_lt
  have hq : 0 < 1 - p.exponential := by grind
  have h₂ := OrderedField.pow_pos hq (r + 1)
  have h₃ := OrderedField.pow_pos hq (rescalings + 1)
  have h₄ := OrderedField.pow_le_pow_of_le_one hq (by grind) (Nat.succ_le_succ hr)
  have h₅ : (exp (δ + p.unit * x) : R) ≤ exp (δ + p.unit * y) :=
    exp_le (by have := OrderedRing.mul_le_mul_of_nonneg_left h hp.unit; grind)
  have h₆ := exp_pos (R := R) (δ + p.unit * x)
  have e₁ : exp (p.unit * x) / (1 - p.exponential) ^ (r + 1) * exp δ
      = exp (δ + p.unit * x) / (1 - p.exponential) ^ (r + 1) := by
    rw [exp_add]
    grind
  rw [e₁, power_eq, OrderedField.le_div_iff h₃]
  refine Std.le_trans ?_ h₅
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_right h₄
    (OrderedField.div_nonneg (Std.le_of_lt h₆) h₂)
  have h₈ := OrderedField.mul_div_cancel (b := (1 - p.exponential) ^ (r + 1)) (by grind)
    (exp (δ + p.unit * x))
  rwa [h₈] at h₇

/-- A factor is at least 1. -/
private theorem one_le_factor {p : Precision R} (hp : Precise p) {rescalings : Nat} {M Δ : R}
    {key : BoundedKey R} (hΔ : key.score ≠ none → 0 ≤ key.error ∧ 0 ≤ Δ)
    (hM : ∀ s, key.score = some s → s ≤ M) :
    1 ≤ (boundedWeight p rescalings (some M) Δ key).factor := by
  unfold boundedWeight
  split
  next _ _ s _ hs hm =>
    cases hm
    obtain ⟨h₁, h₂⟩ := hΔ (by simp [hs])
    have h₃ := hM s hs
    have h₀ := hp.exponential
    have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
    have h₄ : (exp (0 : R) : R) ≤ exp (key.error + p.unit * (M - s + key.error + Δ)) :=
      exp_le (by
        have := OrderedRing.mul_nonneg hp.unit (b := M - s + key.error + Δ) (by grind)
        grind)
    have h₅ := OrderedField.pow_le_pow_of_le_one hq (by grind) (Nat.zero_le (rescalings + 1))
    rw [Semiring.pow_zero] at h₅
    rw [exp_zero] at h₄
    rw [power_eq, OrderedField.le_div_iff (OrderedField.pow_pos hq _), Semiring.mul_one]
    exact Std.le_trans h₅ h₄
  next => exact Std.le_refl _

/-- A weight as computed, against the exact one. -/
private theorem weight_bounds {p : Precision R} (hp : Precise p) {r rescalings : Nat}
    (hr : r ≤ rescalings) {M Δ m c w s : R} {key : ComputedKey R} (hs : key.score = some s)
    (hm : m ≤ M + c + Δ) (close : AtMost key.error (key.computed - (s + c))) (hw : 0 < w)
    (upper : w ≤ exp (key.computed - m) * (exp (p.unit * (m - key.computed))
      / (1 - p.exponential) ^ (r + 1)))
    (lower : exp (key.computed - m) ≤ w * (exp (p.unit * (m - key.computed))
      / (1 - p.exponential) ^ (r + 1))) :
    let b := boundedWeight p rescalings (some M) Δ key.toBoundedKey
    w ≤ exp (M + c - m) * (b.weight * b.factor) ∧ exp (M + c - m) * b.weight ≤ w * b.factor := by
  intro b
  obtain ⟨h₁, h₂⟩ := close
  have hb : b = ⟨exp (s - M), exp (key.error + p.unit * (M - s + key.error + Δ))
      / power (1 - p.exponential) (rescalings + 1), key.value⟩ := by
    simp only [b, boundedWeight, hs]
  have hF := factor_le hp hr (x := m - key.computed) (y := M - s + key.error + Δ)
    (δ := key.error) (by grind)
  have e₁ : (exp (M + c - m) * exp (s - M) : R) = exp (s + c - m) := by
    rw [← exp_add]
    congr 1
    grind
  have i₁ : (exp (key.computed - m) : R) ≤ exp (s + c - m) * exp key.error := by
    rw [← exp_add]
    exact exp_le (by grind)
  have i₂ : (exp (s + c - m) : R) ≤ exp (key.computed - m) * exp key.error := by
    rw [← exp_add]
    exact exp_le (by grind)
  rw [hb]
  simp only
  rw [← Semiring.mul_assoc, e₁]
  have hδ := exp_pos (R := R) key.error
  have hx := exp_pos (R := R) (s + c - m)
  have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
  have hf := OrderedField.div_nonneg (Std.le_of_lt (exp_pos (R := R)
    (p.unit * (m - key.computed)))) (OrderedField.pow_pos hq (r + 1))
  generalize (exp (p.unit * (m - key.computed)) : R) / (1 - p.exponential) ^ (r + 1) = F at *
  generalize exp (key.error + p.unit * (M - s + key.error + Δ))
    / power (1 - p.exponential) (rescalings + 1) = E at *
  generalize (exp key.error : R) = d at *
  generalize (exp (s + c - m) : R) = x at *
  generalize (exp (key.computed - m) : R) = y at *
  constructor
  · have j₁ := OrderedRing.mul_le_mul_of_nonneg_right i₁ hf
    have j₂ := OrderedRing.mul_le_mul_of_nonneg_left hF (Std.le_of_lt hx)
    grind
  · have j₁ := OrderedRing.mul_le_mul_of_nonneg_right lower (Std.le_of_lt hδ)
    have j₂ := OrderedRing.mul_le_mul_of_nonneg_left hF (Std.le_of_lt hw)
    grind

private theorem boundedWeight_weight_nonneg (p : Precision R) (rescalings : Nat) (M Δ : R)
    (key : BoundedKey R) : 0 ≤ (boundedWeight p rescalings (some M) Δ key).weight := by
  unfold boundedWeight
  cases key.score with
  | none => exact Std.le_refl _
  | some s => exact Std.le_of_lt (exp_pos _)

/-- The weights of a part, against the exact ones. -/
theorem offByFactors {p : Precision R} (hp : Precise p) {r rescalings : Nat}
    (hr : r ≤ rescalings) {M Δ m c : R} {keys : List (ComputedKey R)}
    {ws : List (ComputedKey R × R)} (unmasked : ∃ key ∈ keys, key.score ≠ none)
    (hm : m ≤ M + c + Δ) (hM : ∀ key ∈ keys, ∀ s, key.score = some s → s ≤ M)
    (error : ∀ key ∈ keys, key.score ≠ none → 0 ≤ key.error ∧ key.error ≤ Δ)
    (close : ∀ key ∈ keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    (hkeys : ws.map (·.1) = keys) (masked : ∀ k ∈ ws, k.1.score = none → k.2 = 0)
    (bounds : ∀ k ∈ ws, k.1.score ≠ none → k.1.computed ≤ m ∧ 0 < k.2 ∧
      k.2 ≤ exp (k.1.computed - m) * (exp (p.unit * (m - k.1.computed))
        / (1 - p.exponential) ^ (r + 1)) ∧
      exp (k.1.computed - m) ≤ k.2 * (exp (p.unit * (m - k.1.computed))
        / (1 - p.exponential) ^ (r + 1))) :
    OffByFactors (exp (M + c - m))
      (ws.map fun k => (boundedWeight p rescalings (some M) Δ k.1.toBoundedKey, k.2)) := by
  subst hkeys
  have hmem : ∀ k ∈ ws, k.1 ∈ ws.map (·.1) := fun k hk => List.mem_map_of_mem hk
  have both : ∀ k ∈ ws, let b := boundedWeight p rescalings (some M) Δ k.1.toBoundedKey
      k.2 ≤ exp (M + c - m) * (b.weight * b.factor)
        ∧ exp (M + c - m) * b.weight ≤ k.2 * b.factor := fun k hk => by
    cases hs : k.1.score with
    | none =>
      simp only [boundedWeight, hs, masked k hk hs]
      exact ⟨by grind, by grind⟩
    | some s =>
      obtain ⟨_, h₁, h₂, h₃⟩ := bounds k hk (by simp [hs])
      exact weight_bounds hp hr hs hm (close _ (hmem k hk) s hs) h₁ h₂ h₃
  refine ⟨exp_pos _, fun x hx => ?_, fun x hx => ?_, fun x hx => ?_, fun x hx => ?_, ?_⟩
  · obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hx
    exact boundedWeight_weight_nonneg ..
  · obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hx
    refine one_le_factor hp (fun hs => ?_) (hM _ (hmem k hk))
    obtain ⟨h₁, h₂⟩ := error _ (hmem k hk) hs
    exact ⟨h₁, Std.le_trans h₁ h₂⟩
  · obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hx
    exact (both k hk).1
  · obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hx
    exact (both k hk).2
  · obtain ⟨key, hkey, hs⟩ := unmasked
    obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hkey
    obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hs
    refine ⟨_, List.mem_map_of_mem hk, ?_⟩
    simp only [boundedWeight, hs]
    exact exp_pos _

/-- The same of weights that come with the stored ones. -/
theorem offByFactors_of_stored {p : Precision R} (hp : Precise p) {r rescalings : Nat}
    (hr : r ≤ rescalings) {M Δ m c : R} {keys : List (ComputedKey R)}
    {ws : List (ComputedKey R × R × R)} (unmasked : ∃ key ∈ keys, key.score ≠ none)
    (hm : m ≤ M + c + Δ) (hM : ∀ key ∈ keys, ∀ s, key.score = some s → s ≤ M)
    (error : ∀ key ∈ keys, key.score ≠ none → 0 ≤ key.error ∧ key.error ≤ Δ)
    (close : ∀ key ∈ keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    (hkeys : ws.map (·.1) = keys) (masked : ∀ k ∈ ws, k.1.score = none → k.2.1 = 0)
    (bounds : ∀ k ∈ ws, k.1.score ≠ none → k.1.computed ≤ m ∧ 0 < k.2.1 ∧
      k.2.1 ≤ exp (k.1.computed - m) * (exp (p.unit * (m - k.1.computed))
        / (1 - p.exponential) ^ (r + 1)) ∧
      exp (k.1.computed - m) ≤ k.2.1 * (exp (p.unit * (m - k.1.computed))
        / (1 - p.exponential) ^ (r + 1))) :
    OffByFactors (exp (M + c - m))
      (ws.map fun k => (boundedWeight p rescalings (some M) Δ k.1.toBoundedKey, k.2.1)) := by
  have := offByFactors hp hr (ws := ws.map fun k => (k.1, k.2.1)) unmasked hm hM error close
    (by rw [List.map_map]; exact hkeys)
    (fun k hk => by
      obtain ⟨k', hk', rfl⟩ := List.mem_map.mp hk
      exact masked k' hk')
    (fun k hk => by
      obtain ⟨k', hk', rfl⟩ := List.mem_map.mp hk
      exact bounds k' hk')
  rwa [List.map_map] at this

omit [Exponential R R] in
/-- The largest weight is not below the errors of its exponential and rescalings. -/
private theorem one_div_le_of_weight {q w W : R} (hq : 0 < q) (hq₁ : q ≤ 1) {r n : Nat} (hr : r ≤ n)
    (hw : 1 ≤ w * (1 / q ^ (r + 1))) (hW : w ≤ W) : 1 / q ^ r ≤ W * (1 / q ^ (2 * n + 1)) := by
  have h₁ := OrderedField.pow_pos hq r
  have h₂ := OrderedField.pow_pos hq (r + 1)
  have h₃ := OrderedField.pow_pos hq (2 * n + 1)
  have h₄ := OrderedField.pow_le_pow_of_le_one hq hq₁ (show r + (r + 1) ≤ 2 * n + 1 by omega)
  rw [Semiring.pow_add q r (r + 1)] at h₄
  rw [show w * (1 / q ^ (r + 1)) = w / q ^ (r + 1) by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul],
    OrderedField.le_div_iff h₂, Semiring.mul_one] at hw
  rw [show W * (1 / q ^ (2 * n + 1)) = W / q ^ (2 * n + 1) by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul],
    OrderedField.le_div_iff h₃]
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right h₄
    (OrderedField.div_nonneg (Std.le_of_lt OrderedRing.zero_lt_one) h₁)
  have h₆ := OrderedField.mul_div_cancel (b := q ^ r) (by grind) 1
  generalize q ^ (2 * n + 1) = x at *
  generalize 1 / q ^ r = y at *
  generalize q ^ (r + 1) = z at *
  generalize q ^ r = t at *
  rw [show t * z * y = z * (t * y) by grind, h₆, Semiring.mul_one] at h₅
  exact Std.le_trans h₅ (Std.le_trans hw hW)

/-- Its bound is no smaller than 1, in the function's own terms. -/
private theorem one_div_le_bound {p : Precision R} (hp : Precise p) {r rescalings : Nat}
    (hr : r ≤ rescalings) {M Δ m c s : R} {key : BoundedKey R} (hs : key.score = some s)
    (hsM : s ≤ M) (hδ : 0 ≤ key.error) (hΔ : 0 ≤ Δ) (hm : m ≤ s + c + key.error) :
    let b := boundedWeight p rescalings (some M) Δ key
    1 / (1 - p.exponential) ^ r ≤ exp (M + c - m) * (b.weight * b.factor) := by
  intro b
  have hb : b = ⟨exp (s - M), exp (key.error + p.unit * (M - s + key.error + Δ))
      / power (1 - p.exponential) (rescalings + 1), key.value⟩ := by
    simp only [b, boundedWeight, hs]
  have h₀ := hp.exponential
  have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
  have h₁ := OrderedField.pow_pos hq r
  have h₂ := OrderedField.pow_pos hq (rescalings + 1)
  have h₃ := OrderedField.pow_le_pow_of_le_one hq (by grind) (show r ≤ rescalings + 1 by omega)
  have h₄ := OrderedRing.mul_nonneg hp.unit (b := M - s + key.error + Δ) (by grind)
  have h₅ : (exp (0 : R) : R) ≤ exp (M + c - m) * exp (s - M)
      * exp (key.error + p.unit * (M - s + key.error + Δ)) := by
    rw [← exp_add, ← exp_add]
    exact exp_le (by grind)
  rw [exp_zero] at h₅
  rw [hb, power_eq]
  simp only
  generalize (exp (key.error + p.unit * (M - s + key.error + Δ)) : R) = E at *
  generalize (exp (M + c - m) : R) = κ at *
  generalize (exp (s - M) : R) = w at *
  have e : κ * (w * (E / (1 - p.exponential) ^ (rescalings + 1)))
      = κ * w * E / (1 - p.exponential) ^ (rescalings + 1) := by
    rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.mul_assoc, Semiring.mul_assoc]
  have h₆ := OrderedField.div_le_div_left (a := 1) (Std.le_of_lt OrderedRing.zero_lt_one) h₂ h₃
  rw [e]
  refine Std.le_trans h₆ ?_
  rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv (κ * w * E)]
  exact OrderedRing.mul_le_mul_of_nonneg_right h₅
    (Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr h₂))

omit [Exponential R R] in
private theorem le_reach (keys : List (BoundedWeight R)) {b : BoundedWeight R} (h : b ∈ keys) :
    b.weight * b.factor ≤ keys.foldl (fun x k => max x (k.weight * k.factor)) 0 := by
  have := (le_foldl_max (fun k : BoundedWeight R => k.weight * k.factor) (fun _ => False) 0
    keys).2 b h id
  simpa only [if_false] using this

omit [Exponential R R] in
private theorem reach_nonneg (keys : List (BoundedWeight R)) :
    0 ≤ keys.foldl (fun x k => max x (k.weight * k.factor)) 0 := by
  have := (le_foldl_max (fun k : BoundedWeight R => k.weight * k.factor) (fun _ => False) 0
    keys).1
  simpa only [if_false] using this

omit [Exponential R R] in
/-- The error of storing a weight below the normal numbers is not negative. -/
theorem tinyShare_nonneg {p : Precision R} (hp : Precise p) (rescalings : Nat)
    {keys : List (BoundedWeight R)} (hlow : 0 < lowTotal keys) :
    0 ≤ tinyShare p rescalings keys := by
  have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
  refine OrderedRing.mul_nonneg hp.storedTiny ?_
  rw [smaller, power_eq]
  split
  · exact OrderedField.div_nonneg (Std.le_of_lt OrderedRing.zero_lt_one) (OrderedField.pow_pos hq _)
  · exact OrderedField.div_nonneg (reach_nonneg keys) hlow

omit [Exponential R R] in
/-- The error of storing in the sum of the weights, in a bound that knows no weights. -/
theorem storingErrors_le {p : Precision R} (hp : Precise p) (rescalings : Nat)
    (keys : List (BoundedWeight R)) : storingErrors p rescalings keys ≤ p.stored
      + numeral keys.length * (p.storedTiny / (1 - p.exponential) ^ (2 * rescalings + 1)) := by
  have right : ∀ x y : R, smaller x y ≤ y := fun x y => by
    rw [smaller]
    split
    · assumption
    · exact Std.le_refl _
  have left : ∀ x y : R, smaller x y ≤ x := fun x y => by
    rw [smaller]
    split
    · exact Std.le_refl _
    · grind
  have h : tinyShare p rescalings keys
      ≤ p.storedTiny / (1 - p.exponential) ^ (2 * rescalings + 1) := by
    rw [tinyShare, power_eq, Field.div_eq_mul_inv p.storedTiny]
    refine OrderedRing.mul_le_mul_of_nonneg_left (Std.le_trans (left _ _) ?_) hp.storedTiny
    rw [Field.div_eq_mul_inv, Semiring.one_mul]
    exact Std.le_refl _
  rw [storingErrors]
  refine Std.le_trans (right _ _) ?_
  have := sumOver_le_sumOver (xs := keys) fun k _ =>
    Std.le_trans (right (mostShare (lowTotal keys) k) (tinyShare p rescalings keys)) h
  rw [sumOver_const, ← numeral_eq] at this
  generalize numeral keys.length * (p.storedTiny / (1 - p.exponential) ^ (2 * rescalings + 1)) = x
    at *
  grind

/-- The error of a weight below the normal numbers after rescalings, against the sum of the
weights. -/
theorem tiny_le {p : Precision R} (hp : Precise p) {r rescalings : Nat} (hr : r ≤ rescalings)
    {M Δ m c : R} {ws : List (ComputedKey R × R × R)}
    (hoff : OffByFactors (exp (M + c - m))
      (ws.map fun k => (boundedWeight p rescalings (some M) Δ k.1.toBoundedKey, k.2.1)))
    (hM : ∀ k ∈ ws, ∀ s, k.1.score = some s → s ≤ M)
    (error : ∀ k ∈ ws, k.1.score ≠ none → 0 ≤ k.1.error ∧ k.1.error ≤ Δ)
    (close : ∀ k ∈ ws, ∀ s, k.1.score = some s → AtMost k.1.error (k.1.computed - (s + c)))
    (lower : ∀ k ∈ ws, k.1.score ≠ none → exp (k.1.computed - m) ≤ k.2.1
      * (exp (p.unit * (m - k.1.computed)) / (1 - p.exponential) ^ (r + 1)))
    (nonneg : ∀ k ∈ ws, 0 ≤ k.2.1)
    (attained : 0 < p.storedTiny → ∃ k ∈ ws, k.1.score ≠ none ∧ k.1.computed = m) :
    p.storedTiny / (1 - p.exponential) ^ r ≤ sumOver (fun k => k.2.1) ws
      * tinyShare p rescalings (ws.map fun k =>
          boundedWeight p rescalings (some M) Δ k.1.toBoundedKey) := by
  have h₀ := hp.exponential
  have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
  have hη := hp.storedTiny
  have hlow := hoff.lowTotal_pos
  have htotal := hoff.lowTotal_le
  simp only [List.map_map, Function.comp_def, sumOver_map] at hlow htotal
  by_cases hpos : 0 < p.storedTiny
  case neg =>
    have e : p.storedTiny = 0 := by grind
    have e₁ : (0 : R) / (1 - p.exponential) ^ r = 0 := by
      rw [Field.div_eq_mul_inv, Semiring.zero_mul]
    rw [tinyShare, e, e₁, Semiring.zero_mul, Semiring.mul_zero]
    exact Std.le_refl _
  obtain ⟨top, htop, hscore, rfl⟩ := attained hpos
  obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hscore
  obtain ⟨i₁, i₂⟩ := error top htop hscore
  have hc := (close top htop s hs).2
  have hw := lower top htop hscore
  have e₀ : ∀ x : R, x - x = 0 := fun x => by grind
  rw [e₀, Semiring.mul_zero, exp_zero] at hw
  have hle := le_sumOver (f := fun k : ComputedKey R × R × R => k.2.1) nonneg htop
  have j₁ := one_div_le_of_weight hq (by grind) hr hw hle
  have j₂ := one_div_le_bound hp hr (key := top.1.toBoundedKey) hs (hM top htop s hs) i₁
    (Std.le_trans i₁ i₂) (c := c) (m := top.1.computed) (by grind)
  have j₃ := le_reach (ws.map fun k => boundedWeight p rescalings (some M) Δ k.1.toBoundedKey)
    (List.mem_map_of_mem (f := fun k : ComputedKey R × R × R =>
      boundedWeight p rescalings (some M) Δ k.1.toBoundedKey) htop)
  have hκ := hoff.positive
  rw [tinyShare, power_eq]
  generalize (ws.map fun k => boundedWeight p rescalings (some M) Δ k.1.toBoundedKey) = keys at *
  generalize keys.foldl (fun x k => max x (k.weight * k.factor)) 0 = B at *
  have j₄ : 1 / (1 - p.exponential) ^ r ≤ sumOver (fun k => k.2.1) ws * (B / lowTotal keys) := by
    have k₁ := Std.le_trans j₂ (OrderedRing.mul_le_mul_of_nonneg_left j₃ (Std.le_of_lt hκ))
    have k₂ := OrderedField.mul_div_cancel (b := lowTotal keys) (by grind) B
    have k₃ := OrderedRing.mul_le_mul_of_nonneg_right htotal (c := B / lowTotal keys) (by
      refine OrderedField.div_nonneg ?_ hlow
      have := OrderedField.div_pos OrderedRing.zero_lt_one (OrderedField.pow_pos hq r)
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_pos hκ (b := -B) (by grind)
      grind)
    rw [Semiring.mul_assoc, k₂] at k₃
    exact Std.le_trans k₁ k₃
  have hsmall : 1 / (1 - p.exponential) ^ r ≤ sumOver (fun k => k.2.1) ws
      * smaller (1 / (1 - p.exponential) ^ (2 * rescalings + 1)) (B / lowTotal keys) := by
    rw [smaller]
    split
    · exact j₁
    · exact j₄
  have h := OrderedRing.mul_le_mul_of_nonneg_left hsmall hη
  rw [show p.storedTiny / (1 - p.exponential) ^ r
    = p.storedTiny * (1 / (1 - p.exponential) ^ r) by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]]
  generalize smaller (1 / (1 - p.exponential) ^ (2 * rescalings + 1)) (B / lowTotal keys) = y at *
  rw [show ∀ W : R, W * (p.storedTiny * y) = p.storedTiny * (W * y) from fun W => by grind]
  exact h

/-! ## The exact output -/

/-- The exact weights make attention, whatever they are taken against. -/
theorem sums_eq_attend {d : Nat} {keys : List (ComputedKey R)}
    {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (p : Precision R) (rescalings : Nat) (M Δ : R) :
    sumOver (fun k => (boundedWeight p rescalings (some M) Δ k.toBoundedKey).weight * k.value) keys
        / sumOver (fun k => (boundedWeight p rescalings (some M) Δ k.toBoundedKey).weight) keys
      = (attend row)[j] := by
  have e₁ : numerator row j hj = sumOver (fun x : Option R × R => weight x.1 * x.2)
      (row.map (fun k => (k.score, k.value[j]))) := by
    rw [numerator, sumOver_map]
  have e₂ : (denominator (row.map (·.score)) : R)
      = sumOver (fun x : Option R × R => (weight x.1 : R))
        (row.map (fun k => (k.score, k.value[j]))) := by
    rw [denominator, sumOver_map, sumOver_map]
  rw [getElem_attend row hj, e₁, e₂, ← same, sumOver_map, sumOver_map,
    ← OrderedField.mul_div_mul_left (exp_ne_zero (R := R) M), ← sumOver_mul_left,
    ← sumOver_mul_left]
  simp only [← Semiring.mul_assoc, exp_mul_boundedWeight]

/-- The tolerance's exact output is that of attention. -/
theorem exactOutput_eq_attend {d : Nat} {keys : List (BoundedKey R)}
    {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (unmasked : ∃ key ∈ keys, key.score ≠ none) (p : Precision R) (rescalings : Nat) :
    exactOutput (boundedWeights p rescalings keys) = (attend row)[j] := by
  obtain ⟨M, hM⟩ : ∃ M, rowMax (keys.map (·.score)) = some M := by
    obtain ⟨key, hk, hs⟩ := unmasked
    exact Option.ne_none_iff_exists'.mp fun h => hs (rowMax_eq_none.mp h _ (List.mem_map_of_mem hk))
  have h := sums_eq_attend (keys := keys.map fun k => (⟨k, 0⟩ : ComputedKey R)) hj
    (by rwa [List.map_map]) p rescalings M (largestError keys)
  rw [sumOver_map, sumOver_map] at h
  rw [← h, boundedWeights_eq hM, exactOutput, sumOver_map, sumOver_map]
  simp only [boundedWeight_value]

end Attention.Proof
