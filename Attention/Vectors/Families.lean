module

public import Attention.Vectors.Case
public import Attention.Vectors.Family

public section

/-! # The families of attention over the exact model

Each family holds the inputs on which one kind of fault shows. Tiles of 16 are the smallest that
tensor cores take, so ragged sizes are chosen around multiples of 16. -/

namespace Attention.Vectors

open Spec

/-- Random Q, K, V with entries of Q and K between −`bound` and `bound`. -/
def randomCase (reason : String) (q_len kv_len head_dim : Nat) (value_dim : Nat := head_dim)
    (scale : Int := 1) (mask : MaskKind := .none) (bound : Nat := 1) : Gen Case :=
  return { reason, scale, head_dim, value_dim, mask
           q := ← intRows bound q_len head_dim
           k := ← intRows bound kv_len head_dim
           v := ← valueRows kv_len value_dim }

/-- A case whose scores are given: key `j` has the score `s j` for every query. Each score is the
sum of a multiple of 128 and a remainder, so that both are exact in bfloat16. -/
def scoresCase (reason : String) (q_len kv_len value_dim : Nat) (s : Nat → Int) : Gen Case :=
  return { reason, value_dim, head_dim := 2
           q := List.replicate q_len [1, 1]
           k := (List.range kv_len).map fun j => [s j / 128 * 128, s j % 128]
           v := ← valueRows kv_len value_dim }

/-- A Boolean mask from a condition on query and key. -/
def maskWhere (q_len kv_len : Nat) (p : Nat → Nat → Bool) : MaskKind :=
  .boolean ((List.range q_len).map fun i => (List.range kv_len).map (p i))

/-- Rows of a random Boolean mask: each key is visible with probability `num`/8. -/
def randomMaskRows (q_len kv_len num : Nat) : Gen (List (List Bool)) :=
  draws (draws (return decide ((← below 8) < num)) kv_len) q_len

/-- A random Boolean mask. -/
def randomMask (q_len kv_len num : Nat) : Gen MaskKind :=
  return .boolean (← randomMaskRows q_len kv_len num)

/-- Small sizes, drawn at random. -/
def smallRandom : Family Case where
  name := "small-random"
  about := "Small sizes and values, drawn at random: any gross fault shows here first."
  theoremId := "flash-eq-attention"
  cases := each "number" (List.range 36) fun i => do
    let head_dim := 1 + (← below 8)
    let value_dim ← if i % 3 = 2 then pure (1 + (← below 8)) else pure head_dim
    randomCase "random small case" (1 + (← below 6)) (1 + (← below 9)) head_dim value_dim
      (bound := if head_dim ≤ 4 then 2 else 1)

/-- A single key: the output is its value, whatever the score. -/
def oneKey : Family Case where
  name := "one-key"
  about := "A single key has weight 1, so the output is its value, whatever the score."
  theoremId := "softmax-sum-one"
  cases := each "number" (List.range 12) fun i => do
    randomCase "one key: the output is its value" (1 + i % 4) 1 (1 + (← below 16))
      (bound := 3 * (i + 1))

/-- Sizes that are no multiples of a tile. -/
def raggedTiles : Family Case where
  name := "ragged-tiles"
  about := "Sizes around multiples of 16: a kernel that drops the last tile or lets its padding in \
    fails."
  theoremId := "flash-eq-attention"
  cases :=
    let fixed := each "fixed"
      [(1, 15, 4), (1, 16, 4), (1, 17, 4), (5, 15, 3), (16, 16, 16), (17, 17, 17), (17, 33, 5),
       (3, 31, 8), (33, 17, 6), (20, 47, 7), (2, 49, 12), (18, 64, 4), (7, 65, 9), (31, 63, 10),
       (4, 70, 17), (9, 100, 4), (1, 129, 8), (2, 130, 3), (12, 96, 24), (3, 20, 33), (2, 18, 65),
       (1, 40, 128), (1, 17, 130)]
      fun (q_len, kv_len, head_dim) =>
        randomCase (sizes q_len kv_len head_dim) q_len kv_len head_dim
    let drawn := each "drawn" (List.range 9) fun _ => do
      let q_len := 1 + (← below 36)
      let kv_len := 1 + (← below 70)
      let head_dim := 1 + (← below 20)
      randomCase (sizes q_len kv_len head_dim) q_len kv_len head_dim
    fixed ++ drawn

/-- Scores far apart, or far from 0. -/
def largeSpread : Family Case where
  name := "large-spread"
  about := "Scores far apart or far from 0: exp overflows without the maximum subtracted, and \
    small weights underflow."
  theoremId := "softmax-shift-invariant"
  cases :=
    let shifted := each "shifted" [1000, -1000, 120, -120, 200, -200, 8000, -8000] fun c =>
      scoresCase s!"all scores near {c}: exp of the bare score leaves the range of fp32" 2 20 4
        fun j => c + ((j % 4 : Nat) : Int)
    let wide := each "wide" [4, 8, 16, 40, 100, 240] fun step =>
      scoresCase s!"scores {step} apart: weights underflow one after the other" 2 18 4
        fun j => step * ((j * 7 % 18 : Nat) - 9)
    let random := each "random" [3, 6, 10, 15, 20, 30] fun bound =>
      randomCase s!"entries of Q and K up to {bound}" 5 20 8 (bound := bound)
    shifted ++ wide ++ random

/-- All scores of a row equal. -/
def equalScores : Family Case where
  name := "equal-scores"
  about := "Equal scores: the output is the mean of the values, and the denominator is their \
    number."
  theoremId := "softmax-sum-one"
  cases :=
    let zeroQueries := each "zero queries" [1, 2, 3, 7, 16, 17, 40, 65] fun kv_len => do
      let c ← randomCase "Q = 0: every score is 0" 3 kv_len 4
      return { c with q := List.replicate 3 [0, 0, 0, 0] }
    let sameKeys := each "same keys" [2, 5, 16, 19, 33, 50] fun kv_len => do
      let c ← randomCase "all keys are equal" 4 kv_len 6 (bound := 2)
      return { c with k := List.replicate kv_len (c.k.headD []) }
    zeroQueries ++ sameKeys

/-- The maximum comes late, or early. -/
def maximumMoves : Family Case where
  name := "maximum-moves"
  about := "The maximum rises from tile to tile, comes last or comes first: the state must be \
    rescaled, in l and o alike."
  theoremId := "online-any-blocks"
  cases :=
    let stairs := each "stairs" [(16, 20), (16, 48), (16, 70), (8, 40), (4, 33), (32, 100)]
      fun (w, kv_len) =>
        scoresCase s!"scores rise by 1 every {w} keys" 2 kv_len 4 fun j => (j / w : Nat)
    let falling := each "falling" [(16, 20), (16, 48), (16, 70), (8, 40)] fun (w, kv_len) =>
      scoresCase s!"scores fall by 1 every {w} keys" 2 kv_len 4 fun j => -((j / w : Nat) : Int)
    let last := each "last" [17, 33, 40, 49, 65] fun kv_len =>
      scoresCase "the maximum is the last key, alone in its tile or near its end" 1 kv_len 3
        fun j => if j + 1 = kv_len then 5 else (j % 3 : Nat)
    let first := each "first" [18, 34, 50] fun kv_len =>
      scoresCase "the maximum is the first key" 1 kv_len 3
        fun j => if j = 0 then 4 else (j % 3 : Nat)
    let middle := each "middle" [48, 60] fun kv_len =>
      scoresCase "the maximum is in a middle tile" 2 kv_len 5
        fun j => if j = 20 then 6 else (j % 4 : Nat)
    stairs ++ falling ++ last ++ first ++ middle

/-- Masks with holes. -/
def maskedHoles : Family Case where
  name := "masked-holes"
  about := "Boolean masks with holes; every query sees at least one key. A masked key has no \
    weight, and a masked tile changes nothing."
  theoremId := "flash-eq-attention"
  cases :=
    let holes := each "holes"
      [(2, 6, 4), (3, 17, 2), (5, 20, 5), (8, 33, 3), (17, 18, 4), (4, 48, 1), (6, 64, 6)]
      fun (q_len, kv_len, num) => do
        let rows ← randomMaskRows q_len kv_len num
        randomCase s!"a random mask, {num} of 8 keys visible" q_len kv_len 4
          (mask := .boolean (rows.map (·.set (kv_len / 2) true)))
    let shaped := eachNamed
      [("the first tile of 16 keys is masked", 20, fun (_ j : Nat) => decide (16 ≤ j)),
       ("two leading tiles are masked", 40, fun _ j => decide (32 ≤ j)),
       ("a middle tile is masked", 48, fun _ j => decide (j < 16 ∨ 32 ≤ j)),
       ("the last tile is masked", 40, fun _ j => decide (j < 32)),
       ("every second key is masked", 35, fun i j => decide ((i + j) % 2 = 0)),
       ("query i sees key i alone", 20, fun i j => decide (i = j)),
       ("only the last key is visible", 33, fun _ j => decide (j = 32)),
       ("only the first key is visible", 33, fun _ j => decide (j = 0)),
       ("a band around the diagonal", 20, fun i j => decide (j ≤ i + 2 ∧ i ≤ j + 2)),
       ("some queries start in the second tile", 34, fun i j => decide (i % 2 = 0 ∨ 16 ≤ j))]
      fun (reason, kv_len, p) =>
        randomCase reason 6 kv_len 5 (mask := maskWhere 6 kv_len p) (bound := 1)
    let lure := each "lure" [20, 40] fun kv_len => do
      let c ← scoresCase "masked keys have by far the largest scores" 2 kv_len 4
        fun j => if j % 2 = 0 then 40 else (j % 3 : Nat)
      return { c with mask := maskWhere 2 kv_len fun _ j => j % 2 = 1 }
    holes ++ shaped ++ lure

/-- Queries that may attend to nothing. -/
def fullyMasked : Family Case where
  name := "fully-masked"
  about := "Queries that may attend to no key: output 0, no NaN, no mean of the values; \
    log-sum-exp −∞."
  theoremId := "flash-eq-attention"
  cases :=
    let none := each "none" [(1, 1), (2, 5), (3, 16), (4, 17), (17, 20), (2, 40)]
      fun (q_len, kv_len) =>
        randomCase "every key is masked for every query" q_len kv_len 4
          (mask := maskWhere q_len kv_len fun _ _ => false)
    let some := each "some"
      [(2, 5), (4, 16), (5, 17), (8, 33), (18, 20), (20, 40), (3, 64), (33, 18)]
      fun (q_len, kv_len) =>
        randomCase "every second query sees nothing, the others everything" q_len kv_len 5
          (mask := maskWhere q_len kv_len fun i _ => i % 2 = 1)
    let sparse := each "sparse" [(6, 6), (12, 20), (16, 33), (20, 18)] fun (q_len, kv_len) => do
      let rows ← randomMaskRows q_len kv_len 1
      -- One of them is not left to chance.
      randomCase "a sparse random mask: some queries see nothing" q_len kv_len 3
        (mask := .boolean (rows.set (q_len / 2) (List.replicate kv_len false)))
    none ++ some ++ sparse

/-- The causal mask on square sizes. -/
def causal : Family Case where
  name := "causal"
  about := "The causal mask: query i sees the keys up to its own. Off by one, the diagonal shows \
    it."
  theoremId := "flash-eq-attention"
  cases := each "sizes"
    [(1, 1), (2, 2), (3, 4), (4, 3), (5, 5), (8, 2), (15, 4), (16, 4), (17, 4), (18, 16), (20, 7),
     (24, 3), (31, 5), (32, 8), (33, 4), (40, 6), (48, 2), (49, 5)]
    fun (n, head_dim) =>
      randomCase s!"causal, {n} queries and keys" n n head_dim (mask := .causal)

/-- q_len and kv_len differ. -/
def unequalLengths : Family Case where
  name := "unequal-lengths"
  about := "q_len differs from kv_len, with and without the causal mask (aligned top-left: query i \
    sees keys 0 to i)."
  theoremId := "flash-eq-attention"
  cases :=
    let plain := each "plain"
      [(1, 20), (20, 1), (3, 40), (40, 3), (16, 17), (17, 16), (34, 2), (2, 50)]
      fun (q_len, kv_len) => randomCase (sizes q_len kv_len 4) q_len kv_len 4
    let causal := each "causal"
      [(3, 7), (7, 3), (1, 20), (20, 1), (17, 40), (40, 17), (16, 32), (32, 16), (5, 33), (33, 5),
       (18, 19), (19, 18), (2, 64), (50, 4)]
      fun (q_len, kv_len) =>
        randomCase ("causal, " ++ sizes q_len kv_len 5) q_len kv_len 5 (mask := .causal)
    plain ++ causal

/-- Scales other than 1. -/
def scales : Family Case where
  name := "scales"
  about := "Scales other than 1: omitted, applied twice, or replaced by 1/√head_dim, a scale shows."
  theoremId := "flash-eq-attention"
  cases :=
    let plain := each "plain"
      [(2, 4), (3, 4), (-1, 4), (-2, 3), (0, 5), (4, 9), (5, 2), (2, 16), (-3, 16), (7, 1), (3, 25),
       (1, 36), (2, 64), (1, 100)]
      fun (scale, head_dim) => randomCase s!"scale {scale}, head_dim {head_dim}" 4 19 head_dim
        (scale := scale)
    let causal := each "causal" [(-1, 4), (-2, 2), (2, 3), (3, 1), (0, 4), (-3, 9)]
      fun (scale, head_dim) =>
        randomCase s!"causal, scale {scale}, head_dim {head_dim}" 19 19 head_dim (scale := scale)
          (mask := .causal)
    plain ++ causal

/-- Rows longer than one tile of the largest kernels. -/
def wideTiles : Family Case where
  name := "wide-tiles"
  about := "Rows that cross the edges of tiles of 64, 128, 256 and 512 keys: there, too, the state \
    must be rescaled, masks must hold and the last tile must count."
  theoremId := "online-any-blocks"
  cases :=
    let rising := each "rising" [(64, 200), (128, 300), (256, 520), (512, 1030)] fun (w, kv_len) =>
      scoresCase s!"scores rise by 3 every {w} keys" 1 kv_len 2 fun j => 3 * (j / w : Nat)
    let falling := each "falling" [(64, 200), (128, 300), (256, 520), (512, 1030)]
      fun (w, kv_len) =>
        scoresCase s!"scores fall by 3 every {w} keys" 1 kv_len 2
          fun j => -3 * ((j / w : Nat) : Int)
    let last := each "last" [129, 257, 513] fun kv_len =>
      scoresCase "the maximum is the last key, alone in its tile" 1 kv_len 2
        fun j => if j + 1 = kv_len then 9 else (j % 3 : Nat)
    let masked := each "masked" [(128, 140), (256, 270), (512, 530)] fun (w, kv_len) => do
      let c ← scoresCase s!"the first {w} keys are masked, for the second query every key" 2
        kv_len 2 fun j => (j % 4 : Nat)
      return { c with mask := maskWhere 2 kv_len fun i j => i = 0 && w ≤ j }
    let causal := each "causal" [(130, 130), (140, 134)] fun (q_len, kv_len) =>
      randomCase ("causal, " ++ sizes q_len kv_len 2) q_len kv_len 2 (mask := .causal)
    rising ++ falling ++ last ++ masked ++ causal

/-- The causal mask aligned bottom-right. -/
def causalBottomRight : Family Case where
  name := "causal-bottom-right"
  about := "Causal with the last query at the last key, as flash-attention aligns it: with more \
    queries than keys the first see none. A top-left mask shows wherever the lengths differ."
  theoremId := "causal-bottom-right"
  cases := each "lengths" [(1, 1), (1, 7), (2, 5), (3, 3), (4, 9), (5, 2), (6, 5), (3, 17),
      (17, 16), (2, 33), (16, 20), (7, 1)] fun (q_len, kv_len) =>
    randomCase ("causal, bottom-right, " ++ sizes q_len kv_len 4) q_len kv_len 4 2
      (mask := .causalBottomRight)

/-- The bound of a window as text. -/
def boundText : Option Nat → String
  | none => "all"
  | some n => toString n

/-- Sliding windows in both alignments. -/
def windows : Family Case where
  name := "window"
  about := "Sliding windows with inclusive bounds, in both alignments: a bound that is off by one \
    on either side shows, and so does the wrong alignment."
  theoremId := "window"
  cases :=
    let shapes : List (Option Nat × Option Nat) :=
      [(some 0, some 0), (some 1, some 0), (some 2, some 1), (some 0, some 3), (none, some 1),
       (some 2, none), (some 5, some 0)]
    let one (alignment : Alignment) := each s!"{alignment}" shapes fun (left, right) => do
      let q_len := 3 + (← below 4)
      let kv_len := 4 + (← below 16)
      randomCase s!"{alignmentName alignment}, window of {boundText left} keys before and \
        {boundText right} after" q_len kv_len 3 2 (mask := .window alignment left right)
    one .topLeft ++ one .bottomRight

/-- Padding at the end of the keys. -/
def keyLengths : Family Case where
  name := "key-length"
  about := "Keys beyond a length are padding: they must have no influence, whatever they hold."
  theoremId := "key-padding"
  cases := each "lengths" [(1, 1), (4, 1), (4, 3), (5, 4), (8, 8), (16, 15), (17, 16), (18, 17),
      (33, 5), (20, 0)] fun (kv_len, length) =>
    randomCase s!"{length} of {kv_len} keys" 3 kv_len 4 2 (mask := .keyLength length)

/-- Several documents in one sequence. -/
def documents : Family Case where
  name := "document"
  about := "Several documents packed into one sequence: a query sees the keys of its own only."
  theoremId := "document-mask"
  cases := each "documents"
    [([0, 0, 1], [0, 0, 1]), ([0, 1, 2], [0, 1, 2]), ([0, 0, 1, 1], [0, 1, 1, 1, 1]),
     ([1, 0], [0, 1, 0, 1, 0]), ([0, 2], [0, 0, 1, 1]), ([3], [3, 3, 3]), ([0, 1], [1, 1, 1, 0]),
     ([0, 0, 0, 1, 1, 2], [0, 0, 0, 1, 1, 2]), ([5, 5, 7], [5, 6, 7, 5, 6, 7]),
     ([0, 1], List.replicate 16 0 ++ [1]), ([1, 0], List.replicate 17 0 ++ List.replicate 16 1)]
    fun (queries, keys) =>
      randomCase s!"documents of {queries.length} queries and {keys.length} keys" queries.length
        keys.length 4 2 (mask := .document queries keys)

end Attention.Vectors
