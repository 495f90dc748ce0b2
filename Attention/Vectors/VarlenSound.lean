module

public import Attention.Proof.Packed.Varlen
public import Attention.Vectors.CaseSound
public import Attention.Vectors.Varlen

public section

/-! # What runs is what is proved: packed sequences

`VarlenCase.run` makes the exact vectors of packed sequences of different lengths. -/

namespace Attention.Vectors

open Spec Proof

variable {d d_v : Nat}

/-- Keys and values hold the rows that they are made from. -/
theorem toKeyValues_rows {k : List (List Int)} {v : List (List Rat)}
    {kvs : List (KeyValue Int Rat d d_v)} (h : toKeyValues d d_v k v = .ok kvs) :
    kvs.map (·.1.toList) = k ∧ kvs.map (·.2.toList) = v := by
  rw [toKeyValues] at h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  have hK := toMatrix_rows hK
  have hV := toMatrix_rows hV
  constructor
  · refine Eq.trans ?_ hK
    rw [rowsOf, ← List.map_fst_zip (l₁ := K.toList) (l₂ := V.toList) (by simp), List.map_map]
    rfl
  · refine Eq.trans ?_ hV
    rw [rowsOf, ← List.map_snd_zip (l₁ := K.toList) (l₂ := V.toList) (by simp), List.map_map]
    rfl

private theorem getLast?_cuSeqlens (lens : List Nat) : ∀ start,
    (cuSeqlens lens start).getLast? = some (start + lens.sum) := by
  induction lens with
  | nil => intro start; simp [cuSeqlens]
  | cons n lens ih =>
    intro start
    rw [cuSeqlens, List.getLast?_cons, ih]
    simp [Nat.add_assoc]

/-- A list is parts of any lengths that sum to its own. -/
private theorem exists_parts {α : Type} (lens : List Nat) : ∀ {xs : List α},
    xs.length = lens.sum → ∃ parts : List (List α), parts.map (·.length) = lens ∧
      parts.flatten = xs := by
  induction lens with
  | nil => intro xs h; exact ⟨[], rfl, (List.eq_nil_of_length_eq_zero (by simpa using h)).symm⟩
  | cons n lens ih =>
    intro xs h
    simp only [List.sum_cons] at h
    obtain ⟨parts, hlen, hflat⟩ := ih (xs := xs.drop n) (by simp; omega)
    refine ⟨xs.take n :: parts, ?_, ?_⟩
    · simp [hlen]; omega
    · rw [List.flatten_cons, hflat, List.take_append_drop]

namespace VarlenCase

/-- **varlen-vectors-sound**: if the program gives results for packed sequences, there are sequences
of the lengths of the case that hold its rows one after another, and the outputs are the rows of the
attention of each sequence; beside each are the largest score of that row, where the keys of other
sequences are masked, and the denominator against it. -/
theorem run_sound {c : VarlenCase} {results : List RowResult} (h : c.run = .ok results) :
    ∃ seqs : List (Sequence Int Rat c.head_dim c.value_dim),
      seqs.map (·.queries.length) = c.q_lens ∧ seqs.map (·.keyValues.length) = c.kv_lens ∧
      (seqs.flatMap (·.queries)).map (·.toList) = c.q ∧
      (seqs.flatMap (·.keyValues)).map (·.1.toList) = c.k ∧
      (seqs.flatMap (·.keyValues)).map (·.2.toList) = c.v ∧
      results.map (·.output) = (seqs.zipIdx.flatMap fun (s, b) =>
        attentionRows c.scale (c.mods b) s.queries s.keyValues).map (·.toList) ∧
      ∀ (i : Nat) (q : Vec Int c.head_dim) (r : RowResult),
        (seqs.flatMap (·.queries))[i]? = some q →
        results[i]? = some r →
        r.Describes (scoredRows c.scale (packedMod (cuSeqlens c.q_lens) (cuSeqlens c.kv_lens)
          c.mods i) q (seqs.flatMap (·.keyValues))) := by
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨kvs, hkvs, h⟩ := bind_ok h
  obtain ⟨⟨hq, hk, hlens⟩, h⟩ := check_ok h
  obtain ⟨hout, h⟩ := check_ok h
  obtain ⟨hK, hV⟩ := toKeyValues_rows hkvs
  have hQ := toMatrix_rows hQ
  rw [getLast?_cuSeqlens, Nat.zero_add, Option.some.injEq] at hq hk
  obtain ⟨qs, hqs, hqs'⟩ := exists_parts c.q_lens (xs := Q.toList) (by simp [hq])
  obtain ⟨ks, hks, hks'⟩ := exists_parts c.kv_lens (xs := kvs)
    (by rw [hk, ← hK, List.length_map])
  have hlen : qs.length = ks.length := by
    have h₁ := congrArg List.length hqs
    have h₂ := congrArg List.length hks
    simp only [List.length_map] at h₁ h₂
    omega
  obtain ⟨seqs, hs₁, hs₂⟩ : ∃ seqs : List (Sequence Int Rat c.head_dim c.value_dim),
      seqs.map (·.queries) = qs ∧ seqs.map (·.keyValues) = ks := by
    refine ⟨List.zipWith Sequence.mk qs ks, ?_, ?_⟩
    · refine List.ext_getElem (by simp [hlen]) fun i _ _ => by simp
    · refine List.ext_getElem (by simp [hlen]) fun i _ _ => by simp
  have e₁ : seqs.flatMap (·.queries) = Q.toList := by rw [List.flatMap_def, hs₁, hqs']
  have e₂ : seqs.flatMap (·.keyValues) = kvs := by rw [List.flatMap_def, hs₂, hks']
  have l₁ : seqs.map (·.queries.length) = c.q_lens := by rw [← hqs, ← hs₁, List.map_map]; rfl
  have l₂ : seqs.map (·.keyValues.length) = c.kv_lens := by rw [← hks, ← hs₂, List.map_map]; rfl
  have outputs : (if c.sliced = true then
        attentionSliced c.scale c.mods (cuSeqlens c.q_lens) (cuSeqlens c.kv_lens) Q.toList kvs
      else attentionVarlen c.scale c.mods (cuSeqlens c.q_lens) (cuSeqlens c.kv_lens) Q.toList kvs)
      = seqs.zipIdx.flatMap fun (s, b) =>
        attentionRows c.scale (c.mods b) s.queries s.keyValues := by
    rw [← e₁, ← e₂, ← l₁, ← l₂]
    split
    · exact varlen_sliced c.scale c.mods seqs
    · exact varlen c.scale c.mods seqs
  obtain rfl := Except.ok.inj h
  refine ⟨seqs, l₁, l₂, e₁ ▸ hQ, e₂ ▸ hK, e₂ ▸ hV, ?_, fun i q r hi hr => ?_⟩
  · rw [← outputs, List.map_map]
    refine List.ext_getElem (by simp [hout]) fun i _ _ => ?_
    simp [rowResult]
  · rw [e₁] at hi
    rw [e₂]
    obtain ⟨hi', rfl⟩ := List.getElem?_eq_some_iff.mp hi
    obtain ⟨hr', rfl⟩ := List.getElem?_eq_some_iff.mp hr
    simpa using rowResult_describes _ _

end VarlenCase

/-! ## Numbers by rule -/

/-- The integers of a rule are its numbers. -/
theorem integers_ok {r : Rule} {m n : Nat} {rows : List (List Int)}
    (h : r.integers m n = .ok rows) : rats rows = (r.matrices 1 m n).flatten := by
  rw [Rule.integers] at h
  obtain ⟨hover, h⟩ := check_ok h
  obtain ⟨xs, hx, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  rw [Rule.rows] at hx
  obtain ⟨_, -, hx⟩ := bind_ok hx
  obtain rfl := Except.ok.inj hx
  rw [rats, List.map_map]
  refine (List.map_congr_left fun row hrow => ?_).trans (List.map_id _)
  rw [Function.comp_apply, List.map_map]
  refine (List.map_congr_left fun x hx => ?_).trans (List.map_id _)
  obtain ⟨A, hA, hrow⟩ := List.mem_flatten.mp hrow
  obtain ⟨_, -, rfl⟩ := List.mem_map.mp hA
  obtain ⟨_, -, rfl⟩ := List.mem_map.mp hrow
  obtain ⟨_, -, rfl⟩ := List.mem_map.mp hx
  rw [hover, Rat.mkRat_one]
  rfl

namespace DrawnVarlenCase

/-- **drawn-varlen-vectors-sound**: if the program gives results for packed sequences whose numbers
are drawn by rule, there are sequences of the lengths of the case that hold the rows that the rules
draw, one after another, and the outputs are the rows of the attention of each sequence; beside each
are the largest score of that row, where the keys of other sequences are masked, and the denominator
against it. -/
theorem run_sound {c : DrawnVarlenCase} {f : VarlenCase} {results : List RowResult}
    (hf : c.inputs = .ok f) (h : f.run = .ok results) :
    let g := c.without
    ∃ seqs : List (Sequence Int Rat g.head_dim g.value_dim),
      seqs.map (·.queries.length) = g.q_lens ∧ seqs.map (·.keyValues.length) = g.kv_lens ∧
      rats ((seqs.flatMap (·.queries)).map (·.toList))
        = (c.q.matrices 1 g.q_lens.sum g.head_dim).flatten ∧
      rats ((seqs.flatMap (·.keyValues)).map (·.1.toList))
        = (c.k.matrices 1 g.kv_lens.sum g.head_dim).flatten ∧
      (seqs.flatMap (·.keyValues)).map (·.2.toList)
        = (c.v.matrices 1 g.kv_lens.sum g.value_dim).flatten ∧
      results.map (·.output) = (seqs.zipIdx.flatMap fun (s, b) =>
        attentionRows g.scale (g.mods b) s.queries s.keyValues).map (·.toList) ∧
      ∀ (i : Nat) (q : Vec Int g.head_dim) (r : RowResult),
        (seqs.flatMap (·.queries))[i]? = some q →
        results[i]? = some r →
        r.Describes (scoredRows g.scale (packedMod (cuSeqlens g.q_lens) (cuSeqlens g.kv_lens)
          g.mods i) q (seqs.flatMap (·.keyValues))) := by
  rw [inputs] at hf
  obtain ⟨q, hq, hf⟩ := bind_ok hf
  obtain ⟨k, hk, hf⟩ := bind_ok hf
  obtain ⟨v, hv, hf⟩ := bind_ok hf
  obtain rfl := Except.ok.inj hf
  obtain ⟨seqs, hq_lens, hkv_lens, hQ, hK, hV, hrest⟩ := VarlenCase.run_sound h
  rw [Rule.rows] at hv
  obtain ⟨_, -, hv⟩ := bind_ok hv
  obtain rfl := Except.ok.inj hv
  exact ⟨seqs, hq_lens, hkv_lens, hQ ▸ integers_ok hq, hK ▸ integers_ok hk, hV, hrest⟩

end DrawnVarlenCase

end Attention.Vectors
