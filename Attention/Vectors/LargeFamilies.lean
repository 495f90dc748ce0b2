module

public import Attention.Vectors.NaturalFamilies
public import Attention.Vectors.OperationFamilies

public section

/-! # Families of large sizes, and of everything together, drawn at random

A kernel takes other tiles, other launch options or another path altogether where lengths and head
sizes pass a power of two; and options that are right one by one can be wrong together. -/

namespace Attention.Vectors

open Spec

/-- A mask as text. -/
def maskText : MaskKind → String
  | .none => "no mask"
  | .causal => "causal, top-left"
  | .causalBottomRight => "causal, bottom-right"
  | .window alignment left right =>
    s!"{alignmentName alignment}, window of {boundText left} keys before and \
      {boundText right} after"
  | .keyLength length => s!"{length} keys"
  | .keyPadding _ => "some keys are padding"
  | .document _ _ => "documents"
  | .boolean _ => "a Boolean mask"

/-- A random number below `n`, or in one of four cases none. -/
def maybeBelow (n : Nat) : Gen (Option Nat) := do
  let x ← below n
  return if (← below 4) = 0 then none else some x

/-- A random mask; `kind` 0 to 8 says of which kind. -/
def drawnMask (kind q_len kv_len : Nat) : Gen MaskKind := do
  let alignment : Alignment := if (← below 2) = 0 then .topLeft else .bottomRight
  match kind with
  | 0 => return .none
  | 1 => return .causal
  | 2 => return .causalBottomRight
  | 3 => return .window alignment (← maybeBelow 8) (← maybeBelow 4)
  | 4 => return .window alignment (some (← below 20)) (some 0)
  | 5 => return .keyLength (← below (kv_len + 1))
  | 6 => return .keyPadding (← draws (return decide ((← below 4) != 0)) kv_len)
  | 7 =>
    let documents (n : Nat) : Gen (List Nat) := draws (below 3) n
    return .document (← documents q_len) (← documents kv_len)
  | _ => randomMask q_len kv_len (1 + (← below 7))

/-- Rows of hundreds of keys, up to the length of several tiles of the largest kernels. -/
def longKeys : Family Case where
  name := "long-keys"
  about := "Rows of 200 to 1100 keys, around multiples of the tiles that kernels use, with and \
    without masks: many tiles, many rescalings, many splits."
  theoremId := "flash-eq-attention"
  cases :=
    let plain := each "plain" [(1, 255, 8), (2, 256, 4), (1, 257, 8), (4, 300, 3), (1, 383, 6),
        (2, 400, 8), (1, 511, 4), (3, 512, 2), (1, 513, 8), (1, 640, 5), (2, 767, 3), (1, 900, 4),
        (1, 1023, 3), (1, 1024, 2), (1, 1025, 4), (4, 1100, 1), (1, 1100, 8)]
        fun (q_len, kv_len, head_dim) =>
      randomCase (sizes q_len kv_len head_dim) q_len kv_len head_dim 2
    let masked := each "masked"
      [(4, 260, 2, MaskKind.causalBottomRight), (3, 515, 2, .causalBottomRight),
       (4, 385, 3, .window .bottomRight (some 128) (some 0)),
       (2, 700, 2, .window .bottomRight (some 256) (some 0)),
       (3, 1030, 1, .window .bottomRight (some 512) (some 0)),
       (2, 520, 3, .window .topLeft none (some 300)), (2, 600, 2, .keyLength 517),
       (1, 1100, 2, .keyLength 1025), (4, 290, 3, .causal)] fun (q_len, kv_len, head_dim, mask) =>
      randomCase s!"{maskText mask}, {sizes q_len kv_len head_dim}" q_len kv_len head_dim 2
        (mask := mask)
    plain ++ masked

/-- Large head sizes, and sizes beside a power of two. -/
def wideHeads : Family Case where
  name := "wide-heads"
  about := "Head sizes from 48 to 256, multiples of 16 and others, and values wider or narrower \
    than the keys: a size that is padded, cut or read as another shows."
  theoremId := "flash-eq-attention"
  cases := each "sizes"
    [(2, 9, 48, 48), (1, 16, 63, 64), (3, 7, 64, 64), (2, 5, 65, 65), (1, 12, 72, 72),
     (2, 16, 80, 80), (1, 11, 96, 96), (2, 6, 100, 36), (1, 9, 112, 112), (2, 13, 120, 120),
     (1, 16, 127, 127), (3, 8, 128, 128), (1, 5, 129, 129), (2, 7, 144, 16), (1, 16, 160, 160),
     (1, 10, 176, 200), (2, 6, 191, 191), (1, 15, 192, 128), (1, 9, 193, 193), (1, 16, 200, 200),
     (2, 4, 224, 224), (1, 8, 240, 256), (1, 13, 255, 255), (2, 16, 256, 256), (1, 16, 256, 1),
     (1, 3, 16, 256)]
    fun (q_len, kv_len, head_dim, value_dim) =>
    randomCase s!"{sizes q_len kv_len head_dim}, value_dim {value_dim}" q_len kv_len head_dim
      value_dim

/-- Sizes, scale and mask drawn at random. -/
def drawn : Family Case where
  name := "drawn"
  about := "Sizes, scale and mask drawn at random, every kind of mask in turn: what is right case \
    by case and wrong in some combination shows."
  theoremId := "flash-eq-attention"
  cases := each "number" (List.range 171) fun i => do
    let q_len := 1 + (← below 24)
    let kv_len := 1 + (← below 40)
    let head_dim := 1 + (← below 20)
    let value_dim := 1 + (← below 12)
    let scale ← between (-1) 2
    let mask ← drawnMask (i % 9) q_len kv_len
    randomCase s!"{maskText mask}, scale {scale}, {sizes q_len kv_len head_dim}" q_len kv_len
      head_dim value_dim (scale := scale) (mask := mask)

/-- Sizes, scale, mask and every change of the scores drawn at random. -/
def drawnNatural : Family NaturalCase where
  name := "drawn-natural"
  about := "Softcap, ALiBi, bias, sink, mask, scale and sizes drawn at random: what is right alone \
    and wrong together shows."
  theoremId := "enclosure-sound"
  cases := each "number" (List.range 99) fun i => do
    let q_len := 1 + (← below 8)
    let kv_len := 1 + (← below 24)
    let mask ← drawnMask (i % 9) q_len kv_len
    let maybe {α : Type} (gen : Gen α) : Gen (Option α) := do
      let x ← gen
      return if (← below 2) = 0 then none else some x
    let scale ← maybe (return mkRat (← between (-8) 8) 8)
    let softcap ← maybe (return mkRat (1 + (← below 80)) 4)
    let slope ← maybe (return mkRat (← below 16) 16)
    let alignment : Alignment := match mask with
      | .window alignment _ _ => alignment
      | .causal => .topLeft
      | _ => .bottomRight
    let bias ← maybe (biasRows q_len kv_len (← below 3))
    let sink ← maybe (return mkRat (← between (-16) 16) 4)
    let parts := softcap.toList.map (fun x => s!", cap {x}")
      ++ slope.toList.map (fun x => s!", slope {x} {alignmentName alignment}")
      ++ bias.toList.map (fun _ => ", bias") ++ sink.toList.map (fun x => s!", sink {x}")
    let c ← naturalCase (maskText mask ++ String.join parts) q_len kv_len 4 2 (scale := scale)
      (mask := mask) (bound := 2)
    return { c with softcap, bias, sink, alibi := slope.map fun x => (alignment, x) }

/-- Grouped heads, sizes and mask drawn at random. -/
def groupedQueriesDrawn : Family HeadsCase where
  name := "grouped-query-drawn"
  about := "Numbers of heads, sizes and masks drawn at random."
  theoremId := "gqa-repeat"
  cases := each "number" (List.range 27) fun i => do
    let q_len := 1 + (← below 8)
    let kv_len := 1 + (← below 20)
    groupedCase .grouped
      (1 + (← below 3), 1 + (← below 4), q_len, kv_len, ← drawnMask (i % 9) q_len kv_len)

/-- Packed sequences, their number, lengths and mask drawn at random. -/
def varlensDrawn : Family VarlenCase where
  name := "varlen-drawn"
  about := "Numbers of sequences, their lengths and masks drawn at random, empty sequences among \
    them."
  theoremId := "varlen"
  cases := each "number" (List.range 20) fun i => do
    let lengths (n : Nat) : Gen (List Nat) := draws (below 14) n
    let n := 1 + (← below 5)
    -- At least one query and one key, so that there is something to compute.
    varlenCase false (1 :: (← lengths n), 1 :: (← lengths n), ← drawnMask (i % 5) 0 0)

end Attention.Vectors
