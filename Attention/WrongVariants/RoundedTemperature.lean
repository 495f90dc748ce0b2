module

public import Attention.Proof.Rounding.Temperature
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the gradients by queries and by their temperature

Gradients with the temperature where it does not belong, or without it where it does, and bounds
that do not count that the gradient by the queries times the temperature is stored, or what that or
products lose below the normal numbers.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- A number that a function may compute for the gradient by the temperature `t`, of one component
`q` of one query and the gradient `z'` by t q. -/
@[expose] def computedByTemperature (a ν : R) (roundings : Nat) (_ z' q w : R) : Prop :=
  ComputedSumOver a ν roundings (components 1 1 1) (fun _ => z') (fun _ => q) w

/-- The claim of `rounded_temperature` about the gradient by the temperature, of one component, for
any function and any bound. -/
abbrev TemperaturesStay
    (computes : R → R → Nat → R → R → R → R → Prop := computedByTemperature)
    (term : R → R → R → R → R → R → GradientTerm R := storedGradientTerm)
    (total : R → R → R → R → Nat → List (GradientTerm R) → R := totalError) : Prop :=
  ∀ (a u ν η t D q size error z z' w : R) (roundings : Nat), 0 ≤ a → 0 ≤ ν →
    numeral roundings * a < 1 → AtMost error (z - D) → AtMost size D → StoredBelow u η z z' →
    computes a ν roundings t z' q w →
    AtMost (total a 0 ν 0 roundings [term u η D size error q]) (w - D * q)

/-- Positive control: the functions and the bound of the theorem. -/
theorem temperatures_stay : TemperaturesStay (R := R) :=
  fun _ _ _ _ t D q size error z z' w _ ha hν hc hz hs hz' h => by
    have h := (Proof.rounded_temperature (n := 1) (q_len := 1) (d := 1) ha hν hc (t := t)
      (D := fun _ => #v[#v[D]]) (Q := fun _ => #v[#v[q]]) (size := fun _ => size)
      (error := fun _ => error) (z := fun _ => z) (z' := fun _ => z')
      (fun ⟨0, 0, 0⟩ => hz) (fun ⟨0, 0, 0⟩ => hs) (fun _ => hz')).2 w
      (by
        obtain ⟨k, products, hk, hn, hp, hw⟩ := h
        exact ⟨k, products, hk, hn,
          fun | ⟨0, 0, 0⟩, _ => hp _ (List.mem_singleton.mpr rfl), hw⟩)
    have e : sumOver (fun _ : Fin 1 => Matrix.inner (#v[#v[D]] : Matrix R 1 1) #v[#v[q]])
        (List.finRange 1) = D * q := by
      show (D * q + 0 + 0 : R) + 0 = D * q
      grind
    rw [e] at h
    exact h

/-- The claim of `rounded_temperature` about the gradient by a query. -/
abbrev QueriesStay
    (computes : R → R → R → R → R → Prop := fun a ν t z' w => StoredBelow a ν (z' * t) w)
    (total : R → R → R → R → Nat → List (GradientTerm R) → R := totalError) : Prop :=
  ∀ (a u ν η t D size error z z' w : R) (roundings : Nat), 0 ≤ a → 0 ≤ ν →
    numeral roundings * a < 1 → 1 ≤ roundings → AtMost error (z - D) → AtMost size D →
    StoredBelow u η z z' → computes a ν t z' w →
    AtMost (total a 0 ν 0 roundings [storedGradientTerm u η D size error t]) (w - t * D)

/-- Positive control. -/
theorem queries_stay : QueriesStay (R := R) :=
  fun _ _ _ _ t D size error z z' w _ ha hν hc hr hz hs hz' h =>
    (Proof.rounded_temperature (n := 1) (q_len := 1) (d := 1) ha hν hc (t := t)
      (D := fun _ => #v[#v[D]]) (Q := fun _ => #v[#v[0]]) (size := fun _ => size)
      (error := fun _ => error) (z := fun _ => z) (z' := fun _ => z')
      (fun ⟨0, 0, 0⟩ => hz) (fun ⟨0, 0, 0⟩ => hs) (fun _ => hz')).1 (0, 0, 0) w hr h

private theorem none_of (n : Nat) : numeral n * (0 : R) < 1 := by
  rw [Semiring.mul_zero]
  exact OrderedRing.zero_lt_one

/-- The bound of one component where no product is rounded. -/
private theorem total_one (e s q : R) :
    totalError 0 0 0 0 1 [(⟨s, e, q⟩ : GradientTerm R)] = e * absolute q := by
  rw [totalError, gamma_zero, Semiring.mul_zero]
  show (e + ((1 + 0) * (1 + 0) - 1) * (s + e)) * absolute q + 0
    + (1 + 0) * (0 * (absolute q + 0) + 0) = e * absolute q
  grind

private theorem term_one (u η q : R) :
    storedGradientTerm u η 1 1 0 q = (⟨1, u + η, q⟩ : GradientTerm R) := by
  rw [storedGradientTerm, absolute_one]
  congr 1
  grind

private theorem not_off : AtMost (0 : R) (1 - 1) := ⟨by grind, by grind⟩

private theorem size_one : AtMost (1 : R) 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨by grind, Std.le_refl _⟩

/-- A number that is exact. -/
private theorem kept_as_is {u : R} (hu : 0 ≤ u) (x : R) : StoredBelow u 0 x x :=
  ⟨x, rounded_refl hu x, ⟨by grind, by grind⟩, id⟩

/-- A number that is 1 off below the normal ones, as are all up to 1 of a format whose least number
is 2. -/
private theorem one_off : StoredBelow (0 : R) 1 1 2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨1, rounded_refl (Std.le_refl _) 1, ⟨by grind, by grind⟩, fun h => by grind⟩

/-! ## Functions -/

/-- The gradient by the temperature is made of that by the queries, and so has the temperature as a
factor; nothing is rounded. -/
@[expose] def ofQueryGradient (_ _ : R) (_ : Nat) (t z' q w : R) : Prop := w = t * z' * q

theorem ofQueryGradient_refuted :
    ¬ TemperaturesStay (R := R) ofQueryGradient := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 0 0 2 1 1 1 0 1 1 (2 * 1 * 1) 1 (Std.le_refl _) (Std.le_refl _) (none_of _)
    not_off size_one (kept_as_is (Std.le_refl _) _) rfl
  rw [term_one, total_one, absolute_one] at h
  have := h.2
  clear claim h
  grind

/-- The gradient by the queries times the temperature, in place of that by the queries. -/
@[expose] def withoutTemperature (_ _ _ z' w : R) : Prop := w = z'

theorem withoutTemperature_refuted : ¬ QueriesStay (R := R) withoutTemperature := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 0 0 2 1 1 0 1 1 1 1 (Std.le_refl _) (Std.le_refl _) (none_of _)
    (Nat.le_refl _) not_off size_one (kept_as_is (Std.le_refl _) _) rfl
  rw [term_one, total_one, Semiring.add_zero, Semiring.zero_mul] at h
  have := h.1
  clear claim h
  grind

/-! ## Bounds -/

/-- A bound that does not count the store. -/
@[expose] def notStored (_ _ exact size error other : R) : GradientTerm R :=
  storedGradientTerm 0 0 exact size error other

theorem notStored_refuted : ¬ TemperaturesStay (R := R) (term := notStored) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 (1 / 2) 0 0 1 1 1 1 0 1 (3 / 2) (3 / 2) 1 (Std.le_refl _) (Std.le_refl _)
    (none_of _) not_off size_one
    ⟨3 / 2, ⟨1 / 2, ⟨by grind, Std.le_refl _⟩, by grind⟩, ⟨by grind, by grind⟩, fun h => by grind⟩
    ⟨0, fun _ => 3 / 2, Nat.le_refl _, Nat.le_refl _, fun _ _ => by
      rw [Semiring.mul_one]
      exact kept_as_is (Std.le_refl _) _, .one⟩
  rw [notStored, term_one, total_one, Semiring.add_zero, Semiring.zero_mul] at h
  have := h.2
  clear claim h
  grind

/-- A bound that does not count what the store loses below the normal numbers. -/
@[expose] def temperatureStoreUnderflowNotCounted (stored _ exact size error other : R) :
    GradientTerm R :=
  storedGradientTerm stored 0 exact size error other

theorem temperatureStoreUnderflowNotCounted_refuted :
    ¬ TemperaturesStay (R := R) (term := temperatureStoreUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 0 1 1 1 1 1 0 1 2 2 1 (Std.le_refl _) (Std.le_refl _) (none_of _) not_off
    size_one one_off
    ⟨0, fun _ => 2, Nat.le_refl _, Nat.le_refl _, fun _ _ => by
      rw [Semiring.mul_one]
      exact kept_as_is (Std.le_refl _) _, .one⟩
  rw [temperatureStoreUnderflowNotCounted, term_one, total_one, Semiring.add_zero,
    Semiring.zero_mul] at h
  have := h.2
  clear claim h
  grind

/-- A bound that does not count what products lose below the normal numbers. -/
@[expose] def temperatureTotalUnderflowNotCounted (accumulation stored _ _ : R) (roundings : Nat)
    (terms : List (GradientTerm R)) : R :=
  totalError accumulation stored 0 0 roundings terms

theorem temperatureTotalUnderflowNotCounted_refuted :
    ¬ TemperaturesStay (R := R) (total := temperatureTotalUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 1 0 1 1 1 1 0 1 1 2 1 (Std.le_refl _) (Std.le_of_lt h₀) (none_of _) not_off
    size_one (kept_as_is (Std.le_refl _) _)
    ⟨0, fun _ => 2, Nat.le_refl _, Nat.le_refl _, fun _ _ => by
      rw [Semiring.mul_one]
      exact one_off, .one⟩
  rw [temperatureTotalUnderflowNotCounted, term_one, total_one, Semiring.add_zero,
    Semiring.zero_mul] at h
  have := h.2
  clear claim h
  grind

/-- So it is in the gradient by a query. -/
theorem queryByTemperatureUnderflowNotCounted_refuted :
    ¬ QueriesStay (R := R) (total := temperatureTotalUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 1 0 1 1 1 0 1 1 2 1 (Std.le_refl _) (Std.le_of_lt h₀) (none_of _)
    (Nat.le_refl _) not_off size_one (kept_as_is (Std.le_refl _) _) (by
      show StoredBelow 0 1 (1 * 1) 2
      rw [Semiring.mul_one]
      exact one_off)
  rw [temperatureTotalUnderflowNotCounted, term_one, total_one, Semiring.add_zero,
    Semiring.zero_mul] at h
  have := h.2
  clear claim h
  grind

end Attention.WrongVariants
