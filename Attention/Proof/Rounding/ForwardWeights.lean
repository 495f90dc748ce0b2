module

public import Attention.Model.UnderflowWeights
public import Attention.Proof.Rounding.Sum
public import Attention.Proof.Rounding.UnderflowNumbers

public section

/-! # The weights of a function that rescales its sums

Where a function multiplies sums by exponentials as its reference point rises, and divides them by
the sum of the weights at the end, its weights are as those of a pass that computes them again from
the log-sum-exp: an exponential is all that underflows of one, beside the factors and sums that
`RescaledSum` counts.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

private theorem forward_itself {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (x : R) :
    StoredBelow u ν x x :=
  ⟨x, ⟨0, .zero hu, by grind⟩, by
    rw [show x - x = 0 by grind]
    exact .zero hν, id⟩

/-- A number that is rounded once is one that is stored three times. -/
private theorem forward_three {u ν x y : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (h : Rounded u x y) :
    BelowTimes u ν 3 x y := by
  refine ⟨y, ⟨y, ⟨x, rfl, y, h, ?_, fun e => ?_⟩, forward_itself hu hν y⟩, forward_itself hu hν y⟩
  · rw [show y - y = 0 by grind]
    exact .zero hν
  · obtain ⟨θ, -, rfl⟩ := h
    rw [e]
    grind

private theorem forward_part {u κ : R} (h : AtMost u κ) (a : R) :
    Rounded u a (a + κ * absolute a) ∧ Rounded u a (a - κ * absolute a) := by
  obtain ⟨h₁, h₂⟩ := h
  have e : absolute a = max a (0 - a) := rfl
  rw [OrderedField.max_def] at e
  split at e
  · exact ⟨⟨-κ, ⟨by grind, by grind⟩, by grind⟩, ⟨κ, ⟨h₁, h₂⟩, by grind⟩⟩
  · exact ⟨⟨κ, ⟨h₁, h₂⟩, by grind⟩, ⟨-κ, ⟨by grind, by grind⟩, by grind⟩⟩

/-- An error in proportion to two numbers is one of each of them. -/
private theorem forward_split {u a b ε : R} (hu : 0 ≤ u)
    (h : AtMost (u * (absolute a + absolute b)) ε) :
    ∃ x y, Rounded u a x ∧ Rounded u b y ∧ x - y = a - b + ε := by
  have ha := absolute_nonneg a
  have hb := absolute_nonneg b
  by_cases pos : 0 < absolute a + absolute b
  · have hκ : AtMost u (ε / (absolute a + absolute b)) := by
      refine ⟨?_, ?_⟩
      · rw [OrderedField.le_div_iff pos]
        have := h.1
        grind
      · rw [OrderedField.div_le_iff pos, CommSemiring.mul_comm]
        exact h.2
    refine ⟨_, _, (forward_part hκ a).1, (forward_part hκ b).2, ?_⟩
    have := OrderedField.mul_div_cancel (b := absolute a + absolute b) (by grind) ε
    generalize absolute a = x at *
    generalize absolute b = y at *
    generalize ε / (x + y) = κ at *
    clear h hκ
    grind
  · have e : absolute a + absolute b = 0 := by grind
    rw [e, Semiring.mul_zero] at h
    obtain ⟨h₁, h₂⟩ := h
    exact ⟨a, b, ⟨0, .zero hu, by grind⟩, ⟨0, .zero hu, by grind⟩, by grind⟩

/-- Differences below 0 that are rounded are off in proportion to their sum. -/
private theorem forward_steps {u : R} {steps : List (R × R)}
    (h : ∀ t ∈ steps, t.1 ≤ 0 ∧ Rounded u t.1 t.2) :
    AtMost (u * -sumOver (·.1) steps) (sumOver (·.2) steps - sumOver (·.1) steps) := by
  have h₁ := sumOver_atMost (b := fun t : R × R => -u * t.1) (f := fun t => t.2 - t.1)
    (xs := steps) fun t ht => by
      obtain ⟨h₁, θ, hθ, e⟩ := h t ht
      have h₃ : AtMost (-t.1) t.1 := ⟨by grind, by grind⟩
      have h₂ := h₃.mul hθ
      rw [show t.1 * θ = t.2 - t.1 by rw [e]; grind] at h₂
      exact h₂.mono (by grind)
  rw [sumOver_mul_left, sumOver_sub] at h₁
  exact h₁.mono (by grind)

private theorem forward_below {u : R} (hu : u ≤ 1) {steps : List (R × R)}
    (h : ∀ t ∈ steps, t.1 ≤ 0 ∧ Rounded u t.1 t.2) : sumOver (·.2) steps ≤ 0 := by
  have h₁ := sumOver_le_sumOver (f := fun t : R × R => t.2) (g := fun _ => (0 : R)) (xs := steps)
    fun t ht => by
      obtain ⟨h₁, θ, hθ, e⟩ := h t ht
      have := OrderedRing.mul_nonneg (a := -t.1) (b := 1 + θ) (by grind) (by
        have := hθ.1
        grind)
      show t.2 ≤ 0
      rw [e]
      grind
  rwa [sumOver_const, Semiring.mul_zero] at h₁

private theorem forward_quotient (a c l b : R) :
    a * c / l - b * c / l = (a - b) * (c / l) := by
  rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Field.div_eq_mul_inv]
  grind

variable [Exponential R R]

/-- **forward-weight**: the weight that a function has at the end for a score `s'`, its exponential
against the reference point of its time, times the exact exponentials `exp x` of the rounded
differences of reference points by which its sum is rescaled, over the sum `l` of the weights, which
is at least 1, is one that may be computed again from the score and the log-sum-exp m + ln l, for
any last reference point `m`: below the normal numbers no more than the exponential is lost of it.
-/
theorem recomputedWeight_of_forward {u ν e s' m l logl d x w : R} (hu : 0 ≤ u) (hu' : u ≤ 1)
    (hν : 0 ≤ ν) (he : 0 ≤ e) {steps : List (R × R)} (hd : d ≤ 0) (hx : Rounded u d x)
    (hs : ∀ t ∈ steps, t.1 ≤ 0 ∧ Rounded u t.1 t.2)
    (sum : d + sumOver (·.1) steps = s' - m) (hw : Stored e ν (exp x) w) (hl : exp logl = l)
    (one : 1 ≤ l) :
    RecomputedWeight u ν e ν s' (m + logl) (w * exp (sumOver (·.2) steps) / l) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hlog : 0 ≤ logl := by
    refine Classical.byContradiction fun hn => ?_
    have := exp_lt (R := R) logl 0 (by grind)
    rw [exp_zero, hl] at this
    grind
  have i₁ := forward_steps (u := u) (steps := (d, x) :: steps) fun t ht =>
    (List.mem_cons.mp ht).elim (fun e => by subst e; exact ⟨hd, hx⟩) (hs t)
  rw [sumOver_cons, sumOver_cons] at i₁
  replace i₁ : AtMost (u * -(d + sumOver (·.1) steps))
    (x + sumOver (·.2) steps - (d + sumOver (·.1) steps)) := i₁
  rw [sum] at i₁
  have i₂ : -(s' - m) ≤ absolute s' + absolute (m + logl) := by
    have h₁ := (atMost_absolute s').1
    have h₂ := (atMost_absolute (m + logl)).2
    clear i₁
    grind
  obtain ⟨a, b, ha, hb, hab⟩ := forward_split hu
    (i₁.mono (OrderedRing.mul_le_mul_of_nonneg_left i₂ hu))
  refine ⟨a, b, forward_three hu hν ha, forward_three hu hν hb, ?_⟩
  have hc : (exp (sumOver (·.2) steps) : R) ≤ 1 := by
    refine Classical.byContradiction fun hn => ?_
    have h₁ := forward_below hu' hs
    by_cases h₂ : sumOver (·.2) steps = 0
    · rw [h₂, exp_zero] at hn
      exact hn (Std.le_refl _)
    · have := exp_lt (R := R) (sumOver (·.2) steps) 0 (by
        clear hn i₁ hab
        grind)
      rw [exp_zero] at this
      grind
  have e₁ : (exp (a - b) : R) = exp x * exp (sumOver (·.2) steps) / l := by
    rw [hab, show s' - (m + logl) + (x + sumOver (·.2) steps - (s' - m))
      = x + sumOver (·.2) steps - logl by grind, ← exp_add]
    have h₁ := exp_sub_mul (R := R) (x + sumOver (·.2) steps) logl
    rw [hl] at h₁
    rw [← h₁]
    have := OrderedField.mul_div_cancel (b := l) (by grind)
      (exp (x + sumOver (·.2) steps - logl) : R)
    clear i₁ hab
    grind
  obtain ⟨θ, hθ, h₁, -⟩ := stored_split he hν hw
  have hpos := exp_pos (R := R) (a - b)
  refine ⟨_, ⟨θ, hθ, rfl⟩, ?_, fun h => ?_⟩
  · have hl₀ : 0 < l := by grind
    have hc₀ := exp_pos (R := R) (sumOver (·.2) steps)
    have k : AtMost 1 (exp (sumOver (·.2) steps) / l : R) := by
      refine ⟨?_, ?_⟩
      · have := OrderedField.div_nonneg (Std.le_of_lt hc₀) hl₀
        grind
      · rw [OrderedField.div_le_iff hl₀]
        grind
    have h₂ := h₁.mul k
    rw [← forward_quotient, Semiring.mul_one] at h₂
    rw [e₁]
    rwa [show exp x * exp (sumOver (·.2) steps) / l * (1 + θ)
      = exp x * (1 + θ) * exp (sumOver (·.2) steps) / l by
        rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]
        generalize (exp x : R) = y
        generalize (exp (sumOver (·.2) steps) : R) = c
        clear h₁ h₂ k e₁ hpos i₁ hab hc₀ hc
        grind]
  · rw [h] at hpos
    exact absurd hpos (by grind)

/-- **tiny-forward-weights**: so such a weight of a run that underflows, with the scores and the sum
of the weights of that run, is as `tiny_tangent_weight` supposes of one that is computed again. -/
theorem tinyWeight_of_forward {q_len kv_len n : Nat} {p : Precision R} {f : ScoreFormats R} {ν : R}
    {additions : Nat} {scale : R} {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
    {Q : Matrix R q_len n} {K : Matrix R kv_len n} {i : Fin q_len}
    {values computed : Option (Fin kv_len) → R} {cols : List (Option (Fin kv_len))}
    (hp : Precise p) (hu : p.unit ≤ 1) (hν : 0 ≤ ν)
    (scores : TinyScores p f ν additions changes scale mask Q K i computed)
    {m : R} {part : Part R} (run : TinyRun p ν ν m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential) {roundings rescalings : Nat}
    (keys : part.keys = (cols.map fun col => ⟨(cappedKey p (changes.formats p f ν additions n scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings, computed col⟩))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings) {logl : R} (hl : exp logl = part.l)
    (one : 1 ≤ part.l) {col : Option (Fin kv_len)} {d x w : R} {steps : List (R × R)} (hd : d ≤ 0)
    (hx : Rounded p.unit d x) (hs : ∀ t ∈ steps, t.1 ≤ 0 ∧ Rounded p.unit t.1 t.2)
    (sum : d + sumOver (·.1) steps = computed col - m) (hw : Stored p.exponential ν (exp x) w) :
    TinyWeight p f ν ν additions changes scale mask Q K i values cols roundings rescalings col
      (w * exp (sumOver (·.2) steps) / part.l) := by
  refine ⟨computed, m + logl, scores, ⟨computed, m, part, scores, run, hνq, keys, attained, hr, ha,
    0, 0, 0, 0, logl, m, logl, logl, m + logl, by decide, by decide, hl, ?_, rfl, rfl,
    ⟨by grind, by grind⟩, rfl⟩,
    recomputedWeight_of_forward hp.unit hu hν hp.exponential hd hx hs sum hw hl one⟩
  rw [show logl - logl = 0 by grind, show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul,
    Semiring.zero_mul]
  exact .zero (Std.le_refl _)

end Attention.Proof
