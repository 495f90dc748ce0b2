module

public import Attention.Proof.Dropout.Basic
public import Attention.Vectors.CaseSound
public import Attention.Vectors.Sampled

public section

/-! # Some rows are rows of the whole

The vectors of real sizes are computed for some queries alone. -/

namespace Attention.Vectors

open Spec

universe u

/-- The results for some queries are the rows of attention of all queries, for every
mask and change of the scores. -/
theorem attend_pickRows {S R : Type} {q_len kv_len d d_v n : Nat} [Add S] [Mul S] [OfNat S 0]
    [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (rows : Vector (Fin q_len) n) (r : Fin n) :
    attend (scored scale (pickMod rows modify) (pickRows rows Q) K V r (List.finRange kv_len))
      = (attention scale modify Q K V)[rows[r]] := by
  simp [attention, scored, score, pickMod, pickRows]

/-- So it is with dropout, where the factors are those of the rows. -/
theorem attend_pickFactor {S R : Type} {q_len kv_len d d_v n : Nat} [OrderedCommRing S]
    [OrderedField R] [Exponential S R] (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (Z : WeightFactor R q_len kv_len) (rows : Vector (Fin q_len) n) (r : Fin n) :
    attend (scoredDropout scale (pickMod rows modify) (pickRows rows Q) K V (pickFactor rows Z) r
        (List.finRange kv_len))
      = (attentionDropout scale modify Q K V Z)[rows[r]] := by
  rw [← Proof.attend_scoredDropout]
  simp [scoredDropout, score, pickMod, pickRows, pickFactor]

namespace SampledCase

/-- Query head `number` of all: what becomes of its scores. -/
@[expose] def whole (c : SampledCase) (number : Nat) : ScoreMod Int c.q_len c.kv_len :=
  (ScoreMod.temperature
    ((c.temperatures.getD (List.replicate c.heads 1))[number % c.heads]!).num).andThen
    (c.maskOf number).toScoreMod

section
variable {S R : Type u} (toScore : Nat → Int → S) (toValue : Nat → Int → R)

/-- Its queries, by rule. toScore: a numerator over a denominator as a number. -/
@[expose] def queries (c : SampledCase) (number : Nat) : Matrix S c.q_len c.head_dim :=
  part (c.q.numerators (c.batch * c.heads * c.q_len * c.head_dim)) (toScore c.q.over) number _ _

/-- Its keys. -/
@[expose] def keys (c : SampledCase) (number : Nat) : Matrix S c.kv_len c.head_dim :=
  part (c.k.numerators (c.batch * c.num_kv_heads * c.kv_len * c.head_dim)) (toScore c.k.over)
    (number / c.group) _ _

/-- Its values. -/
@[expose] def values (c : SampledCase) (number : Nat) : Matrix R c.kv_len c.value_dim :=
  part (c.v.numerators (c.batch * c.num_kv_heads * c.kv_len * c.value_dim)) (toValue c.v.over)
    (number / c.group) _ _

end

/-- The inputs of the program without dropout: the keys as each wanted query sees them, which
are those of the whole; and what it has checked. -/
theorem seen_ok {S R : Type} [Add S] [Mul S] [OfNat S 0] [Inhabited S] [Inhabited R] [Mul R]
    {scale : S} {toScore : Nat → Int → S} {toValue : Nat → Int → R} {c : SampledCase}
    {modify : Nat → ScoreMod S c.q_len c.kv_len}
    {heads : List (List (List (ScoredValue S R c.value_dim)))}
    (h : c.seen scale toScore toValue modify = .ok heads) :
    c.q.check = .ok () ∧ c.k.check = .ok () ∧ c.v.check = .ok () ∧
    (∀ ts, c.temperatures = some ts → checkTemperatures c.heads ts c.q = .ok ()) ∧
    (indices c.q_len c.rows).length = c.rows.length ∧
    heads = (List.range (c.batch * c.heads)).map fun number =>
      (List.finRange (indices c.q_len c.rows).length).map fun r =>
        scored scale ((modify (number % c.heads)).andThen (c.maskOf number).toScoreMod)
          (c.queries toScore number) (c.keys toScore number) (c.values toValue number)
          (indices c.q_len c.rows)[r] (List.finRange c.kv_len) := by
  rw [seen] at h
  obtain ⟨_, hq, h⟩ := bind_ok h
  obtain ⟨_, hk, h⟩ := bind_ok h
  obtain ⟨_, hv, h⟩ := bind_ok h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨_, h⟩ := check_ok h
  obtain ⟨_, ht, h⟩ := bind_ok h
  obtain ⟨hrows, h⟩ := check_ok h
  obtain rfl := Except.ok.inj h
  refine ⟨hq, hk, hv, fun ts hts => ?_, hrows.1, ?_⟩
  · rw [hts] at ht
    exact ht
  · refine List.map_congr_left fun number _ => ?_
    refine List.ext_getElem (by simp) fun i hi hi' => ?_
    simp [scored, score, pickMod, pickRows, queries, keys, values,
      -List.getElem!_eq_getElem?_getD]

/-- The keys of a row without their values. -/
@[expose] def withoutValues {d : Nat} (row : List (ScoredValue Int Rat d)) :
    List (ScoredValue Int Rat 0) := row.map fun key => ⟨key.score, Vec.zero⟩

private theorem outcome_describes {d : Nat} (row : List (ScoredValue Int Rat d)) :
    (outcome row).Describes (withoutValues row) :=
  have h := rowResult_describes (withoutValues row) Vec.zero
  ⟨h.max_eq_none, h.max_mem, h.le_max, h.denominator_eq, h.logSumExp⟩

section
variable {q_len kv_len d d_v n : Nat} (scale : Int) (modify : ScoreMod Int q_len kv_len)
variable (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v)

private theorem outcome_pickRows (rows : Vector (Fin q_len) n) (r : Fin n) :
    let result := outcome (scored scale (pickMod rows modify) (pickRows rows Q) K V r
      (List.finRange kv_len))
    result.output = (attention scale modify Q K V)[rows[r]].toList ∧
      result.Describes (withoutValues
        (scored scale modify Q K V rows[r] (List.finRange kv_len))) := by
  refine ⟨congrArg Vector.toList (attend_pickRows ..), ?_⟩
  have h := outcome_describes (scored scale (pickMod rows modify) (pickRows rows Q) K V r
    (List.finRange kv_len))
  have e : scored scale (pickMod rows modify) (pickRows rows Q) K V r (List.finRange kv_len)
      = scored scale modify Q K V rows[r] (List.finRange kv_len) := by
    simp [scored, score, pickMod, pickRows]
  rwa [e] at h ⊢

private theorem outcome_pickFactor (Z : WeightFactor Rat q_len kv_len)
    (rows : Vector (Fin q_len) n) (r : Fin n) :
    let result := outcome (scoredDropout scale (pickMod rows modify) (pickRows rows Q) K V
      (pickFactor rows Z) r (List.finRange kv_len))
    result.output = (attentionDropout scale modify Q K V Z)[rows[r]].toList ∧
      result.Describes (withoutValues
        (scored scale modify Q K V rows[r] (List.finRange kv_len))) := by
  refine ⟨congrArg Vector.toList (attend_pickFactor ..), ?_⟩
  have h := outcome_describes (scoredDropout scale (pickMod rows modify) (pickRows rows Q) K V
    (pickFactor rows Z) r (List.finRange kv_len))
  have e : withoutValues (scoredDropout scale (pickMod rows modify) (pickRows rows Q) K V
      (pickFactor rows Z) r (List.finRange kv_len))
      = withoutValues (scored scale modify Q K V rows[r] (List.finRange kv_len)) := by
    simp [withoutValues, scoredDropout, dropKey, scored, score, pickMod, pickRows]
  rw [e] at h
  exact h

end

/-- **sampled-vectors-sound**: if the program gives results for a case of which some rows are
computed, the rows that are wanted are queries, there is a result for each of them in each query
head of each sequence, and each output is that row of attention of the whole head, with dropout
where there is some; beside it are the largest score of the row and the denominator against it. -/
theorem run_sound {c : SampledCase} {results : List (List RowResult)} (h : c.run = .ok results) :
    ∃ (scale : Rat) (factors : Option (Nat → WeightFactor Rat c.q_len c.kv_len)),
      c.scale = some scale ∧ scale.den = 1 ∧ factorsOf id c.dropout = .ok factors ∧
      (indices c.q_len c.rows).length = c.rows.length ∧ results.length = c.batch * c.heads ∧
      (∀ head ∈ results, head.length = c.rows.length) ∧
      ∀ (number : Nat) (i : Fin (indices c.q_len c.rows).length) (r : RowResult),
        results[number]?.bind (·[i.val]?) = some r →
        let Q := c.queries (fun _ x => x) number
        let K := c.keys (fun _ x => x) number
        let V := c.values (fun over x => mkRat x over) number
        let query := (indices c.q_len c.rows)[i]
        r.output = (match factors with
          | none => attention scale.num (c.whole number) Q K V
          | some Z => attentionDropout scale.num (c.whole number) Q K V (Z number))[query].toList ∧
        r.Describes (withoutValues
          (scored scale.num (c.whole number) Q K V query (List.finRange c.kv_len))) := by
  rw [run] at h
  obtain ⟨_, h⟩ := check_ok h
  cases hs : c.scale with
  | none => rw [hs] at h; cases h
  | some scale =>
    rw [hs] at h
    obtain ⟨hden, h⟩ := check_ok h
    obtain ⟨_, h⟩ := check_ok h
    obtain ⟨factors, hZ, h⟩ := bind_ok h
    obtain ⟨heads, hseen, h⟩ := bind_ok h
    obtain rfl := Except.ok.inj h
    rw [seen] at hseen
    obtain ⟨_, -, hseen⟩ := bind_ok hseen
    obtain ⟨_, -, hseen⟩ := bind_ok hseen
    obtain ⟨_, -, hseen⟩ := bind_ok hseen
    obtain ⟨_, -, hseen⟩ := bind_ok hseen
    obtain ⟨_, hseen⟩ := check_ok hseen
    obtain ⟨_, -, hseen⟩ := bind_ok hseen
    obtain ⟨hrows, hseen⟩ := check_ok hseen
    obtain rfl := Except.ok.inj hseen
    refine ⟨scale, factors, rfl, hden.1, hZ, hrows.1, by simp, fun head hh => ?_,
      fun number i r hr => ?_⟩
    · simp only [List.map_map, List.mem_map] at hh
      obtain ⟨_, -, rfl⟩ := hh
      cases factors <;> simp [hrows.1]
    have hn : number < c.batch * c.heads := by
      refine Nat.lt_of_not_le fun hn => ?_
      rw [List.getElem?_eq_none_iff.mpr (by simpa using hn)] at hr
      cases hr
    cases factors with
    | none =>
      simp [hn, -List.getElem!_eq_getElem?_getD] at hr
      subst hr
      exact outcome_pickRows scale.num (c.whole number) (c.queries (fun _ x => x) number)
        (c.keys (fun _ x => x) number) (c.values (fun over x => mkRat x over) number)
        ⟨(indices c.q_len c.rows).toArray, by simp⟩ i
    | some Z =>
      simp [hn, -List.getElem!_eq_getElem?_getD] at hr
      subst hr
      exact outcome_pickFactor scale.num (c.whole number) (c.queries (fun _ x => x) number)
        (c.keys (fun _ x => x) number) (c.values (fun over x => mkRat x over) number) (Z number)
        ⟨(indices c.q_len c.rows).toArray, by simp⟩ i

end SampledCase

end Attention.Vectors
