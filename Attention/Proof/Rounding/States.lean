module

public import Attention.Model.RoundedStates
public import Attention.Proof.Rounding.Factors
import Attention.Proof.Rounding.UnderflowNumbers
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
theorem boundedColumn_append (u ν X Y : R) (s : Online.State R R d) (key : ScoredValue R R d)
    {j : Nat} (hj : j < d) :
    ((⟨s.m, s.l, X⟩ : BoundedColumn R).append u ν key.score 1).m = (Online.step s key).m ∧
      ((⟨s.m, s.l, X⟩ : BoundedColumn R).append u ν key.score 1).value = (Online.step s key).l ∧
      ((⟨s.m, s.o[j], Y⟩ : BoundedColumn R).append u ν key.score key.value[j]).value
        = (Online.step s key).o[j] := by
  refine ⟨rfl, ?_, ?_⟩
  · show _ * s.l + _ * 1 = _ * s.l + _
    rw [Semiring.mul_one]
  · simp only [BoundedColumn.append, Online.step, Vec.getElem_add, Vec.getElem_smul]

/-- And a key deleted. -/
theorem boundedColumn_delete (u ν X Y : R) (s : Online.State R R d) (key : ScoredValue R R d)
    {j : Nat} (hj : j < d) :
    ((⟨s.m, s.l, X⟩ : BoundedColumn R).delete u ν key.score 1).m = (Online.delete s key).m ∧
      ((⟨s.m, s.l, X⟩ : BoundedColumn R).delete u ν key.score 1).value = (Online.delete s key).l ∧
      ((⟨s.m, s.o[j], Y⟩ : BoundedColumn R).delete u ν key.score key.value[j]).value
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

private theorem hundred_eq : (numeral 100 : R) = 100 := by
  rw [numeral_eq, ← Semiring.ofNat_eq_natCast]

/-- The error of an exponential whose exponent is off. -/
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

/-- The exponent of a weight, where it is rounded. -/
private theorem exponent_rounded {u s m s' m' x : R} (hu : 0 ≤ u) (hu₁ : u ≤ 1)
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

/-- The exponent of a weight. -/
private theorem exponent_close {u ν s m s' m' x : R} (hu : 0 ≤ u) (hu₁ : u ≤ 1) (hν : 0 ≤ ν)
    (hs : RoundedTimes u 2 s s') (hm : RoundedTimes u 2 m m') (hx : Difference u ν (s' - m') x) :
    AtMost ((1 + 2 * u) * (u * (2 * absolute s + 2 * absolute m + absolute (s - m)) + ν))
      (x - (s - m)) := by
  have hν' := OrderedRing.mul_nonneg hu hν
  rcases hx with hx | ⟨hd, rfl⟩
  · exact (exponent_rounded hu hu₁ hs hm hx).mono (by grind)
  · have h := (exponent_rounded (x := s' - m') hu hu₁ hs hm ⟨0, ⟨by grind, hu⟩, by grind⟩).sub hd
    rw [show s' - m' - (s - m) - (s' - m') = 0 - (s - m) by grind] at h
    exact h.mono (by grind)

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

private theorem weightError_nonneg {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (s m : Option R) :
    0 ≤ weightError u ν s m := by
  unfold weightError
  split
  · rename_i s m
    have := OrderedRing.mul_nonneg hu (b := numeral 2 * absolute s + numeral 2 * absolute m
      + absolute (s - m)) (by
        have := absolute_nonneg s
        have := absolute_nonneg m
        have := absolute_nonneg (s - m)
        rw [numeral_two]
        grind)
    rw [numeral_four]
    grind
  · exact Std.le_refl _

/-- A weight without what underflows of it, and two roundings more. -/
private theorem computedWeight_close [NaturalExp R] {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν)
    {s m s' m' : Option R} (hs : ComputedPoint u s s') (hm : ComputedPoint u m m')
    (small : numeral 100 * (weightError u ν s m + numeral 2 * u) ≤ 1) {w' : R}
    (hw : ComputedWeight u ν s' m' w') :
    ∃ w, AtMost ν (w' - w) ∧ ∀ θ₁ θ₂ : R, AtMost u θ₁ → AtMost u θ₂ →
    ∃ F, w * (1 + θ₁) * (1 + θ₂) = rescale s m * F ∧
      AtMost (secondOrder * (weightError u ν s m + numeral 2 * u)) (F - 1) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [secondOrder_eq, numeral_two, hundred_eq] at *
  have none_case : rescale s m = (0 : R) → w' = 0 → weightError u ν s m = 0 →
      ∃ w, AtMost ν (w' - w) ∧ ∀ θ₁ θ₂ : R, AtMost u θ₁ → AtMost u θ₂ →
      ∃ F, w * (1 + θ₁) * (1 + θ₂) = rescale s m * F ∧
        AtMost (51 / 50 * (weightError u ν s m + 2 * u)) (F - 1) := fun e₁ e₂ e₃ => by
    refine ⟨0, by rw [e₂]; exact ⟨by grind, by grind⟩, fun θ₁ θ₂ _ _ => ?_⟩
    refine ⟨1, by rw [e₁]; grind, ?_⟩
    rw [e₃, show (1 : R) - 1 = 0 by grind]
    exact .zero (by grind)
  match s, s', m, m', hs, hm, hw with
  | none, none, none, none, _, _, hw => exact none_case rfl hw rfl
  | none, none, some _, some _, _, _, hw => exact none_case rfl hw rfl
  | some _, some _, none, none, _, _, hw => exact none_case rfl hw rfl
  | some s, some s', some m, some m', hs, hm, hw =>
    obtain ⟨x, hx, hw⟩ := hw
    obtain ⟨τ, hτ, hν', -⟩ := stored_split (by rw [numeral_four]; grind) hν hw
    refine ⟨_, hν', fun θ₁ θ₂ h₁ h₂ => ?_⟩
    simp only [weightError, numeral_two, numeral_four, rescale] at *
    have ha : 0 ≤ u * (2 * absolute s + 2 * absolute m + absolute (s - m)) + ν := by
      have := absolute_nonneg s
      have := absolute_nonneg m
      have := absolute_nonneg (s - m)
      have := OrderedRing.mul_nonneg hu (b := 2 * absolute s + 2 * absolute m + absolute (s - m))
        (by grind)
      grind
    have hδ := exponent_close hu (by grind) hν hs hm hx
    generalize u * (2 * absolute s + 2 * absolute m + absolute (s - m)) + ν = a at *
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

/-- The part of a product with a weight that underflows, and is rounded with a sum. -/
private theorem underflow_close {u ν w w₀ x y B H θ σ : R} (hu : 0 ≤ u) (hν : 0 ≤ ν)
    (hw : AtMost ν (w - w₀)) (hx : AtMost H x) (hθ : AtMost u θ) (hσ : AtMost u σ)
    (hy : AtMost ν (y - w * x * (1 + θ))) (hB : (1 + u) * (1 + u) ≤ B) :
    AtMost (B * (ν * (H + 1))) (y * (1 + σ) - w₀ * (1 + θ) * (1 + σ) * x) := by
  have hθ' : AtMost (1 + u) (1 + θ) := ⟨by have := hθ.1; grind, by have := hθ.2; grind⟩
  have hσ' : AtMost (1 + u) (1 + σ) := ⟨by have := hσ.1; grind, by have := hσ.2; grind⟩
  have h := (((hw.mul hx).mul hθ').add hy).mul hσ'
  have e : ((w - w₀) * x * (1 + θ) + (y - w * x * (1 + θ))) * (1 + σ)
      = y * (1 + σ) - w₀ * (1 + θ) * (1 + σ) * x := by
    clear h
    grind
  rw [e] at h
  refine h.mono ?_
  have hH := hx.nonneg
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hB (OrderedRing.mul_nonneg hν hH)
  have i₂ : 1 + u ≤ B := by
    have := OrderedRing.mul_nonneg hu hu
    grind
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_right i₂ hν
  clear h e hθ hθ' hσ hσ' hy hw
  grind

/-- **rounded-state**: the reference point and a column of a state to which keys were appended, and
from which terms were subtracted, every operation rounded, are within the bounds that followed the
changes, also where weights, products, sums and differences of scores underflow; for the natural
exponential. -/
theorem rounded_state [NaturalExp R] {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {c : BoundedColumn R}
    {m : Option R} {x : R} (run : StateRun u ν c m x) :
    ComputedPoint u c.m m ∧ AtMost c.error (x - c.value) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  -- (1 + u)² is at most 1.02
  have second : ∀ {e : R}, 0 ≤ e → numeral 100 * (e + numeral 2 * u) ≤ 1 →
      (1 + u) * (1 + u) ≤ secondOrder := fun he h => by
    rw [secondOrder_eq]
    rw [numeral_two, hundred_eq] at h
    have := OrderedRing.mul_nonneg hu (b := 1 - 200 * u) (by grind)
    grind
  induction run with
  | empty =>
    refine ⟨trivial, ?_⟩
    show AtMost 0 ((0 : R) - 0)
    exact ⟨by grind, by grind⟩
  | @append c m m' s s' x v α p y z x' _ hs hm' small₁ small₂ hα hp hy hz hx' ih =>
    obtain ⟨hm, hx⟩ := ih
    refine ⟨hm', ?_⟩
    obtain ⟨θ₁, h₁, ny, -⟩ := stored_split hu hν hy
    obtain ⟨θ₂, h₂, nz, -⟩ := stored_split hu hν hz
    obtain ⟨_, ⟨θ₃, h₃, rfl⟩, lost⟩ := hx'
    obtain ⟨α₀, nα₀, hα₀⟩ := computedWeight_close hu hν hm hm' small₁ hα
    obtain ⟨p₀, np₀, hp₀⟩ := computedWeight_close hu hν hs hm' small₂ hp
    obtain ⟨F, eF, hF⟩ := hα₀ _ _ h₁ h₃
    obtain ⟨G, eG, hG⟩ := hp₀ _ _ h₂ h₃
    have hB := second (weightError_nonneg hu hν _ _) small₁
    have nα := rescale_nonneg (R := R) c.m (maxScore c.m s)
    have np := rescale_nonneg (R := R) s (maxScore c.m s)
    have hsize : AtMost (absolute c.value + c.error) x := by
      have := (atMost_absolute c.value).add hx
      rwa [show c.value + (x - c.value) = x by grind] at this
    have k₁ := underflow_close hu hν nα₀ hsize h₁ h₃ ny hB
    have k₂ := underflow_close hu hν np₀ (atMost_absolute v) h₂ h₃ nz hB
    rw [eF] at k₁
    rw [eG] at k₂
    simp only [BoundedColumn.append]
    rw [show (numeral 3 : R) = 3 from numeral_three]
    rw [show (numeral 2 : R) = 2 from numeral_two] at *
    generalize (rescale c.m (maxScore c.m s) : R) = A at *
    generalize (rescale s (maxScore c.m s) : R) = P at *
    generalize weightError u ν c.m (maxScore c.m s) + 2 * u = e₁ at *
    generalize weightError u ν s (maxScore c.m s) + 2 * u = e₂ at *
    have i₁ := atMost_mul_left nα (hsize.mul hF)
    have i₂ := atMost_mul_left nα hx
    have i₃ := atMost_mul_left np ((atMost_absolute v).mul hG)
    have h := ((((i₂.add i₁).add i₃).add k₁).add k₂).add lost
    have f₁ : A * (x - c.value) + A * (x * (F - 1)) + P * (v * (G - 1))
        + (y * (1 + θ₃) - A * F * x) + (z * (1 + θ₃) - P * G * v) + (x' - (y + z) * (1 + θ₃))
        = x' - (A * c.value + P * v) := by
      clear lost h i₁ i₂ i₃ k₁ k₂ hB second eF eG
      grind
    rw [f₁] at h
    clear lost i₁ i₂ i₃ k₁ k₂ hB second eF eG f₁ ny nz hα₀ hp₀
    have hν₂ : ν ≤ secondOrder * ν := by
      rw [secondOrder_eq]
      grind
    exact h.mono (by grind)
  | @delete c m s s' x v p z x' _ hs small hp hz hx' ih =>
    obtain ⟨hm, hx⟩ := ih
    refine ⟨hm, ?_⟩
    obtain ⟨θ₂, h₂, nz, -⟩ := stored_split hu hν hz
    obtain ⟨_, ⟨θ₃, h₃, rfl⟩, lost⟩ := hx'
    obtain ⟨p₀, np₀, hp₀⟩ := computedWeight_close hu hν hs hm small hp
    obtain ⟨G, eG, hG⟩ := hp₀ _ _ h₂ h₃
    have hB := second (weightError_nonneg hu hν _ _) small
    have np := rescale_nonneg (R := R) s c.m
    have k₂ := underflow_close hu hν np₀ (atMost_absolute v) h₂ h₃ nz hB
    rw [eG] at k₂
    simp only [BoundedColumn.delete]
    generalize (rescale s c.m : R) = P at *
    generalize weightError u ν s c.m + numeral 2 * u = e₂ at *
    have hsize : AtMost (absolute c.value + c.error) x := by
      have := (atMost_absolute c.value).add hx
      rwa [show c.value + (x - c.value) = x by grind] at this
    have i₁ := h₃.mul hsize
    have i₃ := atMost_mul_left np ((atMost_absolute v).mul hG)
    have h := (((hx.add i₁).sub i₃).sub k₂).add lost
    have f₁ : x - c.value + θ₃ * x - P * (v * (G - 1)) - (z * (1 + θ₃) - P * G * v)
          + (x' - (x - z) * (1 + θ₃)) = x' - (c.value - P * v) := by
      clear lost h i₁ i₃ k₂ hB second eG
      grind
    rw [f₁] at h
    have hn := OrderedRing.mul_nonneg hu hsize.nonneg
    rw [secondOrder_eq] at h ⊢
    rw [show (numeral 2 : R) = 2 from numeral_two] at *
    clear lost i₁ i₃ k₂ hB second eG f₁ nz hp₀
    exact h.mono (by grind)

end Attention.Proof
