module

public import Attention.Proof.Rounding.ThroughCap

public section

/-! # Rates of scores, within their bounds

Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R} {d : Nat}

/-- B: what the operands of an inner product go through. -/
private theorem operandFactor_pow : operandFactor p f
    = ((1 + p.unit) * (1 + f.operands)) ^ f.roundings := power_eq _ _

private theorem rates_stored_le (hp : Precise p) (hf : 0 ≤ f.operands) :
    1 ≤ (1 + p.unit) * (1 + f.operands) :=
  one_le_mul (one_le_one_plus hp.unit) (one_le_one_plus hf)

/-- How far products of numbers of two operands, and sums with them, may be off below the normal
numbers, before their factors. -/
private abbrev rateLost (f : ScoreFormats R) (ν σ₁ σ₂ : R) (q k : Vec R d) (i : Fin d) : R :=
  numeral f.roundings * f.operandsTiny * (absolute (σ₁ * q[i]) + absolute (σ₂ * k[i])
    + numeral f.roundings * f.operandsTiny) + 2 * ν

private theorem rates_grown_product {A B S g ν : R} (hA : 1 ≤ A) (hB : 1 ≤ B) (hν : 0 ≤ ν) :
    A * (B * S + B * g) + ν ≤ A * B * (S + (g + 2 * ν)) - ν := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) hA (c := 1)
    (Std.le_of_lt h₀) hB
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hν
  grind

/-- One product of the numbers of two operands. -/
private theorem rates_product (hp : Precise p) (hf : PreciseFormats f) {ν σ₁ σ₂ : R}
    {q k : Vec R d} {x : Fin d → R} (h : ComputedProducts p f ν σ₁ σ₂ q k x) (i : Fin d) :
    Near ((1 + p.accumulation) * operandFactor p f
        * (absolute (σ₁ * σ₂) * (absolute q[i] * absolute k[i]) + rateLost f ν σ₁ σ₂ q k i) - ν)
      (absolute (σ₁ * σ₂) * (absolute q[i] * absolute k[i])) (σ₁ * σ₂ * (q[i] * k[i])) (x i) := by
  obtain ⟨a, b, q', k', hab, hq, hk, hx⟩ := h
  obtain ⟨t, δ, e, ht, hδ⟩ := storedTimes_product (rates_stored_le hp hf.operands) hf.operandsTiny
    hab (hq i) (hk i)
  have h₂ := (Near.refl ((atMost_absolute (σ₁ * σ₂)).mul
    ((atMost_absolute q[i]).mul (atMost_absolute k[i])))).factor ht
  have h₃ := h₂.off (z' := q' i * k' i) (by
    rwa [show q' i * k' i - σ₁ * σ₂ * (q[i] * k[i]) * t = δ by rw [e]; grind])
  obtain ⟨y, hy, hν⟩ := hx i
  refine ((h₃.rounded hy).off hν).mono ?_
  rw [← operandFactor_pow]
  have hB : 1 ≤ operandFactor p f := by
    rw [operandFactor_pow]
    exact OrderedField.one_le_pow (rates_stored_le hp hf.operands) _
  exact rates_grown_product (one_le_one_plus hp.accumulation) hB hν.nonneg

private theorem rates_dots (c : R) (q k : Vec R d) :
    sumOver (fun i : Fin d => c * (q[i] * k[i])) (List.finRange d) = c * Vec.dot q k := by
  rw [sumOver_mul_left]
  rfl

private theorem rates_sizes (c : R) (q k : Vec R d) :
    sumOver (fun i : Fin d => c * (absolute q[i] * absolute k[i])) (List.finRange d)
      = c * magnitude q k := by
  rw [sumOver_mul_left, magnitude, Vec.dot]
  simp only [Fin.getElem_fin, Vec.getElem_map]

private theorem rates_grown (F c : R) (q k : Vec R d) (g : Fin d → R) :
    sumOver (fun i : Fin d => F * (c * (absolute q[i] * absolute k[i]) + g i)) (List.finRange d)
      = F * (c * magnitude q k + sumOver g (List.finRange d)) := by
  rw [sumOver_mul_left, sumOver_add, rates_sizes]

/-- One inner product. -/
private theorem rates_dot (hp : Precise p) (hf : PreciseFormats f) {ν σ₁ σ₂ : R} (hν : 0 ≤ ν)
    {q k : Vec R d}
    {x : Fin d → R} (h : ComputedProducts p f ν σ₁ σ₂ q k x) {n : Nat} {z : R}
    (hz : SumOf p.accumulation ν (fun _ => False) id n ((List.finRange d).map x) z) :
    Near ((1 + p.accumulation) ^ n * ((1 + p.accumulation) * operandFactor p f
        * (absolute (σ₁ * σ₂) * magnitude q k
          + sumOver (rateLost f ν σ₁ σ₂ q k) (List.finRange d))))
      (absolute (σ₁ * σ₂) * magnitude q k) (σ₁ * σ₂ * Vec.dot q k) z := by
  have h₁ := Near.sumOf_room hp.accumulation hν (fun i _ => rates_product hp hf h i) hz
  rwa [rates_grown, rates_sizes, rates_dots] at h₁

private theorem rates_elim (f g : Fin d → R) :
    sumOver (Sum.elim f g) ((List.finRange d).map Sum.inl ++ (List.finRange d).map Sum.inr)
      = sumOver f (List.finRange d) + sumOver g (List.finRange d) := by
  rw [sumOver_append, sumOver_map, sumOver_map]
  rfl

/-- Both inner products in one sum. -/
private theorem rates_together_near (hp : Precise p) (hf : PreciseFormats f) {ν σ₁ σ₂ : R}
    (hν : 0 ≤ ν)
    {q dq k dk : Vec R d} {x y : Fin d → R} (hx : ComputedProducts p f ν σ₁ σ₂ dq k x)
    (hy : ComputedProducts p f ν σ₁ σ₂ q dk y) {n : Nat} {z : R}
    (hz : SumOf p.accumulation ν (fun _ => False) id n
      ((List.finRange d).map x ++ (List.finRange d).map y) z) :
    Near ((1 + p.accumulation) ^ n * ((1 + p.accumulation) * operandFactor p f
        * (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk)
          + (sumOver (rateLost f ν σ₁ σ₂ dq k) (List.finRange d)
            + sumOver (rateLost f ν σ₁ σ₂ q dk) (List.finRange d)))))
      (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk))
      (σ₁ * σ₂ * (Vec.dot dq k + Vec.dot q dk)) z := by
  have e : (List.finRange d).map x ++ (List.finRange d).map y
      = ((List.finRange d).map Sum.inl ++ (List.finRange d).map Sum.inr).map (Sum.elim x y) := by
    rw [List.map_append, List.map_map, List.map_map]
    rfl
  rw [e] at hz
  have h : ∀ i : Fin d ⊕ Fin d, Near
      ((Sum.elim (fun i : Fin d => (1 + p.accumulation) * operandFactor p f
          * (absolute (σ₁ * σ₂) * (absolute dq[i] * absolute k[i]) + rateLost f ν σ₁ σ₂ dq k i))
        (fun i : Fin d => (1 + p.accumulation) * operandFactor p f
          * (absolute (σ₁ * σ₂) * (absolute q[i] * absolute dk[i]) + rateLost f ν σ₁ σ₂ q dk i))
        i) - ν)
      (Sum.elim (fun i : Fin d => absolute (σ₁ * σ₂) * (absolute dq[i] * absolute k[i]))
        (fun i : Fin d => absolute (σ₁ * σ₂) * (absolute q[i] * absolute dk[i])) i)
      (Sum.elim (fun i : Fin d => σ₁ * σ₂ * (dq[i] * k[i]))
        (fun i : Fin d => σ₁ * σ₂ * (q[i] * dk[i])) i) (Sum.elim x y i)
    | .inl i => rates_product hp hf hx i
    | .inr i => rates_product hp hf hy i
  have h₁ := Near.sumOf_room hp.accumulation hν (fun i _ => h i) hz
  rw [rates_elim, rates_elim, rates_elim, rates_dots, rates_dots, rates_sizes, rates_sizes,
    rates_grown, rates_grown] at h₁
  generalize magnitude dq k = a at *
  generalize magnitude q dk = b at *
  generalize sumOver (rateLost f ν σ₁ σ₂ dq k) (List.finRange d) = g at *
  generalize sumOver (rateLost f ν σ₁ σ₂ q dk) (List.finRange d) = g' at *
  generalize (1 + p.accumulation) * operandFactor p f = F at *
  rwa [show F * (absolute (σ₁ * σ₂) * (a + b) + (g + g')) = F * (absolute (σ₁ * σ₂) * a + g)
      + F * (absolute (σ₁ * σ₂) * b + g') by grind,
    show absolute (σ₁ * σ₂) * (a + b) = absolute (σ₁ * σ₂) * a + absolute (σ₁ * σ₂) * b by grind,
    Semiring.left_distrib (σ₁ * σ₂)]

/-- Two inner products apart, each stored as operands and as scores are. -/
private theorem rates_apart_le {A B o s u η ζ m m' : R} (hA : 1 ≤ A) (hB : 1 ≤ B) (ho : 0 ≤ o)
    (hs : 0 ≤ s) (hu : 0 ≤ u) (hη : 0 ≤ η) (hζ : 0 ≤ ζ) :
    (1 + u) * ((1 + s) * ((1 + o) * (A * (B * m)) + η) + ζ
        + ((1 + s) * ((1 + o) * (A * (B * m')) + η) + ζ)) + ζ
      ≤ A * B * (1 + o) * (1 + u) * (1 + s) * (m + m' + (2 * η + 3 * ζ)) := by
  have h₁ := one_le_mul (one_le_mul hA hB) (one_le_one_plus ho)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := 1 + u) (b := 1 + s) (by grind)
      (by grind)) (b := 2 * η + 3 * ζ) (by grind))
  have h₃ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := 1 + u) (b := s) (by grind)
    hs) (b := 3 * ζ) (by grind)
  have h₄ := OrderedRing.mul_nonneg hu hζ
  have e : ∀ m : R, (1 + o) * (A * (B * m)) = A * B * (1 + o) * m := fun m => by grind
  rw [e, e]
  clear h₁ hA hB e
  generalize A * B * (1 + o) = K at *
  grind

private theorem rates_together_le {A B o s u L m : R} (hA : 1 ≤ A) (hB : 1 ≤ B) (ho : 0 ≤ o)
    (hs : 0 ≤ s) (hu : 0 ≤ u) (hL : 0 ≤ L) (hm : 0 ≤ A * (B * m)) :
    A * (B * m) ≤ A * B * (1 + o) * (1 + u) * (1 + s) * (m + L) := by
  have h₁ := capped_at_least (one_le_mul (one_le_mul (one_le_one_plus ho) (one_le_one_plus hu))
    (one_le_one_plus hs)) hm
  have h₂ := capped_at_least (one_le_mul (one_le_mul (one_le_mul (one_le_mul hA hB)
    (one_le_one_plus ho)) (one_le_one_plus hu)) (one_le_one_plus hs)) hL
  have e : A * B * (1 + o) * (1 + u) * (1 + s) * (m + L)
      = (1 + o) * (1 + u) * (1 + s) * (A * (B * m))
        + A * B * (1 + o) * (1 + u) * (1 + s) * L := by
    clear h₁ h₂ hm
    grind
  rw [e]
  generalize (1 + o) * (1 + u) * (1 + s) * (A * (B * m)) = X at *
  generalize A * B * (1 + o) * (1 + u) * (1 + s) * L = Y at *
  clear e
  grind

/-- What a function has before what is left of the scale. -/
private theorem rates_both (hp : Precise p) (hf : PreciseFormats f) (hs : 0 ≤ f.scores)
    (hη : 0 ≤ f.scoresTiny) {ν σ₁ σ₂ : R} (hν : 0 ≤ ν)
    {q dq k dk : Vec R d} {n : Nat} {z : R} (h : ComputedDots p f ν n σ₁ σ₂ q dq k dk z) :
    Near ((1 + p.accumulation) ^ n * ((1 + p.accumulation) * operandFactor p f)
        * (1 + f.operands) * (1 + p.unit) * (1 + f.scores)
        * (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk)
          + (sumOver (rateLost f ν σ₁ σ₂ dq k) (List.finRange d)
            + sumOver (rateLost f ν σ₁ σ₂ q dk) (List.finRange d)
            + (2 * f.operandsTiny + 3 * f.scoresTiny))))
      (absolute (σ₁ * σ₂) * (magnitude dq k + magnitude q dk))
      (σ₁ * σ₂ * (Vec.dot dq k + Vec.dot q dk)) z := by
  have hA := OrderedField.one_le_pow (one_le_one_plus hp.accumulation) n
  have hB : 1 ≤ (1 + p.accumulation) * operandFactor p f := by
    refine one_le_mul (one_le_one_plus hp.accumulation) ?_
    rw [operandFactor_pow]
    exact OrderedField.one_le_pow (rates_stored_le hp hf.operands) _
  have hη' := hf.operandsTiny
  cases h with
  | together hx hy hz =>
    have h₁ := rates_together_near hp hf hν hx hy hz
    have h₂ := h₁.mono (rates_together_le hA hB hf.operands hs hp.unit
      (L := 2 * f.operandsTiny + 3 * f.scoresTiny) (by grind) h₁.nonneg)
    rwa [Semiring.add_assoc] at h₂
  | apart hx hy ha hb ha' ha'' hb' hb'' hz =>
    have h₁ := ((rates_dot hp hf hν hx ha).storedNear ha').storedNear ha''
    have h₂ := ((rates_dot hp hf hν hy hb).storedNear hb').storedNear hb''
    have h₃ := ((h₁.add h₂).storedNear hz).mono
      (rates_apart_le hA hB hf.operands hs hp.unit hf.operandsTiny hη)
    rw [← Semiring.left_distrib (absolute (σ₁ * σ₂)), ← Semiring.left_distrib (σ₁ * σ₂)] at h₃
    generalize sumOver (rateLost f ν σ₁ σ₂ dq k) (List.finRange d) = g at *
    generalize sumOver (rateLost f ν σ₁ σ₂ q dk) (List.finRange d) = g' at *
    generalize 2 * f.operandsTiny + 3 * f.scoresTiny = L at *
    generalize magnitude dq k = m at *
    generalize magnitude q dk = m' at *
    rwa [show absolute (σ₁ * σ₂) * m + g + (absolute (σ₁ * σ₂) * m' + g') + L
      = absolute (σ₁ * σ₂) * (m + m') + (g + g' + L) by grind] at h₃

/-- A product with the scale, whose error is in proportion to the size, but for `E`. -/
private theorem rates_scaled_near {scale t c σ S D M G F E E' η z : R} (hS : 0 ≤ S) (hG : 1 ≤ G)
    (hF : 1 ≤ F) (hη : 0 ≤ η) (hD : AtMost S D) (hσ : c * σ = scale * t)
    (ht : AtMost (F - 1) (t - 1)) (hE : absolute σ * E ≤ F * E')
    (hM : M = G * (absolute σ * (absolute c * S + E)) + η)
    (h : Near M (absolute σ * (absolute c * S)) (σ * (c * D)) z) :
    Near (G * F * (absolute scale * S + (E' + η))) (absolute scale * S) (scale * D) z := by
  have h₁ := (Near.refl ((atMost_absolute scale).mul hD)).factor ht
  have h₂ := absolute_le ((Near.refl (atMost_absolute scale)).factor ht).most
  have h₃ := absolute_mul_le c σ
  rw [hσ] at h₃
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_trans h₃ h₂) hS
  have h₅ := h.error
  rw [show σ * (c * D) = scale * D * t by
    rw [show scale * D * t = scale * t * D by grind, ← hσ]
    grind] at h₅
  refine (h₁.off h₅).mono ?_
  rw [hM]
  have e₂ : absolute c * absolute σ * S = absolute σ * (absolute c * S) := by
    generalize absolute c = x
    generalize absolute σ = y
    grind
  rw [e₂] at h₄
  have e₃ : absolute σ * (absolute c * S + E) = absolute σ * (absolute c * S) + absolute σ * E :=
    Semiring.left_distrib ..
  rw [e₃]
  generalize absolute σ * (absolute c * S) = X at *
  generalize absolute σ * E = Y at *
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := G - 1) (by grind)
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_left hE (c := G) (by
    have := OrderedRing.zero_lt_one (R := R)
    grind)
  have h₈ := capped_at_least (one_le_mul hG hF) hη
  generalize absolute scale = x at *
  clear h₁ h₂ h₃ h₄ h₅ hD hσ ht hM h e₂ e₃ hE hS
  grind

/-- What is lost of one product, times what is left of the scale. -/
private theorem rates_lost_le {scale σ₁ σ₂ σ ν : R} (hf : PreciseFormats f)
    (hν : 0 ≤ ν) (hσ : RateScaledBy p scale σ₁ σ₂ σ) (q k : Vec R d) :
    absolute σ * sumOver (rateLost f ν σ₁ σ₂ q k) (List.finRange d)
      ≤ (1 + p.unit) ^ 3 * (max 1 (absolute scale)
        * rateUnderflow (numeral f.roundings * f.operandsTiny) ν q k) := by
  have hτ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) f.roundings) hf.operandsTiny
  rw [rateUnderflow, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_mul_left, numeral_two]
  refine sumOver_le_sumOver fun i _ => ?_
  have h₁ := absolute_le hσ.both
  have h₂ := absolute_le (hσ.first.mul (atMost_absolute q[i]))
  have h₃ := absolute_le (hσ.second.mul (atMost_absolute k[i]))
  have h₄ := absolute_mul_le σ (σ₁ * q[i])
  have h₅ := absolute_mul_le σ (σ₂ * k[i])
  rw [show σ * (σ₁ * q[i]) = σ₁ * σ * q[i] by grind] at h₄
  rw [show σ * (σ₂ * k[i]) = σ₂ * σ * k[i] by grind] at h₅
  simp only [rateLost]
  generalize numeral f.roundings * f.operandsTiny = τ at *
  generalize absolute (σ₁ * q[i]) = x at *
  generalize absolute (σ₂ * k[i]) = y at *
  generalize absolute σ = s at *
  generalize absolute q[i] = X at *
  generalize absolute k[i] = Y at *
  generalize (1 + p.unit) ^ 3 = U at *
  generalize max 1 (absolute scale) = M at *
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hτ
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hν
  have h₈ := OrderedRing.mul_le_mul_of_nonneg_left (Std.le_trans h₄ h₂) hτ
  have h₉ := OrderedRing.mul_le_mul_of_nonneg_left (Std.le_trans h₅ h₃) hτ
  have h₁₀ := OrderedRing.mul_le_mul_of_nonneg_left h₆ hτ
  clear h₁ h₂ h₃ h₄ h₅ h₆ hσ hf hτ hν
  grind

private theorem rates_last_le {Φ u s σ S L η : R} (hΦ : 1 ≤ Φ) (hu : 0 ≤ u) (hs : 0 ≤ s)
    (hη : 0 ≤ η) (hσ : 0 ≤ σ) :
    (1 + s) * ((1 + u) * (σ * ((1 + s) * (Φ * (S + L)) + η))) + η
      ≤ (1 + s) * (1 + u) * ((1 + s) * Φ) * (σ * (S + (L + η))) + η := by
  have h₁ := capped_at_least (one_le_mul (one_le_one_plus hs) hΦ) (OrderedRing.mul_nonneg hσ hη)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁
    (OrderedRing.mul_nonneg (a := 1 + s) (b := 1 + u)
      (by have := OrderedRing.zero_lt_one (R := R); grind)
      (by have := OrderedRing.zero_lt_one (R := R); grind))
  clear h₁ hΦ hu hs hη hσ
  grind

private theorem score_rate_factor (A a B o u s : R) :
    (1 + s) * (1 + u) * ((1 + s) * (A * ((1 + a) * B) * (1 + o) * (1 + u) * (1 + s))) * (1 + u) ^ 3
      = A * (1 + a) * (B * (1 + o)) * (1 + u) ^ 5 * (1 + s) ^ 3 := by
  rw [show (5 : Nat) = 3 + 1 + 1 from rfl, Semiring.pow_succ (1 + u) (3 + 1),
    Semiring.pow_succ (1 + u) 3, show (3 : Nat) = 2 + 1 from rfl, Semiring.pow_succ (1 + s) 2,
    Semiring.pow_two (1 + s)]
  generalize (1 + u) ^ (2 + 1) = U
  generalize 1 + u = u'
  generalize 1 + s = s'
  generalize 1 + a = a'
  generalize 1 + o = o'
  grind

private theorem rates_error (φ S E η : R) :
    φ * (S + (E + η)) - S = (φ - 1) * S + φ * (E + η) := by grind

private theorem score_rate_near (hp : Precise p) (hf : PreciseFormats f) (hs : 0 ≤ f.scores)
    (hη : 0 ≤ f.scoresTiny) {ν : R} (hν : 0 ≤ ν)
    {n : Nat} {scale σ₁ σ₂ σ z z' x y : R} {q dq k dk : Vec R d}
    (hσ : RateScaledBy p scale σ₁ σ₂ σ)
    (h : ComputedDots p f ν n σ₁ σ₂ q dq k dk z) (hz : StoredNear f.scores f.scoresTiny z z')
    (hx : Rounded p.unit (σ * z') x) (hy : StoredNear f.scores f.scoresTiny x y) :
    AtMost (boundedScoreRate p f ν n scale q dq k dk).size
        (boundedScoreRate p f ν n scale q dq k dk).rate ∧
      AtMost (boundedScoreRate p f ν n scale q dq k dk).error
        (y - (boundedScoreRate p f ν n scale q dq k dk).rate) := by
  obtain ⟨t, ht, ht'⟩ := roundedTimes_factor hσ.product
  have h₁ := (rates_both hp hf hs hη hν h).storedNear hz
  have h₂ := (((Near.refl (atMost_absolute σ)).mul h₁).rounded hx).storedNear hy
  have hD := (dot_atMost_magnitude dq k).add (dot_atMost_magnitude q dk)
  have i₁ := one_le_one_plus hs
  have i₂ := one_le_one_plus hp.unit
  have hΦ : 1 ≤ (1 + p.accumulation) ^ n * ((1 + p.accumulation) * operandFactor p f)
      * (1 + f.operands) * (1 + p.unit) * (1 + f.scores) := by
    have i₃ := one_le_one_plus hf.operands
    have i₄ := one_le_one_plus hp.accumulation
    have i₅ : 1 ≤ operandFactor p f := by
      rw [operandFactor_pow]
      exact OrderedField.one_le_pow (rates_stored_le hp hf.operands) _
    exact one_le_mul (one_le_mul (one_le_mul (one_le_mul (OrderedField.one_le_pow i₄ n)
      (one_le_mul i₄ i₅)) i₃) i₂) i₁
  have hE : absolute σ * (sumOver (rateLost f ν σ₁ σ₂ dq k) (List.finRange d)
        + sumOver (rateLost f ν σ₁ σ₂ q dk) (List.finRange d)
        + (2 * f.operandsTiny + 3 * f.scoresTiny) + f.scoresTiny)
      ≤ (1 + p.unit) ^ 3 * (max 1 (absolute scale)
        * (rateUnderflow (numeral f.roundings * f.operandsTiny) ν dq k
          + rateUnderflow (numeral f.roundings * f.operandsTiny) ν q dk
          + (numeral 2 * f.operandsTiny + numeral 4 * f.scoresTiny))) := by
    have e₁ := rates_lost_le hf hν hσ dq k
    have e₂ := rates_lost_le hf hν hσ q dk
    have e₃ := OrderedRing.mul_le_mul_of_nonneg_right (absolute_le hσ.both)
      (c := 2 * f.operandsTiny + 4 * f.scoresTiny) (by have := hf.operandsTiny; grind)
    rw [numeral_two, numeral_four]
    generalize sumOver (rateLost f ν σ₁ σ₂ dq k) (List.finRange d) = g at *
    generalize sumOver (rateLost f ν σ₁ σ₂ q dk) (List.finRange d) = g' at *
    generalize rateUnderflow (numeral f.roundings * f.operandsTiny) ν dq k = r at *
    generalize rateUnderflow (numeral f.roundings * f.operandsTiny) ν q dk = r' at *
    generalize max 1 (absolute scale) = M at *
    generalize absolute σ = X at *
    generalize (1 + p.unit) ^ 3 = U at *
    clear h₁ h₂ hΦ hD ht ht' hσ h hz hx hy i₁ i₂
    grind
  have h₃ := rates_scaled_near hD.nonneg (one_le_mul (one_le_mul i₁ i₂) (one_le_mul i₁ hΦ))
    (OrderedField.one_le_pow i₂ 3) hη hD ht ht' hE rfl
    (h₂.mono (rates_last_le hΦ hp.unit hs hη (absolute_nonneg σ)))
  refine ⟨h₃.exact, h₃.error.mono (le_of_eq ?_)⟩
  rw [score_rate_factor, rates_error]
  simp only [boundedScoreRate, scoreRateFactor, power_eq, Semiring.pow_succ _ n]

private theorem change_at_least (hp : Precise p) (hs : 0 ≤ f.scores) :
    1 ≤ (1 + p.unit) ^ 2 ∧ 1 ≤ (1 + f.scores) ^ 2 :=
  ⟨OrderedField.one_le_pow (one_le_one_plus hp.unit) 2,
    OrderedField.one_le_pow (one_le_one_plus hs) 2⟩

private theorem plus_le {u V x a η : R} (hu : 0 ≤ u) (hV : 1 ≤ V) (hη : 0 ≤ η) (hx : 0 ≤ x) :
    V * ((1 + u) * (x + ((1 + u) * a + η)) + η + 2 * η) ≤ (1 + u) ^ 2 * V * (x + a + 4 * η) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_nonneg hu hη
  have h₂ := OrderedRing.mul_nonneg hu h₁
  have h₃ := OrderedRing.mul_nonneg hu hx
  have h₄ := OrderedRing.mul_nonneg hu h₃
  rw [Semiring.pow_two]
  have h₅ : (1 + u) * (x + ((1 + u) * a + η)) + η + 2 * η
      ≤ (1 + u) * (1 + u) * (x + a + 4 * η) := by
    grind
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₅ (c := V) (by grind)
  clear h₁ h₂ h₃ h₄ h₅
  grind

/-- **rounded-score-rates**: the rate of a score that is rounded in every operation, through a
change and with rates that are added, is within its bound, also where operands, products and what is
stored as scores are below the normal numbers. -/
theorem rounded_score_rate (hp : Precise p) (hf : PreciseFormats f) (hs : 0 ≤ f.scores)
    (hη : 0 ≤ f.scoresTiny) {ν : R} (hν : 0 ≤ ν) {b : BoundedScoreRate R} {y : R}
    (run : ScoreRateRun p f ν b y) : AtMost b.size b.rate ∧ AtMost b.error (y - b.rate) := by
  obtain ⟨hU, hV⟩ := change_at_least hp hs
  induction run with
  | score hσ h hz hx hy => exact score_rate_near hp hf hs hη hν hσ h hz hx hy
  | @through b g γ g' x y z _ hg hγ hy hz ih =>
    have h := (Near.of_error (S := g) (e := g) ⟨by grind, Std.le_refl _⟩ hγ).mul
      (Near.of_error ih.1 ih.2)
    have h₁ := (h.roundedTimes hy).storedNearTimes hs hη hz
    rw [numeral_two] at h₁
    have h₁ := h₁.mono
      (capped_through_le hU hV (η := 2 * f.scoresTiny) (by grind))
    have n := hγ.nonneg
    refine ⟨h₁.exact.mono ?_, h₁.error.mono ?_⟩
    · show g * b.size ≤ (g + γ) * b.size
      have := OrderedRing.mul_nonneg n ih.1.nonneg
      grind
    · simp only [BoundedScoreRate.through, changeFactor, power_eq, numeral_two]
      generalize (1 + p.unit) ^ 2 = U
      generalize (1 + f.scores) ^ 2 = V
      clear h h₁ ih hy hz hγ hU hV
      grind
  | throughCap _ hcap hg hg' hγ h ih =>
    exact rounded_throughCap hp hs hη ih.1 ih.2 hcap hg hg' hγ h
  | @plus b a a' x y z _ ha hy hz ih =>
    have h := ((Near.of_error ih.1 ih.2).add ((Near.refl (atMost_absolute a)).storedNear
      ha)).storedNear hy
    have h₁ := h.storedNearTimes hs hη hz
    rw [numeral_two] at h₁
    have h₁ := h₁.mono
      (plus_le hp.unit hV hη (Near.of_error ih.1 ih.2).nonneg)
    refine ⟨h₁.exact, h₁.error.mono (le_of_eq ?_)⟩
    simp only [BoundedScoreRate.plus, changeFactor, power_eq, numeral_four]
    generalize (1 + p.unit) ^ 2 = U
    generalize (1 + f.scores) ^ 2 = V
    generalize absolute a = X
    clear h h₁ ih hy hz ha hU hV
    grind

end Attention.Proof
