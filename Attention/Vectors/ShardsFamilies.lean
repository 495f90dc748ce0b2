module

public import Attention.Vectors.LargeFamilies
public import Attention.Vectors.Shards

public section

/-! # The families of sequences in shards -/

namespace Attention.Vectors

open Spec

/-- A sequence in shards: its devices, lengths and mask. -/
structure InShards where
  /-- The number of devices. -/
  devices : Nat
  /-- The number of queries. -/
  q_len : Nat
  /-- The number of keys. -/
  kv_len : Nat
  /-- Which keys each query may attend to. -/
  mask : MaskKind

instance : ToString InShards where
  toString s := s!"{s.devices} {s.q_len} {s.kv_len} {s.mask}"

/-- Random numbers in shards. -/
def shardsCase (reason : String) (s : InShards) (layout : Layout) : Gen ShardsCase :=
  return { reason := s!"{reason}, devices: {s.devices}, {sizes s.q_len s.kv_len 3}, \
             {maskText s.mask}"
           head_dim := 3, value_dim := 2, mask := s.mask, devices := s.devices, layout
           q := ← intRows 2 s.q_len 3, k := ← intRows 2 s.kv_len 3
           v := ← valueRows s.kv_len 2 }

/-- Stretches. -/
def shardsContiguous : Family ShardsCase where
  name := "shards-contiguous"
  about := "A stretch of the sequence on each device, of lengths that differ by one where the \
    number of devices does not divide the whole: masks go by places of the whole, and each device \
    meets the keys of the others in its own order, those of the one before it first."
  theoremId := "ring-net-skips"
  cases := each "in shards"
    ([⟨1, 5, 5, .causal⟩, ⟨2, 8, 8, .none⟩, ⟨2, 7, 7, .causal⟩, ⟨3, 10, 10, .causal⟩,
      ⟨3, 5, 11, .causalBottomRight⟩, ⟨4, 2, 9, .causalBottomRight⟩,
      ⟨3, 11, 11, .window .topLeft (some 2) (some 0)⟩,
      ⟨2, 9, 6, .window .bottomRight (some 3) (some 1)⟩, ⟨2, 20, 37, .causal⟩] : List InShards)
    fun s => shardsCase "contiguous" s .contiguous

/-- Two ends. -/
def shardsZigzag : Family ShardsCase where
  name := "shards-zigzag"
  about := "Two stretches on each device, one from each end of the sequence: the second does not \
    follow the first, and where twice the number of devices does not divide the length no place is \
    lost."
  theoremId := "ring-net-skips"
  cases := each "in shards"
    ([⟨1, 5, 5, .causal⟩, ⟨2, 8, 8, .causal⟩, ⟨2, 9, 9, .causal⟩, ⟨3, 13, 13, .causal⟩,
      ⟨2, 7, 11, .causalBottomRight⟩, ⟨4, 17, 17, .causal⟩, ⟨3, 5, 5, .causal⟩,
      ⟨2, 11, 11, .window .topLeft (some 4) (some 0)⟩,
      ⟨3, 14, 9, .window .bottomRight (some 2) (some 3)⟩, ⟨3, 13, 10, .none⟩,
      ⟨2, 37, 37, .causal⟩] : List InShards)
    fun s => shardsCase "zigzag" s .zigzag

/-- Stripes. -/
def shardsStriped : Family ShardsCase where
  name := "shards-striped"
  about := "Every n-th place on each of n devices: under causality a device hides the diagonal of \
    the keys of those after it and shows that of those before it, and a window is divided by the \
    number of devices, rounded on each side."
  theoremId := "ring-net-skips"
  cases := each "in shards"
    ([⟨2, 8, 8, .causal⟩, ⟨2, 9, 9, .causal⟩, ⟨3, 10, 10, .causal⟩, ⟨3, 4, 11, .causalBottomRight⟩,
      ⟨4, 13, 13, .window .topLeft (some 5) (some 0)⟩,
      ⟨2, 9, 12, .window .bottomRight (some 2) (some 1)⟩, ⟨3, 11, 11, .none⟩,
      ⟨2, 35, 35, .causal⟩] : List InShards)
    fun s => shardsCase "striped" s .striped

/-- Stretches of these lengths, one after another. -/
def stretchesOf (lens : List Nat) : List (List Nat) :=
  (lens.foldl (fun (first, found) len => (first + len, found ++ [List.range' first len]))
    (0, [])).2

/-- Shards that are written down. -/
def shardsUneven : Family ShardsCase where
  name := "shards-uneven"
  about := "Shards of any lengths, empty ones too, and of any places: a device without queries \
    passes keys on, one without keys is met by nobody, and what it gives to the others is the \
    result of no keys, 0 and −∞."
  theoremId := "ring-net-skips"
  cases :=
    let stretches := each "stretches"
      [([5, 0, 3], [1, 7, 0], MaskKind.none), ([1, 6, 2], [1, 6, 2], .causal),
       ([0, 7], [0, 7], .causal), ([4, 0, 0, 5], [0, 3, 6, 0], .causalBottomRight),
       ([9, 1], [2, 11], .window .bottomRight (some 4) (some 0))]
      fun (queries, keys, mask) =>
        shardsCase s!"stretches of {queries} queries and {keys} keys"
          ⟨queries.length, queries.sum, keys.sum, mask⟩
          (.places (stretchesOf queries) (stretchesOf keys))
    let places := each "places"
      [([[7, 2, 4], [0, 1, 3, 6, 5]], [[0, 2, 1], [6, 3, 7, 5, 4]], MaskKind.causal),
       ([[8, 6, 4, 2, 0], [], [7, 5, 3, 1]], [[1, 0], [8, 7, 6], [2, 3, 5, 4]], .causal),
       ([[3, 0], [1, 2]], [[5, 1, 3], [4, 0, 2]], .window .bottomRight (some 1) (some 1))]
      fun (queries, keys, mask) =>
        shardsCase "places in no order"
          ⟨queries.length, queries.flatten.length, keys.flatten.length, mask⟩
          (.places queries keys)
    stretches ++ places

end Attention.Vectors
