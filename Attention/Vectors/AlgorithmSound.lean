module

public import Attention.Proof.Flash.TileBounds
public import Attention.Proof.Masks.Padding
public import Attention.Proof.Online.Ring
public import Attention.Proof.Online.SplitKV
public import Attention.Proof.Scores.Sink
public import Attention.Vectors.Algorithm
import Attention.Algebra.FinRange

public section

/-! # What runs is what is proved: the program's rows are attention's

`Algorithm.run` makes the outputs of the exact vectors. Whatever definition of the Spec it runs, if
it gives rows, they are the rows of attention, or of attention with the sink. -/

namespace Attention.Vectors

open Spec Spec.Online Proof

variable {q_len kv_len d d_v : Nat}

/-! ## One lemma for each that needs more than a theorem of the library -/

/-- A pair of tiles that may be skipped has no pair that the mask lets through, and one that may be
taken without mask code no other. -/
theorem tileKind_sound (mask : Mask q_len kv_len) {block_m block_n t u : Nat} {i : Fin q_len}
    (hi : i ∈ tile block_m (List.finRange q_len) t) {j : Fin kv_len}
    (hj : j ∈ tile block_n (List.finRange kv_len) u) :
    (tileKind mask block_m block_n t u = .skip → mask i j = false) ∧
      (tileKind mask block_m block_n t u = .unmasked → mask i j = true) := by
  have mem : mask i j ∈ (tile block_m (List.finRange q_len) t).flatMap fun i =>
      (tile block_n (List.finRange kv_len) u).map (mask i) :=
    List.mem_flatMap.mpr ⟨i, hi, List.mem_map_of_mem hj⟩
  simp only [tileKind]
  split
  case isTrue hall => exact ⟨fun _ => by simpa using List.all_eq_true.mp hall _ mem, nofun⟩
  case isFalse =>
    split
    case isTrue hall => exact ⟨nofun, fun _ => List.all_eq_true.mp hall _ mem⟩
    case isFalse => exact ⟨nofun, nofun⟩

/-- A schedule of all tiles, each as its mask says, is sound. -/
theorem sound_tileKind (mask : Mask q_len kv_len) {block_m block_n : Nat} (hn : 0 < block_n) :
    SoundSchedule mask (fun _ => ⟨0, numTiles kv_len block_n⟩) (tileKind mask block_m block_n)
      block_m block_n where
  skip t u h i hi j hj := by
    rcases h with h | h
    · have hu : ¬ u < numTiles kv_len block_n := by
        simpa [TileRange.contains] using h
      have := (mem_tile.mp hj).1
      exact absurd ((lt_numTiles hn).mpr (Nat.lt_of_le_of_lt this j.isLt)) hu
    · exact (tileKind_sound mask hi hj).1 h
  unmasked t u _ h i hi j hj := (tileKind_sound mask hi hj).2 h

private theorem attention_padCols (scale : Int) (modify : ScoreMod Int q_len kv_len) (p : Nat)
    (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v) :
    attention scale modify (Q.padCols p) (K.padCols p) V = attention scale modify Q K V := by
  have h : ∀ i j, score scale modify (Q.padCols p) (K.padCols p) i j
      = score scale modify Q K i j := fun i j => by
    simp only [score, Matrix.padCols, Fin.getElem_fin, Vec.getElem_map, dot_append_zero]
  simp only [attention, scored, h]

/-- The attention of a row over unit vectors is its weights. -/
private theorem attend_unit (scores : Fin kv_len → Option Int) :
    attend ((List.finRange kv_len).map fun j =>
        (⟨scores j, (Vec.ofFn fun c => if j.val = c.val then 1 else 0 : Vec Rat kv_len)⟩ :
          ScoredValue Int Rat kv_len))
      = Vec.ofFn fun c => (softmax ((List.finRange kv_len).map scores) : List Rat).getD c 0 := by
  refine Vector.ext fun c hc => ?_
  have hs : ((List.finRange kv_len).map fun j =>
      (⟨scores j, (Vec.ofFn fun c => if j.val = c.val then 1 else 0 : Vec Rat kv_len)⟩ :
        ScoredValue Int Rat kv_len)).map (·.score) = (List.finRange kv_len).map scores := by
    rw [List.map_map]
    rfl
  have one : ∀ (w : Fin kv_len → Rat) (xs : List (Fin kv_len)), xs.Nodup →
      sumOver (fun j => w j * (if j.val = c then 1 else 0)) xs
        = if (⟨c, hc⟩ : Fin kv_len) ∈ xs then w ⟨c, hc⟩ else 0 := fun w xs => by
    induction xs with
    | nil => intro _; rfl
    | cons x xs ih =>
      intro hx
      obtain ⟨hx, hxs⟩ := List.nodup_cons.mp hx
      rw [sumOver_cons, ih hxs]
      by_cases e : x.val = c
      · have ex : x = ⟨c, hc⟩ := Fin.ext e
        subst ex
        simp only [↓reduceIte, List.mem_cons, true_or, hx]
        grind
      · have ex : ¬ (⟨c, hc⟩ : Fin kv_len) = x := fun h => e (by rw [← h])
        simp only [e, ↓reduceIte, List.mem_cons, ex, false_or]
        grind
  rw [getElem_attend, hs, numerator, sumOver_map, Vec.getElem_ofFn]
  simp only [Vec.getElem_ofFn]
  rw [one (fun j => weight (scores j)) _ (nodup_finRange kv_len)]
  simp [softmax_eq, hc]

/-- The rows of a list that are owned, each query once, in the order of the queries. -/
private theorem collect_owned {α : Type} {owners : List (Fin q_len)} (f : Fin q_len → α)
    (h : owners.Perm (List.finRange q_len)) :
    ((List.finRange q_len).flatMap fun i =>
        (owners.zip (owners.map f)).filterMap fun x => if i = x.1 then some x.2 else none)
      = (List.finRange q_len).map f := by
  have nodup : owners.Nodup := h.nodup_iff.mpr (nodup_finRange q_len)
  have one : ∀ (xs : List (Fin q_len)) (i : Fin q_len), xs.Nodup →
      (xs.zip (xs.map f)).filterMap (fun x => if i = x.1 then some x.2 else none)
        = if i ∈ xs then [f i] else [] := fun xs i => by
    induction xs with
    | nil => intro _; rfl
    | cons x xs ih =>
      intro hx
      obtain ⟨hx, hxs⟩ := List.nodup_cons.mp hx
      rw [List.map_cons, List.zip_cons_cons, List.filterMap_cons, ih hxs]
      by_cases e : i = x
      · subst e
        simp [hx]
      · simp [e]
  have all : ∀ i ∈ List.finRange q_len,
      (owners.zip (owners.map f)).filterMap (fun x => if i = x.1 then some x.2 else none)
        = [f i] := fun i hi => by
    rw [one owners i nodup, if_pos (h.mem_iff.mpr hi)]
  exact (congrArg List.flatten (List.map_congr_left all)).trans List.map_eq_flatMap.symm

/-! ## The program -/

/-- **vectors-sound**: if the program that makes the exact vectors gives the rows of an output,
these are the rows of attention over the exact model, or of attention with the sink, whatever
definition it ran, if its tiles hold something and its rings each query and each key once. -/
theorem Algorithm.run_sound {algorithm : Algorithm} (fits : algorithm.Fits q_len kv_len)
    {scale : Int} {kind : MaskKind} {Q : Matrix Int q_len d} {K : Matrix Int kv_len d}
    {V : Matrix Rat kv_len d_v} {rows : List (Vec Rat d_v)}
    (h : algorithm.run scale kind Q K V = .ok rows) :
    rows = (match algorithm.sink with
      | none => Spec.attention scale kind.toMask.toScoreMod Q K V
      | some sink => Spec.attentionSink scale kind.toMask.toScoreMod sink Q K V).toList := by
  have flattened : ∀ (i : Fin q_len) {block_n : Nat}, 0 < block_n →
      (tiles block_n (scored scale kind.toMask.toScoreMod Q K V i (List.finRange kv_len))).flatten
        = scored scale kind.toMask.toScoreMod Q K V i (List.finRange kv_len) :=
    fun i _ hn => tiles_flatten hn _
  have listed : ∀ (f : Fin q_len → Vec Rat d_v),
      (Vec.ofFn f : Matrix Rat q_len d_v).toList = (List.finRange q_len).map f := fun f => by
    refine List.ext_getElem (by simp) fun i _ _ => ?_
    simp
  cases algorithm with
  | attention =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    exact h.symm
  | flash block_m block_n =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    rw [← h]
    exact flash_eq_attention scale _ Q K V fits.1 fits.2
  | flashWindow block_m block_n =>
    cases kind with
    | window alignment left right =>
      simp only [Algorithm.run, Except.ok.injEq] at h
      rw [← h]
      exact flashWindow_eq_attention alignment left right fits.1 fits.2 scale _ Q K V
    | _ => simp [Algorithm.run] at h
  | flashSchedule block_m block_n =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    rw [← h]
    exact flashSchedule_eq_attention scale _ Q K V fits.1 fits.2 (sound_tileKind _ fits.2)
  | splitKV split_len block_n =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    rw [← h]
    exact splitKV_eq_attention scale _ Q K V fits.1 fits.2
  | ring shards =>
    simp only [Algorithm.run] at h
    split at h
    · simp only [Except.ok.injEq] at h
      rw [← h]
      have hkeys : ((shards.map fun x => (indices q_len x.1, indices kv_len x.2)).map
          (·.2)).flatten.Perm (List.finRange kv_len) := by
        rw [List.map_map]
        exact fits.2
      have hrows : ((shards.map fun x => (indices q_len x.1, indices kv_len x.2)).flatMap
          (·.1)).Perm (List.finRange q_len) := by
        rw [List.flatMap_map]
        exact fits.1
      have e : ((shards.map fun x => (indices q_len x.1, indices kv_len x.2)).map fun (rows, _) =>
          rows.map fun i => (Spec.attention scale kind.toMask.toScoreMod Q K V)[i]).flatten
          = ((shards.map fun x => (indices q_len x.1, indices kv_len x.2)).flatMap (·.1)).map
            fun i => (Spec.attention scale kind.toMask.toScoreMod Q K V)[i] := by
        rw [List.map_flatMap]
        rfl
      rw [ring_eq_attention scale kind.toMask.toScoreMod Q K V hkeys, e, collect_owned _ hrows]
      simp only [Algorithm.sink]
      exact List.ext_getElem (by simp) fun i _ _ => by simp
    · cases h
  | padded rows' keys columns =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    rw [← h, pad_kv, attention_padCols]
    rfl
  | safeSoftmax =>
    simp only [Algorithm.run] at h
    split at h
    · rename_i hV
      obtain ⟨rfl, hV⟩ := hV
      simp only [Except.ok.injEq] at h
      rw [← h, List.map_map]
      simp only [Algorithm.sink, Spec.attention]
      rw [listed]
      refine List.map_congr_left fun i _ => ?_
      have e : scored scale kind.toMask.toScoreMod Q K V i (List.finRange _)
          = (List.finRange _).map fun j => ⟨score scale kind.toMask.toScoreMod Q K i j,
            Vec.ofFn fun c => if j.val = c.val then 1 else 0⟩ := by
        rw [hV, scored]
        refine List.map_congr_left fun j _ => ?_
        simp only [Fin.getElem_fin, Vec.getElem_ofFn]
      simp only [Function.comp, safeSoftmax_eq_softmax]
      rw [e, attend_unit, List.map_map]
      rfl
    · cases h
  | divided block_n =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    rw [← h, List.map_map]
    simp only [Algorithm.sink, Spec.attention]
    rw [listed]
    refine List.map_congr_left fun i _ => ?_
    simp only [Function.comp, divided_any_blocks, flattened i fits]
  | onlineSink block_n =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    rw [← h, List.map_map]
    simp only [Algorithm.sink, Spec.attentionSink]
    rw [listed]
    refine List.map_congr_left fun i _ => ?_
    simp only [Function.comp, onlineSink_any_blocks, flattened i fits]
  | flashSink block_m block_n =>
    simp only [Algorithm.run, Except.ok.injEq] at h
    rw [← h]
    exact flashSink_eq_attentionSink scale _ 0 Q K V fits.1 fits.2

end Attention.Vectors
