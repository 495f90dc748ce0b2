module

public import Attention.Proof.Enclosure.Combine
public import Attention.Vectors.BoundsSound
public import Attention.Vectors.Combine

public section

/-! # What runs is what is proved: splits that are combined

`CombineCase.run` makes the vectors of outputs and log-sum-exps of splits by enclosure. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R] [NaturalExp R] {number : Rat → R}

/-- A split over numbers, with the numbers that are listed. -/
@[expose] def PartialResult.Lists {d : Nat} (number : Rat → R) (part : PartialResult)
    (x : Partial R R d) : Prop :=
  x.o.toList = part.output.map number ∧ x.lse = part.logSumExp.map number

omit [NaturalExp R] in
private theorem toSpec_ok {d : Nat} {part : PartialResult}
    {I : Partial (Interval working) (Interval working) d} (h : part.toSpec d = .ok I)
    (hall : AllContain number (part.output ++ part.logSumExp.toList)) :
    ∃ x : Partial R R d, part.Lists number x ∧ VecContains I.o x.o ∧
      ScoreContains I.lse x.lse := by
  rw [PartialResult.toSpec] at h
  obtain ⟨O, hO, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  obtain ⟨X, hX, hc⟩ := toMatrix_contains (number := number) (rows := [part.output]) hO
    (by simpa using hall.left)
  refine ⟨⟨X[0], part.logSumExp.map number⟩, ⟨?_, rfl⟩, hc 0 (by decide), ?_⟩
  · have h₀ := congrArg (·[0]?) hX
    simpa [rowsOf] using h₀
  · have hl := hall.right
    cases hs : part.logSumExp with
    | none => trivial
    | some L =>
      rw [hs] at hl
      exact hl.head

/-- **combine-vectors-sound**: if the program yields bounds for splits, then over every ordered
field with a natural exponential, what the splits that are listed combine to, by their log-sum-exp
where there is one, lies between them, and so does that log-sum-exp, which is −∞ if and only if they
say so. -/
theorem CombineCase.run_sound (hnumber : IsNumber number) {c : CombineCase} {result : EnclosedRow}
    (h : c.run = .ok result) :
    ∃ parts : List (Partial R R c.value_dim), Pointwise (PartialResult.Lists number) c.parts parts ∧
      ∀ L, IsLogSumExp R L (parts.map (·.lse)) →
        result.Describes (parts.map (·.lse)) (combine L parts) := by
  rw [run] at h
  obtain ⟨_, hx, h⟩ := bind_ok h
  obtain ⟨Is, hI, h⟩ := bind_ok h
  have hall : AllContain number (c.parts.flatMap fun part =>
      part.output ++ part.logSumExp.toList) := allContain_of_checkExact hnumber hx
  obtain ⟨hlen, each⟩ := mapM_ok hI
  have lt : ∀ i : Fin c.parts.length, i.val < Is.length := fun i =>
    Nat.lt_of_lt_of_eq i.isLt hlen.symm
  have part : ∀ i : Fin c.parts.length, ∃ x : Partial R R c.value_dim,
      c.parts[i].Lists number x ∧ VecContains (Is[i.val]'(lt i)).o x.o ∧
        ScoreContains (Is[i.val]'(lt i)).lse x.lse := fun i =>
    toSpec_ok (each i.val (lt i)) fun q hq =>
      hall q (List.mem_flatMap.mpr ⟨c.parts[i], List.getElem_mem i.isLt, hq⟩)
  obtain ⟨f, hf⟩ := Classical.axiomOfChoice part
  have hIs : Is = (List.finRange c.parts.length).map fun i => Is[i.val]'(lt i) :=
    List.ext_getElem (by simp [hlen]) fun _ _ _ => by simp
  refine ⟨(List.finRange c.parts.length).map f, .of_getElem (by simp) fun i hi _ => ?_,
    fun L hL => ?_⟩
  · simpa using (hf ⟨i, hi⟩).1
  · rw [List.map_map] at hL ⊢
    rw [hIs, List.map_map] at h
    exact enclosedRow_ok' h (fun _ hL' => logsumexp_enclosed (fun i _ => (hf i).2.2) hL')
      (combine_enclosed (fun i _ => (hf i).2.1) (fun i _ => (hf i).2.2) hL)

end Attention.Vectors
