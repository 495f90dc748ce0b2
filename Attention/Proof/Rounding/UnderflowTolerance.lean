module

public import Attention.Proof.Rounding.Flushed
public import Attention.Proof.Rounding.UnderflowShares

public section

/-! # No attention function whose numbers underflow exceeds its tolerance

What `Proof/Rounding/Underflow.lean` says of the sums, of the quotient: it is off from that of a run
without underflow by the costs of the keys, as shares of the sum of the weights.
Source: docs/tolerances.md, sections 3 and 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind Underflow

universe u

variable {R : Type u} [OrderedField R]

/-! ## Numbers -/

/-- A number stored `k` times is one that is rounded so, made of another number. -/
theorem storedTimes_companion {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {k : Nat} {x x₀ y c : R}
    (h : TinyTimes u ν k x y) (hx : AtMost c (x - x₀)) :
    ∃ y₀, RoundedTimes u k x₀ y₀ ∧
      AtMost ((1 + u) ^ k * c + (1 + u) ^ k * (numeral k * ν)) (y - y₀) := by
  induction k generalizing y with
  | zero =>
    refine ⟨x₀, rfl, ?_⟩
    rw [show y = x from h, Semiring.pow_zero, numeral_eq, Semiring.natCast_zero]
    exact hx.mono (by grind)
  | succ k ih =>
    obtain ⟨z, hz, hy⟩ := h
    obtain ⟨z₀, h₁, h₂⟩ := ih hz
    obtain ⟨θ, hθ, h₃, -⟩ := stored_split hu hν hy
    have hθ' : AtMost (1 + u) (1 + θ) := ⟨by have := hθ.1; grind, by have := hθ.2; grind⟩
    refine ⟨z₀ * (1 + θ), ⟨z₀, h₁, θ, hθ, rfl⟩, ?_⟩
    have h₄ := (h₂.mul hθ').add h₃
    rw [show (z - z₀) * (1 + θ) + (y - z * (1 + θ)) = y - z₀ * (1 + θ) by grind] at h₄
    refine h₄.mono ?_
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedField.one_le_pow (x := 1 + u) (by grind) (k + 1)) hν
    rw [numeral_succ]
    rw [Semiring.pow_succ] at h₅ ⊢
    generalize (1 + u) ^ k = G at *
    generalize (numeral k : R) = n at *
    clear h₁ h₂ h₃ h₄ hx hz hy ih
    grind

private theorem fold_pow {u c ν g N : R} {k : Nat} (hν : 0 ≤ ν)
    (hg : (1 + u) ^ k ≤ g) (hN : (1 + u) ^ k * c ≤ g * N) {n : R} (hn : 0 ≤ n) :
    (1 + u) ^ k * c + (1 + u) ^ k * (n * ν) ≤ g * (N + n * ν) := by
  have := OrderedRing.mul_le_mul_of_nonneg_right hg (OrderedRing.mul_nonneg hn hν)
  generalize (1 + u) ^ k = G at *
  grind

/-- A quotient whose numerator and denominator underflow. -/
private theorem quotient_underflow {W L l₀ l o o₀ Go Gl g γ Cv C M P : R} (hW : 0 < W)
    (hleft : 0 < L) (hl₀ : l₀ ≠ 0) (hC : 0 ≤ C) (hl : W * (L + g * C) ≤ l₀)
    (hGl : Gl ≤ g) (el : AtMost (Gl * (W * C)) (l - l₀)) (eo : AtMost (Go * (W * Cv)) (o - o₀))
    (hM : AtMost M (o₀ / l₀)) (hCv : 0 ≤ Cv) (hPo : P * Go ≤ γ) (hP₁ : P ≤ γ)
    (hg : 0 ≤ g) :
    ∃ c, AtMost c (o / l - o₀ / l₀) ∧ P * c ≤ γ * ((Cv + M * (g * C)) / L) := by
  have hWC := OrderedRing.mul_nonneg (Std.le_of_lt hW) hC
  have el' := el.mono (OrderedRing.mul_le_mul_of_nonneg_right hGl hWC)
  have hL : W * (1 - (1 - L)) ≤ l := by
    have := el'.1
    grind
  have e := OrderedField.mul_div_cancel hl₀ o₀
  generalize o₀ / l₀ = x₀ at *
  have h := eo.sub (el'.mul hM)
  rw [show o - o₀ - (l - l₀) * x₀ = o - l * x₀ by grind] at h
  have h₂ := quotient_sub (T := Go * Cv + M * (g * C)) hW (g := 1 - L) (by grind) hL
    (h.mono (by grind))
  rw [show 1 - (1 - L) = L by grind] at h₂
  refine ⟨_, h₂, ?_⟩
  have hM₀ := hM.nonneg
  have h₃ : P * (Go * Cv + M * (g * C)) ≤ γ * (Cv + M * (g * C)) := by
    have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hPo hCv
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right hP₁ (OrderedRing.mul_nonneg hM₀
      (OrderedRing.mul_nonneg hg hC))
    generalize M * (g * C) = y at *
    clear h h₂ hL el el' eo hM hl e
    grind
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₃
    (Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hleft))
  rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, ← Semiring.mul_assoc P, ← Semiring.mul_assoc γ]
  exact h₄

/-- Where something is left of 1, the first of two errors that are taken from it is less. -/
theorem lt_one_of_left {d x : R} (h : 0 < 1 - d - x) (hx : 0 ≤ x) : d < 1 := by grind

private theorem left_add {W d x : R} : W * (1 - d - x + x) ≤ W * (1 - d) := by
  rw [show 1 - d - x + x = 1 - d by grind]
  exact Std.le_refl _

private theorem ne_zero_of_left {W d l : R} (hW : 0 < W) (hd : d < 1) (h : W * (1 - d) ≤ l) :
    l ≠ 0 := by
  have := OrderedRing.mul_pos hW (b := 1 - d) (by grind)
  grind

private theorem one_add_nonneg {g : R} (h : 0 ≤ g) : 0 ≤ 1 + g := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

private theorem le_one_add {x g : R} (h : x - 1 ≤ g) : x ≤ 1 + g := by grind

private theorem add_sub_same (a b : R) : a + (b - a) = b := by grind

private theorem sub_add_sub (a b c : R) : b - c + (a - b) = a - c := by grind

private theorem growth_le {a G T : R} {n k N : Nat} (ha : 0 ≤ a) (hT : 1 ≤ T) (hk : n ≤ N)
    (hk' : k ≤ N) (hG : (1 + a) ^ N * T ≤ G) : (1 + a) ^ n * T ≤ G ∧ (1 + a) ^ k ≤ G := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ : 1 ≤ 1 + a := by grind
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right (OrderedField.pow_le_pow h₁ hk) (c := T)
    (by grind)
  have i₂ := OrderedField.pow_le_pow h₁ hk'
  have i₃ := OrderedField.one_le_pow h₁ N
  have i₄ := OrderedRing.mul_le_mul_of_nonneg_left hT (c := (1 + a) ^ N) (by grind)
  exact ⟨Std.le_trans i₁ hG, by grind⟩

/-! ## Quotients -/

variable [Exponential R R] {p : Precision R} {ν m : R}

/-- The quotient of a run whose numbers underflow is one of a run of which none does, but for the
costs, where sizes of values that are at most `T` times those that `V` is of cost no more than `V`
has. -/
theorem underflow_quotient (hp : Precise p) (hν : 0 ≤ ν) {part : Part R}
    (run : TinyRun p ν 0 m part) (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings (part.keys.map (·.toBoundedKey)))
    {T G V : R} (hT : 1 ≤ T) (hG : (1 + p.accumulation) ^ (roundings + 6) * T ≤ G)
    (hV : underflowCost p ν rescalings (part.keys.map (·.toBoundedKey))
      (fun k => absolute k.value) ≤ T * V)
    {o : R} (result : TinyTimes p.accumulation ν 5 (part.o / part.l) o) :
    ∃ part₀, Companion p ν m part part₀ ∧ ∀ M, AtMost M (part₀.o / part₀.l) →
      ∃ y, RoundedTimes p.accumulation 5 (part₀.o / part₀.l) y ∧
        AtMost (G * ((V + M * ((1 + gamma (roundings + 1) p.unit)
            * underflowCost p ν rescalings (part.keys.map (·.toBoundedKey)) (fun _ => 1)))
            / underflowLeft p ν roundings rescalings (part.keys.map (·.toBoundedKey))
            + numeral 5 * ν))
          (o - y) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu : p.unit ≤ 1 := by
    have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) roundings) hp.unit
    rw [numeral_succ] at hD
    grind
  obtain ⟨part₀, C⟩ := tiny_run hp hν hu run hνq
  refine ⟨part₀, C, fun M hM => ?_⟩
  have shares := shares_of_run hp C.run (by rw [C.keys]; exact attained)
    (by rw [C.keys]; exact close) (by rw [C.rescalings]; exact hr)
    (by rw [C.additions, C.rescalings]; exact ha) hu hD
  rw [C.keys, C.rescalings] at shares
  obtain ⟨b, W, hrow, hval, hpos, hW, hlow, hden, htiny, hmost⟩ := shares
  have one : ∀ _ : ComputedKey R, (0 : R) ≤ 1 := fun _ => Std.le_of_lt h₀
  have abs : ∀ k : ComputedKey R, (0 : R) ≤ absolute k.value := fun k => absolute_nonneg _
  have c₁ := cost_le (f := fun _ => 1) (f' := fun _ => 1) hp hν hr hrow hpos hW hlow (htiny ν hν)
    hmost (fun _ => rfl) one
  have cᵥ := cost_le (f := fun k => absolute k.value) (f' := fun k => absolute k.value) hp hν hr
    hrow hpos hW hlow (htiny ν hν) hmost (fun k => by
      show absolute k.value = absolute (b k).value
      rw [hval]) abs
  have C₁ := cost_nonneg_of hW (sumOver_nonneg fun k _ => cost_nonneg hp hν (one k)) c₁
  have Cᵥ := cost_nonneg_of hW (sumOver_nonneg fun k _ => cost_nonneg hp hν (abs k)) cᵥ
  have hγ := gamma_nonneg hp.unit hD
  have hleft := left
  rw [underflowLeft, hrow] at hleft
  have gC := OrderedRing.mul_nonneg (one_add_nonneg hγ) C₁
  have hdE : denominatorError p roundings rescalings (part.keys.map b) < 1 :=
    lt_one_of_left hleft gC
  have hl := hden hdE
  have hl₀ := ne_zero_of_left hW hdE hl
  have grow : ∀ {U : R}, 0 ≤ U → ∀ n : Nat, 0 ≤ (1 + U) ^ n := fun hU n =>
    Std.le_trans (Std.le_of_lt h₀) (OrderedField.one_le_pow (by grind) n)
  have el := (C.l hp hν).mono (OrderedRing.mul_le_mul_of_nonneg_left c₁ (grow hp.unit _))
  have cᵥ' := Std.le_trans cᵥ (OrderedRing.mul_le_mul_of_nonneg_left hV (Std.le_of_lt hW))
  have eo := (C.o hp hν).mono (OrderedRing.mul_le_mul_of_nonneg_left cᵥ' (grow hp.accumulation _))
  rw [show ∀ x : R, x * (W * (T * V)) = x * T * (W * V) from fun x => by grind] at eo
  obtain ⟨g₁, hP₁⟩ := growth_le (n := 5 + (part.additions + part.rescalings + 1)) (k := 5)
    hp.accumulation hT (by omega) (by omega) hG
  obtain ⟨e, he, hPe⟩ := quotient_underflow (P := (1 + p.accumulation) ^ 5)
    (g := 1 + gamma (roundings + 1) p.unit) (γ := G)
    hW hleft hl₀ C₁ (Std.le_trans left_add hl) (le_one_add (pow_sub_one_le_gamma hp.unit
      (show part.additions + part.rescalings ≤ roundings + 1 by omega) hD)) el eo hM
    (nonneg_of_mul Cᵥ hT hV) (by
      rw [← Semiring.mul_assoc, ← Semiring.pow_add]
      exact g₁) hP₁ (one_add_nonneg hγ)
  obtain ⟨y, hy, hyo⟩ := storedTimes_companion hp.accumulation hν result he
  refine ⟨y, hy, ?_⟩
  rw [underflowLeft, hrow]
  exact hyo.mono (fold_pow hν hP₁ hPe (numeral_nonneg (R := R) 5))

/-- **rounded-underflow**: where products, quotients, exponentials and sums may be below the normal
numbers, each off by `ν` and all but sums by no more than it is, and differences of scores of `μ` at
most be flushed to 0, for which the errors of scores have room, a function of which
`rounded_attention` asks the rest is within the tolerance and `underflowError` of attention. -/
theorem rounded_attention_underflow (hp : Precise p) (hν : 0 ≤ ν) {μ : R} (hμ : 0 ≤ μ)
    {part : Part R} (run : TinyRun p ν μ m part) (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} {roundings rescalings : Nat} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost (key.error - numeral (rescalings + 1) * μ) (key.computed - (s + c)))
    (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1)
    (hD : 2 * numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings (part.keys.map (·.toBoundedKey)))
    {o : R} (result : TinyTimes p.accumulation ν 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey))
        + underflowError p ν roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[j]) := by
  obtain ⟨part, e, run, attained, close⟩ := flushed_part hp.unit hμ run attained hr close
  simp only [← e.bounded, ← e.scored, ← e.l, ← e.o, ← e.additions, ← e.rescalings]
    at same hνq hr ha third left result ⊢
  have hn₀ := numeral_nonneg (R := R) roundings
  have hD' : 2 * numeral roundings * p.unit < 1 := by
    have := hp.unit
    rw [numeral_succ] at hD
    grind
  have hD₁ : numeral (roundings + 1) * p.unit < 1 := by
    have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (roundings + 1)) hp.unit
    grind
  obtain ⟨part₀, C, quotient⟩ := underflow_quotient hp hν run hνq attained close hr ha hD₁ left
    (T := 1) (G := 1 + gamma (roundings + 6) p.accumulation)
    (V := underflowCost p ν rescalings (part.keys.map (·.toBoundedKey)) fun k => absolute k.value)
    (Std.le_refl _) (by
      rw [Semiring.mul_one]
      exact le_one_add (pow_sub_one_le_gamma hp.accumulation (Nat.le_refl _) hN))
    (by rw [Semiring.one_mul]; exact Std.le_refl _) result
  have within : ∀ t, RoundedTimes p.accumulation 5 (part₀.o / part₀.l) t →
      AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
        (t - (attend row)[j]) := fun t ht => by
    have := rounded_attention hp C.run hj (by rw [C.keys]; exact same)
      (by rw [C.keys]; exact attained) (by rw [C.keys]; exact close)
      (by rw [C.rescalings]; exact hr) (by rw [C.additions, C.rescalings]; exact ha)
      (by rw [C.keys]; exact third) hN hD' ht negligible
    rwa [C.keys] at this
  have exact_eq : exactOutput (boundedWeights p rescalings (part.keys.map (·.toBoundedKey)))
      = (attend row)[j] := by
    obtain ⟨top, htop, hscore, -⟩ := attained
    exact exactOutput_eq_attend hj (by rwa [List.map_map]) ⟨_, toBounded_mem htop, hscore⟩ p
      rescalings
  have hM := (atMost_absolute (attend row)[j]).add (within _ (roundedTimes_itself hp.accumulation))
  rw [add_sub_same] at hM
  obtain ⟨y, hy, hyo⟩ := quotient _ hM
  have total := (within y hy).add hyo
  rw [sub_add_sub] at total
  rwa [underflowError, exact_eq]

end Attention.Proof
