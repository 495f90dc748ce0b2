module

public import Attention.Vectors.Combine
public import Attention.Vectors.Family
public import Attention.Vectors.States
public import Attention.Vectors.TileBounds

public section

/-! # The families of states, of results of splits, and of tile bounds -/

namespace Attention.Vectors

open Spec

/-- Keys with random values and given scores. -/
def keys (value_dim : Nat) (scores : List (Option Int)) : Gen (List Key) :=
  scores.mapM fun score => return { score, value := (← valueRows 1 value_dim).headD [] }

/-- Random scores between −`bound` and `bound`; of 8 keys `masked` are masked. -/
def randomScores (bound : Nat) (masked : Nat) (n : Nat) : Gen (List (Option Int)) :=
  draws (do
    let hidden ← below 8
    let s ← between (-bound) bound
    return if hidden < masked then none else some s) n

/-- A left comb over `n` blocks: ((0 1) 2) …. -/
def comb : Nat → Tree
  | 0 => .leaf 0
  | n + 1 => .node (comb n) (.leaf (n + 1))

/-- A balanced tree over the blocks from `first` on, 2 ^ `depth` of them. -/
def balanced (first : Nat) : Nat → Tree
  | 0 => .leaf first
  | depth + 1 => .node (balanced first depth) (balanced (first + 2 ^ depth) depth)

/-- Trees of merges. -/
def merges : Family MergeCase where
  name := "merge"
  about := "States of blocks, merged in the order of a tree: any tree over any order of the blocks \
    gives the state of all keys. Empty and masked blocks change nothing."
  theoremId := "any-tree"
  cases :=
    let trees := eachNamed
      [("two blocks", [3, 2], Tree.node (.leaf 0) (.leaf 1)),
       ("two blocks, exchanged", [1, 4], .node (.leaf 1) (.leaf 0)),
       ("one block", [5], .leaf 0), ("a comb to the left", [2, 3, 1, 4], comb 3),
       ("a comb to the right", [2, 1, 2], .node (.leaf 0) (.node (.leaf 1) (.leaf 2))),
       ("a balanced tree", [1, 2, 3, 4], balanced 0 2),
       ("blocks out of order", [3, 3, 3], .node (.node (.leaf 2) (.leaf 0)) (.leaf 1)),
       ("a balanced tree of eight blocks", [2, 2, 2, 2, 2, 2, 2, 2], balanced 0 3)]
      fun (reason, (sizes : List Nat), tree) => do
        let blocks ← sizes.mapM fun n => do keys 2 (← randomScores 3 1 n)
        return { reason, value_dim := 2, blocks, tree }
    let rising := each "rising" [8, 40, 120] fun (gap : Int) => do
      let blocks ← [0, 1, 2].mapM fun (b : Nat) => keys 2 [some (gap * b), some (gap * b - 1)]
      return { reason := s!"each block's scores are {gap} above those of the one before"
               value_dim := 2, blocks, tree := .node (.leaf 0) (.node (.leaf 2) (.leaf 1)) }
    let empty := eachNamed
      [("an empty block on the left", [([] : List (Option Int)), [some 2, some 1]]),
       ("an empty block on the right", [[some (-3), some 1], []]),
       ("a masked block on the left", [[none, none], [some (-5), some (-4)]]),
       ("a masked block on the right", [[some 0], [none]]),
       ("two blocks without a visible key", [[none], []])]
      fun (reason, (scores : List (List (Option Int)))) => do
        return { reason, value_dim := 2, blocks := ← scores.mapM (keys 2)
                 tree := .node (.leaf 0) (.leaf 1) }
    trees ++ rising ++ empty

/-- Keys that come, go and change. -/
def cacheEdits : Family CacheCase where
  name := "cache-edits"
  about := "A state that follows its keys as they are appended, deleted and replaced: the stored \
    maximum stays when its key goes, and only refers."
  theoremId := "kv-edits"
  cases :=
    let fixed := eachNamed
      [("a key is appended below the maximum", [some 3, some 1], [(0, 0, some (2 : Int))]),
       ("a key is appended above the maximum", [some 3, some 1], [(0, 0, some 7)]),
       ("the first key of an empty row", [], [(0, 0, some (-4))]),
       ("a masked key is appended", [some 1], [(0, 0, none)]),
       ("a key below the maximum is deleted", [some 3, some 1, some 0], [(1, 1, none)]),
       ("the key of the maximum is deleted", [some 5, some 1, some 0], [(1, 0, none)]),
       ("the last key is deleted", [some 2], [(1, 0, none)]),
       ("a masked key is deleted", [some 2, none], [(1, 1, none)]),
       ("a key is replaced by a larger one", [some 2, some 0], [(2, 1, some 6)]),
       ("the maximum is replaced by a smaller one", [some 6, some 0], [(2, 0, some 1)]),
       ("deleted and appended again", [some 4, some 2], [(1, 0, none), (0, 0, some 4)]),
       ("everything is deleted, then appended", [some 3, some 1],
         [(1, 0, none), (1, 0, none), (0, 0, some (-2)), (0, 0, some 0)])]
      fun (reason, (scores : List (Option Int)), (edits : List (Nat × Nat × Option Int))) => do
        return { reason, value_dim := 2, keys := ← keys 2 scores
                 edits := ← edits.mapM fun (kind, i, score) => do
                   let key := (← keys 2 [score]).headD default
                   return if kind = 0 then .append key else if kind = 1 then .delete i
                     else .replace i key }
    let long := each "long" [6, 8, 10] fun n => do
      let edits ← (List.range n).mapM fun step => do
        let key := (← keys 2 (← randomScores 4 1 1)).headD default
        -- Five keys to begin with, and no more than one goes at every second step.
        return if step % 2 = 0 then CacheEdit.append key else
          if step % 4 = 1 then .delete (step % 5) else .replace (step % 4) key
      return { reason := s!"{n} random changes", value_dim := 2
               keys := ← keys 2 (← randomScores 4 1 5), edits }
    fixed ++ long

/-- Windows that slide. -/
def cacheWindows : Family CacheCase where
  name := "cache-window"
  about := "A window of the latest keys: each new key is appended and the oldest deleted, from the \
    state alone."
  theoremId := "kv-window"
  cases := each "window"
    [(1, [], [some 0, some 1, some 2]), (2, [], [some 3, some 1, some 0, some 2]),
     (3, [some 5], [some 1, some 0, some 2, some 4]), (2, [some 1, some 0], [none, none, some 1]),
     (4, [some 0, some 1, some 2, some 3], [some 4, some 5, some 6]),
     (4, [some 9, some 1, some 0, some (-1)], [some 0, some 1, some 2, some (-3)]),
     (1, [some 8], [some 0, some (-8), some 8]), (3, [none, none, none], [some 1, some 2]),
     (5, [some 1], [some 2, some 3]),
     (2, [some 20, some 0], [some 0, some 1, some (-1), some 0, some 2])]
    fun (w, (start : List (Option Int)), (scores : List (Option Int))) => do
      return { reason := s!"a window of {w} keys, {start.length} at the beginning"
               value_dim := 2, keys := ← keys 2 start
               edits := (← keys 2 scores).map (CacheEdit.slide w) }

/-- Results of splits. -/
def combines : Family CombineCase where
  name := "combine"
  about := "Outputs and log-sum-exps of splits, combined: an empty split has log-sum-exp −∞ and no \
    influence, whatever its output; all of them empty give 0 and −∞."
  theoremId := "combine-enclosed"
  cases := eachNamed
    [("one split", [some (3 : Rat)]), ("two splits of equal weight", [some 1, some 1]),
     ("two splits", [some (1 / 2), some (-3 / 4)]), ("an empty split first", [none, some 2]),
     ("an empty split last", [some (-7 / 4), none]), ("every split empty", [none, none]),
     ("far apart", [some 60, some (-60), some 59]),
     ("log-sum-exps beyond the range of exp in fp32", [some 95, some 96, some 94]),
     ("log-sum-exps far below 0", [some (-95), some (-96)]),
     ("seventeen splits", (List.range 17).map fun (n : Nat) => some (mkRat n 4)),
     ("every second split empty",
       (List.range 8).map fun (n : Nat) => if n % 2 = 0 then some (n : Rat) else none),
     ("nearly equal", [some (1 / 16), some 0, some (-1 / 16)])]
    fun (reason, (lses : List (Option Rat))) => do
      return { reason, value_dim := 2
               parts := ← lses.mapM fun lse => do
                 return { logSumExp := lse, output := (← valueRows 1 2).headD [] } }

/-- Tiles that a window visits. -/
def tileBounds : Family TileBoundsCase where
  name := "tile-bounds"
  about := "Which key tiles a query tile visits, and which of them need mask code: from the tile's \
    last real row, not from where it would end if it were full."
  theoremId := "tile-bounds"
  cases := each "window"
    ([(.topLeft, none, some 0, 16, 16, 4, 4), (.topLeft, none, some 0, 17, 17, 4, 4),
     (.bottomRight, none, some 0, 5, 40, 4, 8), (.bottomRight, none, some 0, 40, 5, 8, 4),
     (.topLeft, none, some 0, 40, 5, 8, 4), (.topLeft, some 3, some 0, 20, 20, 4, 4),
     (.topLeft, some 4, some 0, 20, 20, 4, 4), (.topLeft, some 5, some 4, 21, 33, 4, 4),
     (.bottomRight, some 7, some 0, 3, 33, 16, 4), (.bottomRight, some 0, some 0, 10, 10, 3, 5),
     (.bottomRight, some 2, some 2, 12, 9, 5, 3), (.topLeft, some 1, none, 18, 18, 4, 4),
     (.topLeft, none, none, 9, 14, 4, 4), (.bottomRight, some 2, some 0, 30, 4, 4, 4),
     (.topLeft, some 0, some 0, 30, 12, 4, 4), (.topLeft, none, some 2, 7, 50, 128, 16),
     (.bottomRight, some 100, some 100, 9, 9, 2, 2), (.topLeft, some 2, some 0, 130, 130, 64, 32),
     (.topLeft, none, some 0, 65, 65, 64, 16), (.bottomRight, none, some 0, 66, 130, 64, 32)] :
      List (Alignment × Option Nat × Option Nat × Nat × Nat × Nat × Nat))
    fun (alignment, left, right, q_len, kv_len, block_m, block_n) => do
      return { reason := s!"{q_len} queries in tiles of {block_m}, {kv_len} keys in tiles of \
                 {block_n}"
               alignment, left, right, q_len, kv_len, block_m, block_n }

end Attention.Vectors
