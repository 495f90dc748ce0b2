module

public import Attention.Proof.Flash.Basic
public import Attention.Proof.Rounding.Online
public import Attention.Spec.SplitKV

public section

/-! # The tile loop, and split keys, over numbers that round

What `Proof/Rounding/Online.lean` says of one row, of the whole algorithms: each component of their
output is the quotient of what a `Model.Run` computed, rounded once. -/

namespace Attention.Proof

open Spec Spec.Online Model Model.FloatingPoint

universe u

variable {R : Type u} [OrderedField R] [Exp R R] {F : FloatingPoint R} {q_len kv_len d d_v : Nat}
variable {scale : F.Number} {modify : ScoreMod F.Number q_len kv_len}
variable {Q : Matrix F.Number q_len d} {K : Matrix F.Number kv_len d}
variable {V : Matrix F.Number kv_len d_v} {i : Fin q_len} {t : Fin d_v}
variable {g : Fin kv_len → ComputedKey R}

/-- There are as many tiles as it takes. -/
private theorem tiles_length {α : Type} (b : Nat) (xs : List α) :
    (tiles b xs).length = numTiles xs.length b := by
  simp [tiles]

/-- No tile is larger than its size. -/
private theorem tile_length_le {α : Type} {b : Nat} {xs tile : List α} (h : tile ∈ tiles b xs) :
    tile.length ≤ b := by
  obtain ⟨t, -, rfl⟩ := List.mem_map.mp h
  exact List.length_take_le _ _

/-- Online softmax over the tiles of some keys, as query `i` sees them. -/
theorem tiles_carries (hg : ∀ c, Agrees t ⟨score scale modify Q K i c, V[c]⟩ (g c))
    {block_n : Nat} (hn : 0 < block_n) (cols : List (Fin kv_len)) :
    Carries t (online ((tiles block_n cols).map (scored scale modify Q K V i))) (cols.map g)
      (block_n + numTiles cols.length block_n) (numTiles cols.length block_n - 1) := by
  have := online_carries (f := fun c => ⟨score scale modify Q K i c, V[c]⟩) hg
    (tiles block_n cols) fun _ => tile_length_le
  rwa [tiles_flatten hn, tiles_length] at this

/-- Row `i` of the tile loop over numbers that round is the division of a state
that `Model.Run` allows. With `T` tiles of keys no key's part goes through more than block_n + T
additions and T − 1 rescalings. -/
theorem flash_carries (scale : F.Number) (modify : ScoreMod F.Number q_len kv_len)
    (Q : Matrix F.Number q_len d) (K : Matrix F.Number kv_len d) (V : Matrix F.Number kv_len d_v)
    (i : Fin q_len) {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    ∃ s, (flash scale modify Q K V block_m block_n)[i.val]? = some (finish s) ∧
      ∀ t g, (∀ c, Agrees t ⟨score scale modify Q K i c, V[c]⟩ (g c)) →
        Carries t s ((List.finRange kv_len).map g) (block_n + numTiles kv_len block_n)
          (numTiles kv_len block_n - 1) := by
  refine ⟨_, ?_, fun t g hg => by simpa using tiles_carries hg hn (List.finRange kv_len)⟩
  rw [flash, tileLoop_eq _ _ hm]
  simp [online]

/-- The states of some splits, merged. -/
private theorem foldl_merge_carries (hg : ∀ c, Agrees t ⟨score scale modify Q K i c, V[c]⟩ (g c))
    {block_n : Nat} (hn : 0 < block_n) {len : Nat} (splits : List (List (Fin kv_len)))
    (hlen : ∀ cols ∈ splits, cols.length ≤ len)
    {s : State F.Number F.Number d_v} {keys : List (ComputedKey R)} {a r : Nat}
    (h : Carries t s keys (block_n + numTiles len block_n + a) (numTiles len block_n - 1 + r)) :
    Carries t ((splits.map fun cols =>
        online ((tiles block_n cols).map (scored scale modify Q K V i))).foldl merge s)
      (keys ++ splits.flatten.map g)
      (block_n + numTiles len block_n + (a + splits.length))
      (numTiles len block_n - 1 + (r + splits.length)) := by
  induction splits generalizing s keys a r with
  | nil => simpa using h
  | cons cols splits ih =>
    have hT : numTiles cols.length block_n ≤ numTiles len block_n :=
      Nat.div_le_div_right (by have := hlen cols (by simp); omega)
    have := ih (a := a + 1) (r := r + 1) (fun c hc => hlen c (by simp [hc]))
      (h.merge ((tiles_carries hg hn cols).mono (by omega) (by omega)))
    simpa [Nat.add_assoc, Nat.add_comm 1] using this

/-- Row `i` of decoding with the keys split, over numbers that round, is the
division of a state that `Model.Run` allows. With `T` tiles in a split and `S` splits no key's part
goes through more than block_n + T + S additions and T − 1 + S rescalings. -/
theorem splitKV_carries (scale : F.Number) (modify : ScoreMod F.Number q_len kv_len)
    (Q : Matrix F.Number q_len d) (K : Matrix F.Number kv_len d) (V : Matrix F.Number kv_len d_v)
    (i : Fin q_len) {split_len block_n : Nat} (hs : 0 < split_len) (hn : 0 < block_n) :
    ∃ s, (splitKV scale modify Q K V split_len block_n)[i.val]? = some (finish s) ∧
      ∀ t g, (∀ c, Agrees t ⟨score scale modify Q K i c, V[c]⟩ (g c)) →
        Carries t s ((List.finRange kv_len).map g)
          (block_n + numTiles split_len block_n + numTiles kv_len split_len)
          (numTiles split_len block_n - 1 + numTiles kv_len split_len) := by
  refine ⟨((tiles split_len (List.finRange kv_len)).map fun cols =>
    online ((tiles block_n cols).map (scored scale modify Q K V i))).foldl merge empty, ?_,
    fun t g hg => ?_⟩
  · simp [splitKV, splitStates]
  have h := foldl_merge_carries hg hn (tiles split_len (List.finRange kv_len))
    (fun _ => tile_length_le) (a := 0) (r := 0) (carries_empty.mono (Nat.zero_le _) (Nat.zero_le _))
  rw [tiles_flatten hs, tiles_length] at h
  simpa using h

end Attention.Proof
