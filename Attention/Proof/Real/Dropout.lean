module

public import Attention.Proof.Enclosure.RelatedGradients
public import Attention.Proof.Real.Exact
public import Attention.Spec.Dropout

public section

/-! # The exact model's results with dropout are true of the real numbers

Dropout multiplies softmax weights by factors, and the exact model has the real weights. So only the
factors are to be taken for real numbers. -/

namespace Attention.Proof

open Spec Model

variable {q_len kv_len d d_v : Nat} (scale : Int) {modify : ScoreMod Int q_len kv_len}
variable {modify' : ScoreMod Real q_len kv_len} (hmodify : ModIsReal modify modify')
variable (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v)
variable (Z : WeightFactor Rat q_len kv_len)
include hmodify

/-- **exact-dropout-is-real**: attention with dropout over the exact model, by any factors, taken
for real numbers, is that with the natural exponential and the scale multiplied by ln 2. -/
theorem attentionDropout_real :
    attentionDropout (Real.ofInt scale * Real.log 2) modify' (Vec.map (Vec.map Real.ofInt) Q)
        (Vec.map (Vec.map Real.ofInt) K) (Vec.map (Vec.map Real.ofRat) V)
        (fun i j => Real.ofRat (Z i j))
      = Vec.map (Vec.map Real.ofRat) (attentionDropout scale modify Q K V Z) :=
  VecRelated.eq_map_map (by enclose [attentionDropout])

end Attention.Proof
