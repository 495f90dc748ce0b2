module

public import Attention.Proof.Enclosure.BackwardFactors
public import Attention.Vectors.HeadsSound
public import Attention.Vectors.NaturalGradient
public import Attention.Vectors.NaturalSound

public section

/-! # What runs is what is proved: the backward pass with the natural exponential

`NaturalGradientCase.run` makes the vectors of gradients by enclosure. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R] {number : Rat → R} {q_len kv_len d d_v m n : Nat}

/-! ## What goes in -/

/-- Heads of the intervals of numbers that are listed contain those of the numbers. -/
theorem toHeads_contains {heads : Nat} {rows : List (List (List Rat))}
    {A : Vector (Matrix (Interval working) m n) heads}
    (h : toHeads heads m n (rows.map (·.map (·.map ofRat))) = .ok A)
    (hall : AllContain number rows.flatten.flatten) :
    ∃ X : Vector (Matrix R m n) heads,
      X.toList.map rowsOf = rows.map (·.map (·.map number)) ∧ HeadsContain A X := by
  rw [toHeads] at h
  obtain ⟨list, hlist, h⟩ := bind_ok h
  split at h
  case isFalse => cases h
  case isTrue hl =>
    obtain rfl := Except.ok.inj h
    obtain ⟨hlen, each⟩ := mapM_ok hlist
    have hrows : rows.length = heads := by simpa [hl] using hlen.symm
    have one : ∀ i : Fin heads, ∃ X : Matrix R m n,
        rowsOf X = (rows[i.val]'(hrows ▸ i.isLt)).map (·.map number) ∧
          MatrixContains (list[i.val]'(hl ▸ i.isLt)) X := fun i => by
      have hi := each i.val (hl ▸ i.isLt)
      rw [List.getElem_map] at hi
      exact toMatrix_contains hi fun q hq => hall q <| by
        rw [List.flatten_flatten]
        exact List.mem_flatten.mpr ⟨_, List.mem_map_of_mem (List.getElem_mem _), hq⟩
    obtain ⟨f, hf⟩ := Classical.axiomOfChoice one
    refine ⟨Vec.ofFn f, List.ext_getElem (by simp [hrows]) fun i hi hi' => ?_, fun i => ?_⟩
    · have hi : i < heads := by simpa using hi
      simpa using (hf ⟨i, hi⟩).1
    · simpa using (hf i).2

namespace NaturalGradientCase

variable {c : NaturalGradientCase}

/-- The numbers of the bias of a head are given. -/
private theorem biasOf_contains
    (h : AllContain number ((c.bias.getD []).flatten.flatten.filterMap id)) (head : Nat) :
    AllContain number (((c.biasOf head).getD []).flatten.filterMap id) := by
  have rows : ∀ row ∈ (c.biasOf head).getD [], row = [] ∨ row ∈ (c.bias.getD []).flatten := by
    intro row hrow
    rw [biasOf] at hrow
    cases hb : c.bias with
    | none => rw [hb] at hrow; cases hrow
    | some heads =>
      rw [hb] at hrow
      simp only [Option.map_some, Option.getD_some] at hrow ⊢
      generalize hi : (if heads.length = 1 then 0 else head) = i at hrow
      rw [List.getElem!_eq_getElem?_getD] at hrow
      cases hr : heads[i]? with
      | none =>
        rw [hr] at hrow
        change row ∈ (if ([] : List (List (Option Rat))).length = 1 then _ else []) at hrow
        cases hrow
      | some rows =>
        rw [hr, Option.getD_some] at hrow
        have hmem := List.mem_of_getElem? hr
        split at hrow
        · obtain rfl := (List.mem_replicate.mp hrow).2
          rw [List.getElem!_eq_getElem?_getD]
          cases h₀ : rows[0]? with
          | none => exact .inl rfl
          | some row => exact .inr (List.mem_flatten.mpr ⟨rows, hmem, List.mem_of_getElem? h₀⟩)
        · exact .inr (List.mem_flatten.mpr ⟨rows, hmem, hrow⟩)
  intro q hq
  obtain ⟨x, hx, rfl⟩ := List.mem_filterMap.mp hq
  obtain ⟨row, hrow, hx⟩ := List.mem_flatten.mp hx
  rcases rows row hrow with rfl | hrow
  · cases hx
  · exact h q (List.mem_filterMap.mpr ⟨_, List.mem_flatten.mpr ⟨row, hrow, hx⟩, rfl⟩)

private theorem getElem_biasArray {S : Type u} (f : Rat → S) (head i j : Nat) :
    ((c.biasArray f head)[i]!)[j]! = ((((c.biasOf head).getD [])[i]!)[j]!).map f := by
  simp only [biasArray, Array.getElem!_eq_getD, Array.getD_eq_getD_getElem?, Array.getElem?_map,
    List.getElem?_toArray, List.getElem!_eq_getElem?_getD]
  cases ((c.biasOf head).getD [])[i]? with
  | none => rfl
  | some row =>
    simp only [Option.map_some, Option.getD_some, Array.getElem?_map, List.getElem?_toArray]
    cases row[j]? with
    | none => rfl
    | some x => rfl

variable [NaturalExp R]

private theorem modify_enclosed (hnumber : IsNumber number)
    (hcap : AllContain number c.softcap.toList)
    (hslopes : AllContain number ((c.alibi.map (·.2)).getD []))
    (hbias : AllContain number ((c.bias.getD []).flatten.flatten.filterMap id))
    (mask : Mask c.q_len c.kv_len) (head : Nat) :
    ModContains (c.modify ofRat (c.biasArray ofRat head) mask head)
      (c.modify number (c.biasArray number head) mask head) := by
  refine related_andThen (modified_enclosed .none hcap ?_ nofun)
    (related_andThen (fun i j I x hx => ?_) (related_mask _))
  · cases ha : c.alibi with
    | none => exact nofun
    | some given =>
      rw [ha] at hslopes
      intro q hq
      obtain rfl : q = given.2[head]! := by simpa using hq
      exact hslopes.getElem! hnumber head
  · split
    · exact hx
    · rw [getElem_biasArray, getElem_biasArray]
      have hb := bias_numbers (biasOf_contains hbias head) i.val j.val
      revert hb
      cases ((((c.biasOf head).getD [])[i.val]!)[j.val]!) with
      | none => exact fun _ => trivial
      | some b => exact fun hb => Interval.contains_add hx hb

private theorem slope_enclosed (hcap : AllContain number c.softcap.toList) :
    SlopeContains (c.slope ofRat) (c.slope number) := by
  rw [slope, slope]
  cases hc : c.softcap with
  | none => exact related_slope_one
  | some cap =>
    rw [hc] at hcap
    exact slope_softcap_enclosed hcap.head

/-! ## The Spec -/

/-- The heads' numbers over intervals contain those over numbers. -/
@[expose] def Variant.Contains {heads : Nat} :
    Variant (Interval working) q_len kv_len heads → Variant R q_len kv_len heads → Prop
  | .plain, .plain => True
  | .sinks each', .sinks each => VecContains each' each
  | .dropout factors', .dropout factors => ∀ h, FactorsContain (factors' h) (factors h)
  | .temperatures ts', .temperatures ts => VecContains ts' ts
  | _, _ => False

section
variable {num_kv_heads group : Nat} {scale' : Interval working} {scale : R}
variable {modify' : Fin (num_kv_heads * group) → ScoreMod (Interval working) q_len kv_len}
variable {modify : Fin (num_kv_heads * group) → ScoreMod R q_len kv_len}
variable {slope' : ScoreSlope (Interval working) (Interval working) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len}
variable {variant' : Variant (Interval working) q_len kv_len (num_kv_heads * group)}
variable {variant : Variant R q_len kv_len (num_kv_heads * group)}
variable {Q' : Vector (Matrix (Interval working) q_len d) (num_kv_heads * group)}
variable {Q : Vector (Matrix R q_len d) (num_kv_heads * group)}
variable {K' : Vector (Matrix (Interval working) kv_len d) num_kv_heads}
variable {K : Vector (Matrix R kv_len d) num_kv_heads}
variable {V' : Vector (Matrix (Interval working) kv_len d_v) num_kv_heads}
variable {V : Vector (Matrix R kv_len d_v) num_kv_heads}
variable {dO' : Vector (Matrix (Interval working) q_len d_v) (num_kv_heads * group)}
variable {dO : Vector (Matrix R q_len d_v) (num_kv_heads * group)}
variable {dLse' : Vector (Vec (Interval working) q_len) (num_kv_heads * group)}
variable {dLse : Vector (Vec R q_len) (num_kv_heads * group)}

omit [NaturalExp R] in
private theorem ofFn_enclosed
    {f' : Fin (num_kv_heads * group) → Gradients (Interval working) q_len kv_len d d_v}
    {f : Fin (num_kv_heads * group) → Gradients R q_len kv_len d d_v}
    (h : ∀ i, GradientsContain (f' i) (f i)) :
    GroupedContain (groupGradients (Vec.ofFn f')) (groupGradients (Vec.ofFn f)) :=
  groupGradients_enclosed fun i => by
    rw [Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_ofFn]
    exact h _

omit [NaturalExp R] in
private theorem drawn_enclosed {Z' : WeightFactor (Interval working) q_len kv_len}
    {Z : WeightFactor R q_len kv_len} (h : FactorsContain Z' Z) :
    FactorsContain
      (fun i j => (Vec.ofFn fun i => Vec.ofFn fun j => Z' i j)[i][j])
      (fun i j => (Vec.ofFn fun i => Vec.ofFn fun j => Z i j)[i][j]) := by
  intro i j
  simp only [Fin.getElem_fin, Vec.getElem_ofFn]
  exact h i j

/-- The results over intervals contain those over numbers. -/
@[expose] def Found.Contains (g' : Found (Interval working) q_len kv_len d d_v
    (num_kv_heads * group) num_kv_heads)
    (g : Found R q_len kv_len d d_v (num_kv_heads * group) num_kv_heads) : Prop :=
  GroupedContain g'.inputs g.inputs ∧ Pointwise Interval.Contains g'.sinks g.sinks ∧
    Pointwise Interval.Contains g'.temperatures g.temperatures

private theorem find_enclosed (hscale : scale'.Contains scale)
    (hmodify : ∀ h, ModContains (modify' h) (modify h)) (hslope : SlopeContains slope' slope)
    (hvariant : variant'.Contains variant)
    (hQ : HeadsContain Q' Q) (hK : HeadsContain K' K) (hV : HeadsContain V' V)
    (hdO : HeadsContain dO' dO)
    (hdLse : ∀ h : Fin (num_kv_heads * group), VecContains dLse'[h] dLse[h]) :
    (find scale' modify' slope' variant' Q' K' V' dO' dLse').Contains
      (find scale modify slope variant Q K V dO dLse) := by
  match variant', variant, hvariant with
  | .plain, .plain, _ =>
    exact ⟨groupedQueryVjp_enclosed hscale hmodify (fun _ => hslope) hQ hK hV hdO hdLse,
      trivial, trivial⟩
  | .sinks _, .sinks _, hvariant =>
    have h := sinkVjp_enclosed hvariant hscale hmodify (fun _ => hslope) hQ hK hV hdO hdLse
    exact ⟨h.1, h.2.toList, trivial⟩
  | .dropout _, .dropout _, hvariant =>
    exact ⟨ofFn_enclosed fun h => vjpDropout_enclosed (drawn_enclosed (hvariant h.val)) hscale
      (hmodify h) hslope (hQ h) (hK (kvHead h)) (hV (kvHead h)) (hdO h) (hdLse h),
      trivial, trivial⟩
  | .temperatures ts', .temperatures ts, hvariant =>
    have each := fun h : Fin (num_kv_heads * group) =>
      temperatureVjp_enclosed (hvariant h.val h.isLt) hscale (hmodify h) hslope (hQ h)
        (hK (kvHead h)) (hV (kvHead h)) (hdO h) (hdLse h)
    refine ⟨ofFn_enclosed fun h => ?_, trivial, ?_⟩
    · rw [Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_ofFn]
      exact (each h).1
    · refine Pointwise.of_getElem (by simp [find]) fun i hi hi' => ?_
      have hi : i < num_kv_heads * group := by simpa [find] using hi
      simp only [find, List.getElem_map, Vector.getElem_toList, Vec.getElem_ofFn]
      exact (each ⟨i, hi⟩).2

end

/-! ## The program -/

/-- The bounds that are written are right: each gradient lies between its two. -/
@[expose] def Describes (c : NaturalGradientCase) (r : EnclosedGradients) {num_heads num_kv : Nat}
    (g : Found R q_len kv_len d d_v num_heads num_kv) : Prop :=
  Pointwise BoundsContain r.dQ g.inputs.dQ.toList ∧
  Pointwise BoundsContain r.dK g.inputs.dK.toList ∧
  Pointwise BoundsContain r.dV g.inputs.dV.toList ∧
  Pointwise (Pointwise (Pointwise BoundContains)) r.dBias (c.biasGradient g.inputs.dBias) ∧
  Pointwise BoundContains r.slopes (c.slopeGradients g.inputs.dBias) ∧
  Pointwise BoundContains r.sinks g.sinks ∧ Pointwise BoundContains r.temperatures g.temperatures

omit [NaturalExp R] in
private theorem heads_boundsContain {heads : Nat} {A : Vector (Matrix (Interval working) m n) heads}
    {X : Vector (Matrix R m n) heads} {B : List RowBounds} (h : A.toList.mapM boundsOf = .ok B)
    (hA : ∀ i : Fin heads, MatrixContains A[i] X[i]) : Pointwise BoundsContain B X.toList := by
  have each := pointwise_of_mapM h
  have len := each.length_eq
  refine .of_getElem (by rw [len]; simp) fun i hi hi' => ?_
  have one := each.getElem hi (len ▸ hi)
  rw [Vector.getElem_toList] at one ⊢
  exact contains_boundsOf one (hA ⟨i, by simpa using hi'⟩)

omit [NaturalExp R] in
private theorem rowsOf_contains {A : Matrix (Interval working) m n} {X : Matrix R m n}
    (h : MatrixContains A X) : Pointwise (Pointwise Interval.Contains) (rowsOf A) (rowsOf X) :=
  .of_getElem (by simp [rowsOf]) fun i hi hi' => by
    have hi : i < m := by simpa [rowsOf] using hi
    simpa [rowsOf] using (h i hi).toList

omit [NaturalExp R] in
private theorem pointwise_mapM {α β : Type} {γ : Type u} {P : β → γ → Prop} {Q : α → γ → Prop}
    {f : β → Except String α} (hf : ∀ b a c, f b = .ok a → P b c → Q a c) {bs : List β}
    {cs : List γ} {as : List α} (h : bs.mapM f = .ok as) (hp : Pointwise P bs cs) :
    Pointwise Q as cs := by
  have each := pointwise_of_mapM h
  have len := each.length_eq
  exact .of_getElem (len.trans hp.length_eq) fun i hi hi' =>
    hf _ _ _ (each.getElem hi (len ▸ hi)) (hp.getElem (len ▸ hi) hi')

omit [NaturalExp R] in
private theorem biasGradient_contains {heads : Nat}
    {A : Vector (Matrix (Interval working) m n) heads} {X : Vector (Matrix R m n) heads}
    (h : ∀ i : Fin heads, MatrixContains A[i] X[i]) :
    Pointwise (Pointwise (Pointwise Interval.Contains)) (c.biasGradient A) (c.biasGradient X) := by
  have all : Pointwise MatrixContains A.toList X.toList :=
    .of_getElem (by simp) fun i hi hi' => by
      rw [Vector.getElem_toList, Vector.getElem_toList]
      exact h ⟨i, by simpa using hi'⟩
  simp only [biasGradient]
  cases c.bias with
  | none => exact all.map fun _ _ hA => rowsOf_contains hA
  | some bias =>
    have byHead : Pointwise MatrixContains
        (if bias.length = heads then A.toList else
          [sumMatrices (fun h : Fin heads => A[h]) (List.finRange heads)])
        (if bias.length = heads then X.toList else
          [sumMatrices (fun h : Fin heads => X[h]) (List.finRange heads)]) := by
      split
      · exact all
      · exact ⟨related_sumMatrices fun i _ => h i, trivial⟩
    dsimp only
    split
    · exact byHead.map fun _ _ hA => rowsOf_contains hA
    · exact byHead.map fun _ _ hA => rowsOf_contains (contains_sumRows hA)

omit [NaturalExp R] in
private theorem slopeGradients_contains {heads : Nat}
    {A : Vector (Matrix (Interval working) m n) heads} {X : Vector (Matrix R m n) heads}
    (h : ∀ i : Fin heads, MatrixContains A[i] X[i]) :
    Pointwise Interval.Contains (c.slopeGradients A) (c.slopeGradients X) := by
  rw [slopeGradients, slopeGradients]
  cases c.alibi with
  | none => trivial
  | some given =>
    refine .of_getElem (by simp) fun i hi hi' => ?_
    simp only [Option.elim_some, List.getElem_map, Vector.getElem_toList]
    exact contains_slopeGradient _ (h ⟨i, by simpa using hi'⟩)

/-- The output of the program for a case whose numbers have intervals that contain them. -/
theorem compute_ok (hnumber : IsNumber number) (hall : AllContain number c.numbers)
    {maskOf : Nat → Mask c.q_len c.kv_len}
    {variant' : Variant (Interval working) c.q_len c.kv_len (c.num_kv_heads * c.group)}
    {variant : Variant R c.q_len c.kv_len (c.num_kv_heads * c.group)}
    (hvariant : variant'.Contains variant) {scale : R}
    (hscale : (scaleOf c.scale c.head_dim).Contains scale) {r : EnclosedGradients}
    (h : c.compute maskOf variant' = .ok r) :
    ∃ (Q : Vector (Matrix R c.q_len c.head_dim) (c.num_kv_heads * c.group))
      (K : Vector (Matrix R c.kv_len c.head_dim) c.num_kv_heads)
      (V : Vector (Matrix R c.kv_len c.value_dim) c.num_kv_heads)
      (dO : Vector (Matrix R c.q_len c.value_dim) (c.num_kv_heads * c.group))
      (dLse : Matrix R (c.num_kv_heads * c.group) c.q_len),
      Q.toList.map rowsOf = c.q.map (·.map (·.map number)) ∧
      K.toList.map rowsOf = c.k.map (·.map (·.map number)) ∧
      V.toList.map rowsOf = c.v.map (·.map (·.map number)) ∧
      dO.toList.map rowsOf = c.dO.map (·.map (·.map number)) ∧
      rowsOf dLse = c.dLse.map (·.map number) ∧
      c.Describes r (find scale
        (fun h => c.modify number (c.biasArray number h.val) (maskOf h.val) h.val)
        (c.slope number) variant Q K V dO dLse) := by
  rw [compute] at h
  obtain ⟨Q', hQ, h⟩ := bind_ok h
  obtain ⟨K', hK, h⟩ := bind_ok h
  obtain ⟨V', hV, h⟩ := bind_ok h
  obtain ⟨dO', hdO, h⟩ := bind_ok h
  obtain ⟨dLse', hdLse, h⟩ := bind_ok h
  have given := hall.left.left.left.left.left.left
  simp only [List.flatten_append] at given
  obtain ⟨Q, hQ, hQ'⟩ := toHeads_contains hQ given.left.left.left
  obtain ⟨K, hK, hK'⟩ := toHeads_contains hK given.left.left.right
  obtain ⟨V, hV, hV'⟩ := toHeads_contains hV given.left.right
  obtain ⟨dO, hdO, hdO'⟩ := toHeads_contains hdO given.right
  obtain ⟨dLse, hdLse, hdLse'⟩ := toMatrix_contains hdLse hall.left.left.left.left.left.right
  refine ⟨Q, K, V, dO, dLse, hQ, hK, hV, hdO, hdLse, ?_⟩
  have hfind := find_enclosed hscale (modify' := fun h =>
      c.modify ofRat (Vec.ofFn fun h : Fin (c.num_kv_heads * c.group) =>
        c.biasArray ofRat h.val)[h] (maskOf h.val) h.val) (modify := fun h =>
      c.modify number (c.biasArray number h.val) (maskOf h.val) h.val)
    (fun h => by
      simp only [Fin.getElem_fin, Vec.getElem_ofFn]
      exact modify_enclosed hnumber hall.left.left.left.right hall.left.left.right hall.left.right
        _ _)
    (slope_enclosed hall.left.left.left.right) hvariant hQ' hK' hV' hdO'
    (fun h => hdLse' h.val h.isLt)
  dsimp only at h
  generalize find (scaleOf c.scale c.head_dim) _ _ variant' Q' K' V' dO' dLse' = g' at h hfind
  generalize find scale _ _ variant Q K V dO dLse = g at hfind ⊢
  obtain ⟨hin, hsinks, htemps⟩ := hfind
  obtain ⟨dQ, h₁, h⟩ := bind_ok h
  obtain ⟨dK, h₂, h⟩ := bind_ok h
  obtain ⟨dV, h₃, h⟩ := bind_ok h
  obtain ⟨dBias, h₄, h⟩ := bind_ok h
  obtain ⟨slopes, h₅, h⟩ := bind_ok h
  obtain ⟨sinks, h₆, h⟩ := bind_ok h
  obtain ⟨temperatures, h₇, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  exact ⟨heads_boundsContain h₁ hin.dQ, heads_boundsContain h₂ hin.dK,
    heads_boundsContain h₃ hin.dV,
    pointwise_mapM (Q := Pointwise (Pointwise BoundContains))
      (fun _ _ _ hm hp => pointwise_mapM (Q := Pointwise BoundContains)
        (fun _ _ _ hm hp => pointwise_toBounds hm hp) hm hp) h₄
      (biasGradient_contains hin.dBias),
    pointwise_toBounds h₅ (slopeGradients_contains hin.dBias),
    pointwise_toBounds h₆ hsinks, pointwise_toBounds h₇ htemps⟩

/-- The heads' numbers beside the formulas: nothing, or the sinks that are listed. -/
@[expose] def HasSinks (c : NaturalGradientCase) (number : Rat → R)
    (variant : Variant R c.q_len c.kv_len (c.num_kv_heads * c.group)) : Prop :=
  match c.sinks with
  | none => variant = .plain
  | some sinks => ∃ each : Vec R (c.num_kv_heads * c.group),
      each.toList = sinks.map number ∧ variant = .sinks each

omit [NaturalExp R] in
/-- The intervals of the numbers that are listed for each head contain them. -/
theorem perHead_ok {heads : Nat} {xs : List Rat} (hall : AllContain number xs)
    {each' : Vec (Interval working) heads} (h : perHead heads xs = .ok each') :
    ∃ each : Vec R heads, each.toList = xs.map number ∧ VecContains each' each := by
  obtain ⟨A, hA, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  obtain ⟨X, hX, hc⟩ := toMatrix_contains (rows := [xs]) hA (by simpa using hall)
  have h₀ := congrArg (·[0]?) hX
  exact ⟨X[0], by simpa [rowsOf] using h₀, hc 0 (by decide)⟩

omit [NaturalExp R] in
/-- The heads' numbers over intervals contain those over numbers, where there is neither dropout nor
a temperature. -/
theorem sinkVariant_ok (hall : AllContain number (c.sinks.getD []))
    {variant' : Variant (Interval working) c.q_len c.kv_len (c.num_kv_heads * c.group)}
    (h : c.sinkVariant = .ok variant') :
    ∃ variant : Variant R c.q_len c.kv_len (c.num_kv_heads * c.group),
      c.HasSinks number variant ∧ variant'.Contains variant := by
  rw [sinkVariant] at h
  cases hs : c.sinks with
  | none =>
    rw [hs] at h
    obtain rfl := Except.ok.inj h
    exact ⟨.plain, by simp [HasSinks, hs], trivial⟩
  | some sinks =>
    rw [hs] at h hall
    obtain ⟨each', he, h⟩ := bind_ok h
    obtain rfl := Except.ok.inj h
    obtain ⟨each, hX, hc⟩ := perHead_ok hall he
    exact ⟨.sinks each, by simpa [HasSinks, hs] using hX, hc⟩

/-- **natural-gradient-vectors-sound**: if the program yields bounds for a case of the backward pass
with the natural exponential, then over every ordered field with one, and with square roots, each
gradient by the formulas, or by those with sinks where the case has some, lies between its bounds:
by queries, keys, values, the bias of its shape, slopes and sinks. -/
theorem run_sound {root : R → R} (hroot : Interval.IsSqrt root) (hnumber : IsNumber number)
    {r : EnclosedGradients} (h : c.run = .ok r) :
    ∃ (Q : Vector (Matrix R c.q_len c.head_dim) (c.num_kv_heads * c.group))
      (K : Vector (Matrix R c.kv_len c.head_dim) c.num_kv_heads)
      (V : Vector (Matrix R c.kv_len c.value_dim) c.num_kv_heads)
      (dO : Vector (Matrix R c.q_len c.value_dim) (c.num_kv_heads * c.group))
      (dLse : Matrix R (c.num_kv_heads * c.group) c.q_len)
      (variant : Variant R c.q_len c.kv_len (c.num_kv_heads * c.group)),
      Q.toList.map rowsOf = c.q.map (·.map (·.map number)) ∧
      K.toList.map rowsOf = c.k.map (·.map (·.map number)) ∧
      V.toList.map rowsOf = c.v.map (·.map (·.map number)) ∧
      dO.toList.map rowsOf = c.dO.map (·.map (·.map number)) ∧
      rowsOf dLse = c.dLse.map (·.map number) ∧ c.HasSinks number variant ∧
      c.Describes r (find (factorOf root number c.scale c.head_dim)
        (fun h => c.modify number (c.biasArray number h.val) c.mask.toMask h.val)
        (c.slope number) variant Q K V dO dLse) := by
  rw [run] at h
  obtain ⟨_, hx, h⟩ := bind_ok h
  obtain ⟨variant', hv, h⟩ := bind_ok h
  have hall : AllContain number c.numbers := allContain_of_checkExact hnumber hx
  obtain ⟨variant, hs, hvariant⟩ := sinkVariant_ok hall.right hv
  obtain ⟨Q, K, V, dO, dLse, hQ, hK, hV, hdO, hdLse, hd⟩ := compute_ok hnumber hall hvariant
    (contains_factor hroot hall.left.left.left.left.right c.head_dim) h
  exact ⟨Q, K, V, dO, dLse, variant, hQ, hK, hV, hdO, hdLse, hs, hd⟩

end NaturalGradientCase

end Attention.Vectors
