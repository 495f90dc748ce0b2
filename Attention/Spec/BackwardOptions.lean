module

public import Attention.Spec.BackwardHeads
public import Attention.Spec.Sink
public import Attention.Spec.Slopes

public section

/-! # The gradients by what changes the scores: biases, slopes of ALiBi, sinks

All come from dS, the gradients by the transformed scores. A sink is a key of score `sink` and value
0, so its gradient is the sum of one more column of dS.
Source: Dao et al. 2022, "FlashAttention", appendix B.2, for dS; PyTorch's `sum_to_size` for what is
broadcast. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v num_kv_heads group : Nat}

/-! ## Biases, slopes -/

section
variable [Add R] [OfNat R 0]

/-- A sum over the rows of a matrix, as a matrix of one row: the gradient by a bias that all queries
share. One that all heads share gets `sumMatrices`. -/
@[expose] def sumRows {m n : Nat} (A : Matrix R m n) : Matrix R 1 n :=
  Vec.ofFn fun _ => Vec.sumOver (fun i : Fin m => A[i]) (List.finRange m)

/-- The gradient by the slope of a head's linear biases: Σ dSᵢⱼ · (−distance of i and j). -/
@[expose] def slopeGradient [Mul R] [IntCast R] (alignment : Alignment)
    (dS : Matrix R q_len kv_len) : R :=
  sumOver (fun i : Fin q_len =>
    sumOver (fun j : Fin kv_len => dS[i][j] * ((-(distance alignment i j : Int) : Int) : R))
      (List.finRange kv_len))
    (List.finRange q_len)

end

/-! ## Sinks -/

/-- The part of a sink, before the parts of the keys. -/
@[expose] def sinkFirst {α : Type v} (ofSink : α) (ofKey : Fin kv_len → α) (j : Fin (kv_len + 1)) :
    α :=
  if h : j.val = 0 then ofSink else ofKey ⟨j.val - 1, by omega⟩

/-- Keys, or values, behind those of a sink, which are 0. -/
@[expose] def rowsBehindSink [OfNat R 0] (A : Matrix R kv_len d) : Matrix R (kv_len + 1) d :=
  Vec.ofFn (sinkFirst Vec.zero fun j => A[j])

/-- Whatever its product with a query, the score of a sink is `sink`. -/
@[expose] def ScoreMod.behindSink (sink : S) (modify : ScoreMod S q_len kv_len) :
    ScoreMod S q_len (kv_len + 1) :=
  fun i j s => sinkFirst (some sink) (fun k => modify i k s) j

/-- And does not change with it. -/
@[expose] def ScoreSlope.behindSink [OfNat R 0] (slope : ScoreSlope S R q_len kv_len) :
    ScoreSlope S R q_len (kv_len + 1) :=
  fun i j s => sinkFirst 0 (fun k => slope i k s) j

/-- Without the first row, that of a sink. -/
@[expose] def rowsOfKeys (A : Matrix R (kv_len + 1) d) : Matrix R kv_len d :=
  Vec.ofFn fun j => A[j.succ]

/-- The gradients of a loss by the inputs of grouped-query attention with sinks. -/
structure SinkGradients (R : Type v) (q_len kv_len d d_v num_heads num_kv_heads : Nat) where
  /-- By queries, keys, values and a bias. -/
  inputs : GroupedGradients R q_len kv_len d d_v num_heads num_kv_heads
  /-- By the sink of each query head. -/
  dSinks : Vec R num_heads

variable [Add S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [Exp S R]

/-- The backward pass of grouped-query attention in which each query head has a sink: that of
attention with one more key. -/
@[expose] def sinkVjp (scale : S)
    (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (slope : Fin (num_kv_heads * group) → ScoreSlope S R q_len kv_len)
    (sinks : Vec S (num_kv_heads * group))
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads)
    (toValue : S → R) (dO : Vector (Matrix R q_len d_v) (num_kv_heads * group))
    (dLse : Vector (Vec R q_len) (num_kv_heads * group)) :
    SinkGradients R q_len kv_len d d_v (num_kv_heads * group) num_kv_heads :=
  let g := groupedQueryVjp scale (fun h => (modify h).behindSink sinks[h])
    (fun h => (slope h).behindSink) Q (Vec.ofFn fun c => rowsBehindSink K[c])
    (Vec.ofFn fun c => rowsBehindSink V[c]) toValue dO dLse
  { inputs :=
      { dQ := g.dQ
        dK := Vec.ofFn fun c => rowsOfKeys g.dK[c]
        dV := Vec.ofFn fun c => rowsOfKeys g.dV[c]
        dBias := Vec.ofFn fun h => Vec.ofFn fun i => Vec.ofFn fun j => g.dBias[h][i][j.succ] }
    dSinks := Vec.ofFn fun h => sumOver (fun i : Fin q_len => g.dBias[h][i][(0 : Fin (kv_len + 1))])
      (List.finRange q_len) }

end Attention.Spec
