module

public import Attention.Claims.Memory.Basic
public import Attention.Claims.Attention.Similarity
public import Attention.Model.MemoryReads

public section

/-! # What every program for attention has to read

No program of the model can compute attention and leave values unread, whatever it is: the counts
cannot be had for less by reading in secret. -/

namespace Attention.Claims

open Spec Model Lean.Grind

universe u

variable {S R : Type u} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}

/-- **values-loaded**: a program whose output is attention for all values loads row j of V (array 2
of slow memory) if any query may attend to key j. -/
theorem loads_of_attention (program : Program S R (flashArrays d d_v) [] []) (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (h : ∀ V : Matrix R kv_len d_v,
      (program.run (.start (flashMemory Q K V []))).slow.get flashOutput
        = (attention scale modify Q K V).toList)
    (hd : 0 < d_v) {i : Fin q_len} {j : Fin kv_len} (hs : score scale modify Q K i j ≠ none) :
    program.Loads 2 j := by
  refine Classical.byContradiction fun hl => ?_
  let V : Matrix R kv_len d_v := Vec.ofFn fun _ => Vec.zero
  let V' : Matrix R kv_len d_v := Vec.ofFn fun k => if k = j then Vec.ofFn fun _ => 1 else Vec.zero
  have hV : ∀ k, k ≠ j → V[k] = V'[k] := fun k hk => by simp [V, V', hk]
  have same : Memory.SameBut (S := S) j.val (.there (.there .here) : Place (flashArrays d d_v) _)
      (flashMemory Q K V []) (flashMemory Q K V' []) := by
    refine .there (.there (.here (by simp) fun k hk => ?_))
    by_cases hk' : k < kv_len
    · have := hV ⟨k, hk'⟩ fun e => hk (congrArg Fin.val e)
      simpa [hk'] using this
    · simp [hk']
  have run := (program.run_of_not_loads (place := .there (.there .here)) hl
    (machine := .start (flashMemory Q K V [])) (machine' := .start (flashMemory Q K V' []))
    rfl same).2
  have out : attention scale modify Q K V = attention scale modify Q K V' := by
    rw [← Vector.toList_inj, ← h V, ← h V']
    exact List.ext_getElem? fun k => run.getElem? flashOutput fun e => by
      simp [flashOutput, Place.index] at e
  have one : (0 : R) ≠ 1 := Field.zero_ne_one
  exact attention_value_ne scale modify Q K hV hs (c := ⟨0, hd⟩) (by simpa [V, V'] using one)
    (by rw [out])

open Classical in
/-- **values-read**: and so it reads at least kv_len · d_v elements, if any query may attend to each
key: by the counter, whatever the program says of itself. -/
theorem reads_of_attention (program : Program S R (flashArrays d d_v) [] []) (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (h : ∀ V : Matrix R kv_len d_v,
      (program.run (.start (flashMemory Q K V []))).slow.get flashOutput
        = (attention scale modify Q K V).toList)
    (hs : ∀ j, ∃ i, score scale modify Q K i j ≠ none) (V : Matrix R kv_len d_v) :
    kv_len * d_v ≤ (program.run (.start (flashMemory Q K V []))).counts.reads := by
  by_cases hd : 0 < d_v
  · have h₁ := program.reads_run (.there (.there .here)) (c := d_v) (n := kv_len) (fun _ => rfl)
      (.start (flashMemory Q K V [])) (by simp [Machine.start, flashMemory, Memory.get])
    rw [List.countP_eq_length.mpr fun j hj => ?_] at h₁
    · simpa [Machine.start] using h₁
    · obtain ⟨i, hi⟩ := hs ⟨j, List.mem_range.mp hj⟩
      rw [decide_eq_true_eq]
      exact loads_of_attention program scale modify Q K h hd hi
  · simp [show d_v = 0 by omega]

end Attention.Claims
