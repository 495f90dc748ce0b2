module

public import Attention.Proof.Rounding.OverflowRun
public import Attention.Proof.Rounding.OverflowScores
public import Attention.Proof.Rounding.Stored
import Attention.Proof.Rounding.ScoreRows

public section

/-! # Attention that overflows nowhere, from matrices to the tolerance -/

namespace Attention.Proof

open Spec Model Overflow Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {q_len kv_len d d_v : Nat}

attribute [local instance] Ring.intCast Semiring.natCast

/-- The score of an unmasked key is no larger than the row's. -/
private theorem scoreSize_le {p : Precision R} {f : ScoreFormats R} {additions : Nat}
    {σ₁ σ₂ σ : R} {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {i : Fin q_len} {j : Fin kv_len} (hj : mask i j = true) :
    scoreSize p f additions σ₁ σ₂ σ Q[i] K[j]
      ≤ rowScoreSize p f additions σ₁ σ₂ σ mask Q K i := by
  have h := (le_foldl (b := 0) (f := fun x j : _ => max x (if mask i j then
    scoreSize p f additions σ₁ σ₂ σ Q[i] K[j] else 0)) (fun x j => (le_max _ _).1)
    (List.finRange kv_len)).2
    (fun j => if mask i j then scoreSize p f additions σ₁ σ₂ σ Q[i] K[j] else 0)
    (fun x j => (le_max _ _).2) j (List.mem_finRange j)
  simp only [hj, if_true] at h
  exact h

variable [Exponential R R]

/-- **overflow-excluded**: of inputs that fit every score of a key that is seen is a number, and
for a query that sees one, what a function with a largest number computes of them is a number,
rounded to one of its format and not to infinity, and within the tolerance of a function that has no
largest number. -/
theorem limited_output_matrices {floor : R → Int} (hfloor : IsFloor floor) (format : Format)
    {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hstored : p.stored < 1)
    (htiny : p.storedTiny < 1 - p.exponential) {f : ScoreFormats R} (hf : PreciseFormats f)
    (hf' : 0 ≤ f.scores) (hf'' : 0 ≤ f.scoresTiny) {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale σ₁ σ₂ σ : R} (hσ : ScaledBy p f scale σ₁ σ₂ σ) {mask : Mask q_len kv_len}
    {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
    {t : Fin d_v} {cols : List (Fin kv_len)} (hcols : cols.Perm (List.finRange kv_len))
    {largest : Largest R} {roundings rescalings : Nat}
    (fits : outputFits p f largest additions roundings rescalings σ₁ σ₂ σ mask Q K V i t)
    (hformat : 0 < format.precision ∧ format.least + format.precision ≤ format.top ∧
      largest.output ≤ format.largest R)
    {computed : Fin kv_len → Option R}
    (scores : ∀ j, mask i j → LimitedScore p f largest additions σ₁ σ₂ σ Q[i] K[j] (computed j))
    (hN : numeral (roundings + 6) * p.accumulation < 1)
    (hD : 2 * numeral roundings * p.unit < 1) (negligible : R) :
    (∀ j, mask i j → computed j ≠ none) ∧
      ∀ {m : R} {part : LimitedPart R},
        LimitedRun p largest (rowScoreSize p f additions σ₁ σ₂ σ mask Q K i) m part →
        part.keys = computedKeys p f additions scale mask Q K V i t cols
          (fun j => (computed j).getD 0) →
        (∃ j, mask i j ∧ computed j = some m) → part.rescalings ≤ rescalings →
        part.additions + part.rescalings ≤ roundings →
        (p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
          (boundedKeys p f additions scale mask Q K V i t cols)) ≤ 1) →
        ∀ {o : Option R}, LimitedQuotient p largest part o →
          ∃ y, o = some y ∧ ¬ format.Overflows floor y ∧
            AtMost (storedTolerance p ((2 : R) ^ (-(format.precision : Int)))
                ((2 : R) ^ (format.least - 1)) roundings rescalings negligible
                (boundedKeys p f additions scale mask Q K V i t cols))
              (format.round floor y - (attention scale mask.toScoreMod Q K V)[i][t]) := by
  simp only [outputFits, Bool.and_eq_true, List.all_eq_true, Bool.or_eq_true, Bool.not_eq_true']
    at fits
  obtain ⟨fits₁, fits₂⟩ := fits
  have number : ∀ j, mask i j → ∃ s, computed j = some s ∧
      ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] s ∧
      AtMost (rowScoreSize p f additions σ₁ σ₂ σ mask Q K i) s := fun j hj => by
    obtain ⟨s, e, h₁, h₂⟩ := limitedScore hp hf hf' hf'' (by
      rcases fits₁ j (List.mem_finRange j) with h | h
      · rw [hj] at h
        cases h
      · exact h) (scores j hj)
    exact ⟨s, e, h₁, h₂.mono (scoreSize_le hj)⟩
  refine ⟨fun j hj e => ?_, fun {m part} run keys attained hr ha third o quotient => ?_⟩
  · obtain ⟨s, e', -⟩ := number j hj
    rw [e] at e'
    cases e'
  have small : p.accumulation < 1 := by
    have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (roundings + 5)) hp.accumulation
    rw [numeral_succ] at hN
    grind
  have score : ∀ j ∈ cols, (boundedKey p f additions scale mask Q K V i t
      (rowMax (cols.map (Spec.score scale mask.toScoreMod Q K i))) j).score
        = if mask i j then some (scale * Vec.dot Q[i] K[j]) else none := fun j hj => by
    rw [boundedKey_score hj]
    rfl
  have value : ∀ j, (boundedKey p f additions scale mask Q K V i t
      (rowMax (cols.map (Spec.score scale mask.toScoreMod Q K i))) j).value = V[j][t] := fun j => by
    simp only [boundedKey]
    split <;> rfl
  have bounded : part.keys.map (·.toBoundedKey)
      = cols.map (boundedKey p f additions scale mask Q K V i t
        (rowMax (cols.map (Spec.score scale mask.toScoreMod Q K i)))) := by
    rw [keys, computedKeys, List.map_map]
    rfl
  have unmasked : ∀ key ∈ part.keys, key.score ≠ none → ∃ j, mask i j ∧
      key.computed = (computed j).getD 0 := fun key hk hs => by
    rw [keys] at hk
    obtain ⟨j, hj, rfl⟩ := List.mem_map.mp hk
    refine ⟨j, ?_, rfl⟩
    simp only [score j hj] at hs
    cases h : mask i j
    · simp [h] at hs
    · rfl
  have fits₃ : sumsFit p largest roundings rescalings
      (rowScoreSize p f additions σ₁ σ₂ σ mask Q K i) (part.keys.map (·.toBoundedKey)) := by
    rw [bounded]
    refine sumsFit_mono hcols (fun j hj => ?_) (fun j hj _ => ?_) hp small fits₂
    · simp only [score j hj]
      cases mask i j <;> simp
    · rw [value]
      exact Std.le_refl _
  obtain ⟨j, hj, hm⟩ := attained
  obtain ⟨l, o', e₁, e₂, h₁, -, -, h₂⟩ := limitedRun hp hu small hstored htiny run hr ha fits₃
    (fun key hk hs => by
      obtain ⟨j, hj, e⟩ := unmasked key hk hs
      obtain ⟨s, e', -, h⟩ := number j hj
      rw [e, e']
      exact h)
    (by
      refine ⟨_, by rw [keys]; exact List.mem_map_of_mem (hcols.mem_iff.mpr (List.mem_finRange j)),
        ?_, ?_⟩
      · simp only [score j (hcols.mem_iff.mpr (List.mem_finRange j)), hj]
        simp
      · simp only [hm, Option.getD_some])
  obtain ⟨y, rfl, h₃, h₄⟩ := h₂ o quotient
  have h₅ := format_output_matrices hfloor format hp hu hf hd hσ hcols
    (computed := fun j => (computed j).getD 0)
    (fun j hj => by
      obtain ⟨s, e, h, -⟩ := number j hj
      simp only [e, Option.getD_some]
      exact h)
    h₁ keys ⟨j, hj, by simp only [hm, Option.getD_some]⟩ hr ha third hN hD h₃ negligible
  exact ⟨y, rfl, not_overflows hfloor hformat.1 hformat.2.1
    (Std.le_trans (absolute_le h₄) hformat.2.2), h₅⟩

end Attention.Proof
