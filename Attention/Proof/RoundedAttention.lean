module

public import Attention.Proof.RoundedScores
public import Attention.Proof.Rounding

public section

/-! # Attention of matrices, from the products to the quotient, within its allowance

Docs/allowances.md, sections 1 to 4 together: `RoundedScores` bounds the errors of the scores,
`Rounding` what a function makes of them. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {q_len kv_len d d_v : Nat}

/-- **rounded-matrices**: a function that rounds, of all keys in any order, is within the allowance
of attention: it computes each score by d products, `additions` additions in a row at most, and a
scale that is rounded, and the rest as `Run` may. -/
theorem rounded_attention_matrices {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1)
    {scale σ : R} (hσ : RoundedTimes p.unit 3 scale σ) {mask : Mask q_len kv_len}
    {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
    {t : Fin d_v} {cols : List (Fin kv_len)} (hcols : cols.Perm (List.finRange kv_len))
    {computed : Fin kv_len → R}
    (scores : ∀ j, mask i j → ComputedScore p additions σ Q[i] K[j] (computed j))
    {m : R} {part : Part R} (run : Run p m part)
    (keys : part.keys = computedKeys p additions scale mask Q K V i t cols computed)
    (attained : ∃ j, mask i j ∧ computed j = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (allowance p roundings rescalings negligible
        (boundedKeys p additions scale mask Q K V i t cols))
      (o - (attention scale mask.toScoreMod Q K V)[i][t]) := by
  obtain ⟨c, close⟩ := computedKeys_error (V := V) (t := t) (cols := cols) hp hu hd hσ
    fun j _ hj => scores j hj
  rw [← keys] at close
  have row : (attention scale mask.toScoreMod Q K V)[i]
      = attend (scored scale mask.toScoreMod Q K V i cols) := by
    have h : (scored scale mask.toScoreMod Q K V i cols).Perm
        (scored scale mask.toScoreMod Q K V i (List.finRange kv_len)) := hcols.map _
    rw [attend_perm h, attention, Fin.getElem_fin, Vec.getElem_ofFn]
  have same : part.keys.map (fun k => (k.score, k.value))
      = (scored scale mask.toScoreMod Q K V i cols).map (fun k => (k.score, k.value[t])) := by
    have h₁ : part.keys.map (fun k => (k.score, k.value))
        = ((boundedKeys p additions scale mask Q K V i t cols).map (·.score)).zip
          ((boundedKeys p additions scale mask Q K V i t cols).map (·.value)) := by
      rw [keys, ← computedKeys_toBoundedKey (computed := computed), List.map_map, List.map_map,
        List.zip_map']
      rfl
    rw [h₁, boundedKeys_score, boundedKeys_value, List.zip_map', scored, List.map_map]
    rfl
  have top : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m := by
    obtain ⟨j, hj, rfl⟩ := attained
    have hmem : j ∈ cols := hcols.mem_iff.mpr (List.mem_finRange j)
    rw [keys, computedKeys]
    refine ⟨_, List.mem_map.mpr ⟨j, hmem, rfl⟩, ?_, rfl⟩
    rw [boundedKey_score hmem]
    simp [score, Mask.toScoreMod, hj]
  rw [row]
  have := rounded_attention hp run t.isLt same top close hr ha hN hD result negligible
  rwa [keys, computedKeys_toBoundedKey] at this

end Attention.Proof
