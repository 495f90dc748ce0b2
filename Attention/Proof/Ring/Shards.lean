module

public import Attention.Spec.Shards
import Attention.Algebra.FinRange

public section

/-! # Shards by an owner of each place -/

namespace Attention.Proof

open Spec

variable {n len : Nat}

/-- **shards-partition**: where every place has an owner, each is on exactly one device: contiguous,
zigzag and striped shards, of lengths that no number divides, too. -/
theorem placesOf_perm (owner : Fin len → Fin n) :
    ((List.finRange n).flatMap (placesOf owner)).Perm (List.finRange len) := by
  refine List.perm_iff_count.mpr fun j => ?_
  rw [count_finRange, List.count_flatMap]
  have each : ∀ i : Fin n, (placesOf owner i).count j = if i = owner j then 1 else 0 := fun i => by
    have nodup : (placesOf owner i).Nodup := List.Pairwise.filter _ (nodup_finRange len)
    rw [nodup.count]
    by_cases h : owner j = i
    · subst h; simp [placesOf]
    · have h' : ¬ i = owner j := fun e => h e.symm
      simp [placesOf, h, h']
  simp only [Function.comp_def, each]
  suffices ∀ xs : List (Fin n), (xs.map fun i => if i = owner j then 1 else 0).sum
      = xs.count (owner j) by
    rw [this, count_finRange]
  intro xs
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [List.map_cons, List.sum_cons, ih, List.count_cons, Nat.add_comm]
    simp

end Attention.Proof
