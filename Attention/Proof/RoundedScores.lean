module

public import Attention.Model.RoundedScores
public import Attention.Proof.Gamma
public import Attention.Proof.Maximum

public section

/-! # Computed scores stay within their allowance

Docs/allowances.md, section 1: the scores that a function computes are the exact ones, but for a
constant that all keys of the row share and an error of each key for which `Spec.scoreError` is a
bound. The products of errors are covered: those that are in proportion to the score by what
γ(additions + 2) leaves over, and those of the scale's error by the choice of the constant. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## Inner products -/

/-- `magnitude` bounds the inner product. -/
theorem dot_atMost_magnitude {d : Nat} (q k : Vec R d) : AtMost (magnitude q k) (Vec.dot q k) := by
  refine sumOver_atMost fun i _ => ?_
  simp only [Fin.getElem_fin, Vec.getElem_map]
  exact (atMost_absolute _).mul (atMost_absolute _)

/-- The error of an inner product: d products, added in any order in a tree of depth `n`. Higham
2002, section 3.1. -/
theorem rounded_dot {a : R} (ha : 0 ≤ a) {d n : Nat} {q k : Vec R d} {products : Fin d → R} {z : R}
    (hp : ∀ i : Fin d, Rounded a (q[i] * k[i]) (products i))
    (hz : RoundedSum a n ((List.finRange d).map products) z) :
    AtMost (((1 + a) ^ (n + 1) - 1) * magnitude q k) (z - Vec.dot q k) := by
  have term : ∀ i ∈ List.finRange d, AtMost (a * (absolute q[i] * absolute k[i]))
      (products i - q[i] * k[i]) := fun i _ => by
    obtain ⟨θ, hθ, h⟩ := hp i
    rw [h, show q[i] * k[i] * (1 + θ) - q[i] * k[i] = θ * (q[i] * k[i]) by grind]
    exact hθ.mul ((atMost_absolute q[i]).mul (atMost_absolute k[i]))
  have h := roundedSum_map_error ha hz term fun i _ =>
    (atMost_absolute q[i]).mul (atMost_absolute k[i])
  rw [Semiring.pow_succ, show (1 + a) ^ n * (1 + a) = (1 + a) * (1 + a) ^ n by grind, magnitude,
    Vec.dot, Vec.dot]
  simpa only [Fin.getElem_fin, Vec.getElem_map] using h

/-! ## What is of second order -/

private theorem score_numeral_two : (numeral 2 : R) = 2 := by
  rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
  grind

private theorem score_numeral_three : (numeral 3 : R) = 3 := by
  rw [numeral_succ, score_numeral_two]
  grind

private theorem score_numeral_five : (numeral 5 : R) = 5 := by
  rw [numeral_succ, numeral_succ, score_numeral_three]
  grind

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

/-- What γ(n + 2) leaves over covers five roundings more, less their first order. -/
private theorem score_slack_gamma {a x P : R} (ha : 0 ≤ a) (hx : 0 ≤ x) (hP : 0 ≤ P)
    (h : P * (1 - (x + 4 * a)) ≤ 1) (hm : 10 * (x + 2 * a) ≤ 1) :
    P - 1 - 5 * a ≤ x / (1 - x) := by
  rw [OrderedField.le_div_iff (by grind)]
  have h₁ := OrderedRing.mul_nonneg hx (b := x + 4 * a) (by grind)
  have h₂ : 4 ≤ 5 * ((1 - x) * (1 - (x + 4 * a))) := by grind
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left h₂ hP
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h (c := 1 - x) (by grind)
  have h₅ : 4 * P ≤ 5 * (1 - x) := by grind
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₅ ha
  grind

private theorem score_slack {u a : R} {n : Nat} (hu : 0 ≤ u) (hua : u ≤ a)
    (hm : 10 * (numeral (n + 4) * a) ≤ 1) :
    (1 + u) ^ 5 * (1 + a) ^ (n + 1) - 1 - 5 * u ≤ gamma (n + 2) a := by
  have ha := Std.le_trans hu hua
  have h₁ := pow_mul_one_sub_le ha (n + 6)
  have h₂ := OrderedField.one_le_pow (x := 1 + a) (by grind) (n + 1)
  have h₃ := score_pow_sub (x := 1 + u) (y := 1 + a) (by grind) (by grind) h₂ 5
  have h₄ := OrderedField.one_le_pow (x := 1 + a) (by grind) (n + 6)
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
  rw [score_numeral_five] at h₃
  have h₆ := score_slack_gamma ha h₅ (by have := OrderedRing.zero_lt_one (R := R); grind) h₁ hm
  rw [gamma]
  rw [e₁] at h₆
  generalize (1 + a) ^ (n + 1) = G at *
  generalize (1 + a) ^ 5 = Y at *
  generalize (1 + u) ^ 5 = X at *
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
    (1 + ((1 + u) ^ 3 - 1)) * (1 + ((1 + u) ^ 2 - 1)) * (Γ * A)
        + ((1 + ((1 + u) ^ 3 - 1)) * ((1 + u) ^ 2 - 1) + ((1 + u) ^ 3 - 1 - 3 * u)) * S + 3 * u * b
      ≤ g * A + 2 * u * S + 3 * u * b := by
  have e : (1 + u) ^ 5 = (1 + u) ^ 3 * (1 + u) ^ 2 := Semiring.pow_add _ 3 2
  have h₁ : 0 ≤ (1 + u) ^ 5 - 1 - 5 * u := by
    have := score_pow_sub (x := 1) (y := 1 + u) (G := (1 : R)) (Std.le_refl _) (by grind)
      (Std.le_refl _) 5
    rw [score_numeral_five] at this
    grind
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left hS h₁
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hg hA
  have e₁ : (1 + ((1 + u) ^ 3 - 1)) * (1 + ((1 + u) ^ 2 - 1)) = (1 + u) ^ 5 := by
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
    AtMost ((1 + h) * (1 + v) * E + ((1 + h) * v + r) * S + c * b)
      ((s + e) * (1 + η) * (1 + ψ) - (s + η' * m)) := by
  have one : AtMost (1 : R) 1 := by
    have := OrderedRing.zero_lt_one (R := R)
    exact ⟨by grind, Std.le_refl _⟩
  have h₁ := (((one.add hη).mul (one.add hψ)).mul he).add
    (((((one.add hη).mul hψ).add hr).mul hs)) |>.add (hη'.mul hb)
  have e₁ : (1 + η) * (1 + ψ) * e + ((1 + η) * ψ + (η - η')) * s + η' * (s - m)
      = (s + e) * (1 + η) * (1 + ψ) - (s + η' * m) := by grind
  rwa [e₁] at h₁

variable {p : Precision R} {additions : Nat} {scale σ : R}

/-- **rounded-scores**: the computed scores of one query, but for a constant that its keys share,
are off by at most `scoreError`. The reference point `m` may be any number; with the largest score
it is the claim for an output, and with 0, where the constant is 0, for a log-sum-exp. -/
theorem rounded_scores (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1)
    (hσ : RoundedTimes p.unit 3 scale σ) (m : R) :
    ∃ c, AtMost (numeral 3 * p.unit * absolute m) c ∧
      ∀ (d : Nat) (q k : Vec R d) (belowMax computed : R),
        AtMost belowMax (scale * Vec.dot q k - m) → ComputedScore p additions σ q k computed →
        AtMost (scoreError p additions scale (magnitude q k) (scale * Vec.dot q k) belowMax)
          (computed - (scale * Vec.dot q k + c)) := by
  obtain ⟨η, η', rfl, hη, hη', hr⟩ := score_scale hp.unit hσ
  rw [score_numeral_three]
  refine ⟨η' * m, hη'.mul (atMost_absolute m), fun d q k b computed hb hc => ?_⟩
  obtain ⟨products, sum, h₁, h₂, h₃⟩ := hc
  obtain ⟨τ, rfl, hτ⟩ := roundedTimes_factor h₃
  have hdot := (atMost_absolute scale).mul (rounded_dot hp.accumulation h₁ h₂)
  have hA := (atMost_absolute scale).mul (dot_atMost_magnitude q k)
  have key := score_error hη hη' hr hτ hdot (atMost_absolute (scale * Vec.dot q k)) hb
  have slack := score_slack hp.unit hu hd
  rw [scoreError, score_numeral_two, score_numeral_three]
  have e₁ : absolute scale * (((1 + p.accumulation) ^ (additions + 1) - 1) * magnitude q k)
      = ((1 + p.accumulation) ^ (additions + 1) - 1) * (absolute scale * magnitude q k) := by grind
  have e₂ : (scale * Vec.dot q k + scale * (sum - Vec.dot q k)) * (1 + η) * (1 + (τ - 1))
      = scale * (1 + η) * sum * τ := by grind
  rw [e₁, e₂] at key
  exact key.mono (score_bound hp.unit hA.nonneg (absolute_le hA) (by
    rwa [show (1 + p.accumulation) ^ (additions + 1) - 1 + 1
      = (1 + p.accumulation) ^ (additions + 1) by grind]))

/-! ## Rows of attention -/

section Rows

variable {q_len kv_len d d_v : Nat} {mask : Mask q_len kv_len} {Q : Matrix R q_len d}
  {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len} {t : Fin d_v}
  {cols : List (Fin kv_len)} {computed : Fin kv_len → R}

/-- The allowance sees the keys that the function computed. -/
theorem computedKeys_toBoundedKey :
    (computedKeys p additions scale mask Q K V i t cols computed).map (·.toBoundedKey)
      = boundedKeys p additions scale mask Q K V i t cols := by
  simp only [computedKeys, boundedKeys, List.map_map]
  rfl

/-- The allowance sees the score of attention, for each key of the row. -/
theorem boundedKey_score {j : Fin kv_len} (hj : j ∈ cols) :
    (boundedKey p additions scale mask Q K V i t
      (rowMax (cols.map (score scale mask.toScoreMod Q K i))) j).score
        = score scale mask.toScoreMod Q K i j := by
  have hle := le_rowMax (List.mem_map_of_mem (f := score scale mask.toScoreMod Q K i) hj)
  simp only [boundedKey]
  generalize rowMax (cols.map (score scale mask.toScoreMod Q K i)) = m at *
  generalize score scale mask.toScoreMod Q K i j = s at *
  cases s <;> cases m <;> first | rfl | cases hle

/-- The allowance sees the scores of attention. -/
theorem boundedKeys_score :
    (boundedKeys p additions scale mask Q K V i t cols).map (·.score)
      = cols.map (score scale mask.toScoreMod Q K i) := by
  rw [boundedKeys, List.map_map]
  exact List.map_congr_left fun j hj => boundedKey_score hj

/-- The allowance sees the values of attention. -/
theorem boundedKeys_value :
    (boundedKeys p additions scale mask Q K V i t cols).map (·.value)
      = cols.map fun j => V[j][t] := by
  rw [boundedKeys, List.map_map]
  refine List.map_congr_left fun j _ => ?_
  simp only [Function.comp_apply, boundedKey]
  generalize rowMax (cols.map (score scale mask.toScoreMod Q K i)) = m
  generalize score scale mask.toScoreMod Q K i j = s
  cases s <;> cases m <;> rfl

/-- The computed scores of a row of attention are the exact ones, but for a constant of the row and
the error that the allowance has of each. -/
theorem computedKeys_error (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1)
    (hσ : RoundedTimes p.unit 3 scale σ)
    (hc : ∀ j ∈ cols, mask i j → ComputedScore p additions σ Q[i] K[j] (computed j)) :
    ∃ c, ∀ key ∈ computedKeys p additions scale mask Q K V i t cols computed,
      ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c)) := by
  cases hm : rowMax (cols.map (score scale mask.toScoreMod Q K i)) with
  | none =>
    refine ⟨0, fun key hkey s hs => ?_⟩
    have : key.score ∈ cols.map (score scale mask.toScoreMod Q K i) := by
      rw [← boundedKeys_score (p := p) (additions := additions) (V := V) (t := t),
        ← computedKeys_toBoundedKey (computed := computed), List.map_map]
      exact List.mem_map_of_mem (f := (·.score) ∘ (·.toBoundedKey)) hkey
    have := rowMax_eq_none.mp hm _ this
    rw [this] at hs
    cases hs
  | some m =>
    obtain ⟨c, -, h⟩ := rounded_scores hp hu hd hσ m
    refine ⟨c, fun key hkey s hs => ?_⟩
    obtain ⟨j, hj, rfl⟩ := List.mem_map.mp hkey
    have hle := le_rowMax (List.mem_map_of_mem (f := score scale mask.toScoreMod Q K i) hj)
    simp only [hm, boundedKey] at hs hle ⊢
    by_cases hv : mask i j
    · simp only [score, Mask.toScoreMod, hv, ↓reduceIte, Option.some.injEq, ScoreLE] at hs hle ⊢
      subst hs
      exact h d Q[i] K[j] _ _ ⟨by grind, by grind⟩ (hc j hj hv)
    · simp [score, Mask.toScoreMod, hv] at hs

end Rows

end Attention.Proof
