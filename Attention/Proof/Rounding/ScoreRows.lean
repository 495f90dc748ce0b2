module

public import Attention.Proof.Rounding.Scores

public section

/-! # The scores of a row within their tolerance

`rounded_scores` of each key of a row of whole matrices: the keys that a function computed are those
that the tolerance sees. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

variable {p : Precision R} {f : ScoreFormats R} {additions : Nat} {scale σ₁ σ₂ σ : R}

/-! ## Rows of attention -/

section Rows

variable {q_len kv_len d d_v : Nat} {mask : Mask q_len kv_len} {Q : Matrix R q_len d}
  {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len} {t : Fin d_v}
  {cols : List (Fin kv_len)} {computed : Fin kv_len → R}

/-- The tolerance sees the keys that the function computed. -/
theorem computedKeys_toBoundedKey :
    (computedKeys p f additions scale mask Q K V i t cols computed).map (·.toBoundedKey)
      = boundedKeys p f additions scale mask Q K V i t cols := by
  simp only [computedKeys, boundedKeys, List.map_map]
  rfl

/-- The tolerance sees the score of attention, for each key of the row. -/
theorem boundedKey_score {j : Fin kv_len} (hj : j ∈ cols) :
    (boundedKey p f additions scale mask Q K V i t
      (rowMax (cols.map (score scale mask.toScoreMod Q K i))) j).score
        = score scale mask.toScoreMod Q K i j := by
  have hle := le_rowMax (List.mem_map_of_mem (f := score scale mask.toScoreMod Q K i) hj)
  simp only [boundedKey]
  generalize rowMax (cols.map (score scale mask.toScoreMod Q K i)) = m at *
  generalize score scale mask.toScoreMod Q K i j = s at *
  cases s <;> cases m <;> first | rfl | cases hle

/-- The tolerance sees the scores of attention. -/
theorem boundedKeys_score :
    (boundedKeys p f additions scale mask Q K V i t cols).map (·.score)
      = cols.map (score scale mask.toScoreMod Q K i) := by
  rw [boundedKeys, List.map_map]
  exact List.map_congr_left fun j hj => boundedKey_score hj

/-- The tolerance sees the values of attention. -/
theorem boundedKeys_value :
    (boundedKeys p f additions scale mask Q K V i t cols).map (·.value)
      = cols.map fun j => V[j][t] := by
  rw [boundedKeys, List.map_map]
  refine List.map_congr_left fun j _ => ?_
  simp only [Function.comp_apply, boundedKey]
  generalize rowMax (cols.map (score scale mask.toScoreMod Q K i)) = m
  generalize score scale mask.toScoreMod Q K i j = s
  cases s <;> cases m <;> rfl

/-- The computed scores of a row of attention are the exact ones, but for a constant of the row and
the error that the tolerance has of each. -/
theorem computedKeys_error (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hf : PreciseFormats f)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hc : ∀ j ∈ cols, mask i j → ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] (computed j)) :
    ∃ c, ∀ key ∈ computedKeys p f additions scale mask Q K V i t cols computed,
      ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c)) := by
  cases hm : rowMax (cols.map (score scale mask.toScoreMod Q K i)) with
  | none =>
    refine ⟨0, fun key hkey s hs => ?_⟩
    have : key.score ∈ cols.map (score scale mask.toScoreMod Q K i) := by
      rw [← boundedKeys_score (p := p) (f := f) (additions := additions) (V := V) (t := t),
        ← computedKeys_toBoundedKey (computed := computed), List.map_map]
      exact List.mem_map_of_mem (f := (·.score) ∘ (·.toBoundedKey)) hkey
    have := rowMax_eq_none.mp hm _ this
    rw [this] at hs
    cases hs
  | some m =>
    obtain ⟨c, -, h⟩ := rounded_scores hp hu hf hd hσ m
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
