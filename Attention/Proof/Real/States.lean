module

public import Attention.Proof.Real.Exact
public import Attention.Spec.Cache

public section

/-! # The exact model's states are true of the real numbers

The state (m, l, o) of a row, as keys are appended, deleted and replaced and as states are merged:
over the exact model it is that over the real numbers, but for m, a score, which is multiplied by
ln 2. -/

namespace Attention.Proof

open Spec Spec.Online Model Lean.Grind

variable {d : Nat}

/-- A key of the exact model as one of real numbers. -/
@[expose] noncomputable def realKey (key : ScoredValue Int Rat d) : ScoredValue Real Real d :=
  ⟨key.score.map realScore, Vec.map Real.ofRat key.value⟩

/-- A state of the exact model as one of real numbers. -/
@[expose] noncomputable def realState (s : State Int Rat d) : State Real Real d :=
  ⟨s.m.map realScore, Real.ofRat s.l, Vec.map Real.ofRat s.o⟩

/-- A change of the keys likewise. -/
@[expose] noncomputable def realEdit : Edit Int Rat d → Edit Real Real d
  | .append key => .append (realKey key)
  | .delete i => .delete i
  | .replace i key => .replace i (realKey key)

/-- The order of scores stays. -/
private theorem realScore_le (a b : Int) : realScore a ≤ realScore b ↔ a ≤ b := by
  rw [realScore, realScore, Field.IsOrdered.mul_le_mul_iff_of_pos_right Real.log_two_pos,
    Real.ofInt, Real.ofInt, Real.ofRat_le, Rat.intCast_le_intCast]

private theorem maxScore_real (a b : Option Int) :
    maxScore (a.map realScore) (b.map realScore) = (maxScore a b).map realScore := by
  cases a <;> cases b <;> simp only [maxScore, Option.map_none, Option.map_some]
  simp only [realScore_le]
  split <;> rfl

private theorem rescale_real (s m : Option Int) :
    (rescale (s.map realScore) (m.map realScore) : Real) = Real.ofRat (rescale s m) := by
  cases s with
  | none => exact Real.zero_eq
  | some s =>
    cases m with
    | none => exact Real.zero_eq
    | some m =>
      show (exp (realScore s - realScore m) : Real) = Real.ofRat (exp (s - m))
      have e := Real.ofInt_add (s - m) m
      rw [Int.sub_add_cancel] at e
      rw [← Real.exp_mul_log_two, realScore, realScore, e]
      congr 1
      grind

private theorem add_real (a b : Vec Rat d) : Vec.add (Vec.map Real.ofRat a) (Vec.map Real.ofRat b)
    = Vec.map Real.ofRat (Vec.add a b) := by
  refine Vector.ext fun c hc => ?_
  rw [Vec.getElem_add, Vec.getElem_map, Vec.getElem_map, Vec.getElem_map, Vec.getElem_add,
    Real.ofRat_add]

private theorem smul_real (c : Rat) (a : Vec Rat d) :
    Vec.smul (Real.ofRat c) (Vec.map Real.ofRat a) = Vec.map Real.ofRat (Vec.smul c a) := by
  refine Vector.ext fun c hc => ?_
  rw [Vec.getElem_smul, Vec.getElem_map, Vec.getElem_map, Vec.getElem_smul, Real.ofRat_mul]

/-- One more key. -/
theorem step_real (s : State Int Rat d) (key : ScoredValue Int Rat d) :
    step (realState s) (realKey key) = realState (step s key) := by
  simp only [step, realState, realKey, maxScore_real, rescale_real, smul_real, add_real,
    ← Real.ofRat_mul, ← Real.ofRat_add]

/-- A key that is taken out. -/
theorem delete_real (s : State Int Rat d) (key : ScoredValue Int Rat d) :
    delete (realState s) (realKey key) = realState (delete s key) := by
  simp only [delete, realState, realKey, rescale_real, ← Real.ofRat_sub]
  congr 1
  refine Vector.ext fun c hc => ?_
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map, Real.ofRat_mul, Real.ofRat_sub]

/-- Two states that are merged. -/
theorem merge_real (a b : State Int Rat d) :
    merge (realState a) (realState b) = realState (merge a b) := by
  simp only [merge, realState, maxScore_real, rescale_real, smul_real, add_real,
    ← Real.ofRat_mul, ← Real.ofRat_add]

private theorem edit_real (row : List (ScoredValue Int Rat d)) (s : State Int Rat d)
    (e : Edit Int Rat d) : edit (row.map realKey, realState s) (realEdit e)
      = ((edit (row, s) e).1.map realKey, realState (edit (row, s) e).2) := by
  cases e with
  | append key =>
    simp only [edit, realEdit, step_real, List.map_append, List.map_cons, List.map_nil]
  | delete i =>
    simp only [edit, realEdit, List.getElem?_map]
    cases row[i]? with
    | none => rfl
    | some key =>
      simp only [Option.map_some, delete_real, List.eraseIdx_eq_take_drop_succ, List.map_append,
        List.map_take, List.map_drop]
  | replace i key =>
    simp only [edit, realEdit, List.getElem?_map]
    cases row[i]? with
    | none => rfl
    | some old => simp only [Option.map_some, replace, delete_real, step_real, List.map_set]

/-- **exact-states-are-real**: the keys and the state of a row after any changes, over the exact
model, taken for real numbers, are those over the real numbers with the natural exponential, scores
multiplied by ln 2 and so the reference point m too. -/
theorem edits_real (row : List (ScoredValue Int Rat d)) (s : State Int Rat d)
    (edits : List (Edit Int Rat d)) :
    (edits.map realEdit).foldl edit (row.map realKey, realState s)
      = ((edits.foldl edit (row, s)).1.map realKey, realState (edits.foldl edit (row, s)).2) := by
  induction edits generalizing row s with
  | nil => rfl
  | cons e es ih =>
    rw [List.map_cons, List.foldl_cons, edit_real, ih]
    rfl

end Attention.Proof
