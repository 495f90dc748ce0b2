module

public import Attention.Claims.MemoriseRows
public import Attention.Proof.TransformerCausal

public section

/-! # Parts of a transformer that do as little as possible

A layer normalisation that returns the rows of one sum and one sum of squares as they are, attention
that adds nothing, and attention that gives every row the mean of all rows. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} [OrderedField R] {m n k d_model num_heads d d_ff : Nat}

/-! ## Matrices row by row -/

theorem layerNorm_ofFn (sqrt : R → R) (ε : R) (N : LayerNorm R n) (f : Fin m → Vec R n) :
    N.rows sqrt ε (Vec.ofFn f) = Vec.ofFn fun i => N.row sqrt ε (f i) :=
  Vector.ext fun i hi => by rw [LayerNorm.rows, Vec.getElem_map, Vec.getElem_ofFn, Vec.getElem_ofFn]

theorem feedForward_ofFn (F : FeedForward R n d_ff) (f : Fin m → Vec R n) :
    F.rows (Vec.ofFn f) = Vec.ofFn fun i => F.row (f i) :=
  Vector.ext fun i hi => by
    rw [FeedForward.rows, Vec.getElem_map, Vec.getElem_ofFn, Vec.getElem_ofFn]

theorem addRows_ofFn (f g : Fin m → Vec R n) :
    addRows (Vec.ofFn f) (Vec.ofFn g) = Vec.ofFn fun i => Vec.add (f i) (g i) :=
  Vector.ext fun i hi => by
    simp only [addRows, Vec.getElem_ofFn, Fin.getElem_fin]

/-! ## Layer normalisation -/

/-- The layer normalisation whose gain is the root for rows with the sum A of components and the sum
Q of their squares, and whose bias is their mean. -/
@[expose] def undoingNorm (n : Nat) (sqrt : R → R) (ε A Q : R) : LayerNorm R n :=
  let count : R := sumOver (fun _ => 1) (List.finRange n)
  { gain := Vec.ofFn fun _ => sqrt ((Q - A * (A / count)) / count + ε)
    bias := Vec.ofFn fun _ => A / count }

/-- It returns them as they are, if they have a component that is 0 and A is not 0. -/
theorem undoingNorm_row {sqrt : R → R} (root : ∀ x, 0 < x → sqrt x ≠ 0) {ε A Q : R} (hε : 0 ≤ ε)
    (hA : A ≠ 0) {x : Vec R n} (sum : sumOver (fun i : Fin n => x[i]) (List.finRange n) = A)
    (squares : Vec.dot x x = Q) (o : Fin n) (zero : x[o] = 0) :
    (undoingNorm n sqrt ε A Q).row sqrt ε x = x := by
  generalize hcount : (sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)) = count
  have one := OrderedRing.zero_lt_one (R := R)
  have pos : 0 < count := by
    have := le_sumOver (f := fun _ : Fin n => (1 : R)) (fun _ _ => Std.le_of_lt one)
      (List.mem_finRange o)
    rw [hcount] at this
    grind
  have hmean : mean x = A / count := by rw [mean, sum, hcount]
  generalize hμ : A / count = μ at hmean
  have hμA : count * μ = A := by rw [← hμ]; exact OrderedField.mul_div_cancel (by grind) A
  have spread : sumOver (fun i : Fin n => (x[i] - μ) * (x[i] - μ)) (List.finRange n)
      = Q - A * μ := by
    have e : sumOver (fun i : Fin n => (x[i] - μ) * (x[i] - μ)) (List.finRange n)
        = Vec.dot x x - 2 * μ * sumOver (fun i : Fin n => x[i]) (List.finRange n)
          + μ * μ * sumOver (fun _ : Fin n => (1 : R)) (List.finRange n) := by
      rw [Vec.dot, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_sub, ← sumOver_add]
      exact sumOver_congr fun i _ => by grind
    rw [e, squares, sum, hcount]
    grind
  have hvar : variance x = (Q - A * μ) / count := by
    rw [variance, mean, hcount, ← spread]
    congr 1
    refine sumOver_congr fun i _ => ?_
    simp only [Fin.getElem_fin, Vec.getElem_map, centred, hmean]
  have hne : sqrt ((Q - A * μ) / count + ε) ≠ 0 := root _ (by
    have h₁ := le_sumOver (f := fun i : Fin n => (x[i] - μ) * (x[i] - μ))
      (fun i _ => mul_self_nonneg _) (List.mem_finRange o)
    simp only [spread, zero] at h₁
    have h₂ : μ * μ ≠ 0 := fun h => hA (by
      rcases Field.of_mul_eq_zero h with h | h <;> rw [← hμA, h] <;> grind)
    have h₃ := mul_self_nonneg μ
    have h₄ : 0 < Q - A * μ := by grind
    have : 0 < (Q - A * μ) / count := by
      rw [Field.div_eq_mul_inv]
      exact OrderedRing.mul_pos h₄ (Field.IsOrdered.inv_pos_iff.mpr pos)
    grind)
  refine Vector.ext fun i hi => ?_
  simp only [LayerNorm.row, undoingNorm, Vec.getElem_ofFn, Fin.getElem_fin, hcount, hμ, hvar, centred,
    hmean, Vec.getElem_map]
  grind

/-! ## Attention -/

/-- The linear layer that is 0. -/
@[expose] def zeroLinear (m n : Nat) : Linear R m n := ⟨Vec.ofFn fun _ => Vec.zero, Vec.zero⟩

/-- The linear layer that copies component after component, as far as there are any. -/
@[expose] def copyLinear (m n : Nat) : Linear R m n := ⟨Vec.ofFn fun j => unit m j.val, Vec.zero⟩

theorem zeroLinear_row (x : Vec R m) : (zeroLinear m n).row x = Vec.zero :=
  Vector.ext fun j hj => by
    have e : Vec.dot (Vec.zero : Vec R m) x = 0 := sumOver_eq_zero fun i _ => by
      rw [Fin.getElem_fin, Vec.getElem_zero]
      grind
    rw [Linear.row, zeroLinear, Vec.getElem_ofFn, Vec.getElem_zero]
    simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero, e]
    grind

/-- What is copied, and what is 0 since there is nothing to copy. -/
theorem copyLinear_row (x : Vec R m) {j : Nat} (hj : j < n) :
    ((copyLinear m n).row x)[j] = if h : j < m then x[j] else 0 := by
  rw [Linear.row, copyLinear, Vec.getElem_ofFn]
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero]
  split
  · rw [dot_unit (by assumption)]
    grind
  · rw [dot_unit_beyond (by omega)]
    grind

/-- Attention that adds nothing. -/
@[expose] def noAttention (d_model num_heads d : Nat) : MultiHead R d_model num_heads d :=
  ⟨zeroLinear _ _, zeroLinear _ _, zeroLinear _ _, zeroLinear _ _⟩

/-- Attention that gives every row the mean of all rows: all queries and keys are 0. -/
@[expose] def meanAttention (d_model num_heads d : Nat) : MultiHead R d_model num_heads d :=
  ⟨zeroLinear _ _, zeroLinear _ _, copyLinear _ _, copyLinear _ _⟩

variable [Exp R R]

theorem noAttention_rows (scale : R) (mask : Mask m k) (X : Matrix R m d_model)
    (Y : Matrix R k d_model) :
    (noAttention d_model num_heads d).rows scale mask X Y Y = Vec.ofFn fun _ => Vec.zero :=
  Vector.ext fun i hi => by
    rw [MultiHead.rows, MultiHead.attend, noAttention]
    have e := Proof.getElem_linear (zeroLinear (num_heads * d) d_model)
      (concatHeads (multiHead scale (fun _ => mask.toScoreMod)
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y))
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)))) ⟨i, hi⟩
    simp only [Fin.getElem_fin] at e
    rw [e, zeroLinear_row, Vec.getElem_ofFn]

omit [OrderedField R] [Exp R R] in
private theorem getElem_flatMap {heads : List (Vec R d)} {h c : Nat} (hh : h < heads.length)
    (hc : c < d) (hl : h * d + c < (heads.flatMap Vector.toList).length) :
    (heads.flatMap Vector.toList)[h * d + c] = heads[h][c] := by
  induction heads generalizing h with
  | nil => cases hh
  | cons x heads ih =>
    simp only [List.flatMap_cons]
    cases h with
    | zero =>
      simp only [Nat.zero_mul, Nat.zero_add]
      rw [List.getElem_append_left (by simpa using hc)]
      simp
    | succ h =>
      have e : (h + 1) * d + c - x.toList.length = h * d + c := by
        rw [Vector.length_toList, Nat.succ_mul]
        omega
      rw [List.getElem_append_right (by rw [Vector.length_toList, Nat.succ_mul]; omega)]
      simp only [e, List.getElem_cons_succ]
      exact ih (by simpa using hh) _

omit [OrderedField R] [Exp R R] in
/-- What stands in the column of component c of head h. -/
theorem getElem_concatHeads (heads : Vector (Matrix R n d) num_heads) (i : Fin n)
    (h : Fin num_heads) (c : Fin d) :
    (concatHeads heads)[i][headColumn h c] = heads[h][i][c] := by
  have hh : h.val < (heads.toList.map fun head => head[i]).length := by simp
  have e : heads.toList.flatMap (fun head => head[i].toList)
      = (heads.toList.map fun head => head[i]).flatMap Vector.toList := by
    rw [List.flatMap_map]
  have hl : h.val * d + c.val
      < ((heads.toList.map fun head => head[i]).flatMap Vector.toList).length := by
    rw [← e]
    have := (headColumn h c).isLt
    simp only [headColumn] at this
    simpa [List.length_flatMap, List.map_const'] using this
  have key := getElem_flatMap hh c.isLt hl
  simp only [concatHeads, Fin.getElem_fin, Vec.getElem_ofFn, headColumn] at key e ⊢
  simp only [Vector.getElem_mk, List.getElem_toArray, e]
  rw [key]
  simp

/-- The weight of each of n keys when all scores are 0. -/
@[expose] def share (R : Type v) [OrderedField R] [Exp R R] (n : Nat) : R :=
  exp (0 : R) / sumOver (fun _ => exp (0 : R)) (List.finRange n)

theorem share_pos (positive : (0 : R) < exp (0 : R)) (j : Fin n) : 0 < share R n := by
  have := le_sumOver (f := fun _ : Fin n => (exp (0 : R) : R)) (fun _ _ => Std.le_of_lt positive)
    (List.mem_finRange j)
  rw [share, Field.div_eq_mul_inv]
  exact OrderedRing.mul_pos positive (Field.IsOrdered.inv_pos_iff.mpr (by grind))

private theorem attend_zero (f : Fin n → Vec R d) :
    attend ((List.finRange n).map fun j => ⟨some (0 : R), f j⟩)
      = Vec.sumOver (fun j => Vec.smul (share R n) (f j)) (List.finRange n) := by
  have e : softmax (((List.finRange n).map fun j => (⟨some (0 : R), f j⟩ : ScoredValue R R d)).map
      (·.score)) = (List.finRange n).map fun _ => share R n := by
    simp only [softmax, denominator, List.map_map, sumOver_map]
    rfl
  refine Vector.ext fun c hc => ?_
  rw [attend, e, List.map_map, List.zip_map', Vec.getElem_sumOver, Vec.getElem_sumOver, sumOver_map]
  rfl

/-- With queries and keys that are 0, each component of the heads' outputs is a mean. -/
private theorem meanHeads (scale : R) (X : Matrix R m d_model) (Y : Matrix R k d_model)
    (V : Matrix R k (num_heads * d)) (i : Fin m) (col : Fin (num_heads * d)) :
    (concatHeads (multiHead scale (fun _ => Mask.full.toScoreMod)
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)) (splitHeads V)))[i][col]
      = sumOver (fun j : Fin k => share R k * V[j][col]) (List.finRange k) := by
  obtain ⟨h, c, rfl⟩ : ∃ h c, col = headColumn h c := ⟨_, _, (headColumn_headOf col).symm⟩
  have zero : ∀ {p : Nat} (Z : Matrix R p d_model) (j : Fin p),
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Z))[h][j] = (Vec.zero : Vec R d) :=
    fun Z j => by
      rw [Proof.getElem_splitHeads, Proof.getElem_linear, zeroLinear_row]
      refine Vector.ext fun a ha => ?_
      rw [Vec.getElem_ofFn, Fin.getElem_fin, Vec.getElem_zero, Vec.getElem_zero]
  have dot : Vec.dot (Vec.zero : Vec R d) Vec.zero = 0 := sumOver_eq_zero fun a _ => by
    rw [Fin.getElem_fin, Vec.getElem_zero]
    grind
  have score : ∀ j : Fin k, score scale Mask.full.toScoreMod
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))[h]
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y))[h] i j = some (0 : R) := fun j => by
    rw [score, zero, zero, dot, Semiring.mul_zero]
    rfl
  have row : (multiHead scale (fun _ => Mask.full.toScoreMod)
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)) (splitHeads V))[h][i]
      = Vec.sumOver (fun j => Vec.smul (share R k) (splitHeads V)[h][j]) (List.finRange k) := by
    have head : (multiHead scale (fun _ => Mask.full.toScoreMod)
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)) (splitHeads V))[h]
        = attention scale Mask.full.toScoreMod
          (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))[h]
          (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y))[h] (splitHeads V)[h] := by
      rw [multiHead, Fin.getElem_fin, Vec.getElem_ofFn]
    have row : ∀ (Q : Matrix R m d) (K V : Matrix R k d),
        (attention scale Mask.full.toScoreMod Q K V)[i]
          = attend (scored scale Mask.full.toScoreMod Q K V i (List.finRange k)) := fun Q K V => by
      rw [attention, Fin.getElem_fin, Vec.getElem_ofFn]
    rw [head, row, ← attend_zero, scored]
    simp only [score]
  rw [getElem_concatHeads, row, Fin.getElem_fin, Vec.getElem_sumOver]
  refine sumOver_congr fun j _ => ?_
  rw [Vec.getElem_smul, Proof.getElem_splitHeads, Vec.getElem_ofFn]

/-- Rows that are 1 at one place and 0 elsewhere have for mean a row of few components. -/
theorem meanAttention_rows (scale : R) (X : Matrix R m d_model) (place : Fin k → Nat)
    (h : ∀ j, place j < num_heads * d) :
    (meanAttention d_model num_heads d).rows scale Mask.full X
        (Vec.ofFn fun j => unit d_model (place j)) (Vec.ofFn fun j => unit d_model (place j))
      = Vec.ofFn fun _ : Fin m =>
        (sparse d_model ((List.finRange k).map fun j => (place j, share R k)) : Vec R d_model) := by
  refine Vector.ext fun i hi => ?_
  have e := Proof.getElem_linear (R := R) (copyLinear (num_heads * d) d_model)
    (concatHeads (multiHead scale (fun _ => Mask.full.toScoreMod)
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows
        (Vec.ofFn fun j => unit d_model (place j))))
      (splitHeads ((copyLinear d_model (num_heads * d)).rows
        (Vec.ofFn fun j => unit d_model (place j)))))) ⟨i, hi⟩
  refine Eq.trans e (Vector.ext fun a ha => ?_)
  rw [Vec.getElem_ofFn, copyLinear_row, getElem_sparse, weightAt, sumOver_map]
  split
  · rename_i ha'
    refine Eq.trans (meanHeads scale X _ _ ⟨i, hi⟩ ⟨a, ha'⟩) (sumOver_congr fun j _ => ?_)
    rw [Proof.getElem_linear, Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn, copyLinear_row]
    simp only [ha, dif_pos, unit, getElem_sparse, weightAt, sumOver_cons, sumOver_nil]
    split <;> grind
  · exact (sumOver_eq_zero fun j _ => if_neg (by have := h j; omega)).symm

end Attention.Claims
