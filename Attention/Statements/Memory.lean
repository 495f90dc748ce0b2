module

public import Attention.Model.Pebble
import Attention.Claims.Memory.LowerBound

public section

/-! # What moves between two memories -/

namespace Attention.Statements

open Model.Pebble

universe u

/-- Let fast memory have room for `M` elements, d² ≤ M. A play of the red-blue pebble game that is
allowed and forms each score as a sum of its d products, in any order and with any brackets,
computing again what it likes and anything else besides, moves at least q_len·kv_len·d² / 6M
elements. -/
theorem io_lower_bound {q_len kv_len d M : Nat} {α : Type u} [DecidableEq α]
    {play : List (Move q_len kv_len d α)} (hd : d * d ≤ M)
    (legal : (run bySums M start play).isSome) (forms : ∀ i j, Forms bySums M start play i j) :
    q_len * kv_len * (d * d) ≤ 6 * M * transfers play :=
  Claims.io_lower_bound hd legal forms

end Attention.Statements
