module

public import Attention.Proof.Rounding.UnderflowCosts

public section

/-! # What a key costs where the reference point rises

A rescaling multiplies what is lost so far, and its own exponential and product underflow too.
Source: docs/tolerances.md, section 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] [Exponential R R]

namespace Underflow

variable {p : Precision R} {ν m : R} {r : Nat} {f : ComputedKey R → R}

/-! ## A rescaling -/

omit [Exponential R R] in
private theorem step_real {A b b' α D E T T' ν f n N : R} (hA : 1 ≤ A) (hb : 0 ≤ b)
    (hb' : 0 ≤ b') (hα : 0 ≤ α) (hf : 0 ≤ f) (hn : 0 ≤ n) (hN : 1 ≤ N) (i₁ : E * b ≤ b')
    (i₂ : α ≤ 2 * E) (i₃ : D ≤ E) (i₄ : α * T ≤ T') (i₅ : D * b ≤ T') (i₆ : ν ≤ T') :
    α * (2 * smaller (A * b) (n * T) * f + N * T) + D * (2 * b * f) + (ν + (T' - α * T))
      ≤ 2 * smaller (A * 3 * b') ((n + 1) * T') * f + (N + 1) * T' := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have j₁ : α * smaller (A * b) (n * T) + D * b ≤ A * 3 * b' := by
    have k₁ := OrderedRing.mul_le_mul_of_nonneg_left (smaller_le (A * b) (n * T)).1 hα
    have k₂ := OrderedRing.mul_le_mul_of_nonneg_right i₂ (c := A * b)
      (OrderedRing.mul_nonneg (by grind) hb)
    have k₃ := OrderedRing.mul_le_mul_of_nonneg_left i₁ (c := A) (by grind)
    have k₄ := OrderedRing.mul_le_mul_of_nonneg_right i₃ hb
    have k₅ := OrderedRing.mul_le_mul_of_nonneg_right hA hb'
    generalize smaller (A * b) (n * T) = s at *
    clear i₂ i₃ i₄ i₅ i₆
    grind
  have j₂ : α * smaller (A * b) (n * T) + D * b ≤ (n + 1) * T' := by
    have k₁ := OrderedRing.mul_le_mul_of_nonneg_left (smaller_le (A * b) (n * T)).2 hα
    have k₂ := OrderedRing.mul_le_mul_of_nonneg_left i₄ hn
    generalize smaller (A * b) (n * T) = s at *
    clear i₁ i₂ i₃ i₄ i₆ j₁
    grind
  have j₃ := OrderedRing.mul_le_mul_of_nonneg_right (le_smaller j₁ j₂) hf
  have k₂ := OrderedRing.mul_le_mul_of_nonneg_left i₄ (c := N - 1) (by grind)
  generalize smaller (A * b) (n * T) = s at *
  generalize smaller (A * 3 * b') ((n + 1) * T') = s' at *
  clear i₁ i₂ i₃ i₄ i₅ j₁ j₂
  grind

/-- What is known of the factor of a rescaling that may underflow. -/
structure Factor (p : Precision R) (ν m m' α α₀ : R) : Prop where
  /-- Not negative. -/
  nonneg : 0 ≤ α
  /-- At most 1, but for the error of an exponential. -/
  shrinks : α * (1 - p.exponential) ≤ 1
  /-- Off by no more than it is, and so are weights. -/
  grows : ∀ (r : Nat) (k : ComputedKey R), ∃ E : R, E * most p m r k ≤ most p m' (r + 1) k ∧
    α ≤ 2 * E ∧ absolute (α - α₀) ≤ E
  /-- Off by `ν` at most. -/
  tiny : absolute (α - α₀) ≤ ν
  /-- Without underflow it is not negative either. -/
  companion_nonneg : 0 ≤ α₀
  /-- It takes the largest weights to no more than the largest ones. -/
  companion : ∀ (r : Nat) (k : ComputedKey R), α₀ * most p m r k ≤ most p m' (r + 1) k

private theorem most_rescale (hp : Precise p) {m' E : R} (k : ComputedKey R)
    (h : E ≤ exp (m - m') * (exp (p.unit * (m' - m)) / (1 - p.exponential))) :
    E * most p m r k ≤ most p m' (r + 1) k := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h (Std.le_of_lt (most_pos (m := m) (r := r)
    hp k))
  refine Std.le_trans h₁ ?_
  have hq := remainder_pos hp
  have hP := OrderedField.pow_pos hq (r + 1)
  have e₁ : (exp (k.computed - m') : R) = exp (m - m') * exp (k.computed - m) :=
    (exp_sub_mul_sub _ _ _).symm
  have e₂ : (exp (p.unit * (m' - k.computed)) : R)
      = exp (p.unit * (m' - m)) * exp (p.unit * (m - k.computed)) := by
    rw [← exp_add]
    congr 1
    grind
  have e₃ : (exp (p.unit * (m' - k.computed)) / (1 - p.exponential) ^ (r + 1 + 1) : R)
      = exp (p.unit * (m' - m)) / (1 - p.exponential)
        * (exp (p.unit * (m - k.computed)) / (1 - p.exponential) ^ (r + 1)) := by
    rw [e₂, Semiring.pow_succ _ (r + 1)]
    generalize (1 - p.exponential) ^ (r + 1) = P at *
    clear h h₁ e₁ e₂
    grind
  rw [most, most, e₃, e₁]
  clear h h₁ e₁ e₂ e₃
  grind

/-- A rescaling's factor that may underflow is one that does not, but for what `Factor` says. -/
theorem factor (hp : Precise p) (hν : 0 ≤ ν) (hνq : ν ≤ p.exponential) (hu : p.unit ≤ 1)
    {m' x α : R} (hm : m ≤ m') (hx : Rounded p.unit (m - m') x)
    (hα : Stored p.exponential ν (exp x) α) :
    ∃ α₀, Rounded p.exponential (exp x) α₀ ∧ Factor p ν m m' α α₀ := by
  have hE := exp_pos (R := R) x
  have h₀ := hp.exponential
  have hq := remainder_pos hp
  obtain ⟨a₁, a₂⟩ := weight_nonneg hα (Std.le_of_lt hE)
  obtain ⟨θ, hθ, h₁, h₂⟩ := stored_split h₀ hν hα
  rw [absolute_of_nonneg (Std.le_of_lt hE)] at h₂
  have hr : Rounded p.exponential (exp x) (exp x * (1 + θ)) := ⟨θ, hθ, rfl⟩
  obtain ⟨pos, up, -⟩ := rounded_exp hp.exponential_lt hm hx hr
  obtain ⟨-, upE, -⟩ := rounded_exp (w := exp x) hp.exponential_lt hm hx
    ⟨0, .zero hp.exponential, by grind⟩
  have hE₁ : (exp x : R) ≤ 1 := exp_le_one hu hm hx
  refine ⟨exp x * (1 + θ), hr, a₁, ?_, fun r k => ⟨exp x, most_rescale hp k upE, a₂,
    absolute_le h₂⟩, absolute_le h₁, Std.le_of_lt pos, fun r k => most_rescale hp k up⟩
  have b₁ : α ≤ 1 + p.exponential := by
    have b₂ := hα.1.2
    rw [absolute_of_nonneg (Std.le_of_lt hE), OrderedField.max_def] at b₂
    have b₃ := OrderedRing.mul_le_mul_of_nonneg_left hE₁ h₀
    split at b₂ <;> grind
  have b₂ := OrderedRing.mul_le_mul_of_nonneg_right b₁ (Std.le_of_lt hq)
  have b₃ := mul_self_nonneg p.exponential
  clear h₁ h₂ hr pos up upE hα hx
  grind

/-- A unit of the costs grows by no more than it does from one rescaling to the next. -/
private theorem unit_rescale (hp : Precise p) (hν : 0 ≤ ν) {m' α α₀ : R}
    (h : Factor p ν m m' α α₀) :
    α * (ν / (1 - p.exponential) ^ r) ≤ ν / (1 - p.exponential) ^ (r + 1) := by
  have hq := remainder_pos hp
  have hP := OrderedField.pow_pos hq (r + 1)
  have j := OrderedField.mul_div_cancel (b := (1 - p.exponential) ^ r)
    (by have := OrderedField.pow_pos hq r; grind) ν
  have j₂ := OrderedRing.mul_le_mul_of_nonneg_left h.shrinks hν
  rw [OrderedField.le_div_iff hP, Semiring.pow_succ]
  generalize ν / (1 - p.exponential) ^ r = y at *
  generalize (1 - p.exponential) ^ r = z at *
  rw [show z * (1 - p.exponential) * (α * y) = z * y * (α * (1 - p.exponential)) by
    clear h j j₂
    grind, j]
  rwa [Semiring.mul_one] at j₂

private theorem cost_rescale (hp : Precise p) (hν : 0 ≤ ν) (hu : p.unit ≤ 1) {m' α α₀ : R}
    (h : Factor p ν m m' α α₀) {k : ComputedKey R} (hk : k.score ≠ none → k.computed ≤ m)
    (hf : 0 ≤ f k) :
    α * cost p ν m r f k + absolute (α - α₀) * size p m r f k
        + tick (ν + (ν / (1 - p.exponential) ^ (r + 1) - α * (ν / (1 - p.exponential) ^ r))) k
      ≤ cost p ν m' (r + 1) f k := by
  have hq := remainder_pos hp
  have hP := OrderedField.pow_pos hq (r + 1)
  cases hs : k.score with
  | none =>
    simp only [cost, size, tick, hs]
    grind
  | some s =>
    have hkm := hk (by simp [hs])
    obtain ⟨E, i₁, i₂, i₃⟩ := h.grows r k
    have b₁ := most_pos (m := m) (r := r) hp k
    have b₂ := most_pos (m := m') (r := r + 1) hp k
    have i₄ := unit_rescale (r := r) hp hν h
    have i₅ : absolute (α - α₀) * most p m r k ≤ ν / (1 - p.exponential) ^ (r + 1) := by
      have j₁ : most p m r k ≤ 1 / (1 - p.exponential) ^ (r + 1) := by
        have l : (exp (k.computed - m) * exp (p.unit * (m - k.computed)) : R) ≤ 1 := by
          rw [← exp_add, ← exp_zero (S := R) (R := R)]
          refine exp_le ?_
          have := OrderedRing.mul_nonneg (a := 1 - p.unit) (b := m - k.computed) (by grind)
            (by grind)
          grind
        rw [most, Field.div_eq_mul_inv, Field.div_eq_mul_inv, ← Semiring.mul_assoc]
        exact OrderedRing.mul_le_mul_of_nonneg_right l
          (Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hP))
      have j₂ := OrderedField.mul_le_mul (absolute_nonneg (α - α₀)) h.tiny (Std.le_of_lt b₁) j₁
      rwa [show ν * (1 / (1 - p.exponential) ^ (r + 1)) = ν / (1 - p.exponential) ^ (r + 1) by
        rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]] at j₂
    have i₆ : ν ≤ ν / (1 - p.exponential) ^ (r + 1) := by
      have := share_mono (r := 0) hp hν (Nat.zero_le (r + 1))
      rwa [Semiring.pow_zero, show ν / 1 = ν by grind] at this
    have := step_real (three_pow (R := R) (r + 2)) (Std.le_of_lt b₁) (Std.le_of_lt b₂) h.nonneg hf
      (numeral_nonneg (r + 2)) (N := numeral (r + 6)) (by
        have := numeral_nonneg (R := R) (r + 5)
        rw [show r + 6 = r + 5 + 1 by omega, numeral_succ]
        grind) i₁ i₂ i₃ i₄ i₅ i₆
    simp only [cost, size, tick, hs, show r + 1 + 2 = r + 2 + 1 by omega,
      show r + 1 + 6 = r + 6 + 1 by omega]
    rwa [numeral_succ (r + 2), numeral_succ (r + 6), Semiring.pow_succ 3 (r + 2)]

private theorem size_rescale {m' α α₀ : R} (h : Factor p ν m m' α α₀) {k : ComputedKey R}
    (hf : 0 ≤ f k) : α₀ * size p m r f k ≤ size p m' (r + 1) f k := by
  cases hs : k.score with
  | none =>
    simp only [size, hs]
    grind
  | some s =>
    simp only [size, hs]
    have := OrderedRing.mul_le_mul_of_nonneg_right (h.companion r k) hf
    grind

/-- What is lost of a part that is rescaled, and of the product. -/
private theorem spent_rescale (hp : Precise p) (hν : 0 ≤ ν) (hu : p.unit ≤ 1) {m' α α₀ c e : R}
    (h : Factor p ν m m' α α₀) {keys : List (ComputedKey R)}
    (hk : ∀ k ∈ keys, k.score ≠ none → k.computed ≤ m) (hf : ∀ k, 0 ≤ f k)
    (hc : Spent p ν m r f keys c) (he₀ : 0 ≤ e) (he : e ≤ ν)
    (he' : (∀ k ∈ keys, k.score = none) → e = 0) :
    Spent p ν m' (r + 1) f keys
      (α * c + absolute (α - α₀) * sumOver (size p m r f) keys + e) := by
  have hsize : 0 ≤ sumOver (size p m r f) keys := sumOver_nonneg fun k _ => size_nonneg hp (hf k)
  have i₁ := OrderedRing.mul_nonneg h.nonneg hc.nonneg
  have i₂ := OrderedRing.mul_nonneg (absolute_nonneg (α - α₀)) hsize
  refine ⟨by grind, fun masked => ?_, fun seen => ?_⟩
  · have e₁ : sumOver (size p m r f) keys = sumOver (fun _ => 0) keys :=
      sumOver_congr fun k hk => by simp only [size, masked k hk]
    rw [hc.masked masked, he' masked, e₁, sumOver_const]
    simp only [Semiring.mul_zero, Semiring.add_zero]
  · have h₁ := OrderedRing.mul_le_mul_of_nonneg_left (hc.counted seen) h.nonneg
    obtain ⟨k, hk', hs⟩ := seen
    have h₂ := unit_rescale (r := r) hp hν h
    have h₃ := le_sumOver (f := tick (ν + (ν / (1 - p.exponential) ^ (r + 1)
      - α * (ν / (1 - p.exponential) ^ r)))) (fun k _ => tick_nonneg (by grind) k) hk'
    rw [tick_eq hs] at h₃
    have h₄ := sumOver_le_sumOver (xs := keys) fun k hk' =>
      cost_rescale (r := r) hp hν hu h (hk k hk') (hf k)
    rw [sumOver_add, sumOver_add, sumOver_mul_left, sumOver_mul_left] at h₄
    rw [Semiring.left_distrib] at h₁
    generalize sumOver (cost p ν m r f) keys = C at *
    generalize sumOver (cost p ν m' (r + 1) f) keys = C' at *
    generalize sumOver (size p m r f) keys = s at *
    generalize absolute (α - α₀) * s = x at *
    generalize α * (ν / (1 - p.exponential) ^ r) = t at *
    generalize ν / (1 - p.exponential) ^ (r + 1) = t' at *
    clear hc h hk hf i₁ i₂ hsize
    grind

/-- Denominator or numerator of a part that is rescaled. -/
theorem component_rescale (hp : Precise p) (hν : 0 ≤ ν) (hu : p.unit ≤ 1) {U : R}
    (hU : 0 ≤ U) {m' α α₀ G x x₀ y c : R} (h : Factor p ν m m' α α₀) (hG : 1 ≤ G)
    {keys : List (ComputedKey R)} (hk : ∀ k ∈ keys, k.score ≠ none → k.computed ≤ m)
    (hf : ∀ k, 0 ≤ f k) (hc : Spent p ν m r f keys c) (hx : AtMost (G * c) (x - x₀))
    (hx₀ : AtMost (G * sumOver (size p m r f) keys) x₀) (hy : Stored U ν (α * x) y) :
    ∃ y₀ c', Rounded U (α₀ * x₀) y₀ ∧ Spent p ν m' (r + 1) f keys c' ∧
      AtMost (G * (1 + U) * c') (y - y₀) ∧
      AtMost (G * (1 + U) * sumOver (size p m' (r + 1) f) keys) y₀ := by
  obtain ⟨θ, hθ, h₁, h₂⟩ := stored_split hU hν hy
  have hθ' : AtMost (1 + U) (1 + θ) := ⟨by have := hθ.1; grind, by have := hθ.2; grind⟩
  obtain ⟨e, he₀, he, he', hδ⟩ : ∃ e, 0 ≤ e ∧ e ≤ ν ∧ ((∀ k ∈ keys, k.score = none) → e = 0) ∧
      AtMost e (y - α * x * (1 + θ)) := by
    by_cases masked : ∀ k ∈ keys, k.score = none
    · refine ⟨0, Std.le_refl _, hν, fun _ => rfl, ?_⟩
      have e₂ : sumOver (size p m r f) keys = sumOver (fun _ => 0) keys :=
        sumOver_congr fun k hk => by simp only [size, masked k hk]
      rw [hc.masked masked, Semiring.mul_zero] at hx
      rw [e₂, sumOver_const, Semiring.mul_zero, Semiring.mul_zero] at hx₀
      have e₄ : α * x = 0 := by
        have : x = 0 := by
          obtain ⟨a₁, a₂⟩ := hx
          obtain ⟨a₃, a₄⟩ := hx₀
          grind
        rw [this, Semiring.mul_zero]
      rw [e₄, absolute_of_nonneg (Std.le_refl _)] at h₂
      rwa [e₄]
    · exact ⟨ν, hν, Std.le_refl _, fun h => absurd h masked, h₁⟩
  refine ⟨α₀ * x₀ * (1 + θ), _, ⟨θ, hθ, rfl⟩, spent_rescale hp hν hu h hk hf hc he₀ he he', ?_, ?_⟩
  · have h₃ := (((atMost_mul_left h.nonneg hx).add
      ((atMost_absolute (α - α₀)).mul hx₀)).mul hθ').add hδ
    have e₁ : (α * (x - x₀) + (α - α₀) * x₀) * (1 + θ) + (y - α * x * (1 + θ))
        = y - α₀ * x₀ * (1 + θ) := by grind
    rw [e₁] at h₃
    refine h₃.mono ?_
    have h₅ : 1 ≤ G * (1 + U) := by
      have := OrderedRing.mul_nonneg (a := G) (b := U) (by
        have := OrderedRing.zero_lt_one (R := R)
        grind) hU
      grind
    have h₇ := OrderedRing.mul_le_mul_of_nonneg_right h₅ he₀
    generalize sumOver (size p m r f) keys = s at *
    generalize absolute (α - α₀) = D at *
    clear h h₁ h₂ h₃ h₅ hδ e₁ hx hx₀ hy hθ hθ' he' hc hk hf
    grind
  · have h₃ := ((atMost_mul_left h.companion_nonneg hx₀).mul hθ')
    refine h₃.mono ?_
    have h₄ : sumOver (fun k => α₀ * size p m r f k) keys
        ≤ sumOver (size p m' (r + 1) f) keys :=
      sumOver_le_sumOver fun k _ => size_rescale h (hf k)
    rw [sumOver_mul_left] at h₄
    have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := G * (1 + U))
      (OrderedRing.mul_nonneg (by
        have := OrderedRing.zero_lt_one (R := R)
        grind) (by
        have := OrderedRing.zero_lt_one (R := R)
        grind))
    generalize sumOver (size p m r f) keys = s at *
    generalize sumOver (size p m' (r + 1) f) keys = s' at *
    clear h h₁ h₂ h₃ h₄ hδ hx hx₀ hy hθ hθ'
    grind

end Underflow

end Attention.Proof
