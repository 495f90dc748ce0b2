module

public import Attention.Model.RoundedDropout
public import Attention.Model.Underflow
public import Attention.Spec.DropoutTolerance
public import Attention.Spec.UnderflowTolerance
public import Attention.Proof.Rounding.Dropout
import Attention.Proof.Rounding.Flushed
import Attention.Proof.Rounding.UnderflowTolerance

public section

/-! # Attention with dropout, within its tolerance where numbers underflow

What underflows is in proportion to the values that the function has, which are off by a factor from
those that the tolerance sees. Source: docs/tolerances.md, "Dropout". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] [Exponential R R] {p : Precision R} {ν : R}

/-! ## Rows with the same scores and other values -/

section

variable {α : Type v} (s : α → Option R) (e : α → R) {keys : List α} {rescalings : Nat}

/-- A row of these scores, errors and values. -/
private def rowOf (keys : List α) (v : α → R) : List (BoundedKey R) :=
  keys.map fun k => ⟨s k, e k, v k⟩

/-- The weights of such rows are the same. -/
private theorem weights_rowOf (hp : Precise p) (keys : List α) (rescalings : Nat) :
    ∃ w : α → BoundedWeight R,
      (∀ v, boundedWeights p rescalings (rowOf s e keys v)
        = keys.map fun k => ⟨(w k).weight, (w k).factor, v k⟩) ∧
      (∀ k, 0 ≤ (w k).weight ∧ 0 < (w k).factor) ∧
      ∀ k ∈ keys, s k ≠ none → 0 < (w k).weight := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  let M := rowMax (keys.map s)
  let Δ := largestError (rowOf s e keys fun _ => 0)
  refine ⟨fun k => boundedWeight p rescalings M Δ ⟨s k, e k, 0⟩, fun v => ?_, fun k => ?_,
    fun k hk hs => ?_⟩
  · have h₁ : (rowOf s e keys v).map (·.score) = keys.map s := by
      rw [rowOf, List.map_map]
      rfl
    have h₂ : largestError (rowOf s e keys v) = Δ := by
      simp only [Δ, largestError, rowOf, List.foldl_map]
    rw [boundedWeights, h₁, h₂, rowOf, List.map_map]
    refine List.map_congr_left fun k _ => ?_
    show boundedWeight p rescalings M Δ ⟨s k, e k, v k⟩ = _
    simp only [boundedWeight]
    generalize s k = sk
    generalize M = M
    cases sk <;> cases M <;> rfl
  · simp only [boundedWeight]
    generalize s k = sk
    generalize M = M
    have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
    cases sk <;> cases M
    · exact ⟨Std.le_refl _, h₀⟩
    · exact ⟨Std.le_refl _, h₀⟩
    · exact ⟨Std.le_refl _, h₀⟩
    · refine ⟨Std.le_of_lt (exp_pos _), ?_⟩
      simp only [power_eq]
      rw [Field.div_eq_mul_inv]
      exact OrderedRing.mul_pos (exp_pos _)
        (Field.IsOrdered.inv_pos_iff.mpr (OrderedField.pow_pos hq _))
  · cases hM : rowMax (keys.map s) with
    | none => exact absurd (rowMax_eq_none.mp hM _ (List.mem_map_of_mem hk)) hs
    | some m =>
      obtain ⟨sk, hs'⟩ := Option.ne_none_iff_exists'.mp hs
      simp only [boundedWeight, M, hM, hs']
      exact exp_pos _

/-- What underflows of such rows is the same but for what it is in proportion to. -/
private theorem cost_rowOf (hp : Precise p) (hν : 0 ≤ ν) (unmasked : ∃ k ∈ keys, s k ≠ none) :
    ∃ (l : α → R) (C : R), (∀ k, 0 ≤ l k) ∧ 0 ≤ C ∧ ∀ v,
      underflowCost p ν rescalings (rowOf s e keys v) (fun k => absolute k.value)
          = sumOver (fun k => l k * absolute (v k)) keys + C ∧
      underflowCost p ν rescalings (rowOf s e keys v) (fun _ => 1)
          = sumOver (fun k => l k * 1) keys + C ∧
      ∀ roundings, underflowLeft p ν roundings rescalings (rowOf s e keys v)
          = underflowLeft p ν roundings rescalings (rowOf s e keys fun _ => 0) := by
  obtain ⟨w, hw, nonneg, pos⟩ := weights_rowOf s e hp keys rescalings
  let low := sumOver (fun k => (w k).weight / (w k).factor) keys
  have hlow : 0 < low := by
    obtain ⟨k, hk, hs⟩ := unmasked
    have h₁ : ∀ k ∈ keys, 0 ≤ (w k).weight / (w k).factor := fun k _ =>
      OrderedField.div_nonneg (nonneg k).1 (nonneg k).2
    have h₂ : 0 < (w k).weight / (w k).factor := by
      rw [Field.div_eq_mul_inv]
      exact OrderedRing.mul_pos (pos k hk hs) (Field.IsOrdered.inv_pos_iff.mpr (nonneg k).2)
    have := le_sumOver (f := fun k => (w k).weight / (w k).factor) h₁ hk
    grind
  let tiny := underflowShare p ν rescalings (keys.map w)
  have htiny : 0 ≤ tiny := tinyShare_nonneg (p := { p with storedTiny := ν })
    ⟨hp.unit, hp.accumulation, hp.exponential, hp.exponential_lt, hp.stored, hν⟩ rescalings (by
      rw [lowTotal, sumOver_map]
      exact hlow)
  have share : ∀ v : α → R, underflowShare p ν rescalings
      (keys.map fun k => ⟨(w k).weight, (w k).factor, v k⟩) = tiny := fun v => by
    simp only [tiny, underflowShare, tinyShare, lowTotal, List.foldl_map, sumOver_map]
  have total : ∀ v : α → R, lowTotal (keys.map fun k => ⟨(w k).weight, (w k).factor, v k⟩)
      = low := fun v => by
    simp only [lowTotal, sumOver_map, low]
  have cost : ∀ (v : α → R) (f : BoundedWeight R → R),
      underflowCost p ν rescalings (rowOf s e keys v) f
        = sumOver (fun k => lostShare rescalings low tiny (w k)
            * f ⟨(w k).weight, (w k).factor, v k⟩) keys
          + sumOver (fun k => match s k with
            | none => 0
            | some _ => numeral (rescalings + 6) * tiny) keys := fun v f => by
    rw [underflowCost, hw v]
    simp only [share, total]
    rw [sumOver_map, rowOf, sumOver_map]
    rfl
  have numer : ∀ n : Nat, (0 : R) ≤ numeral n * tiny := fun n =>
    OrderedRing.mul_nonneg (numeral_nonneg n) htiny
  refine ⟨fun k => lostShare rescalings low tiny (w k), _, fun k => ?_,
    sumOver_nonneg fun k _ => ?_, fun v => ⟨cost v _, cost v _, fun roundings => ?_⟩⟩
  · show 0 ≤ lostShare rescalings low tiny (w k)
    rw [lostShare]
    refine OrderedRing.mul_nonneg (numeral_nonneg 2) (le_smaller (OrderedRing.mul_nonneg ?_
      (OrderedField.div_nonneg (OrderedRing.mul_nonneg (nonneg k).1 (Std.le_of_lt (nonneg k).2))
        hlow)) (numer _))
    rw [power_eq]
    have := OrderedRing.zero_lt_one (R := R)
    exact Std.le_of_lt (OrderedField.pow_pos (by
      rw [numeral_succ, numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
      grind) _)
  · split
    · exact Std.le_refl _
    · exact numer _
  · rw [underflowLeft, underflowLeft, cost, cost, hw, hw]
    congr 1
    congr 1
    simp only [denominatorError, storingErrors, storingError, mostShare, tinyShare, lowTotal,
      List.foldl_map, sumOver_map]

end

omit [Exponential R R] in
private theorem scaled_sum_of_kept {α : Type v} {l x y : α → R} {keys : List α} {C T : R}
    (hT : 1 ≤ T) (hl : ∀ k, 0 ≤ l k) (hC : 0 ≤ C) (h : ∀ k ∈ keys, x k ≤ T * y k) :
    sumOver (fun k => l k * x k) keys + C ≤ T * (sumOver (fun k => l k * y k) keys + C) := by
  have i₁ : sumOver (fun k => l k * x k) keys ≤ sumOver (fun k => T * (l k * y k)) keys :=
    sumOver_le_sumOver fun k hk => by
      have := OrderedRing.mul_le_mul_of_nonneg_left (h k hk) (hl k)
      grind
  rw [sumOver_mul_left] at i₁
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right hT hC
  grind

/-- A run with dropout in which differences are flushed to 0 is one of other computed scores in
which they are not. -/
private theorem unflushed_dropped {μ m q z : R} (hu : 0 ≤ p.unit) (hμ : 0 ≤ μ) {part : Part R}
    (run : TinyRun p ν μ m part) {keys : List (DroppedKey R)}
    (computed : part.keys = keys.map fun k => { k.toComputedKey with value := k.used })
    (factors : ∀ k ∈ keys, dropoutFactor q k.keep ≤ z ∧
      ComputedDropout p.accumulation q k.keep k.value k.used) {pairs : List (Option R × R)}
    (same : keys.map (fun k => (k.score, dropoutFactor q k.keep * k.value)) = pairs)
    {dropped : List (BoundedKey R)} (hdropped : dropped = keys.map fun k =>
      ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩)
    (attained : ∃ key ∈ keys, key.score ≠ none ∧ key.computed = m) {rescalings : Nat}
    (hr : part.rescalings ≤ rescalings) {c : R} (close : ∀ key ∈ keys, ∀ s, key.score = some s →
      AtMost (key.error - numeral (rescalings + 1) * μ) (key.computed - (s + c))) :
    ∃ (part₀ : Part R) (keys₀ : List (DroppedKey R)), SameNumbers part part₀ ∧
      TinyRun p ν 0 m part₀ ∧
      part₀.keys = keys₀.map (fun k => { k.toComputedKey with value := k.used }) ∧
      (∀ k ∈ keys₀, dropoutFactor q k.keep ≤ z ∧
        ComputedDropout p.accumulation q k.keep k.value k.used) ∧
      keys₀.map (fun k => (k.score, dropoutFactor q k.keep * k.value)) = pairs ∧
      dropped = keys₀.map (fun k => ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩) ∧
      (∃ key ∈ keys₀, key.score ≠ none ∧ key.computed = m) ∧
      ∀ key ∈ keys₀, ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c)) := by
  obtain ⟨moved, rfl, run, ⟨top, htop, attained⟩, close⟩ := flushed_row hu hμ run computed
    attained hr close
  let up : DroppedKey R × R → DroppedKey R := fun k =>
    { k.1 with computed := k.1.computed + k.2 }
  refine ⟨withKeys part (moved.map fun k => raised ({ k.1.toComputedKey with value := k.1.used },
    k.2)), moved.map up, ⟨?_, ?_, rfl, rfl, rfl, rfl⟩, run, ?_, fun k hk => ?_, ?_, ?_,
    ⟨up top, List.mem_map_of_mem htop, attained⟩, fun k hk => ?_⟩
  · rw [computed, List.map_map, List.map_map]
    show List.map _ (List.map _ moved) = _
    rw [List.map_map]
    rfl
  · rw [computed, List.map_map, List.map_map]
    show List.map _ (List.map _ moved) = _
    rw [List.map_map]
    rfl
  · rw [List.map_map]
    rfl
  · obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact factors k.1 (List.mem_map.mpr ⟨k, hk', rfl⟩)
  · rw [← same, List.map_map, List.map_map]
    rfl
  · rw [hdropped, List.map_map, List.map_map]
    rfl
  · obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact close k hk'

/-- **tiny-dropout**: a function as in `rounded_dropout`, whose products, quotients and exponentials
may fall below the normal numbers, its products of weights or of values with factors too
(`TinyProduct`), each off by `ν` and by no more than it is, whose sums may by `ν`, and whose
differences of scores of `μ` at most may be flushed to 0, for which the errors of scores have room,
is within the tolerance and `underflowError`, both with the further roundings. -/
theorem rounded_dropout_underflow (hp : Precise p) (hν : 0 ≤ ν) {μ : R} (hμ : 0 ≤ μ) {m : R}
    {part : Part R} (run : TinyRun p ν μ m part) (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    {q z : R} (hq : 0 ≤ q) (hq₁ : q < 1) (hz : 0 ≤ z) {keys : List (DroppedKey R)}
    (factors : ∀ k ∈ keys, dropoutFactor q k.keep ≤ z ∧
      ComputedDropout p.accumulation q k.keep k.value k.used)
    (computed : part.keys = keys.map fun k => { k.toComputedKey with value := k.used })
    {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : keys.map (fun k => (k.score, dropoutFactor q k.keep * k.value))
      = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ keys, key.score ≠ none ∧ key.computed = m)
    {c : R} {roundings rescalings : Nat} (close : ∀ key ∈ keys, ∀ s, key.score = some s →
      AtMost (key.error - numeral (rescalings + 1) * μ) (key.computed - (s + c)))
    (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings) {dropped : List (BoundedKey R)}
    (hdropped : dropped = keys.map fun k =>
      ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩)
    (third : p.denominator = .rounded →
      3 * storingErrors p rescalings (boundedWeights p rescalings dropped) ≤ 1)
    (hN : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1)
    (hD : 2 * numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings dropped)
    {o : R} (result : TinyTimes p.accumulation ν 5 (part.o / part.l) o) (negligible : R) :
    AtMost (dropoutTolerance p z roundings rescalings negligible dropped
        + underflowError (moreRoundings p (roundings + 6) (z + numeral 5)) ν roundings rescalings
          negligible dropped)
      (o - (attend row)[j]) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  -- Keys of which no difference is flushed to 0.
  obtain ⟨part, keys, e, run, computed, factors, same, hdropped, attained, close⟩ :=
    unflushed_dropped hp.unit hμ run computed factors same hdropped attained hr close
  simp only [← e.l, ← e.o, ← e.additions, ← e.rescalings] at hνq hr ha result
  have hn₁ := numeral_nonneg (R := R) (roundings + 1)
  have hu := hp.accumulation
  have hD' : 2 * numeral roundings * p.unit < 1 := by
    have := hp.unit
    rw [numeral_succ] at hD
    clear factors close
    grind
  have hD₁ : numeral (roundings + 1) * p.unit < 1 := by
    have := OrderedRing.mul_nonneg hn₁ hp.unit
    clear factors close
    grind
  have hk : (0 : R) < numeral (roundings + 6) := by
    have h₁ := numeral_nonneg (R := R) (roundings + 5)
    rw [numeral_succ]
    clear factors close
    grind
  have h5 : (0 : R) ≤ z + numeral 5 := by
    have := numeral_nonneg (R := R) 5
    clear factors close hN hD
    grind
  obtain ⟨hA, hγ, hT⟩ := factors_le_gamma hu h5 hk hN
  have hx : (z + numeral 5) * p.accumulation < 1 := by
    have h₁ := OrderedRing.mul_nonneg (Std.le_of_lt hk) hu
    rw [Semiring.right_distrib] at hN
    clear factors close hA hγ hT
    grind
  have hused : part.keys.map (·.toBoundedKey)
      = rowOf (·.score) (·.error) keys fun k : DroppedKey R => k.used := by
    rw [computed, List.map_map]
    rfl
  have hrow : dropped = rowOf (·.score) (·.error) keys
      fun k : DroppedKey R => dropoutFactor q k.keep * k.value := hdropped
  obtain ⟨l, C, hl, hC, hcost⟩ := cost_rowOf (rescalings := rescalings)
    (fun k : DroppedKey R => k.score) (fun k => k.error) (keys := keys) hp hν (by
      obtain ⟨k, h, hs, -⟩ := attained
      exact ⟨k, h, hs⟩)
  obtain ⟨u₁, u₂, u₃⟩ := hcost fun k => k.used
  obtain ⟨v₁, v₂, v₃⟩ := hcost fun k => dropoutFactor q k.keep * k.value
  rw [← hused] at u₁ u₂ u₃
  rw [← hrow] at v₁ v₂ v₃
  have hV : underflowCost p ν rescalings (part.keys.map (·.toBoundedKey))
      (fun k => absolute k.value) ≤ 1 / (1 - (z + numeral 5) * p.accumulation)
        * underflowCost p ν rescalings dropped (fun k => absolute k.value) := by
    rw [u₁, v₁]
    refine scaled_sum_of_kept hT hl hC fun k hk' => ?_
    obtain ⟨f₁, f₂⟩ := factors k hk'
    have h₁ := computedDropout_close hu hq hq₁ f₁ hz hx f₂
    have h₂ := absolute_le ((atMost_absolute (dropoutFactor q k.keep * k.value)).add h₁)
    rw [show dropoutFactor q k.keep * k.value + (k.used - dropoutFactor q k.keep * k.value)
      = k.used by grind] at h₂
    refine Std.le_trans h₂ ?_
    clear h₁ h₂ f₁ f₂ factors close hcost u₁ u₂ u₃ v₁ v₂ v₃ hA hN
    grind
  obtain ⟨part₀, companion, quotient⟩ := underflow_quotient hp hν run hνq
    (by
      obtain ⟨k, h, hs⟩ := attained
      rw [computed]
      exact ⟨_, List.mem_map_of_mem h, hs⟩)
    (c := c) (by
      rw [computed]
      intro key hkey s hs
      obtain ⟨k, h, rfl⟩ := List.mem_map.mp hkey
      exact close k h s hs)
    hr ha hD₁ (by rw [u₃, ← v₃]; exact left) hT
    (G := 1 + gamma (roundings + 6) (moreRoundings p (roundings + 6) (z + numeral 5)).accumulation)
    (by
      have hA' := hA
      show _ ≤ 1 + gamma (roundings + 6)
        (p.accumulation * (numeral (roundings + 6) + (z + numeral 5)) / numeral (roundings + 6))
      clear factors close hcost u₁ u₂ u₃ v₁ v₂ v₃ hV
      grind) hV result
  have within : ∀ t, RoundedTimes p.accumulation 5 (part₀.o / part₀.l) t →
      AtMost (dropoutTolerance p z roundings rescalings negligible dropped)
        (t - (attend row)[j]) := fun t ht => by
    have := rounded_dropout hp companion.run hq hq₁ hz factors (companion.keys.trans computed) hj
      same attained close (by rw [companion.rescalings]; exact hr)
      (by rw [companion.additions, companion.rescalings]; exact ha) (by rwa [← hdropped]) hN hD' ht
      negligible
    rwa [← hdropped] at this
  have exact_eq : exactOutput (boundedWeights (moreRoundings p (roundings + 6) (z + numeral 5))
      rescalings dropped) = (attend row)[j] := by
    obtain ⟨k, h, hs, -⟩ := attained
    refine exactOutput_eq_attend hj ?_ ⟨⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩, ?_,
      hs⟩ _ rescalings
    · rw [hdropped, List.map_map, ← same]
      rfl
    · rw [hdropped]
      exact List.mem_map_of_mem h
  have hM := (atMost_absolute (attend row)[j]).add
    (within _ (roundedTimes_itself hp.accumulation))
  rw [show ∀ a b : R, a + (b - a) = b from fun a b => by grind] at hM
  obtain ⟨y, hy, hyo⟩ := quotient _ hM
  have total := (within y hy).add hyo
  rw [show ∀ a b : R, b - (attend row)[j] + (a - b) = a - (attend row)[j] from fun a b => by grind]
    at total
  rw [u₂, ← v₂, u₃, ← v₃] at total
  rw [underflowError, exact_eq]
  exact total

end Attention.Proof
