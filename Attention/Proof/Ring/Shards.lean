module

public import Attention.Spec.Shards

public section

/-! # Shards by an owner of each place -/

namespace Attention.Proof

open Spec

variable {n len : Nat}

private theorem finRange_nodup (m : Nat) : (List.finRange m).Nodup :=
  List.pairwise_iff_getElem.mpr fun i j _ _ hij => by
    simp only [List.getElem_finRange, ne_eq, Fin.ext_iff, Fin.val_cast]
    omega

/-- **shards-partition**: where every place has an owner, each is on exactly one device: contiguous,
zigzag and striped shards, of lengths that no number divides, too. -/
theorem placesOf_perm (owner : Fin len → Fin n) :
    ((List.finRange n).flatMap (placesOf owner)).Perm (List.finRange len) := by
  refine List.perm_iff_count.mpr fun j => ?_
  rw [(finRange_nodup len).count, if_pos (List.mem_finRange j), List.count_flatMap]
  have each : ∀ i : Fin n, (placesOf owner i).count j = if i = owner j then 1 else 0 := fun i => by
    have nodup : (placesOf owner i).Nodup := List.Pairwise.filter _ (finRange_nodup len)
    rw [nodup.count]
    by_cases h : owner j = i
    · subst h; simp [placesOf]
    · have h' : ¬ i = owner j := fun e => h e.symm
      simp [placesOf, h, h']
  simp only [Function.comp_def, each]
  suffices ∀ xs : List (Fin n), (xs.map fun i => if i = owner j then 1 else 0).sum
      = xs.count (owner j) by
    rw [this, (finRange_nodup n).count, if_pos (List.mem_finRange _)]
  intro xs
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [List.map_cons, List.sum_cons, ih, List.count_cons, Nat.add_comm]
    simp

end Attention.Proof
