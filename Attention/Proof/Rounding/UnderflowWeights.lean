module

public import Attention.Model.UnderflowWeights
public import Attention.Proof.Rounding.TangentWeights
public import Attention.Spec.UnderflowTolerance
import Attention.Proof.Rounding.Softcap
import Attention.Proof.Rounding.UnderflowLogSumExp
import Attention.Proof.Rounding.UnderflowScores

public section

/-! # Weights that are computed again, within their bound where numbers underflow

From the products of queries and keys on: a forward pass writes a log-sum-exp, another pass computes
the scores again, and from both the weights of gradients and tangents.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {q_len kv_len d : Nat}
variable {p : Precision R} {f : ScoreFormats R} {ν η : R} {additions : Nat} {scale : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {i : Fin q_len}

/-- How far off the score of a column is. -/
theorem tiny_column (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {computed : Option (Fin kv_len) → R}
    (scores : TinyScores p f ν additions changes scale mask Q K i computed)
    {col : Option (Fin kv_len)} {s : R} (hs : changes.score scale mask Q K i col = some s) :
    AtMost (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i
      col) (computed col - s) := by
  obtain ⟨σ₁, σ₂, σ, hσ, sinks, keys⟩ := tiny_scores archimedean hp hu (score_depth hp hf hd) hf₀
    hν hcap scores
  cases col with
  | none =>
    have hs : changes.sink = some s := hs
    simp only [ScoreChanges.cappedError, hs]
    exact rounded_sink (sinks s hs)
  | some j =>
    obtain ⟨x, hx, hy⟩ := keys j (by simp [hs])
    obtain ⟨-, rfl⟩ := changes_score hs
    exact (rounded_capped_score (f := changes.formats p f ν additions d scale) archimedean hp hu hu'
      ⟨hf.operands, hf.operandsTiny⟩ hf₀ hf₁ hd hσ
      (change := changes.pair i j) hcap hx hy).1

/-- How far off the log-sum-exp is, of scores that are off so. -/
private theorem tiny_written (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {values : Option (Fin kv_len) → R}
    {cols : List (Option (Fin kv_len))} {roundings rescalings : Nat} {row : List (BoundedKey R)}
    (hrow : row = cols.map fun col => (cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) (h4 : numeral 4 * p.unit < 1)
    {L E M : R} (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings rescalings row ≤ exp E) {L' : R}
    (written : TinyLogSumExpOf p f ν additions changes scale mask Q K i values cols roundings
      rescalings L') :
    AtMost (underflowLogSumExpTolerance p ν E (L - M) M (largestError row)) (L' - L) := by
  obtain ⟨computed, m, part, scores, run, hνq, keys, attained, hr, ha, result⟩ := written
  have e : part.keys.map (·.toBoundedKey) = row := by
    rw [keys, hrow, List.map_map]
    rfl
  have e' : part.keys.map (·.score) = cols.map (changes.score scale mask Q K i) := by
    rw [keys, List.map_map]
    rfl
  have := rounded_logSumExp_underflow hp hν hν run hνq attained (fun key hk s hs => by
      rw [keys] at hk
      obtain ⟨col, -, rfl⟩ := List.mem_map.mp hk
      show AtMost (_ + numeral (rescalings + 1) * ν - numeral (rescalings + 1) * ν) _
      rw [show ∀ a b : R, a + b - b = a from fun a b => by grind]
      exact tiny_column archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap scores hs)
    hr ha hD (by rwa [e]) h4 (by rwa [e']) (by rwa [e']) (by rwa [e]) result
  rwa [e] at this

omit [NaturalExp R] in
/-- A bound of four roundings is one of three. -/
theorem three_units_lt (hp : Precise p) (h4 : numeral 4 * p.unit < 1) :
    numeral 3 * p.unit < 1 := by
  have := hp.unit
  have e : (numeral 4 : R) = numeral 3 + 1 := numeral_succ 3
  rw [e] at h4
  grind

/-- **tiny-weights**: the weight exp (s − L) of a key or of the sink that is computed again, from a
score that is computed again and from the log-sum-exp that a forward pass wrote, from the products
of queries and keys on, is off by at most its bound, also where products, quotients and exponentials
are below the normal numbers. -/
theorem tiny_weight (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {values : Option (Fin kv_len) → R}
    {cols : List (Option (Fin kv_len))} {roundings rescalings : Nat} {row : List (BoundedKey R)}
    (hrow : row = cols.map fun col => (cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) (h4 : numeral 4 * p.unit < 1)
    {L E M : R} (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings rescalings row ≤ exp E)
    {col : Option (Fin kv_len)} {s : R} (hs : changes.score scale mask Q K i col = some s) {P : R}
    (computed : TinyWeight p f ν η additions changes scale mask Q K i values cols roundings
      rescalings col P) :
    AtMost (recomputedError p.unit ν p.exponential s L
        (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i col)
        (underflowLogSumExpTolerance p ν E (L - M) M (largestError row)) * exp (s - L) + η)
      (P - exp (s - L)) := by
  obtain ⟨again, L', scores, written, h⟩ := computed
  exact rounded_recomputed hp.unit hν (three_units_lt hp h4)
    (tiny_column archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap scores hs)
    (tiny_written archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hrow hD left h4 exact maximum errors
      written) h

/-- **tiny-gradient-weights**: so the weight of a key is, without a sink, as `rounded_gradients`
supposes, once it is stored, and its error is not negative. -/
theorem tiny_gradient_weight (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {values : Option (Fin kv_len) → R}
    {cols : List (Option (Fin kv_len))} {roundings rescalings : Nat} {row : List (BoundedKey R)}
    (hrow : row = cols.map fun col => (cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) (h4 : numeral 4 * p.unit < 1)
    {L E M : R} (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings rescalings row ≤ exp E)
    (hcols : cols.Perm ((List.finRange kv_len).map some)) {j : Fin kv_len} {s : R}
    (hs : changes.score scale mask Q K i (some j) = some s) {P : R}
    (computed : TinyWeight p f ν η additions changes scale mask Q K i values cols roundings
      rescalings (some j) P) {uw ηw w : R} (hw : StoredBelow uw ηw P w) :
    let error := recomputedError p.unit ν p.exponential s L
      (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i
        (some j)) (underflowLogSumExpTolerance p ν E (L - M) M (largestError row))
    0 ≤ error ∧ StoredWeight uw ηw
      (probabilities scale (changes.modify mask) Q K : Matrix R q_len kv_len)[i][j] error η w := by
  obtain ⟨again, L', scores, written, h⟩ := computed
  have hL : IsLogSumExp R (some L)
      ((List.finRange kv_len).map (score scale (changes.modify mask) Q K i)) := by
    have e : (denominator (cols.map (changes.score scale mask Q K i)) : R)
        = denominator ((List.finRange kv_len).map (score scale (changes.modify mask) Q K i)) := by
      rw [denominator, denominator, sumOver_perm _ (hcols.map _), List.map_map]
      rfl
    exact Eq.trans exact e
  exact storedWeight_of_recomputed scale (changes.modify mask) Q K hs hL hp.unit hν
    (three_units_lt hp h4)
    hp.exponential (tiny_column archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap scores hs)
    (tiny_written archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hrow hD left h4 exact maximum errors
      written) h hw

/-- **tiny-tangent-weights**: so the weight of a key or of the sink is as `rounded_tangents`
supposes, in a row of scores that change, below the normal numbers off by `η` as it is computed and
as it is stored. -/
theorem tiny_tangent_weight (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {values : Option (Fin kv_len) → R}
    {cols : List (Option (Fin kv_len))} {roundings rescalings : Nat} {row : List (BoundedKey R)}
    (hrow : row = cols.map fun col => (cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) (h4 : numeral 4 * p.unit < 1)
    {L E M : R} (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings rescalings row ≤ exp E)
    {n : Nat} {moving : List (ScoredValue (Dual R) (Dual R) n)} {c : Fin n}
    (same : moving.map (fun y => y.score.map (·.val)) = cols.map (changes.score scale mask Q K i))
    {y : ScoredValue (Dual R) (Dual R) n} {s : Dual R} (hy : y.score = some s)
    {col : Option (Fin kv_len)} (hs : changes.score scale mask Q K i col = some s.val) {P : R}
    (computed : TinyWeight p f ν η additions changes scale mask Q K i values cols roundings
      rescalings col P) {τ φ S δ w : R} (hw : StoredNear τ η P w) :
    ComputedWeights [()] (fun _ => boundedRate moving c
      (recomputedError p.unit ν p.exponential s.val L
        (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i col)
        (underflowLogSumExpTolerance p ν E (L - M) M (largestError row))) τ η φ S δ y)
      fun _ => w := by
  obtain ⟨again, L', scores, written, h⟩ := computed
  exact computedWeight_of_recomputed hy (by rw [same]; exact exact) hp.unit hν
    (three_units_lt hp h4)
    (tiny_column archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap scores hs)
    (tiny_written archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hrow hD left h4 exact maximum errors
      written) h hw

end Attention.Proof
