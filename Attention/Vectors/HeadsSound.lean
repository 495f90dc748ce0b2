module

public import Attention.Proof.Heads.Basic
public import Attention.Vectors.CaseSound
public import Attention.Vectors.Heads

public section

/-! # What runs is what is proved: several heads

`HeadsCase.run` makes the exact vectors of attention with several heads. -/

namespace Attention.Vectors

open Spec Proof

/-- Heads hold the rows that they are made from. -/
theorem toHeads_rows {α : Type} [Inhabited α] {heads m n : Nat} {rows : List (List (List α))}
    {A : Vector (Matrix α m n) heads} (h : toHeads heads m n rows = .ok A) :
    A.toList.map rowsOf = rows := by
  rw [toHeads] at h
  obtain ⟨list, hlist, h⟩ := bind_ok h
  split at h
  case isFalse => cases h
  case isTrue =>
    obtain rfl := Except.ok.inj h
    obtain ⟨hlen, each⟩ := mapM_ok hlist
    refine List.ext_getElem (by simpa using hlen) fun i hi hi' => ?_
    rw [List.getElem_map]
    exact toMatrix_rows (each i (by simpa using hi))

private theorem rowsOf_eq_map {α : Type} {m n : Nat} (A : Matrix α m n) :
    rowsOf A = (List.finRange m).map fun i => A[i].toList :=
  List.ext_getElem (by simp [rowsOf]) fun i _ _ => by simp [rowsOf]

/-- The heads of keys, or of values, that multi-head attention takes are those that grouped-query
attention takes, where the same rows make both. -/
theorem getElem_toHeads {α : Type} [Inhabited α] {heads group m n : Nat}
    {rows : List (List (List α))} {A : Vector (Matrix α m n) heads}
    {B : Vector (Matrix α m n) (heads * group)} (hA : toHeads heads m n rows = .ok A)
    (hB : toHeads (heads * group) m n rows = .ok B) (h : Fin (heads * group)) :
    B[h] = A[kvHead h] := by
  have e : A.toList = B.toList :=
    (List.map_inj_right fun _ _ => rowsOf_inj).mp ((toHeads_rows hA).trans (toHeads_rows hB).symm)
  have hlen := congrArg List.length e
  simp only [Vector.length_toList] at hlen
  have := h.isLt
  obtain rfl : group = 1 := by
    have h0 : 0 < heads := Nat.pos_of_ne_zero fun h0 => by subst h0; omega
    exact (Nat.mul_eq_left (by omega)).mp hlen.symm
  have hv : (kvHead h).val = h.val := Nat.div_one _
  have := congrArg (·[h.val]?) e
  simp only [Vector.getElem?_toList] at this
  have hA' : h.val < heads := hv ▸ (kvHead h).isLt
  rw [Vector.getElem?_eq_getElem hA', Vector.getElem?_eq_getElem h.isLt] at this
  simpa [hv] using (Option.some.inj this).symm

namespace HeadsCase

/-- **heads-vectors-sound**: if the program gives results for a case with several heads, Q, K and V
are heads of the rows of the case, the outputs are the rows of grouped-query attention, and beside
each are the largest score of that row of keys and the denominator against it. -/
theorem run_sound {c : HeadsCase} {results : List (List RowResult)} (h : c.run = .ok results) :
    ∃ (Q : Vector (Matrix Int c.q_len c.head_dim) (c.num_kv_heads * c.group))
      (K : Vector (Matrix Int c.kv_len c.head_dim) c.num_kv_heads)
      (V : Vector (Matrix Rat c.kv_len c.value_dim) c.num_kv_heads),
      Q.toList.map rowsOf = c.q ∧ K.toList.map rowsOf = c.k ∧ V.toList.map rowsOf = c.v ∧
      results.map (·.map (·.output))
        = (groupedQuery c.scale (fun _ => c.mask.toMask.toScoreMod) Q K V).toList.map rowsOf ∧
      ∀ (g : Fin (c.num_kv_heads * c.group)) (i : Fin c.q_len) (r : RowResult),
        (results[g.val]?.bind (·[i.val]?)) = some r →
        r.Describes (scored c.scale c.mask.toMask.toScoreMod Q[g] K[kvHead g] V[kvHead g] i
          (List.finRange c.kv_len)) := by
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  refine ⟨Q, K, V, toHeads_rows hQ, toHeads_rows hK, toHeads_rows hV, ?_⟩
  obtain ⟨O, hO, h⟩ : ∃ O, O = groupedQuery c.scale (fun _ => c.mask.toMask.toScoreMod) Q K V ∧
      .ok ((List.finRange (c.num_kv_heads * c.group)).map fun h =>
        (List.finRange c.q_len).map fun i =>
          rowResult (scored c.scale c.mask.toMask.toScoreMod Q[h] K[kvHead h] V[kvHead h] i
            (List.finRange c.kv_len)) O[h][i]) = (.ok results : Except String _) := by
    cases ha : c.algorithm <;> rw [ha] at h
    case grouped => exact ⟨_, rfl, h⟩
    case packed => exact ⟨_, gqa_packed .., h⟩
    case multiHead =>
      obtain ⟨K', hK', h⟩ := bind_ok h
      obtain ⟨V', hV', h⟩ := bind_ok h
      refine ⟨_, ?_, h⟩
      simp only [groupedQuery, multiHead, getElem_toHeads hK hK', getElem_toHeads hV hV']
  subst hO
  obtain rfl := Except.ok.inj h
  refine ⟨?_, fun g i r hr => ?_⟩
  · refine List.ext_getElem (by simp) fun g _ _ => ?_
    simp [rowResult, rowsOf_eq_map]
  · obtain rfl : _ = r := by simpa using hr
    exact rowResult_describes _ _

end HeadsCase

end Attention.Vectors
