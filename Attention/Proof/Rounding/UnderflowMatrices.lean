module

public import Attention.Model.UnderflowScores
public import Attention.Proof.Rounding.ChangedMatrices
public import Attention.Spec.UnderflowTolerance
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

/-- `rounded_attention_underflow` of a result that is stored in a format of its own. -/
theorem rounded_output_underflow [Exponential R R] {p : Precision R} {ν m : R} (hp : Precise p)
    (hν : 0 ≤ ν) {part : Part R} (run : TinyRun p ν m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
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
  have h := rounded_attention_underflow hp hν run hνq hj same attained close hr ha third hN hD left
    result negligible
  obtain ⟨top, htop, hscore, -⟩ := attained
  rw [outputTolerance, exactOutput_eq_attend hj (by rwa [List.map_map])
    ⟨_, List.mem_map_of_mem htop, hscore⟩ p rescalings]
  obtain ⟨_, ⟨θ, hθ, rfl⟩, hη⟩ := stored
  have h₁ := (h.add (hθ.mul ((atMost_absolute (attend row)[j]).add h))).add hη
  have e : o - (attend row)[j] + θ * ((attend row)[j] + (o - (attend row)[j]))
      + (o' - o * (1 + θ)) = o' - (attend row)[j] := by grind
  rwa [e] at h₁

variable [NaturalExp R] {q_len kv_len d d_v : Nat}

/-- **tiny-matrices**: a function as in `rounded_changed_matrices`, whose products, quotients and
exponentials may be below the normal numbers of the accumulator, where each is off by `ν` and by no
more than it is, those of the scores too, is within the tolerance of attention, all in all. -/
theorem tiny_changed_matrices
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) {f : ScoreFormats R}
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) {ν : R} (hν : 0 ≤ ν)
    {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale σ₁ σ₂ σ : R} (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hσ' : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ)
    {changes : ScoreChanges R q_len kv_len} (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {V : Matrix R kv_len d_v} {i : Fin q_len} {t : Fin d_v} {cols : List (Option (Fin kv_len))}
    (hcols : cols.Perm changes.columns) {computed : Option (Fin kv_len) → R}
    (scores : TinyScores p f ν additions σ₁ σ₂ σ changes scale mask Q K i computed)
    {m : R} {part : Part R} (run : TinyRun p ν m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    (keys : part.keys = computedChangedKeys p (changes.formats p f ν additions d scale) additions
      changes false scale mask Q K V i t cols computed (columnValue V t))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings) {row : List (BoundedKey R)}
    (hrow : row = changedKeys p (changes.formats p f ν additions d scale) additions changes false
      scale mask Q K V i t cols)
    (third : p.denominator = .rounded →
      3 * storingErrors p rescalings (boundedWeights p rescalings row) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1)
    (hD : 2 * numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row)
    {o : R} (result : TinyTimes p.accumulation ν 5 (part.o / part.l) o)
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (outputTolerance p ν u η roundings rescalings negligible row)
      (o' - (changes.attention scale mask Q K V)[i][t]) := by
  obtain ⟨c, -, close⟩ := computedChangedKeys_error (p := p)
    (f := changes.formats p f ν additions d scale) (V := V) (t := t) (cols := cols)
    (whole := false) (used := columnValue V t) archimedean hp hu hu' ⟨hf.operands, hf.operandsTiny⟩
    hf₀ hf₁ hd ⟨hσ.product, hσ.both, hσ.first, hσ.second⟩ hcap
    (tiny_scores archimedean hp hu (score_depth hp hf hd) hν hσ' hcap scores)
  rw [← keys] at close
  rw [← attend_columns hcols]
  have e : part.keys.map (·.toBoundedKey) = row := by
    rw [keys, computedChangedKeys_toBoundedKey, hrow]
  rw [← e] at third left ⊢
  exact rounded_output_underflow hp hν run hνq t.isLt
    (row := columnsScored changes scale mask Q K V i cols)
    (by rw [keys]; exact computedChangedKeys_same) attained close hr ha third hN hD left result
    stored negligible

end Attention.Proof
