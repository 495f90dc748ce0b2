module

public import Attention.Vectors.LargeFamilies
public import Attention.Vectors.NaturalFamilies
public import Attention.Vectors.NaturalGradient

public section

/-! # The families of the backward pass with the natural exponential

What the exact model cannot hold: softcap, biases, slopes, sinks and the default scale. -/

namespace Attention.Vectors

open Spec

/-- Sizes of a case: heads of keys and values, query heads for each, queries and keys. -/
abbrev Shape := Nat × Nat × Nat × Nat

/-- A shape as text. -/
def shapeText : Shape → String
  | (num_kv_heads, group, q_len, kv_len) =>
    s!"{num_kv_heads * group} query heads, {num_kv_heads} of keys and values, q_len {q_len}, \
      kv_len {kv_len}"

/-- Random inputs with entries of Q and K that are multiples of 1/16 between −`bound` and `bound`,
and the default scale unless one is given. byLse: as in `gradientCase`. -/
def naturalGradient (reason : String) (shape : Shape) (mask : MaskKind)
    (byLse : Bool) (scale : Option Rat := none) (head_dim : Nat := 4) (bound : Nat := 2) :
    Gen NaturalGradientCase := do
  let (num_kv_heads, group, q_len, kv_len) := shape
  let num_heads := num_kv_heads * group
  let value_dim := 2
  let rows (heads n : Nat) : Gen (List (List (List Rat))) := draws (draws (draws
    (return mkRat (← between (-(16 * bound)) (16 * bound)) 16) head_dim) n) heads
  return { reason := s!"{reason}; {maskText mask}; {shapeText shape}"
           scale, num_kv_heads, group, q_len, kv_len, head_dim, value_dim, mask
           q := ← rows num_heads q_len, k := ← rows num_kv_heads kv_len
           v := ← draws (valueRows kv_len value_dim) num_kv_heads
           dO := ← draws (valueRows q_len value_dim) num_heads
           dLse := ← logSumExpGradients byLse num_heads q_len }

/-- Every query but one sees some keys. -/
def oneBlind (q_len kv_len blind : Nat) : MaskKind :=
  maskWhere q_len kv_len fun i j => i != blind && (i + j) % 4 != 3

/-- Random sinks: multiples of 1/4 between −2 and 2. -/
def sinkNumbers (n : Nat) : Gen (List Rat) := draws (return mkRat (← between (-8) 8) 4) n

/-- Gradients through softcap. -/
def gradientsSoftcap : Family NaturalGradientCase where
  name := "gradient-softcap"
  about := "Gradients through softcap: without the factor 1 - tanh^2, with that of another score, \
    or with it in the gradient by the bias, they show."
  theoremId := "gradient-enclosed"
  cases := each "cap"
    [(50, (1, 1, 2, 5), .none, false), (2, (1, 1, 3, 4), .none, true),
     (1, (1, 2, 2, 3), .none, false), (4, (2, 2, 3, 4), .none, true),
     (1 / 2, (1, 1, 4, 4), .causal, false), (3, (1, 1, 3, 6), .causalBottomRight, true),
     (2, (1, 1, 17, 3), .none, false), (2, (1, 1, 2, 18), .none, true),
     (5, (1, 3, 2, 4), .causal, false), (1, (1, 1, 6, 6), .window .topLeft (some 1) (some 1), true),
     (2, (1, 2, 4, 7), .window .bottomRight (some 2) (some 0), false),
     (2, (1, 1, 4, 5), oneBlind 4 5 1, true), (30, (2, 1, 3, 5), oneBlind 3 5 2, false),
     (2, (1, 1, 5, 3), .causalBottomRight, true)]
    fun ((cap : Rat), shape, mask, byLse) => do
      let c ← naturalGradient s!"cap {cap}" shape mask byLse
      return { c with softcap := some cap }

/-- Gradients by biases of every shape. -/
def gradientsBias : Family NaturalGradientCase where
  name := "gradient-bias"
  about := "Gradients by a bias: one that heads or queries share gets the sum over them. A sum \
    that is left out, or taken over others, or a number where the bias masks, shows."
  theoremId := "gradient-enclosed"
  cases := each "shape"
    [((1, 1, 2, 3), 1, 2, 0, .none, false), ((1, 2, 3, 4), 2, 3, 0, .none, true),
     ((1, 2, 3, 4), 1, 3, 0, .none, false), ((2, 2, 2, 5), 1, 2, 0, .none, true),
     ((1, 2, 3, 4), 2, 1, 0, .none, false), ((2, 1, 4, 3), 1, 1, 0, .none, true),
     ((1, 1, 4, 6), 1, 4, 2, .none, false), ((1, 3, 3, 5), 1, 3, 2, .none, true),
     ((1, 2, 4, 5), 1, 1, 2, .none, false), ((1, 2, 4, 4), 1, 4, 0, .causal, true),
     ((2, 2, 3, 6), 4, 1, 1, .causalBottomRight, false), ((1, 1, 17, 3), 1, 1, 0, .none, true),
     ((1, 1, 2, 18), 1, 2, 1, .none, false), ((1, 2, 3, 5), 1, 3, 0, oneBlind 3 5 1, true),
     ((1, 2, 6, 6), 1, 6, 0, .window .topLeft (some 2) (some 0), false)]
    fun ((shape : Shape), (heads : Nat), (rows : Nat), masked, mask, byLse) => do
      let c ← naturalGradient s!"bias of {heads} heads and {rows} queries" shape mask byLse
      return { c with bias := some (← draws (biasRows rows c.kv_len masked) heads) }

/-- Gradients by slopes. -/
def gradientsAlibi : Family NaturalGradientCase where
  name := "gradient-alibi"
  about := "Gradients by ALiBi's slopes: minus the distance times the gradient by the score, \
    summed in each head. With the other sign, another alignment, or one-sided distances, they show."
  theoremId := "gradient-enclosed"
  cases := each "shape"
    [((1, 1, 4, 4), .topLeft, .none, false), ((1, 2, 3, 5), .topLeft, .none, true),
     ((2, 2, 2, 4), .topLeft, .none, false), ((1, 1, 5, 5), .topLeft, .causal, true),
     ((1, 2, 3, 7), .bottomRight, .causalBottomRight, false),
     ((1, 1, 2, 18), .bottomRight, .none, true), ((1, 1, 17, 4), .topLeft, .none, false),
     ((1, 3, 4, 3), .bottomRight, .none, true), ((2, 1, 3, 9), .topLeft, .causal, false),
     ((1, 1, 1, 7), .bottomRight, .none, true),
     ((1, 2, 6, 6), .topLeft, .window .topLeft (some 1) (some 1), false),
     ((1, 2, 4, 7), .bottomRight, .window .bottomRight (some 2) (some 0), true),
     ((1, 2, 4, 5), .topLeft, oneBlind 4 5 2, false),
     ((2, 2, 3, 3), .bottomRight, oneBlind 3 3 0, true)]
    fun (shape, alignment, mask, byLse) => do
      let c ← naturalGradient s!"slopes, {alignmentName alignment}" shape mask byLse
      let slopes ← draws (return mkRat (1 + (← below 8)) 8) (c.num_kv_heads * c.group)
      return { c with alibi := some (alignment, slopes) }

/-- Gradients by sinks. -/
def gradientsSinks : Family NaturalGradientCase where
  name := "gradient-sinks"
  about := "Gradients beside a sink, and by it: minus its weight times D, summed over the queries \
    of its head. With the other sign, without the gradient of the log-sum-exp, or where a query \
    sees no key but the sink, they show."
  theoremId := "gradient-sink-enclosed"
  cases := each "shape"
    [((1, 1, 1, 1), .none, false), ((1, 1, 3, 5), .none, true), ((1, 2, 3, 4), .none, false),
     ((2, 2, 2, 5), .none, true), ((1, 1, 4, 4), .causal, false), ((1, 3, 3, 3), .causal, true),
     ((1, 2, 3, 6), .causalBottomRight, false), ((1, 1, 6, 3), .causalBottomRight, true),
     ((1, 1, 17, 3), .none, false), ((1, 1, 2, 18), .none, true),
     ((1, 2, 6, 6), .window .topLeft (some 1) (some 1), false),
     ((2, 1, 4, 7), .window .bottomRight (some 2) (some 0), true),
     ((1, 2, 4, 5), oneBlind 4 5 1, false), ((2, 2, 3, 4), oneBlind 3 4 0, true),
     ((1, 1, 3, 4), .keyLength 0, false)]
    fun (shape, mask, byLse) => do
      let c ← naturalGradient "a sink in each head" shape mask byLse
      return { c with sinks := some (← sinkNumbers (c.num_kv_heads * c.group)) }

/-- Gradients with every change of the scores at once. -/
def gradientsScoreMods : Family NaturalGradientCase where
  name := "gradient-score-mods"
  about := "Gradients with softcap, ALiBi, bias, mask and sinks together, in this order, with \
    given scales of both signs: what is right alone and wrong together shows."
  theoremId := "gradient-sink-enclosed"
  cases := each "shape"
    [((1, 1, 3, 4), .none, none, false), ((1, 2, 3, 5), .none, some 1, true),
     ((2, 1, 4, 4), .causal, none, false), ((2, 2, 3, 5), .causalBottomRight, some (1 / 2), true),
     ((1, 1, 2, 18), .none, none, false), ((1, 1, 17, 3), .causalBottomRight, some (-1 / 2), true),
     ((1, 2, 5, 5), .window .topLeft (some 2) (some 1), some 1, false),
     ((1, 2, 4, 6), .window .bottomRight (some 3) (some 0), none, true),
     ((1, 2, 4, 5), oneBlind 4 5 1, none, false),
     ((2, 2, 3, 4), oneBlind 3 4 2, some (1 / 4), true),
     ((1, 2, 3, 6), .keyLength 4, some (-1), false)]
    fun (shape, mask, (scale : Option Rat), byLse) => do
      let c ← naturalGradient "all together" shape mask byLse scale
      let num_heads := c.num_kv_heads * c.group
      let bias ← biasRows c.q_len c.kv_len 1
      let slopes ← draws (return mkRat (1 + (← below 8)) 16) num_heads
      return { c with softcap := some 4, alibi := some (.bottomRight, slopes), bias := some [bias]
                      sinks := some (← sinkNumbers num_heads) }

end Attention.Vectors
