module

public import Attention.Model.RoundedTangents
public import Attention.Proof.Rounding.Dot

public section

/-! # Errors by sizes

A computed number is known by how large it is at most, M, and by the sum S of the sizes of the terms
of the exact one; it is off by at most M − S. Products, sums and roundings keep that form.
Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.3 (running error
analysis). -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}

/-- `z` is at most `M`, and off from `e`, whose terms are of sizes that sum to at most `S`, by at
most `M - S`. -/
structure Near (M S e z : R) : Prop where
  /-- Of the exact number. -/
  exact : AtMost S e
  /-- Of the computed number. -/
  most : AtMost M z
  /-- How far it is off. -/
  error : AtMost (M - S) (z - e)

namespace Near

variable {M M' S S' e e' z z' : R}

/-- What is off by `d`. -/
theorem of_error {d : R} (he : AtMost S e) (h : AtMost d (z - e)) : Near (S + d) S e z := by
  refine ⟨he, ?_, h.mono (by grind)⟩
  have := he.add h
  rwa [show e + (z - e) = z by grind] at this

/-- An exact number. -/
theorem refl (he : AtMost S e) : Near S S e e := by
  have h : AtMost 0 (e - e) := by
    rw [show e - e = 0 by grind]
    exact .zero (Std.le_refl _)
  have h₁ := of_error he h
  rwa [show S + 0 = S by grind] at h₁

/-- A larger bound. -/
theorem mono (h : Near M S e z) (hM : M ≤ M') : Near M' S e z :=
  ⟨h.exact, h.most.mono hM, h.error.mono (by grind)⟩

/-- The bound is at least the size. -/
theorem le (h : Near M S e z) : S ≤ M := by
  have := h.error.nonneg
  grind

/-- The bound is not negative. -/
theorem nonneg (h : Near M S e z) : 0 ≤ M := h.most.nonneg

/-- A factor. -/
theorem factor {F t : R} (h : Near M S e z) (ht : AtMost (F - 1) (t - 1)) :
    Near (F * M) S e (z * t) := by
  have h₁ := (h.most.mul ht).add h.error
  have h₂ := (h.most.mul ht).add h.most
  rw [show z * (t - 1) + (z - e) = z * t - e by grind] at h₁
  rw [show z * (t - 1) + z = z * t by grind] at h₂
  exact ⟨h.exact, h₂.mono (by grind), h₁.mono (by grind)⟩

/-- One rounding. -/
theorem rounded {u : R} (h : Near M S e z) (hz : Rounded u z z') : Near ((1 + u) * M) S e z' := by
  obtain ⟨t, rfl, ht⟩ := rounded_factor hz
  exact h.factor ht

/-- What is off by `η` more. -/
theorem off {η : R} (h : Near M S e z) (hz : AtMost η (z' - z)) : Near (M + η) S e z' := by
  have h₁ := h.error.add hz
  have h₂ := h.most.add hz
  rw [show z - e + (z' - z) = z' - e by grind] at h₁
  rw [show z + (z' - z) = z' by grind] at h₂
  exact ⟨h.exact, h₂, h₁.mono (by grind)⟩

/-- A number that is stored, perhaps below the normal numbers. -/
theorem storedNear {u η : R} (h : Near M S e z) (hz : StoredNear u η z z') :
    Near ((1 + u) * M + η) S e z' := by
  obtain ⟨y, hy, hz⟩ := hz
  exact (h.rounded hy).off hz

/-- Roundings in a row. -/
theorem roundedTimes {u : R} {k : Nat} (h : Near M S e z) (hz : RoundedTimes u k z z') :
    Near ((1 + u) ^ k * M) S e z' := by
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor hz
  exact h.factor ht

/-- A number that is stored: as a whole, with what it is off by. -/
theorem stored {u : R} (h : Near M S e z) (hz : Rounded u z z') :
    Near (M + u * (absolute e + (M - S))) S e z' := by
  obtain ⟨θ, hθ, rfl⟩ := hz
  have h₁ := h.error.add (hθ.mul ((atMost_absolute e).add h.error))
  have e₁ : z - e + θ * (e + (z - e)) = z * (1 + θ) - e := by grind
  rw [e₁] at h₁
  have h₂ := of_error h.exact h₁
  rwa [show S + (M - S + u * (absolute e + (M - S))) = M + u * (absolute e + (M - S)) by grind]
    at h₂

/-- A product. -/
theorem mul (h : Near M S e z) (h' : Near M' S' e' z') :
    Near (M * M') (S * S') (e * e') (z * z') := by
  have h₁ := (h.most.mul h'.error).add (h.error.mul h'.exact)
  rw [show z * (z' - e') + (z - e) * e' = z * z' - e * e' by grind] at h₁
  exact ⟨h.exact.mul h'.exact, h.most.mul h'.most, h₁.mono (by grind)⟩

/-- A sum. -/
theorem add (h : Near M S e z) (h' : Near M' S' e' z') :
    Near (M + M') (S + S') (e + e') (z + z') := by
  have h₁ := h.error.add h'.error
  rw [show z - e + (z' - e') = z + z' - (e + e') by grind] at h₁
  exact ⟨h.exact.add h'.exact, h.most.add h'.most, h₁.mono (by grind)⟩

/-- The negative. -/
theorem neg (h : Near M S e z) : Near M S (-e) (-z) := by
  obtain ⟨⟨h₁, h₂⟩, ⟨h₃, h₄⟩, ⟨h₅, h₆⟩⟩ := h
  exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩

/-- A difference. -/
theorem sub (h : Near M S e z) (h' : Near M' S' e' z') :
    Near (M + M') (S + S') (e - e') (z - z') := by
  have h₁ := h.add h'.neg
  rwa [show e + -e' = e - e' by grind, show z + -z' = z - z' by grind] at h₁

/-- A sum over keys. -/
theorem sum {M S e z : α → R} {xs : List α} (h : ∀ x ∈ xs, Near (M x) (S x) (e x) (z x)) :
    Near (sumOver M xs) (sumOver S xs) (sumOver e xs) (sumOver z xs) := by
  refine ⟨sumOver_atMost fun x hx => (h x hx).exact, sumOver_atMost fun x hx => (h x hx).most, ?_⟩
  rw [← sumOver_sub]
  exact sumOver_error fun x hx => (h x hx).error

/-- What is near to a number that is near. -/
theorem trans {T : R} (h : Near M S e z) (hz : AtMost ((T - 1) * M) (z' - z)) :
    Near (T * M) S e z' := by
  have h₁ := hz.add h.error
  have h₂ := hz.add h.most
  rw [show z' - z + (z - e) = z' - e by grind] at h₁
  rw [show z' - z + z = z' by grind] at h₂
  exact ⟨h.exact, h₂.mono (by grind), h₁.mono (by grind)⟩

/-- A rounded sum of numbers that are near to exact ones. -/
theorem roundedSum {u : R} (hu : 0 ≤ u) {k : Nat} {xs : List α} {M S y x : α → R}
    (h : ∀ j ∈ xs, Near (M j) (S j) (y j) (x j)) {z : R} (hz : RoundedSum u k (xs.map x) z) :
    Near ((1 + u) ^ k * sumOver M xs) (sumOver S xs) (sumOver y xs) z := by
  have h₁ := roundedSum_error hu hz
  rw [sumOver_map, sumOver_map] at h₁
  refine (Near.sum h).trans (h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left
    (sumOver_le_sumOver fun j hj => absolute_le (h j hj).most) ?_))
  have := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  grind

end Near

/-! ## Sums that are rescaled -/

private theorem near_one_le_power {a e : R} (ha : 0 ≤ a) (he : 0 ≤ e) (k r : Nat) :
    1 ≤ (1 + a) ^ k * (1 + e) ^ r := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.one_le_pow (x := 1 + a) (by grind) k
  have h₂ := OrderedField.one_le_pow (x := 1 + e) (by grind) r
  have := OrderedField.mul_le_mul (a := 1) (Std.le_of_lt h₀) h₁ (c := 1) (Std.le_of_lt h₀) h₂
  grind

private theorem near_nonneg (xs : List R) : 0 ≤ sumOver absolute xs :=
  sumOver_nonneg fun x _ => absolute_nonneg x

private theorem near_absolute_mul (x y : R) : absolute (x * y) = absolute x * absolute y :=
  Std.le_antisymm (absolute_le ((atMost_absolute x).mul (atMost_absolute y)))
    (absolute_mul_le x y)

private theorem near_id_atMost (xs : List R) : AtMost (sumOver absolute xs) (sumOver id xs) :=
  sumOver_atMost fun x _ => atMost_absolute x

private theorem near_scaled {T Φ c t z : R} {xs : List R}
    (h : Near (T * sumOver absolute xs) (sumOver absolute xs) (sumOver id xs) z)
    (ht : AtMost (Φ - 1) (t - 1)) :
    Near (Φ * T * sumOver absolute (xs.map (c * ·))) (sumOver absolute (xs.map (c * ·)))
      (sumOver id (xs.map (c * ·))) (c * z * t) := by
  have h₁ := ((Near.refl (atMost_absolute c)).mul h).factor ht
  have e₁ : sumOver absolute (xs.map (c * ·)) = absolute c * sumOver absolute xs := by
    rw [sumOver_map, ← sumOver_mul_left]
    exact sumOver_congr fun x _ => near_absolute_mul c x
  have e₂ : sumOver id (xs.map (c * ·)) = c * sumOver id xs := by
    rw [sumOver_map, ← sumOver_mul_left]
    rfl
  rw [e₁, e₂]
  generalize sumOver absolute xs = s at *
  rwa [show Φ * T * (absolute c * s) = Φ * (absolute c * (T * s)) by grind]

/-- A sum in which each number goes through `k` roundings and `r` rescalings. -/
theorem rescaledSum_near {a e : R} (ha : 0 ≤ a) (he : 0 ≤ e) {k r : Nat} {xs : List R} {z : R}
    (h : RescaledSum a e k r xs z) :
    Near ((1 + a) ^ k * (1 + e) ^ r * sumOver absolute xs) (sumOver absolute xs)
      (sumOver id xs) z := by
  have grown : ∀ (k r : Nat) (xs : List R), sumOver absolute xs
      ≤ (1 + a) ^ k * (1 + e) ^ r * sumOver absolute xs := fun k r xs => by
    have := OrderedRing.mul_le_mul_of_nonneg_right (near_one_le_power ha he k r) (near_nonneg xs)
    rwa [Semiring.one_mul] at this
  induction h with
  | @nil k r => exact (Near.refl (near_id_atMost [])).mono (grown k r [])
  | @one k r x =>
    have e₁ : sumOver id [x] = x := by
      rw [sumOver_cons, sumOver_nil, id, Semiring.add_zero]
    have h := (Near.refl (near_id_atMost [x])).mono (grown k r [x])
    rw [e₁] at h ⊢
    exact h
  | @zero k r xs z _ ih =>
    have e₁ : absolute (0 : R) = 0 := by
      rw [absolute, OrderedField.max_def]
      split <;> grind
    have e₂ : sumOver absolute (0 :: xs) = sumOver absolute xs := by
      rw [sumOver_cons, e₁]
      grind
    have e₃ : sumOver id (0 :: xs) = sumOver id xs := by
      rw [sumOver_cons, id]
      grind
    rwa [e₂, e₃]
  | @add k r xs ys x x' y y' _ _ hx hy hx' hy' =>
    have h := (hx'.rounded hx).add (hy'.rounded hy)
    rw [sumOver_append, sumOver_append]
    refine h.mono ?_
    rw [Semiring.pow_succ]
    generalize sumOver absolute xs = s
    generalize sumOver absolute ys = s'
    generalize (1 + a) ^ k = A
    generalize (1 + e) ^ r = E
    clear h hx hy hx' hy' grown
    grind
  | @permute k r xs ys z _ hp ih => rwa [← sumOver_perm _ hp, ← sumOver_perm _ hp]
  | @rescale k r xs c c' z z' _ hc hz ih =>
    obtain ⟨t, rfl, ht⟩ := rounded_factor hc
    obtain ⟨t', rfl, ht'⟩ := rounded_factor hz
    have h := near_scaled (c := c) ih (factor_mul ht ht')
    rw [show c * z * (t * t') = c * t * z * t' by grind] at h
    refine h.mono ?_
    rw [Semiring.pow_succ, Semiring.pow_succ]
    generalize sumOver absolute (xs.map (c * ·)) = s
    generalize (1 + a) ^ k = A
    generalize (1 + e) ^ r = E
    clear h ih hc hz ht ht' grown
    grind
  | @divide k r xs l z z' _ hz ih =>
    obtain ⟨t, rfl, ht⟩ := roundedTimes_factor hz
    have h := near_scaled (c := 1 / l) ih ht
    have e₁ : xs.map (1 / l * ·) = xs.map (· / l) := List.map_congr_left fun x _ => by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]
      grind
    rw [e₁, show 1 / l * z * t = z / l * t by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]; grind] at h
    refine h.mono ?_
    rw [Semiring.pow_add]
    generalize sumOver absolute (xs.map (· / l)) = s
    generalize (1 + a) ^ k = A
    generalize (1 + a) ^ 5 = A'
    generalize (1 + e) ^ r = E
    clear h ih hz ht grown
    grind

/-- The same of numbers that are near to exact ones. -/
theorem Near.rescaled {a e : R} (ha : 0 ≤ a) (he : 0 ≤ e) {k r : Nat} {xs : List α}
    {M S y x : α → R} (h : ∀ j ∈ xs, Near (M j) (S j) (y j) (x j)) {z : R}
    (hz : RescaledSum a e k r (xs.map x) z) :
    Near ((1 + a) ^ k * (1 + e) ^ r * sumOver M xs) (sumOver S xs) (sumOver y xs) z := by
  have h₁ := rescaledSum_near ha he hz
  rw [sumOver_map, sumOver_map] at h₁
  refine (Near.sum h).trans (h₁.error.mono ?_)
  have h₂ : sumOver (fun j => absolute (x j)) xs ≤ sumOver M xs :=
    sumOver_le_sumOver fun j hj => absolute_le (h j hj).most
  have h₃ := near_one_le_power ha he k r
  generalize (1 + a) ^ k * (1 + e) ^ r = T at *
  have := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := T - 1) (by grind)
  generalize sumOver (fun j => absolute (x j)) xs = s at *
  grind

end Attention.Proof
