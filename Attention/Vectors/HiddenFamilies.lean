module

public import Attention.Vectors.GradientFamilies

public section

/-! # Families of masked scores far above those that are seen

A mask that takes a finite number from the scores that it hides lets those through that are larger:
so hidden scores are 160, 1536 and 16384 above the others, where exp k = 2^k; that is 111, 1065 and
11357 above in base e. -/

namespace Attention.Vectors

open Spec

/-- Queries and keys with two columns of small numbers, and one for each query, in which a key holds
`above` if the mask hides it from that query. -/
def hidingRows (q_len kv_len : Nat) (mask : MaskKind) (above : Int) :
    Gen (List (List Int) × List (List Int)) := do
  let seen : Mask q_len kv_len := mask.toMask
  let q ← intRows 1 q_len 2
  let k ← intRows 1 kv_len 2
  let unit (i : Nat) : List Int := (List.range q_len).map fun c => if c = i then 1 else 0
  let hidden (j : Fin kv_len) : List Int :=
    (List.finRange q_len).map fun i => if seen i j then 0 else above
  return (q.zipIdx.map fun (row, i) => row ++ unit i,
    (k.zip (List.finRange kv_len)).map fun (row, j) => row ++ hidden j)

/-- The masks of these families: queries, keys, and which keys are seen. -/
def hidingMasks : List (Nat × Nat × MaskKind) :=
  [(5, 5, .causal), (4, 7, .causal), (3, 18, .causalBottomRight), (6, 4, .causalBottomRight),
   (4, 9, .window .bottomRight (some 2) (some 0)), (5, 8, .window .topLeft (some 1) (some 1)),
   (3, 17, .keyLength 5), (4, 9, .keyPadding ((List.range 9).map (· % 3 != 1))),
   (4, 6, .document [0, 0, 1, 2] [0, 1, 1, 0, 1, 0]),
   (4, 10, maskWhere 4 10 fun i j => i != 2 && (i + j) % 3 != 0)]

/-- Hidden scores far above the others. -/
def hiddenScores : Family Case where
  name := "hidden-scores"
  about := "Scores that the mask hides are 111, 1065 or 11357 above those that are seen, in base \
    e: where masking takes a finite number from them, such as 10,000, or is done after the \
    exponential, they show."
  theoremId := "flash-eq-attention"
  cases := each "mask"
    (hidingMasks.flatMap fun (q_len, kv_len, mask) =>
      [80, 768, 8192].map fun (above : Int) => (q_len, kv_len, mask, above))
    fun (q_len, kv_len, mask, above) => do
      let (q, k) ← hidingRows q_len kv_len mask above
      return { reason := s!"hidden scores {2 * above} above the others; {maskText mask}"
               scale := 2, head_dim := q_len + 2, value_dim := 2, mask, q, k
               v := ← valueRows kv_len 2 }

/-- The same backwards, where the largest of these would leave float16. -/
def gradientsHidden : Family GradientCase where
  name := "gradient-hidden-scores"
  about := "Gradients where scores that the mask hides are 111 or 1065 above those that are seen, \
    in base e: a term of theirs, or one of ∞ times 0, shows."
  theoremId := "vjp-adjoint-lse"
  cases := each "mask"
    (hidingMasks.flatMap fun (q_len, kv_len, mask) =>
      [80, 768].map fun (above : Int) => (q_len, kv_len, mask, above))
    fun (q_len, kv_len, mask, above) => do
      let (q, k) ← hidingRows q_len kv_len mask above
      let forward : HeadsCase :=
        { reason := s!"hidden scores {2 * above} above the others; {maskText mask}", scale := 2
          num_kv_heads := 1, group := 1, q_len, kv_len, head_dim := q_len + 2, value_dim := 2, mask
          algorithm := .grouped, q := [q], k := [k], v := [rats (← intRows 4 kv_len 2)] }
      return { forward, dO := [rats (← intRows 2 q_len 2)]
               dLse := ← logSumExpGradients (above == 80) 1 q_len }

end Attention.Vectors
