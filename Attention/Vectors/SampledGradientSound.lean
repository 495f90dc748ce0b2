module

public import Attention.Vectors.NaturalGradientSound
public import Attention.Vectors.SampledGradient
public import Attention.Vectors.SampledSound

public section

/-! # What runs is what is proved: gradients by some queries and keys

`SampledGradientCase.run` makes the vectors of gradients past the tiles by enclosure. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind NaturalGradientCase

universe u u₂

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R] {number : Rat → R} {m n : Nat}

namespace SampledGradientCase

/-! ## What is kept -/

private theorem length_indices : ∀ {places : List Nat}, (∀ i ∈ places, i < m) →
    (indices m places).length = places.length
  | [], _ => rfl
  | i :: places, hp => by
    have ih := length_indices fun j hj => hp j (List.mem_cons_of_mem _ hj)
    simpa [indices, hp i (List.mem_cons_self ..)] using ih

private theorem pick_contains {α : Type} {β : Type u₂} [Inhabited α] {P : α → β → Prop}
    {as : List α} {x : Fin m → β} (h : Pointwise P as ((List.finRange m).map x)) :
    ∀ {places : List Nat}, (∀ i ∈ places, i < m) →
      Pointwise P (pick places as) ((indices m places).map x)
  | [], _ => trivial
  | i :: places, hp => by
    have ih := pick_contains h fun j hj => hp j (List.mem_cons_of_mem _ hj)
    have hi : i < m := hp i (List.mem_cons_self ..)
    have hi' : i < as.length := by simpa [h.length_eq] using hi
    have e : indices m (i :: places) = ⟨i, hi⟩ :: indices m places := by
      simp [indices, hi]
    rw [e]
    refine ⟨?_, ih⟩
    have hx := h.getElem hi' (by simpa using hi)
    simpa [hi'] using hx

private theorem rows_contains {B : RowBounds} {X : Matrix R m n} (h : BoundsContain B X) :
    Pointwise (Pointwise BoundContains) B ((List.finRange m).map fun i => X[i].toList) :=
  .of_getElem (by simpa using h.length_eq) fun i hi hi' => by
    have := h.getElem hi (by simpa using hi')
    simpa using this

/-- The bounds of the rows at some places of each matrix. -/
@[expose] def RowsContain (rows : List (Fin m)) (B : List RowBounds) (X : List (Matrix R m n)) :
    Prop :=
  Pointwise (Pointwise (Pointwise BoundContains)) B
    (X.map fun A => rows.map fun i => A[i].toList)

private theorem rowsContain {places : List Nat} (hp : ∀ i ∈ places, i < m) {B : List RowBounds}
    {X : List (Matrix R m n)} (h : Pointwise BoundsContain B X) :
    RowsContain (indices m places) (B.map (pick places)) X :=
  h.map fun _ _ hA => pick_contains (rows_contains hA) hp

private theorem pointwise_of_map {α : Type} {β : Type u} {γ : Type u₂} {P : α → γ → Prop}
    {f : β → γ} {as : List α} {bs : List β} (h : Pointwise P as (bs.map f)) :
    Pointwise (fun a b => P a (f b)) as bs :=
  .of_getElem (by simpa using h.length_eq) fun i hi hi' => by
    have h := h.getElem hi (by simpa using hi')
    rwa [List.getElem_map] at h

private theorem entries_contain {rows keys : List Nat} (hr : ∀ i ∈ rows, i < m)
    (hk : ∀ j ∈ keys, j < n) {B : RowBounds} {X : Matrix R m n}
    (h : Pointwise (Pointwise BoundContains) B (rowsOf X)) :
    Pointwise (Pointwise BoundContains) ((pick rows B).map (pick keys))
      ((indices m rows).map fun i => (indices n keys).map fun j => X[i][j]) := by
  have e : rowsOf X = (List.finRange m).map fun i => (List.finRange n).map fun j => X[i][j] :=
    List.ext_getElem (by simp [rowsOf]) fun i _ _ =>
      List.ext_getElem (by simp [rowsOf]) fun j _ _ => by simp [rowsOf]
  rw [e] at h
  have each := pick_contains (x := id) (by rw [List.map_id]; exact pointwise_of_map h) hr
  rw [List.map_id] at each
  refine .of_getElem (by simpa using each.length_eq) fun i hi hi' => ?_
  rw [List.getElem_map, List.getElem_map]
  exact pick_contains (each.getElem (by simpa using hi) (by simpa using hi')) hk

/-- The bounds that are written are right: each gradient by a wanted query or key lies between its
two, and by the bias those of both; so do those by slopes, sinks and temperatures. -/
@[expose] def Describes (c : SampledGradientCase) (r : EnclosedGradients)
    {q_len kv_len d d_v num_heads num_kv : Nat}
    (g : Found R q_len kv_len d d_v num_heads num_kv) : Prop :=
  let rows := indices q_len c.rows
  let keys := indices kv_len c.keys
  RowsContain rows r.dQ g.inputs.dQ.toList ∧ RowsContain keys r.dK g.inputs.dK.toList ∧
  RowsContain keys r.dV g.inputs.dV.toList ∧
  Pointwise (Pointwise (Pointwise BoundContains)) r.dBias
    (g.inputs.dBias.toList.map fun dB => rows.map fun i => keys.map fun j => dB[i][j]) ∧
  Pointwise BoundContains r.slopes (c.without.slopeGradients g.inputs.dBias) ∧
  Pointwise BoundContains r.sinks g.sinks ∧ Pointwise BoundContains r.temperatures g.temperatures

variable {c : SampledGradientCase}

omit [OrderedField R] in
private theorem biasGradient_eq [Add R] [OfNat R 0]
    (dS : Vector (Matrix R c.inputs.q_len c.inputs.kv_len)
      (c.inputs.num_kv_heads * c.inputs.group)) :
    c.inputs.biasGradient dS = dS.toList.map rowsOf := by
  cases hb : c.bias with
  | none => simp [NaturalGradientCase.biasGradient, inputs, hb]
  | some rule => simp [NaturalGradientCase.biasGradient, inputs, hb, Rule.matrices]

/-! ## The program -/

/-- The heads' numbers beside the formulas: dropout, temperatures, or the sinks that are listed, if
there are any. -/
@[expose] def HasVariant (c : SampledGradientCase) (number : Rat → R)
    (variant : Variant R c.inputs.q_len c.inputs.kv_len
      (c.inputs.num_kv_heads * c.inputs.group)) : Prop :=
  match c.dropout, c.temperatures with
  | none, none => c.inputs.HasSinks number variant
  | some (p, seed), none => c.inputs.sinks = none ∧ variant = .dropout fun head =>
      .dropout (number p) (keepMask (keepThreshold p.num.toNat p.den) seed head)
  | none, some ts => c.inputs.sinks = none ∧
      ∃ each : Vec R (c.inputs.num_kv_heads * c.inputs.group),
        each.toList = ts.map number ∧ variant = .temperatures each
  | some _, some _ => False

/-- The program's scale, softcap, slopes, sinks and probability have intervals that
contain it. -/
theorem given_contained (hnumber : IsNumber number) (h : c.check = .ok ()) :
    AllContain number (c.without.scale.toList ++ c.without.softcap.toList
      ++ (c.without.alibi.map (·.2)).getD [] ++ c.without.sinks.getD []
      ++ c.dropout.toList.map (·.1)) := by
  rw [check] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨_, hx, h⟩ := bind_ok h
  refine .append (allContain_of_checkExact hnumber hx) ?_
  split at h
  case isTrue hp => exact fun p hmem => contains_ofRat (den_eq_two_pow (hp p hmem)) (hnumber p)
  case isFalse => cases h

private theorem numbers_contained (hnumber : IsNumber number) (h : c.check = .ok ()) :
    AllContain number c.inputs.numbers := by
  have given := (given_contained hnumber h).left
  rw [check] at h
  obtain ⟨_, hrules, -⟩ := bind_ok h
  have known : ∀ r ∈ [c.q, c.k, c.v, c.dO, c.dLse] ++ c.bias.toList, r.check = .ok () := by
    intro r hr
    obtain ⟨i, hi, rfl⟩ := List.getElem_of_mem hr
    obtain ⟨hlen, each⟩ := mapM_ok hrules
    exact each i (hlen ▸ hi)
  refine .append (.append (.append (.append (.append (.append ?_ ?_) given.left.left.left)
    given.left.left.right) given.left.right) ?_) given.right
  · simp only [inputs, List.flatten_append]
    exact .append (.append (.append (allContain_matrices hnumber (known c.q (by simp)) _ _ _)
      (allContain_matrices hnumber (known c.k (by simp)) _ _ _))
      (allContain_matrices hnumber (known c.v (by simp)) _ _ _))
      (allContain_matrices hnumber (known c.dO (by simp)) _ _ _)
  · simp only [inputs, ← List.flatten_flatten]
    exact allContain_matrices hnumber (known c.dLse (by simp)) _ _ _
  · cases hb : c.bias with
    | none => simp only [inputs, hb]; exact nofun
    | some rule =>
      simp only [inputs, hb, Option.map_some, Option.getD_some, ← List.map_flatten,
        List.filterMap_map]
      have e : (id ∘ some : Rat → Option Rat) = some := rfl
      rw [e, List.filterMap_some]
      exact allContain_matrices hnumber (known rule (by simp [hb])) _ _ _

private theorem variant_ok (hnumber : IsNumber number) (h : c.check = .ok ())
    (htemps : ∀ ts, c.temperatures = some ts → AllContain number ts)
    {variant' : Variant (Interval working) c.inputs.q_len c.inputs.kv_len
      (c.inputs.num_kv_heads * c.inputs.group)} (hv : c.variant = .ok variant') :
    ∃ variant : Variant R c.inputs.q_len c.inputs.kv_len
        (c.inputs.num_kv_heads * c.inputs.group),
      c.HasVariant number variant ∧ variant'.Contains variant := by
  have hall := numbers_contained hnumber h
  have hp := (given_contained hnumber h).right
  rw [SampledGradientCase.variant] at hv
  obtain ⟨factors, hf, hv⟩ := bind_ok hv
  cases hd : c.dropout with
  | none =>
    rw [hd] at hf
    obtain rfl := Except.ok.inj hf
    cases ht : c.temperatures with
    | none =>
      rw [ht] at hv
      obtain ⟨variant, hs, hc⟩ := sinkVariant_ok hall.right hv
      exact ⟨variant, by simpa only [HasVariant, hd, ht] using hs, hc⟩
    | some ts =>
      rw [ht] at hv
      cases hs : c.inputs.sinks with
      | some sinks => rw [hs] at hv; cases hv
      | none =>
        rw [hs] at hv
        obtain ⟨each', he, hv⟩ := bind_ok hv
        obtain rfl := Except.ok.inj hv
        obtain ⟨each, hX, hc⟩ := perHead_ok (htemps ts ht) he
        exact ⟨.temperatures each, by simp only [HasVariant, hd, ht]; exact ⟨hs, each, hX, rfl⟩, hc⟩
  | some given =>
    obtain ⟨p, seed⟩ := given
    rw [hd, factorsOf] at hf
    obtain ⟨threshold, hthreshold, hf⟩ := bind_ok hf
    obtain ⟨-, hf⟩ := check_ok hf
    obtain rfl := Except.ok.inj hf
    rw [thresholdOf] at hthreshold
    split at hthreshold
    case isFalse => cases hthreshold
    case isTrue =>
    obtain rfl := Except.ok.inj hthreshold
    cases ht : c.temperatures with
    | some ts => rw [ht] at hv; cases hv
    | none =>
      rw [ht] at hv
      cases hs : c.inputs.sinks with
      | some sinks => rw [hs] at hv; cases hv
      | none =>
        rw [hs] at hv
        obtain rfl := Except.ok.inj hv
        exact ⟨.dropout fun head =>
            .dropout (number p) (keepMask (keepThreshold p.num.toNat p.den) seed head),
          by simp only [HasVariant, hd, ht]; exact ⟨hs, trivial⟩,
          fun head => contains_dropout (hp p (by simp [hd])) _⟩

variable [NaturalExp R]

/-- **sampled-gradient-vectors-sound**: if the program yields bounds for a case of the backward pass
of which gradients by some queries and keys are kept, then over every ordered field with a natural
exponential, and with square roots, these are queries and keys, and each gradient by them lies
between its bounds, and by the bias of both; so do those by slopes, sinks and temperatures. They are
those by the formulas of the matrices that the rules draw, with the sinks, the dropout or the
temperatures of the case. -/
theorem run_sound {root : R → R} (hroot : Interval.IsSqrt root) (hnumber : IsNumber number)
    {r : EnclosedGradients} (h : c.run = .ok r) :
    let f := c.inputs
    (indices f.q_len c.rows).length = c.rows.length ∧
    (indices f.kv_len c.keys).length = c.keys.length ∧
    ∃ (Q : Vector (Matrix R f.q_len f.head_dim) (f.num_kv_heads * f.group))
      (K : Vector (Matrix R f.kv_len f.head_dim) f.num_kv_heads)
      (V : Vector (Matrix R f.kv_len f.value_dim) f.num_kv_heads)
      (dO : Vector (Matrix R f.q_len f.value_dim) (f.num_kv_heads * f.group))
      (dLse : Matrix R (f.num_kv_heads * f.group) f.q_len)
      (variant : Variant R f.q_len f.kv_len (f.num_kv_heads * f.group)),
      Q.toList.map rowsOf = f.q.map (·.map (·.map number)) ∧
      K.toList.map rowsOf = f.k.map (·.map (·.map number)) ∧
      V.toList.map rowsOf = f.v.map (·.map (·.map number)) ∧
      dO.toList.map rowsOf = f.dO.map (·.map (·.map number)) ∧
      rowsOf dLse = f.dLse.map (·.map number) ∧ c.HasVariant number variant ∧
      c.Describes r (find (factorOf root number f.scale f.head_dim)
        (fun h => f.modify number (f.biasArray number h.val)
          (maskOfHead c.masks c.packed h.val) h.val)
        (f.slope number) variant Q K V dO dLse) := by
  intro f
  rw [run] at h
  obtain ⟨_, hcheck, h⟩ := bind_ok h
  obtain ⟨⟨hrows, hkeys⟩, h⟩ := check_ok h
  obtain ⟨_, h⟩ := check_ok h
  obtain ⟨_, h⟩ := check_ok h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨_, htemps, h⟩ := bind_ok h
  obtain ⟨variant', hv, h⟩ := bind_ok h
  obtain ⟨g, hg, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  have hall := numbers_contained hnumber hcheck
  obtain ⟨variant, hvariant, hc⟩ := variant_ok hnumber hcheck (fun ts ht => by
    rw [ht] at htemps
    change checkTemperatures _ ts c.q = _ at htemps
    rw [checkTemperatures] at htemps
    obtain ⟨_, h⟩ := check_ok htemps
    obtain ⟨_, h, -⟩ := bind_ok h
    exact (allContain_of_checkExact hnumber h).left) hv
  obtain ⟨Q, K, V, dO, dLse, hQ, hK, hV, hdO, hdLse, h₁, h₂, h₃, h₄, hrest⟩ := compute_ok hnumber
    hall hc (contains_factor hroot hall.left.left.left.left.right f.head_dim) hg
  refine ⟨length_indices hrows, length_indices hkeys, Q, K, V, dO, dLse, variant, hQ, hK, hV, hdO,
    hdLse, hvariant, rowsContain hrows h₁, rowsContain hkeys h₂, rowsContain hkeys h₃, ?_, hrest⟩
  rw [biasGradient_eq] at h₄
  exact (pointwise_of_map h₄).map fun _ _ hB => entries_contain hrows hkeys hB

end SampledGradientCase

end Attention.Vectors
