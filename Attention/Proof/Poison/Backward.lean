module

public import Attention.Proof.Backward.OneLoop
public import Attention.Proof.Poison.Basic

public section

/-! # The backward pass in tiles meets no poison

It computes the weights again from the scores and the log-sum-exp L that the forward pass has saved.
Where L was rounded, s − L may exceed 0: so it is asked that no s − L of an unmasked pair exceeds
the bound, above which an exponential may be anything. There is no quotient. -/

namespace Attention.Proof

open Spec

universe u v

/-- The sums of a tile of keys with proper numbers. -/
@[expose] def mapSums {A : Type u} {B : Type v} {d d_v : Nat} (ρ : A → B) (sums : KeySums A d d_v) :
    KeySums B d d_v :=
  ⟨sums.dK.map (Vec.map ρ), sums.dV.map (Vec.map ρ)⟩

variable {S : Type u} {q_len kv_len d : Nat} {mask : Mask q_len kv_len}
variable {modify : ScoreMod S q_len kv_len}

/-- A score that the mask lets through is the score before the mask. -/
private theorem score_of_masked [Add S] [Mul S] [OfNat S 0] {scale : S} {Q : Matrix S q_len d}
    {K : Matrix S kv_len d} {i : Fin q_len} {j : Fin kv_len} {s : S}
    (hs : Spec.score scale (modify.andThen mask.toScoreMod) Q K i j = some s) :
    mask i j = true ∧ Spec.score scale modify Q K i j = some s := by
  simp only [Spec.score, ScoreMod.andThen] at hs ⊢
  cases hm : modify i j (scale * Vec.dot Q[i] K[j]) with
  | none => rw [hm] at hs; cases hs
  | some t =>
    rw [hm] at hs
    simp only [Option.bind_some, Mask.toScoreMod] at hs
    cases hmask : mask i j with
    | false => rw [hmask] at hs; cases hs
    | true => rw [hmask] at hs; exact ⟨rfl, hs⟩

/-- A loop over states that correspond. -/
private theorem foldl_map {A : Type u} {B : Type v} {g : A → B} {f : A → Nat → A}
    {f' : B → Nat → B} {us : List Nat} (hf : ∀ u ∈ us, ∀ a, f' (g a) u = g (f a u)) :
    ∀ a, us.foldl f' (g a) = g (us.foldl f a) := by
  induction us with
  | nil => exact fun _ => rfl
  | cons u us ih =>
    intro a
    rw [List.foldl_cons, List.foldl_cons, hf u (by simp),
      ih fun v hv => hf v (by simp [hv])]

/-- The tiles of a range lie in it. -/
private theorem contains_of_mem {r : TileRange} {u : Nat}
    (hu : u ∈ List.range' r.first (r.stop - r.first)) : r.contains u = true := by
  have := List.mem_range'_1.mp hu
  simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq]
  omega

end Attention.Proof

namespace Attention.Model.Clean

open Spec Proof Lean.Grind

universe u v w x

variable {S : Type u} {R : Type v} {S' : Type w} {R' : Type x}
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable [Add S'] [Sub S'] [Mul S'] [OfNat S' 0] [LE S']
variable [Add R'] [Sub R'] [Mul R'] [Div R'] [OfNat R' 0] [OfNat R' 1] [Exp S' R']
variable {bound : S} {σ : S → S'} {ρ : R → R'} {d d_v n q_len kv_len : Nat}
variable (h : Clean bound σ ρ)
include h

/-- D from proper outputs and gradients. -/
theorem rowDelta (O dO : Matrix R q_len d_v) (dLse : Vec R q_len) :
    Spec.rowDelta (mapMatrix ρ O) (mapMatrix ρ dO) (Vec.map ρ dLse)
      = Vec.map ρ (Spec.rowDelta O dO dLse) := by
  refine Vector.ext fun i hi => ?_
  simp only [Spec.rowDelta, mapMatrix, Vec.getElem_ofFn, Vec.getElem_map, Fin.getElem_fin, h.sub,
    h.dot]

/-- The results of a tile, with the terms of one more tile, if these terms are proper. -/
theorem addTile {α β : Type} {term' : α → β → Vec R' n} {term : α → β → Vec R n} {outs : List α}
    {tile : List β} (hterm : ∀ x ∈ outs, ∀ y ∈ tile, term' x y = Vec.map ρ (term x y))
    (sums : List (Vec R n)) :
    Spec.addTile term' outs (sums.map (Vec.map ρ)) tile
      = (Spec.addTile term outs sums tile).map (Vec.map ρ) := by
  induction outs generalizing sums with
  | nil => rfl
  | cons x outs ih =>
    cases sums with
    | nil => rfl
    | cons s sums =>
      have hx : Vec.sumOver (term' x) tile = Vec.map ρ (Vec.sumOver (term x) tile) := by
        rw [h.sumVec]
        refine Vector.ext fun j hj => ?_
        simp only [Vec.getElem_sumOver]
        exact sumOver_congr fun y hy => by rw [hterm x (by simp) y hy]
      have := ih (fun x hx => hterm x (by simp [hx])) sums
      simp only [Spec.addTile, List.map_cons, List.zipWith_cons_cons] at this ⊢
      rw [this, hx, h.addVec]

variable {toValue : S → R} {toValue' : S' → R'}
variable {scale : S} {modify : ScoreMod S q_len kv_len} {modify' : ScoreMod S' q_len kv_len}
variable {slope : ScoreSlope S R q_len kv_len} {slope' : ScoreSlope S' R' q_len kv_len}
variable {Q : Matrix S q_len d} {K : Matrix S kv_len d} {V : Matrix R kv_len d_v}
variable {Z : WeightFactor R q_len kv_len} {L : Vector (Option S) q_len}
variable {dO : Matrix R q_len d_v} {delta : Vec R q_len} {mask : Mask q_len kv_len}

/-! ## A pair of a query and a key -/

/-- The weight of a pair, computed again. -/
theorem probabilityAgain (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    {i : Fin q_len} {j : Fin kv_len}
    (hL : ∀ s l, Spec.score scale modify Q K i j = some s → L[i] = some l → s - l ≤ bound) :
    Spec.probabilityAgain (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K)
        (Vec.map (Option.map σ) L) i j
      = ρ (Spec.probabilityAgain scale modify Q K L i j) := by
  simp only [Spec.probabilityAgain, h.score hmodify, Fin.getElem_fin, Vec.getElem_map]
  exact h.rescale hL

/-- The same with its factor. -/
theorem droppedAgain (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    {i : Fin q_len} {j : Fin kv_len}
    (hL : ∀ s l, Spec.score scale modify Q K i j = some s → L[i] = some l → s - l ≤ bound) :
    Spec.droppedAgain (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) (fun i j => ρ (Z i j))
        (Vec.map (Option.map σ) L) i j
      = ρ (Spec.droppedAgain scale modify Q K Z L i j) := by
  simp only [Spec.droppedAgain, h.probabilityAgain hmodify hL, h.mul]

/-- The gradient by a raw score. -/
theorem rawGradient (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s)) {i : Fin q_len} {j : Fin kv_len}
    (hL : ∀ s l, Spec.score scale modify Q K i j = some s → L[i] = some l → s - l ≤ bound) :
    Spec.rawGradient (σ scale) modify' slope' (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V)
        (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L) (mapMatrix ρ dO) (Vec.map ρ delta) i j
      = ρ (Spec.rawGradient scale modify slope Q K V Z L dO delta i j) := by
  have hp := h.probabilityAgain hmodify hL
  have hs : (σ scale * Vec.dot (mapMatrix σ Q)[i] (mapMatrix σ K)[j] : S')
      = σ (scale * Vec.dot Q[i] K[j]) := by
    simp only [mapMatrix, Fin.getElem_fin, Vec.getElem_map, h.score_mul, h.score_dot]
  simp only [Spec.rawGradient, scoreGradient, hp, hs, hslope, h.mul, h.sub, h.dot, h.smulVec]
  simp only [mapMatrix, Fin.getElem_fin, Vec.getElem_map]

/-! ## A pair of tiles -/

private theorem stepKeys (hvalue : ∀ s, toValue' (σ s) = ρ (toValue s))
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s)) {cols : List (Fin kv_len)}
    {rows : List (Fin q_len)} (hL : ∀ i ∈ rows, ∀ j ∈ cols, ∀ s l,
      Spec.score scale modify Q K i j = some s → L[i] = some l → s - l ≤ bound)
    (sums : KeySums R d d_v) :
    Spec.stepKeys toValue' (σ scale) modify' slope' (mapMatrix σ Q) (mapMatrix σ K)
        (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L) (mapMatrix ρ dO)
        (Vec.map ρ delta) cols (mapSums ρ sums) rows
      = mapSums ρ (Spec.stepKeys toValue scale modify slope Q K V Z L dO delta cols sums rows) := by
  simp only [Spec.stepKeys, mapSums]
  congr 1
  · refine h.addTile (fun j hj i hi => ?_) _
    rw [h.rawGradient hmodify hslope (hL i hi j hj), h.smulVec]
    refine congrArg _ (Vector.ext fun x hx => ?_)
    simp only [mapMatrix, Fin.getElem_fin, Vec.getElem_map, hvalue]
  · refine h.addTile (fun j hj i hi => ?_) _
    rw [h.droppedAgain hmodify (hL i hi j hj), h.smulVec]
    simp only [mapMatrix, Fin.getElem_fin, Vec.getElem_map]

private theorem stepQueries (hvalue : ∀ s, toValue' (σ s) = ρ (toValue s))
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s)) {cols : List (Fin kv_len)}
    {rows : List (Fin q_len)} (hL : ∀ i ∈ rows, ∀ j ∈ cols, ∀ s l,
      Spec.score scale modify Q K i j = some s → L[i] = some l → s - l ≤ bound)
    (sums : List (Vec R d)) :
    Spec.stepQueries toValue' (σ scale) modify' slope' (mapMatrix σ Q) (mapMatrix σ K)
        (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L) (mapMatrix ρ dO)
        (Vec.map ρ delta) rows (sums.map (Vec.map ρ)) cols
      = (Spec.stepQueries toValue scale modify slope Q K V Z L dO delta rows sums cols).map
        (Vec.map ρ) := by
  refine h.addTile (fun i hi j hj => ?_) _
  rw [h.rawGradient hmodify hslope (hL i hi j hj), h.smulVec]
  refine congrArg _ (Vector.ext fun x hx => ?_)
  simp only [mapMatrix, Fin.getElem_fin, Vec.getElem_map, hvalue]

private theorem stepKeysKind (hvalue : ∀ s, toValue' (σ s) = ρ (toValue s))
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s))
    (hL : ∀ i j s l, mask i j = true → Spec.score scale modify Q K i j = some s →
      L[i] = some l → s - l ≤ bound) {cols : List (Fin kv_len)} {rows : List (Fin q_len)}
    {kind : TileKind} (hkind : kind = .unmasked → ∀ j ∈ cols, ∀ i ∈ rows, mask i j = true)
    (sums : KeySums R d d_v) :
    Spec.stepKeysKind toValue' (σ scale) modify' mask slope' (mapMatrix σ Q) (mapMatrix σ K)
        (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L) (mapMatrix ρ dO)
        (Vec.map ρ delta) cols (mapSums ρ sums) kind rows
      = mapSums ρ (Spec.stepKeysKind toValue scale modify mask slope Q K V Z L dO delta cols sums
        kind rows) := by
  cases kind with
  | skip => rfl
  | unmasked =>
    exact h.stepKeys hvalue hmodify hslope
      (fun i hi j hj s l => hL i j s l (hkind rfl j hj i hi)) sums
  | masked =>
    exact h.stepKeys hvalue (mapped_andThen_mask hmodify) hslope
      (fun i _ j _ s l hs => hL i j s l (score_of_masked hs).1 (score_of_masked hs).2) sums

private theorem stepQueriesKind (hvalue : ∀ s, toValue' (σ s) = ρ (toValue s))
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s))
    (hL : ∀ i j s l, mask i j = true → Spec.score scale modify Q K i j = some s →
      L[i] = some l → s - l ≤ bound) {cols : List (Fin kv_len)} {rows : List (Fin q_len)}
    {kind : TileKind} (hkind : kind = .unmasked → ∀ i ∈ rows, ∀ j ∈ cols, mask i j = true)
    (sums : List (Vec R d)) :
    Spec.stepQueriesKind toValue' (σ scale) modify' mask slope' (mapMatrix σ Q) (mapMatrix σ K)
        (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L) (mapMatrix ρ dO)
        (Vec.map ρ delta) rows (sums.map (Vec.map ρ)) kind cols
      = (Spec.stepQueriesKind toValue scale modify mask slope Q K V Z L dO delta rows sums
        kind cols).map (Vec.map ρ) := by
  cases kind with
  | skip => rfl
  | unmasked =>
    exact h.stepQueries hvalue hmodify hslope
      (fun i hi j hj s l => hL i j s l (hkind rfl i hi j hj)) sums
  | masked =>
    exact h.stepQueries hvalue (mapped_andThen_mask hmodify) hslope
      (fun i _ j _ s l hs => hL i j s l (score_of_masked hs).1 (score_of_masked hs).2) sums

/-! ## The loops -/

/-- **no-poison-backward**: over numbers in which exponentials above a bound and quotients by 0, and
whatever comes of them, may be anything, the backward pass in tiles gives what it gives over numbers
without such, for proper inputs, if no score that the mask lets through exceeds its row's saved
log-sum-exp by more than the bound. -/
theorem flashBackward (hvalue : ∀ s, toValue' (σ s) = ρ (toValue s))
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s)) {keys queries : TileLoop}
    (hkeys : ∀ u t, (keys.visit u).contains t = true → keys.kind u t = .unmasked →
      ∀ j ∈ tile keys.blockOuter (List.finRange kv_len) u,
        ∀ i ∈ tile keys.blockInner (List.finRange q_len) t, mask i j = true)
    (hqueries : ∀ t u, (queries.visit t).contains u = true → queries.kind t u = .unmasked →
      ∀ i ∈ tile queries.blockOuter (List.finRange q_len) t,
        ∀ j ∈ tile queries.blockInner (List.finRange kv_len) u, mask i j = true)
    (hL : ∀ i j s l, mask i j = true → Spec.score scale modify Q K i j = some s →
      L[i] = some l → s - l ≤ bound) (O : Matrix R q_len d_v) (dLse : Vec R q_len) :
    Spec.flashBackward toValue' (σ scale) modify' mask slope' (mapMatrix σ Q) (mapMatrix σ K)
        (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L) (mapMatrix ρ dO)
        keys queries (mapMatrix ρ O) (Vec.map ρ dLse)
      = let g := Spec.flashBackward toValue scale modify mask slope Q K V Z L dO keys queries O dLse
        (g.1.map (Vec.map ρ), g.2.1.map (Vec.map ρ), g.2.2.map (Vec.map ρ)) := by
  have scaled : ∀ (A : List (Vec R d)), (A.map (Vec.map ρ)).map (Vec.smul (toValue' (σ scale)))
      = (A.map (Vec.smul (toValue scale))).map (Vec.map ρ) := fun A => by
    rw [List.map_map, List.map_map]
    exact List.map_congr_left fun x _ => by simp only [Function.comp, h.smulVec, hvalue]
  have zeros : ∀ {n : Nat} {α : Type} (xs : List α),
      xs.map (fun _ => (Vec.zero : Vec R' n))
        = (xs.map fun _ => (Vec.zero : Vec R n)).map (Vec.map ρ) := fun xs => by
    rw [List.map_map]
    exact List.map_congr_left fun x _ => h.zeroVec
  have zeroSums : ∀ cols : List (Fin kv_len),
      (⟨cols.map fun _ => Vec.zero, cols.map fun _ => Vec.zero⟩ : KeySums R' d d_v)
        = mapSums ρ ⟨cols.map fun _ => Vec.zero, cols.map fun _ => Vec.zero⟩ := fun cols => by
    simp only [mapSums, ← zeros]
  have dKV : ∀ u, (List.range' (keys.visit u).first
      ((keys.visit u).stop - (keys.visit u).first)).foldl
      (fun sums t => Spec.stepKeysKind toValue' (σ scale) modify' mask slope' (mapMatrix σ Q)
        (mapMatrix σ K) (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L)
        (mapMatrix ρ dO) (Vec.map ρ (Spec.rowDelta O dO dLse))
        (tile keys.blockOuter (List.finRange kv_len) u) sums (keys.kind u t)
        (tile keys.blockInner (List.finRange q_len) t))
      ⟨(tile keys.blockOuter (List.finRange kv_len) u).map fun _ => Vec.zero,
        (tile keys.blockOuter (List.finRange kv_len) u).map fun _ => Vec.zero⟩
      = mapSums ρ ((List.range' (keys.visit u).first
        ((keys.visit u).stop - (keys.visit u).first)).foldl
        (fun sums t => Spec.stepKeysKind toValue scale modify mask slope Q K V Z L dO
          (Spec.rowDelta O dO dLse) (tile keys.blockOuter (List.finRange kv_len) u) sums
          (keys.kind u t) (tile keys.blockInner (List.finRange q_len) t))
        ⟨(tile keys.blockOuter (List.finRange kv_len) u).map fun _ => Vec.zero,
          (tile keys.blockOuter (List.finRange kv_len) u).map fun _ => Vec.zero⟩) := fun u => by
    rw [zeroSums]
    refine foldl_map (g := mapSums ρ) ?_ _
    exact fun t ht sums => h.stepKeysKind hvalue hmodify hslope hL
      (fun hk => hkeys u t (contains_of_mem ht) hk) sums
  have dQ : ∀ t, (List.range' (queries.visit t).first
      ((queries.visit t).stop - (queries.visit t).first)).foldl
      (fun sums u => Spec.stepQueriesKind toValue' (σ scale) modify' mask slope' (mapMatrix σ Q)
        (mapMatrix σ K) (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L)
        (mapMatrix ρ dO) (Vec.map ρ (Spec.rowDelta O dO dLse))
        (tile queries.blockOuter (List.finRange q_len) t) sums (queries.kind t u)
        (tile queries.blockInner (List.finRange kv_len) u))
      ((tile queries.blockOuter (List.finRange q_len) t).map fun _ => Vec.zero)
      = ((List.range' (queries.visit t).first
        ((queries.visit t).stop - (queries.visit t).first)).foldl
        (fun sums u => Spec.stepQueriesKind toValue scale modify mask slope Q K V Z L dO
          (Spec.rowDelta O dO dLse) (tile queries.blockOuter (List.finRange q_len) t) sums
          (queries.kind t u) (tile queries.blockInner (List.finRange kv_len) u))
        ((tile queries.blockOuter (List.finRange q_len) t).map fun _ => Vec.zero)).map
          (Vec.map ρ) := fun t => by
    rw [zeros]
    refine foldl_map (g := List.map (Vec.map ρ)) ?_ _
    exact fun u hu sums => h.stepQueriesKind hvalue hmodify hslope hL
      (fun hk => hqueries t u (contains_of_mem hu) hk) sums
  simp only [Spec.flashBackward, backwardQueries, backwardKeys, h.rowDelta, dKV, dQ, scaled,
    List.map_flatMap, List.flatMap_map, mapSums]

/-- **no-poison-one-loop**: so does the one loop of the paper, which adds to dQ in memory. -/
theorem flashBackwardOneLoop (hvalue : ∀ s, toValue' (σ s) = ρ (toValue s))
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s)) {block_m block_n : Nat}
    {kind : Nat → Nat → TileKind}
    (hkind : ∀ u t, kind u t = .unmasked → ∀ i ∈ tile block_m (List.finRange q_len) t,
      ∀ j ∈ tile block_n (List.finRange kv_len) u, mask i j = true)
    (hL : ∀ i j s l, mask i j = true → Spec.score scale modify Q K i j = some s →
      L[i] = some l → s - l ≤ bound) (O : Matrix R q_len d_v) (dLse : Vec R q_len) :
    Spec.flashBackwardOneLoop toValue' (σ scale) modify' mask slope' (mapMatrix σ Q)
        (mapMatrix σ K) (mapMatrix ρ V) (fun i j => ρ (Z i j)) (Vec.map (Option.map σ) L)
        (mapMatrix ρ dO) block_m block_n kind (mapMatrix ρ O) (Vec.map ρ dLse)
      = let g := Spec.flashBackwardOneLoop toValue scale modify mask slope Q K V Z L dO block_m
          block_n kind O dLse
        (g.1.map (Vec.map ρ), g.2.1.map (Vec.map ρ), g.2.2.map (Vec.map ρ)) := by
  rw [flashBackwardOneLoop_eq, flashBackwardOneLoop_eq]
  exact h.flashBackward hvalue hmodify hslope (fun u t _ hk j hj i hi => hkind u t hk i hi j hj)
    (fun t u _ hk i hi j hj => hkind u t hk i hi j hj) hL O dLse

end Attention.Model.Clean
