module

public import Attention.Model.UnderflowGradients
public import Attention.Proof.Rounding.OutputWeights
import Attention.Proof.Rounding.RowOrders
import Attention.Proof.Rounding.Softcap
import Attention.Proof.Rounding.UnderflowScores

public section

/-! # Gradients within their tolerance, from the matrices on

Whatever a forward pass and a backward pass after it compute from queries, keys and values, each row
of the backward pass is one that the theorems of gradients suppose: weights, slopes and D are as far
off as these have it. So the parts of the bound are one.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

/-! ## Relations with weights and slopes of which less is known -/

section
variable {R : Type u} [OrderedField R] {n d_v : Nat} {p : GradientPrecision R} {c : GradientCounts}
variable {r : BackwardRow R n d_v}

/-- D of more weights and outputs. -/
private theorem meanOf_mono {weight weight' : Fin n → R → Prop}
    {component component' : Nat → Fin d_v → R → Prop} (hw : ∀ j w, weight j w → weight' j w)
    (ho : ∀ m i o, component m i o → component' m i o) {D : R}
    (h : MeanOf p c r weight component D) : MeanOf p c r weight' component' D := by
  cases h with
  | ofProducts hw' hx hy hD hk => exact .ofProducts (fun j => hw j _ (hw' j)) hx hy hD hk
  | ofOutput ho' hy hD hk hd => exact .ofOutput (fun i => ho _ i _ (ho' i)) hy hD hk hd

/-- dS of more weights and slopes. -/
private theorem scoreGradientOf_mono {weight weight' slope slope' : R → Prop}
    (hw : ∀ w, weight w → weight' w) (hσ : ∀ σ, slope σ → slope' σ) {D : R} {j : Fin n} {S X : R}
    (h : ScoreGradientOf p c r weight slope D j S X) :
    ScoreGradientOf p c r weight' slope' D j S X := by
  obtain ⟨a, b, x, G, w, σ, y, hab, hx, hG, hw', hS, hσ', hy, hX⟩ := h
  exact ⟨a, b, x, G, w, σ, y, hab, hx, hG, hw w hw', hS, hσ σ hσ', hy, hX⟩

/-- The output of a row without weights may be 0. -/
private theorem outputComponent_zero (hp : PreciseGradient p) (hr : r.Valid)
    (hw : ∀ j, r.weight j = 0) (m : Nat) (t : Fin d_v) : r.OutputComponent p c m t 0 := by
  have one : 1 ≤ outputFactor p c m := by
    rw [outputFactor, div_rescalings]
    exact Std.le_trans (one_le_rescalings hp.exponential hp.exponential_lt _)
      (by
        have h := OrderedRing.mul_le_mul_of_nonneg_right
          (Std.le_trans (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) m)
            (le_mul_of_one_le (nonneg_of_one_le
              (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) m)) (Std.le_refl _)
              (one_le_one_plus hp.factors)))
          (nonneg_of_one_le (one_le_rescalings hp.exponential hp.exponential_lt
            (c.rescalings + 1)))
        rwa [Semiring.one_mul] at h)
  refine ⟨fun _ => 0, fun _ => 1, fun _ => 0, fun j => ?_, fun _ => ?_, fun j => ?_, ?_⟩
  · rw [BackwardRow.OutputWeight, hw j]
    exact storedWeight_zero hp.stored (OrderedRing.mul_nonneg hp.storedTiny
      (nonneg_of_one_le (one_le_meanGrowth hp c (hr.error j)))) _ _
  · exact ⟨by grind, by grind⟩
  · rw [BackwardRow.outputLost, hw j, tinyOf_zero (Std.le_refl _), Semiring.mul_zero]
    exact .zero (Std.le_refl _)
  · have e : sumOver (fun j : Fin n => (0 : R) * (r.factor j * (r.value j)[t]) * 1 + 0)
        (List.finRange n) = 0 := by
      rw [sumOver_congr (g := fun _ => 0) fun j _ => by grind, sumOver_const, Semiring.mul_zero]
    rw [e]
    exact ⟨0, ⟨0, ⟨by have := hp.output; grind, hp.output⟩, by grind⟩,
      ⟨by have := hp.outputTiny; grind, by have := hp.outputTiny; grind⟩, fun _ => rfl⟩

end

/-! ## One query -/

variable {R : Type u} [OrderedField R] [NaturalExp R] {q_len kv_len d d_v n : Nat}
variable {p : Precision R} {f : ScoreFormats R} {ν η : R} {additions : Nat} {scale : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {i : Fin q_len}

/-- The weights that are computed again from a score that is further off are further off. -/
private theorem recomputedError_mono {u ν ue s L a b e : R} (hu : 0 ≤ u)
    (h3 : numeral 3 * u < 1) (hue : 0 ≤ ue) (h : a ≤ b) :
    recomputedError u ν ue s L a e ≤ recomputedError u ν ue s L b e := by
  have h₁ : exponentError u ν s L a e ≤ exponentError u ν s L b e := by
    have := OrderedRing.mul_le_mul_of_nonneg_left h (gamma_nonneg hu h3)
    simp only [exponentError]
    generalize gamma 3 u = g at *
    grind
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (exp_le (S := R) (R := R) h₁)
    (show 0 ≤ 1 + ue by
      have := OrderedRing.zero_lt_one (R := R)
      grind)
  simp only [recomputedError]
  grind

omit [NaturalExp R] in
/-- Whatever values a run has and in which order it sees the columns. -/
private theorem sameScores [Exp R R] {cols : List (Option (Fin kv_len))}
    (hcols : cols.Perm changes.columns) (values : Option (Fin kv_len) → R) (rescalings : Nat) :
    SameScores (cols.map fun col => (cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings)
      (weightRow p f ν additions changes scale mask Q K i rescalings) := by
  rw [SameScores, weightRow, List.map_map, List.map_map]
  exact hcols.map _

/-- The slope that a backward pass computes again is as far off as the tolerance has it. -/
private theorem slope_again (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {j : Fin kv_len} {σ : R}
    (h : SlopeAgain p f ν additions changes scale Q K i (some j) σ) :
    AtMost (changes.slopeError p f ν additions scale Q K i j)
      (σ - changes.slope i j (scale * Vec.dot Q[i] K[j])) := by
  simp only [SlopeAgain] at h
  rw [ScoreChanges.slopeError, ScoreChanges.slope, ScoreChanges.formats]
  cases e : changes.cap with
  | none =>
    rw [e] at h
    obtain rfl := h
    show AtMost (0 : R) (1 - 1)
    exact ⟨by grind, by grind⟩
  | some cap =>
    rw [e] at h
    obtain ⟨product, x, products, hx, hσ⟩ := h
    obtain ⟨σ₁, σ₂, σ', hσ', computes⟩ := tiny_products (cap := cap) hp hu (score_depth hp hf hd) hν
      (Std.le_of_lt (hcap cap e)) products
    exact rounded_slope archimedean hp.unit hu' (hcap cap e) (rounded_changed_score
      (f := underflowFormats p f ν additions d scale cap) archimedean hp hu hu'
      ⟨hf.operands, hf.operandsTiny⟩ hf₀ hf₁ hd hσ' (change := ⟨none, none⟩) nofun
      (computes _ _ x hx) ⟨x, rfl, rfl⟩) hσ

section
variable (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
variable (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
variable (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
variable (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
variable (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {g : GradientPrecision R}
variable (hg : PreciseGradient g) (same : OfForward p ν g) {c : GradientCounts} {roundings : Nat}
variable (hD : numeral (roundings + 1) * p.unit < 1) (h4 : numeral 4 * p.unit < 1)
variable {r : BackwardRow R n d_v} (hr : r.Valid) {col : Fin n → Option (Fin kv_len)} {L M E : R}
variable (columns : r.OfColumns changes scale mask Q K i L col)
variable (hcol : (List.finRange n).map col = changes.columns)
variable (bounds : QueryBounds p f ν additions changes scale mask Q K i roundings c.rescalings L M
  E)
variable (herror : ∀ j, passWeightError p f ν additions changes scale mask Q K i c.rescalings L M E
  (col j) ≤ r.error j)

include archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap same hD h4 columns bounds herror in
/-- A weight that is computed again is as far off as the row has it. -/
private theorem weight_again {j : Fin n} {u η w : R} (hu₀ : 0 ≤ u) (hη : 0 ≤ η)
    (h : WeightAgain p f ν additions changes scale mask Q K i roundings c.rescalings (col j) u η
      w) :
    StoredWeight u η (r.weight j) (r.error j) g.tiny w := by
  have hj := herror j
  rw [WeightAgain] at h
  rw [passWeightError] at hj
  cases hs : changes.score scale mask Q K i (col j) with
  | none =>
    rw [hs] at h
    obtain rfl := h
    rw [columns.masked hs]
    exact storedWeight_zero hu₀ hη _ _
  | some s =>
    rw [hs] at h hj
    obtain ⟨values, cols, P, hcols, again, hw⟩ := h
    have scores := sameScores (p := p) (f := f) (ν := ν) (additions := additions) (scale := scale)
      (mask := mask) (Q := Q) (K := K) (i := i) hcols values c.rescalings
    have exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)) := by
      have e : (denominator (cols.map (changes.score scale mask Q K i)) : R)
          = denominator (changes.columns.map (changes.score scale mask Q K i)) := by
        rw [denominator, denominator, sumOver_perm _ (hcols.map _)]
      exact Eq.trans bounds.exact e.symm
    have h₁ := tiny_weight archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap rfl hD
      (by rw [scores.left]; exact bounds.left) h4 exact
      (by rw [rowMax_perm (hcols.map _)]; exact bounds.maximum)
      (by rw [scores.logSumExpFactor]; exact bounds.factor) hs again
    rw [scores.largestError] at h₁
    have hP := columns.seen hs
    have pos := exp_pos (R := R) (s - L)
    refine ⟨P, ?_, hw⟩
    rw [hP, tinyOf_pos (by grind), same.tiny]
    have h₂ := recomputedError_mono (ν := ν) (s := s) (L := L)
      (e := underflowLogSumExpTolerance p ν E (L - M) M
        (largestError (weightRow p f ν additions changes scale mask Q K i c.rescalings)))
      hp.unit (three_units_lt hp h4) hp.exponential
      (show changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i
          (col j) ≤ changes.cappedError p (changes.formats p f ν additions d scale) additions scale
          Q K i (col j) + numeral (c.rescalings + 1) * ν by
        have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (c.rescalings + 1)) hν
        grind)
    refine h₁.mono ?_
    have := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_trans h₂ hj) (Std.le_of_lt pos)
    grind

include archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hg same hD h4 hr columns hcol bounds herror in
/-- A component of an output that the forward pass writes is as far off as the row has it. -/
private theorem written_component (ha : p.accumulation < 1)
    (hη : (1 + g.output) * ((1 + p.accumulation) ^ 5 * (numeral 5 * ν)) + η ≤ g.outputTiny)
    (seen : ∃ j, changes.score scale mask Q K i (col j) ≠ none) {t : Fin d_v} {o : R}
    (h : WrittenComponent p f ν η additions changes scale mask Q K i roundings g c r col t o) :
    r.OutputComponent g c (roundings + 6) t o := by
  rcases h with ⟨none, -⟩ | ⟨used, cols, factors, hcols, written⟩
  · obtain ⟨j, hj⟩ := seen
    exact absurd (none j) hj
  have scores := sameScores (p := p) (f := f) (ν := ν) (additions := additions) (scale := scale)
    (mask := mask) (Q := Q) (K := K) (i := i) hcols used c.rescalings
  refine tiny_output archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hg same ha hr columns factors
    (by rwa [hcol]) rfl hD (by rw [scores.left]; exact bounds.left) h4
    (by rw [rowMax_perm (hcols.map _)]; exact bounds.maximum)
    (by rw [scores.logSumExpFactor]; exact bounds.factor) (fun j s hs => ?_) hη written
  have hj := herror j
  rw [passWeightError, hs] at hj
  rw [scores.largestError]
  exact hj

end

/-- **tiny-gradient-rows**: whatever a forward pass, and a backward pass that computes its weights
again as e^(s − L), compute for a query from the matrices on, its row is one that
`rounded_gradients` supposes, and so are the weights that meet dO, also where numbers underflow,
with changed scores, a sink and dropout: where both passes store weights in one format, no
denominator is lost to errors, no error of a weight in the row is smaller than that of
`passWeightError`, and none of a slope than that of one that is computed again. -/
theorem tiny_rows (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (ha : p.accumulation < 1)
    {g : GradientPrecision R} (hg : PreciseGradient g) (same : OfForward p ν g) {c : GradientCounts}
    {roundings : Nat} (hD : numeral (roundings + 1) * p.unit < 1) (h4 : numeral 4 * p.unit < 1)
    (hη : (1 + g.output) * ((1 + p.accumulation) ^ 5 * (numeral 5 * ν)) + η ≤ g.outputTiny)
    {r : BackwardRow R n d_v} (hr : r.Valid) {col : Fin n → Option (Fin kv_len)}
    (hcol : (List.finRange n).map col = changes.columns) {L M E : R}
    (masked : ∀ j, changes.score scale mask Q K i (col j) = none → r.weight j = 0)
    (seen : (∃ j, changes.score scale mask Q K i (col j) ≠ none) →
      QueryBounds p f ν additions changes scale mask Q K i roundings c.rescalings L M E ∧
        r.OfColumns changes scale mask Q K i L col)
    (herror : ∀ j, passWeightError p f ν additions changes scale mask Q K i c.rescalings L M E
      (col j) ≤ r.error j)
    (hslope : ∀ j σ, SlopeAgain p f ν additions changes scale Q K i (col j) σ →
      AtMost (r.slopeError j) (σ - r.slope j)) :
    (∀ S X, PassRow p f ν η additions changes scale mask Q K i roundings g c r col S X →
      r.Computed g c S X) ∧
    ∀ j w, PassWeight p f ν additions changes scale mask Q K i roundings g c r col j w →
      r.ComputedWeight g j w := by
  have weight : ∀ {j u η w}, 0 ≤ u → 0 ≤ η →
      WeightAgain p f ν additions changes scale mask Q K i roundings c.rescalings (col j) u η w →
      StoredWeight u η (r.weight j) (r.error j) g.tiny w := fun {j u η w} hu₀ hη h => by
    by_cases hs : changes.score scale mask Q K i (col j) = none
    · rw [WeightAgain, hs] at h
      obtain rfl := h
      rw [masked j hs]
      exact storedWeight_zero hu₀ hη _ _
    · obtain ⟨bounds, columns⟩ := seen ⟨j, hs⟩
      exact weight_again archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap same hD h4 columns bounds
        herror hu₀ hη h
  have component : ∀ {t o},
      WrittenComponent p f ν η additions changes scale mask Q K i roundings g c r col t o →
      r.OutputComponent g c (roundings + 6) t o := fun {t o} h => by
    by_cases hs : ∃ j, changes.score scale mask Q K i (col j) ≠ none
    · obtain ⟨bounds, columns⟩ := seen hs
      exact written_component archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hg same hD h4 hr columns
        hcol bounds herror ha hη hs h
    · have none : ∀ j, changes.score scale mask Q K i (col j) = none := fun j =>
        Classical.byContradiction fun hn => hs ⟨j, hn⟩
      rcases h with ⟨-, rfl⟩ | ⟨used, cols, -, hcols, computed, m, part, y, -, -, -, keys, attained,
        -⟩
      · exact outputComponent_zero hg hr (fun j => masked j (none j)) _ _
      · obtain ⟨key, hk, hs', -⟩ := attained
        rw [keys] at hk
        obtain ⟨col', hc, rfl⟩ := List.mem_map.mp hk
        rw [hcols.mem_iff, ← hcol] at hc
        obtain ⟨j, -, rfl⟩ := List.mem_map.mp hc
        exact absurd (none j) hs'
  refine ⟨fun S X ⟨D, mean, rows⟩ => ⟨D, meanOf_mono (fun j w h => ?_) (fun m t o h => ?_) mean,
    fun j => scoreGradientOf_mono (fun w h => ?_) (fun σ h => ?_) (rows j)⟩, fun j w h => ?_⟩
  · exact meanWeight_of_stored hg hr (weight hg.stored hg.storedTiny h)
  · obtain ⟨rfl, h⟩ := h
    exact component h
  · exact weight hg.weights hg.weightsTiny h
  · exact hslope j σ h
  · obtain ⟨x, t, y, hx, h⟩ := h
    exact ⟨x, t, y, weight hg.weights hg.weightsTiny hx, h⟩

/-! ## Matrices -/

variable {V : Matrix R kv_len d_v} {dO : Matrix R q_len d_v} {dLse : Vec R q_len}

omit [OrderedField R] [NaturalExp R] in
private theorem columns_keys (hsink : changes.sink = none) :
    (List.finRange kv_len).map some = changes.columns := by
  rw [ScoreChanges.columns, hsink]

/-- **tiny-gradients**: the gradients by scores, queries, keys and values that such a backward pass
computes after a forward pass, from the matrices on, are within their bounds before they are stored
at the end, every operation of both rounded, also where numbers underflow, with masks, softcap,
numbers that are added and dropout, without a sink: the two passes compute scores, the log-sum-exp,
weights and slopes again, and D either way. Of a query that sees a key the bounds take its
log-sum-exp, its largest score, and the factor by which the sum of its exponentials may be off. -/
theorem tiny_gradients (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hsink : changes.sink = none)
    (ha : p.accumulation < 1) {g : GradientPrecision R} (hg : PreciseGradient g)
    (same : OfForward p ν g) {c : GradientCounts}
    (hc₁ : numeral c.products * g.accumulation < 1) (hc₂ : numeral c.delta * g.accumulation < 1)
    (hu₃ : numeral 3 * g.unit < 1) {roundings : Nat} (hD : numeral (roundings + 1) * p.unit < 1)
    (h4 : numeral 4 * p.unit < 1)
    (hη : (1 + g.output) * ((1 + p.accumulation) ^ 5 * (numeral 5 * ν)) + η ≤ g.outputTiny)
    {Z : WeightFactor R q_len kv_len} (hZ : ∀ i j, 0 ≤ Z i j) {L M E : Fin q_len → R}
    (queries : ∀ i, (∃ j, changes.score scale mask Q K i (some j) ≠ none) →
      QueryBounds p f ν additions changes scale mask Q K i roundings c.rescalings (L i) (M i) (E i))
    {error : Fin q_len → Fin kv_len → R} (he : ∀ i j, 0 ≤ error i j)
    (herror : ∀ i j, passWeightError p f ν additions changes scale mask Q K i c.rescalings (L i)
      (M i) (E i) (some j) ≤ error i j)
    {S X : Fin q_len → Fin kv_len → R} {reach : R} (hreach : 1 ≤ reach) {sums stores : Nat}
    (hsums : numeral sums * g.accumulation < 1) :
    let row := backwardRow scale (changes.modify mask) changes.slope Q K V Z dO dLse error
      (changes.slopeError p f ν additions scale Q K)
    let exact := vjpDropout scale (changes.modify mask) changes.slope Q K V Z id dO dLse
    ((∀ i, PassRow p f ν η additions changes scale mask Q K i roundings g c (row i) some (S i)
        (X i)) →
      (∀ i j, AtMost (scoreGradientError g c (row i).reach dLse[i] (row i).keys ((row i).key j))
        (S i j - exact.dBias[i][j]))
      ∧ (∀ (i : Fin q_len) (t : Fin d) (z : R),
        ComputedGradient g sums stores scale reach (X i) (fun j => K[j][t]) z →
        AtMost (gradientError g sums stores scale reach ((List.finRange kv_len).map fun j =>
          scoreGradientTerm g c (row i).reach dLse[i] (row i).keys ((row i).key j) K[j][t]))
          (z - exact.dQ[i][t]))
      ∧ ∀ (j : Fin kv_len) (t : Fin d) (z : R),
        ComputedGradient g sums stores scale reach (fun i => X i j) (fun i => Q[i][t]) z →
        AtMost (gradientError g sums stores scale reach ((List.finRange q_len).map fun i =>
          scoreGradientTerm g c (row i).reach dLse[i] (row i).keys ((row i).key j) Q[i][t]))
          (z - exact.dK[j][t]))
    ∧ ∀ (j : Fin kv_len) (t : Fin d_v) (w : Fin q_len → R) (z : R),
      (∀ i, PassWeight p f ν additions changes scale mask Q K i roundings g c (row i) some j
        (w i)) →
      ComputedGradient g sums stores 1 1 w (fun i => dO[i][t]) z →
      AtMost (gradientError g sums stores 1 1 ((List.finRange q_len).map fun i =>
        weightTerm g ((row i).key j) dO[i][t])) (z - exact.dV[j][t]) := by
  intro row exact
  have rows := fun i => tiny_rows (r := row i) archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap ha hg
    same hD h4 hη
    (backwardRow_valid scale (changes.modify mask) changes.slope Q K V Z dO dLse hZ he i)
    (columns_keys hsink)
    (fun j hj => by
      show (probabilities scale (changes.modify mask) Q K : Matrix R q_len kv_len)[i][j] = 0
      have hj : score scale (changes.modify mask) Q K i j = none := hj
      rw [getElem_probabilities, hj, Field.div_eq_mul_inv]
      exact Semiring.zero_mul _)
    (fun seen => ⟨queries i seen, ofColumns_keys (by
      rw [columns_keys hsink]
      exact (queries i seen).exact)⟩)
    (herror i) (fun j σ h => slope_again archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap h)
  obtain ⟨h₁, h₂⟩ := rounded_gradients scale (changes.modify mask) changes.slope Q K V Z dO dLse hg
    hc₁ hc₂ hu₃ hZ he (slopeError := changes.slopeError p f ν additions scale Q K) (S := S) (X := X)
    hreach hsums
  exact ⟨fun computed => h₁ fun i => (rows i).1 _ _ (computed i), fun j t w z hw =>
    h₂ j t w z fun i => (rows i).2 j _ (hw i)⟩

/-- **tiny-sink-gradient-rows**: so are the rows of two such passes over attention with a sink, a
key of value 0 before the others. -/
theorem tiny_sink_rows (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {sink : R} (hsink : changes.sink = some sink)
    (ha : p.accumulation < 1) {g : GradientPrecision R} (hg : PreciseGradient g)
    (same : OfForward p ν g) {c : GradientCounts} {roundings : Nat}
    (hD : numeral (roundings + 1) * p.unit < 1) (h4 : numeral 4 * p.unit < 1)
    (hη : (1 + g.output) * ((1 + p.accumulation) ^ 5 * (numeral 5 * ν)) + η ≤ g.outputTiny)
    {Z : WeightFactor R q_len (kv_len + 1)} (hZ : ∀ i j, 0 ≤ Z i j) {L M E : Fin q_len → R}
    (queries : ∀ i, QueryBounds p f ν additions changes scale mask Q K i roundings c.rescalings
      (L i) (M i) (E i))
    {error : Fin q_len → Fin (kv_len + 1) → R} (he : ∀ i j, 0 ≤ error i j)
    (herror : ∀ i j, passWeightError p f ν additions changes scale mask Q K i c.rescalings (L i)
      (M i) (E i) (sinkFirst none some j) ≤ error i j) :
    let row := backwardRow scale ((changes.modify mask).behindSink sink) changes.slope.behindSink Q
      (rowsBehindSink K) (rowsBehindSink V) Z dO dLse error
      fun i => sinkFirst 0 (changes.slopeError p f ν additions scale Q K i)
    ∀ i, (∀ S X, PassRow p f ν η additions changes scale mask Q K i roundings g c (row i)
        (sinkFirst none some) S X → (row i).Computed g c S X) ∧
      ∀ j w, PassWeight p f ν additions changes scale mask Q K i roundings g c (row i)
        (sinkFirst none some) j w → (row i).ComputedWeight g j w := by
  intro row i
  have hcol : (List.finRange (kv_len + 1)).map (sinkFirst none some) = changes.columns := by
    rw [ScoreChanges.columns, hsink, List.finRange_succ, List.map_cons, List.map_map]
    exact congrArg (none :: ·) (List.map_congr_left fun _ _ => rfl)
  have columns : (row i).OfColumns changes scale mask Q K i (L i) (sinkFirst none some) :=
    ofColumns_sink hsink (by
      rw [hcol]
      exact (queries i).exact)
  refine tiny_rows (r := row i) archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap ha hg same hD h4 hη
    (backwardRow_valid scale _ _ Q _ _ Z dO dLse hZ he i) hcol (fun j hj => columns.masked hj)
    (fun _ => ⟨queries i, columns⟩) (herror i) fun j => ?_
  refine Fin.cases (fun σ h => ?_) (fun k σ h => ?_) j
  · have h : σ = 0 := h
    subst h
    show AtMost (0 : R) (0 - 0)
    exact ⟨by grind, by grind⟩
  · have h₁ := slope_again archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap h
    have e : (row i).slope k.succ = changes.slope i k (scale * Vec.dot Q[i] K[k]) := by
      show sinkFirst 0 (fun k => changes.slope i k _) k.succ = _
      rw [sinkFirst_succ]
      simp only [rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn, Fin.val_succ]
      rfl
    rw [e]
    exact h₁

end Attention.Proof
