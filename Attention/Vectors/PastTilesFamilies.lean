module

public import Attention.Vectors.LargeFamilies
public import Attention.Vectors.SampledGradient

public section

/-! # Families past the tiles

Several tiles of 64 and of 128 in both directions, and ragged ones; more than 1,024 keys; head sizes
from 16 to 256 with every column in use; masks that differ by head and sequence; numbers that need
24 bits. Scales are not 1. -/

namespace Attention.Vectors

open Spec

/-- Sizes of a case: sequences, heads of keys and values, query heads for each of these, queries,
keys, and columns of keys and of values. -/
structure LargeShape where
  /-- How many sequences. -/
  batch : Nat := 1
  /-- Heads of keys and values of each. -/
  num_kv_heads : Nat := 1
  /-- Query heads for each head of keys and values. -/
  group : Nat := 1
  /-- Queries of a head. -/
  q_len : Nat
  /-- Keys of a head. -/
  kv_len : Nat
  /-- Columns of Q and K. -/
  head_dim : Nat
  /-- Columns of V. -/
  value_dim : Nat

/-- The shape as text. -/
def LargeShape.text (s : LargeShape) : String :=
  s!"batch {s.batch}, {s.num_kv_heads * s.group} query heads, {s.num_kv_heads} of keys and values, \
    {sizes s.q_len s.kv_len s.head_dim}, value_dim {s.value_dim}"

/-- A case over the exact model. Each key uses about four columns, so that many keys have a weight,
and the keys together use all of them. -/
def sampledCase (name reason : String) (s : LargeShape) (scale : Int) (rows : List Nat)
    (masks : List MaskKind := [.none]) : SampledCase :=
  { s with
    reason := s!"{reason}; scale {scale}, {s.text}", scale := some scale, masks, rows
    q := { name := name ++ "/q", bound := 1 }
    k := { name := name ++ "/k", bound := 1, oneIn := max 1 (s.head_dim / 6) }
    v := { name := name ++ "/v", bound := 64, over := 8 } }

/-- Sizes past the tiles. -/
def pastTiles : Family SampledCase where
  name := "past-tiles"
  about := "Several tiles of 64 and of 128 in both directions and ragged ones, up to 2100 keys, \
    head sizes up to 256 with every column in use, several sequences and heads in one call, masks \
    that differ by head and by sequence, values of 24 bits: what is wrong from the second tile on \
    shows."
  theoremId := "flash-eq-attention"
  cases :=
    let entry (name reason : String) (s : LargeShape) (scale : Int) (rows : List Nat)
        (masks : List MaskKind := [.none]) (change : SampledCase → SampledCase := id) :
        Named SampledCase :=
      ⟨name, return change (sampledCase s!"past-tiles/{name}" reason s scale rows masks)⟩
    let several := [0, 63, 64, 127, 128, 139]
    [entry "tiles" "several tiles in both directions" ⟨1, 1, 2, 140, 200, 64, 32⟩ 2 several,
     entry "wide" "every column of a wide head" ⟨1, 1, 1, 5, 300, 256, 256⟩ (-2) [0, 1, 2, 3, 4]
       (change := fun c => { c with
         q := { c.q with bound := 2 }, k := { c.k with oneIn := 24 } }),
     entry "long" "more than 2048 keys" ⟨1, 1, 1, 2, 2100, 16, 16⟩ 2 [1],
     entry "square" "causal, past 512" ⟨1, 1, 1, 600, 600, 16, 8⟩ 2
       [511, 512, 513, 530, 598] [.causal],
     entry "unequal" "causal past 512, with fewer queries than keys" ⟨1, 1, 1, 560, 700, 16, 8⟩ 2
       [511, 512, 513, 530, 559] [.causal],
     entry "bottom-right" "causal, aligned bottom-right, past 1024" ⟨2, 1, 1, 150, 1100, 16, 8⟩ 2
       [0, 149] [.causalBottomRight],
     entry "window" "a window over several tiles" ⟨1, 2, 1, 140, 300, 16, 8⟩ (-2) [0, 70, 139]
       [.window .bottomRight (some 130) (some 3)],
     entry "masks" "a mask of its own for each head of each sequence" ⟨2, 2, 1, 70, 150, 16, 8⟩ 2
       [0, 64, 69]
       [.keyLength 131, .causalBottomRight,
        .keyPadding ((List.range 150).map fun j => j % 7 != 3 && j < 140),
        .window .topLeft (some 60) (some 70)],
     entry "padding" "each sequence has its own number of keys, for all heads"
       ⟨2, 1, 2, 3, 150, 16, 8⟩ 3 [0, 2]
       [.keyLength 150, .keyLength 150, .keyLength 67, .keyLength 67],
     entry "shared" "heads of 128 columns that share keys" ⟨1, 2, 3, 5, 140, 128, 16⟩ 3 [4],
     entry "precise" "values that need 24 bits" ⟨1, 1, 1, 70, 140, 16, 8⟩ 2 [0, 64, 69]
       (change := fun c => { c with v := { c.v with bound := 2 ^ 23 - 1, over := 2 ^ 20 } }),
     entry "documents" "documents longer than a tile" ⟨1, 1, 2, 140, 200, 16, 8⟩ 3 [0, 66, 139]
       [.document ((List.range 140).map (· / 67)) ((List.range 200).map (· / 70))]]

/-- A case of the natural exponential, with the default scale unless one is given. -/
def naturalSampledCase (name reason : String) (s : LargeShape) (rows : List Nat)
    (scale : Option Rat := none) (mask : MaskKind := .none) : SampledCase :=
  { s with
    reason := s!"{reason}; {maskText mask}; {s.text}", scale, masks := [mask], rows
    q := { name := name ++ "/q", bound := 32, over := 16 }
    k := { name := name ++ "/k", bound := 32, over := 16 }
    v := { name := name ++ "/v", bound := 64, over := 8 } }

/-- The changes of the scores, past the tiles. -/
def pastTilesOptions : Family NaturalSampledCase where
  name := "past-tiles-options"
  about := "Softcap, ALiBi, bias and sinks, the default scale, and inputs of 24 bits, with several \
    tiles of 64 and of 128 in both directions: an option that is left out from the second tile on, \
    slopes or sinks of another head, or inputs that are rounded to 16 bits show."
  theoremId := "enclosure-sound"
  cases :=
    let shape : LargeShape := ⟨1, 1, 2, 140, 200, 16, 4⟩
    let entry (name reason : String) (change : SampledCase → SampledCase) (s : LargeShape := shape)
        (rows : List Nat := [64, 139]) (scale : Option Rat := none) (mask : MaskKind := .none) :
        Named NaturalSampledCase :=
      ⟨name, return ⟨change (naturalSampledCase s!"past-tiles-options/{name}" reason s rows scale
        mask)⟩⟩
    let slopes : List Rat := [1 / 16, 1 / 64]
    let bits (r : Rule) : Rule := { r with bound := 2 ^ 23 - 1, over := 2 ^ 22 }
    [entry "default-scale" "the default scale" id,
     entry "softcap" "softcap" fun c => { c with softcap := some 3 },
     entry "alibi" "ALiBi, top-left" (fun c => { c with alibi := some (.topLeft, slopes) })
       (scale := some (1 / 8)),
     entry "alibi-bottom-right" "ALiBi, bottom-right"
       (fun c => { c with alibi := some (.bottomRight, slopes) }) (mask := .causalBottomRight),
     entry "bias" "a bias" (fun c => { c with
       bias := some { name := "past-tiles-options/bias/bias", bound := 32, over := 8 } })
       ⟨1, 1, 2, 70, 140, 16, 4⟩ [0, 64] (some (-1 / 8)),
     entry "sinks" "sinks" (fun c => { c with sinks := some [2, -1] }) (scale := some (3 / 16)),
     entry "together" "softcap, ALiBi and sinks" (fun c => { c with
       softcap := some 4, alibi := some (.bottomRight, slopes), sinks := some [1, 3] })
       (mask := .window .bottomRight (some 130) (some 0)),
     entry "long" "softcap and sinks, more than 1024 keys" (fun c => { c with
       softcap := some 2, sinks := some [4] }) ⟨1, 1, 1, 2, 1100, 16, 4⟩ [1],
     entry "precise" "queries, keys and values that need 24 bits" (fun c => { c with
       q := bits c.q, k := bits c.k, v := bits c.v }) ⟨1, 1, 1, 70, 140, 16, 4⟩ [0, 69]]

/-- A case of gradients; numbers are drawn from its name. bits: of all numbers, 0: few. byLse:
whether the loss depends on the log-sum-exps. -/
def sampledGradientCase (name reason : String) (s : LargeShape) (rows keys : List Nat)
    (change : NaturalGradientCase → NaturalGradientCase := id) (mask : MaskKind := .none)
    (bits : Nat := 0) (byLse : Bool := false) (biased : Bool := false)
    (masks : List MaskKind := [mask]) : SampledGradientCase :=
  let rule (part : String) (bound over : Nat) : Rule :=
    { name := s!"{name}/{part}", over := if bits = 0 then over else 2 ^ 22
      bound := if bits = 0 then bound else 2 ^ bits - 1 }
  let masked := if masks.length = 1 then maskText mask else s!"{masks.length} masks"
  { q := rule "q" 32 16, k := rule "k" 32 16, v := rule "v" 64 8, dO := rule "grad_output" 64 8
    dLse := { rule "grad_log_sum_exp" 32 8 with bound := if byLse then 32 else 0, over := 8 }
    rows, keys, masks, batch := s.batch
    bias := if biased then some (rule "bias" 32 8) else none
    without := change {
      reason := s!"{reason}; {masked}; {s.text}"
      num_kv_heads := s.batch * s.num_kv_heads, group := s.group
      q_len := s.q_len, kv_len := s.kv_len, head_dim := s.head_dim, value_dim := s.value_dim
      q := [], k := [], v := [], dO := [], dLse := [] } }

/-- Gradients past the tiles. -/
def gradientsPastTiles : Family SampledGradientCase where
  name := "gradient-past-tiles"
  about := "Gradients with several tiles of 64 and of 128 queries and of keys, in both directions, \
    with wide heads, heads that share keys, each option, and inputs of 24 bits: a tile that is \
    left out of a sum, an option that is left out from the second tile on, or columns past 64 show."
  theoremId := "gradient-sink-enclosed"
  cases :=
    let entry (name reason : String) (s : LargeShape) (rows keys : List Nat)
        (change : NaturalGradientCase → NaturalGradientCase := id) (mask : MaskKind := .none)
        (bits : Nat := 0) (byLse : Bool := false) : Named SampledGradientCase :=
      ⟨name, return (sampledGradientCase s!"gradient-past-tiles/{name}" reason s rows keys change
        mask bits byLse)⟩
    [entry "queries" "several tiles of queries" ⟨1, 1, 1, 150, 4, 4, 2⟩ [0, 63, 64, 128, 149] [0, 3]
       (fun c => { c with scale := some (3 / 4) }),
     entry "keys" "several tiles of keys" ⟨1, 1, 1, 4, 300, 4, 2⟩ [0, 3] [0, 63, 64, 128, 299]
       (fun c => { c with scale := some (-3 / 4) }),
     entry "both" "several tiles of queries and of keys" ⟨1, 1, 1, 66, 70, 4, 2⟩ [0, 64, 65]
       [0, 63, 64, 69] (mask := .causalBottomRight),
     entry "wide" "wide heads that share keys" ⟨1, 1, 2, 3, 7, 256, 128⟩ [2] [6],
     entry "shared" "heads that share keys" ⟨1, 2, 2, 70, 3, 16, 4⟩ [64, 69] [0, 2]
       (byLse := true),
     entry "softcap" "softcap" ⟨1, 1, 1, 2, 140, 4, 2⟩ [1] [63, 64, 139]
       (fun c => { c with softcap := some 2 }),
     entry "alibi" "ALiBi" ⟨1, 1, 2, 70, 3, 4, 2⟩ [64, 69] [0, 2]
       (fun c => { c with alibi := some (.bottomRight, [1 / 16, 1 / 8]) }),
     entry "alibi-keys" "ALiBi" ⟨1, 1, 1, 2, 140, 4, 2⟩ [1] [63, 64, 139]
       (fun c => { c with alibi := some (.topLeft, [1 / 64]) }),
     entry "sinks" "sinks" ⟨1, 1, 2, 70, 3, 4, 2⟩ [64, 69] [0, 2]
       (fun c => { c with sinks := some [1, -1] }) (byLse := true),
     entry "sinks-keys" "sinks" ⟨1, 1, 1, 2, 140, 4, 2⟩ [1] [63, 64, 139]
       (fun c => { c with sinks := some [3] }),
     entry "precise" "inputs that need 24 bits" ⟨1, 1, 1, 3, 9, 16, 4⟩ [0, 2] [0, 8]
       (bits := 23)]

/-- Gradients past the tiles in calls of several sequences, with biases and masks. -/
def gradientsPastTilesMasks : Family SampledGradientCase where
  name := "gradient-past-tiles-masks"
  about := "Gradients past tiles of 64 and of 128 with a bias, with windows, masks that differ \
    by head and by sequence, of several sequences in one call, heads of 64 to 256 columns, and \
    more than 1,024 keys: a bias or a mask of another head, sequence or tile, or a sum over \
    several sequences, shows."
  theoremId := "gradient-sink-enclosed"
  cases :=
    let entry (name reason : String) (s : LargeShape) (rows keys : List Nat)
        (change : NaturalGradientCase → NaturalGradientCase := id) (mask : MaskKind := .none)
        (byLse : Bool := false) (biased : Bool := false) (masks : List MaskKind := [mask]) :
        Named SampledGradientCase :=
      ⟨name, return (sampledGradientCase s!"gradient-past-tiles-masks/{name}" reason s rows keys
        change mask 0 byLse biased masks)⟩
    [entry "bias" "a bias, several tiles of queries and of keys" ⟨1, 1, 1, 66, 70, 4, 2⟩ [0, 64, 65]
       [0, 63, 64, 69] (mask := .window .bottomRight (some 9) (some 2)) (biased := true),
     entry "bias-queries" "a bias" ⟨1, 1, 1, 130, 3, 4, 2⟩ [64, 128, 129] [0, 2] (biased := true)
       (byLse := true),
     entry "bias-keys" "a bias" ⟨1, 2, 1, 2, 140, 4, 2⟩ [1] [63, 64, 128, 139] (biased := true),
     entry "masks-of-keys" "a mask of its own for each head of each sequence"
       ⟨2, 2, 1, 3, 140, 4, 2⟩ [0, 2] [0, 64, 128, 130, 139]
       (masks := [.keyLength 131, .causalBottomRight,
        .keyPadding ((List.range 140).map fun j => j % 7 != 3 && j < 138),
        .window .bottomRight (some 60) (some 1)]),
     entry "masks-of-queries" "a mask of its own for each head of each sequence"
       ⟨2, 2, 1, 70, 4, 4, 2⟩ [0, 64, 69] [0, 1, 3] (byLse := true)
       (masks := [.keyLength 3, .window .topLeft (some 66) (some 0), .causal,
        .document ((List.range 70).map (· / 66)) [0, 1, 0, 1]]),
     entry "padding" "each sequence has its own number of keys, for all heads"
       ⟨2, 1, 2, 2, 132, 4, 2⟩ [0, 1] [0, 64, 66, 131]
       (masks := [.keyLength 132, .keyLength 132, .keyLength 66, .keyLength 66]),
     entry "sequences" "several sequences, heads that share keys" ⟨2, 1, 2, 66, 2, 4, 2⟩ [0, 64, 65]
       [0, 1] (byLse := true),
     entry "causal" "several tiles of queries and of keys" ⟨1, 1, 1, 66, 66, 4, 2⟩ [0, 64, 65]
       [0, 63, 64, 65] (mask := .causal),
     entry "window" "a window over several tiles" ⟨1, 1, 1, 70, 132, 4, 2⟩ [0, 63, 64, 69]
       [60, 64, 127, 128, 131] (mask := .window .bottomRight (some 4) (some 2)),
     entry "softcap" "softcap" ⟨1, 1, 1, 130, 2, 4, 2⟩ [64, 128, 129] [0, 1]
       (fun c => { c with softcap := some 2 }),
     entry "shared" "heads that share several tiles of keys" ⟨1, 1, 3, 2, 132, 4, 2⟩ [0, 1]
       [0, 64, 128, 131],
     entry "keys-64" "several tiles of keys of 64 columns" ⟨1, 1, 1, 2, 66, 64, 16⟩ [1] [65],
     entry "queries-64" "several tiles of queries of 64 columns" ⟨1, 1, 1, 66, 2, 64, 4⟩ [65] [1],
     entry "keys-128" "several tiles of keys of 128 columns" ⟨1, 1, 1, 2, 132, 128, 64⟩ [1] [131],
     entry "queries-256" "several tiles of queries of 256 columns" ⟨1, 1, 1, 67, 2, 256, 4⟩ [66]
       [1],
     entry "long" "more than 1,024 keys" ⟨1, 1, 1, 1, 1100, 4, 2⟩ [0] [1023, 1024, 1099],
     entry "softcap-both" "softcap, several tiles of queries and of keys" ⟨1, 1, 1, 66, 70, 4, 2⟩
       [64, 65] [63, 64, 69] (fun c => { c with softcap := some 2 })
       (.window .bottomRight (some 3) (some 0)),
     entry "alibi-both" "ALiBi, heads that share several tiles of keys" ⟨1, 1, 2, 66, 70, 4, 2⟩
       [64, 65] [64, 69] (fun c => { c with alibi := some (.bottomRight, [1 / 16, 1 / 4]) })
       (.window .bottomRight (some 3) (some 0)),
     entry "sinks-both" "sinks, several tiles of queries and of keys" ⟨1, 2, 1, 66, 70, 4, 2⟩
       [64, 65] [64, 69] (fun c => { c with sinks := some [1, -1] })
       (.window .bottomRight (some 3) (some 0)) (byLse := true),
     entry "sequences-both" "several sequences, each with a mask of its own" ⟨2, 1, 1, 66, 70, 4, 2⟩
       [64, 65] [64, 68, 69]
       (masks := [.window .bottomRight (some 3) (some 0),
        .document ((List.range 66).map (· / 6)) ((List.range 70).map (· / 6))])]

end Attention.Vectors
