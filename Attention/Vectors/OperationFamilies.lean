module

public import Attention.Vectors.Cascade
public import Attention.Vectors.Families
public import Attention.Vectors.Heads
public import Attention.Vectors.Paged

public section

/-! # The families of heads, packed sequences, pages and shared prefixes -/

namespace Attention.Vectors

/-- Random rows of Q or K for each head. -/
def headRows (heads m n : Nat) : Gen (List (List (List Int))) := draws (intRows 1 m n) heads

/-- Attention with the heads of K and V shared by `group` query heads; the shape is num_kv_heads,
group, q_len, kv_len and the mask. -/
def groupedCase (algorithm : HeadsAlgorithm) (shape : Nat × Nat × Nat × Nat × MaskKind) :
    Gen HeadsCase := do
  let (num_kv_heads, group, q_len, kv_len, mask) := shape
  let num_heads := num_kv_heads * group
  return { reason := s!"{num_heads} query heads, {num_kv_heads} heads of keys and values, \
             q_len {q_len}, kv_len {kv_len}"
           num_kv_heads, group, q_len, kv_len, head_dim := 3, value_dim := 2, mask, algorithm
           q := ← headRows num_heads q_len 3, k := ← headRows num_kv_heads kv_len 3
           v := ← draws (valueRows kv_len 2) num_kv_heads }

/-- The same for several shapes. -/
def groupedCases (algorithm : HeadsAlgorithm) (shapes : List (Nat × Nat × Nat × Nat × MaskKind)) :
    List (Named HeadsCase) := each "heads" shapes (groupedCase algorithm)

/-- Query heads that share heads of keys and values. -/
def groupedQueries : Family HeadsCase where
  name := "grouped-query"
  about := "Query head h uses head h / group of the keys and values: with h % num_kv_heads, or \
    with the heads of K and V exchanged, it shows."
  theoremId := "gqa-repeat"
  cases := groupedCases .grouped
    [(1, 1, 3, 5, .none), (2, 1, 2, 6, .none), (1, 2, 3, 4, .none), (2, 2, 3, 5, .none),
     (3, 2, 1, 17, .none), (2, 3, 2, 9, .causal), (4, 2, 1, 5, .none),
     (2, 4, 4, 7, .causalBottomRight), (1, 8, 1, 18, .none), (3, 3, 2, 4, .none),
     (2, 2, 17, 3, .none), (5, 2, 1, 3, .none)]

/-- The same, with the queries of a group packed into one matrix. -/
def groupedQueriesPacked : Family HeadsCase where
  name := "grouped-query-packed"
  about := "The queries of all heads that share keys and values as one matrix, as decoding packs \
    them: masks go by the query's own position, and rows return to their heads."
  theoremId := "gqa-packed"
  cases := groupedCases .packed
    [(1, 1, 3, 5, .none), (1, 4, 1, 9, .none), (2, 2, 2, 5, .causal), (2, 4, 1, 17, .none),
     (1, 2, 5, 5, .causal), (3, 2, 3, 7, .causalBottomRight), (2, 3, 4, 6, .causal),
     (1, 8, 2, 18, .causalBottomRight), (2, 8, 1, 4, .none),
     (1, 3, 6, 20, .window .bottomRight (some 2) (some 0)), (4, 2, 2, 3, .causal)]

/-- Heads with keys and values of their own. -/
def multiHeads : Family HeadsCase where
  name := "multi-head"
  about := "One attention for each head, over its own keys and values: heads that are exchanged, \
    or that share keys or values, show."
  theoremId := "gqa-repeat"
  cases := groupedCases .multiHead
    [(1, 1, 4, 6, .none), (2, 1, 1, 5, .none), (2, 1, 3, 17, .none), (3, 1, 5, 5, .causal),
     (4, 1, 2, 7, .causalBottomRight), (5, 1, 1, 4, .none), (8, 1, 2, 3, .none),
     (2, 1, 17, 4, .none), (3, 1, 6, 9, .window .bottomRight (some 1) (some 0)),
     (2, 1, 4, 18, maskWhere 4 18 fun i j => i != 1 && (i + j) % 3 != 0)]

/-- Packed sequences with given lengths of queries and of keys. -/
def varlenCase (sliced : Bool) (batch : List Nat × List Nat × MaskKind) : Gen VarlenCase := do
  let (q_lens, kv_lens, mask) := batch
  return { reason := s!"sequences of {q_lens} queries and {kv_lens} keys"
           head_dim := 3, value_dim := 2, q_lens, kv_lens, mask, sliced
           q := ← intRows 1 q_lens.sum 3, k := ← intRows 1 kv_lens.sum 3
           v := ← valueRows kv_lens.sum 2 }

/-- The same for several batches. -/
def varlenCases (sliced : Bool) (batches : List (List Nat × List Nat × MaskKind)) :
    List (Named VarlenCase) := each "lengths" batches (varlenCase sliced)

/-- Packed sequences as one attention. -/
def varlens : Family VarlenCase where
  name := "varlen"
  about := "Sequences of different lengths, packed one after another: a query sees the keys of its \
    own sequence, and masks start anew with each."
  theoremId := "varlen"
  cases := varlenCases false
    [([3], [5], .none), ([2, 3], [4, 5], .none), ([1, 1, 1], [3, 17, 2], .none),
     ([4, 2], [4, 2], .causal), ([2, 5, 3], [2, 5, 3], .causal),
     ([1, 2], [7, 4], .causalBottomRight), ([3, 1], [1, 3], .causalBottomRight),
     ([16, 2], [16, 2], .causal), ([17, 3], [5, 18], .none), ([2, 3], [0, 4], .none),
     ([0, 3, 0, 2], [2, 3, 0, 4], .none),
     ([4, 6], [8, 6], .window .bottomRight (some 2) (some 0))]

/-- Packed sequences, one attention for each. -/
def varlensSliced : Family VarlenCase where
  name := "varlen-sliced"
  about := "Packed sequences, one attention for each slice between cumulative lengths: a length \
    that is off by one lets a neighbour in."
  theoremId := "varlen-sliced"
  cases := varlenCases true
    [([1], [1], .none), ([2, 2], [3, 3], .none), ([5, 1, 4], [2, 9, 4], .none),
     ([3, 3], [3, 3], .causal), ([1, 4, 2], [6, 4, 3], .causalBottomRight),
     ([1, 1], [16, 17], .none), ([18, 1], [18, 20], .causalBottomRight),
     ([2, 0, 3], [4, 5, 0], .none), ([7, 2, 1], [7, 2, 1], .causal),
     ([3, 5], [10, 5], .window .bottomRight (some 1) (some 1)), ([1, 1, 1, 1], [1, 2, 3, 4], .none)]

/-- A cache in pages, with random contents and given tables. -/
def pagedCase (reason : String) (page_size num_pages : Nat) (tables : List (List Nat × Nat)) :
    Gen PagedCase := do
  return { reason, head_dim := 3, value_dim := 2, page_size, num_pages
           k := ← headRows num_pages page_size 3, v := ← draws (valueRows page_size 2) num_pages
           sequences := ← tables.mapM fun (table, length) => do
             return { q := (← intRows 1 1 3).headD [], table, length } }

/-- Keys and values in pages. -/
def pageds : Family PagedCase where
  name := "paged"
  about := "Keys and values in pages of a pool, through a table for each sequence: a page in the \
    wrong order, the slots beyond the length, or another sequence's page shows."
  theoremId := "paged"
  cases := eachNamed
    [("one page, filled", 4, 1, [([0], 4)]), ("one page, filled in part", 4, 2, [([1], 3)]),
     ("pages out of order", 4, 3, [([2, 0, 1], 12)]),
     ("the last page holds one token", 4, 5, [([4, 1, 3], 9)]),
     ("two sequences", 4, 6, [([0, 2, 4], 10), ([5, 3], 8)]),
     ("three sequences that share their first page", 2, 7,
       [([0, 1, 2], 6), ([0, 3], 4), ([0, 4, 5, 6], 7)]),
     ("pages of one slot", 1, 6, [([5, 3, 1], 3), ([0, 2], 2)]),
     ("pages of 16 slots", 16, 3, [([2, 0], 20), ([1], 16)]),
     ("pages of 16 slots, 17 tokens", 16, 2, [([1, 0], 17)]),
     ("a table with pages beyond the length", 4, 4, [([3, 1, 0, 2], 5)]),
     ("one page twice in a table", 2, 3, [([1, 1, 0], 5)]),
     ("a sequence without tokens", 4, 2, [([0, 1], 0), ([1], 2)])]
    fun (reason, page_size, num_pages, tables) => pagedCase reason page_size num_pages tables

/-- Prefixes that are computed once. -/
def cascades : Family CascadeCase where
  name := "cascade"
  about := "Queries of several requests with a shared prefix of keys, computed once, and a suffix \
    for each: the two states of a query are merged, each with its own maximum."
  theoremId := "cascade"
  cases := each "lengths"
    [(1, 4, [2], 3), (2, 5, [3, 1], 2), (3, 16, [1, 1, 1], 16), (2, 17, [4, 18], 16),
     (4, 20, [0, 1, 2, 3], 8), (1, 33, [17], 16), (3, 1, [5, 5, 5], 4), (2, 0, [3, 2], 4),
     (5, 9, [1, 9, 0, 4, 2], 3), (2, 40, [0, 0], 16), (2, 0, [0, 3], 4)]
    fun (q_len, prefix_len, (suffix_lens : List Nat), block_n) => do
      return { reason := s!"a prefix of {prefix_len} keys and suffixes of {suffix_lens}, in tiles \
                 of {block_n}"
               head_dim := 3, value_dim := 2, block_n, q := ← intRows 2 q_len 3
               prefix_k := ← intRows 1 prefix_len 3, prefix_v := ← valueRows prefix_len 2
               suffixes := ← suffix_lens.mapM fun n => do
                 return (← intRows 1 n 3, ← valueRows n 2) }

end Attention.Vectors
