module

public import Attention.Spec.TileBounds

public section

/-! # Which of the tiles that are visited a kernel takes without mask code

Those of which every query sees every key, but for a ragged last one, whose padding has to be
checked. They are a run: a kernel goes over the tiles before it, along it, and after it, and has
mask code in the first and the last of these three loops.
Source: the kernels of this project; flash-attention has `n_masking_steps` for the same purpose. -/

namespace Attention.Spec

/-- The tiles of `unmasked` that are among those `visited` and hold `block` of the `length` things.
The range lies within `visited` where it is empty, too. -/
@[expose] def wholeTiles (unmasked visited : TileRange) (length block : Nat) : TileRange :=
  let first := min (max unmasked.first visited.first) visited.stop
  ⟨first, min (max (min unmasked.stop (length / block)) first) visited.stop⟩

/-- Of the key tiles that query tile `t` visits under a window, those without mask code are the
whole ones. -/
@[expose] def wholeKind (alignment : Alignment) (left right : Option Nat)
    (q_len kv_len block_m block_n t u : Nat) : TileKind :=
  let unmasked := unmaskedTiles alignment left right q_len kv_len block_m block_n t
  let visited := visitedTiles alignment left right q_len kv_len block_m block_n t
  if (wholeTiles unmasked visited kv_len block_n).contains u then .unmasked else .masked

end Attention.Spec
