module

public import Attention.Vectors.Gradient
public import Attention.Vectors.LargeFamilies
public import Attention.Vectors.OperationFamilies

public section

/-! # The families of the backward pass -/

namespace Attention.Vectors

/-- Gradients of random inputs, by the formulas. byLse: whether the loss depends on the log-sum-exp,
which not every attention function returns. -/
def gradientCase (reason : String) (num_kv_heads group q_len kv_len head_dim value_dim : Nat)
    (mask : MaskKind) (byLse : Bool) (scale : Int := 1) : Gen GradientCase := do
  let num_heads := num_kv_heads * group
  let forward : HeadsCase :=
    { reason, scale, num_kv_heads, group, q_len, kv_len, head_dim, value_dim, mask
      algorithm := .grouped
      q := ← headRows num_heads q_len head_dim, k := ← headRows num_kv_heads kv_len head_dim
      v := ← draws (valueRows kv_len value_dim) num_kv_heads }
  return { forward, dO := ← draws (valueRows q_len value_dim) num_heads
           dLse := ← logSumExpGradients byLse num_heads q_len }

/-- The backward pass of one head. -/
def gradients : Family GradientCase where
  name := "gradient"
  about := "The gradients by queries, keys, values and a bias: without D, with the scale twice or \
    not at all, with dK and dV exchanged, or with a term for a masked pair they show."
  theoremId := "vjp-adjoint-lse"
  cases := each "sizes"
    [(1, 1, 1, 1, .none, 1, false), (1, 2, 1, 2, .none, 1, true), (2, 2, 3, 1, .none, 1, false),
     (3, 5, 2, 3, .none, 1, true), (4, 4, 3, 3, .causal, 1, false), (5, 3, 2, 2, .causal, 1, true),
     (3, 6, 2, 2, .causalBottomRight, 1, false), (6, 3, 2, 2, .causalBottomRight, 1, true),
     (2, 17, 3, 2, .none, 1, false), (17, 3, 3, 2, .none, 1, true),
     (18, 19, 2, 1, .causalBottomRight, 1, false),
     (5, 9, 2, 2, .window .bottomRight (some 2) (some 0), 1, true),
     (6, 6, 3, 2, .window .topLeft (some 1) (some 1), 1, false),
     (3, 8, 2, 2, .keyLength 5, 1, true), (2, 4, 2, 2, .keyLength 0, 1, false),
     (4, 4, 5, 2, .none, 2, true), (3, 4, 2, 5, .none, -1, false), (3, 5, 2, 2, .none, 0, true),
     (4, 6, 2, 2, maskWhere 4 6 fun i j => i != 2 && (i + j) % 3 != 0, 1, false),
     (5, 5, 2, 2, maskWhere 5 5 fun i j => j == 4 - i, 2, true),
     (2, 33, 2, 1, .causalBottomRight, 1, false)]
    fun (q_len, kv_len, head_dim, value_dim, mask, scale, byLse) =>
      gradientCase s!"{maskText mask}, scale {scale}, {sizes q_len kv_len head_dim}" 1 1 q_len
        kv_len head_dim value_dim mask byLse scale

/-- The backward pass of heads that share keys and values. -/
def gradientsGrouped : Family GradientCase where
  name := "gradient-grouped"
  about := "Heads of keys and values that several query heads share: their gradients are summed \
    over the group, and over no other heads."
  theoremId := "gqa-backward"
  cases := each "heads"
    [(1, 2, 2, 3, .none, false), (2, 1, 3, 2, .none, true), (2, 2, 3, 5, .none, false),
     (1, 4, 1, 6, .none, true), (3, 2, 2, 4, .causal, false), (2, 3, 4, 4, .causal, true),
     (2, 2, 2, 7, .causalBottomRight, false), (1, 8, 2, 3, .none, true), (2, 4, 1, 9, .none, false),
     (4, 2, 2, 2, .causal, true), (2, 2, 5, 3, .causalBottomRight, false),
     (1, 3, 17, 2, .none, true)]
    fun (num_kv_heads, group, q_len, kv_len, mask, byLse) =>
      gradientCase s!"{num_kv_heads * group} query heads, {num_kv_heads} heads of keys and values, \
        q_len {q_len}, kv_len {kv_len}" num_kv_heads group q_len kv_len 2 2 mask byLse

/-- The same with sizes, scale and mask drawn at random. -/
def gradientsDrawn : Family GradientCase where
  name := "gradient-drawn"
  about := "Gradients for sizes, heads, scale and mask drawn at random, every kind of mask in turn."
  theoremId := "gqa-backward"
  cases := each "number" (List.range 108) fun i => do
    let num_kv_heads := 1 + (← below 2)
    let group := 1 + (← below 3)
    let q_len := 1 + (← below 8)
    let kv_len := 1 + (← below 12)
    let head_dim := 1 + (← below 5)
    let value_dim := 1 + (← below 4)
    let scale ← between (-1) 2
    let mask ← drawnMask (i % 9) q_len kv_len
    gradientCase s!"drawn: {maskText mask}, scale {scale}, {num_kv_heads * group} query heads, \
      {num_kv_heads} of keys and values, {sizes q_len kv_len head_dim}" num_kv_heads group q_len
      kv_len head_dim value_dim mask (i % 2 = 1) scale

/-- One head in which every query sees the first keys, whose scores are 0, 0, 1, 2, …, so that the
denominators are powers of two, and the log-sum-exps integers. The other columns have no influence
on the scores, and one on dQ and dK. -/
def integerLogSumExps (reason : String) (q_len kv_len : Nat) (mask : MaskKind)
    (byLse : Bool) (algorithm : GradientAlgorithm) : Gen GradientCase := do
  let c ← gradientCase reason 1 1 q_len kv_len 3 2 mask byLse
  let q ← draws (between (-3) 3) q_len
  let k ← draws (between (-3) 3) kv_len
  let forward := { c.forward with
    q := [q.map fun x => [1, x, 0]]
    k := [k.zipIdx.map fun (y, j) => [(max j 1 : Nat) - 1, 0, y]] }
  return { c with forward, algorithm }

/-- The tile loops. -/
def gradientsTiled : Family GradientCase where
  name := "gradient-tiles"
  about := "FlashAttention-2's backward pass: P again from the saved log-sum-exp, dK and dV over \
    tiles of queries, dQ over tiles of keys; a ragged tile, or one that is left out, shows."
  theoremId := "flash-backward"
  cases := each "lengths"
    [(3, 5, .none, (2, 2), (2, 2), false), (4, 4, .causal, (2, 3), (3, 2), true),
     (5, 7, .causal, (3, 2), (2, 3), false), (7, 5, .causalBottomRight, (2, 4), (4, 2), true),
     (2, 9, .keyLength 6, (4, 1), (1, 4), false), (6, 6, .causal, (1, 1), (1, 1), true),
     (1, 17, .none, (16, 16), (16, 16), false), (17, 4, .none, (16, 16), (16, 16), true),
     (3, 3, .keyLength 0, (2, 2), (2, 2), false), (9, 8, .causalBottomRight, (3, 3), (3, 3), true),
     (4, 10, .window .topLeft none (some 3), (4, 2), (2, 4), false),
     (5, 6, .causal, (8, 8), (8, 8), true), (18, 17, .causal, (16, 5), (5, 16), false),
     (6, 5, .causalBottomRight, (5, 6), (6, 5), true)]
    fun (q_len, kv_len, mask, keys, queries, byLse) =>
      integerLogSumExps
        s!"{maskText mask}, {sizes q_len kv_len 3}, tiles of {keys} and {queries}" q_len kv_len
        mask byLse (.tiles keys queries)

/-- The paper's one loop. -/
def gradientsOneLoop : Family GradientCase where
  name := "gradient-one-loop"
  about := "FlashAttention-2's algorithm 2 as the paper has it: one loop over the tiles of keys, \
    which adds to dQ; a tile that is added twice, or written over, shows."
  theoremId := "flash-backward-one-loop"
  cases := each "lengths"
    [(2, 4, .none, 2, 2, false), (5, 5, .causal, 2, 3, true), (3, 8, .causal, 3, 2, false),
     (6, 4, .causalBottomRight, 4, 2, true), (1, 9, .keyLength 5, 1, 4, false),
     (4, 4, .causal, 1, 1, true), (2, 17, .none, 16, 16, false), (17, 3, .none, 16, 16, true),
     (8, 9, .causalBottomRight, 3, 4, false), (5, 9, .window .topLeft none (some 2), 2, 4, true),
     (4, 6, .causal, 8, 8, false), (3, 2, .keyLength 0, 2, 2, true)]
    fun (q_len, kv_len, mask, block_m, block_n, byLse) =>
      integerLogSumExps
        s!"{maskText mask}, {sizes q_len kv_len 3}, tiles of {block_m} queries and {block_n} keys"
        q_len kv_len mask byLse (.oneLoop block_m block_n)

/-- The backward pass with dropout. -/
def gradientsDropped : Family GradientCase where
  name := "gradient-dropout"
  about := "The backward pass draws again what the forward pass has dropped: dV without the \
    factors, dP without them, D from the output without dropout, or another mask show."
  theoremId := "dropout-adjoint"
  cases := each "heads"
    [(1, 1, 3, 5, .none, 0, 1, false), (1, 1, 3, 5, .none, 1, 1, true),
     (1, 1, 4, 9, .none, 1 / 2, 2, false), (1, 1, 2, 6, .none, 1 / 4, 2 ^ 40 + 3, true),
     (1, 1, 5, 5, .causal, 1 / 2, 4, false), (1, 1, 3, 8, .causalBottomRight, 3 / 8, 5, true),
     (1, 1, 6, 3, .causalBottomRight, 1 / 2, 6, false), (1, 2, 2, 7, .none, 1 / 2, 7, true),
     (2, 1, 3, 4, .none, 1 / 2, 8, false), (2, 2, 2, 5, .causal, 1 / 2, 9, true),
     (1, 1, 2, 18, .keyLength 17, 1 / 10, 10, false), (1, 1, 17, 2, .none, 1 / 2, 11, true)]
    fun (num_kv_heads, group, q_len, kv_len, mask, p, seed, byLse) => do
      let c ← gradientCase s!"dropout with p = {(p : Rat)}, {maskText mask}, \
        {num_kv_heads * group} query heads, {sizes q_len kv_len 3}" num_kv_heads group q_len kv_len
        3 2 mask byLse
      return { c with dropout := some (p, seed) }

/-- The backward pass with a temperature for each head. -/
def gradientsTemperature : Family GradientCase where
  name := "gradient-temperature"
  about := "A temperature for each query head, by which its scores are multiplied: one that is \
    left out, of another head, or taken for its inverse, dQ without it, and a gradient by it of \
    the scaled queries or of one query alone show."
  theoremId := "temperature-gradient"
  cases := each "temperatures"
    [(1, [2], 1, 3, .none, 1, false), (1, [2], 3, 5, .none, 1, true),
     (1, [-1], 4, 4, .causal, 1, false), (1, [0], 3, 6, .none, 1, true),
     (1, [3], 5, 3, .causalBottomRight, 1, false), (1, [2, -1], 2, 7, .none, 1, true),
     (2, [1, 2], 3, 4, .none, 1, false), (2, [2, 1, 0, -2], 3, 5, .causal, 1, true),
     (1, [1, 2, 3], 2, 18, .keyLength 17, 1, false), (1, [2, 3], 17, 2, .none, 1, true),
     (2, [3, 1], 4, 9, .window .bottomRight (some 2) (some 0), 1, false),
     (1, [2], 3, 4, .none, -1, true), (1, [3, 2], 3, 4, .keyLength 0, 1, false)]
    fun (num_kv_heads, (temperatures : List Int), q_len, kv_len, mask, scale, byLse) => do
      let group := temperatures.length / num_kv_heads
      let c ← gradientCase s!"temperatures {temperatures}, {maskText mask}, scale {scale}, \
        {num_kv_heads} heads of keys and values, {sizes q_len kv_len 3}" num_kv_heads group q_len
        kv_len 3 2 mask byLse scale
      return { c with algorithm := .temperatures temperatures }

/-- The tile loops with dropout. -/
def gradientsDroppedTiled : Family GradientCase where
  name := "gradient-dropout-tiles"
  about := "The backward pass tile by tile with dropout: factors drawn by the place in a tile, or \
    otherwise for dQ than for dK and dV, and D from the output without dropout show."
  theoremId := "flash-backward-dropout"
  cases := each "lengths"
    [(3, 5, .none, 1 / 2, 1, (2, 2), (2, 2), false),
     (4, 6, .causal, 1 / 4, 2, (2, 3), (3, 2), true),
     (7, 5, .causalBottomRight, 1 / 2, 3, (2, 4), (4, 2), false),
     (2, 9, .keyLength 6, 3 / 8, 2 ^ 33 + 4, (4, 1), (1, 4), true),
     (6, 6, .causal, 1 / 2, 5, (1, 1), (1, 1), false),
     (1, 17, .none, 1 / 2, 6, (16, 16), (16, 16), true),
     (17, 4, .none, 3 / 4, 7, (16, 16), (16, 16), false), (4, 5, .none, 1, 8, (2, 2), (2, 2), true),
     (3, 3, .keyLength 0, 1 / 2, 9, (2, 2), (2, 2), false),
     (4, 10, .window .topLeft none (some 3), 1 / 8, 10, (4, 2), (2, 4), true),
     (9, 8, .causalBottomRight, 5 / 8, 11, (3, 3), (3, 3), false),
     (18, 17, .causal, 1 / 2, 12, (16, 5), (5, 16), true)]
    fun (q_len, kv_len, mask, p, seed, keys, queries, byLse) => do
      let c ← integerLogSumExps
        s!"dropout with p = {(p : Rat)}, {maskText mask}, {sizes q_len kv_len 3}, tiles of {keys} \
          and {queries}" q_len kv_len mask byLse (.tiles keys queries)
      return { c with dropout := some (p, seed) }

end Attention.Vectors
