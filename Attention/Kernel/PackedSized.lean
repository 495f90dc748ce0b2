module

public import Attention.Kernel.Conditions
public import Attention.Kernel.PackedLaunch

public section

/-! # What a launch for packed sequences is told of its tensors' sizes

As in `Packed.Given`, without what lies in memory: of the numbers that say where sequences begin
nothing is asked. -/

namespace Attention.Kernel

open Spec

universe u

variable {R : Type u}

namespace Packed

variable {n num_kv_heads group max_q_len q_len kv_len d d_v : Nat}

/-- Sizes are as given: of n sequences in tensors of `q_len` rows of queries and `kv_len` of keys,
`num_kv_heads` heads of keys and `group` times as many of queries, with vectors of d components,
values of d_v. -/
structure Sized (a : Forward.Args R)
    (n num_kv_heads group max_q_len q_len kv_len d d_v : Nat) : Prop where
  BM : 0 < a.BLOCK_M
  BN : 0 < a.BLOCK_N
  /-- Heads and values fill their tiles. -/
  even : a.BLOCK_D = d
  evenValue : a.BLOCK_V = d_v
  numHeads : a.num_heads = (num_kv_heads * group : Nat)
  perHead : a.group = group
  dim : a.head_dim = d
  valueDim : a.value_dim = d_v
  maxLen : a.max_q_len = max_q_len
  qLen : a.q_len = q_len
  kvLen : a.kv_len = kv_len

/-- Whatever the numbers are that say where sequences begin: what the kernel takes for a sequence's
rows are rows of the tensor. -/
theorem rows_inside {total : Nat} (cu : Mem Int) (stride b : Int) :
    0 ≤ Forward.firstRow cu stride total b ∧
      Forward.firstRow cu stride total b ≤ Forward.stopRow cu stride total b ∧
      Forward.stopRow cu stride total b ≤ total := by
  unfold Forward.stopRow Forward.firstRow
  omega

variable {a : Forward.Args R} {pid : Int}

/-- A program's sequence and heads are within their bounds, and its rows are not below 0. -/
theorem Sized.place (S : Sized a n num_kv_heads group max_q_len q_len kv_len d d_v)
    (h₀ : 0 ≤ pid)
    (h₁ : pid < (numTiles max_q_len a.BLOCK_M * (n * (num_kv_heads * group)) : Nat))
    (left right : Option Int) (atEnd : Bool) :
    (0 ≤ Forward.sequence a pid ∧ Forward.sequence a pid < n) ∧
      (0 ≤ (Forward.inSequence a left right atEnd pid).head pid ∧
        (Forward.inSequence a left right atEnd pid).head pid < (num_kv_heads * group : Nat)) ∧
      (0 ≤ (Forward.inSequence a left right atEnd pid).kvHead pid ∧
        (Forward.inSequence a left right atEnd pid).kvHead pid < num_kv_heads) ∧
      ∀ i, 0 ≤ (Forward.inSequence a left right atEnd pid).row pid i := by
  obtain ⟨c, h, ec, eh, hr⟩ := Problem.place_row (p := Forward.inSequence a left right atEnd pid)
    (batches := n) S.BM S.maxLen S.numHeads h₀ h₁
  have ec : Forward.sequence a pid = c := ec
  have ek : (Forward.inSequence a left right atEnd pid).kvHead pid =
      (Spec.kvHead h : Fin num_kv_heads) := by
    rw [Problem.kvHead, eh,
      show (Forward.inSequence a left right atEnd pid).group = group from S.perHead,
      Int.tdiv_eq_ediv_of_nonneg (by omega)]
    exact (Int.natCast_ediv _ _).symm
  exact ⟨by omega, by omega, by omega, hr⟩

end Packed

end Attention.Kernel
