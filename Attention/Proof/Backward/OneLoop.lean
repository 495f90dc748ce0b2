module

public import Attention.Proof.Backward.Tiles
public import Attention.Spec.BackwardOneLoop

public section

/-! # The backward pass in one loop computes the same -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

/-- Steps that touch each place of a list by itself may be taken place by place. -/
theorem foldl_zipWith {α γ : Type} {σ : Type v} (f : γ → α → σ → σ) (ts : List α)
    (us : List γ) : ∀ s : α → σ,
      us.foldl (fun acc u => List.zipWith (f u) ts acc) (ts.map s)
        = ts.map fun t => us.foldl (fun x u => f u t x) (s t) := by
  induction us with
  | nil => intro s; rfl
  | cons u us ih =>
    intro s
    simp only [List.foldl_cons, List.zipWith_map_right, List.zipWith_self, ih]

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat} (toValue : S → R) (scale : S)
variable (modify : ScoreMod S q_len kv_len) {mask : Mask q_len kv_len}
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)
variable (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v) (delta : Vec R q_len)
variable (block_m block_n : Nat) (kind : Nat → Nat → TileKind)

/-- The loop of `backwardKeys` over all tiles of queries. -/
@[expose] def keysLoop (q_len block_m block_n : Nat) (kind : Nat → Nat → TileKind) : TileLoop :=
  ⟨block_n, block_m, fun _ => ⟨0, numTiles q_len block_m⟩, kind⟩

/-- The loop of `backwardQueries` over all tiles of keys, the pairs taken the same way. -/
@[expose] def queriesLoop (kv_len block_m block_n : Nat) (kind : Nat → Nat → TileKind) : TileLoop :=
  ⟨block_m, block_n, fun _ => ⟨0, numTiles kv_len block_n⟩, fun t u => kind u t⟩

/-- One loop is two, each with all tiles, the pairs taken the same way; no law of arithmetic is
needed for it. -/
theorem flashBackwardOneLoop_eq [Add S] [Sub S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R]
    [OfNat R 0] [Exp S R] (O : Matrix R q_len d_v) (dLse : Vec R q_len) :
    flashBackwardOneLoop toValue scale modify mask slope Q K V Z L dO block_m block_n kind O dLse
      = flashBackward toValue scale modify mask slope Q K V Z L dO
          (keysLoop q_len block_m block_n kind) (queriesLoop kv_len block_m block_n kind) O
          dLse := by
  let delta := rowDelta O dO dLse
  let f : Nat → Nat → List (Vec R d) → List (Vec R d) := fun u t rows =>
    stepQueriesKind toValue scale modify mask slope Q K V Z L dO delta
      (tile block_m (List.finRange q_len) t) rows (kind u t) (tile block_n (List.finRange kv_len) u)
  let sums : Nat → KeySums R d d_v := fun u =>
    let cols := tile block_n (List.finRange kv_len) u
    (List.range (numTiles q_len block_m)).foldl
      (fun sums t => stepKeysKind toValue scale modify mask slope Q K V Z L dO delta cols sums
        (kind u t) (tile block_m (List.finRange q_len) t))
      ⟨cols.map fun _ => Vec.zero, cols.map fun _ => Vec.zero⟩
  have h : ∀ (us : List Nat) (w : Written R d d_v),
      us.foldl
          (stepWritten toValue scale modify mask slope Q K V Z L dO delta block_m block_n kind) w
        = ⟨us.foldl (fun acc u =>
            List.zipWith (f u) (List.range (numTiles q_len block_m)) acc) w.dQ,
          w.dK ++ us.flatMap fun u => (sums u).dK.map (Vec.smul (toValue scale)),
          w.dV ++ us.flatMap fun u => (sums u).dV⟩ := by
    intro us
    induction us with
    | nil => intro w; simp only [List.foldl_nil, List.flatMap_nil, List.append_nil]
    | cons u us ih =>
      intro w
      rw [List.foldl_cons, ih]
      simp only [stepWritten, List.foldl_cons, List.flatMap_cons, List.append_assoc, f, sums]
  simp only [flashBackwardOneLoop]
  rw [h, foldl_zipWith]
  simp only [flashBackward, backwardQueries, backwardKeys, keysLoop, queriesLoop, Nat.sub_zero,
    ← List.range_eq_range', List.nil_append, List.map_flatten, List.map_map, f,
    sums, List.flatMap_def]
  rfl

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- **flash-backward-one-loop**: for all sizes, tile sizes of at least 1, masks, score
transformations with their slopes before the mask, factors, and sound kinds of the pairs of tiles,
the one loop of the paper computes the gradients of `vjpDropout`. -/
theorem flashBackwardOneLoop_eq_vjpDropout {block_m block_n : Nat} (hm : 0 < block_m)
    (hn : 0 < block_n) {kind : Nat → Nat → TileKind}
    (hkind : ∀ u t, ∀ i ∈ tile block_m (List.finRange q_len) t,
      ∀ j ∈ tile block_n (List.finRange kv_len) u,
        (kind u t = .skip → mask i j = false) ∧ (kind u t = .unmasked → mask i j = true))
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    let g := vjpDropout scale forward slope Q K V Z toValue dO dLse
    flashBackwardOneLoop toValue scale modify mask slope Q K V Z L dO block_m block_n kind
        (attentionDropout scale forward Q K V Z) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) := by
  intro forward g
  have hempty : ∀ {n b u : Nat} (hb : 0 < b), (⟨0, numTiles n b⟩ : TileRange).contains u = false →
      tile b (List.finRange n) u = [] := fun hb hu => by
    refine tile_eq_nil hb ?_
    rw [List.length_finRange]
    simp only [TileRange.contains, Bool.and_eq_false_iff, decide_eq_false_iff_not] at hu
    omega
  rw [flashBackwardOneLoop_eq]
  refine flashBackward_eq_vjpDropout toValue scale modify slope Q K V Z L dO (keys := keysLoop ..)
    (queries := queriesLoop ..) hn hm hm hn ⟨fun u t h j hj i hi => ?_, fun u t _ h j hj i hi =>
      (hkind u t i hi j hj).2 h⟩ ⟨fun t u h i hi j hj => ?_, fun t u _ h i hi j hj =>
        (hkind u t i hi j hj).2 h⟩ hL dLse
  · rcases h with h | h
    · have hi : i ∈ tile block_m (List.finRange q_len) t := hi
      rw [hempty hm h] at hi
      exact absurd hi List.not_mem_nil
    · exact (hkind u t i hi j hj).1 h
  · rcases h with h | h
    · have hj : j ∈ tile block_n (List.finRange kv_len) u := hj
      rw [hempty hn h] at hj
      exact absurd hj List.not_mem_nil
    · exact (hkind u t i hi j hj).1 h

/-- With factors 1, so without dropout, it computes those of `vjp`. -/
theorem flashBackwardOneLoop_eq_vjp {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    {kind : Nat → Nat → TileKind}
    (hkind : ∀ u t, ∀ i ∈ tile block_m (List.finRange q_len) t,
      ∀ j ∈ tile block_n (List.finRange kv_len) u,
        (kind u t = .skip → mask i j = false) ∧ (kind u t = .unmasked → mask i j = true))
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    let g := vjp scale forward slope Q K V toValue dO dLse
    flashBackwardOneLoop toValue scale modify mask slope Q K V (fun _ _ => 1) L dO block_m block_n
        kind (attention scale forward Q K V) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) := by
  intro forward g
  have h := flashBackwardOneLoop_eq_vjpDropout toValue scale modify slope Q K V (fun _ _ => 1) L dO
    hm hn hkind hL dLse
  simp only [attentionDropout_one, vjpDropout_one] at h
  exact h

end Attention.Proof
