module

public import Attention.Proof.Rounding.Near

public section

/-! # Rates of scores, within their bounds

Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R} {d : Nat}

private theorem rates_one_le {x : R} (h : 0 ≤ x) : 1 ≤ 1 + x := by grind

/-- B: what the operands of an inner product go through. -/
private theorem operandFactor_pow : operandFactor p f
    = ((1 + p.unit) * (1 + f.operands)) ^ f.roundings := power_eq _ _

private theorem rates_stored_le (hp : Precise p) (hf : 0 ≤ f.operands) :
    1 ≤ (1 + p.unit) * (1 + f.operands) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) (rates_one_le hp.unit) (c := 1)
    (Std.le_of_lt h₀) (rates_one_le hf)
  grind

/-- One product of the numbers of two operands. -/
private theorem rates_product (hp : Precise p) (hf : 0 ≤ f.operands) {σ₁ σ₂ : R} {q k : Vec R d}
    {x : Fin d → R} (h : ComputedProducts p f σ₁ σ₂ q k x) (i : Fin d) :
    Near ((1 + p.accumulation) * operandFactor p f
        * (absolute (σ₁ * σ₂) * (absolute q[i] * absolute k[i])))
      (absolute (σ₁ * σ₂) * (absolute q[i] * absolute k[i])) (σ₁ * σ₂ * (q[i] * k[i])) (x i) := by
  obtain ⟨a, b, q', k', hab, hq, hk, hx⟩ := h
  obtain ⟨t, ht, ht'⟩ := storedTimes_factor (f := { f with operandsTiny := 0 })
    (rates_stored_le hp hf) rfl (hq i)
  obtain ⟨s, hs, hs'⟩ := storedTimes_factor (f := { f with operandsTiny := 0 })
    (rates_stored_le hp hf) rfl (hk i)
  have h₁ := factor_mul ht' hs'
  rw [← Semiring.pow_add] at h₁
  have h₂ := (Near.refl ((atMost_absolute (σ₁ * σ₂)).mul
    ((atMost_absolute q[i]).mul (atMost_absolute k[i])))).factor h₁
  rw [show σ₁ * σ₂ * (q[i] * k[i]) * (t * s) = q' i * k' i by rw [ht, hs]; grind] at h₂
  have h₃ := h₂.rounded (hx i)
  have hS := ((atMost_absolute (σ₁ * σ₂)).mul
    ((atMost_absolute q[i]).mul (atMost_absolute k[i]))).nonneg
  refine h₃.mono ?_
  rw [operandFactor_pow, Semiring.mul_assoc]
  refine OrderedRing.mul_le_mul_of_nonneg_left ?_ ?_
  · exact OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedField.pow_le_pow (rates_stored_le hp hf) hab) hS
  · have := rates_one_le hp.accumulation
    have h₀ := OrderedRing.zero_lt_one (R := R)
    grind

private theorem rates_dots (c : R) (q k : Vec R d) :
    sumOver (fun i : Fin d => c * (q[i] * k[i])) (List.finRange d) = c * Vec.dot q k := by
  rw [sumOver_mul_left]
  rfl

private theorem rates_sizes (c : R) (q k : Vec R d) :
    sumOver (fun i : Fin d => c * (absolute q[i] * absolute k[i])) (List.finRange d)
      = c * magnitude q k := by
  rw [sumOver_mul_left, magnitude, Vec.dot]
  simp only [Fin.getElem_fin, Vec.getElem_map]

private theorem rates_grown (F c : R) (q k : Vec R d) :
    sumOver (fun i : Fin d => F * (c * (absolute q[i] * absolute k[i]))) (List.finRange d)
      = F * (c * magnitude q k) := by
  rw [sumOver_mul_left, rates_sizes]

/-- One inner product. -/
private theorem rates_dot (hp : Precise p) (hf : 0 ≤ f.operands) {σ₁ σ₂ : R} {q k : Vec R d}
    {x : Fin d → R} (h : ComputedProducts p f σ₁ σ₂ q k x) {n : Nat} {z : R}
    (hz : RoundedSum p.accumulation n ((List.finRange d).map x) z) :
    Near ((1 + p.accumulation) ^ n * ((1 + p.accumulation) * operandFactor p f
        * (absolute (σ₁ * σ₂) * magnitude q k)))
      (absolute (σ₁ * σ₂) * magnitude q k) (σ₁ * σ₂ * Vec.dot q k) z := by
  have h₁ := Near.roundedSum hp.accumulation (fun i _ => rates_product hp hf h i) hz
  rwa [rates_grown, rates_sizes, rates_dots] at h₁

private theorem rates_elim (f g : Fin d → R) :
    sumOver (Sum.elim f g) ((List.finRange d).map Sum.inl ++ (List.finRange d).map Sum.inr)
      = sumOver f (List.finRange d) + sumOver g (List.finRange d) := by
  rw [sumOver_append, sumOver_map, sumOver_map]
  rfl

/-- Both inner products in one sum. -/
private theorem rates_together_near (hp : Precise p) (hf : 0 ≤ f.operands) {σ₁ σ₂ : R}
    {q dq k dk : Vec R d} {x y : Fin d → R} (hx : ComputedProducts p f σ₁ σ₂ dq k x)
    (hy : ComputedProducts p f σ₁ σ₂ q dk y) {n : Nat} {z : R} (hz : RoundedSum p.accumulation n
      ((List.finRange d).map x ++ (List.finRange d).map y) z) :
    Near ((1 + p.accumulation) ^ n * ((1 + p.accumulation) * operandFactor p f
        * (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk))))
      (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk))
      (σ₁ * σ₂ * (Vec.dot dq k + Vec.dot q dk)) z := by
  have e : (List.finRange d).map x ++ (List.finRange d).map y
      = ((List.finRange d).map Sum.inl ++ (List.finRange d).map Sum.inr).map (Sum.elim x y) := by
    rw [List.map_append, List.map_map, List.map_map]
    rfl
  rw [e] at hz
  have h : ∀ i : Fin d ⊕ Fin d, Near
      (Sum.elim (fun i : Fin d => (1 + p.accumulation) * operandFactor p f
          * (absolute (σ₁ * σ₂) * (absolute dq[i] * absolute k[i])))
        (fun i : Fin d => (1 + p.accumulation) * operandFactor p f
          * (absolute (σ₁ * σ₂) * (absolute q[i] * absolute dk[i]))) i)
      (Sum.elim (fun i : Fin d => absolute (σ₁ * σ₂) * (absolute dq[i] * absolute k[i]))
        (fun i : Fin d => absolute (σ₁ * σ₂) * (absolute q[i] * absolute dk[i])) i)
      (Sum.elim (fun i : Fin d => σ₁ * σ₂ * (dq[i] * k[i]))
        (fun i : Fin d => σ₁ * σ₂ * (q[i] * dk[i])) i) (Sum.elim x y i)
    | .inl i => rates_product hp hf hx i
    | .inr i => rates_product hp hf hy i
  have h₁ := Near.roundedSum hp.accumulation (fun i _ => h i) hz
  rw [rates_elim, rates_elim, rates_elim, rates_dots, rates_dots, rates_sizes, rates_sizes,
    rates_grown, rates_grown] at h₁
  generalize magnitude dq k = a at *
  generalize magnitude q dk = b at *
  generalize (1 + p.accumulation) * operandFactor p f = F at *
  rwa [show F * (absolute (σ₁ * σ₂) * (a + b)) = F * (absolute (σ₁ * σ₂) * a)
      + F * (absolute (σ₁ * σ₂) * b) by grind,
    show absolute (σ₁ * σ₂) * (a + b) = absolute (σ₁ * σ₂) * a + absolute (σ₁ * σ₂) * b by grind,
    Semiring.left_distrib (σ₁ * σ₂)]

private theorem rates_dots_apart (A B o s u c m m' : R) :
    (1 + u) * ((1 + s) * ((1 + o) * (A * (B * (c * m))))
        + (1 + s) * ((1 + o) * (A * (B * (c * m')))))
      = A * B * (1 + o) * (1 + u) * (1 + s) * (c * (m + m')) := by
  grind

private theorem rates_at_least {A B o s u m : R} (ho : 0 ≤ o) (hs : 0 ≤ s) (hu : 0 ≤ u)
    (hm : 0 ≤ A * (B * m)) : A * (B * m) ≤ A * B * (1 + o) * (1 + u) * (1 + s) * m := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right (rates_one_le ho) hm
  have n₁ := OrderedRing.mul_nonneg (a := 1 + o) (by grind) hm
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (rates_one_le hu) n₁
  have n₂ := OrderedRing.mul_nonneg (a := 1 + u) (by grind) n₁
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right (rates_one_le hs) n₂
  rw [show A * B * (1 + o) * (1 + u) * (1 + s) * m
    = (1 + s) * ((1 + u) * ((1 + o) * (A * (B * m)))) by grind]
  rw [Semiring.one_mul] at h₁ h₂ h₃
  exact Std.le_trans h₁ (Std.le_trans h₂ h₃)

/-- What a function has before what is left of the scale. -/
private theorem rates_both (hp : Precise p) (hf : 0 ≤ f.operands) (hs : 0 ≤ f.scores) {σ₁ σ₂ : R}
    {q dq k dk : Vec R d} {n : Nat} {z : R} (h : ComputedDots p f n σ₁ σ₂ q dq k dk z) :
    Near ((1 + p.accumulation) ^ n * ((1 + p.accumulation) * operandFactor p f)
        * (1 + f.operands) * (1 + p.unit) * (1 + f.scores)
        * (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk)))
      (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk))
      (σ₁ * σ₂ * (Vec.dot dq k + Vec.dot q dk)) z := by
  cases h with
  | together hx hy hz =>
    have h₁ := rates_together_near hp hf hx hy hz
    exact h₁.mono (rates_at_least hf hs hp.unit h₁.nonneg)
  | apart hx hy ha hb ha' ha'' hb' hb'' hz =>
    have h₁ := ((rates_dot hp hf hx ha).rounded ha').rounded ha''
    have h₂ := ((rates_dot hp hf hy hb).rounded hb').rounded hb''
    have h₃ := (h₁.add h₂).rounded hz
    rw [rates_dots_apart] at h₃
    rwa [Semiring.left_distrib (absolute (σ₁ * σ₂)), Semiring.left_distrib (σ₁ * σ₂)] at *

private theorem rates_mul {x y : R} (hx : 1 ≤ x) (hy : 1 ≤ y) : 1 ≤ x * y := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) hx (c := 1) (Std.le_of_lt h₀) hy
  grind

/-- A product with the scale, whose error is in proportion to the size. -/
private theorem rates_scaled_near {scale t c σ S D M G F z : R} (hS : 0 ≤ S) (hG : 1 ≤ G)
    (hD : AtMost S D) (hσ : c * σ = scale * t) (ht : AtMost (F - 1) (t - 1))
    (hM : M = G * (absolute σ * (absolute c * S)))
    (h : Near M (absolute σ * (absolute c * S)) (σ * (c * D)) z) :
    Near (G * (F * (absolute scale * S))) (absolute scale * S) (scale * D) z := by
  have h₁ := (Near.refl ((atMost_absolute scale).mul hD)).factor ht
  have h₂ := absolute_le ((Near.refl (atMost_absolute scale)).factor ht).most
  have h₃ := absolute_mul_le c σ
  rw [hσ] at h₃
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_trans h₃ h₂) hS
  refine h₁.trans ?_
  have e₁ : scale * D * t = σ * (c * D) := by
    rw [show scale * D * t = scale * t * D by grind, ← hσ]
    grind
  have h₅ := h.error
  rw [hM] at h₅
  rw [e₁]
  refine h₅.mono ?_
  have e₂ : absolute c * absolute σ * S = absolute σ * (absolute c * S) := by
    generalize absolute c = x
    generalize absolute σ = y
    grind
  rw [e₂] at h₄
  generalize absolute σ * (absolute c * S) = X at *
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := G - 1) (by grind)
  generalize absolute scale = x at *
  clear h₁ h₂ h₃ h₄ h₅ hD hσ ht hM h e₁ e₂
  grind

private theorem score_rate_factor (A a B o u s x S : R) :
    (1 + s) * (1 + u) * ((1 + s) * (A * ((1 + a) * B) * (1 + o) * (1 + u) * (1 + s)))
        * ((1 + u) ^ 3 * (x * S)) - x * S
      = (A * (1 + a) * (B * (1 + o)) * (1 + u) ^ 5 * (1 + s) ^ 3 - 1) * (x * S) := by
  rw [show (5 : Nat) = 3 + 1 + 1 from rfl, Semiring.pow_succ (1 + u) (3 + 1),
    Semiring.pow_succ (1 + u) 3, show (3 : Nat) = 2 + 1 from rfl, Semiring.pow_succ (1 + s) 2,
    Semiring.pow_two (1 + s)]
  generalize (1 + u) ^ (2 + 1) = U
  grind

private theorem score_rate_near (hp : Precise p) (hf : 0 ≤ f.operands) (hs : 0 ≤ f.scores)
    {n : Nat} {scale σ₁ σ₂ σ z z' x y : R} {q dq k dk : Vec R d}
    (hσ : RoundedTimes p.unit 3 scale (σ₁ * σ₂ * σ))
    (h : ComputedDots p f n σ₁ σ₂ q dq k dk z) (hz : Rounded f.scores z z')
    (hx : Rounded p.unit (σ * z') x) (hy : Rounded f.scores x y) :
    AtMost (boundedScoreRate p f n scale q dq k dk).size
        (boundedScoreRate p f n scale q dq k dk).rate ∧
      AtMost (boundedScoreRate p f n scale q dq k dk).error
        (y - (boundedScoreRate p f n scale q dq k dk).rate) := by
  obtain ⟨t, ht, ht'⟩ := roundedTimes_factor hσ
  have h₁ := (rates_both hp hf hs h).rounded hz
  have h₂ := (((Near.refl (atMost_absolute σ)).mul h₁).rounded hx).rounded hy
  have hD := (dot_atMost_magnitude dq k).add (dot_atMost_magnitude q dk)
  have hG : 1 ≤ (1 + f.scores) * (1 + p.unit) * ((1 + f.scores) * ((1 + p.accumulation) ^ n
      * ((1 + p.accumulation) * operandFactor p f) * (1 + f.operands) * (1 + p.unit)
      * (1 + f.scores))) := by
    have i₁ := rates_one_le hs
    have i₂ := rates_one_le hp.unit
    have i₃ := rates_one_le hf
    have i₄ := rates_one_le hp.accumulation
    have i₅ : 1 ≤ operandFactor p f := by
      rw [operandFactor_pow]
      exact OrderedField.one_le_pow (rates_stored_le hp hf) _
    exact rates_mul (rates_mul i₁ i₂) (rates_mul i₁ (rates_mul (rates_mul
      (rates_mul (rates_mul (OrderedField.one_le_pow i₄ n) (rates_mul i₄ i₅)) i₃) i₂)
      i₁))
  have h₃ := rates_scaled_near hD.nonneg hG hD ht ht' (by
    generalize magnitude dq k + magnitude q dk = S
    generalize (1 + p.accumulation) ^ n = A
    generalize operandFactor p f = B
    generalize absolute σ = X
    generalize absolute (σ₁ * σ₂) = Y
    clear hG h₁ h₂ hD
    grind) h₂
  refine ⟨h₃.exact, h₃.error.mono ?_⟩
  show _ ≤ (scoreRateFactor p f n - 1) * (absolute scale * (magnitude dq k + magnitude q dk))
  rw [score_rate_factor, scoreRateFactor, power_eq, power_eq, power_eq, Semiring.pow_succ _ n]
  exact Std.le_refl _

/-- **rounded-score-rates**: the rate of a score that is rounded in every operation, through a
change and with rates that are added, is within its bound. -/
theorem rounded_score_rate (hp : Precise p) (hf : 0 ≤ f.operands) (hs : 0 ≤ f.scores)
    {b : BoundedScoreRate R} {y : R} (run : ScoreRateRun p f b y) :
    AtMost b.size b.rate ∧ AtMost b.error (y - b.rate) := by
  induction run with
  | score hσ h hz hx hy => exact score_rate_near hp hf hs hσ h hz hx hy
  | @through b g γ g' x y z _ hg hγ hy hz ih =>
    have h := (Near.of_error (S := g) (e := g) ⟨by grind, Std.le_refl _⟩ hγ).mul
      (Near.of_error ih.1 ih.2)
    have h₁ := (h.roundedTimes hy).roundedTimes hz
    have n := hγ.nonneg
    refine ⟨h₁.exact.mono ?_, h₁.error.mono ?_⟩
    · show g * b.size ≤ (g + γ) * b.size
      have := OrderedRing.mul_nonneg n ih.1.nonneg
      grind
    · simp only [BoundedScoreRate.through, changeFactor, power_eq]
      generalize (1 + p.unit) ^ 2 = U
      generalize (1 + f.scores) ^ 2 = V
      clear h h₁ ih hy hz hγ
      grind
  | @plus b a a' x y z _ ha hy hz ih =>
    have h := ((Near.of_error ih.1 ih.2).add ((Near.refl (atMost_absolute a)).rounded ha)).rounded
      hy
    have h₁ := h.roundedTimes hz
    refine ⟨h₁.exact, h₁.error.mono ?_⟩
    simp only [BoundedScoreRate.plus, changeFactor, power_eq]
    have hb := (Near.of_error ih.1 ih.2).nonneg
    have hu := hp.unit
    have hV : 0 ≤ (1 + f.scores) ^ 2 := by
      have := OrderedRing.zero_lt_one (R := R)
      have := OrderedField.one_le_pow (rates_one_le hs) 2
      grind
    have := OrderedRing.mul_nonneg hV (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg
      (a := 1 + p.unit) (by have := OrderedRing.zero_lt_one (R := R); grind) hu) hb)
    rw [Semiring.pow_two (1 + p.unit)]
    generalize (1 + f.scores) ^ 2 = V at *
    generalize absolute a = X at *
    clear h h₁ ih hy hz ha
    grind

end Attention.Proof
