module

public import Attention.Proof.Rounding.ScoreRows
public import Attention.Proof.Rounding.Basic

public section

/-! # Attention of matrices, from the products to the quotient, within its tolerance

Docs/tolerances.md, sections 1 to 4 together: `RoundedScores` bounds the errors of the scores,
`Rounding` what a function makes of them. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {q_len kv_len d d_v : Nat}

omit [Exponential R R] in
/-- The scores and values that the tolerance sees are those of attention. -/
private theorem boundedKeys_same {p : Precision R} {f : ScoreFormats R} {additions : Nat}
    {scale : R} {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {V : Matrix R kv_len d_v} {i : Fin q_len} {t : Fin d_v} {cols : List (Fin kv_len)} :
    (boundedKeys p f additions scale mask Q K V i t cols).map (fun k => (k.score, k.value))
      = (scored scale mask.toScoreMod Q K V i cols).map (fun k => (k.score, k.value[t])) := by
  rw [← List.zip_map', boundedKeys_score, boundedKeys_value, List.zip_map', scored, List.map_map]
  rfl

/-- A row of attention, of its keys in any order. -/
theorem attention_of_cols {scale : R} {mask : Mask q_len kv_len} {Q : Matrix R q_len d}
    {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len} {cols : List (Fin kv_len)}
    (hcols : cols.Perm (List.finRange kv_len)) :
    (attention scale mask.toScoreMod Q K V)[i]
      = attend (scored scale mask.toScoreMod Q K V i cols) := by
  have h : (scored scale mask.toScoreMod Q K V i cols).Perm
      (scored scale mask.toScoreMod Q K V i (List.finRange kv_len)) := hcols.map _
  rw [attend_perm h, attention, Fin.getElem_fin, Vec.getElem_ofFn]

omit [Exponential R R] in
/-- The keys that a function computed are as the theorems about rows ask. -/
theorem computedKeys_row {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) {f : ScoreFormats R} (hf : PreciseFormats f) {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale σ₁ σ₂ σ : R} (hσ : ScaledBy p f scale σ₁ σ₂ σ) {mask : Mask q_len kv_len}
    {Q : Matrix R q_len d} {K : Matrix R kv_len d} (V : Matrix R kv_len d_v) {i : Fin q_len}
    (t : Fin d_v) {cols : List (Fin kv_len)} (hcols : cols.Perm (List.finRange kv_len))
    {computed : Fin kv_len → R}
    (scores : ∀ j, mask i j → ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] (computed j)) {m : R}
    (attained : ∃ j, mask i j ∧ computed j = m) :
    let keys := computedKeys p f additions scale mask Q K V i t cols computed
    keys.map (fun k => (k.score, k.value))
        = (scored scale mask.toScoreMod Q K V i cols).map (fun k => (k.score, k.value[t])) ∧
      (∃ key ∈ keys, key.score ≠ none ∧ key.computed = m) ∧
      ∃ c, ∀ key ∈ keys, ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c)) := by
  refine ⟨?_, ?_, computedKeys_error hp hu hf hd hσ fun j _ hj => scores j hj⟩
  · rw [← boundedKeys_same (p := p) (f := f) (additions := additions),
      ← computedKeys_toBoundedKey (computed := computed), List.map_map]
    rfl
  · obtain ⟨j, hj, rfl⟩ := attained
    have hmem : j ∈ cols := hcols.mem_iff.mpr (List.mem_finRange j)
    rw [computedKeys]
    refine ⟨_, List.mem_map.mpr ⟨j, hmem, rfl⟩, ?_, rfl⟩
    rw [boundedKey_score hmem]
    simp [score, Mask.toScoreMod, hj]

/-- **rounded-matrices**: a function that rounds, of all keys in any order, is within the tolerance
of attention: it computes each score by d products, `additions` additions in a row at most, and a
scale that is rounded and may stand on either operand or both, stores scaled operands and scores in
formats of their own, and computes the rest as `Run` may. -/
theorem rounded_attention_matrices {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) {f : ScoreFormats R} (hf : PreciseFormats f) {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale σ₁ σ₂ σ : R} (hσ : ScaledBy p f scale σ₁ σ₂ σ) {mask : Mask q_len kv_len}
    {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
    {t : Fin d_v} {cols : List (Fin kv_len)} (hcols : cols.Perm (List.finRange kv_len))
    {computed : Fin kv_len → R}
    (scores : ∀ j, mask i j → ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] (computed j))
    {m : R} {part : Part R} (run : Run p m part)
    (keys : part.keys = computedKeys p f additions scale mask Q K V i t cols computed)
    (attained : ∃ j, mask i j ∧ computed j = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
      (boundedKeys p f additions scale mask Q K V i t cols)) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible
        (boundedKeys p f additions scale mask Q K V i t cols))
      (o - (attention scale mask.toScoreMod Q K V)[i][t]) := by
  obtain ⟨same, top, c, close⟩ := computedKeys_row hp hu hf hd hσ V t hcols scores attained
  rw [← keys] at same top close
  rw [attention_of_cols hcols]
  have := rounded_attention hp run t.isLt same top close hr ha
    (by rwa [keys, computedKeys_toBoundedKey]) hN hD result negligible
  rwa [keys, computedKeys_toBoundedKey] at this

/-- **rounded-output**: so is the result where it is stored in a format of its own, within what
`storedTolerance` has for that format. -/
theorem rounded_output_matrices {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) {f : ScoreFormats R} (hf : PreciseFormats f) {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale σ₁ σ₂ σ : R} (hσ : ScaledBy p f scale σ₁ σ₂ σ) {mask : Mask q_len kv_len}
    {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
    {t : Fin d_v} {cols : List (Fin kv_len)} (hcols : cols.Perm (List.finRange kv_len))
    {computed : Fin kv_len → R}
    (scores : ∀ j, mask i j → ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] (computed j))
    {m : R} {part : Part R} (run : Run p m part)
    (keys : part.keys = computedKeys p f additions scale mask Q K V i t cols computed)
    (attained : ∃ j, mask i j ∧ computed j = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
      (boundedKeys p f additions scale mask Q K V i t cols)) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) 
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (storedTolerance p u η roundings rescalings negligible
        (boundedKeys p f additions scale mask Q K V i t cols))
      (o' - (attention scale mask.toScoreMod Q K V)[i][t]) := by
  obtain ⟨same, top, c, close⟩ := computedKeys_row hp hu hf hd hσ V t hcols scores attained
  rw [← keys] at same top close
  rw [attention_of_cols hcols]
  have := rounded_output hp run t.isLt same top close hr ha
    (by rwa [keys, computedKeys_toBoundedKey]) hN hD result stored negligible
  rwa [keys, computedKeys_toBoundedKey] at this

end Attention.Proof
