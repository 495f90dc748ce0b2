module

public import Attention.Model.RoundedStates
public import Attention.Proof.Rounding.Factors
public import Attention.Proof.Softmax.Maximum

public section

/-! # States of a cache, within their tolerance

A weight is off by a factor of its own at each change, and what was off before is rescaled with what
it is an error of. Source: docs/tolerances.md, "States of a cache". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

/-! ## The columns of a state -/

section

variable {R : Type u} [OrderedField R] [Exponential R R] {d : Nat}

/-- The bounds follow the states of the Spec: a key appended. -/
theorem boundedColumn_append (u X Y : R) (s : Online.State R R d) (key : ScoredValue R R d)
    {j : Nat} (hj : j < d) :
    ((⟨s.m, s.l, X⟩ : BoundedColumn R).append u key.score 1).m = (Online.step s key).m ∧
      ((⟨s.m, s.l, X⟩ : BoundedColumn R).append u key.score 1).value = (Online.step s key).l ∧
      ((⟨s.m, s.o[j], Y⟩ : BoundedColumn R).append u key.score key.value[j]).value
        = (Online.step s key).o[j] := by
  refine ⟨rfl, ?_, ?_⟩
  · show _ * s.l + _ * 1 = _ * s.l + _
    rw [Semiring.mul_one]
  · simp only [BoundedColumn.append, Online.step, Vec.getElem_add, Vec.getElem_smul]

/-- And a key deleted. -/
theorem boundedColumn_delete (u X Y : R) (s : Online.State R R d) (key : ScoredValue R R d)
    {j : Nat} (hj : j < d) :
    ((⟨s.m, s.l, X⟩ : BoundedColumn R).delete u key.score 1).m = (Online.delete s key).m ∧
      ((⟨s.m, s.l, X⟩ : BoundedColumn R).delete u key.score 1).value = (Online.delete s key).l ∧
      ((⟨s.m, s.o[j], Y⟩ : BoundedColumn R).delete u key.score key.value[j]).value
        = (Online.delete s key).o[j] := by
  refine ⟨rfl, ?_, ?_⟩
  · show s.l - _ * 1 = s.l - _
    rw [Semiring.mul_one]
  · simp only [BoundedColumn.delete, Online.delete, Vec.getElem_ofFn, Fin.getElem_fin]

end

/-! ## One weight -/

variable {R : Type u} [OrderedField R]

private theorem secondOrder_eq : (secondOrder : R) = 51 / 50 := by
  rw [secondOrder, numeral_eq, numeral_eq, ← Semiring.ofNat_eq_natCast, ← Semiring.ofNat_eq_natCast]

private theorem two_eq : (numeral 2 : R) = 2 := by
  rw [numeral_eq, ← Semiring.ofNat_eq_natCast]

private theorem four_eq : (numeral 4 : R) = 4 := by
  rw [numeral_eq, ← Semiring.ofNat_eq_natCast]

private theorem hundred_eq : (numeral 100 : R) = 100 := by
  rw [numeral_eq, ← Semiring.ofNat_eq_natCast]

/-- What an error of the exponent makes of an exponential. -/
private theorem exp_close [NaturalExp R] {e δ : R} (h : AtMost e δ) (he : e < 1) :
    AtMost (1 / (1 - e) - 1) (exp δ - 1) := by
  have h₁ := one_add_le_one_div he
  have h₂ := NaturalExp.one_add_le_exp δ
  have h₃ : (exp δ : R) ≤ exp e := exp_le h.2
  have h₄ := NaturalExp.one_add_le_exp (-e)
  have h₅ : (exp e : R) * exp (-e) = 1 := by
    rw [← exp_add, show e + -e = 0 by grind, exp_zero]
  have h₆ : (exp e : R) ≤ 1 / (1 - e) := by
    rw [OrderedField.le_div_iff (by grind)]
    have := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 - e) (b := exp (-e)) (c := (exp e : R))
      (by grind) (Std.le_of_lt (exp_pos e))
    grind
  have := h.1
  exact ⟨by grind, by grind⟩

/-- The exponent of a weight. -/
private theorem exponent_close {u s m s' m' x : R} (hu : 0 ≤ u) (hu₁ : u ≤ 1)
    (hs : RoundedTimes u 2 s s') (hm : RoundedTimes u 2 m m') (hx : Rounded u (s' - m') x) :
    AtMost ((1 + 2 * u) * (u * (2 * absolute s + 2 * absolute m + absolute (s - m))))
      (x - (s - m)) := by
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor hs
  obtain ⟨t', rfl, ht'⟩ := roundedTimes_factor hm
  obtain ⟨θ, hθ, rfl⟩ := hx
  have e₀ : (1 + u) ^ 2 - 1 = 2 * u + u * u := by
    rw [Semiring.pow_succ, Semiring.pow_succ, Semiring.pow_zero]
    grind
  rw [e₀] at ht ht'
  have i₁ := ((atMost_absolute s).mul ht).sub ((atMost_absolute m).mul ht')
  have i₂ : AtMost (1 + u) (1 + θ) := by
    have := hθ.1
    have := hθ.2
    exact ⟨by grind, by grind⟩
  have i₃ := (i₁.mul i₂).add (hθ.mul (atMost_absolute (s - m)))
  have e₁ : (s * (t - 1) - m * (t' - 1)) * (1 + θ) + θ * (s - m)
      = (s * t - m * t') * (1 + θ) - (s - m) := by grind
  rw [e₁] at i₃
  refine i₃.mono ?_
  have hs₀ := absolute_nonneg s
  have hm₀ := absolute_nonneg m
  have hd₀ := absolute_nonneg (s - m)
  generalize absolute s = a at *
  generalize absolute m = b at *
  generalize absolute (s - m) = c at *
  have j₁ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hu hu) (b := a + b) (by grind)
  have j₂ := OrderedRing.mul_nonneg j₁ (b := 1 - u) (by grind)
  have j₃ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hu hu) hd₀
  grind

/-- The bound of a weight's factor, from what it is made of. -/
private theorem factor_bound {u a E y : R} (hu : 0 ≤ u) (ha : 0 ≤ a) (hE : E = 4 * u + a + 2 * u)
    (hE₁ : 100 * E ≤ 1) (hy : y = (1 + 2 * u) * a + 4 * u + u + u) :
    y < 1 ∧ 1 / (1 - y) - 1 ≤ 51 / 50 * E := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu₁ : 600 * u ≤ 1 := by grind
  have hy₀ : 0 ≤ y := by
    have := OrderedRing.mul_nonneg hu ha
    grind
  have i₁ := OrderedRing.mul_nonneg ha (b := 1 - 600 * u) (by grind)
  have hyE : 300 * y ≤ 301 * E := by grind
  have hy₁ : y < 1 := by grind
  refine ⟨hy₁, ?_⟩
  have hE₀ : 0 ≤ E := by grind
  have i₂ : 1 / (1 - y) ≤ 1 + 51 / 50 * E := by
    rw [OrderedField.div_le_iff (by grind)]
    have i₃ := OrderedRing.mul_nonneg hy₀ (b := 1 - 100 * E) (by grind)
    grind
  grind

/-- A weight, and two roundings more. -/
private theorem computedWeight_close [NaturalExp R] {u : R} (hu : 0 ≤ u) {s m s' m' : Option R}
    (hs : ComputedPoint u s s') (hm : ComputedPoint u m m')
    (small : numeral 100 * (weightError u s m + numeral 2 * u) ≤ 1) {w : R}
    (hw : ComputedWeight u s' m' w) {θ₁ θ₂ : R} (h₁ : AtMost u θ₁) (h₂ : AtMost u θ₂) :
    ∃ F, w * (1 + θ₁) * (1 + θ₂) = rescale s m * F ∧
      AtMost (secondOrder * (weightError u s m + numeral 2 * u)) (F - 1) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [secondOrder_eq, two_eq, hundred_eq] at *
  have none_case : rescale s m = (0 : R) → w = 0 → weightError u s m = 0 →
      ∃ F, w * (1 + θ₁) * (1 + θ₂) = rescale s m * F ∧
        AtMost (51 / 50 * (weightError u s m + 2 * u)) (F - 1) := fun e₁ e₂ e₃ => by
    refine ⟨1, by rw [e₁, e₂]; grind, ?_⟩
    rw [e₃, show (1 : R) - 1 = 0 by grind]
    exact .zero (by grind)
  match s, s', m, m', hs, hm, hw with
  | none, none, none, none, _, _, hw => exact none_case rfl hw rfl
  | none, none, some _, some _, _, _, hw => exact none_case rfl hw rfl
  | some _, some _, none, none, _, _, hw => exact none_case rfl hw rfl
  | some s, some s', some m, some m', hs, hm, hw =>
    obtain ⟨x, hx, τ, hτ, rfl⟩ := hw
    simp only [weightError, two_eq, four_eq, rescale] at *
    have ha : 0 ≤ u * (2 * absolute s + 2 * absolute m + absolute (s - m)) := by
      have := absolute_nonneg s
      have := absolute_nonneg m
      have := absolute_nonneg (s - m)
      exact OrderedRing.mul_nonneg hu (by grind)
    have hδ := exponent_close hu (by grind) hs hm hx
    generalize u * (2 * absolute s + 2 * absolute m + absolute (s - m)) = a at *
    obtain ⟨hy, hbound⟩ := factor_bound hu ha rfl small rfl
    have hd := OrderedRing.mul_nonneg (a := 1 + 2 * u) (b := a) (by grind) ha
    have hall := close_mul (by grind) hu hy (close_mul (by grind) hu (by grind)
      (close_mul hd (show (0 : R) ≤ 4 * u by grind) (by grind) (exp_close hδ (by grind))
        (one_add_close hτ (by grind))) (one_add_close h₁ (by grind)))
      (one_add_close h₂ (by grind))
    refine ⟨exp (x - (s - m)) * (1 + τ) * (1 + θ₁) * (1 + θ₂), ?_, hall.mono hbound⟩
    have e : (exp x : R) = exp (s - m) * exp (x - (s - m)) := by
      rw [← exp_add, show s - m + (x - (s - m)) = x by grind]
    rw [e]
    grind

/-! ## All changes -/

/-- **rounded-state**: the reference point and a column of a state to which keys were appended, and
from which terms were subtracted, every operation rounded, are within the bounds that followed the
changes; for the natural exponential. -/
theorem rounded_state [NaturalExp R] {u : R} (hu : 0 ≤ u) {c : BoundedColumn R} {m : Option R}
    {x : R} (run : StateRun u c m x) :
    ComputedPoint u c.m m ∧ AtMost c.error (x - c.value) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  induction run with
  | empty =>
    refine ⟨trivial, ?_⟩
    show AtMost 0 ((0 : R) - 0)
    exact ⟨by grind, by grind⟩
  | @append c m m' s s' x v α p y z x' _ hs hm' small₁ small₂ hα hp hy hz hx' ih =>
    obtain ⟨hm, hx⟩ := ih
    refine ⟨hm', ?_⟩
    obtain ⟨θ₁, h₁, rfl⟩ := hy
    obtain ⟨θ₂, h₂, rfl⟩ := hz
    obtain ⟨θ₃, h₃, rfl⟩ := hx'
    obtain ⟨F, eF, hF⟩ := computedWeight_close hu hm hm' small₁ hα h₁ h₃
    obtain ⟨G, eG, hG⟩ := computedWeight_close hu hs hm' small₂ hp h₂ h₃
    have nα := rescale_nonneg (R := R) c.m (maxScore c.m s)
    have np := rescale_nonneg (R := R) s (maxScore c.m s)
    simp only [BoundedColumn.append]
    generalize (rescale c.m (maxScore c.m s) : R) = A at *
    generalize (rescale s (maxScore c.m s) : R) = P at *
    generalize weightError u c.m (maxScore c.m s) + numeral 2 * u = e₁ at *
    generalize weightError u s (maxScore c.m s) + numeral 2 * u = e₂ at *
    have hsize : AtMost (absolute c.value + c.error) x := by
      have := (atMost_absolute c.value).add hx
      rwa [show c.value + (x - c.value) = x by grind] at this
    have i₁ := atMost_mul_left nα (hsize.mul hF)
    have i₂ := atMost_mul_left nα hx
    have i₃ := atMost_mul_left np ((atMost_absolute v).mul hG)
    have h := (i₂.add i₁).add i₃
    have e : (α * x * (1 + θ₁) + p * v * (1 + θ₂)) * (1 + θ₃)
        = A * F * x + P * G * v := by
      rw [← eF, ← eG]
      grind
    rw [e]
    have f₁ : A * (x - c.value) + A * (x * (F - 1)) + P * (v * (G - 1))
        = A * F * x + P * G * v - (A * c.value + P * v) := by grind
    rw [f₁] at h
    exact h.mono (by grind)
  | @delete c m s s' x v p z x' _ hs small hp hz hx' ih =>
    obtain ⟨hm, hx⟩ := ih
    refine ⟨hm, ?_⟩
    obtain ⟨θ₂, h₂, rfl⟩ := hz
    obtain ⟨θ₃, h₃, rfl⟩ := hx'
    obtain ⟨G, eG, hG⟩ := computedWeight_close hu hs hm small hp h₂ h₃
    have np := rescale_nonneg (R := R) s c.m
    simp only [BoundedColumn.delete]
    generalize (rescale s c.m : R) = P at *
    generalize weightError u s c.m + numeral 2 * u = e₂ at *
    have hsize : AtMost (absolute c.value + c.error) x := by
      have := (atMost_absolute c.value).add hx
      rwa [show c.value + (x - c.value) = x by grind] at this
    have i₁ := h₃.mul hsize
    have i₃ := atMost_mul_left np ((atMost_absolute v).mul hG)
    have h := (hx.add i₁).sub i₃
    have e : (x - p * v * (1 + θ₂)) * (1 + θ₃) = x + θ₃ * x - P * G * v := by
      rw [← eG]
      grind
    rw [e]
    have f₁ : x - c.value + θ₃ * x - P * (v * (G - 1))
        = x + θ₃ * x - P * G * v - (c.value - P * v) := by grind
    rw [f₁] at h
    rw [secondOrder_eq] at h ⊢
    have hn := OrderedRing.mul_nonneg hu hsize.nonneg
    exact h.mono (by grind)

end Attention.Proof
