module

public import Attention.Spec.Flash
public import Attention.Spec.Rows

public section

/-! # A shared prefix, computed once

Several queries, each of another request, begin with the same keys. One pass over the tiles of the
prefix updates the states of all of them; each goes on over its own suffix by itself; the two states
of each are merged.
Source: Ye et al. 2025, "FlashInfer", section 3.1 (composable formats); Juravsky et al. 2024,
"Hydragen", section 3. -/

namespace Attention.Spec

open Online

universe u v

variable {S : Type u} {R : Type v} {q_len prefix_len d d_v : Nat}
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : Fin q_len → Nat → S → Option S)
variable (Q : Matrix S q_len d)

/-- The states of all queries after one pass over the shared prefix in tiles of `block_n` keys. -/
@[expose] def prefixStates (K : Matrix S prefix_len d) (V : Matrix R prefix_len d_v)
    (block_n : Nat) : List (State S R d_v) :=
  let rows := List.finRange q_len
  (tiles block_n (List.finRange prefix_len)).foldl
    (stepTile (scored scale (fun i j => modify i j) Q K V) rows) (rows.map fun _ => empty)

/-- The state of query `i` over its own suffix, which begins at position `prefix_len`, in tiles of
`block_n` keys. -/
@[expose] def suffixState (prefix_len : Nat) (i : Fin q_len)
    (suffix : List (KeyValue S R d d_v)) (block_n : Nat) : State S R d_v :=
  online (tiles block_n (scoredRows scale (fun j => modify i (prefix_len + j)) Q[i] suffix))

/-- Attention of each query over the shared prefix and its own suffix. -/
@[expose] def cascade [Div R] (K : Matrix S prefix_len d) (V : Matrix R prefix_len d_v)
    (suffix : Fin q_len → List (KeyValue S R d d_v)) (block_n : Nat) : List (Vec R d_v) :=
  List.zipWith
    (fun i s => finish (merge s (suffixState scale modify Q prefix_len i (suffix i) block_n)))
    (List.finRange q_len) (prefixStates scale modify Q K V block_n)

end Attention.Spec
