module

public import Attention.Vectors.CascadeSound
public import Attention.Vectors.PagedSound

public section

/-! # Programs of packed sequences, pages and prefixes, with what their theorems do not let through
-/

namespace Attention.WrongVariants

open Spec Vectors

/-- The statement of `varlen-vectors-sound` about the outputs, for any program. -/
abbrev SoundVarlen (run : VarlenCase → Except String (List RowResult)) : Prop :=
  ∀ (c : VarlenCase) (results : List RowResult), run c = .ok results →
    ∃ seqs : List (Sequence Int Rat c.head_dim c.value_dim),
      seqs.map (·.queries.length) = c.q_lens ∧ seqs.map (·.keyValues.length) = c.kv_lens ∧
      results.map (·.output) = (seqs.zipIdx.flatMap fun (s, b) =>
        attentionRows c.scale (c.mods b) s.queries s.keyValues).map (·.toList)

/-- Positive control. -/
theorem run_soundVarlen : SoundVarlen VarlenCase.run := fun _ _ h =>
  let ⟨seqs, hq, hk, _, _, _, ho, _⟩ := VarlenCase.run_sound h
  ⟨seqs, hq, hk, ho⟩

/-- The program that lets each query attend to the keys of all sequences. -/
@[expose] def runAsOne (c : VarlenCase) : Except String (List RowResult) :=
  VarlenCase.run { c with q_lens := [c.q_lens.sum], kv_lens := [c.kv_lens.sum] }

/-- A sequence of one query and no key, then one of one query and one key. -/
@[expose] def emptyThenOne : VarlenCase :=
  { reason := "", head_dim := 1, value_dim := 1, q_lens := [1, 1], kv_lens := [0, 1]
    q := [[0], [0]], k := [[0]], v := [[1]], sliced := false }

theorem runAsOne_refuted : ¬ SoundVarlen runAsOne := fun h => by
  have hf : (runAsOne emptyThenOne).toOption.map (·.map (·.output)) = some [[1], [1]] := by
    decide +kernel
  cases hr : runAsOne emptyThenOne with
  | error e => rw [hr] at hf; cases hf
  | ok results =>
    rw [hr] at hf
    simp only [Except.toOption, Option.map_some, Option.some.injEq] at hf
    obtain ⟨seqs, hq, hk, ho⟩ := h _ _ hr
    match seqs, hq, hk, ho with
    | [], hq, _, _ => cases hq
    | s :: seqs, hq, hk, ho =>
      have hq : s.queries.length = 1 := (List.cons.inj hq).1
      have hk : s.keyValues = [] := List.eq_nil_of_length_eq_zero (List.cons.inj hk).1
      obtain ⟨q, hq⟩ := List.length_eq_one_iff.mp hq
      rw [hf] at ho
      have first := congrArg (·[0]?) ho
      simp [hq, hk, attentionRows, attendRows, scoredRows, attend, Vec.sumOver] at first
      exact absurd first (by decide +kernel)

/-- The statement of `paged-vectors-sound` about the outputs, for any program. -/
abbrev SoundPaged (run : PagedCase → Except String (List RowResult)) : Prop :=
  ∀ (c : PagedCase) (results : List RowResult), run c = .ok results →
    ∀ (i : Nat) (s : PagedSequence) (r : RowResult), c.sequences[i]? = some s →
      results[i]? = some r →
      ∃ (q : Vec Int c.head_dim) (kvs : List (KeyValue Int Rat c.head_dim c.value_dim)),
        kvs.map (·.1.toList) = (s.table.flatMap fun p => c.k.getD p []).take s.length ∧
        kvs.map (·.2.toList) = (s.table.flatMap fun p => c.v.getD p []).take s.length ∧
        r.output = (attendRows c.scale (fun _ s => some s) q kvs).toList

/-- Positive control. -/
theorem run_soundPaged : SoundPaged PagedCase.run := fun _ _ h i s r hs hr =>
  let ⟨q, kvs, _, _, hk, hv, ho, _⟩ := (PagedCase.run_sound h).2 i s r hs hr
  ⟨q, kvs, hk, hv, ho⟩

/-- The program that reads the last page to its end. -/
@[expose] def runWholePages (c : PagedCase) : Except String (List RowResult) :=
  PagedCase.run { c with sequences := c.sequences.map fun s =>
    { s with length := s.table.length * c.page_size } }

/-- A page of two slots, none of which is in use. -/
@[expose] def unusedPage : PagedCase :=
  { reason := "", head_dim := 1, value_dim := 1, page_size := 2, num_pages := 1
    k := [[[0], [0]]], v := [[[1], [1]]], sequences := [⟨[0], [0], 0⟩] }

theorem runWholePages_refuted : ¬ SoundPaged runWholePages := fun h => by
  have hf : (runWholePages unusedPage).toOption.map (·.map (·.output)) = some [[1]] := by
    decide +kernel
  cases hr : runWholePages unusedPage with
  | error e => rw [hr] at hf; cases hf
  | ok results =>
    rw [hr] at hf
    simp only [Except.toOption, Option.map_some, Option.some.injEq,
      List.map_eq_singleton_iff] at hf
    obtain ⟨r, rfl, ho⟩ := hf
    obtain ⟨q, kvs, hk, -, ho'⟩ := h _ _ hr 0 _ r rfl rfl
    obtain rfl : kvs = [] := by simpa using hk
    rw [ho'] at ho
    have first := congrArg (·[0]?) ho
    simp [attendRows, scoredRows, attend, Vec.sumOver] at first
    exact absurd first (by decide +kernel)

/-- The statement of `cascade-vectors-sound` about the outputs, for any program. -/
abbrev SoundCascade (run : CascadeCase → Except String (List RowResult)) : Prop :=
  ∀ (c : CascadeCase) (results : List RowResult), run c = .ok results →
    ∀ (i : Nat) (r : RowResult), results[i]? = some r →
      ∃ (q : Vec Int c.head_dim) (kvs : List (KeyValue Int Rat c.head_dim c.value_dim))
        (suffix : List (List Int) × List (List Rat)), c.suffixes[i]? = some suffix ∧
        kvs.map (·.1.toList) = c.prefix_k ++ suffix.1 ∧
        kvs.map (·.2.toList) = c.prefix_v ++ suffix.2 ∧
        r.output = (attendRows c.scale (fun _ s => some s) q kvs).toList

/-- Positive control. -/
theorem run_soundCascade : SoundCascade CascadeCase.run := fun _ _ h i r hr =>
  let ⟨q, kvs, suffix, _, hs, hk, hv, ho, _⟩ := (CascadeCase.run_sound h).2 i r hr
  ⟨q, kvs, suffix, hs, hk, hv, ho⟩

/-- The program that reads no suffix of its own, but the prefix twice. -/
@[expose] def runPrefixTwice (c : CascadeCase) : Except String (List RowResult) :=
  CascadeCase.run { c with suffixes := c.suffixes.map fun _ => (c.prefix_k, c.prefix_v) }

/-- One query, with a key of value 1 in the prefix and one of value 3 in its suffix. -/
@[expose] def oneAndThree : CascadeCase :=
  { reason := "", head_dim := 0, value_dim := 1, block_n := 1, q := [[]], prefix_k := [[]]
    prefix_v := [[1]], suffixes := [([[]], [[3]])] }

theorem runPrefixTwice_refuted : ¬ SoundCascade runPrefixTwice := fun h => by
  have hf : (runPrefixTwice oneAndThree).toOption.map (·.map (·.output)) = some [[1]] := by
    decide +kernel
  cases hr : runPrefixTwice oneAndThree with
  | error e => rw [hr] at hf; cases hf
  | ok results =>
    rw [hr] at hf
    simp only [Except.toOption, Option.map_some, Option.some.injEq,
      List.map_eq_singleton_iff] at hf
    obtain ⟨r, rfl, ho⟩ := hf
    obtain ⟨q, kvs, suffix, hs, -, hv, ho'⟩ := h _ _ hr 0 r rfl
    obtain rfl := Option.some.inj hs
    obtain rfl : q = #v[] := Vector.ext fun i hi => absurd hi (Nat.not_lt_zero i)
    obtain ⟨a, rest, rfl, ha, hv⟩ := List.map_eq_cons_iff.mp
      (show kvs.map (·.2.toList) = [1] :: [[3]] from hv)
    obtain ⟨b, rest, rfl, hb, hv⟩ := List.map_eq_cons_iff.mp hv
    obtain rfl := List.map_eq_nil_iff.mp hv
    have empty : ∀ x : Vec Int 0, x = #v[] :=
      fun x => Vector.ext fun i hi => absurd hi (Nat.not_lt_zero i)
    obtain rfl : a = (#v[], #v[1]) := Prod.ext (empty _) (Vector.toList_inj.mp ha)
    obtain rfl : b = (#v[], #v[3]) := Prod.ext (empty _) (Vector.toList_inj.mp hb)
    rw [ho'] at ho
    exact absurd ho (by decide +kernel)

/-! ## Numbers by rule -/

/-- The hypothesis of `drawn-varlen-vectors-sound` about the check of a rule whose numbers become
integers: their numerators are the numbers. -/
abbrev SoundIntegers (check : Rule → Prop) : Prop :=
  ∀ r : Rule, check r → ∀ x : Int, ((mkRat x r.over).num : Rat) = mkRat x r.over

/-- Positive control: the program's. -/
theorem over_one_soundIntegers : SoundIntegers fun r => r.over = 1 := fun r h x => by
  rw [h, Rat.mkRat_one]
  rfl

/-- The check of a rule without the demand for integers: 1 / 2 becomes 1. -/
theorem anyOver_refuted : ¬ SoundIntegers fun r => r.check = .ok () := fun h =>
  absurd (h { name := "", bound := 1, over := 2 }
    (by show Rule.check _ = _; rw [Rule.check, if_pos (by decide +kernel)]; rfl) 1)
    (by decide +kernel)

end Attention.WrongVariants
