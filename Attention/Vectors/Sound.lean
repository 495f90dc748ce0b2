module

public import Attention.Proof.Flash.Basic
public import Attention.Vectors.Case

public section

/-! # What is run is what is proved

The theorems speak of every lawful exponential; the vectors are made with the operations that `Int`
and `Rat` bring. Here the theorem is stated of the latter, so that the two cannot drift apart.
Nothing is proved of the program that calls these definitions, `Algorithm.run`. -/

namespace Attention.Vectors

open Spec

/-- **vectors-sound**: over the exact model, with the very operations that the vector program runs,
the tile loop computes attention, for all tile sizes of at least 1: an instance of
`flash_eq_attention`. -/
theorem flash_eq_attention_exact {q_len kv_len d d_v block_m block_n : Nat} (scale : Int)
    (mask : Mask q_len kv_len) (Q : Matrix Int q_len d) (K : Matrix Int kv_len d)
    (V : Matrix Rat kv_len d_v) (hm : 0 < block_m) (hn : 0 < block_n) :
    flash scale mask.toScoreMod Q K V block_m block_n
      = (attention scale mask.toScoreMod Q K V).toList :=
  Proof.flash_eq_attention scale mask.toScoreMod Q K V hm hn

/-- Maximum and denominator of a row are what they should be, with the operations that are run. -/
theorem ofBlock_invariant_exact {d : Nat} (row : List (ScoredValue Int Rat d)) :
    Proof.OnlineInvariant (Online.ofBlock row) row :=
  Proof.ofBlock_invariant row

end Attention.Vectors
