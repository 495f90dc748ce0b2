module

public import Attention.Proof.Enclosure.BackwardFactors
public import Attention.Vectors.NaturalSound
public import Attention.Vectors.SampledSound

public section

/-! # What runs is what is proved: some rows, with the natural exponential

`NaturalSampledCase.run` makes the vectors of real sizes by enclosure, for some queries of each
head. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R] {number : Rat → R}

namespace NaturalSampledCase

/-- The matrices of a rule that readers know. -/
private theorem part_contains (hnumber : IsNumber number) {r : Rule} (h : r.check = .ok ())
    (xs : Array Int) (n rows columns : Nat) :
    MatrixContains (SampledCase.part xs (quotient ofRat r.over) n rows columns)
      (SampledCase.part xs (quotient number r.over) n rows columns) :=
  related_ofFn fun _ => related_ofFn fun _ => contains_ofRule hnumber h _

variable [NaturalExp R] {c : SampledCase}

private theorem changes_enclosed (hnumber : IsNumber number)
    (htemps : AllContain number (c.temperatures.getD []))
    (hcap : AllContain number c.softcap.toList)
    (hslopes : AllContain number ((c.alibi.map (·.2)).getD []))
    (hbias : ∀ rule, c.bias = some rule → rule.check = .ok ()) (added : Array Int) (head : Nat) :
    ModContains (changes ofRat c added head) (changes number c added head) := by
  have heated : ModContains (p := working) (q_len := c.q_len) (kv_len := c.kv_len)
      (c.temperatures.elim (fun _ _ s => some s) fun ts => .temperature (ofRat ts[head]!))
      (c.temperatures.elim (fun _ _ s => some s) fun ts => .temperature (number ts[head]!)) := by
    cases ht : c.temperatures with
    | none => exact fun _ _ _ _ h => h
    | some ts =>
      rw [ht] at htemps
      exact temperature_enclosed (htemps.getElem! hnumber head)
  have changed := related_andThen heated (modified_enclosed
    (alibi := c.alibi.map fun (alignment, slopes) => (alignment, slopes[head]!)) .none hcap
    (by
      cases ha : c.alibi with
      | none => exact nofun
      | some given =>
        rw [ha] at hslopes
        intro q hq
        obtain rfl : q = given.2[head]! := by simpa using hq
        exact hslopes.getElem! hnumber head)
    (bias := none) nofun)
  simp only [changes]
  cases hb : c.bias with
  | none => exact changed
  | some rule =>
    exact related_andThen changed fun i j I x hx =>
      Interval.contains_add hx (contains_ofRule hnumber (hbias rule hb) _)

/-- What becomes of the scores of a query head, by its number among those of all sequences. -/
@[expose] def whole (number : Rat → R) (c : SampledCase) (head : Nat) :
    ScoreMod R c.q_len c.kv_len :=
  (changes number c (added c) (head % c.heads)).andThen (c.maskOf head).toScoreMod

/-- The keys of a query head as a query sees them, with the sink if there is one. -/
@[expose] def row (number : Rat → R) (c : SampledCase) (scale : R) (head : Nat)
    (i : Fin c.q_len) : List (ScoredValue R R c.value_dim) :=
  sinkRow number c head (scored scale (whole number c head) (c.queries (quotient number) head)
    (c.keys (quotient number) head) (c.values (quotient number) head) i (List.finRange c.kv_len))

/-- The output of a query head: attention, or attention with the sink if there is one. -/
@[expose] def output (number : Rat → R) (c : SampledCase) (scale : R) (head : Nat) :
    Matrix R c.q_len c.value_dim :=
  let Q := c.queries (quotient number) head
  let K := c.keys (quotient number) head
  let V := c.values (quotient number) head
  match c.sinks with
  | none => attention scale (whole number c head) Q K V
  | some sinks =>
    attentionSink scale (whole number c head) (number sinks[head % c.heads]!) Q K V

private theorem attend_row (scale : R) (head : Nat) (i : Fin c.q_len) :
    attend (row number c scale head i) = (output number c scale head)[i] := by
  cases hs : c.sinks <;> simp [row, output, sinkRow, hs, attention, attentionSink]

private theorem mapM_zipIdx_ok {α β : Type} {f : α × Nat → Except String β} {xs : List α}
    {ys : List β} (h : xs.zipIdx.mapM f = .ok ys) :
    ∃ hlen : ys.length = xs.length,
      ∀ i (hi : i < ys.length), f (xs[i]'(hlen ▸ hi), i) = .ok ys[i] := by
  obtain ⟨hlen, each⟩ := mapM_ok h
  refine ⟨by simpa using hlen, fun i hi => ?_⟩
  have h := each i hi
  rwa [List.getElem_zipIdx, Nat.zero_add] at h

/-- **natural-sampled-vectors-sound**: if the program yields bounds for a case of which some rows
are computed with the natural exponential, then over every ordered field with one, and with square
roots, each head has its slope and its sink if there are any, the rows that are wanted are queries,
there are bounds for each of them in each query head of each sequence, that row of the output of the
whole head (attention, or attention with the sink of the head if there is one) lies between them,
and so does the log-sum-exp of its scores. -/
theorem run_sound {root : R → R} (hroot : Interval.IsSqrt root) (hnumber : IsNumber number)
    {given : NaturalSampledCase} {results : List (List EnclosedRow)}
    (h : given.run = .ok results) :
    let c := given.inputs
    let scale := factorOf root number c.scale c.head_dim
    (∀ given ∈ c.alibi, given.2.length = c.heads) ∧ (∀ sinks ∈ c.sinks, sinks.length = c.heads) ∧
    (indices c.q_len c.rows).length = c.rows.length ∧ results.length = c.batch * c.heads ∧
    (∀ head ∈ results, head.length = c.rows.length) ∧
    ∀ (head : Nat) (i : Fin (indices c.q_len c.rows).length) (r : EnclosedRow),
      results[head]?.bind (·[i.val]?) = some r →
      let query := (indices c.q_len c.rows)[i]
      r.Describes ((row number c scale head query).map (·.score))
        (output number c scale head)[query] := by
  intro c scale
  rw [run] at h
  obtain ⟨_, h⟩ := check_ok h
  obtain ⟨⟨hslopes, hsinks⟩, h⟩ := check_ok h
  obtain ⟨_, hx, h⟩ := bind_ok h
  obtain ⟨_, hbias, h⟩ := bind_ok h
  obtain ⟨heads, hseen, h⟩ := bind_ok h
  obtain ⟨hq, hk, hv, htemps, hrows, rfl⟩ := SampledCase.seen_ok hseen
  have hall := allContain_of_checkExact hnumber hx
  have hscale := contains_factor hroot hall.left.left.left c.head_dim
  have hchanges : ∀ head, ModContains (changes ofRat c (added c) head)
      (changes number c (added c) head) := fun head => by
    refine changes_enclosed hnumber ?_ hall.left.left.right hall.left.right ?_ _ _
    · cases ht : c.temperatures with
      | none => exact nofun
      | some ts =>
        have h := htemps ts ht
        rw [checkTemperatures] at h
        obtain ⟨_, h⟩ := check_ok h
        obtain ⟨_, h, -⟩ := bind_ok h
        exact (allContain_of_checkExact hnumber h).left
    · intro rule hr
      change (c.bias.map Rule.check).getD (.ok ()) = _ at hbias
      rw [hr] at hbias
      exact hbias
  have hrow : ∀ head i, KeysContain
      (sinkRow ofRat c head (scored (scaleOf c.scale c.head_dim)
        ((changes ofRat c (added c) (head % c.heads)).andThen (c.maskOf head).toScoreMod)
        (c.queries (quotient ofRat) head)
        (c.keys (quotient ofRat) head)
        (c.values (quotient ofRat) head) i (List.finRange c.kv_len)))
      (row number c scale head i) := fun head i => by
    have hQ : MatrixContains (c.queries (quotient ofRat) head)
        (c.queries (quotient number) head) := part_contains hnumber hq _ _ _ _
    have hK : MatrixContains (c.keys (quotient ofRat) head)
        (c.keys (quotient number) head) := part_contains hnumber hk _ _ _ _
    have hV : MatrixContains (c.values (quotient ofRat) head)
        (c.values (quotient number) head) := part_contains hnumber hv _ _ _ _
    have keys := scored_keysContain hscale
      (related_andThen (hchanges (head % c.heads)) (related_mask (c.maskOf head))) hQ hK hV i
      (List.finRange c.kv_len)
    have hs := hall.right
    simp only [row, sinkRow]
    cases hsink : c.sinks with
    | none => exact keys
    | some sinks =>
      rw [hsink] at hs
      exact withSink_keysContain (hs.getElem! hnumber _) keys
  obtain ⟨hlen, each⟩ := mapM_zipIdx_ok h
  have length : results.length = c.batch * c.heads := by simpa using hlen
  have rows : ∀ head (hn : head < results.length),
      ((List.finRange (indices c.q_len c.rows).length).map fun i =>
        scored (scaleOf c.scale c.head_dim)
          ((changes ofRat c (added c) (head % c.heads)).andThen (c.maskOf head).toScoreMod)
          (c.queries (quotient ofRat) head)
          (c.keys (quotient ofRat) head)
          (c.values (quotient ofRat) head)
          (indices c.q_len c.rows)[i] (List.finRange c.kv_len)).mapM
        (fun row => enclosedRow ((sinkRow ofRat c head row).map (·.score))
          (attend (sinkRow ofRat c head row))) = .ok results[head] := fun head hn => by
    have h := each head hn
    rw [List.getElem_map, List.getElem_range] at h
    exact h
  refine ⟨fun slopes hs => ?_, fun sinks hs => ?_, hrows, length, fun head hh => ?_,
    fun head i r hr => ?_⟩
  · rw [show given.inputs.alibi = some slopes from hs] at hslopes
    exact of_decide_eq_true hslopes
  · rw [show given.inputs.sinks = some sinks from hs] at hsinks
    exact of_decide_eq_true hsinks
  · obtain ⟨n, hn, rfl⟩ := List.getElem_of_mem hh
    obtain ⟨hlen, -⟩ := mapM_ok (rows n hn)
    exact (by simpa using hlen : results[n].length = _).trans hrows
  · cases hres : results[head]? with
    | none => rw [hres] at hr; cases hr
    | some found =>
      rw [hres] at hr
      obtain ⟨hn, rfl⟩ := List.getElem?_eq_some_iff.mp hres
      obtain ⟨_, each'⟩ := mapM_ok (rows head hn)
      obtain ⟨hi, rfl⟩ := List.getElem?_eq_some_iff.mp hr
      have hi' := each' i.val hi
      rw [List.getElem_map, List.getElem_finRange] at hi'
      have hkeys := hrow head (indices c.q_len c.rows)[i]
      have ho := hkeys.attend
      rw [attend_row] at ho
      exact enclosedRow_ok hi' hkeys ho

end NaturalSampledCase

end Attention.Vectors
