module

public import Attention.Proof.Real.Exact
public import Attention.Spec.Backward
public import Attention.Spec.Slopes

public section

/-! # The gradients of the exact model are true of the real numbers

Those by queries and keys come divided by ln 2, since the scale does not have that factor. -/

namespace Attention.Proof

open Spec Model Lean.Grind

variable {q_len kv_len d d_v : Nat}

/-- The slope of the score transformation of real numbers, at a score of the exact model multiplied
by ln 2, is that of the exact model at the score itself. -/
@[expose] def SlopeIsReal (slope : ScoreSlope Int Rat q_len kv_len)
    (slope' : ScoreSlope Real Real q_len kv_len) : Prop :=
  ∀ i j s, slope' i j (realScore s) = Real.ofRat (slope i j s)

/-- Where scores are masked or added to, the slope is 1 in both. -/
theorem slopeOne_isReal : SlopeIsReal (q_len := q_len) (kv_len := kv_len) ScoreSlope.one
    ScoreSlope.one := fun _ _ _ => Real.one_eq

private theorem dot_ofRat {n : Nat} (x y : Vec Rat n) :
    Vec.dot (Vec.map Real.ofRat x) (Vec.map Real.ofRat y) = Real.ofRat (Vec.dot x y) := by
  rw [Vec.dot, Vec.dot, Real.ofRat_sumOver]
  refine sumOver_congr fun i _ => ?_
  simp only [Fin.getElem_fin, Vec.getElem_map, Real.ofRat_mul]

/-- The scale times ln 2, and a sum of products of rationals with integers. -/
private theorem scaled_sum {α : Type} (scale : Int) (f : α → Rat × Rat × Int) (xs : List α) :
    Real.ofInt scale * Real.log 2 * sumOver
        (fun k => Real.ofRat (f k).1 * Real.ofRat (f k).2.1 * id (Real.ofInt (f k).2.2)) xs
      = Real.ofRat (scale * sumOver (fun k => (f k).1 * (f k).2.1 * ((f k).2.2 : Rat)) xs)
        * Real.log 2 := by
  simp only [Real.ofRat_mul, Real.ofRat_sumOver, id, Real.ofInt]
  generalize sumOver _ xs = t
  grind

variable (scale : Int) {modify : ScoreMod Int q_len kv_len}
variable {modify' : ScoreMod Real q_len kv_len} (hmodify : ModIsReal modify modify')
variable {slope : ScoreSlope Int Rat q_len kv_len} {slope' : ScoreSlope Real Real q_len kv_len}
variable (hslope : SlopeIsReal slope slope')
variable (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v)
variable (dO : Matrix Rat q_len d_v) (dLse : Vec Rat q_len)

include hmodify in
/-- The gradients by the transformed scores. -/
theorem scoreGradients_real :
    scoreGradients (Real.ofInt scale * Real.log 2) modify' (Vec.map (Vec.map Real.ofInt) Q)
        (Vec.map (Vec.map Real.ofInt) K) (Vec.map (Vec.map Real.ofRat) V)
        (Vec.map (Vec.map Real.ofRat) dO) (Vec.map Real.ofRat dLse)
      = Vec.map (Vec.map Real.ofRat) (scoreGradients scale modify Q K V dO dLse) := by
  refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
  simp only [scoreGradients, attention_real scale hmodify, probabilities_real scale hmodify,
    scoreGradient, rowDelta, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map, dot_ofRat,
    Real.ofRat_mul, Real.ofRat_sub]

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
      ∧ real.dBias = Vec.map (Vec.map Real.ofRat) exact.dBias := by
  have hZ : ∀ (i : Fin q_len) (j : Fin kv_len), slope' i j (Real.ofInt scale * Real.log 2
      * Vec.dot (Vec.map Real.ofInt Q[i.val]) (Vec.map Real.ofInt K[j.val]))
      = Real.ofRat (slope i j (scale * Vec.dot Q[i.val] K[j.val])) := fun i j => by
    have h := mul_dot_real scale Q K i j
    simp only [Fin.getElem_fin, Vec.getElem_map] at h
    rw [h, hslope]
  refine ⟨?_, ?_, ?_, ?_⟩
  · refine Vector.ext fun i hi => Vector.ext fun t ht => ?_
    simp only [vjp, scoreGradients_real scale hmodify, Fin.getElem_fin, Vec.getElem_ofFn,
      Vec.getElem_map, Vec.getElem_smul, Vec.getElem_sumOver, hZ]
    exact scaled_sum scale (fun j => (_, _, _)) _
  · refine Vector.ext fun i hi => Vector.ext fun t ht => ?_
    simp only [vjp, scoreGradients_real scale hmodify, Fin.getElem_fin, Vec.getElem_ofFn,
      Vec.getElem_map, Vec.getElem_smul, Vec.getElem_sumOver, hZ]
    exact scaled_sum scale (fun j => (_, _, _)) _
  · refine Vector.ext fun i hi => Vector.ext fun t ht => ?_
    simp only [vjp, probabilities_real scale hmodify, Fin.getElem_fin, Vec.getElem_ofFn,
      Vec.getElem_map, Vec.getElem_smul, Vec.getElem_sumOver, Real.ofRat_sumOver, Real.ofRat_mul]
  · exact scoreGradients_real scale hmodify Q K V dO dLse

end Attention.Proof
