module

public import Attention.Proof.Rounding.GradientMeans
public import Attention.Proof.Rounding.UnderflowWeights
public import Attention.Spec.BackwardOptions
import Attention.Algebra.FinRange
import Attention.Proof.Backward.Options
import Attention.Proof.Rounding.Flushed
import Attention.Proof.Rounding.OutputKeys
import Attention.Proof.Rounding.OutputNumbers
import Attention.Proof.Rounding.UnderflowLogSumExp

public section

/-! # D from the output of a forward pass, within its bound where numbers underflow

The weights of an output that a forward pass writes are as close to the exact ones as those that a
backward pass computes again: exp (s − m) / l is off by the error of the score and by that of the
denominator, which the log-sum-exp has, too. Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R]

/-- `flushed_row` of keys that differ: a part of the same numbers in which no difference of scores
is flushed to 0, of keys whose computed scores are as close to their scores. -/
private theorem flushed_cols [Exponential R R] {α : Type v} [DecidableEq α] {p : Precision R}
    {ν μ m : R} (hu : 0 ≤ p.unit) (hμ : 0 ≤ μ) {part : Part R} (run : TinyRun p ν μ m part)
    {cols : List α} (nodup : cols.Nodup) {key : α → BoundedKey R} {computed : α → R}
    (keys : part.keys = cols.map fun c => ⟨key c, computed c⟩)
    (attained : ∃ k ∈ part.keys, k.score ≠ none ∧ k.computed = m) {rescalings : Nat}
    (hr : part.rescalings ≤ rescalings) (close : ∀ c s, (key c).score = some s →
      AtMost ((key c).error - numeral (rescalings + 1) * μ) (computed c - s)) :
    ∃ (computed' : α → R) (part' : Part R), part'.l = part.l ∧ part'.o = part.o ∧
      part'.additions = part.additions ∧ part'.rescalings = part.rescalings ∧
      part'.keys = (cols.map fun c => ⟨key c, computed' c⟩) ∧ TinyRun p ν 0 m part' ∧
      (∃ k ∈ part'.keys, k.score ≠ none ∧ k.computed = m) ∧
      ∀ c ∈ cols, ∀ s, (key c).score = some s → AtMost (key c).error (computed' c - s) := by
  obtain ⟨moved, h₁, h₂, h₃, h₄⟩ := flushed_row (g := fun c => (⟨key c, computed c⟩ :
    ComputedKey R)) (c := 0) hu hμ run keys (by
      obtain ⟨k, hk, hs⟩ := attained
      rw [keys] at hk
      obtain ⟨c, hc, rfl⟩ := List.mem_map.mp hk
      exact ⟨c, hc, hs⟩) hr fun c _ s hs => by
        rw [Semiring.add_zero]
        exact close c s hs
  obtain ⟨z, rfl, hz⟩ := exists_map (fun c => (c, (0 : R))) nodup (f := fun k : α × R => k.1)
    (g := id) (h₁.symm.trans (List.map_id _).symm)
  have e : (cols.map z).map (fun k => raised ((⟨key k.1, computed k.1⟩ : ComputedKey R), k.2))
      = cols.map fun c => (⟨key c, computed c + (z c).2⟩ : ComputedKey R) := by
    rw [List.map_map]
    refine List.map_congr_left fun c hc => ?_
    have : (z c).1 = c := hz c hc
    simp only [Function.comp_def, raised, this]
  have h₂ : TinyRun p ν 0 m (withKeys part ((cols.map z).map fun k =>
    raised ((⟨key k.1, computed k.1⟩ : ComputedKey R), k.2))) := h₂
  rw [e] at h₂
  refine ⟨fun c => computed c + (z c).2,
    withKeys part (cols.map fun c => ⟨key c, computed c + (z c).2⟩), rfl, rfl, rfl,
    rfl, rfl, h₂, ?_, fun c hc s hs => ?_⟩
  · obtain ⟨k, hk, h₅, h₆⟩ := h₃
    obtain ⟨c, hc, rfl⟩ := List.mem_map.mp hk
    have ec : (z c).1 = c := hz c hc
    rw [ec] at h₅ h₆
    exact ⟨_, List.mem_map_of_mem hc, h₅, h₆⟩
  · have h₅ := h₄ (z c) (List.mem_map_of_mem hc) s
    have ec : (z c).1 = c := hz c hc
    rw [ec, Semiring.add_zero] at h₅
    exact h₅ hs

variable [NaturalExp R] {q_len kv_len d d_v n : Nat}
variable {p : Precision R} {f : ScoreFormats R} {ν η : R} {additions : Nat} {scale : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {i : Fin q_len}

omit [NaturalExp R] in
/-- An output that is stored, of a quotient that is a sum but for what the quotient lost. -/
private theorem stored_component {u η ηo b S y o : R} (hy : AtMost b (y - S))
    (zero : S = 0 → y = 0) (h : StoredBelow u η y o) (hη : (1 + u) * b + η ≤ ηo) :
    StoredBelow u ηo S o := by
  obtain ⟨z, ⟨θ, hθ, rfl⟩, h₁, h₂⟩ := h
  refine ⟨S * (1 + θ), ⟨θ, hθ, rfl⟩, ?_, fun e => h₂ (zero e)⟩
  have hθ' : AtMost (1 + u) (1 + θ) := ⟨by have := hθ.1; grind, by have := hθ.2; grind⟩
  have h₃ := (hθ'.mul hy).add h₁
  rw [show (1 + θ) * (y - S) + (o - y * (1 + θ)) = o - S * (1 + θ) by grind] at h₃
  exact h₃.mono hη

/-- **tiny-output-weights**: a component of the output that a forward pass writes, from the products
of queries and keys on, also where numbers underflow and with dropout, is what `OutputComponent`
asks of one from which D is made: of a key's weight, within the error that `tiny_weight` has of one
that is computed again from a score that is off by (B + 1) ν more, B rescalings, for differences
that are flushed to 0; times its value and a factor for `roundings + 6` roundings; and of what
underflowed. -/
theorem tiny_output (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {g : GradientPrecision R}
    (hg : PreciseGradient g) (same : OfForward p ν g) (ha : p.accumulation < 1)
    {c : GradientCounts} {r : BackwardRow R n d_v} (hr : r.Valid) {L : R}
    {col : Fin n → Option (Fin kv_len)} (columns : r.OfColumns changes scale mask Q K i L col)
    {t : Fin d_v} {used : Option (Fin kv_len) → R}
    (factors : ∀ j, ∃ φ, AtMost g.factors (φ - 1) ∧
      used (col j) = r.factor j * (r.value j)[t] * φ)
    {cols : List (Option (Fin kv_len))} (hcols : cols.Perm ((List.finRange n).map col))
    {roundings : Nat} {row : List (BoundedKey R)}
    (hrow : row = cols.map fun col => (cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (used col) col).flushed ν c.rescalings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings c.rescalings row) (h4 : numeral 4 * p.unit < 1)
    {E M : R} (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings c.rescalings row ≤ exp E)
    (herror : ∀ j s, changes.score scale mask Q K i (col j) = some s →
      recomputedError p.unit ν p.exponential s L
        (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i
          (col j) + numeral (c.rescalings + 1) * ν)
        (underflowLogSumExpTolerance p ν E (L - M) M (largestError row)) ≤ r.error j)
    {o : R} (hη : (1 + g.output) * ((1 + p.accumulation) ^ 5 * (numeral 5 * ν)) + η ≤ g.outputTiny)
    (written : TinyOutputOf p f ν additions changes scale mask Q K i used cols roundings
      c.rescalings g.output η o) :
    r.OutputComponent g c (roundings + 6) t o := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨computed, m, part, y, scores, run, hνq, keys, attained, hB, hN, hy, ho⟩ := written
  have hu₁ : p.unit ≤ 1 := by grind
  have h3 := three_units_lt hp h4
  have nodup : cols.Nodup := hcols.nodup_iff.mpr
    (List.Pairwise.map col (fun _ _ h e => h (columns.different e)) (nodup_finRange n))
  obtain ⟨computed', part', el, eo, ea, er, keys, run, attained, close₀⟩ := flushed_cols hp.unit hν
    run nodup keys attained hB fun col s hs => by
      show AtMost (_ + numeral (c.rescalings + 1) * ν - numeral (c.rescalings + 1) * ν) _
      rw [show ∀ a b : R, a + b - b = a from fun a b => by grind]
      exact tiny_column archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap scores hs
  simp only [← el, ← eo, ← ea, ← er] at hνq hB hN hy
  have e₁ : part'.keys.map (·.toBoundedKey) = row := by
    rw [keys, hrow, List.map_map]
    rfl
  have e₂ : part'.keys.map (·.score) = cols.map (changes.score scale mask Q K i) := by
    rw [keys, List.map_map]
    rfl
  have mem : ∀ j, col j ∈ cols := fun j =>
    hcols.mem_iff.mpr (List.mem_map_of_mem (List.mem_finRange j))
  have column : ∀ {j s}, changes.score scale mask Q K i (col j) = some s → AtMost
      (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i
        (col j) + numeral (c.rescalings + 1) * ν) (computed' (col j) - s) := fun hs =>
    close₀ _ (mem _) _ hs
  have close : ∀ key ∈ part'.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - s) := fun key hk s hs => by
    rw [keys] at hk
    obtain ⟨col, hc, rfl⟩ := List.mem_map.mp hk
    exact close₀ col hc s hs
  obtain ⟨d₁, d₂, hl, hgrow⟩ := tiny_denominator hp hν run hνq attained close hB hN hD
    (by rwa [e₁]) (by rwa [e₂])
  have eL : (denominator (part'.keys.map (·.score)) : R) = exp L := by
    rw [e₂, denominator, sumOver_perm _ (hcols.map _)]
    exact columns.exact.symm
  rw [e₁] at d₁ d₂ hgrow
  rw [eL] at d₁ d₂
  obtain ⟨w, s, e, parts, hsum, zero⟩ := tiny_output_parts hp hν hu₁ ha run hνq nodup keys hl hy
  have hF : 1 ≤ underflowLogSumExpFactor p ν roundings c.rescalings row :=
    one_le_of_both (exp_pos L) d₁ d₂ (OrderedRing.mul_pos (exp_pos m) hl)
  have le : ∀ a b : R, (exp a : R) ≤ exp b → a ≤ b := fun a b h => by
    refine Classical.byContradiction fun hn => ?_
    have := exp_lt (R := R) b a (by grind)
    grind
  have hE : 0 ≤ E := le 0 E (by
    rw [exp_zero]
    exact Std.le_trans hF errors)
  have hML : M ≤ L := le M L (by
    have h := le_sumOver (f := fun s : Option R => (weight s : R)) (fun s _ => weight_nonneg s)
      (rowMax_mem maximum)
    rw [sumOver_perm _ (hcols.map _)] at h
    have e : sumOver (fun s : Option R => (weight s : R))
      (((List.finRange n).map col).map (changes.score scale mask Q K i)) = exp L :=
      columns.exact.symm
    rw [e] at h
    exact h)
  have hm : 0 ≤ largestError row ∧ m - M ≤ largestError row := by
    obtain ⟨key, hk, hs, rfl⟩ := attained
    have h₁ := error_le_largestError (List.mem_map_of_mem (f := (·.toBoundedKey)) hk) hs
    rw [e₁] at h₁
    have h₂ := le_rowMax (List.mem_map_of_mem (f := (·.score)) hk)
    obtain ⟨s', hs'⟩ := Option.ne_none_iff_exists'.mp hs
    rw [e₂, maximum] at h₂
    have h₂ : ScoreLE key.score (some M) := h₂
    rw [hs'] at h₂
    have h₂ : s' ≤ M := h₂
    have h₃ := close key hk s' hs'
    have h₄ := h₃.nonneg
    have h₅ := h₃.2
    exact ⟨Std.le_trans h₄ h₁, by grind⟩
  obtain ⟨φ, hφ⟩ := Classical.skolem.mp factors
  have all := fun j => output_key hg same hp hν (P := r.weight j) (δ := r.error j) (φ := φ j) hl
    hB (show part'.additions + part'.rescalings + 6 ≤ roundings + 6 by omega) (hr.factor j)
    (hφ j).1 (hφ j).2 (parts (col j) (mem j)) (hr.error j)
    (fun hs => columns.masked (show changes.score scale mask Q K i (col j) = none from hs))
    (fun hs => by
      obtain ⟨s', hs'⟩ := Option.ne_none_iff_exists'.mp hs
      have hs' : changes.score scale mask Q K i (col j) = some s' := hs'
      have hP : r.weight j = exp (s' - L) := columns.seen hs'
      have hx := exponent_le hp hν h4 h3 (column hs') hm.1 hm.2 hML hE
      have hX := herror j s' hs'
      rw [recomputedError] at hX
      generalize exponentError p.unit ν s' L _ _ = X at *
      have hX' : (exp X : R) ≤ 1 + r.error j := by
        have := OrderedRing.mul_nonneg (Std.le_of_lt (exp_pos (R := R) X)) hp.exponential
        grind
      have hEX : E ≤ X := by
        have i₁ := OrderedRing.mul_nonneg hp.unit (b := m - computed' (col j)) (by
          have := (parts (col j) (mem j)).below hs
          have : computed' (col j) ≤ m := this
          grind)
        have i₂ := (column hs').nonneg
        grind
      refine ⟨by rw [hP]; exact exp_pos _,
        Std.le_trans errors (Std.le_trans (exp_le hEX) hX'), fun G hG₁ hG₂ => ?_⟩
      rw [hP]
      refine (weight_close hl d₁ d₂ errors (column hs') hG₁ hG₂ hx).mono ?_
      exact OrderedRing.mul_le_mul_of_nonneg_right (by grind) (Std.le_of_lt (exp_pos _)))
    hgrow
  refine ⟨fun j => w (col j), fun j => s (col j) * φ j, fun j => e (col j),
    fun j => (all j).1, fun j => (all j).2.1, fun j => (all j).2.2, ?_⟩
  have e₃ : sumOver (fun j => w (col j) * (r.factor j * (r.value j)[t]) * (s (col j) * φ j)
        + e (col j)) (List.finRange n)
      = sumOver (fun col => w col * used col * s col + e col) cols := by
    rw [sumOver_perm _ hcols, sumOver_map]
    refine sumOver_congr fun j _ => ?_
    rw [(hφ j).2]
    generalize r.factor j * (r.value j)[t] = v
    grind
  rw [e₃]
  exact stored_component hsum zero ho hη

/-- **tiny-output-mean**: so D is within its bound where a backward pass makes it of such an output,
as ⟨dO, O⟩, each product and each addition rounded, in any order. -/
theorem tiny_output_mean (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {g : GradientPrecision R}
    (hg : PreciseGradient g) (same : OfForward p ν g) (ha : p.accumulation < 1)
    {c : GradientCounts} (hc₁ : numeral c.products * g.accumulation < 1)
    (hc₂ : numeral c.delta * g.accumulation < 1) {r : BackwardRow R n d_v} (hr : r.Valid) {L : R}
    {col : Fin n → Option (Fin kv_len)} (columns : r.OfColumns changes scale mask Q K i L col)
    {used : Fin d_v → Option (Fin kv_len) → R}
    (factors : ∀ t j, ∃ φ, AtMost g.factors (φ - 1) ∧
      used t (col j) = r.factor j * (r.value j)[t] * φ)
    {cols : Fin d_v → List (Option (Fin kv_len))}
    (hcols : ∀ t, (cols t).Perm ((List.finRange n).map col)) {roundings k : Nat}
    {row : Fin d_v → List (BoundedKey R)}
    (hrow : ∀ t, row t = (cols t).map fun col => (cappedKey p
      (changes.formats p f ν additions d scale) additions changes scale mask Q K i (used t col)
        col).flushed ν c.rescalings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : ∀ t, 0 < underflowLeft p ν roundings c.rescalings (row t))
    (h4 : numeral 4 * p.unit < 1) {E M : R}
    (maximum : ∀ t, rowMax ((cols t).map (changes.score scale mask Q K i)) = some M)
    (errors : ∀ t, underflowLogSumExpFactor p ν roundings c.rescalings (row t) ≤ exp E)
    (herror : ∀ t j s, changes.score scale mask Q K i (col j) = some s →
      recomputedError p.unit ν p.exponential s L
        (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i
          (col j) + numeral (c.rescalings + 1) * ν)
        (underflowLogSumExpTolerance p ν E (L - M) M (largestError (row t))) ≤ r.error j)
    {o y : Fin d_v → R} {D : R}
    (hη : (1 + g.output) * ((1 + p.accumulation) ^ 5 * (numeral 5 * ν)) + η ≤ g.outputTiny)
    (written : ∀ t, TinyOutputOf p f ν additions changes scale mask Q K i (used t) (cols t)
      roundings c.rescalings g.output η (o t))
    (products : ∀ t : Fin d_v, StoredBelow g.accumulation g.tiny (r.dO[t] * o t) (y t))
    (sum : FlushedSum g.accumulation g.tiny y k (List.finRange d_v) D)
    (hk : roundings + 6 + k + 1 ≤ c.delta) (hd_v : d_v ≤ c.products) :
    ComputedMean g c r D ∧ AtMost (meanError g c r.reach r.keys) (D - meanProduct r.keys) := by
  have mean : ComputedMean g c r D := .ofOutput (fun t => tiny_output archimedean hp hu hu' hf hf₀
    hf₁ hν hd hcap hg same ha hr columns (factors t) (hcols t) (hrow t) hD (left t) h4 (maximum t)
    (errors t) (herror t) hη (written t)) products sum hk hd_v
  refine ⟨mean, ?_⟩
  have h := (mean_majorised hg hc₁ hc₂ hr mean).error
  rwa [show meanSize r.keys + meanError g c r.reach r.keys - meanSize r.keys
    = meanError g c r.reach r.keys by grind] at h

/-! ## Rows of queries -/

variable {V : Matrix R kv_len d_v} {slope : ScoreSlope R R q_len kv_len}
variable {dO : Matrix R q_len d_v} {dLse : Vec R q_len}

/-- The keys of a query without a sink are its columns. -/
theorem ofColumns_keys {Z : WeightFactor R q_len kv_len}
    {error slopeError : Fin q_len → Fin kv_len → R} {L : R}
    (exact : IsLogSumExp R (some L)
      (((List.finRange kv_len).map some).map (changes.score scale mask Q K i))) :
    (backwardRow scale (changes.modify mask) slope Q K V Z dO dLse error slopeError i).OfColumns
      changes scale mask Q K i L some where
  different := Option.some.inj
  exact := exact
  masked {j} h := by
    show (probabilities scale (changes.modify mask) Q K : Matrix R q_len kv_len)[i][j] = 0
    have h : score scale (changes.modify mask) Q K i j = none := h
    rw [getElem_probabilities, h, Field.div_eq_mul_inv]
    exact Semiring.zero_mul _
  seen {_ _} h := probabilities_eq_exp scale (changes.modify mask) Q K h (by
    rw [List.map_map] at exact
    exact exact)

/-- Those of a query with a sink are its columns, too: the sink stands before the keys, with value
0. -/
theorem ofColumns_sink {sink : R} (hs : changes.sink = some sink)
    {Z : WeightFactor R q_len (kv_len + 1)}
    {error slopeError : Fin q_len → Fin (kv_len + 1) → R} {L : R}
    (exact : IsLogSumExp R (some L) (((List.finRange (kv_len + 1)).map
      (sinkFirst none some)).map (changes.score scale mask Q K i))) :
    (backwardRow scale ((changes.modify mask).behindSink sink) slope.behindSink Q
      (rowsBehindSink K) (rowsBehindSink V) Z dO dLse error slopeError i).OfColumns
      changes scale mask Q K i L (sinkFirst none some) := by
  have e : ∀ j, score scale ((changes.modify mask).behindSink sink) Q (rowsBehindSink K) i j
      = changes.score scale mask Q K i (sinkFirst none some j) := fun j => by
    refine Fin.cases ?_ (fun k => ?_) j
    · simp only [score, ScoreMod.behindSink, sinkFirst_zero, ScoreChanges.score, hs]
    · simp only [score, ScoreMod.behindSink, sinkFirst_succ, ScoreChanges.score, rowsBehindSink,
        Fin.getElem_fin, Vec.getElem_ofFn]
      rfl
  refine ⟨fun {j k} h => ?_, exact, fun {j} h => ?_, fun {j s} h => ?_⟩
  · cases j using Fin.cases with
    | zero =>
      cases k using Fin.cases with
      | zero => rfl
      | succ k => exact absurd (show (none : Option (Fin kv_len)) = some k from h) (by simp)
    | succ j =>
      cases k using Fin.cases with
      | zero => exact absurd (show some j = (none : Option (Fin kv_len)) from h) (by simp)
      | succ k => exact congrArg Fin.succ (Option.some.inj (show some j = some k from h))
  · show (probabilities scale ((changes.modify mask).behindSink sink) Q (rowsBehindSink K) :
      Matrix R q_len (kv_len + 1))[i][j] = 0
    rw [getElem_probabilities, e, h, Field.div_eq_mul_inv]
    exact Semiring.zero_mul _
  · refine probabilities_eq_exp scale _ Q _ ((e j).trans h) ?_
    rw [List.map_map] at exact
    rwa [List.map_congr_left fun j _ => e j]

end Attention.Proof
