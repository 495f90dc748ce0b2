module

public import Attention.Spec.ScoreMods

public section

/-! # Softcap without the exponential of a positive number

(e − 1) / (e + 1) with e = exp 2x is ∞ / ∞ where exp 2x overflows. Kernels take the exponential of
−2|x|.
Source: Cephes, `tanhf` (Moshier), for |x| ≥ 5/8; `tanh` in `pyimpl/backends/kernels/parts`. -/

namespace Attention.Spec

universe u

variable {S : Type u} {q_len kv_len : Nat}
variable [Add S] [Sub S] [Mul S] [Div S] [OfNat S 0] [OfNat S 1] [LE S] [DecidableLE S] [Exp S S]

/-- The hyperbolic tangent: ±(1 − 2e / (1 + e)) with e = exp (−2|x|). -/
@[expose] def safeTanh (x : S) : S :=
  let size := if 0 ≤ x then x else 0 - x
  let e : S := exp (0 - (size + size))
  let t := 1 - (e + e) / (1 + e)
  if 0 ≤ x then t else 0 - t

/-- Softcap by this tangent. -/
@[expose] def ScoreMod.safeSoftcap (cap : S) : ScoreMod S q_len kv_len :=
  fun _ _ s => some (cap * safeTanh (s / cap))

end Attention.Spec
