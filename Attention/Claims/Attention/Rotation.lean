module

public import Attention.Claims.Attention.Order

public section

/-! # Rotating queries and keys

Claimed: a unitary map of the queries alone leaves the weights unchanged. True: the same map of
queries and keys does. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- U is a unitary map of real vectors (an orthogonal one): linear, onto, and it preserves inner
products. -/
@[expose] def IsUnitary [Add S] [Mul S] [OfNat S 0] (U : Vec S d → Vec S d) : Prop :=
  (∀ x y, U (Vec.add x y) = Vec.add (U x) (U y)) ∧ (∀ c x, U (Vec.smul c x) = Vec.smul c (U x)) ∧
    (∀ y, ∃ x, U x = y) ∧ ∀ x y, Vec.dot (U x) (U y) = Vec.dot x y

/-- The two coordinates of a plane, swapped. -/
@[expose] def swap (x : Vec S 2) : Vec S 2 := reindex Fin.rev x

/-- The claim `SoftmaxInvariance`. -/
@[expose] def SoftmaxInvariance [Add S] [Mul S] [OfNat S 0] (weights : List S → List R)
    (scale : S) : Prop :=
  ∀ (kv_len d : Nat) (U : Vec S d → Vec S d), IsUnitary U →
    ∀ (q : Vec S d) (ks : Matrix S kv_len d),
      weights (scores scale (U q) ks) = weights (scores scale q ks)

/-- A vector of two components. -/
private theorem eq_two (x : Vec S 2) : x = #v[x[0], x[1]] :=
  Vector.ext fun i hi => match i, hi with
    | 0, _ => rfl
    | 1, _ => rfl

/-- Swapping coordinates is unitary. -/
theorem swap_isUnitary [OrderedCommRing S] : IsUnitary (swap : Vec S 2 → Vec S 2) := by
  have h : ∀ x : Vec S 2, swap x = #v[x[1], x[0]] := fun x => by
    refine Vector.ext fun i hi => ?_
    match i, hi with
    | 0, _ => rw [swap, getElem_reindex]; rfl
    | 1, _ => rw [swap, getElem_reindex]; rfl
  refine ⟨fun x y => ?_, fun c x => ?_, fun y => ⟨swap y, ?_⟩, fun x y => ?_⟩
  · refine Vector.ext fun i hi => ?_
    simp only [swap, getElem_reindex, Vec.getElem_add, Fin.getElem_fin]
  · refine Vector.ext fun i hi => ?_
    simp only [swap, getElem_reindex, Vec.getElem_smul, Fin.getElem_fin]
  · rw [h, h]
    exact (eq_two y).symm
  · rw [h, h, dot_two, eq_two x, eq_two y, dot_two]
    simp only [Vector.getElem_mk, List.getElem_toArray, List.getElem_cons_zero,
      List.getElem_cons_succ]
    grind

/-- Scores c and 0, and 0 and c: queries (1, 0) and (0, 1), and keys the same. -/
private theorem SoftmaxInvariance.refute [OrderedCommRing S] {weights : List S → List R} {c : S}
    (hne : weights [c, 0] ≠ weights [0, c]) : ¬ SoftmaxInvariance weights c := by
  intro h
  have e := h 2 2 swap swap_isUnitary #v[1, 0] #v[#v[1, 0], #v[0, 1]]
  have hs : swap #v[1, 0] = (#v[0, 1] : Vec S 2) := rfl
  rw [hs, scores_two (x := 0) (y := c) (by rw [dot_two]; grind) (by rw [dot_two]; grind),
    scores_two (x := c) (y := 0) (by rw [dot_two]; grind) (by rw [dot_two]; grind)] at e
  exact hne e.symm

/-- Weights change when the query alone is mapped: for every exponential, and every scale but 0. -/
theorem softmaxInvariance_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R] {scale : S}
    (hs : scale ≠ 0) : ¬ SoftmaxInvariance (expSoftmax : List S → List R) scale :=
  SoftmaxInvariance.refute fun h => by
    obtain ⟨x, y, h₁, h₂, hne⟩ := expSoftmax_two (R := R) hs
    rw [h₁, h₂] at h
    exact hne (List.cons.inj h).1

/-- They change with the softmax that lacks the exponential, too. -/
theorem softmaxInvariance_ratio_refuted : ¬ SoftmaxInvariance (ratio : List Rat → List Rat) 1 :=
  SoftmaxInvariance.refute (by decide +kernel)

/-- A map that preserves inner products may be applied to queries and keys together: whatever the
weights. -/
theorem scores_rotate [Add S] [Mul S] [OfNat S 0] {U : Vec S d → Vec S d}
    (hU : ∀ x y, Vec.dot (U x) (U y) = Vec.dot x y) (scale : S) (q : Vec S d)
    (ks : Matrix S kv_len d) : scores scale (U q) (Vec.map U ks) = scores scale q ks := by
  simp only [scores, Fin.getElem_fin, Vec.getElem_map, hU]

/-- A map that preserves inner products may be applied to queries and keys together: attention
stays. -/
theorem attention_rotate [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
    {U : Vec S d → Vec S d} (hU : ∀ x y, Vec.dot (U x) (U y) = Vec.dot x y) (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) :
    attention scale modify (Vec.map U Q) (Vec.map U K) V = attention scale modify Q K V := by
  simp only [attention, scored, score, Fin.getElem_fin, Vec.getElem_map, hU]

end Attention.Claims
