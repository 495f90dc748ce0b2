module

public import Attention.Proof.Softmax.Maximum
public import Attention.Proof.Rounding.Dot

public section

/-! # Computed scores stay within their tolerance

Docs/tolerances.md, section 1: the scores that a function computes are the exact ones, but for a
constant that all keys of the row share and an error of each key for which `Spec.scoreError` is a
bound. The products of errors are covered: those that are in proportion to the score by what
γ(additions + 2) leaves over, and those of the scale's error by the choice of the constant. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## What is of second order -/

/-- The difference of two powers of numbers that are at least 1. -/
private theorem score_pow_sub {x y G : R} (hx : 1 ≤ x) (hxy : x ≤ y) (hG : 1 ≤ G) (k : Nat) :
    numeral k * (y - x) ≤ G * (y ^ k - x ^ k) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  induction k with
  | zero =>
    rw [Semiring.pow_zero, Semiring.pow_zero, show (numeral 0 : R) = 0 from rfl]
    grind
  | succ k ih =>
    rw [Semiring.pow_succ, Semiring.pow_succ, numeral_succ]
    have h₁ := OrderedField.one_le_pow (x := y) (by grind) k
    have h₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) (b := y - x) (by grind)
    generalize y ^ k = Y at *
    generalize x ^ k = X at *
    generalize numeral (R := R) k = N at *
    have h₃ : G ≤ G * Y := by
      have := OrderedRing.mul_le_mul_of_nonneg_left h₁ (c := G) (by grind)
      grind
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_right (a := 1) (b := G * Y) (c := y - x) (by grind)
      (by grind)
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_right hx (c := G * (Y - X)) (by grind)
    grind

/-- What γ(n + 2) leaves over covers five roundings more, less their first order, and less what
the roundings of operands, a factor of at most `ρ`, make of them. -/
private theorem score_slack_gamma {a x P ρ : R} (ha : 0 ≤ a) (hx : 0 ≤ x) (hρ : 1 ≤ ρ)
    (h : P * (1 - (x + 4 * a)) ≤ 1) (hm : 10 * (x + 2 * a) + 4 * (ρ - 1) ≤ 1) :
    ρ * P ≤ ρ * (1 + x / (1 - x)) + 5 * a := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hD : 0 < 1 - x := by grind
  have e : 1 + x / (1 - x) = 1 / (1 - x) := by grind
  have h₁ := OrderedRing.mul_nonneg hx (b := x + 4 * a) (by grind)
  have h₂ : 4 * ρ ≤ 5 * ((1 - x) * (1 - (x + 4 * a))) := by grind
  have h₃ : ρ * (P * (1 - x) - 1) ≤ 5 * a * (1 - x) := by
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt hD)
    have h₅ := OrderedRing.mul_nonneg ha (Std.le_of_lt hD)
    by_cases hT : 0 ≤ P * (1 - x) - 1
    · have h₆ := OrderedRing.mul_le_mul_of_nonneg_right h₂ hT
      have h₇ : (P * (1 - x) - 1) * (1 - (x + 4 * a)) ≤ 4 * a := by grind
      have h₈ := OrderedRing.mul_le_mul_of_nonneg_left h₇ (Std.le_of_lt hD)
      generalize P * (1 - x) - 1 = T at *
      grind
    · have h₆ := OrderedRing.mul_nonneg (a := ρ) (b := -(P * (1 - x) - 1)) (by grind) (by grind)
      grind
  rw [e, show ρ * (1 / (1 - x)) + 5 * a = (ρ + 5 * a * (1 - x)) / (1 - x) by grind,
    OrderedField.le_div_iff hD]
  grind

private theorem score_slack {u a ρ : R} {n : Nat} (hu : 0 ≤ u) (hua : u ≤ a) (hρ : 1 ≤ ρ)
    (hm : 10 * (numeral (n + 4) * a) + 4 * (ρ - 1) ≤ 1) :
    (1 + u) ^ 5 * (ρ * (1 + a) ^ (n + 1)) - 1 - 5 * u ≤ (1 + gamma (n + 2) a) * ρ - 1 := by
  have ha := Std.le_trans hu hua
  have h₁ := pow_mul_one_sub_le ha (n + 6)
  have h₂ := OrderedField.one_le_pow (x := 1 + a) (by grind) (n + 1)
  have h₃ := score_pow_sub (x := 1 + u) (y := 1 + a) (by grind) (by grind) h₂ 5
  have h₅ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (n + 2)) ha
  have e₁ : (1 + a) ^ (n + 6) = (1 + a) ^ (n + 1) * (1 + a) ^ 5 := Semiring.pow_add _ (n + 1) 5
  have e₂ : (numeral (n + 6) : R) * a = numeral (n + 2) * a + 4 * a := by
    rw [numeral_succ, numeral_succ, numeral_succ, numeral_succ]
    grind
  have e₃ : (numeral (n + 4) : R) * a = numeral (n + 2) * a + 2 * a := by
    rw [numeral_succ, numeral_succ]
    grind
  rw [e₂] at h₁
  rw [e₃] at hm
  rw [numeral_five] at h₃
  have h₆ := score_slack_gamma ha h₅ hρ h₁ hm
  rw [gamma]
  rw [e₁] at h₆
  generalize (1 + a) ^ (n + 1) = G at *
  generalize (1 + a) ^ 5 = Y at *
  generalize (1 + u) ^ 5 = X at *
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_left h₃ (c := ρ) (by
    have := OrderedRing.zero_lt_one (R := R)
    grind)
  have h₈ := OrderedRing.mul_nonneg (a := ρ - 1) (b := a - u) (by grind) (by grind)
  grind

/-- A number that is at most c + r is one of at most c, and what is left over. -/
private theorem score_clip {c r η : R} (hc : 0 ≤ c) (hr : 0 ≤ r) (h : AtMost (c + r) η) :
    ∃ η', AtMost c η' ∧ AtMost r (η - η') := by
  obtain ⟨h₁, h₂⟩ := h
  by_cases h₃ : η ≤ c
  · by_cases h₄ : -c ≤ η
    · exact ⟨η, ⟨h₄, h₃⟩, ⟨by grind, by grind⟩⟩
    · exact ⟨-c, ⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩
  · exact ⟨c, ⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩

/-! ## Scores of a row -/

/-- What is rounded, with no number below the normal ones, is stored. -/
theorem storedNear_of_rounded {u η x y : R} (h : Rounded u x y) (hη : 0 ≤ η) :
    StoredNear u η x y :=
  ⟨y, h, by rw [show y - y = 0 by grind]; exact .zero hη⟩

/-- Formats that are those of the accumulator. -/
theorem inAccumulator_precise : PreciseFormats (inAccumulator : ScoreFormats R) :=
  ⟨Std.le_refl _, Std.le_refl _⟩

/-- Where no operand is below the normal numbers, the parts of the scale may be any. -/
theorem scaledBy_normal {p : Precision R} {f : ScoreFormats R} (hf : f.operandsTiny = 0)
    {scale σ₁ σ₂ σ : R} (h : RoundedTimes p.unit 3 scale (σ₁ * σ₂ * σ)) :
    ScaledBy p f scale σ₁ σ₂ σ :=
  have none : ∀ {P : Prop}, 0 < f.operandsTiny → P := fun ht => by
    rw [hf] at ht
    grind
  ⟨h, none, none, none⟩

/-- The error of the scale, and the part of it that the constant of the row takes up. -/
private theorem score_scale {u scale σ : R} (hu : 0 ≤ u) (h : RoundedTimes u 3 scale σ) :
    ∃ η η', σ = scale * (1 + η) ∧ AtMost ((1 + u) ^ 3 - 1) η ∧ AtMost (3 * u) η' ∧
      AtMost ((1 + u) ^ 3 - 1 - 3 * u) (η - η') := by
  obtain ⟨τ, hσ, hη⟩ := roundedTimes_factor h
  have h₁ : (1 + u) ^ 3 - 1 - 3 * u = 3 * (u * u) + u * (u * u) := by grind
  have h₂ := OrderedRing.mul_nonneg hu hu
  have h₃ := OrderedRing.mul_nonneg hu h₂
  obtain ⟨η', h₄, h₅⟩ := score_clip (c := 3 * u) (r := (1 + u) ^ 3 - 1 - 3 * u) (η := τ - 1)
    (by grind) (by grind) (hη.mono (by grind))
  exact ⟨τ - 1, η', by rw [hσ]; grind, hη, h₄, h₅⟩

/-- All errors of one score, at most. -/
private theorem score_bound {u Γ g A S b : R} (hu : 0 ≤ u) (hA : 0 ≤ A) (hS : S ≤ A)
    (hg : (1 + u) ^ 5 * (Γ + 1) - 1 - 5 * u ≤ g) :
    (1 + ((1 + u) ^ 2 - 1)) * ((1 + ((1 + u) ^ 3 - 1)) * (Γ * A))
        + ((1 + ((1 + u) ^ 3 - 1)) * ((1 + u) ^ 2 - 1) + ((1 + u) ^ 3 - 1 - 3 * u)) * S + 3 * u * b
      ≤ g * A + 2 * u * S + 3 * u * b := by
  have e : (1 + u) ^ 5 = (1 + u) ^ 3 * (1 + u) ^ 2 := Semiring.pow_add _ 3 2
  have h₁ : 0 ≤ (1 + u) ^ 5 - 1 - 5 * u := by
    have := score_pow_sub (x := 1) (y := 1 + u) (G := (1 : R)) (Std.le_refl _) (by grind)
      (Std.le_refl _) 5
    rw [numeral_five] at this
    grind
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left hS h₁
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hg hA
  have e₁ : (1 + ((1 + u) ^ 2 - 1)) * ((1 + ((1 + u) ^ 3 - 1)) * (Γ * A))
      = (1 + u) ^ 5 * (Γ * A) := by
    rw [e]
    grind
  have e₂ : (1 + ((1 + u) ^ 3 - 1)) * ((1 + u) ^ 2 - 1) + ((1 + u) ^ 3 - 1 - 3 * u)
      = (1 + u) ^ 5 - 1 - 3 * u := by
    rw [e]
    grind
  rw [e₁, e₂]
  generalize (1 + u) ^ 5 = X at *
  clear e e₁ e₂ hg hS
  grind

/-- One score: what the scale's error and the other errors make of it. -/
private theorem score_error {h v r c E S b η η' ψ e s m : R} (hη : AtMost h η) (hη' : AtMost c η')
    (hr : AtMost r (η - η')) (hψ : AtMost v ψ) (he : AtMost E e) (hs : AtMost S s)
    (hb : AtMost b (s - m)) :
    AtMost ((1 + v) * E + ((1 + h) * v + r) * S + c * b)
      ((s * (1 + η) + e) * (1 + ψ) - (s + η' * m)) := by
  have one : AtMost (1 : R) 1 := by
    have := OrderedRing.zero_lt_one (R := R)
    exact ⟨by grind, Std.le_refl _⟩
  have h₁ := ((one.add hψ).mul he).add
    (((((one.add hη).mul hψ).add hr).mul hs)) |>.add (hη'.mul hb)
  have e₁ : (1 + ψ) * e + ((1 + η) * ψ + (η - η')) * s + η' * (s - m)
      = (s * (1 + η) + e) * (1 + ψ) - (s + η' * m) := by grind
  rwa [e₁] at h₁

variable {p : Precision R} {f : ScoreFormats R} {additions : Nat} {scale σ₁ σ₂ σ : R}

/-- Scaled operands are not off by less than nothing. -/
private theorem score_one_le_operands (hp : Precise p) (hf : 0 ≤ f.operands) :
    1 ≤ (1 + p.unit) * (1 + f.operands) := by
  have := hp.unit
  have := OrderedRing.mul_nonneg hp.unit hf
  grind

/-- What (1 + u)⁵ makes of errors that go through all roundings of a score. -/
theorem score_growth {u a : R} {n : Nat} (hu : 0 ≤ u) (hua : u ≤ a)
    (hm : 10 * (numeral (n + 4) * a) ≤ 1) :
    (1 + u) ^ 5 * (1 + a) ^ (n + 1) ≤ 1 + gamma (n + 6) a := by
  have ha := Std.le_trans hu hua
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := pow_mul_one_sub_le ha (n + 6)
  have h₂ := score_pow_sub (x := 1 + u) (y := 1 + a) (G := (1 : R)) (by grind) (by grind)
    (Std.le_refl _) 5
  have h₅ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 5) (b := 1 + a - (1 + u)) (by grind)
  have h₂ : (1 + u) ^ 5 ≤ (1 + a) ^ 5 := by
    clear h₁
    grind
  have h₃ := OrderedField.one_le_pow (x := 1 + a) (by grind) (n + 1)
  have e₁ : (1 + a) ^ (n + 6) = (1 + a) ^ (n + 1) * (1 + a) ^ 5 := Semiring.pow_add _ (n + 1) 5
  have e₂ : (numeral (n + 6) : R) * a = numeral (n + 4) * a + 2 * a := by
    rw [numeral_succ, numeral_succ]
    grind
  have h₄ : (4 : R) * a ≤ numeral (n + 4) * a := by
    rw [numeral_succ, numeral_succ, numeral_succ, numeral_succ]
    have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) n) ha
    grind
  have hD : 0 < 1 - numeral (n + 6) * a := by
    rw [e₂]
    grind
  have e₃ : 1 + gamma (n + 6) a = 1 / (1 - numeral (n + 6) * a) := by
    rw [gamma]
    grind
  rw [e₃, OrderedField.le_div_iff hD]
  rw [e₁] at h₁
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_right h₂ (c := (1 + a) ^ (n + 1)) (by grind)
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_right h₆ (Std.le_of_lt hD)
  clear h₂ h₃ h₅ h₆ e₁ e₂ e₃ hm h₄
  generalize (1 + a) ^ (n + 1) = G at *
  generalize (1 + a) ^ 5 = Y at *
  generalize (1 + u) ^ 5 = X at *
  generalize 1 - numeral (n + 6) * a = D at *
  grind

/-- What operands below the normal numbers make of a score, at most. -/
private theorem score_underflow (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hf : PreciseFormats f) (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ) {d : Nat} (q k : Vec R d) :
    (1 + p.unit) ^ 2 * (absolute σ * ((1 + p.accumulation) ^ additions
        * sumOver (fun i : Fin d => (1 + p.accumulation) * (operandFactor p f
          * (numeral f.roundings * f.operandsTiny * (absolute (σ₁ * q[i]) + absolute (σ₂ * k[i])
            + numeral f.roundings * f.operandsTiny)))) (List.finRange d)))
      ≤ operandUnderflow p f additions q k := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have growth := score_growth hp.unit hu hm
  have hρ : 1 ≤ operandFactor p f := by
    rw [operandFactor, power_eq]
    exact OrderedField.one_le_pow (score_one_le_operands hp hf.operands) _
  have hτ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) f.roundings) hf.operandsTiny
  have hU := OrderedField.one_le_pow (x := 1 + p.unit) (by have := hp.unit; grind) 3
  have hU₂ := OrderedField.one_le_pow (x := 1 + p.unit) (by have := hp.unit; grind) 2
  have hG := OrderedField.one_le_pow (x := 1 + p.accumulation)
    (by have := hp.accumulation; grind) (additions + 1)
  -- One number of each operand.
  have one : ∀ i : Fin d, numeral f.roundings * f.operandsTiny * (absolute σ
        * (absolute (σ₁ * q[i]) + absolute (σ₂ * k[i]) + numeral f.roundings * f.operandsTiny))
      ≤ numeral f.roundings * f.operandsTiny * ((1 + p.unit) ^ 3
        * (f.reach * (absolute q[i] + absolute k[i]) + numeral f.roundings * f.operandsTiny)) := by
    intro i
    rcases Classical.em (0 < f.operandsTiny) with ht | ht
    · refine OrderedRing.mul_le_mul_of_nonneg_left ?_ hτ
      have h₁ := absolute_le (hσ.both ht)
      have h₂ := absolute_le ((hσ.first ht).mul (atMost_absolute q[i]))
      have h₃ := absolute_le ((hσ.second ht).mul (atMost_absolute k[i]))
      have h₄ := absolute_mul_le σ (σ₁ * q[i])
      have h₅ := absolute_mul_le σ (σ₂ * k[i])
      rw [show σ * (σ₁ * q[i]) = σ₁ * σ * q[i] by grind] at h₄
      rw [show σ * (σ₂ * k[i]) = σ₂ * σ * k[i] by grind] at h₅
      have h₆ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hτ
      clear growth
      generalize numeral f.roundings * f.operandsTiny = τ at *
      generalize absolute (σ₁ * q[i]) = x at *
      generalize absolute (σ₂ * k[i]) = y at *
      generalize absolute σ = s at *
      generalize absolute q[i] = X at *
      generalize absolute k[i] = Y at *
      generalize (1 + p.unit) ^ 3 = U at *
      grind
    · have e : f.operandsTiny = 0 := by have := hf.operandsTiny; grind
      rw [e, Semiring.mul_zero, Semiring.zero_mul, Semiring.zero_mul]
      exact Std.le_refl _
  have all := sumOver_le_sumOver (xs := List.finRange d) fun i _ => one i
  rw [sumOver_mul_left, sumOver_mul_left, sumOver_mul_left, sumOver_mul_left] at all
  rw [operandUnderflow, sumOver_mul_left, sumOver_mul_left, sumOver_mul_left]
  have hS : 0 ≤ sumOver (fun i : Fin d => absolute (σ₁ * q[i]) + absolute (σ₂ * k[i])
      + numeral f.roundings * f.operandsTiny) (List.finRange d) := sumOver_nonneg fun i _ => by
    have h₁ := absolute_nonneg (σ₁ * q[i])
    have h₂ := absolute_nonneg (σ₂ * k[i])
    generalize numeral f.roundings * f.operandsTiny = τ at *
    generalize absolute (σ₁ * q[i]) = x at *
    generalize absolute (σ₂ * k[i]) = y at *
    clear one all growth
    grind
  generalize sumOver (fun i : Fin d => absolute (σ₁ * q[i]) + absolute (σ₂ * k[i])
    + numeral f.roundings * f.operandsTiny) (List.finRange d) = S at *
  generalize sumOver (fun i : Fin d => f.reach * (absolute q[i] + absolute k[i])
    + numeral f.roundings * f.operandsTiny) (List.finRange d) = S' at *
  generalize numeral f.roundings * f.operandsTiny = τ at *
  have e₅ : (1 + p.unit) ^ 5 = (1 + p.unit) ^ 3 * (1 + p.unit) ^ 2 := Semiring.pow_add _ 3 2
  rw [e₅, Semiring.pow_succ _ additions] at growth
  rw [Semiring.pow_succ _ additions] at hG
  generalize operandFactor p f = ρ at *
  generalize (1 + p.unit) ^ 3 = U at *
  generalize (1 + p.unit) ^ 2 = U₂ at *
  generalize (1 + p.accumulation) ^ additions = G at *
  generalize gamma (additions + 6) p.accumulation = γ at *
  generalize 1 + p.accumulation = A at *
  have hs := absolute_nonneg σ
  generalize absolute σ = s at *
  have hS' : 0 ≤ τ * S' := by
    have i₁ := Std.le_trans (OrderedRing.mul_nonneg hτ (OrderedRing.mul_nonneg hs hS)) all
    refine Classical.byContradiction fun hn => ?_
    have i₂ := OrderedRing.mul_lt_mul_of_pos_left (a := τ * S') (b := 0) (c := U) (by grind)
      (by grind)
    clear one all growth
    grind
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left all (c := U₂ * (G * A) * ρ)
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (by grind) (by grind)) (by grind))
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right growth
    (OrderedRing.mul_nonneg (a := ρ) (by grind) hS')
  clear one hσ hp hf hm
  grind

/-- A score before it is stored. -/
private theorem score_before {η η' : R} (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hf : PreciseFormats f)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hscale : ScaledBy p f scale σ₁ σ₂ σ)
    (hσ : σ₁ * σ₂ * σ = scale * (1 + η)) (hη : AtMost ((1 + p.unit) ^ 3 - 1) η)
    (hη' : AtMost (3 * p.unit) η') (hr : AtMost ((1 + p.unit) ^ 3 - 1 - 3 * p.unit) (η - η'))
    {d : Nat} {q k : Vec R d} {a b : Nat} {q' k' products : Fin d → R} {sum x : R}
    (hab : a + b ≤ f.roundings) (hq : ∀ i : Fin d, StoredTimes p f a (σ₁ * q[i]) (q' i))
    (hk : ∀ i : Fin d, StoredTimes p f b (σ₂ * k[i]) (k' i))
    (h₁ : ∀ i : Fin d, Rounded p.accumulation (q' i * k' i) (products i))
    (h₂ : RoundedSum p.accumulation additions ((List.finRange d).map products) sum)
    (h₃ : RoundedTimes p.unit 2 (σ * sum) x) {m below : R}
    (hb : AtMost below (scale * Vec.dot q k - m)) :
    AtMost (((1 + gamma (additions + 2) p.accumulation) * operandFactor p f - 1)
          * (absolute scale * magnitude q k) + operandUnderflow p f additions q k
          + 2 * p.unit * absolute (scale * Vec.dot q k) + 3 * p.unit * below)
      (x - (scale * Vec.dot q k + η' * m)) := by
  obtain ⟨τ, rfl, hτ⟩ := roundedTimes_factor h₃
  have hF := score_one_le_operands hp hf.operands
  have hρ' : 0 ≤ operandFactor p f - 1 := by
    rw [operandFactor, power_eq]
    have := OrderedField.one_le_pow hF f.roundings
    grind
  have under := score_underflow (additions := additions) hp hu hf (by grind) hscale q k
  generalize operandUnderflow p f additions q k = under₀ at *
  have eρ : operandFactor p f = ((1 + p.unit) * (1 + f.operands)) ^ f.roundings := by
    rw [operandFactor, power_eq]
  rw [eρ] at hd under ⊢
  have hρ := OrderedField.one_le_pow hF f.roundings
  have hG := OrderedField.one_le_pow (x := 1 + p.accumulation)
    (by have := hp.accumulation; grind) (additions + 1)
  have hdot := rounded_dot (B := ((1 + p.unit) * (1 + f.operands)) ^ f.roundings
      * (1 + p.accumulation)) (c := σ₁ * σ₂) (q := q) (k := k)
      (g := fun i : Fin d => (1 + p.accumulation) * (((1 + p.unit) * (1 + f.operands)) ^ f.roundings
          * (numeral f.roundings * f.operandsTiny * (absolute (σ₁ * q[i]) + absolute (σ₂ * k[i])
            + numeral f.roundings * f.operandsTiny)))) hp.accumulation (fun i => by
      obtain ⟨t, δ, e, ht, hδ⟩ := storedTimes_product hF hf.operandsTiny hab (hq i) (hk i)
      obtain ⟨t₃, e₃, ht₃⟩ := rounded_factor (h₁ i)
      refine ⟨t * t₃, δ * t₃, by rw [e₃, e]; grind, factor_mul ht ht₃, ?_⟩
      have h := hδ.mul (b := 1 + p.accumulation) (y := t₃)
        ⟨by have := ht₃.1; have := hp.accumulation; have := OrderedRing.zero_lt_one (R := R); grind,
          by have := ht₃.2; grind⟩
      rwa [CommSemiring.mul_comm (_ * _) (1 + p.accumulation)] at h) h₂
  rw [Semiring.mul_assoc (((1 + p.unit) * (1 + f.operands)) ^ f.roundings),
    show (1 + p.accumulation) * (1 + p.accumulation) ^ additions
        = (1 + p.accumulation) ^ (additions + 1) by rw [Semiring.pow_succ]; grind] at hdot
  generalize hE : (1 + p.accumulation) ^ additions * sumOver (fun i : Fin d =>
    (1 + p.accumulation) * (((1 + p.unit) * (1 + f.operands)) ^ f.roundings
      * (numeral f.roundings * f.operandsTiny * (absolute (σ₁ * q[i]) + absolute (σ₂ * k[i])
        + numeral f.roundings * f.operandsTiny)))) (List.finRange d) = E at *
  clear hE
  have hM := (dot_atMost_magnitude q k).nonneg
  have hA := (atMost_absolute scale).mul (dot_atMost_magnitude q k)
  have slack := score_slack hp.unit hu hρ hd
  generalize hΓ : ((1 + p.unit) * (1 + f.operands)) ^ f.roundings
    * (1 + p.accumulation) ^ (additions + 1) - 1 = Γ at *
  have hΓ₀ : 0 ≤ Γ := by
    have := OrderedRing.mul_nonneg (a := ((1 + p.unit) * (1 + f.operands)) ^ f.roundings - 1)
      (b := (1 + p.accumulation) ^ (additions + 1) - 1) (by grind) (by grind)
    grind
  have he : AtMost ((1 + ((1 + p.unit) ^ 3 - 1)) * (Γ * (absolute scale * magnitude q k))
        + absolute σ * E) (σ * (sum - σ₁ * σ₂ * Vec.dot q k)) := by
    refine ((atMost_absolute σ).mul hdot).mono ?_
    have one : AtMost (1 : R) 1 := by
      have := OrderedRing.zero_lt_one (R := R)
      exact ⟨by grind, Std.le_refl _⟩
    have i₁ := absolute_mul_le (σ₁ * σ₂) σ
    rw [hσ] at i₁
    have i₂ := absolute_le ((atMost_absolute scale).mul (one.add hη))
    have i₃ := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_trans i₁ i₂)
      (OrderedRing.mul_nonneg hΓ₀ hM)
    clear under
    grind
  have key := score_error hη hη' hr hτ he (atMost_absolute (scale * Vec.dot q k)) hb
  have e₂ : (scale * Vec.dot q k * (1 + η) + σ * (sum - σ₁ * σ₂ * Vec.dot q k)) * (1 + (τ - 1))
      = σ * sum * τ := by
    have : scale * Vec.dot q k * (1 + η) = σ₁ * σ₂ * σ * Vec.dot q k := by rw [hσ]; grind
    rw [this]
    grind
  rw [e₂] at key
  refine key.mono ?_
  have h := score_bound (b := below) hp.unit hA.nonneg (absolute_le hA) (by
    rwa [show Γ + 1 = ((1 + p.unit) * (1 + f.operands)) ^ f.roundings
      * (1 + p.accumulation) ^ (additions + 1) by grind])
  generalize absolute (scale * Vec.dot q k) = S at *
  generalize absolute scale * magnitude q k = N at *
  generalize absolute σ * E = F at *
  generalize (1 + p.unit) ^ 2 = U₂ at *
  generalize (1 + p.unit) ^ 3 = U at *
  clear slack key he hdot hscale hq hk h₁ h₂ h₃
  grind

/-- **rounded-scores**: the computed scores of one query, but for a constant that its keys share,
are off by at most `scoreError`, also where scaled operands or scores are stored in a format of
their own. The reference point `m` may be any number; with the largest score it is the claim for an
output, and with 0, where the constant is 0, for a log-sum-exp. -/
theorem rounded_scores {p : Precision R} {f : ScoreFormats R} {additions : Nat}
    {scale σ₁ σ₂ σ : R} (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hf : PreciseFormats f)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ) (m : R) :
    ∃ c, AtMost (numeral 3 * p.unit * absolute m) c ∧
      ∀ (d : Nat) (q k : Vec R d) (belowMax computed : R),
        AtMost belowMax (scale * Vec.dot q k - m) →
        ComputedScore p f additions σ₁ σ₂ σ q k computed →
        AtMost (scoreError p f additions scale (magnitude q k) (operandUnderflow p f additions q k)
            (scale * Vec.dot q k) belowMax)
          (computed - (scale * Vec.dot q k + c)) := by
  obtain ⟨η, η', hη₀, hη, hη', hr⟩ := score_scale hp.unit hσ.product
  rw [numeral_three]
  refine ⟨η' * m, hη'.mul (atMost_absolute m), fun d q k below computed hb hc => ?_⟩
  obtain ⟨a, b, q', k', products, sum, x, hab, hq, hk, h₁, h₂, h₃, z, ⟨θ, hθ, rfl⟩, hz⟩ := hc
  have before := score_before hp hu hf hd hσ hη₀ hη hη' hr hab hq hk h₁ h₂ h₃ hb
  have whole := score_before hp hu hf hd hσ hη₀ hη hη' hr hab hq hk h₁ h₂ h₃ (m := 0)
    (below := absolute (scale * Vec.dot q k)) (by
      rw [show scale * Vec.dot q k - 0 = scale * Vec.dot q k by grind]
      exact atMost_absolute _)
  have h := (before.add (hθ.mul (whole.add (atMost_absolute (scale * Vec.dot q k))))).add hz
  rw [scoreError, numeral_two, numeral_three]
  generalize absolute (scale * Vec.dot q k) = S at *
  generalize scale * Vec.dot q k = s at *
  generalize ((1 + gamma (additions + 2) p.accumulation) * operandFactor p f - 1)
    * (absolute scale * magnitude q k) + operandUnderflow p f additions q k = E at *
  have e₁ : x - (s + η' * m) + θ * (x - (s + η' * 0) + s) + (computed - x * (1 + θ))
      = computed - (s + η' * m) := by grind
  have e₂ : E + 2 * p.unit * S + 3 * p.unit * below + f.scores * (E + 2 * p.unit * S
      + 3 * p.unit * S + S) + f.scoresTiny = E + 2 * p.unit * S + 3 * p.unit * below
      + (f.scores * (S + (E + 2 * p.unit * S) + 3 * p.unit * S) + f.scoresTiny) := by grind
  rwa [e₁, e₂] at h

end Attention.Proof
