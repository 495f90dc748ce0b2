module

public import Attention.Proof.Dropout.Basic
public import Attention.Proof.Rounding.ChangedMatrices
public import Attention.Proof.Rounding.Dropout

public section

/-! # Attention of matrices with dropout, within its tolerance

Docs/tolerances.md, "Dropout", from the products of queries and keys to the stored result, with
changed scores. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {q_len kv_len d d_v : Nat}
variable {p : Precision R} {f : ScoreFormats R} {additions : Nat} {scale σ₁ σ₂ σ : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
variable {t : Fin d_v} {cols : List (Option (Fin kv_len))} {computed used : Option (Fin kv_len) → R}

omit [NaturalExp R] in
private theorem columnValue_dropped {Z : WeightFactor R q_len kv_len}
    {z : Option (Fin kv_len) → R} (hz : ∀ j, z (some j) = Z i j) (col : Option (Fin kv_len)) :
    columnValue (droppedValues V Z i) t col = z col * columnValue V t col := by
  cases col with
  | none => simp only [columnValue, Semiring.mul_zero]
  | some j => simp [columnValue, droppedValues, hz, Vec.getElem_ofFn, Vec.getElem_smul]

/-- Without a sink it is the attention with dropout of the Spec. -/
theorem attentionDropout_changes {Z : WeightFactor R q_len kv_len} (hsink : changes.sink = none) :
    changes.attentionDropout scale mask Q K V Z
      = Spec.attentionDropout scale (changes.modify mask) Q K V Z := by
  refine Vector.ext fun i hi => ?_
  have h := attend_scoredDropout scale (changes.modify mask) Q K V Z ⟨i, hi⟩
  simp only [Fin.getElem_fin] at h
  rw [← h]
  simp only [ScoreChanges.attentionDropout, ScoreChanges.attention, hsink, attention,
    Fin.getElem_fin, Vec.getElem_ofFn]
  congr 1
  simp only [scored, scoredDropout, dropKey]
  refine List.map_congr_left fun j _ => ?_
  simp [droppedValues, Vec.getElem_ofFn]

/-- The columns of a query as a row with dropout has them: with the values that its tolerance sees,
and the numbers that the function multiplies weights by, of which `P` says what it may compute. -/
theorem exists_droppedKeys {q z : R} (hz : 0 ≤ z) {keep : Mask q_len kv_len}
    {P : Bool → R → R → Prop} (dropped : P false 0 0) (sink : used none = 0)
    (factors : ∀ j, dropoutFactor q (keep i j) ≤ z ∧ P (keep i j) V[j][t] (used (some j))) :
    ∃ keys : List (DroppedKey R),
      (∀ k ∈ keys, dropoutFactor q k.keep ≤ z ∧ P k.keep k.value k.used) ∧
      computedChangedKeys p f additions changes false scale mask Q K V i t cols computed used
        = keys.map (fun k => { k.toComputedKey with value := k.used }) ∧
      keys.map (fun k => (⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩ : BoundedKey R))
        = changedKeys p f additions changes false scale mask Q K
            (droppedValues V (.dropout q keep) i) i t cols ∧
      keys.map (fun k => (k.score, dropoutFactor q k.keep * k.value))
        = (columnsScored changes scale mask Q K (droppedValues V (.dropout q keep) i) i cols).map
            (fun k => (k.score, k.value[t])) := by
  let kept : Option (Fin kv_len) → Bool := fun col => match col with
    | none => false
    | some j => keep i j
  let mx := rowMax (cols.map (changes.score scale mask Q K i))
  let key : Option (Fin kv_len) → DroppedKey R := fun col =>
    { changedKey p f additions changes false scale mask Q K V i t mx col with
      computed := computed col
      keep := kept col
      used := used col }
  have hvalue : ∀ col, dropoutFactor q (kept col) * columnValue V t col
      = columnValue (droppedValues V (.dropout q keep) i) t col := fun col =>
    (columnValue_dropped (Z := .dropout q keep) (z := fun col => dropoutFactor q (kept col))
      (fun j => rfl) col).symm
  have hkey : ∀ col, (key col).value = columnValue V t col := fun col => changedKey_value
  have hbounded : (cols.map key).map
        (fun k => (⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩ : BoundedKey R))
      = changedKeys p f additions changes false scale mask Q K
          (droppedValues V (.dropout q keep) i) i t cols := by
    rw [List.map_map, changedKeys]
    refine List.map_congr_left fun col _ => ?_
    show (⟨(key col).score, (key col).error, dropoutFactor q (kept col) * (key col).value⟩ :
      BoundedKey R) = changedKey p f additions changes false scale mask Q K
        (droppedValues V (.dropout q keep) i) i t mx col
    rw [hkey, hvalue]
    simp only [key, changedKey]
    generalize changes.score scale mask Q K i col = s
    generalize mx = mx
    cases s <;> cases mx <;> rfl
  have hrow : (cols.map key).map (fun k => (k.score, dropoutFactor q k.keep * k.value))
      = (columnsScored changes scale mask Q K (droppedValues V (.dropout q keep) i) i cols).map
        (fun k => (k.score, k.value[t])) := by
    rw [← changedKeys_same (p := p) (f := f) (additions := additions) (whole := false),
      ← hbounded, List.map_map]
    simp only [List.map_map]
    rfl
  refine ⟨cols.map key, fun k hk => ?_, ?_, hbounded, hrow⟩
  · obtain ⟨col, -, rfl⟩ := List.mem_map.mp hk
    rw [hkey]
    cases col with
    | none =>
      show dropoutFactor q false ≤ z ∧ P false 0 (used none)
      rw [sink]
      exact ⟨hz, dropped⟩
    | some j => exact factors j
  · rw [List.map_map]
    rfl

/-- The output with dropout is that of the columns. -/
theorem attend_dropped {Z : WeightFactor R q_len kv_len} (hcols : cols.Perm changes.columns) :
    (changes.attentionDropout scale mask Q K V Z)[i][t]
      = (attend (columnsScored changes scale mask Q K (droppedValues V Z i) i cols))[t] := by
  rw [attend_columns hcols]
  simp only [ScoreChanges.attentionDropout, Fin.getElem_fin, Vec.getElem_ofFn]

/-- **rounded-dropout-matrices**: so is the output with dropout, of the factors as the function
computes them, which it multiplies weights by where they meet their values; the sink's value is 0
all the same. -/
theorem rounded_dropout_matrices
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    (scores : ComputedScores p f additions σ₁ σ₂ σ changes scale mask Q K i computed)
    {q z : R} (hq : 0 ≤ q) (hq₁ : q < 1) (hz : 0 ≤ z) {keep : Mask q_len kv_len}
    {used : Option (Fin kv_len) → R} (sink : used none = 0)
    (factors : ∀ j, dropoutFactor q (keep i j) ≤ z ∧
      ComputedDropout p.accumulation q (keep i j) V[j][t] (used (some j)))
    {m : R} {part : Part R} (run : Run p m part)
    (keys : part.keys = computedChangedKeys p f additions changes false scale mask Q K V i t cols
      computed used)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
      (changedKeys p f additions changes false scale mask Q K
        (droppedValues V (.dropout q keep) i) i t cols)) ≤ 1)
    (hN : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1)
    (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) 
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (storedTolerance (moreRoundings p (roundings + 6) (z + numeral 5)) u η roundings
        rescalings negligible (changedKeys p f additions changes false scale mask Q K
          (droppedValues V (.dropout q keep) i) i t cols))
      (o' - (changes.attentionDropout scale mask Q K V (.dropout q keep))[i][t]) := by
  obtain ⟨c, -, close⟩ := computedChangedKeys_error (V := V) (t := t) (cols := cols)
    (whole := false) (used := used) archimedean hp hu hu' hf hf₀ hf₁ hd hσ hcap scores
  obtain ⟨dropped, hfactors, hpart, hbounded, hrow⟩ := exists_droppedKeys (p := p) (f := f)
    (additions := additions) (changes := changes) (scale := scale) (mask := mask) (Q := Q) (K := K)
    (cols := cols) (computed := computed) (P := ComputedDropout p.accumulation q) hz rfl sink
    factors
  rw [hpart] at keys close
  have attained' : ∃ k ∈ dropped, k.score ≠ none ∧ k.computed = m := by
    rw [keys] at attained
    obtain ⟨_, hk, h⟩ := attained
    obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact ⟨k, hk', h⟩
  have h := rounded_dropout hp run hq hq₁ hz hfactors keys t.isLt hrow attained' (c := c)
    (fun k hk => close { k.toComputedKey with value := k.used }
      (List.mem_map.mpr ⟨k, hk, rfl⟩)) hr ha (by rwa [hbounded]) hN hD result
    negligible
  rw [hbounded] at h
  rw [attend_dropped hcols]
  obtain ⟨k, hk, hs, -⟩ := attained'
  have hk' := List.mem_map_of_mem (f := fun k : DroppedKey R =>
    (⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩ : BoundedKey R)) hk
  rw [hbounded] at hk'
  exact stored_within t.isLt changedKeys_same ⟨_, hk', hs⟩ h stored

end Attention.Proof
