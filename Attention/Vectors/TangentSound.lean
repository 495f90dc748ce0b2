module

public import Attention.Proof.Enclosure.Tangent
public import Attention.Vectors.NaturalSound
public import Attention.Vectors.Tangent

public section

/-! # What runs is what is proved: the derivative forwards

`TangentCase.run` makes the vectors of rates by enclosure. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R] {number : Rat → R} {q_len kv_len : Nat}

/-- A row of a list of rows, empty beyond its end. -/
private theorem row_contains {rows : List (List Rat)} (h : AllContain number rows.flatten)
    (i : Nat) : AllContain number rows[i]! := by
  rw [List.getElem!_eq_getElem?_getD]
  cases hi : rows[i]? with
  | none => exact nofun
  | some row =>
    exact fun q hq => h q (List.mem_flatten.mpr ⟨row, List.mem_of_getElem? hi, hq⟩)

/-- The bounds of the rates of a row are right: those of the output, entry by entry, and those of
the log-sum-exp of scores that change, which are none if and only if every score is masked. -/
@[expose] def EnclosedRow.DescribesRates [NaturalExp R] {d : Nat} (r : EnclosedRow)
    (scores : List (Option (Dual R))) (output : Vec R d) : Prop :=
  Pointwise BoundContains r.output output.toList ∧
    (r.logSumExp = none ↔ ∀ s ∈ scores, s = none) ∧
    ∀ b, r.logSumExp = some b → ∀ L : Dual R, IsLogSumExp (Dual R) (some L) scores →
      BoundContains b L.der

namespace TangentCase

variable [NaturalExp R] {c : TangentCase}

omit [NaturalExp R] in
private theorem same_dualContains :
    DualModContains (p := working) (R := R) (q_len := q_len) (kv_len := kv_len)
      (fun _ _ s => some s) (fun _ _ s => some s) :=
  fun _ _ _ _ h => h

private theorem modify_enclosed (hnumber : IsNumber number) (h : AllContain number c.numbers) :
    DualModContains (c.modify ofRat q_len kv_len) (c.modify number q_len kv_len) := by
  have given : AllContain number c.inputs.numbers := h.left.left.left.left.left
  have hcap := given.left.left.left.right
  have hslope := given.left.left.right
  have hbias := given.left.right
  refine related_andThen ?_ (related_andThen ?_ (related_andThen ?_
    (related_mask _)))
  · cases hc : c.inputs.softcap with
    | none => exact same_dualContains
    | some cap =>
      rw [hc] at hcap
      exact related_softcap (dualContains_const hcap.head)
  · cases hc : c.inputs.alibi with
    | none => exact same_dualContains
    | some slope =>
      rw [hc] at hslope
      exact alibi_dualContains slope.1 ⟨hslope.head, h.right.head⟩
  · cases hc : c.inputs.bias with
    | none => exact same_dualContains
    | some rows =>
      rw [hc] at hbias
      refine related_bias fun i j => ?_
      simp only [Fin.getElem_fin, Vec.getElem_ofFn]
      have hb : ScoreContains (((rows[i.val]!)[j.val]!).map ofRat)
          (((rows[i.val]!)[j.val]!).map number) := bias_numbers hbias i.val j.val
      have hd := (row_contains h.left.right i.val).getElem! hnumber j.val
      revert hb
      cases (rows[i.val]!)[j.val]! with
      | none => exact fun _ => trivial
      | some b => exact fun hb => ⟨hb, hd⟩

/-- The bounds that the program writes of the rate of a log-sum-exp. -/
private theorem lseRate_ok {scores' : List (Option (Dual (Interval working)))}
    {scores : List (Option (Dual R))} (hs : Pointwise DualScoreContains scores' scores)
    {lse : Option (Int × Int)} (h : lseRate scores' = .ok lse) :
    (lse = none ↔ ∀ s ∈ scores, s = none) ∧
      ∀ b, lse = some b → ∀ L : Dual R, IsLogSumExp (Dual R) (some L) scores →
        BoundContains b L.der := by
  obtain ⟨n, f, g, rfl, rfl, hp⟩ := pointwise_places hs
  have masked : ((List.finRange n).map f).all (·.isNone) = true ↔
      ∀ s ∈ (List.finRange n).map g, s = none := by
    rw [List.all_map, List.all_eq_true, List.forall_mem_map]
    exact forall₂_congr fun k _ => (hp k).isNone_iff
  rw [lseRate] at h
  split at h
  case isTrue hm =>
    obtain rfl := Except.ok.inj h
    exact ⟨⟨fun _ => masked.mp hm, fun _ => rfl⟩, nofun⟩
  case isFalse hm =>
    cases hb : toBounds (lseTangent ((List.finRange n).map f)) with
    | error e => rw [hb] at h; cases h
    | ok b =>
      rw [hb] at h
      obtain rfl := Except.ok.inj h
      refine ⟨⟨nofun, fun hn => absurd (masked.mpr hn) hm⟩, fun b' hb' L hL => ?_⟩
      obtain rfl := Option.some.inj hb'
      exact contains_toBounds hb (lseTangent_enclosed (fun k _ => hp k) hL)

/-- **tangent-vectors-sound**: if the program yields bounds for a case of the derivative forwards,
then over every ordered field with a natural exponential and square roots there are as many rows of
bounds as queries; the rates of the output (of attention, or of attention with the sink) lie between
them, and so does the rate of the log-sum-exp of the scores, of which there are no bounds if and
only if every score is masked. -/
theorem run_sound {root : R → R} (hroot : Interval.IsSqrt root) (hnumber : IsNumber number)
    {results : List EnclosedRow} (h : c.run = .ok results) :
    let i := c.inputs
    let scale := factorOf root number i.scale i.head_dim
    ∃ (Q dQ : Matrix R i.q.length i.head_dim) (K dK : Matrix R i.k.length i.head_dim)
      (V dV : Matrix R i.k.length i.value_dim),
      rowsOf Q = i.q.map (·.map number) ∧ rowsOf dQ = c.dq.map (·.map number) ∧
      rowsOf K = i.k.map (·.map number) ∧ rowsOf dK = c.dk.map (·.map number) ∧
      rowsOf V = i.v.map (·.map number) ∧ rowsOf dV = c.dv.map (·.map number) ∧
      results.length = i.q.length ∧
      ∀ (n : Fin i.q.length) (r : EnclosedRow), results[n.val]? = some r →
        r.DescribesRates (c.scores number scale Q dQ K dK n)
          (c.output number scale Q dQ K dK V dV)[n] := by
  intro i scale
  rw [run] at h
  obtain ⟨_, hx, h⟩ := bind_ok h
  obtain ⟨Q', hQ, h⟩ := bind_ok h
  obtain ⟨dQ', hdQ, h⟩ := bind_ok h
  obtain ⟨K', hK, h⟩ := bind_ok h
  obtain ⟨dK', hdK, h⟩ := bind_ok h
  obtain ⟨V', hV, h⟩ := bind_ok h
  obtain ⟨dV', hdV, h⟩ := bind_ok h
  have hall : AllContain number c.numbers := allContain_of_checkExact hnumber hx
  have given : AllContain number c.inputs.numbers := hall.left.left.left.left.left
  obtain ⟨Q, hQ, hQ'⟩ := toMatrix_contains hQ given.left.left.left.left.left.left.left
  obtain ⟨dQ, hdQ, hdQ'⟩ := toMatrix_contains hdQ hall.left.left.left.left.right
  obtain ⟨K, hK, hK'⟩ := toMatrix_contains hK given.left.left.left.left.left.left.right
  obtain ⟨dK, hdK, hdK'⟩ := toMatrix_contains hdK hall.left.left.left.right
  obtain ⟨V, hV, hV'⟩ := toMatrix_contains hV given.left.left.left.left.left.right
  obtain ⟨dV, hdV, hdV'⟩ := toMatrix_contains hdV hall.left.left.right
  have hscale := contains_factor hroot given.left.left.left.left.right c.inputs.head_dim
  have hmodify := modify_enclosed (q_len := i.q.length) (kv_len := i.k.length) hnumber hall
  have hsink := given.right
  have hscores : ∀ n, Pointwise DualScoreContains
      (c.scores ofRat (scaleOf i.scale i.head_dim) Q' dQ' K' dK' n)
      (c.scores number scale Q dQ K dK n) := fun n => by
    refine Pointwise.append ?_ (.of_getElem (by simp) fun k hk _ => ?_)
    · cases hs : c.inputs.sink with
      | none => trivial
      | some sink =>
        rw [hs] at hsink
        exact ⟨⟨hsink.head, hall.right.tail.head⟩, trivial⟩
    · simp only [List.getElem_map]
      exact dualContains_score hscale hmodify hQ' hdQ' hK' hdK' n _
  have hout : MatrixContains
      (c.output ofRat (scaleOf i.scale i.head_dim) Q' dQ' K' dK' V' dV')
      (c.output number scale Q dQ K dK V dV) := by
    simp only [output]
    cases hs : c.inputs.sink with
    | none => exact jvp_enclosed hscale hmodify hQ' hdQ' hK' hdK' hV' hdV'
    | some sink =>
      rw [hs] at hsink
      exact jvpSink_enclosed hscale hmodify hsink.head hall.right.tail.head hQ' hdQ' hK' hdK' hV'
        hdV'
  obtain ⟨hlen, each⟩ := mapM_ok h
  refine ⟨Q, dQ, K, dK, V, dV, hQ, hdQ, hK, hdK, hV, hdV, by simpa using hlen, fun n r hr => ?_⟩
  obtain ⟨hn, rfl⟩ := List.getElem?_eq_some_iff.mp hr
  have hn' := each n.val hn
  simp only [List.getElem_finRange, Fin.cast_mk, Fin.eta] at hn'
  obtain ⟨lse, hl, hn'⟩ := bind_ok hn'
  obtain ⟨bs, hb, hn'⟩ := bind_ok hn'
  rw [← Except.ok.inj hn']
  exact ⟨pointwise_toBounds hb (hout n.val n.isLt).toList, lseRate_ok (hscores n) hl⟩

end TangentCase

end Attention.Vectors
