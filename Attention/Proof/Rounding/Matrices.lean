module

public import Attention.Proof.Rounding.Rows
public import Attention.Proof.Rounding.Scores

public section

/-! # From matrices of rounded numbers to the tolerance

The Spec's tile loop and its split keys, run from beginning to end over numbers that round, scores
included, against exact attention of the same matrices: nothing is left as a hypothesis but that the
roundoff is small for the sizes. -/

namespace Attention.Model.FloatingPoint

universe u

variable {R : Type u} [OrderedField R] [Exp R R] {F : FloatingPoint R}

/-- Which numbers stand in a matrix. -/
@[expose] def vals {m n : Nat} (A : Matrix F.Number m n) : Matrix R m n :=
  Vec.map (Vec.map (·.val)) A

theorem vals_getElem {m n : Nat} (A : Matrix F.Number m n) (i : Fin m) :
    (vals A)[i] = Vec.map (·.val) A[i] := by
  simp [vals]

end Attention.Model.FloatingPoint

namespace Attention.Proof

open Spec Spec.Online Model Model.FloatingPoint

universe u

variable {R : Type u} [OrderedField R]

/-! ## Scores -/

/-- The Spec's score of numbers that round is one that a function may compute: an inner product of
`d` terms is added up from 0, so that each goes through at most `d` additions. -/
theorem number_computedScore [Exp R R] {F : FloatingPoint R} {d : Nat} (scale : F.Number)
    (q k : Vec F.Number d) :
    ComputedScore F.precision inAccumulator d 1 1 scale.val (q.map (·.val)) (k.map (·.val))
      (scale * Vec.dot q k).val := by
  refine ⟨0, 0, fun i => q[i].val, fun i => k[i].val, fun i => (q[i] * k[i]).val,
    (Vec.dot q k).val, (scale * Vec.dot q k).val, Nat.le_refl _, fun i => ?_, fun i => ?_,
    fun i => ?_, ?_, ?_, storedNear_of_rounded ⟨0, .zero (Std.le_refl _), by grind⟩ (Std.le_refl _)⟩
  · show q[i].val = 1 * (q.map (·.val))[i]
    simp [Lean.Grind.Semiring.one_mul]
  · show k[i].val = 1 * (k.map (·.val))[i]
    simp [Lean.Grind.Semiring.one_mul]
  · simpa using Number.mul_rounded q[i] k[i]
  · simpa [Vec.dot] using sumOver_roundedSum (fun i : Fin d => q[i] * k[i]) (List.finRange d)
  · refine ⟨scale.val * (Vec.dot q k).val, ⟨_, rfl, 0, .zero F.unit_nonneg, by grind⟩, ?_⟩
    exact Number.mul_rounded scale (Vec.dot q k)

variable [Exponential R R] {F : FloatingPoint R} {q_len kv_len d d_v : Nat} {scale : R}
variable {mask : Mask q_len kv_len} {σ : F.Number} {Q : Matrix F.Number q_len d}
variable {K : Matrix F.Number kv_len d} {V : Matrix F.Number kv_len d_v} {i : Fin q_len}
variable {roundings rescalings : Nat}

/-- The error of a score in the tolerance of a row. -/
private def rowError (p : Precision R) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (k : Fin kv_len) : R :=
  match score scale mask.toScoreMod Q K i k,
      rowMax ((List.finRange kv_len).map (score scale mask.toScoreMod Q K i)) with
  | some s, some m => scoreError p inAccumulator d scale (magnitude Q[i] K[k])
      (operandUnderflow p inAccumulator d Q[i] K[k]) s (m - s)
  | _, _ => 0

omit [Exponential R R] in
private theorem map_rowError (p : Precision R) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len)
    (t : Fin d_v) :
    ((List.finRange kv_len).map fun k => (⟨score scale mask.toScoreMod Q K i k,
        rowError p scale mask Q K i k, V[k][t]⟩ : BoundedKey R))
      = boundedKeys p inAccumulator d scale mask Q K V i t (List.finRange kv_len) := by
  refine List.map_congr_left fun k hk => ?_
  have hle := le_rowMax (List.mem_map_of_mem (f := score scale mask.toScoreMod Q K i) hk)
  simp only [rowError, boundedKey]
  generalize rowMax ((List.finRange kv_len).map (score scale mask.toScoreMod Q K i)) = m at *
  generalize score scale mask.toScoreMod Q K i k = s at *
  cases s <;> cases m <;> first | rfl | cases hle

omit [Exponential R R] in
/-- An unmasked score of a Boolean mask. -/
private theorem score_eq_some {S : Type u} [Add S] [Mul S] [OfNat S 0] {scale : S}
    {Q : Matrix S q_len d} {K : Matrix S kv_len d} {k : Fin kv_len} {s : S}
    (h : score scale mask.toScoreMod Q K i k = some s) : scale * Vec.dot Q[i] K[k] = s := by
  simp only [score, Mask.toScoreMod] at h
  split at h
  · exact Option.some.inj h
  · cases h

/-- The scores of a row are within what the tolerance has for them, but for a constant. -/
private theorem rowError_close (hF : F.exponential < 1)
    (hd : 10 * (numeral (d + 4) * F.unit) ≤ 1) (hσ : RoundedTimes F.unit 3 scale σ.val) :
    ∃ c, ∀ k s s', score scale mask.toScoreMod (vals Q) (vals K) i k = some s →
      score σ mask.toScoreMod Q K i k = some s' →
      AtMost (rowError F.precision scale mask (vals Q) (vals K) i k) (s'.val - (s + c)) := by
  have hscores := rounded_scores (f := inAccumulator) (additions := d) (σ₁ := 1) (σ₂ := 1)
    (σ := σ.val) (F.precise hF) (Std.le_refl _) inAccumulator_precise (by
      rw [show operandFactor F.precision inAccumulator = 1 from rfl]
      exact (show (10 * (numeral (d + 4) * F.unit) + 4 * (1 - 1) : R) ≤ 1 by grind))
    (scaledBy_normal rfl (by rwa [show 1 * 1 * σ.val = σ.val by grind]))
  cases hm : rowMax ((List.finRange kv_len).map
      (score scale mask.toScoreMod (vals Q) (vals K) i)) with
  | none =>
    refine ⟨0, fun k s s' hs _ => ?_⟩
    have := rowMax_eq_none.mp hm _ (List.mem_map_of_mem (List.mem_finRange k))
    rw [hs] at this
    cases this
  | some m =>
    obtain ⟨c, -, h⟩ := hscores m
    refine ⟨c, fun k s s' hs hs' => ?_⟩
    have hle := le_rowMax (List.mem_map_of_mem
      (f := score scale mask.toScoreMod (vals Q) (vals K) i) (List.mem_finRange k))
    rw [hm, hs] at hle
    have hle : s ≤ m := hle
    have e := score_eq_some hs
    rw [rowError, hs, hm, ← score_eq_some hs']
    have := h d (vals Q)[i] (vals K)[k] (m - s) (σ * Vec.dot Q[i] K[k]).val
      (by rw [e]; exact ⟨by grind, by grind⟩)
      (by rw [vals_getElem, vals_getElem]; exact number_computedScore σ Q[i] K[k])
    rwa [e] at this

/-! ## The algorithms -/

/-- **flash-within-allowance**: the Spec's tile loop, run over numbers that round from the scores to
the division, is within the tolerance of exact attention of the same matrices, for all sizes, tile
sizes of at least 1 and Boolean masks, in each row with an unmasked key. The scale may be rounded up
to three times. With `T` tiles of keys it suffices that `roundings` is at least block_n + 2T − 1 and
`rescalings` at least T − 1. -/
theorem flash_within_tolerance (hF : F.exponential < 1) (hσ : RoundedTimes F.unit 3 scale σ.val)
    (unmasked : ∃ k, mask i k = true) (hd : 10 * (numeral (d + 4) * F.unit) ≤ 1)
    (hN : numeral (roundings + 6) * F.unit < 1) (hD : 2 * numeral roundings * F.unit < 1)
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) (negligible : R)
    (ha : block_n + numTiles kv_len block_n + (numTiles kv_len block_n - 1) ≤ roundings)
    (hr : numTiles kv_len block_n - 1 ≤ rescalings) :
    ∃ o, (flash σ mask.toScoreMod Q K V block_m block_n)[i.val]? = some o ∧ ∀ t : Fin d_v,
      AtMost (tolerance F.precision roundings rescalings negligible
          (boundedKeys F.precision inAccumulator d scale mask (vals Q) (vals K) (vals V) i t
            (List.finRange kv_len)))
        (o[t].val - (attention scale mask.toScoreMod (vals Q) (vals K) (vals V))[i][t]) := by
  obtain ⟨c, close⟩ := rowError_close (mask := mask) (Q := Q) (K := K) (i := i) hF hd hσ
  obtain ⟨k, hk⟩ := unmasked
  obtain ⟨o, ho, h⟩ := flash_rounded (V := vals V) (V' := V) hF
    (fun k => by simp only [score, Mask.toScoreMod]; split <;> simp)
    (fun k t => by simp [vals]) close ⟨k, by simp [score, Mask.toScoreMod, hk]⟩ hN hD hm hn
    negligible ha hr
  exact ⟨o, ho, fun t => map_rowError F.precision scale mask (vals Q) (vals K) (vals V) i t ▸ h t⟩

/-- **split-kv-within-allowance**: decoding with the keys split, over numbers that round, is within
the tolerance of exact attention of the same matrices, as the tile loop is. With `T` tiles in a
split and `S` splits it suffices that `roundings` is at least block_n + 2T − 1 + 2S and `rescalings`
at least T − 1 + S. -/
theorem splitKV_within_tolerance (hF : F.exponential < 1) (hσ : RoundedTimes F.unit 3 scale σ.val)
    (unmasked : ∃ k, mask i k = true) (hd : 10 * (numeral (d + 4) * F.unit) ≤ 1)
    (hN : numeral (roundings + 6) * F.unit < 1) (hD : 2 * numeral roundings * F.unit < 1)
    {split_len block_n : Nat} (hs : 0 < split_len) (hn : 0 < block_n) (negligible : R)
    (ha : block_n + numTiles split_len block_n + numTiles kv_len split_len
      + (numTiles split_len block_n - 1 + numTiles kv_len split_len) ≤ roundings)
    (hr : numTiles split_len block_n - 1 + numTiles kv_len split_len ≤ rescalings) :
    ∃ o, (splitKV σ mask.toScoreMod Q K V split_len block_n)[i.val]? = some o ∧ ∀ t : Fin d_v,
      AtMost (tolerance F.precision roundings rescalings negligible
          (boundedKeys F.precision inAccumulator d scale mask (vals Q) (vals K) (vals V) i t
            (List.finRange kv_len)))
        (o[t].val - (attention scale mask.toScoreMod (vals Q) (vals K) (vals V))[i][t]) := by
  obtain ⟨c, close⟩ := rowError_close (mask := mask) (Q := Q) (K := K) (i := i) hF hd hσ
  obtain ⟨k, hk⟩ := unmasked
  obtain ⟨o, ho, h⟩ := splitKV_rounded (V := vals V) (V' := V) hF
    (fun k => by simp only [score, Mask.toScoreMod]; split <;> simp)
    (fun k t => by simp [vals]) close ⟨k, by simp [score, Mask.toScoreMod, hk]⟩ hN hD hs hn
    negligible ha hr
  exact ⟨o, ho, fun t => map_rowError F.precision scale mask (vals Q) (vals K) (vals V) i t ▸ h t⟩

/-- A query that may attend to no key gets exactly 0 from the tile loop over numbers that round. -/
theorem flash_masked_exactly {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (masked : ∀ k, mask i k = false) :
    ∃ o, (flash σ mask.toScoreMod Q K V block_m block_n)[i.val]? = some o ∧
      ∀ t : Fin d_v, o[t].val = 0 := by
  obtain ⟨s, ho, h⟩ := flash_carries σ mask.toScoreMod Q K V i hm hn
  refine ⟨_, ho, fun t => ?_⟩
  have hsees : ∀ k, Sees (⟨score σ mask.toScoreMod Q K i k, V[k]⟩ :
      ScoredValue F.Number F.Number d_v)
      (⟨score (0 : R) mask.toScoreMod (vals Q) (vals K) i k, (vals V)[k]⟩ : ScoredValue R R d_v) :=
    fun k => ⟨by simp [score, Mask.toScoreMod, masked k], fun t => by simp [vals]⟩
  exact ((h t _ fun k => (hsees k).agrees t 0).finish_masked fun k _ => by
    simp [score, Mask.toScoreMod, masked k]).1

end Attention.Proof
