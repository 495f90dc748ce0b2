module

public import Attention.Proof.Enclosure.RelatedGradients
public import Attention.Proof.Real.Exact

public section

/-! # The gradients of the exact model are true of the real numbers

Those by queries and keys come divided by ln 2, since the scale does not have that factor. -/

namespace Attention.Proof

open Spec Model

variable {q_len kv_len d d_v : Nat}

/-- A gradient by queries or keys of the exact model as a real number, multiplied by ln 2. -/
@[expose] noncomputable def realGradient (x : Rat) : Real := Real.ofRat x * Real.log 2

instance : KeptBySum (IsImage realGradient) where
  zero := (Lean.Grind.Semiring.zero_mul _).symm
  add {I J x y} hx hy := by
    rw [hx, hy, IsImage, realGradient, realGradient, realGradient, Real.ofRat_add]
    exact (Lean.Grind.Semiring.right_distrib ..).symm

instance : KeptByMul (IsImage realGradient) (IsImage Real.ofRat) (IsImage realGradient) where
  mul {I J x y} hx hy := by
    rw [hx, hy, IsImage, realGradient, realGradient, Real.ofRat_mul]
    grind

/-- The slope of the score transformation of real numbers, at a score of the exact model multiplied
by ln 2, is that of the exact model at the score itself. -/
abbrev SlopeIsReal (slope : ScoreSlope Int Rat q_len kv_len)
    (slope' : ScoreSlope Real Real q_len kv_len) : Prop :=
  SlopeRelated (IsImage realScore) (IsImage Real.ofRat) slope slope'

variable (scale : Int) {modify : ScoreMod Int q_len kv_len}
variable {modify' : ScoreMod Real q_len kv_len} (hmodify : ModIsReal modify modify')
variable {slope : ScoreSlope Int Rat q_len kv_len} {slope' : ScoreSlope Real Real q_len kv_len}
variable (hslope : SlopeIsReal slope slope') (Q : Matrix Int q_len d) (K : Matrix Int kv_len d)
variable (V : Matrix Rat kv_len d_v) (dO : Matrix Rat q_len d_v) (dLse : Vec Rat q_len)
include hmodify hslope

/-- **exact-gradients-are-real**: the gradients over the exact model, taken for real numbers, are
those of attention with the natural exponential and the scale multiplied by ln 2; those by queries
and keys are to be multiplied by ln 2. -/
theorem vjp_real :
    let real := vjp (Real.ofInt scale * Real.log 2) modify' slope' (Vec.map (Vec.map Real.ofInt) Q)
      (Vec.map (Vec.map Real.ofInt) K) (Vec.map (Vec.map Real.ofRat) V) id
      (Vec.map (Vec.map Real.ofRat) dO) (Vec.map Real.ofRat dLse)
    let exact := vjp scale modify slope Q K V (fun s : Int => (s : Rat)) dO dLse
    real.dQ = Vec.map (Vec.map fun x => Real.ofRat x * Real.log 2) exact.dQ
      ∧ real.dK = Vec.map (Vec.map fun x => Real.ofRat x * Real.log 2) exact.dK
      ∧ real.dV = Vec.map (Vec.map Real.ofRat) exact.dV
      ∧ real.dBias = Vec.map (Vec.map Real.ofRat) exact.dBias :=
  have h : GradientsRelated (IsImage realGradient) (IsImage Real.ofRat) _ _ :=
    related_vjp isImage_scale hmodify related_image_matrix related_image_matrix related_image_matrix
      related_image_matrix related_image hslope (fun _ _ hx => hx) fun _ _ hx => hx
  ⟨h.dQ.eq_map_map, h.dK.eq_map_map, h.dV.eq_map_map, h.dBias.eq_map_map⟩

/-- **exact-dropout-gradients-are-real**: so are those with dropout, by any factors. -/
theorem vjpDropout_real (Z : WeightFactor Rat q_len kv_len) :
    let real := vjpDropout (Real.ofInt scale * Real.log 2) modify' slope'
      (Vec.map (Vec.map Real.ofInt) Q) (Vec.map (Vec.map Real.ofInt) K)
      (Vec.map (Vec.map Real.ofRat) V) (fun i j => Real.ofRat (Z i j)) id
      (Vec.map (Vec.map Real.ofRat) dO) (Vec.map Real.ofRat dLse)
    let exact := vjpDropout scale modify slope Q K V Z (fun s : Int => (s : Rat)) dO dLse
    real.dQ = Vec.map (Vec.map fun x => Real.ofRat x * Real.log 2) exact.dQ
      ∧ real.dK = Vec.map (Vec.map fun x => Real.ofRat x * Real.log 2) exact.dK
      ∧ real.dV = Vec.map (Vec.map Real.ofRat) exact.dV
      ∧ real.dBias = Vec.map (Vec.map Real.ofRat) exact.dBias :=
  have h : GradientsRelated (IsImage realGradient) (IsImage Real.ofRat) _ _ :=
    related_vjpDropout (Z' := Z) (Z := fun i j => Real.ofRat (Z i j)) isImage_scale hmodify
      related_image_matrix related_image_matrix related_image_matrix related_image_matrix
      related_image (fun _ _ => isImage_apply) hslope (fun _ _ hx => hx) fun _ _ hx => hx
  ⟨h.dQ.eq_map_map, h.dK.eq_map_map, h.dV.eq_map_map, h.dBias.eq_map_map⟩

end Attention.Proof
