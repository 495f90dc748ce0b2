module

public section

/-! # The numbers below `n`, in order -/

namespace Attention

/-- None of them is there twice. -/
theorem nodup_finRange (n : Nat) : (List.finRange n).Nodup :=
  List.pairwise_iff_getElem.mpr fun i j _ _ hij => by
    simp only [List.getElem_finRange, ne_eq, Fin.ext_iff, Fin.val_cast]
    omega

/-- Each of them is there once. -/
theorem count_finRange {n : Nat} (k : Fin n) : (List.finRange n).count k = 1 := by
  rw [(nodup_finRange n).count, if_pos (List.mem_finRange k)]

end Attention
