module

public import Attention.Vectors.Families

public section

/-! # The families of softmax itself, of FlashAttention-1's update, and of sinks with score 0 -/

namespace Attention.Vectors

open Spec

/-- The rows of the unit matrix. -/
def unitRows (n : Nat) : List (List Rat) :=
  (List.range n).map fun j => (List.range n).map fun c => if j = c then 1 else 0

/-- The weights themselves. -/
def softmaxWeights : Family Case where
  name := "softmax-weights"
  about := "The values are the unit vectors, so that the output is the row of softmax weights \
    itself: a weight that is too large, or not 0 where its key is masked, shows alone."
  theoremId := "safe-softmax"
  cases :=
    let random := each "random" [(1, 1, 2), (3, 5, 4), (2, 16, 3), (4, 17, 4), (1, 33, 3)]
      fun (q_len, kv_len, head_dim) =>
        randomCase (sizes q_len kv_len head_dim) q_len kv_len head_dim (bound := 2)
    let equal := each "equal" [(7, 0), (16, -5)] fun (kv_len, (s : Int)) =>
      scoresCase s!"{kv_len} equal scores of {s}" 1 kv_len 1 fun _ => s
    let far := each "far" [200, -200, 8000] fun c =>
      scoresCase s!"scores near {c}: exp of the bare score leaves the range of fp32" 1 18 1
        fun j => c - (j % 5 : Nat)
    let spread := each "spread" [8, 100] fun step =>
      scoresCase s!"scores {step} apart: weights underflow one after the other" 1 17 1
        fun j => step * (j * 5 % 17 : Nat)
    let masked := each "masked" [6, 20] fun kv_len =>
      randomCase "masked holes, and a query that may attend to no key" 4 kv_len 3 (bound := 2)
        (mask := maskWhere 4 kv_len fun i j => i != 2 && (i + j) % 3 != 0)
    let causal := each "causal" [9, 18] fun n =>
      randomCase "causal" n n 3 (bound := 2) (mask := .causal)
    (random ++ equal ++ far ++ spread ++ masked ++ causal).map <| Named.map fun c =>
      let n := c.k.length
      { c with value_dim := n, v := unitRows n, algorithm := .safeSoftmax }

/-- States whose output is divided already. -/
def dividedUpdates : Family Case where
  name := "divided-updates"
  about := "FlashAttention-1's update, which holds the output divided: multiplied back by another \
    denominator than it was divided by, or not at all, it shows from the second tile on."
  theoremId := "flash-1-divided"
  cases :=
    let plain := each "plain"
      [(1, 1, 4), (2, 5, 1), (3, 9, 4), (1, 33, 16), (4, 17, 16), (2, 40, 7), (17, 20, 8)]
      fun (q_len, kv_len, block_n) => do
      let c ← randomCase s!"{kv_len} keys in tiles of {block_n}" q_len kv_len 4 2 (bound := 2)
      return { c with algorithm := .divided block_n }
    let rising := each "rising" [(18, 4), (35, 16)] fun (kv_len, block_n) => do
      let c ← scoresCase s!"scores rise by 4 from one tile of {block_n} keys to the next" 2 kv_len 3
        fun j => 4 * (j / block_n : Nat)
      return { c with algorithm := .divided block_n }
    let falling := each "falling" [(18, 4), (35, 16)] fun (kv_len, block_n) => do
      let c ← scoresCase s!"scores fall by 4 from one tile of {block_n} keys to the next" 2 kv_len 3
        fun j => -4 * (j / block_n : Nat)
      return { c with algorithm := .divided block_n }
    let masked := each "masked" [(20, 5), (40, 16)] fun (kv_len, block_n) => do
      let c ← randomCase "the first tile is masked for the second query, all for the third" 3
        kv_len 4 2 (bound := 2)
        (mask := maskWhere 3 kv_len fun i j => i = 0 || i = 1 && block_n ≤ j)
      return { c with algorithm := .divided block_n }
    plain ++ rising ++ falling ++ masked

/-- Sizes, scores around 0, and masks, for a sink with score 0 in tiles of `block_n` keys. -/
def zeroSinkCases (algorithm : Nat → Algorithm) : List (Named Case) :=
  let plain := each "plain" [(1, 1, 4), (3, 5, 2), (2, 17, 16), (1, 33, 16), (4, 20, 7), (17, 6, 4)]
    fun (q_len, kv_len, block_n) => do
      let c ← randomCase s!"{kv_len} keys in tiles of {block_n}" q_len kv_len 4 2 (bound := 2)
      return { c with algorithm := algorithm block_n }
  let above := each "above" [5, 130] fun (s : Int) => do
    let c ← scoresCase s!"every score is at least {s}, above the sink" 2 18 3
      fun j => s + (j % 3 : Nat)
    return { c with algorithm := algorithm 16 }
  let below := each "below" [5, 130] fun (s : Int) => do
    let c ← scoresCase s!"every score is at most -{s}, below the sink" 2 18 3
      fun j => -s - (j % 3 : Nat)
    return { c with algorithm := algorithm 16 }
  let causal := each "causal" [(5, 5), (3, 18)] fun (q_len, kv_len) => do
    let c ← randomCase s!"causal, bottom-right, {sizes q_len kv_len 4}" q_len kv_len 4 2
      (bound := 2) (mask := .causalBottomRight)
    return { c with algorithm := algorithm 4 }
  let masked := each "masked" [(6, 4), (20, 16)] fun (kv_len, block_n) => do
    let c ← randomCase "a query that may attend to no key but the sink" 3 kv_len 4 2 (bound := 2)
      (mask := maskWhere 3 kv_len fun i j => i != 1 && j % 4 != 2)
    return { c with algorithm := algorithm block_n }
  plain ++ above ++ below ++ causal ++ masked

/-- Online softmax from the state of a sink. -/
def onlineSinks : Family Case where
  name := "sink-online"
  about := "A sink with score 0, from which online softmax starts: counted again with each tile, \
    or not rescaled when the maximum rises above it, it shows."
  theoremId := "sink-online"
  cases := zeroSinkCases .onlineSink

/-- The tile loop from the state of a sink. -/
def flashSinks : Family Case where
  name := "sink-tiles"
  about := "A sink with score 0, from which the tile loop starts the rows of each tile: counted \
    for some of them only, or with a value other than 0, it shows."
  theoremId := "flash-sink"
  cases := zeroSinkCases (.flashSink 4)

end Attention.Vectors
