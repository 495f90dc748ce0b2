module

public import Attention.Proof.Derivative.CrossEntropy
public import Attention.Proof.Derivative.Transformer

public section

/-! # Wrong variants of rules of differentiation

A family of paths has one tangent, so every other rate is refuted; and at 0 the rectified linear
unit has none, so that `FeedForwardApart` cannot be left out. -/

namespace Attention.WrongVariants

open Lean.Grind Proof

universe u

variable {R : Type u} [OrderedField R]

/-- The path t ↦ a + b · t. -/
@[expose] def linearPath (a b : R) : Unit → R → R := fun _ t => a + b * t

/-- Its tangent. -/
theorem linearPath_tangent (a b : R) : IsTangent (linearPath a b) fun _ => ⟨a, b⟩ := by
  refine ⟨1 + a * a + b * b, 1, OrderedRing.zero_lt_one, fun _ => ⟨?_, ?_, fun t _ => ?_⟩⟩
  · have := mul_self_nonneg (a - 1)
    have := mul_self_nonneg (a + 1)
    have := mul_self_nonneg a
    have := mul_self_nonneg b
    exact ⟨by grind, by grind⟩
  · have := mul_self_nonneg (b - 1)
    have := mul_self_nonneg (b + 1)
    have := mul_self_nonneg a
    have := mul_self_nonneg b
    exact ⟨by grind, by grind⟩
  · have e : linearPath a b () t - a - t * b = 0 := by
      show a + b * t - a - t * b = 0
      grind
    show AtMost _ (linearPath a b () t - a - t * b)
    rw [e]
    have := mul_self_nonneg a
    have := mul_self_nonneg b
    exact AtMost.zero (OrderedRing.mul_nonneg (by grind) (mul_self_nonneg t))

/-- The rectified linear unit has no rate at 0, neither 0 nor 1 nor another. -/
theorem relu_bent_refuted (r : R) :
    ¬ IsTangent (fun (_ : Unit) t => Spec.relu (0 + 1 * t)) fun _ => ⟨0, r⟩ := fun h => by
  obtain ⟨B, τ, hτ, _, hB, hκ, h⟩ := h.within (κ := 1 / 4) (by grind)
  have h₁ := (h ()).2.2 τ ⟨by grind, Std.le_refl _⟩
  have h₂ := (h ()).2.2 (-τ) ⟨Std.le_refl _, by grind⟩
  have e₁ : Spec.relu (0 + 1 * τ) = τ := by
    rw [Spec.relu, OrderedField.max_def, if_pos (by grind)]
    grind
  have e₂ : Spec.relu (0 + 1 * -τ) = 0 := by
    rw [Spec.relu, OrderedField.max_def, if_neg (by grind)]
  simp only [e₁, e₂] at h₁ h₂
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hκ (Std.le_of_lt hτ)
  have h₄ := h₁.2
  have h₅ := h₂.2
  grind

/-- The rule that treats a root as a number that does not change, as layer normalisation with
statistics that are cut from the gradient. -/
abbrev RootRule (sqrt : R → R) (rule : Dual R → Dual R) : Prop :=
  ∀ (f : Unit → R → R) (a : Unit → Dual R), IsTangent f a → (∀ x, 1 ≤ (a x).val) →
    IsTangent (fun x t => sqrt (f x t)) fun x => rule (a x)

/-- Positive control. -/
theorem root_rule {sqrt : R → R} (h : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) :
    RootRule sqrt (Dual.root sqrt) :=
  fun _ _ hf ha => hf.root h OrderedRing.zero_lt_one ha

theorem detachedRoot_refuted {sqrt : R → R}
    (h : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) :
    ¬ RootRule sqrt fun a => Dual.const (sqrt a.val) := fun hw => by
  have h₁ := linearPath_tangent (1 : R) 1
  have e := congrArg Dual.der ((root_rule h _ _ h₁ fun _ => Std.le_refl _).unique
    (hw _ _ h₁ fun _ => Std.le_refl _) ())
  have e : (1 : R) / (sqrt 1 + sqrt 1) = 0 := e
  obtain ⟨h₂, h₃⟩ := h 1 (Std.le_of_lt OrderedRing.zero_lt_one)
  grind

/-- The cross-entropy whose gradient lacks the 1 at the token that comes next. -/
theorem softmaxAlone_refuted [NaturalExp R] : ¬ ∀ (z : Vec (Dual R) 1) (L : Dual R),
    Spec.IsLogSumExp (Dual R) (some L) (z.toList.map some) →
      (L - z[0]).der = sumOver (fun k : Fin 1 =>
        (Spec.softmaxVec (Vec.map (·.val) z))[k] * z[k].der) (List.finRange 1) := fun h => by
  have hL : Spec.IsLogSumExp (Dual R) (some ⟨0, 1⟩) ((#v[(⟨0, 1⟩ : Dual R)]).toList.map some) := by
    refine Dual.ext ?_ ?_
    · show exp (0 : R) = exp 0 + 0
      grind
    · show exp (0 : R) * 1 = exp 0 * 1 + 0
      grind
  have h₁ := h #v[⟨0, 1⟩] ⟨0, 1⟩ hL
  have h₂ := crossEntropy_rate #v[⟨0, 1⟩] 0 hL
  have e : (⟨0, 1⟩ - (#v[(⟨0, 1⟩ : Dual R)])[0] : Dual R).der = 0 := AddCommGroup.sub_self _
  have hone : ∀ g : Fin 1 → R, sumOver g (List.finRange 1) = g 0 := fun g =>
    Semiring.add_zero (g 0)
  rw [hone] at h₁ h₂
  have h₃ : (⟨0, 1⟩ - (#v[(⟨0, 1⟩ : Dual R)])[(0 : Fin 1)] : Dual R).der = 0 := e
  have e₁ : (#v[(⟨0, 1⟩ : Dual R)])[(0 : Fin 1)].der = 1 := rfl
  rw [h₃, e₁, if_pos rfl] at h₂
  rw [e, e₁] at h₁
  have := OrderedRing.zero_lt_one (R := R)
  grind

end Attention.WrongVariants
