module

public import Attention.Proof.Online.Cascade
public import Attention.Vectors.Cascade
public import Attention.Vectors.VarlenSound

public section

/-! # What runs is what is proved: a shared prefix

`CascadeCase.run` makes the exact vectors of queries that share a prefix of keys. -/

namespace Attention.Vectors

open Spec Proof

namespace CascadeCase

/-- **cascade-vectors-sound**: if the program gives results for queries with a shared prefix, there
is one for each query: its output is the attention of the query over the keys and values of the
prefix and those of its own suffix, and beside it are the largest score of that row and the
denominator against it. -/
theorem run_sound {c : CascadeCase} {results : List RowResult} (h : c.run = .ok results) :
    results.length = c.q.length ∧
    ∀ (i : Nat) (r : RowResult), results[i]? = some r →
      ∃ (q : Vec Int c.head_dim) (kvs : List (KeyValue Int Rat c.head_dim c.value_dim))
        (suffix : List (List Int) × List (List Rat)),
        c.q[i]? = some q.toList ∧ c.suffixes[i]? = some suffix ∧
        kvs.map (·.1.toList) = c.prefix_k ++ suffix.1 ∧
        kvs.map (·.2.toList) = c.prefix_v ++ suffix.2 ∧
        r.output = (attendRows c.scale (fun _ s => some s) q kvs).toList ∧
        r.Describes (scoredRows c.scale (fun _ s => some s) q kvs) := by
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨hlen, h⟩ := check_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain ⟨suffixes, hsuffixes, h⟩ := bind_ok h
  obtain ⟨hn, h⟩ := check_ok h
  obtain ⟨hout, h⟩ := check_ok h
  obtain rfl := Except.ok.inj h
  clear h
  have hQ := toMatrix_rows hQ
  have hprefix := toKeyValues_rows (d := c.head_dim) (d_v := c.value_dim) (k := c.prefix_k)
    (v := c.prefix_v) (kvs := keyValues K V) (by
      rw [toKeyValues, hK]
      show (toMatrix _ _ _ >>= _) = _
      rw [hV]
      rfl)
  obtain ⟨slen, seach⟩ := mapM_ok hsuffixes
  refine ⟨by simp only [List.length_map, List.length_zip, List.length_finRange, hout]; omega,
    fun i r hr => ?_⟩
  obtain ⟨hi, rfl⟩ := List.getElem?_eq_some_iff.mp hr
  have hi : i < c.q.length := by
    simp only [List.length_map, List.length_zip, List.length_finRange, hout] at hi
    omega
  have hs := toKeyValues_rows (seach i (by omega))
  refine ⟨Q[i], keyValues K V ++ suffixes[i]'(by omega), c.suffixes[i]'(by omega), ?_,
    by simp [hlen, hi], ?_, ?_, ?_, ?_⟩
  · have e : c.q = rowsOf Q := hQ.symm
    conv => lhs; rw [e]
    simp [rowsOf, hi]
  · rw [List.map_append, hprefix.1, hs.1]
    rfl
  · rw [List.map_append, hprefix.2, hs.2]
    rfl
  · simp [rowResult, cascade_eq_attendRows _ _ _ _ _ _ hn, slen, hlen]
  · have hsi : i < suffixes.length := by omega
    have := rowResult_describes
      (scoredRows c.scale (fun _ s => some s) Q[i] (keyValues K V ++ suffixes[i]))
    simpa [hsi] using this _

end CascadeCase

end Attention.Vectors
