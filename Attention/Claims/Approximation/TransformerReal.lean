module

public import Attention.Claims.Approximation.ContinuousReal
public import Attention.Claims.Approximation.TransformerApproximates
public import Attention.Model.Real.Logarithm

public section

/-! # Transformers approximate continuous functions on compact sets of real numbers -/

namespace Attention.Claims

open Lean.Grind Model

variable {n m : Nat}

/-- **universal-approximation-transformer-real**: over the real numbers, with their roots: for each
ε > 0 and each continuous function f on a compact set there is a transformer's decoder within ε of f
on the set, whose source does not depend on x and whose target is one row, linear in x. -/
theorem universal_approximation_decoder_real {S : Vec Real n → Prop} (hS : Compact S)
    {f : Vec Real n → Vec Real m} (hf : ContinuousOn S f) {ε : Real} (hε : 0 < ε) {εnorm : Real}
    (hnorm : 0 ≤ εnorm) :
    ∃ T, DecoderComputes Real.sqrt εnorm n m T ∧ ∀ x, S x → Within ε (T x) (f x) := by
  obtain ⟨a, b, inside⟩ := hS.1
  refine universal_approximation_decoder Real.archimedean (fun z hz => Real.sqrt_pos ?_)
    (fun u => ⟨Real.sqrt u, fun z hz hzu => Real.sqrt_le ?_ hzu⟩) inside hε f
    fun _ hη => uniformlyContinuous_of_compact hS hf hη
  · exact Std.lt_of_le_of_lt hnorm hz
  · exact Std.le_trans hnorm (Std.le_of_lt hz)

/-- So there is a transformer, as the claim has them. -/
theorem universal_approximation_transformer_real {S : Vec Real n → Prop} (hS : Compact S)
    {f : Vec Real n → Vec Real m} (hf : ContinuousOn S f) {ε : Real} (hε : 0 < ε) {εnorm : Real}
    (hnorm : 0 ≤ εnorm) :
    ∃ T, TransformerComputes Real.sqrt εnorm n m T ∧ ∀ x, S x → Within ε (T x) (f x) :=
  (universal_approximation_decoder_real hS hf hε hnorm).imp
    fun _ h => ⟨h.1.transformerComputes, h.2⟩

end Attention.Claims
