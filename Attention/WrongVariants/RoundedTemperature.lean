module

public import Attention.Proof.Rounding.Temperature
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the gradients by queries and by their temperature

Gradients with the temperature where it does not belong, or without it where it does, and a bound
that does not count that the gradient by the queries times the temperature is stored.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- What a function may compute for the gradient by the temperature `t`, of one component `q` of one
query and the gradient `z'` by t q. -/
@[expose] def computedByTemperature (a : R) (roundings : Nat) (_ z' q w : R) : Prop :=
  ComputedSumOver a roundings (components 1 1 1) (fun _ => z') (fun _ => q) w

/-- The claim of `rounded_temperature` about the gradient by the temperature, of one component, for
any function and any bound. -/
abbrev TemperaturesStay
    (computes : R → Nat → R → R → R → R → Prop := computedByTemperature)
    (term : R → R → R → R → R → GradientTerm R := storedGradientTerm) : Prop :=
  ∀ (a u t D q size error z z' w : R) (roundings : Nat), 0 ≤ a → numeral roundings * a < 1 →
    AtMost error (z - D) → AtMost size D → Rounded u z z' → computes a roundings t z' q w →
    AtMost (totalError a 0 roundings [term u D size error q]) (w - D * q)

/-- Positive control: the functions and the bound of the theorem. -/
theorem temperatures_stay : TemperaturesStay (R := R) :=
  fun _ _ t D q size error z z' w _ ha hc hz hs hz' h => by
    have h := (Proof.rounded_temperature (n := 1) (q_len := 1) (d := 1) ha hc (t := t)
      (D := fun _ => #v[#v[D]]) (Q := fun _ => #v[#v[q]]) (size := fun _ => size)
      (error := fun _ => error) (z := fun _ => z) (z' := fun _ => z')
      (fun ⟨0, 0, 0⟩ => hz) (fun ⟨0, 0, 0⟩ => hs) (fun _ => hz')).2 w
      (by
        obtain ⟨k, products, hk, hp, hw⟩ := h
        exact ⟨k, products, hk, fun | ⟨0, 0, 0⟩, _ => hp _ (List.mem_singleton.mpr rfl), hw⟩)
    have e : sumOver (fun _ : Fin 1 => Matrix.inner (#v[#v[D]] : Matrix R 1 1) #v[#v[q]])
        (List.finRange 1) = D * q := by
      show (D * q + 0 + 0 : R) + 0 = D * q
      grind
    rw [e] at h
    exact h

/-- The claim of `rounded_temperature` about the gradient by a query. -/
abbrev QueriesStay
    (computes : R → R → R → R → Prop := fun a t z' w => Rounded a (z' * t) w) : Prop :=
  ∀ (a u t D size error z z' w : R) (roundings : Nat), 0 ≤ a → numeral roundings * a < 1 →
    1 ≤ roundings → AtMost error (z - D) → AtMost size D → Rounded u z z' → computes a t z' w →
    AtMost (totalError a 0 roundings [storedGradientTerm u D size error t]) (w - t * D)

/-- Positive control. -/
theorem queries_stay : QueriesStay (R := R) :=
  fun _ _ t D size error z z' w _ ha hc hr hz hs hz' h =>
    (Proof.rounded_temperature (n := 1) (q_len := 1) (d := 1) ha hc (t := t)
      (D := fun _ => #v[#v[D]]) (Q := fun _ => #v[#v[0]]) (size := fun _ => size)
      (error := fun _ => error) (z := fun _ => z) (z' := fun _ => z')
      (fun ⟨0, 0, 0⟩ => hz) (fun ⟨0, 0, 0⟩ => hs) (fun _ => hz')).1 (0, 0, 0) w hr h

private theorem none_of (n : Nat) : numeral n * (0 : R) < 1 := by
  rw [Semiring.mul_zero]
  exact OrderedRing.zero_lt_one

/-- The bound of one component where nothing but a store is rounded. -/
private theorem total_one (e s q : R) :
    totalError 0 0 1 [(⟨s, e, q⟩ : GradientTerm R)] = e * absolute q := by
  rw [totalError, gamma_zero]
  show (e + ((1 + 0) * (1 + 0) - 1) * (s + e)) * absolute q + 0 = e * absolute q
  grind

private theorem term_one (u q : R) :
    storedGradientTerm u 1 1 0 q = (⟨1, u, q⟩ : GradientTerm R) := by
  rw [storedGradientTerm, absolute_one]
  congr 1
  grind

private theorem not_off : AtMost (0 : R) (1 - 1) := ⟨by grind, by grind⟩

private theorem size_one : AtMost (1 : R) 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨by grind, Std.le_refl _⟩

/-! ## Functions -/

/-- The gradient by the temperature is made of that by the queries, and so has the temperature as a
factor; nothing is rounded. -/
@[expose] def ofQueryGradient (_ : R) (_ : Nat) (t z' q w : R) : Prop := w = t * z' * q

theorem ofQueryGradient_refuted :
    ¬ TemperaturesStay (R := R) ofQueryGradient := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 2 1 1 1 0 1 1 (2 * 1 * 1) 1 (Std.le_refl _) (none_of _) not_off size_one
    (rounded_refl (Std.le_refl _) _) rfl
  rw [term_one, total_one, absolute_one] at h
  have := h.2
  clear claim h
  grind

/-- The gradient by the queries times the temperature, in place of that by the queries. -/
@[expose] def withoutTemperature (_ _ z' w : R) : Prop := w = z'

theorem withoutTemperature_refuted : ¬ QueriesStay (R := R) withoutTemperature := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 2 1 1 0 1 1 1 1 (Std.le_refl _) (none_of _) (Nat.le_refl _) not_off size_one
    (rounded_refl (Std.le_refl _) _) rfl
  rw [term_one, total_one, Semiring.zero_mul] at h
  have := h.1
  clear claim h
  grind

/-! ## Bounds -/

/-- A bound that does not count the store. -/
@[expose] def notStored (_ exact size error other : R) : GradientTerm R :=
  storedGradientTerm 0 exact size error other

theorem notStored_refuted : ¬ TemperaturesStay (R := R) (term := notStored) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 (1 / 2) 1 1 1 1 0 1 (3 / 2) (3 / 2) 1 (Std.le_refl _) (none_of _) not_off
    size_one ⟨1 / 2, ⟨by grind, Std.le_refl _⟩, by grind⟩
    ⟨0, fun _ => 3 / 2, Nat.le_refl _, fun _ _ => by
      rw [Semiring.mul_one]
      exact rounded_refl (Std.le_refl _) _, .one⟩
  rw [notStored, term_one, total_one, Semiring.zero_mul] at h
  have := h.2
  clear claim h
  grind

end Attention.WrongVariants
