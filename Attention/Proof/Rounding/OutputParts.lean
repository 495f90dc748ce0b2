module

public import Attention.Model.RoundedGradients
public import Attention.Proof.Rounding.Underflow
import Attention.Proof.Rounding.OutputNumbers
import Attention.Proof.Rounding.UnderflowTolerance

public section

/-! # The part of each key in an output

What a run whose numbers underflow divides at the end, its numerator by its denominator, is a sum of
parts, one for each key: a weight that is off by the arguments of its exponentials, and stored,
times the value of the key, times a factor for all roundings of sums, products and exponentials; and
what underflowed of them. Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind Underflow

universe u v

variable {R : Type u} [OrderedField R]

/-- Numbers that are stored several times stay 0. -/
private theorem tinyTimes_zero {u ν : R} (hu : 0 ≤ u) : ∀ {k : Nat} {y : R},
    TinyTimes u ν k 0 y → y = 0
  | 0, _, h => h
  | _ + 1, y, ⟨z, hz, hy⟩ => by
    obtain rfl := tinyTimes_zero hu hz
    have h := hy.2
    rw [absolute_of_nonneg (Std.le_refl _)] at h
    obtain ⟨h₁, h₂⟩ := h
    grind

/-! ## Parts -/

variable [Exponential R R] {p : Precision R} {ν m : R}

/-- What a key costs at most. -/
private theorem cost_le_units (hp : Precise p) (hν : 0 ≤ ν) {r : Nat} {f : ComputedKey R → R}
    {k : ComputedKey R} (hf : 0 ≤ f k) : cost p ν m r f k
      ≤ numeral (r + 6) * (ν / (1 - p.exponential) ^ r) * (2 * f k + 1) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hs := OrderedField.div_nonneg hν (OrderedField.pow_pos (remainder_pos hp) r)
  have hn := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 6)) hs
  have hm := OrderedRing.mul_le_mul_of_nonneg_right
    (numeral_le_numeral (R := R) (show r + 2 ≤ r + 6 by omega)) hs
  unfold cost
  split
  · exact OrderedRing.mul_nonneg hn (by grind)
  · have i := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_trans (smaller_le
      (3 ^ (r + 2) * most p m r k) (numeral (r + 2) * (ν / (1 - p.exponential) ^ r))).2 hm) hf
    generalize smaller ((3 : R) ^ (r + 2) * most p m r k)
      (numeral (r + 2) * (ν / (1 - p.exponential) ^ r)) = s at *
    generalize numeral (r + 2) * (ν / (1 - p.exponential) ^ r) = a at *
    generalize numeral (r + 6) * (ν / (1 - p.exponential) ^ r) = b at *
    grind

/-- Of the part of a key with denominator `l`, a weight `w`, a factor `t` and what is lost of it,
`e`, where it has gone through at most `N` roundings and `r` rescalings. -/
structure OutputPart (p : Precision R) (ν m l : R) (N r : Nat) (key : ComputedKey R) (w t e : R) :
    Prop where
  /-- Nothing is left of a masked key. -/
  masked : key.score = none → w = 0 ∧ e = 0
  /-- The reference point is no smaller than its score. -/
  below : key.score ≠ none → key.computed ≤ m
  /-- The weight is off by the arguments of its exponentials, and stored. -/
  weight : key.score ≠ none → ∃ G, G ≤ exp (key.computed - m) * exp (p.unit * (m - key.computed)) ∧
    exp (key.computed - m) ≤ G * exp (p.unit * (m - key.computed)) ∧
    StoredBelow p.stored (p.storedTiny / (1 - p.exponential) ^ r / l
      * (1 / (1 - p.exponential) ^ (r + 1))) (G / l) w
  /-- Roundings of sums and products, and the errors of exponentials. -/
  factor : AtMost ((1 + p.accumulation) ^ N * (1 / (1 - p.exponential) ^ (r + 1)) - 1) (t - 1)
  /-- What underflows. -/
  lost : AtMost ((1 + p.accumulation) ^ N * (numeral (r + 6) * (ν / (1 - p.exponential) ^ r / l)
    * (2 * absolute key.value + 1))) e

/-- The weight of a part. -/
private theorem part_weight (hp : Precise p) {l w w' : R} (hl : 0 < l) {r : Nat}
    {key : ComputedKey R} (hm : key.computed ≤ m)
    (h₁ : w ≤ exp (key.computed - m) * (exp (p.unit * (m - key.computed))
      / (1 - p.exponential) ^ (r + 1)))
    (h₂ : exp (key.computed - m) ≤ w * (exp (p.unit * (m - key.computed))
      / (1 - p.exponential) ^ (r + 1)))
    (hw : Stored p.stored (p.storedTiny / (1 - p.exponential) ^ r) w w') :
    ∃ G ρ, 0 < ρ ∧ AtMost (1 / (1 - p.exponential) ^ (r + 1) - 1) (ρ - 1) ∧
      G ≤ exp (key.computed - m) * exp (p.unit * (m - key.computed)) ∧
      exp (key.computed - m) ≤ G * exp (p.unit * (m - key.computed)) ∧
      StoredBelow p.stored (p.storedTiny / (1 - p.exponential) ^ r / l
        * (1 / (1 - p.exponential) ^ (r + 1))) (G / l) (w' / (l * ρ)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hq := remainder_pos hp
  have hQ := OrderedField.pow_pos hq (r + 1)
  have hP : 1 ≤ 1 / (1 - p.exponential) ^ (r + 1) := by
    rw [OrderedField.le_div_iff hQ, Semiring.mul_one]
    exact OrderedField.pow_le_one hq (by have := hp.exponential; grind) _
  have hU : (1 : R) ≤ exp (p.unit * (m - key.computed)) := by
    rw [← exp_zero (S := R)]
    exact exp_le (OrderedRing.mul_nonneg hp.unit (by grind))
  have hE := exp_pos (R := R) (key.computed - m)
  have hη := OrderedField.div_nonneg hp.storedTiny (OrderedField.pow_pos hq r)
  rw [Field.div_eq_mul_inv _ ((1 - p.exponential) ^ (r + 1)),
    ← show (1 : R) / (1 - p.exponential) ^ (r + 1) = ((1 - p.exponential) ^ (r + 1))⁻¹ by
      rw [Field.div_eq_mul_inv, Semiring.one_mul]] at h₁ h₂
  generalize (1 : R) / (1 - p.exponential) ^ (r + 1) = P at *
  generalize p.storedTiny / (1 - p.exponential) ^ r = η at *
  obtain ⟨G, ρ, e, hρ, i₁, i₂, i₃, i₄⟩ := two_factors hE hU hP h₁ h₂
  refine ⟨G, ρ, hρ, factor_atMost hP i₃ i₄, i₁, i₂, ?_⟩
  have hG : 0 < G := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_nonneg (a := -G) (b := exp (p.unit * (m - key.computed)))
      (by grind) (by grind)
    grind
  obtain ⟨θ, hθ, j₁, -⟩ := stored_split hp.stored hη hw
  have hlρ := OrderedRing.mul_pos hl hρ
  have e₁ : w' / (l * ρ) - G / l * (1 + θ) = (w' - w * (1 + θ)) / (l * ρ) := by
    rw [e]
    have d₁ := OrderedField.mul_div_cancel (b := l) (ne_zero_of_pos hl) G
    have d₂ := OrderedField.mul_div_cancel (b := l * ρ) (ne_zero_of_pos hlρ) w'
    have d₃ := OrderedField.mul_div_cancel (b := l * ρ) (ne_zero_of_pos hlρ) (w' - G * ρ * (1 + θ))
    generalize w' / (l * ρ) = a at *
    generalize G / l = b at *
    generalize (w' - G * ρ * (1 + θ)) / (l * ρ) = c at *
    refine Classical.byContradiction fun hn => ?_
    have hz : l * ρ * (a - b * (1 + θ) - c) = 0 := by
      clear hw h₁ h₂ i₁ i₂ i₃ i₄ j₁
      grind
    rcases Field.of_mul_eq_zero hz with h | h
    · exact ne_zero_of_pos hlρ h
    · exact hn (by
        clear hw h₁ h₂ i₁ i₂ i₃ i₄ j₁ d₁ d₂ d₃ hz
        grind)
  refine ⟨G / l * (1 + θ), ⟨θ, hθ, rfl⟩, ?_, fun h => ?_⟩
  · rw [e₁]
    have hi : AtMost (1 / (l * ρ)) (1 / (l * ρ)) := atMost_self (OrderedField.div_nonneg
      (Std.le_of_lt h₀) hlρ)
    have k := j₁.mul hi
    rw [show (w' - w * (1 + θ)) * (1 / (l * ρ)) = (w' - w * (1 + θ)) / (l * ρ) by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]] at k
    refine k.mono ?_
    have i₅ : 1 / (l * ρ) ≤ P / l := by
      rw [OrderedField.div_le_iff hlρ]
      have d := OrderedField.mul_div_cancel (b := l) (ne_zero_of_pos hl) P
      rw [show l * ρ * (P / l) = ρ * (l * (P / l)) by
        generalize P / l = x
        clear hw h₁ h₂ i₁ i₂ i₃ j₁ e₁ k hi
        grind, d]
      exact i₄
    have i₆ := OrderedRing.mul_le_mul_of_nonneg_left i₅ hη
    rwa [show η / l * P = η * (P / l) by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]
      generalize l⁻¹ = x
      clear hw h₁ h₂ i₁ i₂ i₃ j₁ e₁ k hi i₅ i₆
      grind]
  · have := OrderedField.div_pos hG hl
    grind

omit [Exponential R R] in
private theorem roundedTimes_eq_zero {u : R} (hu : u < 1) : ∀ {k : Nat} {x y : R},
    RoundedTimes u k x y → y = 0 → x = 0
  | 0, _, _, h, e => h.symm.trans e
  | _ + 1, x, y, ⟨z, hz, θ, hθ, h⟩, e => by
    refine roundedTimes_eq_zero hu hz ?_
    have := hθ.1
    rcases Field.of_mul_eq_zero (h.symm.trans e) with h | h
    · exact h
    · grind

/-- One key of a quotient that is rounded five times more. -/
private theorem exists_part (hp : Precise p) (hν : 0 ≤ ν) {l μ₁ μ₂ F w w' : R} (hl : 0 < l)
    {n r : Nat} {key : ComputedKey R} (masked : key.score = none → w = 0)
    (hw : key.score ≠ none → key.computed ≤ m ∧ 0 < w ∧
      w ≤ exp (key.computed - m) * (exp (p.unit * (m - key.computed))
        / (1 - p.exponential) ^ (r + 1)) ∧
      exp (key.computed - m) ≤ w * (exp (p.unit * (m - key.computed))
        / (1 - p.exponential) ^ (r + 1)))
    (hw' : Stored p.stored (p.storedTiny / (1 - p.exponential) ^ r) w w')
    (hμ₁ : AtMost 1 μ₁) (hμ₂ : AtMost 1 μ₂) (hF : AtMost ((1 + p.accumulation) ^ 5 - 1) (F - 1)) :
    ∃ z : R × R × R, OutputPart p ν m l (n + 6) r key z.1 z.2.1 z.2.2 ∧
      (w' * key.value + μ₁ * (((1 + p.accumulation) ^ (n + 1) - 1) * (w' * absolute key.value))
          + μ₂ * ((1 + p.accumulation) ^ (n + 1) * cost p ν m r (fun k => absolute k.value) key))
        / l * F = z.1 * key.value * z.2.1 + z.2.2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hq := remainder_pos hp
  have hQ := OrderedField.pow_pos hq (r + 1)
  have hP : 1 ≤ 1 / (1 - p.exponential) ^ (r + 1) := by
    rw [OrderedField.le_div_iff hQ, Semiring.mul_one]
    exact OrderedField.pow_le_one hq (by have := hp.exponential; grind) _
  have ha := one_le_one_plus hp.accumulation
  have hg := OrderedField.one_le_pow ha (n + 1)
  have hg₅ := OrderedField.one_le_pow ha 5
  have hN : (1 + p.accumulation) ^ (n + 6)
      = (1 + p.accumulation) ^ (n + 1) * (1 + p.accumulation) ^ 5 := by
    rw [show n + 6 = n + 1 + 5 by omega, Semiring.pow_add]
  have hc := cost_nonneg (m := m) (r := r) (f := fun k => absolute k.value) hp hν (k := key)
    (absolute_nonneg _)
  have hc' := cost_le_units (m := m) (r := r) (f := fun k => absolute k.value) hp hν (k := key)
    (absolute_nonneg _)
  have hlost : AtMost ((1 + p.accumulation) ^ (n + 6) * (numeral (r + 6)
      * (ν / (1 - p.exponential) ^ r / l) * (2 * absolute key.value + 1)))
      (μ₂ * ((1 + p.accumulation) ^ (n + 1) * cost p ν m r (fun k => absolute k.value) key)
        / l * F) := by
    have i₁ : AtMost ((1 + p.accumulation) ^ 5) F := by
      have := hF.add (atMost_self (Std.le_of_lt h₀))
      rwa [show (1 + p.accumulation) ^ 5 - 1 + 1 = (1 + p.accumulation) ^ 5 by
        generalize (1 + p.accumulation) ^ 5 = x
        grind, show F - 1 + 1 = F by grind] at this
    have i₂ := (((hμ₂.mul (atMost_self (OrderedRing.mul_nonneg (nonneg_of_one_le hg) hc))).mul
      (atMost_self (OrderedField.div_nonneg (Std.le_of_lt h₀) hl))).mul i₁)
    have over : ∀ x : R, x * (1 / l) = x / l := fun x => by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]
    rw [over, over] at i₂
    refine i₂.mono ?_
    rw [hN, Semiring.one_mul]
    have i₃ := OrderedRing.mul_le_mul_of_nonneg_left hc' (OrderedRing.mul_nonneg
      (OrderedRing.mul_nonneg (nonneg_of_one_le hg) (nonneg_of_one_le hg₅))
      (OrderedField.div_nonneg (Std.le_of_lt h₀) hl))
    simp only [] at i₃
    rw [Field.div_eq_mul_inv _ l, Semiring.one_mul] at i₃
    rw [Field.div_eq_mul_inv _ l, Field.div_eq_mul_inv _ l]
    generalize l⁻¹ = i at *
    generalize cost p ν m r (fun k => absolute k.value) key = c at *
    generalize ν / (1 - p.exponential) ^ r = d at *
    generalize (1 + p.accumulation) ^ (n + 1) = g at *
    generalize (1 + p.accumulation) ^ 5 = g' at *
    generalize absolute key.value = v at *
    generalize (numeral (r + 6) : R) = k at *
    clear i₁ i₂ hw' hw masked hP hQ hF hc' hc hN over
    grind
  cases hs : key.score with
  | none =>
    obtain rfl := masked hs
    have e₁ : w' = 0 := by
      have h := hw'.2
      rw [absolute_of_nonneg (Std.le_refl _)] at h
      obtain ⟨h₁, h₂⟩ := h
      grind
    have e₂ : cost p ν m r (fun k => absolute k.value) key = 0 := by simp only [cost, hs]
    refine ⟨(0, 1, 0), ⟨fun _ => ⟨rfl, rfl⟩, fun h => absurd hs h, fun h => absurd hs h, ?_,
      .zero hlost.nonneg⟩, ?_⟩
    · show AtMost _ ((1 : R) - 1)
      rw [show (1 : R) - 1 = 0 by grind]
      refine .zero ?_
      have := OrderedField.mul_le_mul (Std.le_of_lt h₀) (OrderedField.one_le_pow ha (n + 6))
        (Std.le_of_lt h₀) hP
      grind
    · show _ = (0 : R) * key.value * 1 + 0
      rw [e₁, e₂]
      generalize (1 + p.accumulation) ^ (n + 1) = g
      generalize absolute key.value = v
      rw [Field.div_eq_mul_inv]
      grind
  | some s =>
    obtain ⟨k₁, -, k₂, k₃⟩ := hw (by simp [hs])
    obtain ⟨G, ρ, hρ, j₁, j₂, j₃, j₄⟩ := part_weight hp hl k₁ k₂ k₃ hw'
    obtain ⟨σ, hσ, e⟩ := exists_sign key.value
    have hlρ := OrderedRing.mul_pos hl hρ
    refine ⟨(w' / (l * ρ), ρ * (1 + μ₁ * σ * ((1 + p.accumulation) ^ (n + 1) - 1)) * F,
      μ₂ * ((1 + p.accumulation) ^ (n + 1) * cost p ν m r (fun k => absolute k.value) key)
        / l * F), ⟨fun h => absurd (hs.symm.trans h) (by simp), fun _ => k₁,
      fun _ => ⟨G, j₂, j₃, j₄⟩, ?_,
      hlost⟩, ?_⟩
    · have i₁ : AtMost ((1 + p.accumulation) ^ (n + 1) - 1)
          (1 + μ₁ * σ * ((1 + p.accumulation) ^ (n + 1) - 1) - 1) := by
        have := (hμ₁.mul hσ).mul (atMost_self (x := (1 + p.accumulation) ^ (n + 1) - 1)
          (by grind))
        generalize (1 + p.accumulation) ^ (n + 1) = g at *
        rwa [show 1 * 1 * (g - 1) = g - 1 by grind,
          show μ₁ * σ * (g - 1) = 1 + μ₁ * σ * (g - 1) - 1 by grind] at this
      have i₂ := factor_mul (factor_mul j₁ i₁) hF
      show AtMost _ (ρ * (1 + μ₁ * σ * ((1 + p.accumulation) ^ (n + 1) - 1)) * F - 1)
      rwa [show (1 + p.accumulation) ^ (n + 6) * (1 / (1 - p.exponential) ^ (r + 1))
        = 1 / (1 - p.exponential) ^ (r + 1) * (1 + p.accumulation) ^ (n + 1)
          * (1 + p.accumulation) ^ 5 by
          rw [hN]
          generalize 1 / (1 - p.exponential) ^ (r + 1) = P
          generalize (1 + p.accumulation) ^ (n + 1) = g
          generalize (1 + p.accumulation) ^ 5 = g'
          grind]
    · show _ = w' / (l * ρ) * key.value
        * (ρ * (1 + μ₁ * σ * ((1 + p.accumulation) ^ (n + 1) - 1)) * F) + _
      rw [e]
      have d := OrderedField.mul_div_cancel (b := l * ρ) (ne_zero_of_pos hlρ) w'
      generalize w' / (l * ρ) = x at *
      obtain rfl := d
      generalize (1 + p.accumulation) ^ (n + 1) = g at *
      generalize cost p ν m r (fun k => absolute k.value) key = c at *
      generalize key.value = v at *
      have hl' : l ≠ 0 := ne_zero_of_pos hl
      clear hlost hw' hw masked hP hQ hF hc' hc j₁ j₂ j₃ j₄ k₂ k₃ hg hN e hμ₁ hμ₂ hσ hlρ
      have d := OrderedField.mul_div_cancel hl' (μ₂ * (g * c))
      have d' := OrderedField.mul_div_cancel hl'
        (l * ρ * x * v + μ₁ * ((g - 1) * (l * ρ * x * (σ * v))) + μ₂ * (g * c))
      generalize μ₂ * (g * c) / l = y at *
      generalize (l * ρ * x * v + μ₁ * ((g - 1) * (l * ρ * x * (σ * v))) + μ₂ * (g * c)) / l
        = y' at *
      have h : l * (y' - (x * v * (ρ * (1 + μ₁ * σ * (g - 1))) + y)) = 0 := by grind
      have h' : y' = x * v * (ρ * (1 + μ₁ * σ * (g - 1))) + y := by
        rcases Field.of_mul_eq_zero h with h | h
        · exact absurd h hl'
        · grind
      rw [h']
      grind

/-- **tiny-output-parts**: what a run whose numbers underflow divides at the end, stored up to five
times in the accumulator, is the sum of the parts of its keys, but for what these five lose, and 0
where that sum is. -/
theorem tiny_output_parts {α : Type v} [DecidableEq α] (hp : Precise p) (hν : 0 ≤ ν)
    (hu : p.unit ≤ 1) (ha : p.accumulation < 1) {part : Part R} (run : TinyRun p ν 0 m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential) {cols : List α} (hn : cols.Nodup)
    {key : α → ComputedKey R} (keys : part.keys = cols.map key) (hl : 0 < part.l) {y : R}
    (hy : TinyTimes p.accumulation ν 5 (part.o / part.l) y) :
    ∃ w t e : α → R,
      (∀ c ∈ cols, OutputPart p ν m part.l (part.additions + part.rescalings + 6) part.rescalings
        (key c) (w c) (t c) (e c)) ∧
      AtMost ((1 + p.accumulation) ^ 5 * (numeral 5 * ν))
        (y - sumOver (fun c => w c * (key c).value * t c + e c) cols) ∧
      (sumOver (fun c => w c * (key c).value * t c + e c) cols = 0 → y = 0) := by
  obtain ⟨part₀, C⟩ := tiny_run hp hν hu run hνq
  obtain ⟨ws, hkeys, hmasked, hws, hstored, -, ho⟩ := run_weights hp C.run fun _ => hu
  have hO := C.o hp hν
  rw [C.keys, keys] at hkeys
  rw [C.rescalings] at hws hstored
  rw [C.additions, C.rescalings] at ho
  obtain ⟨s, rfl, hkey⟩ := exists_map (fun c => (key c, 0, 0)) hn hkeys
  have hkey : ∀ c ∈ cols, (s c).1 = key c := hkey
  rw [keys] at hO
  simp only [sumOver_map] at ho hO
  generalize part.additions + part.rescalings = n at *
  rw [← sumOver_mul_left] at ho hO
  obtain ⟨μ₁, hμ₁, e₁⟩ := exists_shares ho
  obtain ⟨μ₂, hμ₂, e₂⟩ := exists_shares hO
  obtain ⟨y₀, hy₀, hyy⟩ := storedTimes_companion hp.accumulation hν hy (c := 0)
    (x₀ := part.o / part.l) ⟨by grind, by grind⟩
  have zero := roundedTimes_eq_zero ha hy₀
  obtain ⟨F, rfl, hF⟩ := roundedTimes_factor hy₀
  have parts : ∀ c, ∃ z : R × R × R, c ∈ cols → OutputPart p ν m part.l (n + 6) part.rescalings
      (key c) z.1 z.2.1 z.2.2 ∧
      ((s c).2.2 * (key c).value + μ₁ * (((1 + p.accumulation) ^ (n + 1) - 1)
            * ((s c).2.2 * absolute (key c).value))
          + μ₂ * ((1 + p.accumulation) ^ (n + 1)
            * cost p ν m part.rescalings (fun k => absolute k.value) (key c)))
        / part.l * F = z.1 * (key c).value * z.2.1 + z.2.2 := fun c => by
    by_cases hc : c ∈ cols
    · have hmem := List.mem_map_of_mem (f := s) hc
      have h₁ := hmasked _ hmem
      have h₂ := hws _ hmem
      have h₃ := hstored _ hmem
      rw [hkey c hc] at h₁ h₂
      obtain ⟨z, hz⟩ := exists_part hp hν hl (n := n) h₁ h₂ h₃ hμ₁ hμ₂ hF
      exact ⟨z, fun _ => hz⟩
    · exact ⟨(0, 0, 0), fun h => absurd h hc⟩
  obtain ⟨z, hz⟩ := Classical.skolem.mp parts
  have sum : sumOver (fun c => (z c).1 * (key c).value * (z c).2.1 + (z c).2.2) cols
      = part.o / part.l * F := by
    have e₃ : part.o = sumOver (fun c => (s c).2.2 * (key c).value
        + μ₁ * (((1 + p.accumulation) ^ (n + 1) - 1) * ((s c).2.2 * absolute (key c).value))
        + μ₂ * ((1 + p.accumulation) ^ (n + 1)
          * cost p ν m part.rescalings (fun k => absolute k.value) (key c))) cols := by
      have e₄ : sumOver (fun c => (s c).2.2 * (s c).1.value) cols
          = sumOver (fun c => (s c).2.2 * (key c).value) cols :=
        sumOver_congr fun c hc => by rw [hkey c hc]
      have e₅ : sumOver (fun c => μ₁ * (((1 + p.accumulation) ^ (n + 1) - 1)
            * ((s c).2.2 * absolute (s c).1.value))) cols
          = sumOver (fun c => μ₁ * (((1 + p.accumulation) ^ (n + 1) - 1)
            * ((s c).2.2 * absolute (key c).value))) cols :=
        sumOver_congr fun c hc => by rw [hkey c hc]
      rw [sumOver_add, sumOver_add, ← e₄, ← e₅, ← e₁, ← e₂]
      grind
    rw [e₃, Field.div_eq_mul_inv, ← sumOver_mul_right, ← sumOver_mul_right]
    refine sumOver_congr fun c hc => ?_
    rw [← (hz c hc).2, Field.div_eq_mul_inv]
  refine ⟨fun c => (z c).1, fun c => (z c).2.1, fun c => (z c).2.2, fun c hc => (hz c hc).1, ?_,
    fun h => ?_⟩
  · show AtMost _ (y - sumOver (fun c => (z c).1 * (key c).value * (z c).2.1 + (z c).2.2) cols)
    rw [sum]
    rwa [Semiring.mul_zero, show ∀ x : R, 0 + x = x from fun x => by grind] at hyy
  · have h : sumOver (fun c => (z c).1 * (key c).value * (z c).2.1 + (z c).2.2) cols = 0 := h
    rw [sum] at h
    have hx := zero h
    rw [hx] at hy
    exact tinyTimes_zero hp.accumulation hy

end Attention.Proof
