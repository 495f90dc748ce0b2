module

public import Attention.Proof.Backward.Options
public import Attention.Proof.Backward.Tiles
public import Attention.Spec.BackwardTilesOptions

public section

/-! # The tile loops of the backward pass with slopes and sinks

Beside dQ the loop over tiles of keys sums the gradient by a slope. With a sink the loops compute
the gradients of attention with one more key, from a log-sum-exp that the sink is a part of. -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

attribute [local instance] Ring.intCast

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat} (toValue : S → R) (scale : S)
variable (modify : ScoreMod S q_len kv_len) {mask : Mask q_len kv_len}
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)
variable (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v) (delta : Vec R q_len)
variable (alignment : Alignment)

/-! ## Slopes -/

/-- The loop over tiles of keys sums, for each query, over all keys. -/
theorem backwardSlopes_eq {loop : TileLoop} (hb : 0 < loop.blockOuter) (hb' : 0 < loop.blockInner)
    (h : SoundSchedule mask loop.visit loop.kind loop.blockOuter loop.blockInner) :
    backwardSlopes scale modify mask Q K V Z L dO delta alignment loop
      = (List.finRange q_len).map fun i => Vec.sumOver
          (slopeTerm scale (modify.andThen mask.toScoreMod) Q K V Z L dO delta alignment i)
          (List.finRange kv_len) := by
  have hq := flatMap_tile hb (List.finRange q_len)
  rw [List.length_finRange] at hq
  conv => rhs; rw [← hq, List.map_flatMap]
  rw [backwardSlopes]
  refine congrArg List.flatten (List.map_congr_left fun t _ => ?_)
  have hfold := foldl_map_add (n := 1) (outs := tile loop.blockOuter (List.finRange q_len) t)
    (step := fun sums u => stepSlopesKind scale modify mask Q K V Z L dO delta alignment
      (tile loop.blockOuter (List.finRange q_len) t) sums (loop.kind t u)
      (tile loop.blockInner (List.finRange kv_len) u))
    (g := fun i u => tileTerm (loop.kind t u)
      (slopeTerm scale modify Q K V Z L dO delta alignment i)
      (slopeTerm scale (modify.andThen mask.toScoreMod) Q K V Z L dO delta alignment i)
      (tile loop.blockInner (List.finRange kv_len) u))
    (fun a u => by
      cases hk : loop.kind t u <;>
        simp only [hk, stepSlopesKind, stepSlopes, addTile_map, tileTerm, vecAdd_zero])
  simp only [hfold]
  refine List.map_congr_left fun i hi => ?_
  refine foldl_tileTerm hb' _ _ _ _ (fun u hu j hj => ?_) fun u hu hk j hj => ?_
  · rw [slopeTerm, rawGradient_masked (h := h.skip t u hu i hi j hj), Semiring.zero_mul]
    rfl
  · rw [slopeTerm, slopeTerm, rawGradient_visible (h := h.unmasked t u hu hk i hi j hj)]

/-- So it sums the gradient by the slope from gradients by scores that are those of the pairs. -/
private theorem backwardSlope_eq {loop : TileLoop} (hb : 0 < loop.blockOuter)
    (hb' : 0 < loop.blockInner)
    (h : SoundSchedule mask loop.visit loop.kind loop.blockOuter loop.blockInner)
    {dS : Matrix R q_len kv_len} (hS : ∀ i j, rawGradient scale (modify.andThen mask.toScoreMod)
      .one Q K V Z L dO delta i j = dS[i][j]) :
    backwardSlope scale modify mask Q K V Z L dO delta alignment loop
      = slopeGradient alignment dS := by
  rw [backwardSlope, backwardSlopes_eq scale modify Q K V Z L dO delta alignment hb hb' h,
    sumOver_map, slopeGradient]
  refine sumOver_congr fun i _ => ?_
  rw [Vec.getElem_sumOver]
  refine sumOver_congr fun j _ => ?_
  rw [slopeTerm, hS]
  rfl

/-- **flash-backward-slopes**: for all sizes, tile sizes of at least 1 (ragged last tiles included),
masks, score transformations before the mask, any factors of dropout, and any sound schedule: from
the output and the log-sum-exp that the forward pass has saved, the loop over tiles of keys sums the
gradient by the slope of a head's linear biases, Σ dS · (−distance) of the dS of `vjpDropout`. -/
theorem backwardSlope_eq_slopeGradient {loop : TileLoop} (hb : 0 < loop.blockOuter)
    (hb' : 0 < loop.blockInner)
    (h : SoundSchedule mask loop.visit loop.kind loop.blockOuter loop.blockInner)
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    backwardSlope scale modify mask Q K V Z L dO
        (rowDelta (attentionDropout scale forward Q K V Z) dO dLse) alignment loop
      = slopeGradient alignment (vjpDropout scale forward slope Q K V Z toValue dO dLse).dBias := by
  intro forward
  refine backwardSlope_eq scale modify Q K V Z L dO _ alignment hb hb' h fun i j => ?_
  rw [(vjpDropout_formulas scale forward slope Q K V Z toValue dO dLse).1 i j, rawGradient,
    scoreGradient, probabilityAgain_eq (R := R) scale forward Q K (hL i) j, dot_smul_right]
  exact Semiring.mul_one _

/-! ## Sinks -/

variable (sink : S)

/-- The factors of dropout behind a sink's, which meets nothing. -/
private abbrev behind (z : R) : WeightFactor R q_len (kv_len + 1) := fun i => sinkFirst z (Z i)

/-- The gradient by the score of a key, before it was transformed, behind the sink. -/
private theorem rawGradient_behindSink (z : R) (i : Fin q_len) (j : Fin kv_len) :
    rawGradient scale (modify.behindSink sink) slope.behindSink Q (rowsBehindSink K)
        (rowsBehindSink V) (behind Z z) L dO delta i j.succ
      = rawGradient scale modify slope Q K V Z L dO delta i j := by
  simp only [rawGradient, probabilityAgain, score, ScoreMod.behindSink, ScoreSlope.behindSink,
    sinkFirst_succ, rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn]
  rfl

/-- The weight as well. -/
private theorem droppedAgain_behindSink (z : R) (i : Fin q_len) (j : Fin kv_len) :
    (droppedAgain scale (modify.behindSink sink) Q (rowsBehindSink K) (behind Z z) L i j.succ : R)
      = droppedAgain scale modify Q K Z L i j := by
  simp only [droppedAgain, probabilityAgain, score, ScoreMod.behindSink, sinkFirst_succ,
    rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn]
  rfl

omit [OrderedField R] in
private theorem sink_zero [OfNat R 0] : (rowsBehindSink V)[(0 : Fin (kv_len + 1))] = Vec.zero := by
  simp only [rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn]
  rfl

private theorem dot_zero_right {n : Nat} (a : Vec R n) : Vec.dot a Vec.zero = 0 :=
  sumOver_eq_zero fun c _ => by
    rw [Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_zero, Semiring.mul_zero]

/-- The output with dropout and a sink is that of attention with one more key. -/
theorem attentionSink_dropped (z : R) :
    (Vec.ofFn fun i => (attentionSink scale modify sink Q K (droppedValues V Z i))[i] :
        Matrix R q_len d_v)
      = attentionDropout scale (modify.behindSink sink) Q (rowsBehindSink K) (rowsBehindSink V)
          fun i => sinkFirst z (Z i) := by
  refine Vector.ext fun r hr => ?_
  rw [Vec.getElem_ofFn, attentionSink_eq_attention]
  have e : rowsBehindSink (droppedValues V Z ⟨r, hr⟩)
      = droppedValues (rowsBehindSink V) (fun i => sinkFirst z (Z i)) ⟨r, hr⟩ := by
    refine congrArg Vec.ofFn (funext fun j => ?_)
    refine Fin.cases ?_ (fun k => ?_) j
    · rw [sink_zero]
      refine Vector.ext fun c hc => ?_
      rw [Vec.getElem_smul, Vec.getElem_zero, Semiring.mul_zero]
      exact Vec.getElem_zero ..
    · simp only [sinkFirst_succ, droppedValues, rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn]
      rfl
  rw [e, attention, Fin.getElem_fin, Vec.getElem_ofFn]
  refine Eq.trans (congrArg attend (List.map_congr_left fun j _ => ?_))
    (attend_scoredDropout scale (modify.behindSink sink) Q (rowsBehindSink K) (rowsBehindSink V)
      (fun i => sinkFirst z (Z i)) ⟨r, hr⟩)
  simp only [droppedValues, dropKey, Fin.getElem_fin, Vec.getElem_ofFn]

/-- **flash-backward-sinks**: for all sizes, tile sizes of at least 1, masks, score transformations
with their slopes before the mask, any factors of dropout, any sound schedules and a sink: from the
output of attention with the sink, with dropout, and from log-sum-exps that the sink is a part of,
the same tile loops compute the gradients of attention with one more key, of score `sink` and value
0, by the queries and by the other keys and values, `dLse` included; Σ dS · (−distance) of these;
and Σ exp (sink − L) · −(D − dL) is that by the sink, whatever factor it has. -/
theorem flashBackward_sink {keys queries : TileLoop}
    (hk : 0 < keys.blockOuter) (hk' : 0 < keys.blockInner)
    (hq : 0 < queries.blockOuter) (hq' : 0 < queries.blockInner)
    (hkeys : SoundSchedule (fun j i => mask i j) keys.visit keys.kind keys.blockOuter
      keys.blockInner)
    (hqueries : SoundSchedule mask queries.visit queries.kind queries.blockOuter
      queries.blockInner)
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] (some sink :: (List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) (z : R) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    let O : Matrix R q_len d_v := Vec.ofFn fun i =>
      (attentionSink scale forward sink Q K (droppedValues V Z i))[i]
    let g := vjpDropout scale (forward.behindSink sink) slope.behindSink Q (rowsBehindSink K)
      (rowsBehindSink V) (fun i => sinkFirst z (Z i)) toValue dO dLse
    flashBackward toValue scale modify mask slope Q K V Z L dO keys queries O dLse
        = (g.dQ.toList, (rowsOfKeys g.dK).toList, (rowsOfKeys g.dV).toList)
      ∧ backwardSlope scale modify mask Q K V Z L dO (rowDelta O dO dLse) alignment queries
        = slopeGradient alignment
          (Vec.ofFn fun i => Vec.ofFn fun j => g.dBias[i][j.succ] : Matrix R q_len kv_len)
      ∧ sinkGradient L (rowDelta O dO dLse) sink
        = sumOver (fun i : Fin q_len => g.dBias[i][(0 : Fin (kv_len + 1))])
          (List.finRange q_len) := by
  intro forward O g
  have hO : O = attentionDropout scale (forward.behindSink sink) Q (rowsBehindSink K)
      (rowsBehindSink V) fun i => sinkFirst z (Z i) :=
    attentionSink_dropped scale forward Q K V Z sink z
  have hP : ∀ i j, (probabilityAgain scale (forward.behindSink sink) Q (rowsBehindSink K) L i j : R)
      = (probabilities scale (forward.behindSink sink) Q (rowsBehindSink K) :
        Matrix R q_len (kv_len + 1))[i][j] := fun i j =>
    probabilityAgain_eq scale (forward.behindSink sink) Q (rowsBehindSink K) (by
      have h := hL i
      rw [List.finRange_succ, List.map_cons, List.map_map]
      refine Eq.trans h (congrArg _ (congr (congrArg List.cons ?_)
        (List.map_congr_left fun k _ => ?_)))
      · simp only [score, ScoreMod.behindSink, sinkFirst_zero]
      · simp only [Function.comp_def, score, ScoreMod.behindSink, sinkFirst_succ, rowsBehindSink,
          Fin.getElem_fin, Vec.getElem_ofFn]
        rfl) j
  obtain ⟨hdQ, hdK, hdV⟩ := vjpDropout_sums toValue scale (forward.behindSink sink)
    slope.behindSink Q (rowsBehindSink K) (rowsBehindSink V) (fun i => sinkFirst z (Z i)) L dO dLse
    hP
  have hB := (vjpDropout_formulas scale (forward.behindSink sink) slope.behindSink Q
    (rowsBehindSink K) (rowsBehindSink V) (fun i => sinkFirst z (Z i)) toValue dO dLse).1
  rw [← hO] at hdQ hdK hB
  have raw := fun i j => rawGradient_behindSink scale forward slope Q K V Z L dO
    (rowDelta O dO dLse) sink z i j
  have sinkSlope : ∀ i, rawGradient scale (forward.behindSink sink) slope.behindSink Q
      (rowsBehindSink K) (rowsBehindSink V) (fun i => sinkFirst z (Z i)) L dO (rowDelta O dO dLse) i
      0 = 0 := fun i => Semiring.mul_zero _
  refine ⟨?_, ?_, ?_⟩
  · rw [flashBackward, backwardKeys_eq toValue scale modify slope Q K V Z L dO _ hk hk' hkeys,
      backwardQueries_eq toValue scale modify slope Q K V Z L dO _ hq hq' hqueries]
    simp only [g, forward, ← hdQ, ← hdK, ← hdV]
    refine congr (congrArg Prod.mk (congrArg Vector.toList ?_))
      (congr (congrArg Prod.mk (congrArg Vector.toList ?_)) (congrArg Vector.toList ?_))
    · refine congrArg Vec.ofFn (funext fun i => congrArg (Vec.smul (toValue scale)) ?_)
      refine Vector.ext fun c hc => ?_
      rw [Vec.getElem_sumOver, Vec.getElem_sumOver, List.finRange_succ, sumOver_cons, sumOver_map,
        Vec.getElem_smul, sinkSlope, Semiring.zero_mul, AddCommMonoid.zero_add]
      refine sumOver_congr fun j _ => ?_
      rw [raw]
      simp only [rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn]
      rfl
    · refine congrArg Vec.ofFn (funext fun j => ?_)
      rw [Fin.getElem_fin, Vec.getElem_ofFn]
      refine congrArg (Vec.smul (toValue scale)) (congrArg (Vec.sumOver · _) (funext fun i => ?_))
      exact congrArg (Vec.smul · _) (raw i j).symm
    · refine congrArg Vec.ofFn (funext fun j => ?_)
      rw [Fin.getElem_fin, Vec.getElem_ofFn]
      refine congrArg (Vec.sumOver · _) (funext fun i => ?_)
      exact congrArg (Vec.smul · _)
        (droppedAgain_behindSink scale forward Q K Z L sink z i j).symm
  · refine backwardSlope_eq scale modify Q K V Z L dO _ alignment hq hq' hqueries fun i j => ?_
    simp only [Fin.getElem_fin, Vec.getElem_ofFn]
    refine Eq.trans ?_ (hB i j.succ).symm
    rw [← hP, ← rawGradient_behindSink scale forward .one Q K V Z L dO _ sink z i j, rawGradient,
      scoreGradient, dot_smul_right]
    exact Semiring.mul_one _
  · rw [sinkGradient]
    refine sumOver_congr fun i _ => ?_
    rw [hB i 0, ← hP, sink_zero, dot_zero_right, Semiring.mul_zero]
    rfl

end Attention.Proof
