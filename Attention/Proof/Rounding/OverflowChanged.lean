module

public import Attention.Proof.Rounding.ChangedMatrices
public import Attention.Proof.Rounding.Format
public import Attention.Proof.Rounding.OverflowChanges
public import Attention.Proof.Rounding.OverflowRun

public section

/-! # Attention with changed scores that overflows nowhere, from matrices to the tolerance -/

namespace Attention.Proof

open Spec Model Overflow Lean.Grind

universe u

attribute [local instance] Ring.intCast Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {q_len kv_len d d_v : Nat}
variable {p : Precision R} {f : ScoreFormats R} {largest : Largest R}
variable {additions roundings rescalings : Nat} {scale σ₁ σ₂ σ : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
variable {t : Fin d_v} {cols : List (Option (Fin kv_len))}
variable {computed : Option (Fin kv_len) → Option R}

/-- A column has a score if the query sees it, whatever the scores are. -/
theorem changed_sees_iff {col : Option (Fin kv_len)} :
    changes.sees mask i col = true ↔ changes.score scale mask Q K i col ≠ none := by
  obtain ⟨cap, added, sink⟩ := changes
  cases col with
  | none => simp [ScoreChanges.sees, ScoreChanges.score, Option.isSome_iff_ne_none]
  | some j =>
    simp only [ScoreChanges.score, Spec.score, ScoreChanges.modify, ScoreChanges.sees]
    by_cases hm : mask i j
    · cases cap <;> cases added <;>
        simp [ScoreMod.andThen, ScoreMod.softcap, ScoreMod.bias, Mask.toScoreMod, hm,
          Option.isSome_iff_ne_none]
    · cases cap <;> cases added <;> simp [ScoreMod.andThen, Mask.toScoreMod, hm]

omit [OrderedField R] [NaturalExp R] in
/-- A column that is seen is one of the row's. -/
theorem mem_columns {col : Option (Fin kv_len)} (h : changes.sees mask i col = true) :
    col ∈ changes.columns := by
  obtain ⟨cap, added, sink⟩ := changes
  cases col with
  | none =>
    cases sink with
    | none => simp [ScoreChanges.sees] at h
    | some sink => simp [ScoreChanges.columns]
  | some j => cases sink <;> simp [ScoreChanges.columns]

omit [NaturalExp R] in
/-- The size of the score of a column that is seen is no larger than the row's. -/
private theorem size_le_rowSize {col : Option (Fin kv_len)}
    (h : changes.sees mask i col = true) :
    changes.size p f additions σ₁ σ₂ σ Q K i col
      ≤ changes.rowSize p f additions σ₁ σ₂ σ mask Q K i := by
  have k := (le_foldl (b := 0) (f := fun x col : _ => max x (if changes.sees mask i col
    then changes.size p f additions σ₁ σ₂ σ Q K i col else 0)) (fun x col => (le_max _ _).1)
    changes.columns).2
    (fun col => if changes.sees mask i col
      then changes.size p f additions σ₁ σ₂ σ Q K i col else 0)
    (fun x col => (le_max _ _).2) col (mem_columns h)
  simp only [h, if_true] at k
  exact k

/-- A column that is seen and whose numbers fit. -/
private theorem limited_column (hp : Precise p) (hf : PreciseFormats f) (hf' : 0 ≤ f.scores)
    (hf'' : 0 ≤ f.scoresTiny) (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    (scores : LimitedScores p f largest additions σ₁ σ₂ σ changes mask Q K i computed)
    {col : Option (Fin kv_len)} (seen : changes.sees mask i col = true)
    (fits : changes.fits p f largest additions σ₁ σ₂ σ Q K i col) :
    ∃ s, computed col = some s ∧ AtMost (changes.size p f additions σ₁ σ₂ σ Q K i col) s ∧
      (∀ sink, col = none → changes.sink = some sink → RoundedTimes p.unit 2 sink s) ∧
      ∀ j, col = some j → ∃ x, ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] x ∧
        ComputedChange p f (changes.pair i j) x s := by
  cases col with
  | none =>
    cases hs : changes.sink with
    | none => simp [ScoreChanges.sees, hs] at seen
    | some sink =>
      simp only [ScoreChanges.fits, hs, decide_eq_true_eq, sinkSize, power_eq] at fits
      obtain ⟨s, e, h₁, h₂⟩ := limitedTimes hp.unit (scores.1 sink hs) (atMost_absolute sink) fits
      refine ⟨s, e, ?_, fun sink' _ e' => ?_, nofun⟩
      · simpa only [ScoreChanges.size, hs, sinkSize, power_eq] using h₂
      · obtain rfl := Option.some.inj e'
        exact h₁
  | some j =>
    simp only [ScoreChanges.fits, Bool.and_eq_true] at fits
    obtain ⟨x, hx, hy⟩ := scores.2 j seen
    obtain ⟨x', rfl, h₁, h₂⟩ := limitedScore hp hf hf' hf'' fits.1 hx
    obtain ⟨s, e, h₃, h₄⟩ := limitedChange hp.unit hf' hf'' (change := changes.pair i j) hcap
      fits.2 h₂ (hy x' rfl)
    refine ⟨s, e, h₄, nofun, fun j' e' => ?_⟩
    obtain rfl := Option.some.inj e'
    exact ⟨x', h₁, h₃⟩

/-- **row-finite**: where a row fits, every changed score and that of the sink are numbers, and ones
that a function without a largest number may compute; and so are the parts of the row, its
denominator, which is positive, and its quotient, whatever values of no larger size the function
uses. -/
theorem limitedRow (hp : Precise p) (hu : p.unit ≤ p.accumulation) (ha : p.accumulation < 1)
    (hstored : p.stored < 1) (htiny : p.storedTiny < 1 - p.exponential) (hf : PreciseFormats f)
    (hf' : 0 ≤ f.scores) (hf'' : 0 ≤ f.scoresTiny)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {value : Option (Fin kv_len) → R}
    (fits : changes.rowFits p f largest additions roundings rescalings σ₁ σ₂ σ mask Q K i value)
    (scores : LimitedScores p f largest additions σ₁ σ₂ σ changes mask Q K i computed) :
    (∀ col, changes.sees mask i col → ∃ s, computed col = some s ∧
      AtMost (changes.rowSize p f additions σ₁ σ₂ σ mask Q K i) s) ∧
      ComputedScores p f additions σ₁ σ₂ σ changes scale mask Q K i
        (fun col => (computed col).getD 0) ∧
      ∀ {used : Option (Fin kv_len) → R},
        (∀ col, changes.sees mask i col → AtMost (absolute (value col)) (used col)) →
        cols.Perm changes.columns → ∀ {whole : Bool} {m : R} {part : LimitedPart R},
        LimitedRun p largest (changes.rowSize p f additions σ₁ σ₂ σ mask Q K i) m part →
        part.keys = computedChangedKeys p f additions changes whole scale mask Q K V i t cols
          (fun col => (computed col).getD 0) used →
        (∃ col, changes.sees mask i col ∧ computed col = some m) →
        part.rescalings ≤ rescalings → part.additions + part.rescalings ≤ roundings →
        ∃ l o, part.l = some l ∧ part.o = some o ∧
          Run p m ⟨part.keys, l, o, part.additions, part.rescalings⟩ ∧
          (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) ∧ 0 < l ∧
          l ≤ denominatorSize p roundings rescalings (changes.boundedColumns mask i value) ∧
          ∀ y, LimitedQuotient p largest part y →
            ∃ z, y = some z ∧ RoundedTimes p.accumulation 5 (o / l) z ∧
              AtMost largest.output z := by
  simp only [ScoreChanges.rowFits, Bool.and_eq_true, List.all_eq_true, Bool.or_eq_true,
    Bool.not_eq_true'] at fits
  obtain ⟨fits₁, fits₂⟩ := fits
  have number := fun col (h : changes.sees mask i col = true) =>
    limited_column hp hf hf' hf'' hcap scores h (by
      rcases fits₁ col (mem_columns h) with h' | h'
      · rw [h] at h'
        cases h'
      · exact h')
  refine ⟨fun col h => ?_, ⟨fun sink hs => ?_, fun j hj => ?_⟩,
    fun {used} small hcols {whole m part} run keys attained hr hd => ?_⟩
  · obtain ⟨s, e, h', -⟩ := number col h
    exact ⟨s, e, h'.mono (size_le_rowSize h)⟩
  · obtain ⟨s, e, -, h, -⟩ := number none (by simp [ScoreChanges.sees, hs])
    simp only [e, Option.getD_some]
    exact ⟨s, h sink rfl hs, by rw [show s - s = 0 by grind]; exact .zero hf''⟩
  · obtain ⟨s, e, -, -, h⟩ := number (some j) (changed_sees_iff.mpr hj)
    simp only [e, Option.getD_some]
    exact h j rfl
  have score : ∀ col ∈ cols, (changedKey p f additions changes whole scale mask Q K V i t
      (rowMax (cols.map (changes.score scale mask Q K i))) col).score
        = changes.score scale mask Q K i col := fun col h => changedKey_score h
  have bounded : part.keys.map (·.toBoundedKey) = cols.map fun col =>
      { changedKey p f additions changes whole scale mask Q K V i t
          (rowMax (cols.map (changes.score scale mask Q K i))) col with value := used col } := by
    rw [keys, computedChangedKeys, List.map_map]
    rfl
  have same : ∀ col ∈ cols, ({ changedKey p f additions changes whole scale mask Q K V i t
      (rowMax (cols.map (changes.score scale mask Q K i))) col with
        value := used col } : BoundedKey R).score = none ↔
      (⟨if changes.sees mask i col then some 0 else none, 0, value col⟩ : BoundedKey R).score
        = none := fun col h => by
    simp only [score col h]
    have := changed_sees_iff (changes := changes) (scale := scale) (mask := mask) (Q := Q) (K := K)
      (i := i) (col := col)
    cases e : changes.sees mask i col <;> simp_all
  have fits₃ : sumsFit p largest roundings rescalings
      (changes.rowSize p f additions σ₁ σ₂ σ mask Q K i) (part.keys.map (·.toBoundedKey)) := by
    rw [bounded]
    refine sumsFit_mono hcols same (fun col h hs => ?_) hp ha fits₂
    refine absolute_le (small col ?_)
    cases e : changes.sees mask i col
    · simp [e] at hs
    · rfl
  have rowSize_eq : denominatorSize p roundings rescalings (part.keys.map (·.toBoundedKey))
      = denominatorSize p roundings rescalings (changes.boundedColumns mask i value) := by
    rw [bounded]
    exact denominatorSize_eq hcols same p roundings rescalings
  have seen : ∀ key ∈ part.keys, key.score ≠ none →
      ∃ col, changes.sees mask i col ∧ key.computed = (computed col).getD 0 := fun key hk hs => by
    rw [keys] at hk
    obtain ⟨col, hcol, rfl⟩ := List.mem_map.mp hk
    refine ⟨col, ?_, rfl⟩
    simp only [score col hcol] at hs
    exact changed_sees_iff.mpr hs
  have attained' : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m := by
    obtain ⟨col, hs, e⟩ := attained
    have hcol := hcols.mem_iff.mpr (mem_columns hs)
    refine ⟨_, by rw [keys]; exact List.mem_map_of_mem hcol, ?_, ?_⟩
    · simp only [score col hcol]
      exact changed_sees_iff.mp hs
    · simp only [e, Option.getD_some]
  obtain ⟨l, o, h₁, h₂, h₃, h₄, h₅, h₆⟩ := limitedRun hp hu ha hstored htiny run hr hd fits₃
    (fun key hk hs => by
      obtain ⟨col, h, e⟩ := seen key hk hs
      obtain ⟨s, e', h', -⟩ := number col h
      rw [e, e']
      exact h'.mono (size_le_rowSize h)) attained'
  rw [rowSize_eq] at h₅
  exact ⟨l, o, h₁, h₂, h₃, attained', h₄, h₅, h₆⟩

/-- **changed-overflow-excluded**: of inputs that fit, every score that is changed by softcap and by
a number that is added is a number where its key is seen, and so is that of a sink; and for a query
that sees a column, what a function with a largest number computes of them is a number, rounded to
one of its format and not to infinity, and within the tolerance of a function that has no largest
number. -/
theorem limited_changed_matrices {floor : R → Int} (hfloor : IsFloor floor) (format : Format)
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hstored : p.stored < 1)
    (htiny : p.storedTiny < 1 - p.exponential) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hf₂ : 0 ≤ f.scoresTiny)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    (fits : changes.outputFits p f largest additions roundings rescalings σ₁ σ₂ σ mask Q K V i t)
    (hformat : 0 < format.precision ∧ format.least + format.precision ≤ format.top ∧
      largest.output ≤ format.largest R)
    (scores : LimitedScores p f largest additions σ₁ σ₂ σ changes mask Q K i computed)
    (hN : numeral (roundings + 6) * p.accumulation < 1)
    (hD : 2 * numeral roundings * p.unit < 1) (negligible : R) :
    (∀ col, changes.sees mask i col → computed col ≠ none) ∧
      ∀ {m : R} {part : LimitedPart R},
        LimitedRun p largest (changes.rowSize p f additions σ₁ σ₂ σ mask Q K i) m part →
        part.keys = computedChangedKeys p f additions changes false scale mask Q K V i t cols
          (fun col => (computed col).getD 0) (columnValue V t) →
        (∃ col, changes.sees mask i col ∧ computed col = some m) → part.rescalings ≤ rescalings →
        part.additions + part.rescalings ≤ roundings →
        (p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
          (changedKeys p f additions changes false scale mask Q K V i t cols)) ≤ 1) →
        ∀ {o : Option R}, LimitedQuotient p largest part o →
          ∃ y, o = some y ∧ ¬ format.Overflows floor y ∧
            AtMost (storedTolerance p ((2 : R) ^ (-(format.precision : Int)))
                ((2 : R) ^ (format.least - 1)) roundings rescalings negligible
                (changedKeys p f additions changes false scale mask Q K V i t cols))
              (format.round floor y - (changes.attention scale mask Q K V)[i][t]) := by
  have small : p.accumulation < 1 := by
    have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (roundings + 5)) hp.accumulation
    rw [numeral_succ] at hN
    grind
  obtain ⟨h₁, h₂, h₃⟩ := limitedRow (scale := scale) (V := V) (t := t) (cols := cols) hp hu small
    hstored htiny hf hf₀ hf₂ hcap fits scores
  refine ⟨fun col h e => ?_, fun {m part} run keys attained hr ha third o quotient => ?_⟩
  · obtain ⟨s, e', -⟩ := h₁ col h
    rw [e] at e'
    cases e'
  obtain ⟨l, o', -, -, h₄, h₅, -, -, h₆⟩ := h₃ (fun col _ => atMost_absolute _) hcols run keys
    attained hr ha
  obtain ⟨y, rfl, h₇, h₈⟩ := h₆ o quotient
  refine ⟨y, rfl, not_overflows hfloor hformat.1 hformat.2.1
    (Std.le_trans (absolute_le h₈) hformat.2.2), ?_⟩
  exact rounded_changed_matrices archimedean hp hu hu' hf hf₀ hf₁ hd hσ hcap hcols h₂ h₄ keys h₅
    hr ha third hN hD h₇ (round_storedNear hfloor y) negligible

end Attention.Proof
