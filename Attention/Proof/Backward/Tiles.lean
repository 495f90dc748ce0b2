module

public import Attention.Proof.Backward.Dropout
public import Attention.Proof.Softmax.LogSumExp
public import Attention.Proof.Flash.Schedule
public import Attention.Proof.Flash.TileSum
public import Attention.Spec.BackwardTiles

public section

/-! # FlashAttention-2's backward pass computes the gradients -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

/-! ## The sums of a tile -/

section Sums

variable {R : Type v} [OrderedField R] {n : Nat} {α β : Type}

/-- The terms that a result gets from a tile that is taken as its kind says. -/
@[expose] def tileTerm (kind : TileKind) (unmasked masked : β → Vec R n) (tile : List β) :
    Vec R n :=
  match kind with
  | .skip => Vec.zero
  | .unmasked => Vec.sumOver unmasked tile
  | .masked => Vec.sumOver masked tile

/-- Adding nothing. -/
theorem vecAdd_zero (a : Vec R n) : Vec.add a Vec.zero = a :=
  Vector.ext fun c hc => by rw [Vec.getElem_add, Vec.getElem_zero, Semiring.add_zero]

/-- Nothing times a vector. -/
theorem zero_smul (a : Vec R n) : Vec.smul 0 a = Vec.zero :=
  Vector.ext fun c hc => by rw [Vec.getElem_smul, Vec.getElem_zero, Semiring.zero_mul]

/-- Of sums that are a function of their results. -/
theorem addTile_map (term : α → β → Vec R n) (outs : List α) (a : α → Vec R n)
    (tile : List β) : addTile term outs (outs.map a) tile
      = outs.map fun x => Vec.add (a x) (Vec.sumOver (term x) tile) := by
  rw [addTile, List.zipWith_map_right, List.zipWith_self]

/-- Lists of sums that are added to, each result by itself. -/
theorem foldl_map_add {step : List (Vec R n) → Nat → List (Vec R n)} {g : α → Nat → Vec R n}
    {outs : List α} (h : ∀ a t, step (outs.map a) t = outs.map fun x => Vec.add (a x) (g x t))
    (ts : List Nat) : ∀ a : α → Vec R n, ts.foldl step (outs.map a)
      = outs.map fun x => ts.foldl (fun v t => Vec.add v (g x t)) (a x) := by
  induction ts with
  | nil => intro a; rfl
  | cons t ts ih =>
    intro a
    simp only [List.foldl_cons, h, ih]

/-- The same of two lists of sums at once. -/
theorem foldl_keySums_add {d d_v : Nat} {step : KeySums R d d_v → Nat → KeySums R d d_v}
    {g : α → Nat → Vec R d} {g' : α → Nat → Vec R d_v} {outs : List α}
    (h : ∀ a a' t, step ⟨outs.map a, outs.map a'⟩ t
      = ⟨outs.map fun x => Vec.add (a x) (g x t), outs.map fun x => Vec.add (a' x) (g' x t)⟩)
    (ts : List Nat) : ∀ (a : α → Vec R d) (a' : α → Vec R d_v),
      ts.foldl step ⟨outs.map a, outs.map a'⟩
        = ⟨outs.map fun x => ts.foldl (fun v t => Vec.add v (g x t)) (a x),
            outs.map fun x => ts.foldl (fun v t => Vec.add v (g' x t)) (a' x)⟩ := by
  induction ts with
  | nil => intro a a'; rfl
  | cons t ts ih =>
    intro a a'
    simp only [List.foldl_cons, h, ih]

/-- The terms of the visited tiles sum to those of all: what is left out, or taken without the mask,
has to be fit for it. -/
theorem foldl_tileTerm {m b : Nat} (hb : 0 < b) (unmasked masked : Fin m → Vec R n)
    (kind : Nat → TileKind) (r : TileRange)
    (hskip : ∀ t, r.contains t = false ∨ kind t = .skip → ∀ i ∈ tile b (List.finRange m) t,
      masked i = Vec.zero)
    (hunmasked : ∀ t, r.contains t = true → kind t = .unmasked →
      ∀ i ∈ tile b (List.finRange m) t, unmasked i = masked i) :
    (List.range' r.first (r.stop - r.first)).foldl (fun v t => Vec.add v
        (tileTerm (kind t) unmasked masked (tile b (List.finRange m) t))) Vec.zero
      = Vec.sumOver masked (List.finRange m) := by
  have hzero : ∀ {c : Nat} (hc : c < n) t, (∀ i ∈ tile b (List.finRange m) t,
      masked i = Vec.zero) → sumOver (fun i => (masked i)[c]) (tile b (List.finRange m) t) = 0 :=
    fun hc t h => sumOver_eq_zero fun i hi => by rw [h i hi, Vec.getElem_zero]
  refine Vector.ext fun c hc => ?_
  rw [getElem_foldl_add _ _ hc, Vec.getElem_zero, Vec.getElem_sumOver,
    sumOver_tiles hb (fun i => (masked i)[c]) r (fun t ht => ?_)
      fun t ht => hzero hc t (hskip t (.inl ht))]
  · rw [AddCommMonoid.zero_add]
  · cases hk : kind t with
    | skip => rw [tileTerm, Vec.getElem_zero, hzero hc t (hskip t (.inr hk))]
    | masked => rw [tileTerm, Vec.getElem_sumOver]
    | unmasked =>
      rw [tileTerm, Vec.getElem_sumOver]
      exact sumOver_congr fun i hi => by rw [hunmasked t ht hk i hi]

end Sums

/-! ## Terms of pairs -/

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat} (toValue : S → R) (scale : S)
variable (modify : ScoreMod S q_len kv_len) {mask : Mask q_len kv_len}
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len)
variable (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v) (delta : Vec R q_len)

/-- A weight computed again from the log-sum-exp is the softmax weight. -/
theorem probabilityAgain_eq {L : Vector (Option S) q_len} {i : Fin q_len}
    (hL : IsLogSumExp R L[i] ((List.finRange kv_len).map (score scale modify Q K i)))
    (j : Fin kv_len) : (probabilityAgain scale modify Q K L i j : R)
      = (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] := by
  have h := softmax_eq_rescale hL
  rw [softmax_eq, List.map_inj_left] at h
  rw [getElem_probabilities, probabilityAgain]
  exact (h _ (List.mem_map_of_mem (List.mem_finRange j))).symm

/-- A masked pair has weight 0. -/
theorem probabilityAgain_masked {i : Fin q_len} {j : Fin kv_len} (h : mask i j = false) :
    (probabilityAgain scale (modify.andThen mask.toScoreMod) Q K L i j : R) = 0 := by
  rw [probabilityAgain, score_andThen_mask, h, if_neg (by decide), rescale_none_left]

/-- With a factor as well. -/
theorem droppedAgain_masked {i : Fin q_len} {j : Fin kv_len} (h : mask i j = false) :
    (droppedAgain scale (modify.andThen mask.toScoreMod) Q K Z L i j : R) = 0 := by
  rw [droppedAgain, probabilityAgain_masked scale modify Q K L h, Semiring.zero_mul]

/-- A masked pair has gradient 0. -/
theorem rawGradient_masked {i : Fin q_len} {j : Fin kv_len} (h : mask i j = false) :
    rawGradient scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta i j = 0 := by
  rw [rawGradient, scoreGradient, probabilityAgain_masked scale modify Q K L h, Semiring.zero_mul,
    Semiring.zero_mul]

omit [OrderedField R] [Exponential S R] in
/-- A pair that the mask lets through has its weight without mask code. -/
theorem probabilityAgain_visible [OfNat R 0] [Exp S R] {i : Fin q_len} {j : Fin kv_len}
    (h : mask i j = true) :
    (probabilityAgain scale (modify.andThen mask.toScoreMod) Q K L i j : R)
      = probabilityAgain scale modify Q K L i j := by
  rw [probabilityAgain, probabilityAgain, score, score, andThen_mask_of_visible modify h]

/-- With a factor as well. -/
theorem droppedAgain_visible {i : Fin q_len} {j : Fin kv_len} (h : mask i j = true) :
    (droppedAgain scale (modify.andThen mask.toScoreMod) Q K Z L i j : R)
      = droppedAgain scale modify Q K Z L i j := by
  rw [droppedAgain, droppedAgain, probabilityAgain_visible scale modify Q K L h]

/-- A pair that the mask lets through has its gradient without mask code. -/
theorem rawGradient_visible {i : Fin q_len} {j : Fin kv_len} (h : mask i j = true) :
    rawGradient scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta i j
      = rawGradient scale modify slope Q K V Z L dO delta i j := by
  rw [rawGradient, rawGradient, probabilityAgain_visible scale modify Q K L h]

/-! ## The loops -/

omit [OrderedField R] in
private theorem flatMap_map_tile {b n : Nat} (hb : 0 < b) (f : Fin n → Vec R d) :
    ((List.range (numTiles n b)).flatMap fun t => (tile b (List.finRange n) t).map f)
      = (Vec.ofFn f : Vector (Vec R d) n).toList := by
  have h := flatMap_tile hb (List.finRange n)
  rw [List.length_finRange] at h
  rw [← List.map_flatMap, h]
  exact List.ext_getElem (by simp) fun i _ _ => by simp

variable {loop : TileLoop}

/-- The loop over tiles of keys for each tile of queries sums, for each query, over all keys. -/
theorem backwardQueries_eq (hb : 0 < loop.blockOuter) (hb' : 0 < loop.blockInner)
    (h : SoundSchedule mask loop.visit loop.kind loop.blockOuter loop.blockInner) :
    backwardQueries toValue scale modify mask slope Q K V Z L dO delta loop
      = (Vec.ofFn fun i => Vec.smul (toValue scale) (Vec.sumOver (fun j => Vec.smul
          (rawGradient scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta i j)
          (Vec.map toValue K[j])) (List.finRange kv_len)) : Matrix R q_len d).toList := by
  rw [← flatMap_map_tile hb, backwardQueries]
  refine congrArg List.flatten (List.map_congr_left fun t _ => ?_)
  have hfold := foldl_map_add (n := d) (outs := tile loop.blockOuter (List.finRange q_len) t)
    (step := fun sums u => stepQueriesKind toValue scale modify mask slope Q K V Z L dO delta
      (tile loop.blockOuter (List.finRange q_len) t) sums (loop.kind t u)
      (tile loop.blockInner (List.finRange kv_len) u))
    (g := fun i u => tileTerm (loop.kind t u)
      (fun j => Vec.smul (rawGradient scale modify slope Q K V Z L dO delta i j)
        (Vec.map toValue K[j]))
      (fun j => Vec.smul
        (rawGradient scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta i j)
        (Vec.map toValue K[j]))
      (tile loop.blockInner (List.finRange kv_len) u))
    (fun a u => by
      cases hk : loop.kind t u <;>
        simp only [hk, stepQueriesKind, stepQueries, addTile_map, tileTerm, vecAdd_zero])
  simp only [hfold, List.map_map]
  refine List.map_congr_left fun i hi => congrArg (Vec.smul (toValue scale)) ?_
  refine foldl_tileTerm hb' _ _ _ _ (fun u hu j hj => ?_) fun u hu hk j hj => ?_
  · rw [rawGradient_masked (h := h.skip t u hu i hi j hj), zero_smul]
  · rw [rawGradient_visible (h := h.unmasked t u hu hk i hi j hj)]

/-- The loop over tiles of queries for each tile of keys sums, for each key, over all queries. -/
theorem backwardKeys_eq (hb : 0 < loop.blockOuter) (hb' : 0 < loop.blockInner)
    (h : SoundSchedule (fun j i => mask i j) loop.visit loop.kind loop.blockOuter
      loop.blockInner) :
    backwardKeys toValue scale modify mask slope Q K V Z L dO delta loop
      = ⟨(Vec.ofFn fun j => Vec.smul (toValue scale) (Vec.sumOver (fun i => Vec.smul
            (rawGradient scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta i j)
            (Vec.map toValue Q[i])) (List.finRange q_len)) : Matrix R kv_len d).toList,
          (Vec.ofFn fun j => Vec.sumOver (fun i => Vec.smul
            (droppedAgain scale (modify.andThen mask.toScoreMod) Q K Z L i j)
            dO[i]) (List.finRange q_len) : Matrix R kv_len d_v).toList⟩ := by
  have hfold := fun u => foldl_keySums_add (d := d) (d_v := d_v)
    (outs := tile loop.blockOuter (List.finRange kv_len) u)
    (step := fun sums t => stepKeysKind toValue scale modify mask slope Q K V Z L dO delta
      (tile loop.blockOuter (List.finRange kv_len) u) sums (loop.kind u t)
      (tile loop.blockInner (List.finRange q_len) t))
    (g := fun j t => tileTerm (loop.kind u t)
      (fun i => Vec.smul (rawGradient scale modify slope Q K V Z L dO delta i j)
        (Vec.map toValue Q[i]))
      (fun i => Vec.smul
        (rawGradient scale (modify.andThen mask.toScoreMod) slope Q K V Z L dO delta i j)
        (Vec.map toValue Q[i]))
      (tile loop.blockInner (List.finRange q_len) t))
    (g' := fun j t => tileTerm (loop.kind u t)
      (fun i => Vec.smul (droppedAgain scale modify Q K Z L i j) dO[i])
      (fun i => Vec.smul (droppedAgain scale (modify.andThen mask.toScoreMod) Q K Z L i j) dO[i])
      (tile loop.blockInner (List.finRange q_len) t))
    (fun a a' t => by
      cases hk : loop.kind u t <;>
        simp only [hk, stepKeysKind, stepKeys, addTile_map, tileTerm, vecAdd_zero])
  rw [← flatMap_map_tile hb, ← flatMap_map_tile hb]
  simp only [backwardKeys, hfold, List.flatMap_map, List.map_map]
  refine congr (congrArg KeySums.mk ?_) ?_
  · refine congrArg List.flatten (List.map_congr_left fun u _ => List.map_congr_left fun j hj =>
      congrArg (Vec.smul (toValue scale)) ?_)
    refine foldl_tileTerm hb' _ _ _ _ (fun t ht i hi => ?_) fun t ht hk i hi => ?_
    · rw [rawGradient_masked (h := h.skip u t ht j hj i hi), zero_smul]
    · rw [rawGradient_visible (h := h.unmasked u t ht hk j hj i hi)]
  · refine congrArg List.flatten (List.map_congr_left fun u _ => List.map_congr_left fun j hj => ?_)
    refine foldl_tileTerm hb' _ _ _ _ (fun t ht i hi => ?_) fun t ht hk i hi => ?_
    · rw [droppedAgain_masked (h := h.skip u t ht j hj i hi), zero_smul]
    · rw [droppedAgain_visible (h := h.unmasked u t ht hk j hj i hi)]

omit [OrderedField R] [Exponential S R] in
/-- A loop over all tiles, each taken with mask code, is sound for every mask. -/
theorem soundSchedule_all (mask : Mask q_len kv_len) (block_m : Nat) {block_n : Nat}
    (hn : 0 < block_n) : SoundSchedule mask (fun _ => ⟨0, numTiles kv_len block_n⟩)
      (fun _ _ => .masked) block_m block_n where
  skip t u h i _ j hj := by
    refine absurd hj (List.not_mem_nil.comp (Eq.mp (congrArg (j ∈ ·) (tile_eq_nil hn ?_))))
    rw [List.length_finRange]
    rcases h with h | h
    · simp only [TileRange.contains, Bool.and_eq_false_iff, decide_eq_false_iff_not] at h
      omega
    · exact nomatch h
  unmasked _ _ _ h := nomatch h

/-- The sums of the loops, where P again is P, are those of the backward pass with dropout. -/
theorem vjpDropout_sums (dLse : Vec R q_len)
    (hP : ∀ i j, (probabilityAgain scale modify Q K L i j : R)
      = (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]) :
    let g := vjpDropout scale modify slope Q K V Z toValue dO dLse
    let dX := rawGradient scale modify slope Q K V Z L dO
      (rowDelta (attentionDropout scale modify Q K V Z) dO dLse)
    (Vec.ofFn fun i => Vec.smul (toValue scale) (Vec.sumOver (fun j => Vec.smul (dX i j)
        (Vec.map toValue K[j])) (List.finRange kv_len))) = g.dQ
      ∧ (Vec.ofFn fun j => Vec.smul (toValue scale) (Vec.sumOver (fun i => Vec.smul (dX i j)
        (Vec.map toValue Q[i])) (List.finRange q_len))) = g.dK
      ∧ (Vec.ofFn fun j => Vec.sumOver (fun i => Vec.smul
        (droppedAgain scale modify Q K Z L i j) dO[i]) (List.finRange q_len)) = g.dV := by
  intro g dX
  obtain ⟨hB, hdV, hdQ, hdK⟩ := vjpDropout_formulas scale modify slope Q K V Z toValue dO dLse
  have hX : ∀ i j, dX i j = g.dBias[i][j] * slope i j (scale * Vec.dot Q[i] K[j]) := fun i j => by
    rw [hB, ← dot_smul_right, ← hP]
    rfl
  refine ⟨?_, ?_, ?_⟩ <;> refine Vector.ext fun r hr => Vector.ext fun c hc => ?_
  · refine Eq.trans ?_ (hdQ ⟨r, hr⟩ ⟨c, hc⟩).symm
    simp only [Vec.getElem_ofFn, Vec.getElem_smul, Vec.getElem_sumOver, Vec.getElem_map, hX]
    rfl
  · refine Eq.trans ?_ (hdK ⟨r, hr⟩ ⟨c, hc⟩).symm
    simp only [Vec.getElem_ofFn, Vec.getElem_smul, Vec.getElem_sumOver, Vec.getElem_map, hX]
    rfl
  · refine Eq.trans ?_ (hdV ⟨r, hr⟩ ⟨c, hc⟩).symm
    simp only [Vec.getElem_ofFn, Vec.getElem_smul, Vec.getElem_sumOver, droppedAgain, hP]
    rfl

/-- **flash-backward-dropout**: for all sizes, tile sizes of at least 1 (ragged last tiles
included), masks, and score transformations with their slopes before the mask, for any factors, and
for any sound schedule of each of the two loops: from the output with dropout and the log-sum-exp
that the forward pass has saved, the tile loops of FlashAttention-2's backward pass compute the
gradients of `vjpDropout`, `dLse` included. -/
theorem flashBackward_eq_vjpDropout {keys queries : TileLoop}
    (hk : 0 < keys.blockOuter) (hk' : 0 < keys.blockInner)
    (hq : 0 < queries.blockOuter) (hq' : 0 < queries.blockInner)
    (hkeys : SoundSchedule (fun j i => mask i j) keys.visit keys.kind keys.blockOuter
      keys.blockInner)
    (hqueries : SoundSchedule mask queries.visit queries.kind queries.blockOuter
      queries.blockInner)
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    let g := vjpDropout scale forward slope Q K V Z toValue dO dLse
    flashBackward toValue scale modify mask slope Q K V Z L dO keys queries
        (attentionDropout scale forward Q K V Z) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) := by
  intro forward g
  obtain ⟨hdQ, hdK, hdV⟩ := vjpDropout_sums toValue scale forward slope Q K V Z L dO dLse
    fun i j => probabilityAgain_eq (R := R) scale forward Q K (hL i) j
  rw [flashBackward, backwardKeys_eq toValue scale modify slope Q K V Z L dO _ hk hk' hkeys,
    backwardQueries_eq toValue scale modify slope Q K V Z L dO _ hq hq' hqueries]
  simp only [g, forward, ← hdQ, ← hdK, ← hdV]

/-- **flash-backward**: with factors 1, so without dropout, from the output and the log-sum-exp
that the forward pass has saved, they compute the gradients of `vjp`. -/
theorem flashBackward_eq_vjp {keys queries : TileLoop}
    (hk : 0 < keys.blockOuter) (hk' : 0 < keys.blockInner)
    (hq : 0 < queries.blockOuter) (hq' : 0 < queries.blockInner)
    (hkeys : SoundSchedule (fun j i => mask i j) keys.visit keys.kind keys.blockOuter
      keys.blockInner)
    (hqueries : SoundSchedule mask queries.visit queries.kind queries.blockOuter
      queries.blockInner)
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    let g := vjp scale forward slope Q K V toValue dO dLse
    flashBackward toValue scale modify mask slope Q K V (fun _ _ => 1) L dO keys queries
        (attention scale forward Q K V) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) := by
  intro forward g
  have h := flashBackward_eq_vjpDropout toValue scale modify slope Q K V (fun _ _ => 1) L dO hk hk'
    hq hq' hkeys hqueries hL dLse
  simp only [attentionDropout_one, vjpDropout_one] at h
  exact h

end Attention.Proof
