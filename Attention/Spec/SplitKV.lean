module

public import Attention.Spec.Flash

public section

/-! # Decoding with the keys split

With few queries there is little to share out but the keys: they are split, each split is taken by a
tile loop of its own, and the states of the splits are merged.
Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference". The states
are merged before the division here; `combine` is the same with outputs and log-sum-exps. -/

namespace Attention.Spec

open Online

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- The state of query `i` for each split of `split_len` keys, taken `block_n` keys at a time. -/
@[expose] def splitStates (split_len block_n : Nat) (i : Fin q_len) : List (State S R d_v) :=
  (tiles split_len (List.finRange kv_len)).map fun cols =>
    online ((tiles block_n cols).map (scored scale modify Q K V i))

/-- The rows of attention's output, in order, each from the merged states of its splits. -/
@[expose] def splitKV [Div R] (split_len block_n : Nat) : List (Vec R d_v) :=
  (List.finRange q_len).map fun i =>
    finish ((splitStates scale modify Q K V split_len block_n i).foldl merge empty)

end Attention.Spec
