module

public import Attention.Proof.Flash.ScheduleLoop
public import Attention.Proof.Online.SplitKV
public import Attention.Proof.Poison.Online
public import Attention.Proof.Scores.Sink
public import Attention.Spec.Combine
public import Attention.Spec.Dropout

public section

/-! # The tile loop, splits, sinks and schedules meet no poison

Each, run over numbers with a poison and given proper ones, gives the proper numbers that it gives
over numbers without. Attention itself does not (`WrongVariants.Poison`): it takes the exponentials
of the scores as they are. -/

namespace Attention.Model.Clean

open Spec Spec.Online Proof Lean.Grind

universe u v w x

variable {S : Type u} {R : Type v} {S' : Type w} {R' : Type x}
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable [Add S'] [Sub S'] [Mul S'] [OfNat S' 0] [LE S'] [DecidableLE S']
variable [Add R'] [Sub R'] [Mul R'] [Div R'] [OfNat R' 0] [OfNat R' 1] [Exp S' R']
variable {bound : S} {σ : S → S'} {ρ : R → R'} {d d_v q_len kv_len : Nat}
variable (h : Clean bound σ ρ)
include h

/-- The finished states of rows that have all begun with the state of a block. -/
private theorem rows (hb : 0 ≤ bound) (pre : List (ScoredValue S R d_v))
    {start : State S' R' d_v} (hs : start = mapState σ ρ (ofBlock pre))
    {seen' : Fin q_len → List (Fin kv_len) → List (ScoredValue S' R' d_v)}
    {seen : Fin q_len → List (Fin kv_len) → List (ScoredValue S R d_v)}
    (hseen : ∀ i cols, seen' i cols = (seen i cols).map (mapKey σ ρ)) {block_m : Nat}
    (hm : 0 < block_m) (block_n : Nat) :
    (tileLoop start seen' block_m block_n).map Online.finish
      = ((tileLoop (ofBlock pre) seen block_m block_n).map Online.finish).map (Vec.map ρ) := by
  subst hs
  rw [tileLoop_eq _ _ hm, tileLoop_eq _ _ hm, List.map_map, List.map_map, List.map_map]
  refine List.map_congr_left fun i _ => ?_
  have e : ((tiles block_n (List.finRange kv_len)).map (seen' i))
      = ((tiles block_n (List.finRange kv_len)).map (seen i)).map (List.map (mapKey σ ρ)) := by
    rw [List.map_map]
    exact List.map_congr_left fun cols _ => hseen i cols
  have f := online_eq_ofBlock (pre :: (tiles block_n (List.finRange kv_len)).map (seen i))
  have f₀ : Online.stepBlock Online.empty pre = ofBlock pre := by
    rw [← ofBlock_nil, stepBlock_ofBlock, List.nil_append]
  rw [Online.online, List.foldl_cons, f₀] at f
  simp only [Function.comp, e]
  rw [h.foldl_stepBlock hb, f]
  exact h.finish_ofBlock _

/-- **no-poison**: over numbers in which exponentials of positive numbers and quotients by 0, and
whatever comes of them, may be anything, the tile loop gives what it gives over numbers without
such, for proper inputs and a score transformation that gives proper scores. -/
theorem flash (hb : 0 ≤ bound) {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) {block_m : Nat} (hm : 0 < block_m)
    (block_n : Nat) :
    Spec.flash (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V) block_m block_n
      = (Spec.flash scale modify Q K V block_m block_n).map (Vec.map ρ) :=
  h.rows hb [] h.empty (fun i cols => h.scored hmodify Q K V i cols) hm block_n

/-- **no-poison-sink**: so does the tile loop with a sink. -/
theorem flashSink (hb : 0 ≤ bound) {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (sink : S)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) {block_m : Nat}
    (hm : 0 < block_m) (block_n : Nat) :
    Spec.flashSink (σ scale) modify' (σ sink) (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V)
        block_m block_n
      = (Spec.flashSink scale modify sink Q K V block_m block_n).map (Vec.map ρ) := by
  rw [Spec.flashSink, Spec.flashSink, sinkState_eq_ofBlock sink]
  refine h.rows hb _ ?_ (fun i cols => h.scored hmodify Q K V i cols) hm block_n
  rw [← sinkState_eq_ofBlock, h.sinkState]

omit [DecidableLE S'] in
private theorem scoredDropout {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len)
    (i : Fin q_len) (cols : List (Fin kv_len)) :
    Spec.scoredDropout (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V)
        (fun i j => ρ (Z i j)) i cols
      = (Spec.scoredDropout scale modify Q K V Z i cols).map (mapKey σ ρ) := by
  rw [Spec.scoredDropout, Spec.scoredDropout, List.map_map]
  refine List.map_congr_left fun j _ => ?_
  simp only [Function.comp, mapKey, dropKey, h.score hmodify, h.smulVec]
  simp only [mapMatrix, Fin.getElem_fin, Vec.getElem_map]

/-- **no-poison-dropout**: so does the tile loop with dropout, whatever the factors. -/
theorem flashDropout (hb : 0 ≤ bound) {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len)
    {block_m : Nat} (hm : 0 < block_m) (block_n : Nat) :
    Spec.flashDropout (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V)
        (fun i j => ρ (Z i j)) block_m block_n
      = (Spec.flashDropout scale modify Q K V Z block_m block_n).map (Vec.map ρ) :=
  h.rows hb [] h.empty (fun i cols => h.scoredDropout hmodify Q K V Z i cols) hm block_n

/-- **no-poison-split**: so do states of splits that are merged, from tiles of any sizes. -/
theorem splitKV (hb : 0 ≤ bound) {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) {split_len block_n : Nat}
    (hs : 0 < split_len) (hn : 0 < block_n) :
    Spec.splitKV (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V) split_len block_n
      = (Spec.splitKV scale modify Q K V split_len block_n).map (Vec.map ρ) := by
  have states : ∀ i, splitStates (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V)
      split_len block_n i
      = (splitStates scale modify Q K V split_len block_n i).map (mapState σ ρ) := fun i => by
    rw [splitStates, splitStates, List.map_map]
    refine List.map_congr_left fun cols _ => ?_
    rw [Function.comp, ← h.online hb, List.map_map]
    refine congrArg Online.online (List.map_congr_left fun cols _ => ?_)
    exact h.scored hmodify Q K V i cols
  have fold : ∀ (ss : List (State S R d_v)) (s : State S R d_v),
      (ss.map (mapState σ ρ)).foldl Online.merge (mapState σ ρ s)
        = mapState σ ρ (ss.foldl Online.merge s) := fun ss => by
    induction ss with
    | nil => exact fun _ => rfl
    | cons t ss ih => intro s; rw [List.map_cons, List.foldl_cons, List.foldl_cons, h.merge hb, ih]
  rw [Spec.splitKV, Spec.splitKV, List.map_map]
  refine List.map_congr_left fun i _ => ?_
  rw [Function.comp, states, h.empty, fold, foldl_merge_splitStates scale modify Q K V hs hn]
  exact h.finish_ofBlock _

omit [DecidableLE S'] in
/-- **no-poison-combine**: so do outputs of splits combined by their log-sum-exps, if none of these
exceeds that of all by more than the bound: one that was rounded may. -/
theorem combine {L : Option S} {parts : List (Partial S R d_v)}
    (hL : ∀ part ∈ parts, ∀ l m, part.lse = some l → L = some m → l - m ≤ bound) :
    Spec.combine (L.map σ) (parts.map fun part => ⟨Vec.map ρ part.o, part.lse.map σ⟩)
      = Vec.map ρ (Spec.combine L parts) := by
  refine Vector.ext fun j hj => ?_
  simp only [Spec.combine, Vec.getElem_map, Vec.getElem_sumOver, Vec.getElem_smul, sumOver_map]
  rw [h.sumOver]
  exact sumOver_congr fun part hp => by rw [h.rescale (hL part hp), h.mul]

/-! ## Schedules -/

section
variable (hb : 0 ≤ bound) {scale : S} {modify : ScoreMod S q_len kv_len}
variable {modify' : ScoreMod S' q_len kv_len}
variable (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (mask : Mask q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
include hb hmodify

private theorem stepKind_ofBlock (kind : TileKind) (rows : List (Fin q_len))
    (cols : List (Fin kv_len)) (pre : Fin q_len → List (ScoredValue S R d_v)) :
    stepKind (σ scale) modify' mask (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V) rows
        (rows.map fun i => mapState σ ρ (ofBlock (pre i))) kind cols
      = rows.map fun i =>
          mapState σ ρ (ofBlock (pre i ++ keysOfTile scale modify mask Q K V kind i cols)) := by
  cases kind <;> simp only [stepKind, keysOfTile, stepTile, List.zipWith_map_right,
    List.zipWith_self, h.scored hmodify, h.scored (mapped_andThen_mask hmodify), h.stepBlock hb,
    stepBlock_ofBlock, List.append_nil]

/-- **no-poison-schedule**: so does the tile loop by any schedule, sound or not. -/
theorem flashSchedule (visit : Nat → TileRange) (kind : Nat → Nat → TileKind)
    (block_m block_n : Nat) :
    Spec.flashSchedule (σ scale) modify' mask (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V) visit
        kind block_m block_n
      = (Spec.flashSchedule scale modify mask Q K V visit kind block_m block_n).map
          (Vec.map ρ) := by
  have fold : ∀ (kinds : Nat → TileKind) (rows : List (Fin q_len)) (us : List Nat)
      (pre : Fin q_len → List (ScoredValue S R d_v)),
      us.foldl (fun states u => stepKind (σ scale) modify' mask (mapMatrix σ Q) (mapMatrix σ K)
          (mapMatrix ρ V) rows states (kinds u) (tile block_n (List.finRange kv_len) u))
        (rows.map fun i => mapState σ ρ (ofBlock (pre i)))
      = rows.map fun i => mapState σ ρ (ofBlock (pre i ++ us.flatMap fun u =>
          keysOfTile scale modify mask Q K V (kinds u) i
            (tile block_n (List.finRange kv_len) u))) := fun kinds rows us => by
    induction us with
    | nil => intro pre; simp only [List.foldl_nil, List.flatMap_nil, List.append_nil]
    | cons u us ih =>
      intro pre
      simp only [List.foldl_cons, h.stepKind_ofBlock hb hmodify, ih, List.flatMap_cons,
        List.append_assoc]
  have start := fun kinds rows us => fold kinds rows us fun _ => []
  simp only [ofBlock_nil, ← h.empty, List.nil_append] at start
  rw [flashSchedule_eq, Spec.flashSchedule, List.map_flatMap]
  refine congrArg List.flatten (List.map_congr_left fun t _ => ?_)
  simp only [start, List.map_map, Function.comp_def, h.finish_ofBlock, Proof.finish_ofBlock]

end

end Attention.Model.Clean
