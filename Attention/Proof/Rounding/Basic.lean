module

public import Attention.Proof.Softmax.Attention
public import Attention.Proof.Rounding.Run
public import Attention.Proof.Rounding.Shares

public section

/-! # No attention function that rounds exceeds its tolerance

`rounded_attention`: whatever computes a row's attention as `Model.Run` may, by parts, in any order
and with every operation rounded, is within `Spec.tolerance` of the exact attention. Of the row it
takes two things from elsewhere, how far off the scores are and how often a key's part is rounded
and rescaled; the invariant of `RoundedRun` says what that makes of the weights and of the sums,
`RoundingShares` what it makes of their quotient.
Source: docs/tolerances.md, sections 1 to 4. -/

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

private theorem boundedWeight_value (p : Precision R) (rescalings : Nat) (M Δ : R)
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

/-- What the invariant says of a weight, with the errors of the scores, is at most the factor of the
tolerance. -/
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

/-! ## The exact output -/

private theorem sums_eq_attend {d : Nat} {keys : List (ComputedKey R)}
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

/-! ## The theorem -/

omit [OrderedField R] [Exponential R R] in
private theorem exists_zip {α β γ : Type u} {f : α → γ} {g : β → γ} {xs : List α} {ys : List β}
    (h : xs.map f = ys.map g) : ∃ zs : List (α × β),
      zs.map (·.1) = xs ∧ zs.map (·.2) = ys ∧ ∀ z ∈ zs, f z.1 = g z.2 := by
  induction xs generalizing ys with
  | nil =>
    cases ys with
    | nil => exact ⟨[], rfl, rfl, fun z hz => nomatch hz⟩
    | cons y ys => simp at h
  | cons x xs ih =>
    cases ys with
    | nil => simp at h
    | cons y ys =>
      simp only [List.map_cons, List.cons.injEq] at h
      obtain ⟨zs, rfl, rfl, h₃⟩ := ih h.2
      refine ⟨(x, y) :: zs, rfl, rfl, fun z hz => ?_⟩
      rcases List.mem_cons.mp hz with rfl | hz
      · exact h.1
      · exact h₃ z hz

omit [Exponential R R] in
private theorem below_top {m s M c Δ : R} (h : s ≤ M) (hm : m ≤ s + c + Δ) : m ≤ M + c + Δ := by
  grind

omit [Exponential R R] in
private theorem div_mul (x y t : R) : x / y * t = x * t / y := by grind

omit [Exponential R R] in
private theorem kept_left (x w t y : R) : (1 + x) * (w * 1) * (t * y) = t * ((1 + x) * (w * y)) := by
  grind

omit [Exponential R R] in
private theorem kept_right (x y z : R) : x * 1 * (y - z) = x * y - x * z := by grind

omit [Exponential R R] in
private theorem absolute_one_eq : absolute (1 : R) = 1 := by
  have := OrderedRing.zero_lt_one (R := R)
  rw [absolute, OrderedField.max_def]
  split <;> grind

omit [Exponential R R] in
private theorem weighted_size {w v v' T : R} (hw : 0 ≤ w)
    (h : AtMost ((T - 1) * absolute v) (v' - v)) : w * absolute v' ≤ T * (w * absolute v) := by
  have h₁ := h.add (atMost_absolute v)
  rw [show v' - v + v = v' by grind] at h₁
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (absolute_le h₁) hw
  rwa [show w * ((T - 1) * absolute v + absolute v) = T * (w * absolute v) by grind] at h₂

omit [Exponential R R] in
private theorem scaled {s x y T : R} (hs : 0 ≤ s) (h : x ≤ T * y) :
    (1 + s) * x ≤ T * ((1 + s) * y) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left h (c := 1 + s) (by grind)
  rwa [show (1 + s) * (T * y) = T * ((1 + s) * y) by grind] at h₁

omit [Exponential R R] in
private theorem one_le_one_add {x : R} (h : 0 ≤ x) : 1 ≤ 1 + x := by grind

omit [Exponential R R] in
private theorem sub_one_nonneg {x : R} (h : 1 ≤ x) : 0 ≤ x - 1 := by grind

omit [Exponential R R] in
private theorem between (x y w : R) : x - y + (y - w) = x - w := by grind

omit [Exponential R R] in
private theorem both_factors (G T S : R) : (G - 1) * (T * S) + (T - 1) * S = (G * T - 1) * S := by
  grind

omit [Exponential R R] in
private theorem factors_le {A B C T : R} (hT : 1 ≤ T) (h : A * B ≤ C) :
    A * T * B - 1 ≤ C * T - 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h (c := T) (by grind)
  rw [show A * T * B = A * B * T by grind]
  grind

omit [Exponential R R] in
private theorem atMost_same (x y : R) : AtMost ((1 - 1) * x) (y - y) := by
  rw [show (1 - 1) * x = (0 : R) by grind, show y - y = (0 : R) by grind]
  exact ⟨by grind, Std.le_refl _⟩

/-- A part that has computed with other values than the exact ones, each off by a relative error of
T − 1 that comes to that of the numerator: `a` is a unit roundoff that covers both. -/
theorem rounded_attention_of_values {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {a T : R} (hT : 1 ≤ T) {keys : List (ComputedKey R × R)}
    (used : part.keys = keys.map fun k => { k.1 with value := k.2 })
    (values : ∀ k ∈ keys, AtMost ((T - 1) * absolute k.1.value) (k.2 - k.1.value))
    {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : keys.map (fun k => (k.1.score, k.1.value))
      = row.map (fun k => (k.score, k.value[j])))
    {c : R} (reached : ∃ key ∈ keys, ∃ s, key.1.score = some s ∧
      m ≤ s + c + largestError (keys.map (·.1.toBoundedKey)))
    (close : ∀ key ∈ keys, ∀ s, key.1.score = some s →
      AtMost key.1.error (key.1.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hA : (1 + p.accumulation) ^ (roundings + 6) * T - 1 ≤ gamma (roundings + 6) a)
    (haN : 0 ≤ a ∧ 0 ≤ gamma (roundings + 6) a) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance { p with accumulation := a } roundings rescalings negligible
      (keys.map (·.1.toBoundedKey))) (o - (attend row)[j]) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨ws, hkeys, hmasked, hws, hstored, hl, ho⟩ := run_weights hp run
  rw [used] at hkeys
  obtain ⟨zs, rfl, rfl, hzs⟩ := exists_zip hkeys.symm
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor result
  obtain ⟨top, htop, s₀, hs₀, hm₀⟩ := reached
  have hscore : top.1.score ≠ none := by simp [hs₀]
  let exactKeys : List (ComputedKey R) := (zs.map (·.1)).map (·.1)
  have hrow₀ : (zs.map (·.1)).map (·.1.toBoundedKey) = exactKeys.map (·.toBoundedKey) := by
    simp only [exactKeys, List.map_map]
    rfl
  rw [hrow₀] at hm₀ ⊢
  have hmax : ∀ {key}, key ∈ exactKeys →
      key.score ∈ (exactKeys.map (·.toBoundedKey)).map (·.score) := fun h =>
    List.mem_map_of_mem (f := (·.score)) (List.mem_map_of_mem (f := (·.toBoundedKey)) h)
  have htop' : top.1 ∈ exactKeys := List.mem_map_of_mem htop
  obtain ⟨M, hM⟩ : ∃ M, rowMax ((exactKeys.map (·.toBoundedKey)).map (·.score)) = some M :=
    Option.ne_none_iff_exists'.mp fun h => hscore (rowMax_eq_none.mp h _ (hmax htop'))
  have hle : ∀ key ∈ exactKeys, ∀ s, key.score = some s → s ≤ M := fun key hk s hs => by
    have h := le_rowMax (hmax hk)
    rw [hM, hs] at h
    exact h
  have close' : ∀ key ∈ exactKeys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)) := fun key hk s hs => by
    obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hk
    exact close k hk s hs
  have herror : ∀ key ∈ exactKeys, key.score ≠ none →
      0 ≤ key.error ∧ key.error ≤ largestError (exactKeys.map (·.toBoundedKey)) :=
    fun key hk hs => by
      obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs
      exact ⟨(close' key hk s hs').nonneg, error_le_largestError (List.mem_map_of_mem hk) hs⟩
  generalize hΔ : largestError (exactKeys.map (·.toBoundedKey)) = Δ at herror hm₀
  have hm : m ≤ M + c + Δ := below_top (hle top.1 htop' s₀ hs₀) hm₀
  let b : ComputedKey R → BoundedWeight R := fun k =>
    boundedWeight p rescalings (some M) Δ k.toBoundedKey
  let ys : List (BoundedWeight R × R × R) := zs.map fun z => (b z.1.1, z.2.2)
  have hrow : ys.map (·.1) = boundedWeights p rescalings (exactKeys.map (·.toBoundedKey)) := by
    rw [boundedWeights_eq hM, hΔ]
    simp only [ys, b, exactKeys, List.map_map]
    rfl
  have hkey : ∀ z ∈ zs, z.2.1.score = z.1.1.score ∧ z.2.1.computed = z.1.1.computed ∧
      z.2.1.value = z.1.2 := fun z hz => by
    rw [← hzs z hz]
    exact ⟨rfl, rfl, rfl⟩
  have hsnd : ∀ z ∈ zs, z.2 ∈ zs.map (·.2) := fun z hz => List.mem_map_of_mem hz
  have hoff : OffByFactors (exp (M + c - m)) (ys.map fun z => (z.1, z.2.1)) := by
    have := offByFactors_of_stored hp hr (keys := exactKeys)
      (ws := zs.map fun z => (z.1.1, z.2.2)) ⟨top.1, htop', hscore⟩ hm hle herror close'
      (by simp only [exactKeys, List.map_map]; rfl)
      (fun k hk hs => by
        obtain ⟨z, hz, rfl⟩ := List.mem_map.mp hk
        exact hmasked z.2 (hsnd z hz) ((hkey z hz).1.trans hs))
      (fun k hk hs => by
        obtain ⟨z, hz, rfl⟩ := List.mem_map.mp hk
        have h := hws z.2 (hsnd z hz) (fun h => hs ((hkey z hz).1.symm.trans h))
        rw [(hkey z hz).2.1] at h
        exact h)
    rw [List.map_map] at this ⊢
    exact this
  have hnonneg : ∀ z ∈ zs, 0 ≤ z.2.2.1 := fun z hz => by
    by_cases hs : z.2.1.score = none
    · rw [hmasked z.2 (hsnd z hz) hs]
      exact Std.le_refl _
    · exact Std.le_of_lt (hws z.2 (hsnd z hz) hs).2.1
  have e₂ : sumOver (fun z => z.1.weight * z.1.value) ys / sumOver (fun z => z.1.weight) ys
      = (attend row)[j] := by
    rw [← sums_eq_attend (keys := exactKeys) hj (by
      rw [← same]
      simp only [exactKeys, List.map_map]
      rfl) p rescalings M Δ]
    simp only [ys, b, exactKeys, sumOver_map, boundedWeight_value]
  have e₃ : part.o / part.l * t = part.o * t / part.l := div_mul _ _ _
  have e₄ : ∀ f : R → R, sumOver (fun z => z.2.1 * f z.1.value) ys
      = sumOver (fun z : (ComputedKey R × R) × ComputedKey R × R × R =>
        z.2.2.1 * f z.1.1.value) zs := fun f => by
    simp only [ys, b, sumOver_map, boundedWeight_value]
  have e₅ : sumOver (fun z => z.2.2 * z.1.value) ys
      = sumOver (fun z : (ComputedKey R × R) × ComputedKey R × R × R =>
        z.2.2.2 * z.1.1.value) zs := by
    simp only [ys, b, sumOver_map, boundedWeight_value]
  have hsize : AtMost ((1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) ys)
      (sumOver (fun z => z.2.2 * z.1.value) ys) := by
    rw [e₄, e₅, ← sumOver_mul_left]
    exact sumOver_atMost fun z hz => stored_atMost (hnonneg z hz) (hstored z.2 (hsnd z hz))
  -- The numerator of the values used, against that of the exact ones.
  have hvalues : AtMost ((T - 1) * ((1 + p.stored)
        * sumOver (fun z => z.2.1 * absolute z.1.value) ys))
      (sumOver (fun z => z.2.2.2 * z.1.2) zs - sumOver (fun z => z.2.2 * z.1.value) ys) := by
    rw [e₄, e₅, ← sumOver_mul_left, ← sumOver_mul_left]
    refine sumOver_error fun z hz => ?_
    have h₁ := stored_atMost (v := 1) (hnonneg z hz) (hstored z.2 (hsnd z hz))
    have h₂ := h₁.mul (values z.1 (List.mem_map_of_mem hz))
    rw [absolute_one_eq, kept_left, kept_right] at h₂
    exact h₂
  have hsizes : (1 + p.stored) * sumOver (fun z : (ComputedKey R × R) × ComputedKey R × R × R =>
        z.2.2.1 * absolute z.1.2) zs
      ≤ T * ((1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) ys) := by
    rw [e₄]
    have h : sumOver (fun z : (ComputedKey R × R) × ComputedKey R × R × R =>
          z.2.2.1 * absolute z.1.2) zs
        ≤ T * sumOver (fun z : (ComputedKey R × R) × ComputedKey R × R × R =>
          z.2.2.1 * absolute z.1.1.value) zs := by
      rw [← sumOver_mul_left]
      refine sumOver_le_sumOver fun z hz => ?_
      exact weighted_size (hnonneg z hz) (values z.1 (List.mem_map_of_mem hz))
    exact scaled hp.stored h
  have ho' : AtMost (((1 + p.accumulation) ^ (part.additions + part.rescalings + 1) * T - 1)
        * ((1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) ys))
      (part.o - sumOver (fun z => z.2.2 * z.1.value) ys) := by
    have f₁ : sumOver (fun k : ComputedKey R × R × R => k.2.1 * absolute k.1.value) (zs.map (·.2))
        = sumOver (fun z : (ComputedKey R × R) × ComputedKey R × R × R =>
          z.2.2.1 * absolute z.1.2) zs := by
      rw [sumOver_map]
      exact sumOver_congr fun z hz => by rw [(hkey z hz).2.2]
    have f₂ : sumOver (fun k : ComputedKey R × R × R => k.2.2 * k.1.value) (zs.map (·.2))
        = sumOver (fun z : (ComputedKey R × R) × ComputedKey R × R × R =>
          z.2.2.2 * z.1.2) zs := by
      rw [sumOver_map]
      exact sumOver_congr fun z hz => by rw [(hkey z hz).2.2]
    rw [f₁, f₂] at ho
    have hG := OrderedField.one_le_pow (x := 1 + p.accumulation)
      (one_le_one_add hp.accumulation) (part.additions + part.rescalings + 1)
    generalize (1 + p.accumulation) ^ (part.additions + part.rescalings + 1) = G at *
    have h := (ho.mono (OrderedRing.mul_le_mul_of_nonneg_left hsizes (c := G - 1)
      (sub_one_nonneg hG))).add hvalues
    generalize (1 + p.stored) * sumOver (fun z => z.2.1 * absolute z.1.value) ys = S at *
    rwa [between, both_factors] at h
  have hnum := atMost_mul_sub hsize ho' ht
  rw [e₃, ← e₂]
  refine hoff.quotient (p := { p with accumulation := a })
    ⟨hp.unit, haN.1, hp.exponential, hp.exponential_lt, hp.stored, hp.remaining⟩ hrow
    (fun z hz => ?_) ha (A := (1 + p.accumulation) ^ (part.additions + part.rescalings + 1) * T
      * (1 + p.accumulation) ^ 5) (Std.le_trans ?_ hA) haN.2 hD hnum ?_ negligible
  · obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hz
    exact hstored k.2 (hsnd k hk)
  · have h₁ := OrderedField.pow_le_pow (x := 1 + p.accumulation)
      (one_le_one_add hp.accumulation)
      (show part.additions + part.rescalings + 1 + 5 ≤ roundings + 6 by omega)
    rw [Semiring.pow_add] at h₁
    exact factors_le hT h₁
  · simp only [ys, sumOver_map] at hl ⊢
    exact hl

/-- `rounded_attention` of a reference point that lies above the score of some key by no more than
scores may be off: a function may round it, or multiply scores and reference point by the scale
apart. -/
theorem rounded_attention_of_le {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    {c : R} (reached : ∃ key ∈ part.keys, ∃ s, key.score = some s ∧
      m ≤ s + c + largestError (part.keys.map (·.toBoundedKey)))
    (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[j]) := by
  have e : ∀ f : ComputedKey R → BoundedKey R, (part.keys.map fun k => (k, k.value)).map
      (fun k => f k.1) = part.keys.map f := fun f => by
    rw [List.map_map]
    rfl
  have := rounded_attention_of_values hp run (a := p.accumulation) (T := 1) (Std.le_refl _)
    (keys := part.keys.map fun k => (k, k.value)) (by
      rw [List.map_map]
      exact (List.map_id _).symm)
    (fun k hk => by
      obtain ⟨key, _, rfl⟩ := List.mem_map.mp hk
      exact atMost_same _ _) hj (by rw [← same, List.map_map]; rfl) (c := c)
    (by
      obtain ⟨key, hk, s, hs, h⟩ := reached
      refine ⟨_, List.mem_map_of_mem hk, s, hs, ?_⟩
      rw [e]
      exact h)
    (fun k hk => by
      obtain ⟨key, hk, rfl⟩ := List.mem_map.mp hk
      exact close key hk) hr ha
    (by
      rw [Semiring.mul_one]
      exact pow_sub_one_le_gamma hp.accumulation (Nat.le_refl _) hN)
    ⟨hp.accumulation, gamma_nonneg hp.accumulation hN⟩ hD result negligible
  rw [e] at this
  exact this

/-- **rounded-attention**: every function that computes a row's attention by parts, in any order,
with every operation rounded, is within the tolerance of the exact attention. The scores that it
computed may be off by δ each and by a constant `c` that all keys share, `m` is the largest of them,
a key's part is rescaled at most `rescalings` times and goes through at most `roundings` roundings
of sums and rescalings, and the quotient is rounded once, or up to five times. -/
theorem rounded_attention {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[j]) := by
  refine rounded_attention_of_le hp run hj same ?_ close hr ha hN hD result negligible
  obtain ⟨top, htop, hscore, rfl⟩ := attained
  obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hscore
  have h₁ := (close top htop s hs).2
  have h₂ := error_le_largestError (List.mem_map_of_mem (f := (·.toBoundedKey)) htop) hscore
  exact ⟨top, htop, s, hs, by grind⟩

/-- `rounded_attention` of a result that is stored in a format of its own. -/
theorem rounded_output {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) {u o' : R}
    (stored : Rounded u o o') (negligible : R) :
    AtMost (storedTolerance p u roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o' - (attend row)[j]) := by
  have h := rounded_attention hp run hj same attained close hr ha hN hD result negligible
  obtain ⟨top, htop, hscore, -⟩ := attained
  rw [storedTolerance, exactOutput_eq_attend hj (by rwa [List.map_map])
    ⟨_, List.mem_map_of_mem htop, hscore⟩ p rescalings]
  obtain ⟨θ, hθ, rfl⟩ := stored
  have h₁ := h.add (hθ.mul ((atMost_absolute (attend row)[j]).add h))
  have e : o - (attend row)[j] + θ * ((attend row)[j] + (o - (attend row)[j]))
      = o * (1 + θ) - (attend row)[j] := by grind
  rwa [e] at h₁

end Attention.Proof
