module

public import Attention.Spec.Combine
public import Attention.Proof.Softmax.LogSumExp

public section

/-! # The outputs of splits, combined by their log-sum-exps, are attention -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v w

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat} {α : Type w}

/-- The numerator of attention is the attention multiplied by the denominator. -/
theorem denominator_mul_attend (row : List (ScoredValue S R d)) {j : Nat} (h : j < d) :
    denominator (row.map (·.score)) * (attend row)[j] = numerator row j h := by
  rw [getElem_attend]
  by_cases h₀ : (denominator (row.map (·.score)) : R) = 0
  · have hs := List.forall_mem_map.mp (denominator_eq_zero.mp h₀)
    have : numerator row j h = 0 := sumOver_eq_zero fun key hk => by
      rw [hs key hk, weight, Semiring.zero_mul]
    rw [h₀, this, Semiring.zero_mul]
  · exact OrderedField.mul_div_cancel h₀ _

/-- Combining what the splits have written is attention over the splits, each taken for one key: its
score is the log-sum-exp, its value the output. -/
theorem combine_eq_attend {L : Option S} {parts : List (Partial S R d)}
    (hL : IsLogSumExp R L (parts.map (·.lse))) :
    combine L parts = attend (parts.map Partial.toKey) := by
  refine Vector.ext fun j hj => ?_
  have hd : (weight L : R) = denominator ((parts.map Partial.toKey).map (·.score)) := by
    rw [List.map_map]
    exact hL
  rw [getElem_attend, ← hd, combine, Vec.getElem_sumOver]
  simp only [Vec.getElem_smul]
  cases L with
  | none =>
    rw [weight, Field.div_eq_mul_inv, Field.inv_zero, Semiring.mul_zero]
    exact sumOver_eq_zero fun part _ => by rw [rescale_none_right, Semiring.zero_mul]
  | some L =>
    have h : numerator (parts.map Partial.toKey) j hj
        = exp L * sumOver (fun part : Partial S R d =>
            rescale part.lse (some L) * part.o[j]) parts := by
      rw [numerator, sumOver_map, ← sumOver_mul_left]
      exact sumOver_congr fun part _ => by
        rw [← Semiring.mul_assoc, exp_mul_rescale]; rfl
    have h₀ := exp_ne_zero (R := R) L
    rw [h, weight]
    grind

private theorem numerator_splits {splits : List α} {part : α → Partial S R d}
    {row : α → List (ScoredValue S R d)} (h : ∀ x ∈ splits, IsPartial (part x) (row x))
    {j : Nat} (hj : j < d) :
    numerator (splits.map fun x => (part x).toKey) j hj = numerator (splits.flatMap row) j hj := by
  induction splits with
  | nil => rfl
  | cons x splits ih =>
    have ih := ih fun y hy => h y (by simp [hy])
    obtain ⟨ho, hL⟩ := h x (by simp)
    simp only [numerator, List.map_cons, List.flatMap_cons, sumOver_cons, sumOver_append] at ih ⊢
    rw [ih]
    congr 1
    show weight (part x).lse * (part x).o[j] = numerator (row x) j hj
    rw [ho, hL, denominator_mul_attend]

/-- **splits-as-keys**: attention over splits, each taken for one key with its log-sum-exp as score
and its output as value, is attention over all their keys. No logarithm of the whole is needed. -/
theorem attend_splits {splits : List α} {part : α → Partial S R d}
    {row : α → List (ScoredValue S R d)} (h : ∀ x ∈ splits, IsPartial (part x) (row x)) :
    attend (splits.map fun x => (part x).toKey) = attend (splits.flatMap row) := by
  refine Vector.ext fun j hj => ?_
  have hd : (denominator ((splits.map fun x => (part x).toKey).map (·.score)) : R)
      = denominator ((splits.flatMap row).map (·.score)) := by
    rw [List.map_map, List.map_flatMap]
    exact denominator_flatMap fun x hx => (h x hx).2
  rw [getElem_attend, getElem_attend, hd, numerator_splits h]

/-- **split-kv**: from the outputs and the log-sum-exps of any number of splits, empty and fully
masked ones included, and the log-sum-exp `L` of those, flash-decoding computes the attention over
all keys, and `L` is the log-sum-exp of all scores. -/
theorem combine_isPartial {splits : List α} {part : α → Partial S R d}
    {row : α → List (ScoredValue S R d)} (h : ∀ x ∈ splits, IsPartial (part x) (row x))
    {L : Option S} (hL : IsLogSumExp R L (splits.map fun x => (part x).lse)) :
    IsPartial ⟨combine L (splits.map part), L⟩ (splits.flatMap row) := by
  constructor
  · show combine L (splits.map part) = _
    rw [combine_eq_attend (by rwa [List.map_map]), List.map_map]
    exact attend_splits h
  · show IsLogSumExp R L _
    rw [List.map_flatMap]
    exact (isLogSumExp_flatMap fun x hx => (h x hx).2).mp hL

/-- **split-skipped**: a split with log-sum-exp −∞, whatever its output, changes neither the output
nor the log-sum-exp of all. -/
theorem combine_skip {as bs : List (Partial S R d)} {part : Partial S R d} (h : part.lse = none)
    (L : Option S) :
    combine L (as ++ part :: bs) = combine L (as ++ bs) ∧
    (IsLogSumExp R L ((as ++ part :: bs).map (·.lse)) ↔
      IsLogSumExp R L ((as ++ bs).map (·.lse))) := by
  constructor
  · refine Vector.ext fun j hj => ?_
    simp only [combine, Vec.getElem_sumOver, sumOver_append, sumOver_cons, Vec.getElem_smul, h,
      rescale_none_left, Semiring.zero_mul, AddCommMonoid.zero_add]
  · simp only [IsLogSumExp, denominator, List.map_append, List.map_cons, sumOver_append,
      sumOver_cons, h, weight, AddCommMonoid.zero_add]

/-! ## What a split writes -/

/-- The finished output of online softmax and what a kernel writes as its log-sum-exp are those of
the keys that it has seen. -/
theorem online_isPartial {blocks : List (List (ScoredValue S R d))} {L : Option S}
    (h : (online blocks).HasLogSumExp L) :
    IsPartial ⟨finish (online blocks), L⟩ blocks.flatten :=
  ⟨online_any_blocks blocks, (online_hasLogSumExp blocks).mp h⟩

/-- **flash-decoding**: each split by online softmax over its own tiles, the outputs combined by the
log-sum-exps that the kernel writes: that is the attention over the keys of all splits. -/
theorem flashDecoding {splits : List α} {blocks : α → List (List (ScoredValue S R d))}
    {lse : α → Option S} (h : ∀ x ∈ splits, (online (blocks x)).HasLogSumExp (lse x))
    {L : Option S} (hL : IsLogSumExp R L (splits.map lse)) :
    combine L (splits.map fun x => ⟨finish (online (blocks x)), lse x⟩)
      = attend (splits.flatMap fun x => (blocks x).flatten) :=
  (combine_isPartial (fun x hx => online_isPartial (h x hx)) hL).1

end Attention.Proof
