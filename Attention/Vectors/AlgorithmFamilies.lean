module

public import Attention.Vectors.Families

public section

/-! # The families that other definitions than `attention` itself compute -/

namespace Attention.Vectors

open Spec

/-- Splits of the keys. -/
def splitKVs : Family Case where
  name := "split-kv"
  about := "Few queries and many keys, split and merged again, as decoding does it; some splits \
    are masked entirely: an empty split must have no influence."
  theoremId := "split-kv-eq-attention"
  cases :=
    let plain := each "plain" [(1, 33, 16, 8), (1, 64, 16, 16), (1, 65, 32, 16), (2, 40, 7, 3),
        (1, 130, 64, 16), (3, 20, 20, 5), (1, 17, 1, 1), (1, 200, 50, 16)]
      fun (q_len, kv_len, split_len, block_n) => do
        let c ← randomCase s!"{kv_len} keys in splits of {split_len}" q_len kv_len 4 2
        return { c with algorithm := .splitKV split_len block_n }
    let rising := each "rising" [(16, 48), (16, 70)] fun (w, kv_len) => do
      let c ← scoresCase s!"scores rise by 4 from one split of {w} keys to the next" 1 kv_len 2
        fun j => 4 * (j / w : Nat)
      return { c with algorithm := .splitKV w 8 }
    let masked := each "masked" [(40, 16, 16, 40), (64, 16, 32, 64), (48, 16, 16, 32)]
      fun (kv_len, split_len, first, stop) => do
        let c ← randomCase s!"only keys {first} to {stop - 1} of {kv_len} are visible, in splits \
          of {split_len}" 1 kv_len 4 2
          (mask := maskWhere 1 kv_len fun _ j => decide (first ≤ j ∧ j < stop))
        return { c with algorithm := .splitKV split_len 8 }
    let nothing := each "nothing" [18, 40] fun kv_len => do
      let c ← randomCase "every split is masked entirely for the second query" 2 kv_len 4 2
        (mask := maskWhere 2 kv_len fun i _ => i = 0)
      return { c with algorithm := .splitKV 16 8 }
    plain ++ rising ++ masked ++ nothing

/-- Devices in a ring. -/
def rings : Family Case where
  name := "ring"
  about := "Queries and keys spread over a ring of devices, contiguous or striped, with and \
    without the causal mask: each device sees every key once, in its own order."
  theoremId := "ring"
  cases :=
    let contiguous := each "contiguous" [(2, 8), (3, 10), (4, 18), (5, 5), (1, 6)]
      fun (devices, n) =>
        shared s!"{devices} devices, contiguous shards of {n} queries and keys" devices n .none
          fun i => i * devices / n
    let causal := each "causal" [(2, 9), (3, 12), (4, 17)] fun (devices, n) =>
      shared s!"{devices} devices, contiguous shards, causal" devices n .causal
        fun i => i * devices / n
    let striped := each "striped" [(2, 9), (3, 12), (4, 18)] fun (devices, n) =>
      shared s!"{devices} devices, striped shards, causal" devices n .causal fun i => i % devices
    let empty := each "empty" [(3, 4), (4, 3)] fun (devices, n) =>
      shared s!"{devices} devices, one of them without queries and keys" devices n .none
        fun i => i % (devices - 1)
    contiguous ++ causal ++ striped ++ empty
where
  /-- Queries and keys shared out alike, by the device of each. -/
  shared (reason : String) (devices n : Nat) (mask : MaskKind) (owner : Nat → Nat) : Gen Case := do
    let c ← randomCase reason n n 3 2 (mask := mask)
    let own := fun device => (List.range n).filter fun i => owner i = device
    return { c with algorithm := .ring ((List.range devices).map fun d => (own d, own d)) }

/-- Windows by the bounds of the tile loop. -/
def windowTiles : Family Case where
  name := "window-tiles"
  about := "Windows over several tiles of 16, in both alignments: a bound of the tile loop that is \
    off by one drops a tile, or lets one in that its mask code must silence."
  theoremId := "tile-bounds-loop"
  cases := each "window"
    ([(.topLeft, none, some 0, 33, 33), (.bottomRight, none, some 0, 17, 40),
     (.bottomRight, none, some 0, 40, 17), (.topLeft, some 15, some 0, 40, 40),
     (.topLeft, some 16, some 0, 40, 40), (.topLeft, some 17, some 16, 34, 50),
     (.bottomRight, some 15, some 0, 18, 50), (.bottomRight, some 16, some 1, 20, 49),
     (.bottomRight, some 31, some 0, 3, 70), (.topLeft, some 0, some 0, 33, 20),
     (.topLeft, some 8, none, 20, 40), (.bottomRight, some 3, some 32, 33, 33),
     (.bottomRight, some 47, some 0, 1, 65), (.topLeft, some 2, some 2, 50, 18)] :
      List (Alignment × Option Nat × Option Nat × Nat × Nat))
    fun (alignment, left, right, q_len, kv_len) => do
      let c ← randomCase s!"{alignmentName alignment}, window of {boundText left} keys before \
        and {boundText right} after, {sizes q_len kv_len 3}" q_len kv_len 3 2
        (mask := .window alignment left right)
      return { c with algorithm := .flashWindow 16 16 }

/-- Tiles that are skipped, and tiles without mask code. -/
def blockMasks : Family Case where
  name := "block-mask"
  about := "Boolean masks of which whole tiles of 16 are masked, and whole tiles are not: skipped, \
    and taken without mask code."
  theoremId := "tile-schedule"
  cases := eachNamed
    [("a checkerboard of tiles", 33, 40, fun (i j : Nat) => (i / 16 + j / 16) % 2 == 0),
     ("a block diagonal", 40, 40, fun i j => i / 16 == j / 16),
     ("a block diagonal, shifted by one key", 34, 36, fun i j => (i + 1) / 16 == j / 16),
     ("a prefix that all see, and the causal past", 36, 36, fun i j => j < 16 || j ≤ i),
     ("the second tile is masked but for one pair", 18, 34, fun i j => j < 16 || i = 3 && j = 20),
     ("the first tile is visible but for one pair", 18, 34, fun i j => j < 16 && !(i = 3 && j = 7)),
     ("the last, ragged tile alone", 17, 35, fun _ j => 32 ≤ j),
     ("all but the last, ragged tile", 17, 35, fun _ j => j < 32),
     ("queries of the second tile see nothing", 40, 20, fun i _ => !(16 ≤ i && i < 32)),
     ("every sixteenth key and the own tile", 34, 50, fun i j => j % 16 == 15 || i / 16 == j / 16),
     ("two keys that all see, and the own", 33, 33, fun i j => j == 0 || j == 17 || i == j)]
    fun (reason, q_len, kv_len, (visible : Nat → Nat → Bool)) => do
      let c ← randomCase reason q_len kv_len 3 2 (mask := maskWhere q_len kv_len visible)
      return { c with algorithm := .flashSchedule 16 16 }

/-- Sizes that are padded before they are computed with. -/
def paddings : Family Case where
  name := "padding"
  about := "Rows, keys and columns that a kernel adds to fill its tiles: whatever they hold, they \
    have no influence."
  theoremId := "pad-tiles"
  cases := each "sizes"
    [(1, 1, 1, 15, 15, 15), (3, 5, 4, 13, 11, 12), (16, 17, 3, 0, 15, 13), (17, 16, 16, 15, 0, 0),
     (5, 20, 7, 3, 12, 1), (2, 31, 5, 14, 1, 11), (4, 33, 8, 0, 31, 0), (18, 18, 2, 14, 14, 14),
     (1, 40, 6, 0, 8, 10), (6, 15, 17, 10, 1, 15), (3, 2, 65, 1, 14, 1)]
    fun (q_len, kv_len, head_dim, rows, keys, columns) => do
      let c ← randomCase s!"{sizes q_len kv_len head_dim}, padded with {rows} queries, {keys} keys \
        and {columns} columns" q_len kv_len head_dim 2
      return { c with algorithm := .padded rows keys columns }

/-- The tile loop itself, with tiles of every shape. -/
def tileLoops : Family Case where
  name := "tile-loop"
  about := "The tile loop with tiles from one query and one key to more than there are: the \
    result is the same."
  theoremId := "flash-eq-attention"
  cases := each "tiles"
    [(1, 1, 5, 7), (1, 16, 4, 18), (3, 5, 7, 11), (16, 1, 18, 5), (16, 16, 17, 33), (2, 64, 5, 20),
     (64, 2, 20, 5), (4, 4, 9, 16), (7, 3, 20, 10), (128, 128, 6, 9)]
    fun (block_m, block_n, q_len, kv_len) => do
      let c ← randomCase s!"tiles of {block_m} queries and {block_n} keys, \
        {sizes q_len kv_len 4}" q_len kv_len 4 2 (mask := ← randomMask q_len kv_len 6)
      return { c with algorithm := .flash block_m block_n }

/-- Denominators that are powers of two. -/
def logSumExps : Family Case where
  name := "log-sum-exp"
  about := "Denominators that are powers of two, so that the log-sum-exp is an integer times ln 2: \
    in the wrong base, without the maximum, or of a masked row, it shows."
  theoremId := "lse-spec"
  cases :=
    let equal := each "equal" [(1, 0), (2, 3), (4, -5), (16, 1), (32, -2), (64, 7)]
      fun (kv_len, (s : Int)) => one s!"{kv_len} equal scores of {s}" 2 kv_len fun _ => s
    let halves := each "halves" [(5, 4), (17, 20), (33, 10)] fun (kv_len, (top : Int)) =>
      one s!"each score is one less than the one before, the last two are equal" 1 kv_len
        fun j => top - (min j (kv_len - 2) : Nat)
    let rising := each "rising" [(5, -3), (18, -9)] fun (kv_len, (least : Int)) =>
      one s!"the first two scores are equal, each other is one more than the one before" 1 kv_len
        fun j => least + (max j 1 : Nat)
    let far := each "far" [(1000, 4), (-1000, 4), (8000, 16)] fun ((s : Int), kv_len) =>
      one s!"scores of {s}: exp of the bare score leaves the range of fp32" 1 kv_len fun _ => s
    let masked := each "masked" [4, 18] fun kv_len => do
      let c ← one "two keys are visible to the first query, none to the second" 2 kv_len fun _ => 3
      return { c with mask := maskWhere 2 kv_len fun i j => i == 0 && (j == 1 || j == 3) }
    equal ++ halves ++ rising ++ far ++ masked
where
  /-- Given scores, with the log-sum-exp published. -/
  one (reason : String) (q_len kv_len : Nat) (s : Nat → Int) : Gen Case := do
    return { ← scoresCase reason q_len kv_len 2 s with exactLogSumExp := true }

/-- Padding anywhere among the keys. -/
def keyPaddings : Family Case where
  name := "key-padding"
  about := "Keys that are padding, anywhere in the sequence and alike for all queries: they have \
    no influence."
  theoremId := "key-padding"
  cases := eachNamed
    ([("the first keys, as in batches padded on the left", 10, (4 ≤ ·)),
      ("the first tile", 20, (16 ≤ ·)), ("the last tile", 20, (· < 16)),
      ("every second key", 17, (· % 2 = 0)), ("all but the first key", 33, (· = 0)),
      ("all but the last key", 33, (· = 32)),
      ("a tile in the middle", 48, fun j => j < 16 || 32 ≤ j), ("no key", 18, fun _ => true),
      ("every key", 5, fun _ => false),
      ("the edges of tiles", 40, fun j => j % 16 != 0 && j % 16 != 15)] :
      List (String × Nat × (Nat → Bool)))
    fun (reason, kv_len, valid) =>
      randomCase s!"padding: {reason}" 3 kv_len 4 2
        (mask := .keyPadding ((List.range kv_len).map valid))

end Attention.Vectors
