module

public import Attention.Claims.Approximation.TransformerApproximates

public section

/-! # Wrong variants of a transformer that approximates

A root that may be 0, queries that are components instead of differences of them, and one choice of
points for every ε. -/

namespace Attention.WrongVariants

open Spec Claims Lean.Grind

universe v

attribute [local instance] Semiring.natCast

variable {R : Type v} [OrderedField R] {n m k : Nat}

/-! ## Roots that are 0 -/

/-- The statement of `universal_approximation_decoder` about the numbers of [−1, 1], for one root.
-/
abbrev DecodersApproximate [Exp R R] (sqrt : R → R) (εnorm : R) : Prop :=
  ∀ (ε : R) (f : Vec R 1 → Vec R 1), 0 < ε →
    (∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ x y, InBox (-1) 1 x → InBox (-1) 1 y →
      (∀ k : Fin 1, AtMost δ (x[k] - y[k])) → ∀ c : Fin 1, AtMost η ((f x)[c] - (f y)[c])) →
    ∃ T, DecoderComputes sqrt εnorm 1 1 T ∧
      ∀ x, InBox (-1) 1 x → ∀ c : Fin 1, AtMost ε ((T x)[c] - (f x)[c])

/-- Positive control: a root that is always 1. -/
theorem decodersApproximate_one [NaturalExp R]
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (εnorm : R) : DecodersApproximate (fun _ : R => 1) εnorm := fun _ f hε hf =>
  universal_approximation_decoder archimedean (fun _ _ => OrderedRing.zero_lt_one)
    (fun _ => ⟨1, fun _ _ _ => Std.le_refl _⟩) (fun _ h => h) hε f hf

private theorem norm_zero (ε : R) (N : LayerNorm R n) (X : Matrix R k n) :
    N.rows (fun _ => 0) ε X = Vec.ofFn fun _ => N.bias :=
  Vector.ext fun i hi => Vector.ext fun j hj => by
    simp only [LayerNorm.rows, LayerNorm.row, Vec.getElem_map, Vec.getElem_ofFn, Fin.getElem_fin]
    grind

private theorem addRows_assoc (X Y Z : Matrix R k n) :
    addRows (addRows X Y) Z = addRows X (addRows Y Z) :=
  Vector.ext fun i hi => Vector.ext fun j hj => by
    simp only [addRows, Vec.getElem_ofFn, Fin.getElem_fin, Vec.getElem_add]
    grind

/-- With a root that is 0 a decoder adds the same to each input. -/
private theorem decode_zero [Exp R R] {t s num_heads d d_ff : Nat} (ε scale : R) (mask : Mask t t)
    (crossMask : Mask t s) (context : Matrix R s n)
    (layers : List (DecoderLayer R n num_heads d d_ff)) :
    ∃ Y : Matrix R t n, ∀ X, decode (fun _ => 0) ε scale mask crossMask layers context X
      = addRows X Y := by
  unfold decode
  induction layers with
  | nil =>
    refine ⟨Vec.ofFn fun _ => Vec.zero, fun X => Vector.ext fun i hi => Vector.ext fun j hj => ?_⟩
    simp only [List.foldl, addRows, Vec.getElem_ofFn, Fin.getElem_fin, Vec.getElem_add,
      Vec.getElem_zero]
    grind
  | cons L layers ih =>
    obtain ⟨Y, h⟩ := ih
    refine ⟨addRows (L.attention.rows scale mask (Vec.ofFn fun _ => L.attentionNorm.bias)
        (Vec.ofFn fun _ => L.attentionNorm.bias) (Vec.ofFn fun _ => L.attentionNorm.bias))
      (addRows (L.cross.rows scale crossMask (Vec.ofFn fun _ => L.crossNorm.bias) context context)
        (addRows (L.feedForward.rows (Vec.ofFn fun _ => L.feedForwardNorm.bias)) Y)), fun X => ?_⟩
    rw [List.foldl, h]
    simp only [DecoderLayer.preNorm, norm_zero, addRows_assoc]

private theorem row_middle {x y z : Vec R n} (W : Linear R n m)
    (h : ∀ i : Fin n, x[i] + y[i] = 2 * z[i]) (j : Fin m) :
    (W.row x)[j] + (W.row y)[j] = 2 * (W.row z)[j] := by
  have e : Vec.dot W.weight[j] x + Vec.dot W.weight[j] y = 2 * Vec.dot W.weight[j] z := by
    rw [Vec.dot, Vec.dot, Vec.dot, ← sumOver_add, ← sumOver_mul_left]
    exact sumOver_congr fun i _ => by have := h i; grind
  simp only [Linear.row, Fin.getElem_fin, Vec.getElem_ofFn] at e ⊢
  grind

/-- A root that is always 0: what a decoder computes is linear, and x² is not near a linear function
on [−1, 1]. -/
theorem decodersApproximate_zero_refuted [Exp R R] (εnorm : R) :
    ¬ DecodersApproximate (fun _ : R => 0) εnorm := fun claim => by
  have one := OrderedRing.zero_lt_one (R := R)
  obtain ⟨T, ⟨s, d_model, num_heads, d, d_ff, scale, context, target, decoder, crossMask, output,
    hT⟩, near⟩ := claim (1 / 4) (Vec.map fun x => x * x) (by grind) fun η hη =>
      ⟨η / 2, by grind, fun x y hx hy h c => by
        have h₁ := hx c
        have h₂ := hy c
        have h₃ := (h c).mul (show AtMost 2 (x[c] + y[c]) from ⟨by grind, by grind⟩)
        simp only [Fin.getElem_fin, Vec.getElem_map] at h₃ ⊢
        have e : η / 2 * 2 = η := by grind
        rw [e] at h₃
        have e : x[c.val] * x[c.val] - y[c.val] * y[c.val]
            = (x[c.val] - y[c.val]) * (x[c.val] + y[c.val]) := by grind
        rwa [e]⟩
  obtain ⟨Y, hY⟩ := decode_zero εnorm scale Mask.full crossMask context decoder
  have at_ : ∀ t : R, (T #v[t])[(0 : Fin 1)]
      = (output.row (Vec.add (target.row #v[t]) Y[(0 : Fin 1)]))[(0 : Fin 1)] := fun t => by
    rw [hT, hY, Proof.getElem_linear, Proof.getElem_addRows] <;> rfl
  have middle := row_middle (x := Vec.add (target.row #v[1]) Y[(0 : Fin 1)])
    (y := Vec.add (target.row #v[-1]) Y[(0 : Fin 1)])
    (z := Vec.add (target.row #v[0]) Y[(0 : Fin 1)]) output (fun i => by
      have := row_middle (x := #v[1]) (y := #v[-1]) (z := #v[0]) target (fun k => by
        obtain rfl : k = 0 := Subsingleton.elim _ _
        show (1 : R) + -1 = 2 * 0
        grind) i
      simp only [Fin.getElem_fin, Vec.getElem_add] at this ⊢
      grind) 0
  rw [← at_, ← at_, ← at_] at middle
  have box : ∀ t : R, -1 ≤ t → t ≤ 1 → InBox (-1) 1 (#v[t] : Vec R 1) := fun t h h' k => by
    obtain rfl : k = 0 := Subsingleton.elim _ _
    exact ⟨h, h'⟩
  have square : ∀ t : R, (Vec.map (fun x => x * x) (#v[t] : Vec R 1))[(0 : Fin 1)] = t * t :=
    fun t => rfl
  have h₁ := (near _ (box 1 (by grind) (by grind)) 0).1
  have h₂ := (near _ (box (-1) (by grind) (by grind)) 0).1
  have h₃ := (near _ (box 0 (by grind) (by grind)) 0).2
  rw [square] at h₁ h₂ h₃
  grind

/-! ## Queries -/

/-- The property of the query of an input x that is used: it is a multiple of (1, 2 x). -/
abbrev AsksForInput (query : Linear Rat 4 2) : Prop :=
  ∀ x : Vec Rat 1, ∃ τ : Rat, ∀ j : Fin 2,
    (query.row ((plainNorm _).row (fun _ => 1) 0 ((inputRow 1 1).row x)))[j]
      = τ * (pointQuery x)[j]

/-- Positive control: differences. -/
theorem differences_askForInput : AsksForInput (differences 1 1 2) := fun x =>
  ⟨1, fun j => by
    have one : ∀ y : Rat, y / 1 = 1 * y := fun y => by grind
    exact (query_input (m := 1) (fun _ => (1 : Rat)) 0 x (k := 2) j.isLt).trans
      ((dif_pos j.isLt).trans (one _))⟩

/-- The components as they are: normalisation has subtracted the mean, which depends on x. -/
theorem components_askForInput_refuted :
    ¬ AsksForInput ⟨#v[#v[0, 1, 0, 0], #v[2, 0, 0, 0]], #v[0, 0]⟩ := fun h => by
  obtain ⟨τ, h⟩ := h #v[0]
  have e := h 1
  have zero : (pointQuery (#v[0] : Vec Rat 1))[(1 : Fin 2)] = 0 := by decide +kernel
  rw [zero, Semiring.mul_zero] at e
  exact absurd e (by decide +kernel)

/-! ## One choice of points for every ε -/

private theorem eq_of_near {y t : R} (near : ∀ ε, 0 < ε → AtMost ε (y - t)) : y = t := by
  refine Classical.byContradiction fun hn => ?_
  rcases Std.le_total (a := y) (b := t) with h | h
  · have := (near ((t - y) / 2) (by grind)).1
    grind
  · have := (near ((y - t) / 2) (by grind)).2
    grind

/-- `attention_approximates_on_sets` for the identity on [0, 1], with the points chosen before ε:
then attention would be the identity there. But at 0 it is 0 only if all values are. -/
theorem pointsBeforeError_refuted [NaturalExp R] :
    ¬ ∃ (kv_len : Nat) (C : Matrix R kv_len 1) (β : R), (∀ k : Fin kv_len, InBox 0 1 C[k]) ∧
      ∀ ε : R, 0 < ε → ∀ t : R, 0 ≤ t → t ≤ 1 →
        AtMost ε ((attendPoints β #v[#v[t]] C C)[(0 : Fin 1)][(0 : Fin 1)] - t) := by
  rintro ⟨kv_len, C, β, inside, h⟩
  have one := OrderedRing.zero_lt_one (R := R)
  let w (t : R) (k : Fin kv_len) : R := weight (score β Mask.full.toScoreMod
    (Vec.map pointQuery (#v[#v[t]] : Matrix R 1 1)) (Vec.map pointKey C) 0 k)
  have formula : ∀ t : R, (attendPoints β #v[#v[t]] C C)[(0 : Fin 1)][(0 : Fin 1)]
      = sumOver (fun k => w t k * C[k][(0 : Fin 1)]) (List.finRange kv_len)
        / sumOver (w t) (List.finRange kv_len) := fun t => by
    rw [attendPoints]
    exact Proof.getElem_attention_eq_weights ..
  have pos : ∀ t k, 0 < w t k := fun t k => by
    show 0 < (weight (score _ _ _ _ _ _) : R)
    rw [score_points, weight]
    exact Exponential.exp_pos _
  have equal : ∀ t : R, 0 ≤ t → t ≤ 1 → sumOver (fun k => w t k * C[k][(0 : Fin 1)])
      (List.finRange kv_len) / sumOver (w t) (List.finRange kv_len) = t := fun t h₀ h₁ =>
    (formula t).symm.trans (eq_of_near fun ε hε => h ε hε t h₀ h₁)
  have zero : ∀ k : Fin kv_len, C[k][(0 : Fin 1)] = 0 := fun k => by
    have hl : 0 < sumOver (w 0) (List.finRange kv_len) := Std.lt_of_lt_of_le (pos 0 k)
      (le_sumOver (fun k _ => Std.le_of_lt (pos 0 k)) (List.mem_finRange k))
    have e := OrderedField.mul_div_cancel (b := sumOver (w 0) (List.finRange kv_len)) (by grind)
      (sumOver (fun k => w 0 k * C[k][(0 : Fin 1)]) (List.finRange kv_len))
    rw [equal 0 (Std.le_refl _) (Std.le_of_lt one), Semiring.mul_zero] at e
    have le := le_sumOver (f := fun k => w 0 k * C[k][(0 : Fin 1)]) (fun k _ =>
      OrderedRing.mul_nonneg (Std.le_of_lt (pos 0 k)) (inside k 0).1) (List.mem_finRange k)
    rw [← e] at le
    have h₀ := (inside k 0).1
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos (pos 0 k) (b := C[k][(0 : Fin 1)]) (by grind)
    grind
  have e := equal 1 (Std.le_of_lt one) (Std.le_refl _)
  have none : sumOver (fun k => w 1 k * C[k][(0 : Fin 1)]) (List.finRange kv_len) = 0 :=
    sumOver_eq_zero fun k _ => by rw [zero, Semiring.mul_zero]
  rw [none, Field.div_eq_mul_inv, Semiring.zero_mul] at e
  grind

end Attention.WrongVariants
