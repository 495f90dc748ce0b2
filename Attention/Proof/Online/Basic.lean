module

public import Attention.Spec.Online
public import Attention.Proof.Softmax.Attention

public section

/-! # Online softmax computes attention

The heart of it: every update turns the state of a row into the state of a longer row
(`stepBlock_ofBlock`, `merge_homomorphism`, `step_ofBlock`), as equalities of states. Everything
else follows. -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-! ## Sums against a reference point -/

/-- Moving the reference point of a whole row: every term is multiplied by one factor. -/
theorem rescale_sumOver {row : List (ScoredValue S R d)} {m m' : Option S}
    (h : ∀ key ∈ row, ScoreLE key.score m) (f : ScoredValue S R d → R) :
    (rescale m m' : R) * sumOver (fun key => rescale key.score m * f key) row
      = sumOver (fun key => rescale key.score m' * f key) row := by
  rw [← sumOver_mul_left]
  refine sumOver_congr fun key hk => ?_
  rw [← rescale_mul_rescale (m' := m') (h key hk), Semiring.mul_assoc]

/-- The same of the weights alone. -/
theorem rescale_sumOver' {row : List (ScoredValue S R d)} {m m' : Option S}
    (h : ∀ key ∈ row, ScoreLE key.score m) :
    (rescale m m' : R) * sumOver (fun key => rescale key.score m) row
      = sumOver (fun key => rescale key.score m') row := by
  rw [← sumOver_mul_left]
  exact sumOver_congr fun key hk => rescale_mul_rescale (h key hk)

omit [OrderedField R] [Exponential S R] in
/-- No score of a row exceeds its maximum. -/
theorem score_le_rowMax (row : List (ScoredValue S R d)) :
    ∀ key ∈ row, ScoreLE key.score (rowMax (row.map (·.score))) :=
  fun _ hk => le_rowMax (List.mem_map_of_mem hk)

omit [OrderedCommRing S] [OrderedField R] [Exponential S R] in
/-- Two states are equal when their parts are. -/
theorem state_ext {a b : State S R d} (hm : a.m = b.m) (hl : a.l = b.l)
    (ho : ∀ j (h : j < d), a.o[j] = b.o[j]) : a = b := by
  cases a
  cases b
  simp only at hm hl ho
  subst hm hl
  congr 1
  exact Vector.ext ho

/-- A component of the output of a block's state. -/
theorem ofBlock_o (row : List (ScoredValue S R d)) {j : Nat} (h : j < d) :
    (ofBlock row).o[j]
      = sumOver (fun key : ScoredValue S R d =>
          (rescale key.score (rowMax (row.map (·.score))) : R) * key.value[j]) row := by
  simp only [ofBlock, Vec.getElem_sumOver, Vec.getElem_smul]

/-! ## Every update takes the state of a row to the state of a longer row -/

/-- The state of no keys is the state of the empty block. -/
theorem ofBlock_nil : (ofBlock [] : State S R d) = empty := rfl

/-- **merge-homomorphism**: the state of two rows put together is the merge of their states. -/
theorem merge_homomorphism (xs ys : List (ScoredValue S R d)) :
    merge (ofBlock xs) (ofBlock ys) = ofBlock (xs ++ ys) := by
  have hx := score_le_rowMax xs
  have hy := score_le_rowMax ys
  refine state_ext ?_ ?_ fun j hj => ?_
  · simp only [merge, ofBlock, List.map_append, rowMax_append]
  · simp only [merge, ofBlock, List.map_append, rowMax_append, sumOver_append,
      rescale_sumOver' hx, rescale_sumOver' hy]
  · simp only [merge, ofBlock, List.map_append, rowMax_append, Vec.getElem_add, Vec.getElem_smul,
      Vec.getElem_sumOver, sumOver_append, rescale_sumOver hx, rescale_sumOver hy]

/-- FlashAttention-2's update takes the state of a row to the state of the row with the block
appended. -/
theorem stepBlock_ofBlock (xs block : List (ScoredValue S R d)) :
    stepBlock (ofBlock xs) block = ofBlock (xs ++ block) := by
  have hx := score_le_rowMax xs
  refine state_ext ?_ ?_ fun j hj => ?_
  · simp only [stepBlock, ofBlock, List.map_append, rowMax_append]
  · simp only [stepBlock, ofBlock, List.map_append, rowMax_append, sumOver_append,
      rescale_sumOver' hx]
  · simp only [stepBlock, ofBlock, List.map_append, rowMax_append, Vec.getElem_add,
      Vec.getElem_smul, Vec.getElem_sumOver, sumOver_append, rescale_sumOver hx]

/-- One step by a key is one step by a block that holds just this key. -/
theorem step_eq_stepBlock (s : State S R d) (key : ScoredValue S R d) :
    step s key = stepBlock s [key] := by
  refine state_ext ?_ ?_ fun j hj => ?_
  · simp [step, stepBlock, rowMax]
  · simp only [step, stepBlock, List.map_cons, List.map_nil, rowMax, maxScore_none_right,
      sumOver_cons, sumOver_nil, Semiring.add_zero]
  · simp only [step, stepBlock, List.map_cons, List.map_nil, rowMax, maxScore_none_right,
      Vec.getElem_add, Vec.getElem_smul, Vec.getElem_sumOver, sumOver_cons, sumOver_nil,
      Semiring.add_zero]

/-- Any blocks, taken one after the other, give the state of the whole row. -/
theorem online_eq_ofBlock (blocks : List (List (ScoredValue S R d))) :
    online blocks = ofBlock blocks.flatten := by
  suffices h : ∀ pre : List (ScoredValue S R d),
      blocks.foldl stepBlock (ofBlock pre) = ofBlock (pre ++ blocks.flatten) from by
    simpa using h []
  induction blocks with
  | nil => intro pre; simp
  | cons block blocks ih => intro pre; simp [stepBlock_ofBlock, ih]

/-- One key at a time gives the state of the whole row as well. -/
theorem foldl_step_eq_ofBlock (row : List (ScoredValue S R d)) :
    row.foldl step empty = ofBlock row := by
  suffices h : ∀ pre : List (ScoredValue S R d),
      row.foldl step (ofBlock pre) = ofBlock (pre ++ row) from by
    simpa using h []
  induction row with
  | nil => intro pre; simp
  | cons key row ih => intro pre; simp [step_eq_stepBlock, stepBlock_ofBlock, ih]

/-- **merge-comm**: merging does not depend on order, for any two states. -/
theorem merge_comm (a b : State S R d) : merge a b = merge b a := by
  refine state_ext ?_ ?_ fun j hj => ?_
  · simp only [merge, maxScore_comm]
  · simp only [merge, maxScore_comm b.m]
    rw [Semiring.add_comm]
  · simp only [merge, maxScore_comm b.m, Vec.getElem_add]
    rw [Semiring.add_comm]

/-- The same of the states of blocks. -/
theorem merge_ofBlock_comm (xs ys : List (ScoredValue S R d)) :
    merge (ofBlock xs) (ofBlock ys) = merge (ofBlock ys) (ofBlock xs) :=
  merge_comm _ _

end Attention.Proof
