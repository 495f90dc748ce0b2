module

public import Attention.Claims.Memorise.Sparse
public import Attention.Spec.LayerNorm

public section

/-! # Layer normalisations that change nothing, or little

All rows with the same sum of components and the same sum of squares are normalised by one and the
same affine map: gain and bias can undo it, and without them it leaves what the rows tell. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} [OrderedField R] {n : Nat}

/-- The components multiplied by α, with β added. -/
@[expose] def stretch (α β : R) (x : Vec R n) : Vec R n := Vec.map (fun c => α * c + β) x

/-- An inner product with the components multiplied by α, with β added. -/
theorem dot_stretch (α β : R) (w x : Vec R n) : Vec.dot w (stretch α β x)
    = α * Vec.dot w x + β * sumOver (fun i : Fin n => w[i]) (List.finRange n) := by
  rw [Vec.dot, Vec.dot, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add]
  refine sumOver_congr fun i _ => ?_
  rw [Fin.getElem_fin, Fin.getElem_fin, stretch, Vec.getElem_map]
  grind

/-- If α is not 0, nothing is lost. -/
theorem stretch_inj {α β : R} (hα : α ≠ 0) {x y : Vec R n} (e : stretch α β x = stretch α β y) :
    x = y := by
  refine Vector.ext fun i hi => ?_
  have e := congrArg (fun x : Vec R n => x[i]) e
  simp only [stretch, Vec.getElem_map] at e
  have : α * (x[i] - y[i]) = 0 := by grind
  rcases Field.of_mul_eq_zero this with h | h <;> grind

section
variable {A Q : R} {x : Vec R n} (sum : sumOver (fun i : Fin n => x[i]) (List.finRange n) = A)
  (o : Fin n)
include sum o

omit sum in
private theorem count_pos : 0 < sumOver (fun _ : Fin n => (1 : R)) (List.finRange n) := by
  have one := OrderedRing.zero_lt_one (R := R)
  have := le_sumOver (f := fun _ : Fin n => (1 : R)) (fun _ _ => Std.le_of_lt one)
    (List.mem_finRange o)
  exact Std.lt_of_lt_of_le one this

private theorem mean_stretch (α β : R) : mean (stretch α β x)
    = α * (A / sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)) + β := by
  have pos := count_pos (R := R) o
  have e : sumOver (fun i : Fin n => (stretch α β x)[i]) (List.finRange n)
      = α * A + β * sumOver (fun _ : Fin n => (1 : R)) (List.finRange n) := by
    rw [← sum, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add]
    refine sumOver_congr fun i _ => ?_
    rw [Fin.getElem_fin, stretch, Vec.getElem_map]
    grind
  rw [mean, e]
  generalize sumOver (fun _ : Fin n => (1 : R)) (List.finRange n) = count at pos
  grind

private theorem centred_stretch (α β : R) (i : Fin n) : (centred (stretch α β x))[i]
    = α * (x[i] - A / sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)) := by
  have m := mean_stretch sum o α β
  have a : (stretch α β x)[i.val] = α * x[i.val] + β := by rw [stretch, Vec.getElem_map]
  simp only [centred, Fin.getElem_fin, Vec.getElem_map, m, a]
  grind

variable (squares : Vec.dot x x = Q)
include squares

private theorem spread : let μ := A / sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)
    sumOver (fun i : Fin n => (x[i] - μ) * (x[i] - μ)) (List.finRange n) = Q - A * μ := by
  intro μ
  have pos := count_pos (R := R) o
  have hμ : sumOver (fun _ : Fin n => (1 : R)) (List.finRange n) * μ = A :=
    OrderedField.mul_div_cancel (by grind) A
  have e : sumOver (fun i : Fin n => (x[i] - μ) * (x[i] - μ)) (List.finRange n)
      = Vec.dot x x - 2 * μ * sumOver (fun i : Fin n => x[i]) (List.finRange n)
        + μ * μ * sumOver (fun _ : Fin n => (1 : R)) (List.finRange n) := by
    rw [Vec.dot, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_sub, ← sumOver_add]
    exact sumOver_congr fun i _ => by grind
  rw [e, squares, sum]
  grind

private theorem variance_stretch (α β : R) :
    let count := sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)
    variance (stretch α β x) = α * α * (Q - A * (A / count)) / count := by
  intro count
  rw [variance, mean, ← spread sum o squares, ← sumOver_mul_left]
  congr 1
  refine sumOver_congr fun i _ => ?_
  have e := centred_stretch sum o α β i
  rw [Fin.getElem_fin] at e ⊢
  rw [Vec.getElem_map, e]
  simp only [Fin.getElem_fin]
  grind

private theorem variance_pos (zero : x[o] = 0) (hA : A ≠ 0) {α : R} (hα : α ≠ 0) :
    let count := sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)
    0 < α * α * (Q - A * (A / count)) / count := by
  intro count
  have pos : 0 < count := count_pos (R := R) o
  have hμ : count * (A / count) = A := OrderedField.mul_div_cancel (by grind) A
  have h₁ := le_sumOver (f := fun i : Fin n => (x[i] - A / count) * (x[i] - A / count))
    (fun i _ => mul_self_nonneg _) (List.mem_finRange o)
  rw [spread sum o squares] at h₁
  simp only [zero] at h₁
  have square : ∀ {y : R}, y ≠ 0 → 0 < y * y := fun {y} hy => by
    have h₁ := mul_self_nonneg y
    have h₂ : y * y ≠ 0 := fun h => by rcases Field.of_mul_eq_zero h with h | h <;> exact hy h
    grind
  have h₂ := square (y := A / count) fun h => hA (by rw [← hμ, h]; grind)
  rw [Field.div_eq_mul_inv]
  exact OrderedRing.mul_pos (OrderedRing.mul_pos (square hα) (by grind))
    (Field.IsOrdered.inv_pos_iff.mpr pos)

end

/-- The layer normalisation whose gain is the root for rows with the sum A of components and the sum
Q of their squares, and whose bias is their mean. -/
@[expose] def undoingNorm (n : Nat) (sqrt : R → R) (ε A Q : R) : LayerNorm R n :=
  let count : R := sumOver (fun _ => 1) (List.finRange n)
  { gain := Vec.ofFn fun _ => sqrt (1 * 1 * (Q - A * (A / count)) / count + ε)
    bias := Vec.ofFn fun _ => A / count }

/-- The layer normalisation without gain and bias. -/
@[expose] def plainNorm (n : Nat) : LayerNorm R n := ⟨Vec.ofFn fun _ => 1, Vec.ofFn fun _ => 0⟩

variable {sqrt : R → R} (root : ∀ x, 0 < x → 0 < sqrt x) {ε : R} (hε : 0 ≤ ε) {A Q : R} (hA : A ≠ 0)
include root hε hA

/-- It returns them as they are, if they have a component that is 0 and A is not 0. -/
theorem undoingNorm_row {x : Vec R n}
    (sum : sumOver (fun i : Fin n => x[i]) (List.finRange n) = A) (squares : Vec.dot x x = Q)
    (o : Fin n) (zero : x[o] = 0) : (undoingNorm n sqrt ε A Q).row sqrt ε x = x := by
  have one := OrderedRing.zero_lt_one (R := R)
  have e : x = stretch 1 0 x := Vector.ext fun i hi => by rw [stretch, Vec.getElem_map]; grind
  let count := sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)
  have v : variance x = 1 * 1 * (Q - A * (A / count)) / count := by
    conv => lhs; rw [e]
    exact variance_stretch sum o squares 1 0
  have pos : 0 < sqrt (1 * 1 * (Q - A * (A / count)) / count + ε) := root _ (by
    have : 0 < 1 * 1 * (Q - A * (A / count)) / count :=
      variance_pos sum o squares zero hA (α := 1) (by grind)
    grind)
  refine Vector.ext fun i hi => ?_
  have c : (centred x)[i] = 1 * (x[i] - A / count) := by
    conv => lhs; rw [e]
    exact centred_stretch sum o 1 0 ⟨i, hi⟩
  rw [LayerNorm.row, Vec.getElem_ofFn]
  simp only [undoingNorm, Vec.getElem_ofFn, Fin.getElem_fin, v, c]
  generalize sqrt (1 * 1 * (Q - A * (A / count)) / count + ε) = r at pos
  grind

/-- Without gain and bias, normalisation multiplies what is left of the rows by one positive number,
and adds one number. -/
theorem exists_plainNorm (n : Nat) {α : R} (hα : 0 < α) (β : R) : ∃ α' β' : R, 0 < α' ∧
    ∀ x : Vec R n, sumOver (fun i : Fin n => x[i]) (List.finRange n) = A → Vec.dot x x = Q →
      ∀ o : Fin n, x[o] = 0 → (plainNorm n).row sqrt ε (stretch α β x) = stretch α' β' x := by
  let count := sumOver (fun _ : Fin n => (1 : R)) (List.finRange n)
  let r := sqrt (α * α * (Q - A * (A / count)) / count + ε)
  by_cases hr : 0 < r
  · refine ⟨α / r, -(α / r * (A / count)), ?_, fun x sum squares o zero => ?_⟩
    · rw [Field.div_eq_mul_inv]
      exact OrderedRing.mul_pos hα (Field.IsOrdered.inv_pos_iff.mpr hr)
    · have v : variance (stretch α β x) = α * α * (Q - A * (A / count)) / count :=
        variance_stretch sum o squares α β
      refine Vector.ext fun i hi => ?_
      have c : (centred (stretch α β x))[i] = α * (x[i] - A / count) :=
        centred_stretch sum o α β ⟨i, hi⟩
      have e : sqrt (variance (stretch α β x) + ε) = r := by rw [v]
      rw [LayerNorm.row, Vec.getElem_ofFn]
      simp only [e, plainNorm, Vec.getElem_ofFn, Fin.getElem_fin, c]
      rw [stretch, Vec.getElem_map, Field.div_eq_mul_inv, Field.div_eq_mul_inv α r]
      grind
  · refine ⟨1, 0, OrderedRing.zero_lt_one, fun x sum squares o zero => absurd (root _ ?_) hr⟩
    have : 0 < α * α * (Q - A * (A / count)) / count :=
      variance_pos sum o squares zero hA (by grind)
    grind

end Attention.Claims
