module

public import Attention.Spec.Flash

public section

/-! # Attention with a sink

A learned score without a value takes part in the softmax: the weights of the keys sum to less than
1, so that a query may attend to nothing.
Source: Miller 2023, "Attention Is Off By One", where the sink is 0; gpt-oss, `sdpa`, with one
learned sink for each head. -/

namespace Attention.Spec

open Online

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- A row with its sink: one more key, with score `sink` and value 0. -/
@[expose] def withSink [OfNat R 0] (sink : S) (row : List (ScoredValue S R d)) :
    List (ScoredValue S R d) :=
  ⟨some sink, Vec.zero⟩ :: row

/-- Attention of whole matrices, each row with the sink. -/
@[expose] def attentionSink [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R] [OfNat R 0]
    [Exp S R] (scale : S) (modify : ScoreMod S q_len kv_len) (sink : S) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  Vec.ofFn fun i => attend (withSink sink (scored scale modify Q K V i (List.finRange kv_len)))

/-- The state of the sink alone. -/
@[expose] def sinkState [OfNat R 0] [OfNat R 1] (sink : S) : State S R d :=
  ⟨some sink, 1, Vec.zero⟩

/-- Online softmax with a sink: it starts from the state of the sink, not from the empty one. -/
@[expose] def onlineSink [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [OfNat R 1]
    [Exp S R] (sink : S) (blocks : List (List (ScoredValue S R d))) : State S R d :=
  blocks.foldl stepBlock (sinkState sink)

/-- The tile loop of FlashAttention-2 with a sink: each row starts from the state of the sink. -/
@[expose] def flashSink [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
    [Add R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Exp S R]
    (scale : S) (modify : ScoreMod S q_len kv_len) (sink : S) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (block_m block_n : Nat) : List (Vec R d_v) :=
  (tileLoop (sinkState sink) (scored scale modify Q K V) block_m block_n).map finish

end Attention.Spec
