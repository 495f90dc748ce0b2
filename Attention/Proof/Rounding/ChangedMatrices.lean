module

public import Attention.Model.RoundedLogSumExp
public import Attention.Proof.Rounding.Changes
public import Attention.Proof.Rounding.LogSumExp
public import Attention.Proof.Rounding.Masked

public section

/-! # Attention of matrices with changed scores, within its tolerance

Docs/tolerances.md, sections 1 to 5 together, from the products of queries and keys to the quotient
and the log-sum-exp: masks, softcap, numbers that are added, and a sink. Dropout is in
`DroppedMatrices.lean`. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {q_len kv_len d d_v : Nat}
variable {p : Precision R} {f : ScoreFormats R} {additions : Nat} {scale σ₁ σ₂ σ : R}
variable {changes : ScoreChanges R q_len kv_len} {whole : Bool} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
variable {t : Fin d_v} {cols : List (Option (Fin kv_len))} {computed used : Option (Fin kv_len) → R}

/-! ## The row that the tolerance sees -/

/-- The tolerance sees the changed score of each column of the row. -/
theorem changedKey_score {col : Option (Fin kv_len)} (hcol : col ∈ cols) :
    (changedKey p f additions changes whole scale mask Q K V i t
      (rowMax (cols.map (changes.score scale mask Q K i))) col).score
        = changes.score scale mask Q K i col := by
  have hle := le_rowMax (List.mem_map_of_mem (f := changes.score scale mask Q K i) hcol)
  simp only [changedKey]
  generalize rowMax (cols.map (changes.score scale mask Q K i)) = m at *
  generalize changes.score scale mask Q K i col = s at *
  cases s <;> cases m <;> first | rfl | cases hle

/-- The tolerance sees the changed scores. -/
theorem changedKeys_score :
    (changedKeys p f additions changes whole scale mask Q K V i t cols).map (·.score)
      = cols.map (changes.score scale mask Q K i) := by
  rw [changedKeys, List.map_map]
  exact List.map_congr_left fun col hcol => changedKey_score hcol

theorem changedKey_value {m : Option R} {col : Option (Fin kv_len)} :
    (changedKey p f additions changes whole scale mask Q K V i t m col).value
      = columnValue V t col := by
  simp only [changedKey]
  generalize changes.score scale mask Q K i col = s
  cases s <;> cases m <;> rfl

/-- The tolerance sees the keys that the function computed. -/
theorem computedChangedKeys_toBoundedKey :
    (computedChangedKeys p f additions changes whole scale mask Q K V i t cols computed
        (columnValue V t)).map (·.toBoundedKey)
      = changedKeys p f additions changes whole scale mask Q K V i t cols := by
  simp only [computedChangedKeys, changedKeys, List.map_map]
  refine List.map_congr_left fun col _ => ?_
  simp only [Function.comp_apply, ← changedKey_value (p := p) (f := f) (additions := additions)
    (changes := changes) (whole := whole) (scale := scale) (mask := mask) (Q := Q) (K := K)
    (V := V) (i := i) (t := t) (m := rowMax (cols.map (changes.score scale mask Q K i)))]

/-- The tolerance sees the values of attention, and 0 for the sink. -/
theorem changedKeys_value :
    (changedKeys p f additions changes whole scale mask Q K V i t cols).map (·.value)
      = cols.map (columnValue V t) := by
  rw [changedKeys, List.map_map]
  exact List.map_congr_left fun col _ => changedKey_value

/-- Where nothing changes the scores, it sees what `boundedKeys` has. -/
theorem changedKeys_unchanged {keys : List (Fin kv_len)} :
    changedKeys p f additions ⟨none, none, none⟩ false scale mask Q K V i t (keys.map some)
      = boundedKeys p f additions scale mask Q K V i t keys := by
  simp only [changedKeys, boundedKeys, List.map_map]
  have e : (⟨none, none, none⟩ : ScoreChanges R q_len kv_len).score scale mask Q K i ∘ some
      = score scale mask.toScoreMod Q K i := rfl
  rw [e]
  generalize rowMax (keys.map (score scale mask.toScoreMod Q K i)) = m
  refine List.map_congr_left fun j _ => ?_
  by_cases hm : mask i j <;> cases m <;>
    simp [changedKey, boundedKey, ScoreChanges.score, ScoreChanges.modify, ScoreChanges.error,
      ScoreChanges.pair, changedError, columnValue, score, Mask.toScoreMod, hm]

/-- A score that is not masked is that of the product, changed. -/
theorem changes_score {j : Fin kv_len} {s : R}
    (h : changes.score scale mask Q K i (some j) = some s) :
    mask i j ∧ s = (changes.pair i j).apply (scale * Vec.dot Q[i] K[j]) := by
  obtain ⟨cap, added, sink⟩ := changes
  simp only [ScoreChanges.score, score, ScoreChanges.modify, ScoreChanges.pair,
    ScoreChange.apply] at h ⊢
  by_cases hm : mask i j
  · refine ⟨hm, ?_⟩
    cases cap <;> cases added <;>
      simp only [ScoreMod.andThen, ScoreMod.softcap, ScoreMod.bias, Mask.toScoreMod, hm, ↓reduceIte,
        Option.bind_some, Option.some.injEq, Option.map_eq_some_iff] at h ⊢
    · exact h.symm
    · obtain ⟨a, ha, rfl⟩ := h
      rw [ha]
    · exact h.symm
    · obtain ⟨a, ha, rfl⟩ := h
      rw [ha]
  · cases cap <;> cases added <;>
      simp [ScoreMod.andThen, Mask.toScoreMod, hm] at h

/-! ## The row itself -/

/-- The columns of query `i` with their scores and values. -/
@[expose] def columnsScored (changes : ScoreChanges R q_len kv_len) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) (cols : List (Option (Fin kv_len))) :
    List (ScoredValue R R d_v) :=
  cols.map fun col => ⟨changes.score scale mask Q K i col, Vec.ofFn fun t => columnValue V t col⟩

/-- Attention is that of the columns, in any order. -/
theorem attend_columns (hcols : cols.Perm changes.columns) :
    attend (columnsScored changes scale mask Q K V i cols)
      = (changes.attention scale mask Q K V)[i] := by
  have h : (columnsScored changes scale mask Q K V i cols).Perm
      (columnsScored changes scale mask Q K V i changes.columns) := hcols.map _
  have e : ∀ j : Fin kv_len, (Vec.ofFn fun t => columnValue V t (some j)) = V[j] := fun j =>
    Vector.ext fun c hc => by simp [columnValue, Vec.getElem_ofFn]
  have e₀ : (Vec.ofFn fun t => columnValue V t none : Vec R d_v) = Vec.zero :=
    Vector.ext fun c hc => by simp [columnValue, Vec.getElem_ofFn, Vec.zero]
  rw [attend_perm h]
  obtain ⟨cap, added, sink⟩ := changes
  cases sink with
  | none =>
    simp only [ScoreChanges.attention, attention, Fin.getElem_fin, Vec.getElem_ofFn]
    simp only [columnsScored, ScoreChanges.columns, List.map_map, scored]
    congr 1
    refine List.map_congr_left fun j _ => ?_
    simp only [Function.comp_apply, e]
    rfl
  | some sink =>
    simp only [ScoreChanges.attention, attentionSink, Fin.getElem_fin, Vec.getElem_ofFn, withSink]
    simp only [columnsScored, ScoreChanges.columns, List.map_map, List.map_cons, scored, e₀]
    congr 1
    congr 1
    refine List.map_congr_left fun j _ => ?_
    simp only [Function.comp_apply, e]
    rfl

/-- The tolerance sees the scores and values of which the row is the attention. -/
theorem changedKeys_same :
    (changedKeys p f additions changes whole scale mask Q K V i t cols).map
        (fun k => (k.score, k.value))
      = (columnsScored changes scale mask Q K V i cols).map (fun k => (k.score, k.value[t])) := by
  rw [← List.zip_map', changedKeys_score, changedKeys_value, List.zip_map', columnsScored,
    List.map_map]
  refine List.map_congr_left fun col _ => ?_
  simp [Vec.getElem_ofFn]

/-- And so does the function. -/
theorem computedChangedKeys_same :
    (computedChangedKeys p f additions changes whole scale mask Q K V i t cols computed
        (columnValue V t)).map (fun k => (k.score, k.value))
      = (columnsScored changes scale mask Q K V i cols).map (fun k => (k.score, k.value[t])) := by
  rw [← changedKeys_same (p := p) (f := f) (additions := additions) (whole := whole),
    ← computedChangedKeys_toBoundedKey (computed := computed), List.map_map]
  rfl

/-! ## Errors of the scores -/

/-- The computed scores of a row are the exact ones, but for a constant of the row and the error
that the tolerance has of each; the constant is 0 where errors count in full. -/
theorem computedChangedKeys_error
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    (scores : ComputedScores p f additions σ₁ σ₂ σ changes scale mask Q K i computed) :
    ∃ c, (whole → c = 0) ∧
      ∀ key ∈ computedChangedKeys p f additions changes whole scale mask Q K V i t cols computed
        used,
        ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c)) := by
  cases hm : rowMax (cols.map (changes.score scale mask Q K i)) with
  | none =>
    refine ⟨0, fun _ => rfl, fun key hkey s hs => ?_⟩
    obtain ⟨col, hcol, rfl⟩ := List.mem_map.mp hkey
    rw [changedKey_score hcol,
      rowMax_eq_none.mp hm _ (List.mem_map_of_mem (f := changes.score scale mask Q K i) hcol)] at hs
    cases hs
  | some m =>
    -- The error of each column, whatever the constant is.
    have column : ∀ c, (∀ j, some j ∈ cols → ∀ s, changes.score scale mask Q K i (some j) = some s →
          AtMost (changes.error p f additions whole scale Q K i m (some j))
            (computed (some j) - (s + c))) →
        (changes.sink ≠ none → c = 0) →
        ∀ key ∈ computedChangedKeys p f additions changes whole scale mask Q K V i t cols computed
        used,
          ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c)) := by
      intro c keys sinks key hkey s hs
      obtain ⟨col, hcol, rfl⟩ := List.mem_map.mp hkey
      rw [changedKey_score hcol] at hs
      simp only [changedKey, hm, hs]
      cases col with
      | none =>
        simp only [ScoreChanges.score] at hs
        have h := rounded_sink (scores.1 s hs)
        rw [sinks (by simp [hs])]
        simp only [ScoreChanges.error, hs]
        rwa [show s + 0 = s by grind]
      | some j => exact keys j hcol s hs
    by_cases hchanged : whole = false ∧ changes.cap = none ∧ changes.added = none ∧
        changes.sink = none
    · obtain ⟨cap, added, sink⟩ := changes
      obtain ⟨rfl, rfl, rfl, rfl⟩ := hchanged
      obtain ⟨c, -, h⟩ := rounded_scores hp hu hf hd hσ m
      refine ⟨c, nofun, column c (fun j hcol s hs => ?_) fun h => absurd rfl h⟩
      obtain ⟨x, hx, z, hz, hy⟩ := scores.2 j (by simp [hs])
      have hle := le_rowMax (List.mem_map_of_mem
        (f := ScoreChanges.score ⟨none, none, none⟩ scale mask Q K i) hcol)
      rw [hs, hm] at hle
      obtain ⟨-, rfl⟩ := changes_score hs
      rw [show computed (some j) = z from hy, hz]
      have hle : scale * Vec.dot Q[i] K[j] ≤ m := hle
      exact h d Q[i] K[j] _ _ ⟨by grind, by grind⟩ hx
    · refine ⟨0, fun _ => rfl, column 0 (fun j _ s hs => ?_) fun _ => rfl⟩
      obtain ⟨x, hx, hy⟩ := scores.2 j (by simp [hs])
      obtain ⟨hv, rfl⟩ := changes_score hs
      have h := rounded_changed_score archimedean hp hu hu' hf hf₀ hf₁ hd hσ
        (change := changes.pair i j) hcap hx hy
      rw [show (changes.pair i j).apply (scale * Vec.dot Q[i] K[j]) + 0
        = (changes.pair i j).apply (scale * Vec.dot Q[i] K[j]) by grind]
      obtain ⟨cap, added, sink⟩ := changes
      cases whole <;> cases cap <;> cases added <;> cases sink <;>
        first | exact h | simp at hchanged

/-! ## Outputs and log-sum-exps -/

/-- A result that is stored, where it is within a tolerance before. -/
theorem stored_within {row : List (ScoredValue R R d_v)} {t : Nat} (ht : t < d_v)
    {keys : List (BoundedKey R)}
    (same : keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[t])))
    (unmasked : ∃ key ∈ keys, key.score ≠ none) {roundings rescalings : Nat}
    {negligible o o' u η : R}
    (h : AtMost (tolerance p roundings rescalings negligible keys) (o - (attend row)[t]))
    (stored : StoredNear u η o o') :
    AtMost (storedTolerance p u η roundings rescalings negligible keys) (o' - (attend row)[t]) := by
  rw [storedTolerance, exactOutput_eq_attend ht same unmasked p rescalings]
  obtain ⟨_, ⟨θ, hθ, rfl⟩, hη⟩ := stored
  have h₁ := (h.add (hθ.mul ((atMost_absolute (attend row)[t]).add h))).add hη
  have e : o - (attend row)[t] + θ * ((attend row)[t] + (o - (attend row)[t]))
      + (o' - o * (1 + θ)) = o' - (attend row)[t] := by grind
  rwa [e] at h₁

/-- **rounded-changed-matrices**: a function that rounds, of all keys and a sink in any order, is
within the tolerance of attention, its result stored in a format of its own: it computes each score
as `rounded_attention_matrices` has it, changes it by softcap and by a number that is added, has the
sink as one more key of value 0, and computes the rest as `Run` may. -/
theorem rounded_changed_matrices
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    (scores : ComputedScores p f additions σ₁ σ₂ σ changes scale mask Q K i computed)
    {m : R} {part : Part R} (run : Run p m part)
    (keys : part.keys = computedChangedKeys p f additions changes false scale mask Q K V i t cols
      computed (columnValue V t))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
      (changedKeys p f additions changes false scale mask Q K V i t cols)) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) 
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (storedTolerance p u η roundings rescalings negligible
        (changedKeys p f additions changes false scale mask Q K V i t cols))
      (o' - (changes.attention scale mask Q K V)[i][t]) := by
  obtain ⟨c, -, close⟩ := computedChangedKeys_error (V := V) (t := t) (cols := cols)
    (whole := false) (used := columnValue V t) archimedean hp hu hu' hf hf₀ hf₁ hd hσ hcap scores
  rw [← keys] at close
  rw [← attend_columns hcols]
  have := rounded_output hp run t.isLt (row := columnsScored changes scale mask Q K V i cols)
    (by rw [keys]; exact computedChangedKeys_same) attained close hr ha
    (by rwa [keys, computedChangedKeys_toBoundedKey]) hN hD result stored negligible
  rwa [keys, computedChangedKeys_toBoundedKey] at this

/-- **rounded-lse-matrices**: so is the log-sum-exp that such a function writes, of all that the
query sees and the sink. -/
theorem rounded_logSumExp_matrices
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    (scores : ComputedScores p f additions σ₁ σ₂ σ changes scale mask Q K i computed)
    {m : R} {part : Part R} (run : Run p m part)
    (keys : part.keys = computedChangedKeys p f additions changes true scale mask Q K V i t cols
      computed (columnValue V t))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (hg : denominatorError p roundings rescalings (boundedWeights p rescalings
      (changedKeys p f additions changes true scale mask Q K V i t cols)) < 1)
    (h4 : numeral 4 * p.unit < 1) {L E M : R}
    (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : logSumExpFactor p roundings rescalings
      (changedKeys p f additions changes true scale mask Q K V i t cols) ≤ exp E)
    {L' : R} (result : ComputedLogSumExp p.unit m part.l L') :
    AtMost (logSumExpTolerance p E (L - M) M (largestError
        (changedKeys p f additions changes true scale mask Q K V i t cols)))
      (L' - L) := by
  obtain ⟨c, hc, close⟩ := computedChangedKeys_error (V := V) (t := t) (cols := cols)
    (whole := true) (used := columnValue V t) archimedean hp hu hu' hf hf₀ hf₁ hd hσ hcap scores
  obtain rfl := hc rfl
  rw [← keys] at close
  have e : part.keys.map (·.toBoundedKey)
      = changedKeys p f additions changes true scale mask Q K V i t cols := by
    rw [keys, computedChangedKeys_toBoundedKey]
  have e' : part.keys.map (·.score) = cols.map (changes.score scale mask Q K i) := by
    rw [← changedKeys_score (p := p) (f := f) (additions := additions) (whole := true) (V := V)
      (t := t), ← e, List.map_map]
    rfl
  have := rounded_logSumExp hp run attained (fun key hk s hs => by
      have := close key hk s hs
      rwa [show s + 0 = s by grind] at this) hr ha hD (by rwa [e]) h4 (by rwa [e']) (by rwa [e'])
    (by rwa [e]) result
  rwa [e] at this

/-- A query that sees no key gets a numerator of exactly 0, with a sink as without and with dropout
as without; and its output is 0 in attention. -/
theorem rounded_changed_masked {m : R} {part : Part R} (run : Run p m part)
    (hcols : cols.Perm changes.columns) {used : Option (Fin kv_len) → R} (sink : used none = 0)
    (keys : part.keys = computedChangedKeys p f additions changes whole scale mask Q K V i t cols
      computed used)
    (masked : ∀ j, changes.score scale mask Q K i (some j) = none) :
    part.o = 0 ∧ (changes.attention scale mask Q K V)[i][t] = 0 := by
  refine ⟨run_valueless run fun key hkey hs => ?_, ?_⟩
  · rw [keys] at hkey
    obtain ⟨col, hcol, rfl⟩ := List.mem_map.mp hkey
    cases col with
    | none => exact sink
    | some j => exact absurd ((changedKey_score hcol).trans (masked j)) hs
  · rw [← attend_columns hcols]
    simp only [Fin.getElem_fin]
    rw [getElem_attend, numerator, sumOver_eq_zero fun key hkey => ?_, Field.div_eq_mul_inv,
      Semiring.zero_mul]
    obtain ⟨col, -, rfl⟩ := List.mem_map.mp hkey
    cases col with
    | none => simp [columnValue, Vec.getElem_ofFn, Semiring.mul_zero]
    | some j => simp [masked j, weight, Semiring.zero_mul]

end Attention.Proof
