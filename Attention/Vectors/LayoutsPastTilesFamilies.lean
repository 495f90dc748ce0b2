module

public import Attention.Vectors.DropoutFamilies

public section

/-! # Families of packed sequences, pages and dropout past the tiles

Lengths past tiles of 64 and of 128, ragged, heads of up to 256 columns, and scales other than
1. -/

namespace Attention.Vectors

open Spec

/-- Packed sequences past the tiles. -/
def varlensPastTiles : Family VarlenCase where
  name := "varlen-past-tiles"
  about := "Packed sequences of which some are longer than a tile of 64 or of 128, beside short \
    and empty ones: keys past the first tile that are left out, or taken from the next sequence, \
    show."
  theoremId := "varlen"
  cases := each "lengths"
    [([2, 67, 1], [131, 3, 200], .none, 2), ([3, 0, 66], [140, 5, 66], .causalBottomRight, -2),
     ([1, 70, 2], [66, 70, 150], .window .bottomRight (some 64) (some 0), 3)]
    fun (q_lens, kv_lens, mask, scale) => do
      let c ← varlenCase false (q_lens, kv_lens, mask)
      return { c with
        reason := s!"{maskText mask}, scale {scale}, {c.reason}", scale, head_dim := 4
        q := ← intRows 1 q_lens.sum 4, k := ← intRows 1 kv_lens.sum 4 }

/-- Pages past the tiles. -/
def pagedsPastTiles : Family PagedCase where
  name := "paged-past-tiles"
  about := "More pages to a sequence than a tile of 64 or of 128 keys has: a table that is read no \
    further, or from its beginning again, shows."
  theoremId := "paged"
  cases := eachNamed
    [("pages of 16 slots, 130 and 67 tokens", 16, 15,
       [([3, 0, 7, 1, 14, 2, 9, 4, 11], 130), ([5, 13, 6, 8, 10], 67)], 2),
     ("pages of 64 slots, 129 and 192 tokens", 64, 5, [([4, 0, 2], 129), ([1, 3, 4], 192)], -2)]
    fun (reason, page_size, num_pages, tables, scale) => do
      let c ← pagedCase reason page_size num_pages tables
      return { c with reason := s!"{reason}, scale {scale}", scale }

/-- The rules of the queries, keys and values of wide heads: each key uses about 20 columns, and the
keys together all. -/
def wideRules (name : String) (head_dim : Nat) : Rule × Rule × Rule :=
  ({ name := name ++ "/q", bound := 1 },
    { name := name ++ "/k", bound := 1, oneIn := max 1 (head_dim / 32) },
    { name := name ++ "/v", bound := 64, over := 8 })

/-- Packed sequences of wide heads. -/
def varlensWide : Family DrawnVarlenCase where
  name := "varlen-wide-heads"
  about := "Packed sequences with heads of 64, 128 and 256 columns, all of them in use, and more \
    keys than a tile: columns past a tile that are left out, or rows that are read at the strides \
    of narrower heads, show."
  theoremId := "varlen"
  cases :=
    [("64", 64, [3, 3], [3, 67], .causalBottomRight, 2), ("128", 128, [3, 3], [66, 2], .none, -2),
     ("256", 256, [3, 3], [3, 67], .window .bottomRight (some 64) (some 0), 2)].map
    fun (name, head_dim, q_lens, kv_lens, (mask : MaskKind), (scale : Int)) => ⟨name,
      let (q, k, v) := wideRules s!"varlen-wide-heads/{name}" head_dim
      return { q, k, v, without := {
        reason := s!"{maskText mask}, scale {scale}, sequences of {q_lens} queries and {kv_lens} \
          keys, head_dim {head_dim}, value_dim {head_dim}"
        scale, head_dim, value_dim := head_dim, q_lens, kv_lens, mask, sliced := false
        q := [], k := [], v := [] } }⟩

/-- Pages of wide heads. -/
def pagedsWide : Family DrawnPagedCase where
  name := "paged-wide-heads"
  about := "Pages with heads of 64, 128 and 256 columns, all of them in use, and more keys than a \
    tile: columns past a tile that are left out, or slots that are read at the strides of narrower \
    heads, show."
  theoremId := "paged"
  cases :=
    [("64", 64, 16, 7, [([3, 0, 6, 1, 5], 67), ([2, 4], 20)], 2),
     ("128", 128, 64, 3, [([2, 0], 66), ([1], 3)], -2),
     ("256", 256, 16, 6, [([4, 2, 0, 1, 3], 65), ([5], 5)], 2)].map
    fun (name, head_dim, page_size, num_pages, (tables : List (List Nat × Nat)), (scale : Int)) =>
      ⟨name,
      let (q, k, v) := wideRules s!"paged-wide-heads/{name}" head_dim
      return { q, k, v, without := {
        reason := s!"pages of {page_size} slots, {tables.map (·.2)} tokens, scale {scale}, \
          head_dim {head_dim}, value_dim {head_dim}"
        scale, head_dim, value_dim := head_dim, page_size, num_pages, k := [], v := []
        sequences := tables.map fun (table, length) => { q := [], table, length } } }⟩

/-- Dropout past the tiles. -/
def dropoutsPastTiles : Family DropoutCase where
  name := "dropout-past-tiles"
  about := "Dropout with several tiles of queries, and of keys: numbers that are counted from the \
    start of a tile show."
  theoremId := "flash-dropout"
  cases := eachNamed
    [("several tiles of keys", 1, 2, 1, 2, 140, .none, 1 / 2, 17),
     ("several tiles of queries", 1, 1, 1, 132, 3, .none, 1 / 4, 18)]
    fun (reason, batch, num_kv_heads, group, q_len, kv_len, mask, p, seed) => do
      let c ← dropoutCase reason batch num_kv_heads group q_len kv_len 3 2 mask p seed .formula
      return { c with forward := { c.forward with scale := 2 } }

end Attention.Vectors
