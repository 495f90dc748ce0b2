module

public import Attention.Vectors.DropoutFamilies

public section

/-! # Families of packed sequences, pages and dropout past the tiles

Lengths past tiles of 64 and of 128, ragged, and scales other than 1. -/

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
