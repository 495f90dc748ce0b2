module

public import Attention.Model.UnderflowLogSumExp
public import Attention.Model.UnderflowScores
public import Attention.Proof.Rounding.ChangedMatrices
public import Attention.Spec.UnderflowTolerance
import Attention.Proof.Rounding.UnderflowScores
import Attention.Proof.Rounding.UnderflowTolerance

public section

/-! # Log-sum-exps, within their tolerance where numbers underflow

The denominator is off by the costs of the keys besides, and so is its logarithm by what is left of
it; products that change a base are off by ν. Source: docs/tolerances.md, "Log-sum-exp". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind Underflow

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R]

private theorem le_of_mul_le {a b c : R} (hc : 0 < c) (h : a * c ≤ b * c) : a ≤ b := by
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.mul_pos (a := a - b) (b := c) (by grind) hc
  grind

private theorem companion_above {l l₀ G x L D em a b : R} (hG : 0 < G) (hL : L = G - x)
    (hleft : 0 < L) (hl₁ : 0 ≤ l₀) (hem : 0 < em) (hup : l * G ≤ l₀ * (G + x))
    (hab : G * a = L * b) (h : em * l₀ ≤ D * a) : em * l ≤ D * b := by
  have i₂ : (G + x) * L ≤ G * G := by
    have := mul_self_nonneg x
    rw [hL]
    grind
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_left i₂ hl₁
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hup (Std.le_of_lt hleft)
  have i₄ : l * G * L ≤ l₀ * (G * G) := by
    rw [Semiring.mul_assoc l₀] at i₁
    exact Std.le_trans i₁ i₃
  have i₅ := OrderedRing.mul_le_mul_of_nonneg_left i₄ (Std.le_of_lt hem)
  have i₆ := OrderedRing.mul_le_mul_of_nonneg_right h
    (OrderedRing.mul_nonneg (Std.le_of_lt hG) (Std.le_of_lt hG))
  have e₁ : em * l * (G * L) = em * (l * G * L) := by
    clear i₁ i₂ i₃ i₄ i₅ i₆ hab
    grind
  have e₂ : em * (l₀ * (G * G)) = em * l₀ * (G * G) := by
    clear i₁ i₂ i₃ i₄ i₅ i₆ hab
    grind
  have e₃ : D * a * (G * G) = D * b * (G * L) := by
    have : D * a * (G * G) = D * G * (G * a) := by
      clear i₁ i₂ i₃ i₄ i₅ i₆ hab
      grind
    rw [this, hab]
    clear this i₁ i₂ i₃ i₄ i₅ i₆ hab e₁ e₂
    grind
  refine le_of_mul_le (OrderedRing.mul_pos hG hleft) ?_
  rw [e₁, ← e₃]
  exact Std.le_trans i₅ (e₂ ▸ i₆)

private theorem companion_below {l l₀ G L D em A a b : R} (hG : 0 < G) (hleft : 0 < L)
    (hem : 0 < em) (hA : 0 ≤ A) (hlo : l₀ * L ≤ l * G) (ha : G * a = A) (hb : L * b = A)
    (h : D ≤ em * l₀ * a) : D ≤ em * l * b := by
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left
    (OrderedRing.mul_le_mul_of_nonneg_right hlo hA) (Std.le_of_lt hem)
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right h (Std.le_of_lt (OrderedRing.mul_pos hG hleft))
  have e₁ : em * l₀ * a * (G * L) = em * (l₀ * L * A) := by
    rw [← ha]
    clear i₁ i₂ ha hb h hlo
    grind
  have e₂ : em * l * b * (G * L) = em * (l * G * A) := by
    rw [← hb]
    clear i₁ i₂ ha hb h hlo e₁
    grind
  refine le_of_mul_le (OrderedRing.mul_pos hG hleft) ?_
  rw [e₁] at i₂
  rw [e₂]
  exact Std.le_trans i₂ i₁

/-- What a denominator that underflows is, where `l₀` does not. -/
private theorem denominator_of_companion {W l l₀ g C γ D em A : R} (hW : 0 < W) (hg : g < 1)
    (hl₀ : W * (1 - g) ≤ l₀) (hC : 0 ≤ C) (hγ : 0 ≤ γ) (hleft : 0 < 1 - g - γ * C)
    (hl : AtMost (γ * (W * C)) (l - l₀)) (hem : 0 < em) (hD : 0 < D)
    (h₁ : em * l₀ ≤ D * (A / (1 - g))) (h₂ : D ≤ em * l₀ * (A / (1 - g))) :
    em * l ≤ D * (A / (1 - g - γ * C)) ∧ D ≤ em * l * (A / (1 - g - γ * C)) := by
  have hx := OrderedRing.mul_nonneg hγ hC
  have hG : 0 < 1 - g := by grind
  rw [show γ * (W * C) = W * (γ * C) by grind] at hl
  have ha := OrderedField.mul_div_cancel (b := 1 - g) (by grind) A
  have hb := OrderedField.mul_div_cancel (b := 1 - g - γ * C) (by grind) A
  generalize A / (1 - g - γ * C) = b at *
  generalize A / (1 - g) = a at *
  generalize γ * C = x at *
  generalize 1 - g = G at *
  clear hg hγ hC
  have k := OrderedRing.mul_le_mul_of_nonneg_right hl₀ hx
  have hl₁ : 0 ≤ l₀ := by
    have := OrderedRing.mul_pos hW hG
    grind
  have hlo : l₀ * (G - x) ≤ l * G := by
    have h := OrderedRing.mul_le_mul_of_nonneg_right hl.1 (Std.le_of_lt hG)
    clear h₁ h₂ ha hb
    grind
  have hup : l * G ≤ l₀ * (G + x) := by
    have h := OrderedRing.mul_le_mul_of_nonneg_right hl.2 (Std.le_of_lt hG)
    clear h₁ h₂ ha hb hlo
    grind
  have hA : 0 ≤ A := by
    have ha₀ : 0 ≤ a := by
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (Std.le_of_lt hem) hl₁) (b := -a)
        (by grind)
      clear h₁ ha hb hlo hup k
      grind
    rw [← ha]
    exact OrderedRing.mul_nonneg (Std.le_of_lt hG) ha₀
  exact ⟨companion_above hG rfl hleft hl₁ hem hup (ha.trans hb.symm) h₁,
    companion_below hG hleft hem hA hlo ha hb h₂⟩

/-- A log-sum-exp whose products underflow is one whose products do not, but for eight of them and
the sum. -/
private theorem tinyLogSumExp_close [Exponential R R] {u ν m l L : R} (hu : 0 ≤ u) (hν : 0 ≤ ν)
    (h4 : numeral 4 * u < 1) (h : TinyLogSumExp u ν m l L) :
    ∃ L₀, ComputedLogSumExp u m l L₀ ∧ AtMost ((1 + gamma 4 u) * (numeral 9 * ν)) (L - L₀) := by
  obtain ⟨a, b, c, k, logl, x, y, z, s, h₁, h₂, hexp, hy, hz, hx, hs, hL⟩ := h
  obtain ⟨z₀, j₁, j₂⟩ := storedTimes_companion hu hν hz (c := 0) (x₀ := y) ⟨by grind, by grind⟩
  obtain ⟨x₀, j₃, j₄⟩ := storedTimes_companion hu hν hx (c := 0) (x₀ := m) ⟨by grind, by grind⟩
  have j₅ := (j₄.add j₂).add hs
  rw [show x - x₀ + (z - z₀) + (s - (x + z)) = s - (x₀ + z₀) by grind] at j₅
  obtain ⟨L₀, j₆, j₇⟩ := storedTimes_companion hu hν hL j₅
  refine ⟨L₀, ⟨a, b, c, k, logl, x₀, y, z₀, h₁, h₂, hexp, hy, j₁, j₃, j₆⟩, j₇.mono ?_⟩
  have grow : ∀ n : Nat, n ≤ 4 → (1 + u) ^ n ≤ 1 + gamma 4 u := fun n hn => by
    have := pow_sub_one_le_gamma hu hn h4
    grind
  have g₁ := grow (c + b) (by omega)
  have g₂ := grow (c + k) (by omega)
  have g₃ := grow c (by omega)
  rw [Semiring.pow_add] at g₁ g₂
  have hb := numeral_nonneg (R := R) b
  have hk := numeral_nonneg (R := R) k
  have hc := numeral_nonneg (R := R) c
  have hsum : (numeral b : R) + numeral k + numeral c ≤ numeral 8 := by
    have h : ((b + k + c : Nat) : R) ≤ ((8 : Nat) : R) :=
      OrderedRing.natCast_le_natCast_of_le _ _ (by omega)
    rw [Semiring.natCast_add, Semiring.natCast_add] at h
    rw [numeral_eq, numeral_eq, numeral_eq, numeral_eq]
    exact h
  have hG : 0 ≤ 1 + gamma 4 u := by
    have := gamma_nonneg hu h4
    have := OrderedRing.zero_lt_one (R := R)
    grind
  have k₁ := OrderedRing.mul_le_mul_of_nonneg_right g₁ (OrderedRing.mul_nonneg hb hν)
  have k₂ := OrderedRing.mul_le_mul_of_nonneg_right g₂ (OrderedRing.mul_nonneg hk hν)
  have k₃ := OrderedRing.mul_le_mul_of_nonneg_right g₃ (OrderedRing.mul_nonneg hc hν)
  have k₄ := OrderedRing.mul_le_mul_of_nonneg_left
    (OrderedRing.mul_le_mul_of_nonneg_right hsum hν) hG
  have k₅ := OrderedRing.mul_le_mul_of_nonneg_right g₃ hν
  rw [show (numeral 9 : R) = numeral 8 + 1 from numeral_succ 8]
  clear g₁ g₂ g₃ grow j₇ j₅ j₂ j₄ hsum
  generalize (numeral b : R) = nb at *
  generalize (numeral k : R) = nk at *
  generalize (numeral c : R) = nc at *
  generalize (1 + u) ^ b = B at *
  generalize (1 + u) ^ k = K at *
  generalize (1 + u) ^ c = Z at *
  generalize 1 + gamma 4 u = G at *
  clear hz hx hs hL hy hb hk hc hG h4 hexp h₁ h₂ j₁ j₃ j₆
  grind

/-- No factor of a weight is less than 1, nor is their mean. -/
private theorem one_le_mean_factor [Exponential R R] {p : Precision R} (hp : Precise p)
    {rescalings : Nat} {row : List (BoundedKey R)} {M : R}
    (maximum : rowMax (row.map (·.score)) = some M) (unmasked : ∃ key ∈ row, key.score ≠ none)
    (error : ∀ key ∈ row, key.score ≠ none → 0 ≤ key.error) :
    1 ≤ sumOver (fun k => k.weight * k.factor) (boundedWeights p rescalings row)
      / sumOver (fun k => k.weight) (boundedWeights p rescalings row) := by
  rw [boundedWeights_eq maximum, sumOver_map, sumOver_map]
  have nonneg : ∀ key : BoundedKey R,
      0 ≤ (boundedWeight p rescalings (some M) (largestError row) key).weight := fun key => by
    unfold boundedWeight
    cases key.score with
    | none => exact Std.le_refl _
    | some s => exact Std.le_of_lt (exp_pos _)
  have hS : 0 < sumOver (fun key =>
      (boundedWeight p rescalings (some M) (largestError row) key).weight) row := by
    obtain ⟨key, hk, hs⟩ := unmasked
    obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hs
    have h := le_sumOver (f := fun key =>
      (boundedWeight p rescalings (some M) (largestError row) key).weight) (fun k _ => nonneg k) hk
    have e : (boundedWeight p rescalings (some M) (largestError row) key).weight = exp (s - M) := by
      simp only [boundedWeight, hs]
    have := exp_pos (R := R) (s - M)
    have h : (boundedWeight p rescalings (some M) (largestError row) key).weight ≤ _ := h
    rw [e] at h
    exact Std.lt_of_lt_of_le this h
  rw [OrderedField.le_div_iff hS, Semiring.mul_one]
  refine sumOver_le_sumOver fun key hk => ?_
  have h : 1 ≤ (boundedWeight p rescalings (some M) (largestError row) key).factor := by
    cases hs : key.score with
    | none => simp only [boundedWeight, hs, Std.le_refl]
    | some s =>
      have h₁ := error key hk (by simp [hs])
      have h₂ := error_le_largestError hk (by simp [hs])
      have h₃ : s ≤ M := by
        have h := le_rowMax (List.mem_map_of_mem (f := (·.score)) hk)
        rw [maximum] at h
        have h : ScoreLE key.score (some M) := h
        rw [hs] at h
        exact h
      have h₄ : (1 : R) ≤ exp (key.error + p.unit * (M - s + key.error + largestError row)) := by
        rw [← exp_zero (S := R)]
        refine exp_le ?_
        have := OrderedRing.mul_nonneg hp.unit (b := M - s + key.error + largestError row)
          (by grind)
        grind
      have h₅ := OrderedField.pow_le_one (remainder_pos hp)
        (by have := hp.exponential; grind) (rescalings + 1)
      simp only [boundedWeight, hs]
      rw [power_eq, OrderedField.le_div_iff (OrderedField.pow_pos (remainder_pos hp) _),
        Semiring.mul_one]
      exact Std.le_trans h₅ h₄
  have := OrderedRing.mul_le_mul_of_nonneg_left h (nonneg key)
  rwa [Semiring.mul_one] at this

/-- What is left of a denominator. -/
private theorem left_mul_le {W d γ C l l₀ : R} (hl : W * (1 - d) ≤ l₀)
    (el : AtMost (γ * (W * C)) (l - l₀)) : W * (1 - d - γ * C) ≤ l := by
  obtain ⟨h, -⟩ := el
  grind

/-- An error of a weight, as a share of what is left of the denominator. -/
private theorem share_of_left {W l left A x s η P : R} (hW : 0 < W) (hleft : 0 < left)
    (hA : 1 ≤ A) (hl : W * left ≤ l) (hx : x ≤ W * s) (hs : s ≤ η * P) (hη : 0 ≤ η * P) :
    x ≤ l * (A / left * (η * P)) := by
  have d := OrderedField.mul_div_cancel (b := left) (by grind) A
  have hA₀ : 0 ≤ A / left := OrderedField.div_nonneg (by
    have := OrderedRing.zero_lt_one (R := R)
    grind) hleft
  generalize A / left = y at *
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left hs (Std.le_of_lt hW)
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right hl hA₀
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_left hA (Std.le_of_lt hW)
  have i₄ : W ≤ l * y := by
    rw [← d] at i₃
    grind
  have i₅ := OrderedRing.mul_le_mul_of_nonneg_right i₄ hη
  rw [← Semiring.mul_assoc]
  exact Std.le_trans hx (Std.le_trans i₁ i₅)

/-- What a denominator comes to of which products and exponentials may underflow: exp m · l is the
exact sum of the exponentials but for a factor, up or down; it is positive; and an error `η` of a
weight, which rescalings have enlarged, is no larger as a share of it than the factor says, with the
exponentials of the largest weight and of rescalings. -/
theorem tiny_denominator [Exponential R R] {p : Precision R} {ν m : R} (hp : Precise p)
    (hν : 0 ≤ ν) {part : Part R} (run : TinyRun p ν 0 m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (close : ∀ key ∈ part.keys, ∀ s, key.score = some s → AtMost key.error (key.computed - s))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings (part.keys.map (·.toBoundedKey)))
    {M : R} (maximum : rowMax (part.keys.map (·.score)) = some M) :
    let F := underflowLogSumExpFactor p ν roundings rescalings (part.keys.map (·.toBoundedKey))
    exp m * part.l ≤ denominator (part.keys.map (·.score)) * F ∧
      denominator (part.keys.map (·.score)) ≤ exp m * part.l * F ∧ 0 < part.l ∧
      ∀ η, 0 ≤ η → η / (1 - p.exponential) ^ part.rescalings
        ≤ part.l * (F * (η * (1 / (1 - p.exponential) ^ (2 * rescalings + 1)))) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu : p.unit ≤ 1 := by
    have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) roundings) hp.unit
    rw [numeral_succ] at hD
    grind
  obtain ⟨part₀, C⟩ := tiny_run hp hν hu run hνq
  have close₀ : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + 0)) := fun key hk s hs => by
    rw [Semiring.add_zero]
    exact close key hk s hs
  have shares := shares_of_run hp C.run (by rw [C.keys]; exact attained)
    (by rw [C.keys]; exact close₀) (by rw [C.rescalings]; exact hr)
    (by rw [C.additions, C.rescalings]; exact ha) hu hD
  rw [C.keys, C.rescalings] at shares
  obtain ⟨b, W, hrow, hval, hpos, hW, hlow, hden, htiny, hmost⟩ := shares
  have one : ∀ _ : ComputedKey R, (0 : R) ≤ 1 := fun _ => Std.le_of_lt h₀
  have c₁ := cost_le (f := fun _ => 1) (f' := fun _ => 1) hp hν hr hrow hpos hW hlow (htiny ν hν)
    hmost (fun _ => rfl) one
  have C₁ := cost_nonneg_of hW (sumOver_nonneg fun k _ => cost_nonneg hp hν (one k)) c₁
  have hγ := gamma_nonneg hp.unit hD
  have hγ₁ : 0 ≤ 1 + gamma (roundings + 1) p.unit := by grind
  have hleft := left
  rw [underflowLeft] at hleft
  have hdE := lt_one_of_left hleft (OrderedRing.mul_nonneg hγ₁ C₁)
  have dE := rounded_denominator hp C.run (by rw [C.keys]; exact attained)
    (by rw [C.keys]; exact close) (by rw [C.rescalings]; exact hr)
    (by rw [C.additions, C.rescalings]; exact ha) hD (by rw [C.keys]; exact hdE)
  rw [C.keys] at dE
  obtain ⟨-, d₁, d₂⟩ := dE
  have hl := hden (by rw [← hrow]; exact hdE)
  rw [← hrow] at hl
  have pow_le : (1 + p.unit) ^ (part.additions + part.rescalings)
      ≤ 1 + gamma (roundings + 1) p.unit := by
    have := pow_sub_one_le_gamma hp.unit
      (show part.additions + part.rescalings ≤ roundings + 1 by omega) hD
    grind
  have el := (C.l hp hν).mono (Std.le_trans
    (OrderedRing.mul_le_mul_of_nonneg_right pow_le (sumOver_nonneg fun k _ => cost_nonneg hp hν
      (one k)))
    (OrderedRing.mul_le_mul_of_nonneg_left c₁ hγ₁))
  rw [logSumExpFactor] at d₁ d₂
  have hDn : 0 < (denominator (part.keys.map (·.score)) : R) := by
    obtain ⟨key, hk, hs, -⟩ := attained
    obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hs
    have := le_sumOver (f := fun s : Option R => (weight s : R)) (fun s _ => Proof.weight_nonneg s)
      (List.mem_map_of_mem (f := (·.score)) hk)
    have h := exp_pos (R := R) s
    have this : (weight key.score : R) ≤ _ := this
    rw [hs] at this
    exact Std.lt_of_lt_of_le h this
  obtain ⟨k₁, k₂⟩ := denominator_of_companion hW hdE hl C₁ hγ₁ hleft el (exp_pos m) hDn d₁ d₂
  have hWl : W * underflowLeft p ν roundings rescalings (part.keys.map (·.toBoundedKey))
      ≤ part.l := by
    rw [underflowLeft]
    exact left_mul_le hl el
  refine ⟨k₁, k₂, ?_, fun η hη => ?_⟩
  · have := OrderedRing.mul_pos hW left
    grind
  · have hP : 0 ≤ 1 / (1 - p.exponential) ^ (2 * rescalings + 1) :=
      OrderedField.div_nonneg (Std.le_of_lt h₀) (OrderedField.pow_pos (remainder_pos hp) _)
    refine share_of_left hW left (one_le_mean_factor hp (M := M) (by rwa [List.map_map]) ?_ ?_) hWl
      (htiny η hη) ?_ (OrderedRing.mul_nonneg hη hP)
    · obtain ⟨key, hk, hs, -⟩ := attained
      exact ⟨_, List.mem_map_of_mem (f := (·.toBoundedKey)) hk, hs⟩
    · intro key hk hs
      obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hk
      obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs
      exact (close key hkey s hs').nonneg
    · rw [underflowShare, tinyShare, ← power_eq]
      exact OrderedRing.mul_le_mul_of_nonneg_left (smaller_le _ _).1 hη

/-- **tiny-lse**: where products, exponentials and sums may underflow, products for the logarithm's
base and the sum of maximum and logarithm too, the log-sum-exp that such a function writes is within
the tolerance for what is left of the denominator then, and for nine such operations, where the
errors of scores have room for differences that are flushed to 0. -/
theorem rounded_logSumExp_underflow [Exponential R R] {p : Precision R} {ν μ m : R} (hp : Precise p)
    (hν : 0 ≤ ν) (hμ : 0 ≤ μ) {part : Part R} (run : TinyRun p ν μ m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {roundings rescalings : Nat} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost (key.error - numeral (rescalings + 1) * μ) (key.computed - s))
    (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings (part.keys.map (·.toBoundedKey)))
    (h4 : numeral 4 * p.unit < 1) {L E M : R}
    (exact : IsLogSumExp R (some L) (part.keys.map (·.score)))
    (maximum : rowMax (part.keys.map (·.score)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings rescalings (part.keys.map (·.toBoundedKey))
      ≤ exp E) {L' : R} (result : TinyLogSumExp p.unit ν m part.l L') :
    AtMost (underflowLogSumExpTolerance p ν E (L - M) M
        (largestError (part.keys.map (·.toBoundedKey)))) (L' - L) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨part₁, e, run, attained, close₀⟩ := flushed_part (c := 0) hp.unit hμ run attained hr
    fun key hk s hs => by
      rw [Semiring.add_zero]
      exact close key hk s hs
  have scores : part₁.keys.map (fun k => k.score) = part.keys.map (fun k => k.score) := by
    have := congrArg (List.map fun k : BoundedKey R => k.score) e.bounded
    rw [List.map_map, List.map_map] at this
    exact this
  rw [← scores] at exact maximum
  simp only [← e.bounded, ← e.l, ← e.additions, ← e.rescalings] at hνq hr ha left errors result ⊢
  have hu : p.unit ≤ 1 := by
    have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) roundings) hp.unit
    rw [numeral_succ] at hD
    grind
  obtain ⟨part₀, C⟩ := tiny_run hp hν hu run hνq
  have close : ∀ key ∈ part₁.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - s) := fun key hk s hs => by
    have := close₀ key hk s hs
    rwa [Semiring.add_zero] at this
  have key := tiny_denominator hp hν run hνq attained close hr ha hD left maximum
  obtain ⟨L₀, r₁, r₂⟩ := tinyLogSumExp_close hp.unit hν h4 result
  have within := logSumExp_within hp attained C.below close h4 exact maximum errors key.1 key.2.1 r₁
  have := within.add r₂
  rw [show L₀ - L + (L' - L₀) = L' - L by grind] at this
  exact this

/-- **tiny-lse-matrices**: so is the log-sum-exp of a function as in `tiny_changed_matrices`, of all
that the query sees and the sink, from the products of queries and keys on. -/
theorem tiny_logSumExp_matrices [NaturalExp R] {q_len kv_len d d_v : Nat}
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) {f : ScoreFormats R}
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) {ν : R} (hν : 0 ≤ ν)
    {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale : R} {changes : ScoreChanges R q_len kv_len}
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {V : Matrix R kv_len d_v} {i : Fin q_len} {t : Fin d_v} {cols : List (Option (Fin kv_len))}
    {computed : Option (Fin kv_len) → R}
    (scores : TinyScores p f ν additions changes scale mask Q K i computed)
    {m : R} {part : Part R} (run : TinyRun p ν ν m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential) {roundings rescalings : Nat}
    (keys : part.keys = (computedChangedKeys p (changes.formats p f ν additions d scale) additions
      changes true scale mask Q K V i t cols computed (columnValue V t)).map
        (·.flushed ν rescalings))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings) {row : List (BoundedKey R)}
    (hrow : row = (changedKeys p (changes.formats p f ν additions d scale) additions changes true
      scale mask Q K V i t cols).map (·.flushed ν rescalings))
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) (h4 : numeral 4 * p.unit < 1)
    {L E M : R} (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings rescalings row ≤ exp E)
    {L' : R} (result : TinyLogSumExp p.unit ν m part.l L') :
    AtMost (underflowLogSumExpTolerance p ν E (L - M) M (largestError row)) (L' - L) := by
  obtain ⟨σ₁, σ₂, σ, hσ, scores⟩ := tiny_scores archimedean hp hu (score_depth hp hf hd) hf₀ hν
    hcap scores
  obtain ⟨c, hc, close⟩ := computedChangedKeys_error (p := p)
    (f := changes.formats p f ν additions d scale) (V := V) (t := t) (cols := cols)
    (whole := true) (used := columnValue V t) archimedean hp hu hu' ⟨hf.operands, hf.operandsTiny⟩
    hf₀ hf₁ hd hσ hcap scores
  obtain rfl := hc rfl
  replace close := flushed_room keys close
  have e : part.keys.map (·.toBoundedKey) = row := by
    rw [keys, flushed_toBoundedKey, computedChangedKeys_toBoundedKey, hrow]
  have e' : part.keys.map (·.score) = cols.map (changes.score scale mask Q K i) := by
    rw [← changedKeys_score (p := p) (f := changes.formats p f ν additions d scale)
      (additions := additions) (whole := true) (V := V) (t := t), keys, List.map_map,
      ← computedChangedKeys_toBoundedKey (computed := computed), List.map_map]
    rfl
  have := rounded_logSumExp_underflow hp hν hν run hνq attained (fun key hk s hs => by
      have := close key hk s hs
      rwa [show s + 0 = s by grind] at this) hr ha hD (by rwa [e]) h4 (by rwa [e']) (by rwa [e'])
    (by rwa [e]) result
  rwa [e] at this

end Attention.Proof
