module

public import Attention.Vectors.PastTilesFamilies

public section

/-! # Families of dropout, temperatures and packed heads past the tiles

Forwards and backwards: several tiles of 64 and of 128 in both directions, ragged. -/

namespace Attention.Vectors

open Spec

/-- Dropout past the tiles. -/
def dropoutsPastTilesSampled : Family SampledCase where
  name := "past-tiles-dropout"
  about := "Dropout with several tiles of 64 and of 128 in both directions, with heads that share \
    keys and several sequences: random numbers of another tile, head or sequence show."
  theoremId := "flash-dropout"
  cases :=
    let entry (name reason : String) (s : LargeShape) (scale : Int) (rows : List Nat) (p : Rat)
        (seed : Nat) (mask : MaskKind := .none) : Named SampledCase :=
      ⟨name, return { sampledCase s!"past-tiles-dropout/{name}"
        s!"{reason}: p = {p}, {maskText mask}" s scale rows [mask] with
        dropout := some (p, seed) }⟩
    [entry "tiles" "several tiles in both directions" ⟨1, 1, 2, 140, 200, 16, 8⟩ 2
       [0, 63, 64, 127, 128, 139] (1 / 4) 31,
     entry "causal" "several tiles in both directions" ⟨1, 1, 1, 150, 150, 64, 16⟩ (-2)
       [64, 128, 149] (1 / 2) 32 .causal,
     entry "sequences" "several sequences and heads" ⟨2, 2, 1, 66, 130, 16, 8⟩ 3 [0, 64, 65] (1 / 2)
       33 .causalBottomRight,
     entry "long" "more than 1,024 keys, a seed beyond 32 bits" ⟨1, 1, 2, 2, 1100, 16, 8⟩ 2 [1]
       (1 / 8) (2 ^ 40 + 34)]

/-- Temperatures past the tiles. -/
def temperaturesPastTiles : Family NaturalSampledCase where
  name := "past-tiles-temperature"
  about := "A temperature for each query head with several tiles of 64 and of 128 in both \
    directions, with heads that share keys and with other changes of the scores: that of the first \
    head for all, or one that is left out from the second tile on, shows."
  theoremId := "enclosure-sound"
  cases :=
    let entry (name reason : String) (s : LargeShape) (rows : List Nat) (temperatures : List Rat)
        (scale : Option Rat := none) (mask : MaskKind := .none)
        (change : SampledCase → SampledCase := id) : Named NaturalSampledCase :=
      ⟨name, return ⟨change { naturalSampledCase s!"past-tiles-temperature/{name}"
        s!"{reason}, temperatures {temperatures}" s rows scale mask with
        temperatures := some temperatures }⟩⟩
    [entry "tiles" "several tiles in both directions" ⟨1, 1, 2, 140, 200, 16, 4⟩ [64, 139]
       [3 / 2, -1],
     entry "shared" "heads that share keys" ⟨1, 2, 2, 70, 130, 64, 4⟩ [64, 69] [1, 1 / 2, 2, -1]
       (mask := .window .bottomRight (some 66) (some 2)),
     entry "causal" "a given scale" ⟨1, 2, 1, 150, 150, 16, 4⟩ [64, 149] [1 / 2, 2] (some (3 / 16))
       .causal,
     entry "together" "with softcap, ALiBi and sinks" ⟨1, 1, 2, 66, 140, 16, 4⟩ [0, 65] [2, 1 / 2]
       (change := fun c => { c with
         softcap := some 3, alibi := some (.bottomRight, [1 / 16, 1 / 64]), sinks := some [1, 2] }),
     entry "long" "more than 1,024 keys" ⟨1, 1, 1, 2, 1100, 16, 4⟩ [1] [3 / 2]]

/-- Packed sequences as text. -/
def sequencesText (q_lens kv_lens : List Nat) : String :=
  s!"packed sequences of {q_lens} queries and {kv_lens} keys"

/-- Packed sequences of several heads past the tiles. -/
def packedPastTiles : Family SampledCase where
  name := "past-tiles-packed"
  about := "Packed sequences with several heads, and heads that share keys, some longer than a \
    tile of 64 or of 128, beside short and empty ones: keys of another sequence or head, or rows \
    that are read at the strides of another number of heads, show."
  theoremId := "varlen"
  cases :=
    let entry (name : String) (num_kv_heads group head_dim : Nat) (scale : Int)
        (q_lens kv_lens rows : List Nat) (mask : MaskKind := .none) : Named SampledCase :=
      ⟨name, return { sampledCase s!"past-tiles-packed/{name}"
        s!"{maskText mask}, {sequencesText q_lens kv_lens}"
        ⟨1, num_kv_heads, group, q_lens.sum, kv_lens.sum, head_dim, 8⟩ scale rows [mask] with
        packed := some (q_lens, kv_lens) }⟩
    [entry "heads" 3 1 16 2 [67, 3, 66] [140, 2, 66] [0, 66, 67, 70, 135],
     entry "shared" 2 2 16 (-2) [3, 0, 70, 1] [130, 5, 70, 3] [2, 3, 67, 72, 73] .causalBottomRight,
     entry "128" 2 3 128 3 [2, 66] [67, 66] [1, 2, 66] .causal,
     entry "window" 2 2 64 2 [1, 130] [66, 135] [0, 65, 130]
       (.window .bottomRight (some 64) (some 3))]

/-- Gradients with dropout past the tiles. -/
def gradientsPastTilesDropped : Family SampledGradientCase where
  name := "gradient-past-tiles-dropout"
  about := "Gradients with dropout and several tiles of 64 and of 128 queries and of keys: factors \
    of another tile, head or sequence, in dQ or in dK and dV alone, show."
  theoremId := "gradient-dropout-enclosed"
  cases :=
    let entry (name reason : String) (s : LargeShape) (rows keys : List Nat) (p : Rat) (seed : Nat)
        (mask : MaskKind := .none) (byLse : Bool := false) : Named SampledGradientCase :=
      ⟨name, return { sampledGradientCase s!"gradient-past-tiles-dropout/{name}"
        s!"{reason}, dropout with p = {p}" s rows keys (mask := mask) (byLse := byLse) with
        dropout := some (p, seed) }⟩
    [entry "queries" "several tiles of queries" ⟨1, 1, 1, 130, 3, 4, 2⟩ [0, 63, 64, 128, 129] [0, 2]
       (1 / 2) 41,
     entry "keys" "several tiles of keys" ⟨1, 1, 1, 3, 140, 4, 2⟩ [0, 2] [0, 63, 64, 128, 139]
       (1 / 4) 42 (byLse := true),
     entry "both" "several tiles of queries and of keys" ⟨1, 1, 1, 66, 70, 4, 2⟩ [0, 64, 65]
       [0, 63, 64, 69] (1 / 2) 43 (.window .bottomRight (some 7) (some 2)),
     entry "shared" "heads that share keys" ⟨1, 1, 2, 66, 3, 4, 2⟩ [0, 64, 65] [0, 2] (1 / 2)
       (2 ^ 40 + 44) (byLse := true),
     entry "sequences" "several sequences" ⟨2, 1, 1, 2, 132, 4, 2⟩ [0, 1] [0, 64, 130, 131]
       (1 / 2) 45]

/-- Gradients with temperatures past the tiles. -/
def gradientsPastTilesTemperature : Family SampledGradientCase where
  name := "gradient-past-tiles-temperature"
  about := "Gradients with a temperature for each query head, and by it, with several tiles of 64 \
    and of 128 queries and of keys: dK of a later tile without the temperature, dQ without it, or \
    a sum over the first tile alone shows."
  theoremId := "gradient-temperature-enclosed"
  cases :=
    let entry (name reason : String) (s : LargeShape) (rows keys : List Nat)
        (temperatures : List Rat) (mask : MaskKind := .none) (byLse : Bool := false)
        (change : NaturalGradientCase → NaturalGradientCase := id) : Named SampledGradientCase :=
      ⟨name, return { sampledGradientCase s!"gradient-past-tiles-temperature/{name}"
        s!"{reason}, temperatures {temperatures}" s rows keys change mask (byLse := byLse) with
        temperatures := some temperatures }⟩
    [entry "queries" "several tiles of queries" ⟨1, 1, 2, 130, 3, 4, 2⟩ [0, 63, 64, 128, 129] [0, 2]
       [3 / 2, -1] (byLse := true),
     entry "keys" "several tiles of keys" ⟨1, 2, 1, 2, 140, 4, 2⟩ [0, 1] [0, 63, 64, 128, 139]
       [2, 1 / 2],
     entry "both" "several tiles of queries and of keys" ⟨1, 1, 1, 66, 70, 4, 2⟩ [0, 64, 65]
       [0, 63, 64, 69] [1 / 2] (.window .bottomRight (some 7) (some 2)),
     entry "wide" "heads of 64 columns" ⟨1, 1, 2, 2, 66, 64, 4⟩ [1] [64, 65] [2, 3 / 2],
     entry "together" "with softcap and ALiBi" ⟨1, 1, 2, 2, 132, 4, 2⟩ [1] [0, 64, 130, 131]
       [-1, 2] (change := fun c => { c with
         softcap := some 2, alibi := some (.bottomRight, [1 / 64, 1 / 16]) })]

/-- Gradients of packed sequences of several heads past the tiles. -/
def gradientsPastTilesPacked : Family SampledGradientCase where
  name := "gradient-past-tiles-packed"
  about := "Gradients of packed sequences with several heads, and heads that share keys, some \
    longer than a tile of 64 or of 128, beside short and empty ones: a sum over another sequence's \
    queries, another head's keys, or rows at the strides of another number of heads, show."
  theoremId := "gradient-enclosed"
  cases :=
    let entry (name : String) (num_kv_heads group head_dim : Nat) (q_lens kv_lens rows keys :
        List Nat) (mask : MaskKind := .none) (byLse : Bool := false) : Named SampledGradientCase :=
      ⟨name, return { sampledGradientCase s!"gradient-past-tiles-packed/{name}"
        (sequencesText q_lens kv_lens)
        ⟨1, num_kv_heads, group, q_lens.sum, kv_lens.sum, head_dim, 2⟩ rows keys (mask := mask)
        (byLse := byLse) with packed := some (q_lens, kv_lens) }⟩
    [entry "queries" 2 1 4 [66, 2, 130] [2, 1, 2] [65, 66, 68, 132, 197] [0, 3, 4] (byLse := true),
     entry "keys" 1 2 4 [2, 1, 1] [66, 2, 130] [0, 2, 3] [64, 65, 67, 68, 132, 197],
     entry "both" 1 2 4 [66, 0, 3] [68, 2, 66] [64, 65, 68] [64, 67, 70, 135]
       (.window .bottomRight (some 4) (some 0)),
     entry "shared" 2 2 4 [2, 1, 66] [3, 1, 4] [1, 67, 68] [2, 7] .causal (byLse := true),
     entry "wide" 2 1 64 [1, 2] [2, 66] [2] [67]]

end Attention.Vectors
