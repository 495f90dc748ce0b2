module

public import Attention.Proof.Enclosure.Mods
public import Attention.Proof.Enclosure.Sink
public import Attention.Vectors.BoundsSound

public section

/-! # What runs is what is proved: attention with the natural exponential

`NaturalCase.run` makes the vectors of attention by enclosure: bounds of the output, and beside them
of the log-sum-exp. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R] [NaturalExp R] {number : Rat → R} {q_len kv_len d d_v : Nat}

/-! ## Score transformations, rows -/

omit [NaturalExp R] in
private theorem same_enclosed :
    ModContains (p := working) (R := R) (q_len := q_len) (kv_len := kv_len)
      (fun _ _ s => some s) (fun _ _ s => some s) :=
  fun _ _ _ _ h => h

omit [NaturalExp R] in
/-- An entry of a list, 0 beyond its end. -/
theorem AllContain.getElem! (hnumber : IsNumber number) {xs : List Rat} (h : AllContain number xs)
    (i : Nat) : (ofRat xs[i]!).Contains (number xs[i]!) := by
  rw [List.getElem!_eq_getElem?_getD]
  cases hi : xs[i]? with
  | none => exact contains_ofRat (by decide) (hnumber 0)
  | some x => exact h x (List.mem_of_getElem? hi)

omit [NaturalExp R] in
/-- The entries of a bias that are given. -/
theorem bias_numbers {rows : List (List (Option Rat))}
    (h : AllContain number (rows.flatten.filterMap id)) (i j : Nat) :
    ScoreContains (((rows[i]!)[j]!).map ofRat) (((rows[i]!)[j]!).map number) := by
  simp only [List.getElem!_eq_getElem?_getD]
  cases hr : rows[i]? with
  | none =>
    rw [Option.getD_none, show (default : List (Option Rat))[j]? = none from rfl]
    trivial
  | some row =>
    rw [Option.getD_some]
    cases hb : row[j]? with
    | none => trivial
    | some b =>
      cases b with
      | none => trivial
      | some b =>
        exact h b (List.mem_filterMap.mpr ⟨some b, List.mem_flatten.mpr
          ⟨row, List.mem_of_getElem? hr, List.mem_of_getElem? hb⟩, rfl⟩)

/-- The program's score over intervals contains that over numbers. -/
theorem modified_enclosed {softcap : Option Rat} {alibi : Option (Alignment × Rat)}
    {bias : Option (List (List (Option Rat)))} (mask : MaskKind)
    (hcap : AllContain number softcap.toList) (hslope : AllContain number (alibi.toList.map (·.2)))
    (hbias : AllContain number ((bias.getD []).flatten.filterMap id)) :
    ModContains (modified (q_len := q_len) (kv_len := kv_len) ofRat softcap alibi bias mask)
      (modified number softcap alibi bias mask) := by
  refine related_andThen ?_ (related_andThen ?_ (related_andThen ?_ (related_mask _)))
  · cases softcap with
    | none => exact same_enclosed
    | some cap => exact softcap_enclosed hcap.head
  · cases alibi with
    | none => exact same_enclosed
    | some given => exact alibi_enclosed given.1 hslope.head
  · cases bias with
    | none => exact same_enclosed
    | some rows =>
      refine bias_enclosed fun i j => ?_
      simp only [Fin.getElem_fin, Vec.getElem_ofFn]
      exact bias_numbers hbias i.val j.val

section
variable {scale' : Interval working} {scale : R}
variable {modify' : ScoreMod (Interval working) q_len kv_len} {modify : ScoreMod R q_len kv_len}
variable {Q' : Matrix (Interval working) q_len d} {Q : Matrix R q_len d}
variable {K' : Matrix (Interval working) kv_len d} {K : Matrix R kv_len d}
variable {V' : Matrix (Interval working) kv_len d_v} {V : Matrix R kv_len d_v}

omit [NaturalExp R] in
/-- The keys as a query sees them. -/
theorem scored_keysContain (hscale : scale'.Contains scale) (hmodify : ModContains modify' modify)
    (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K) (hV : MatrixContains V' V) (i : Fin q_len)
    (keys : List (Fin kv_len)) :
    KeysContain (scored scale' modify' Q' K' V' i keys) (scored scale modify Q K V i keys) := by
  induction keys with
  | nil => trivial
  | cons k keys ih =>
    exact ⟨⟨hmodify _ _ _ _ (Interval.contains_mul hscale
      (related_dot (hQ i.val i.isLt) (hK k.val k.isLt))), hV k.val k.isLt⟩, ih⟩

omit [NaturalExp R] in
/-- A sink before them. -/
theorem withSink_keysContain {sink' : Interval working} {sink : R} (h : sink'.Contains sink)
    {row' : List (ScoredValue (Interval working) (Interval working) d)}
    {row : List (ScoredValue R R d)} (hrow : KeysContain row' row) :
    KeysContain (withSink sink' row') (withSink sink row) :=
  ⟨⟨h, related_zero⟩, hrow⟩

end

/-! ## The program -/

namespace NaturalCase

variable {root : R → R} (hroot : Interval.IsSqrt root) (hnumber : IsNumber number)
include hroot hnumber

/-- **natural-vectors-sound**: if the program yields bounds for a case of attention with the natural
exponential, then over every ordered field with one, and with square roots, there are as many rows
of bounds as queries; the output for each query (attention, or attention with the sink if there is
one) lies between them, and so does the log-sum-exp of its scores, which is −∞ if and only if they
say so. -/
theorem run_sound {c : NaturalCase} {results : List EnclosedRow} (h : c.run = .ok results) :
    ∃ (Q : Matrix R c.q.length c.head_dim) (K : Matrix R c.k.length c.head_dim)
      (V : Matrix R c.k.length c.value_dim),
      rowsOf Q = c.q.map (·.map number) ∧ rowsOf K = c.k.map (·.map number) ∧
      rowsOf V = c.v.map (·.map number) ∧ results.length = c.q.length ∧
      ∀ (i : Fin c.q.length) (r : EnclosedRow), results[i.val]? = some r →
        r.Describes
          ((c.row number (factorOf root number c.scale c.head_dim) Q K V i).map (·.score))
          (c.output number (factorOf root number c.scale c.head_dim) Q K V)[i] := by
  rw [run] at h
  obtain ⟨_, hx, h⟩ := bind_ok h
  obtain ⟨Q', hQ, h⟩ := bind_ok h
  obtain ⟨K', hK, h⟩ := bind_ok h
  obtain ⟨V', hV, h⟩ := bind_ok h
  have hall : AllContain number c.numbers := allContain_of_checkExact hnumber hx
  obtain ⟨Q, hQ, hQ'⟩ := toMatrix_contains hQ hall.left.left.left.left.left.left.left
  obtain ⟨K, hK, hK'⟩ := toMatrix_contains hK hall.left.left.left.left.left.left.right
  obtain ⟨V, hV, hV'⟩ := toMatrix_contains hV hall.left.left.left.left.left.right
  have hscale := contains_factor hroot hall.left.left.left.left.right c.head_dim
  have hmodify : ModContains (c.modify ofRat c.q.length c.k.length)
      (c.modify number c.q.length c.k.length) :=
    modified_enclosed c.mask hall.left.left.left.right hall.left.left.right hall.left.right
  have hrow : ∀ i, KeysContain (c.row ofRat (scaleOf c.scale c.head_dim) Q' K' V' i)
      (c.row number (factorOf root number c.scale c.head_dim) Q K V i) := fun i => by
    have keys := scored_keysContain hscale hmodify hQ' hK' hV' i (List.finRange _)
    simp only [row]
    have hs := hall.right
    cases hsink : c.sink with
    | none => exact keys
    | some sink =>
      rw [hsink] at hs
      exact withSink_keysContain hs.head keys
  have hout : MatrixContains (c.output ofRat (scaleOf c.scale c.head_dim) Q' K' V')
      (c.output number (factorOf root number c.scale c.head_dim) Q K V) := by
    simp only [output]
    have hs := hall.right
    cases hsink : c.sink with
    | none => exact enclosure_sound hscale hmodify hQ' hK' hV'
    | some sink =>
      rw [hsink] at hs
      exact sink_enclosed hscale hmodify hs.head hQ' hK' hV'
  obtain ⟨hlen, each⟩ := mapM_ok h
  refine ⟨Q, K, V, hQ, hK, hV, by simpa using hlen, fun i r hr => ?_⟩
  obtain ⟨hi, rfl⟩ := List.getElem?_eq_some_iff.mp hr
  have hi' := each i.val hi
  simp only [List.getElem_finRange, Fin.cast_mk, Fin.eta] at hi'
  exact enclosedRow_ok hi' (hrow i) (hout i.val i.isLt)

end NaturalCase

end Attention.Vectors
