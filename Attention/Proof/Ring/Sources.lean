module

public import Attention.Proof.Ring.Ends
public import Attention.Spec.RingNetBackward
import Attention.Algebra.FinRange

public section

/-! # Whom a device of the ring meets -/

namespace Attention.Proof

open Spec

variable {n : Nat}

/-- The number of the device whose keys are held. -/
theorem source_val : ∀ (t : Nat) (i : Fin n), t < n →
    (source i t).val = if t ≤ i.val then i.val - t else i.val + n - t
  | 0, _, _ => by simp [source]
  | t + 1, i, h => by
    rw [source, source_val t (before i) (by omega)]
    simp only [before]
    split <;> split <;> split <;> omega

/-- In as many rounds as there are devices, each device meets each once. -/
theorem sources_perm (i : Fin n) : ((List.range n).map (source i)).Perm (List.finRange n) := by
  have met : ((List.range n).map (source i)).Nodup := by
    refine List.pairwise_map.mpr (List.Pairwise.imp_of_mem ?_ List.pairwise_lt_range)
    intro a b ha hb hab e
    have := congrArg Fin.val e
    rw [source_val a i (by simpa using ha), source_val b i (by simpa using hb)] at this
    have := List.mem_range.mp hb
    grind
  refine List.perm_iff_count.mpr fun j => ?_
  rw [met.count, count_finRange, if_pos]
  refine List.mem_map.mpr ⟨if j.val ≤ i.val then i.val - j.val else i.val + n - j.val, ?_, ?_⟩
  · rw [List.mem_range]; split <;> omega
  · ext
    rw [source_val _ i (by split <;> omega)]
    grind

/-- Device by device, and so in several steps. -/
theorem source_add (b : Nat) : ∀ (a : Nat) (i : Fin n), source (source i a) b = source i (a + b)
  | 0, i => by rw [Nat.zero_add]; rfl
  | a + 1, i => by rw [Nat.add_right_comm]; exact source_add b a (before i)

/-- Once around. -/
theorem source_around (i : Fin n) : source i n = i := by
  have h := source_add 1 (n - 1) i
  have : n - 1 + 1 = n := by omega
  rw [this] at h
  rw [← h]
  ext
  have := source_val (n - 1) i (by omega)
  simp only [source, before, this]
  split <;> split <;> omega

/-- A device holds the keys of the one that it holds the keys of. -/
theorem source_holder (i : Fin n) : ∀ t : Nat, source (holder i t) t = i
  | 0 => rfl
  | t + 1 => by
    rw [holder, source, before_following]
    exact source_holder i t

/-- And the other way round. -/
theorem holder_source : ∀ (t : Nat) (i : Fin n), holder (source i t) t = i
  | 0, _ => rfl
  | t + 1, i => by
    rw [holder, source, holder_source t (before i), following_before]

end Attention.Proof
