module

public import Attention.Model.UnderflowScores
public import Attention.Proof.Rounding.DroppedMatrices
public import Attention.Proof.Rounding.UnderflowDropout
import Attention.Proof.Rounding.UnderflowScores
import Attention.Proof.Rounding.UnderflowTolerance

public section

/-! # Attention of matrices, within its tolerance where numbers underflow

Docs/tolerances.md, sections 1 to 5 together, from the products of queries and keys to the stored
result, where all products, quotients and exponentials may be below the normal numbers of the
format in which they are computed. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R]

/-- A result that is stored, where it is within a tolerance before. -/
private theorem stored_output [Exponential R R] {p : Precision R} {ν u η x o o' negligible : R}
    {roundings rescalings : Nat} {row : List (BoundedKey R)}
    (h : AtMost (tolerance p roundings rescalings negligible row
      + underflowError p ν roundings rescalings negligible row) (o - x))
    (exact : exactOutput (boundedWeights p rescalings row) = x) (stored : StoredNear u η o o') :
    AtMost (outputTolerance p ν u η roundings rescalings negligible row) (o' - x) := by
  rw [outputTolerance, exact]
  obtain ⟨_, ⟨θ, hθ, rfl⟩, hη⟩ := stored
  have h₁ := (h.add (hθ.mul ((atMost_absolute x).add h))).add hη
  have e : o - x + θ * (x + (o - x)) + (o' - o * (1 + θ)) = o' - x := by grind
  rwa [e] at h₁

/-- `rounded_attention_underflow` of a result that is stored in a format of its own. -/
theorem rounded_output_underflow [Exponential R R] {p : Precision R} {ν m : R} (hp : Precise p)
    (hν : 0 ≤ ν) {μ : R} (hμ : 0 ≤ μ) {part : Part R} (run : TinyRun p ν μ m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
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
    {o : R} (result : TinyTimes p.accumulation ν 5 (part.o / part.l) o)
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (outputTolerance p ν u η roundings rescalings negligible
        (part.keys.map (·.toBoundedKey)))
      (o' - (attend row)[j]) := by
  have h := rounded_attention_underflow hp hν hμ run hνq hj same attained close hr ha third hN hD
    left result negligible
  obtain ⟨top, htop, hscore, -⟩ := attained
  exact stored_output h (exactOutput_eq_attend hj (by rwa [List.map_map])
    ⟨_, List.mem_map_of_mem htop, hscore⟩ p rescalings) stored

variable [NaturalExp R] {q_len kv_len d d_v : Nat}

/-- **tiny-matrices**: a function as in `rounded_changed_matrices`, whose products, quotients and
exponentials may be below the normal numbers of the accumulator, where each is off by `ν` and by no
more than it is, those of the scores too, and whose differences of scores of `ν` at most may be
flushed to 0, is within the tolerance of attention, all in all. -/
theorem tiny_changed_matrices
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) {f : ScoreFormats R}
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) {ν : R} (hν : 0 ≤ ν)
    {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale : R} {changes : ScoreChanges R q_len kv_len}
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {V : Matrix R kv_len d_v} {i : Fin q_len} {t : Fin d_v} {cols : List (Option (Fin kv_len))}
    (hcols : cols.Perm changes.columns) {computed : Option (Fin kv_len) → R}
    (scores : TinyScores p f ν additions changes scale mask Q K i computed)
    {m : R} {part : Part R} (run : TinyRun p ν ν m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    {roundings rescalings : Nat}
    (keys : part.keys = (computedChangedKeys p (changes.formats p f ν additions d scale) additions
      changes false scale mask Q K V i t cols computed (columnValue V t)).map
        (·.flushed ν rescalings))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings) {row : List (BoundedKey R)}
    (hrow : row = (changedKeys p (changes.formats p f ν additions d scale) additions changes false
      scale mask Q K V i t cols).map (·.flushed ν rescalings))
    (third : p.denominator = .rounded →
      3 * storingErrors p rescalings (boundedWeights p rescalings row) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1)
    (hD : 2 * numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row)
    {o : R} (result : TinyTimes p.accumulation ν 5 (part.o / part.l) o)
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (outputTolerance p ν u η roundings rescalings negligible row)
      (o' - (changes.attention scale mask Q K V)[i][t]) := by
  obtain ⟨σ₁, σ₂, σ, hσ, scores⟩ := tiny_scores archimedean hp hu (score_depth hp hf hd) hf₀ hν
    hcap scores
  obtain ⟨c, -, close⟩ := computedChangedKeys_error (p := p)
    (f := changes.formats p f ν additions d scale) (V := V) (t := t) (cols := cols)
    (whole := false) (used := columnValue V t) archimedean hp hu hu' ⟨hf.operands, hf.operandsTiny⟩
    hf₀ hf₁ hd hσ hcap scores
  replace close := flushed_room keys close
  rw [← attend_columns hcols]
  have e : part.keys.map (·.toBoundedKey) = row := by
    rw [keys, flushed_toBoundedKey, computedChangedKeys_toBoundedKey, hrow]
  rw [← e] at third left ⊢
  exact rounded_output_underflow hp hν hν run hνq t.isLt
    (row := columnsScored changes scale mask Q K V i cols)
    (by rw [keys, List.map_map]; exact computedChangedKeys_same) attained close hr ha third hN hD
    left result stored negligible

/-- **tiny-dropout-matrices**: so is the output with dropout, as `rounded_dropout_matrices` has it,
with the further roundings. -/
theorem tiny_dropout_matrices
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) {f : ScoreFormats R}
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) {ν : R} (hν : 0 ≤ ν)
    {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale : R} {changes : ScoreChanges R q_len kv_len}
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {V : Matrix R kv_len d_v} {i : Fin q_len} {t : Fin d_v} {cols : List (Option (Fin kv_len))}
    (hcols : cols.Perm changes.columns) {computed : Option (Fin kv_len) → R}
    (scores : TinyScores p f ν additions changes scale mask Q K i computed)
    {q z : R} (hq : 0 ≤ q) (hq₁ : q < 1) (hz : 0 ≤ z) {keep : Mask q_len kv_len}
    {used : Option (Fin kv_len) → R} (sink : used none = 0)
    (factors : ∀ j, dropoutFactor q (keep i j) ≤ z ∧
      ComputedDropout p.accumulation q (keep i j) V[j][t] (used (some j)))
    {m : R} {part : Part R} (run : TinyRun p ν ν m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    {roundings rescalings : Nat}
    (keys : part.keys = (computedChangedKeys p (changes.formats p f ν additions d scale) additions
      changes false scale mask Q K V i t cols computed used).map (·.flushed ν rescalings))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings) {row : List (BoundedKey R)}
    (hrow : row = (changedKeys p (changes.formats p f ν additions d scale) additions changes false
      scale mask Q K (droppedValues V (.dropout q keep) i) i t cols).map (·.flushed ν rescalings))
    (third : p.denominator = .rounded →
      3 * storingErrors p rescalings (boundedWeights p rescalings row) ≤ 1)
    (hN : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1)
    (hD : 2 * numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row)
    {o : R} (result : TinyTimes p.accumulation ν 5 (part.o / part.l) o)
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (outputTolerance (moreRoundings p (roundings + 6) (z + numeral 5)) ν u η roundings
        rescalings negligible row)
      (o' - (changes.attentionDropout scale mask Q K V (.dropout q keep))[i][t]) := by
  obtain ⟨σ₁, σ₂, σ, hσ, scores⟩ := tiny_scores archimedean hp hu (score_depth hp hf hd) hf₀ hν
    hcap scores
  obtain ⟨c, -, close⟩ := computedChangedKeys_error (p := p)
    (f := changes.formats p f ν additions d scale) (V := V) (t := t) (cols := cols)
    (whole := false) (used := used) archimedean hp hu hu' ⟨hf.operands, hf.operandsTiny⟩
    hf₀ hf₁ hd hσ hcap scores
  obtain ⟨dropped, hfactors, hpart, hbounded, hscored⟩ := exists_droppedKeys (p := p)
    (f := changes.formats p f ν additions d scale) (additions := additions) (changes := changes)
    (scale := scale) (mask := mask) (Q := Q) (K := K) (cols := cols) (computed := computed)
    (P := ComputedDropout p.accumulation q) hz rfl sink factors
  replace close := flushed_room keys close
  rw [hpart] at keys
  rw [← hbounded] at hrow
  -- The same keys, with the errors that have room for differences.
  let flush : DroppedKey R → DroppedKey R := fun k =>
    { k with toComputedKey := k.toComputedKey.flushed ν rescalings }
  replace keys : part.keys = (dropped.map flush).map fun k =>
      { k.toComputedKey with value := k.used } := by
    rw [keys, List.map_map, List.map_map]
    rfl
  replace hrow : row = (dropped.map flush).map fun k =>
      ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩ := by
    rw [hrow, List.map_map, List.map_map]
    rfl
  replace hfactors : ∀ k ∈ dropped.map flush, dropoutFactor q k.keep ≤ z ∧
      ComputedDropout p.accumulation q k.keep k.value k.used := fun k hk => by
    obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact hfactors k hk'
  replace hscored : (dropped.map flush).map
      (fun k => (k.score, dropoutFactor q k.keep * k.value)) = _ := List.map_map.trans hscored
  obtain ⟨dropped, hd⟩ : ∃ keys, keys = dropped.map flush := ⟨_, rfl⟩
  rw [← hd] at keys hrow hfactors hscored
  rw [keys] at close
  have attained' : ∃ k ∈ dropped, k.score ≠ none ∧ k.computed = m := by
    rw [keys] at attained
    obtain ⟨_, hk, h⟩ := attained
    obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact ⟨k, hk', h⟩
  have h := rounded_dropout_underflow hp hν hν run hνq hq hq₁ hz hfactors keys t.isLt hscored
    attained' (c := c) (fun k hk => close { k.toComputedKey with value := k.used }
      (List.mem_map.mpr ⟨k, hk, rfl⟩)) hr ha hrow third hN hD left result negligible
  rw [attend_dropped hcols]
  obtain ⟨k, hk, hs, -⟩ := attained'
  refine stored_output h (exactOutput_eq_attend t.isLt ?_
    ⟨⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩, ?_, hs⟩ _ rescalings) stored
  · rw [hrow, List.map_map]
    exact hscored
  · rw [hrow]
    exact List.mem_map_of_mem hk

end Attention.Proof
