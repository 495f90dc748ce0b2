module

public import Attention.Algebra.Vector

public section

/-! # Which places of a sequence each device holds

Contiguous stretches, the two ends of a sequence folded together (zigzag), or every n-th place.
Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context" (contiguous); Brandon et al. 2023, "Striped Attention"; Grattafiori et al. 2024, "The Llama
3 Herd of Models", section 3.3.2 (zigzag); stretches as PyTorch's `tensor_split` has them. -/

namespace Attention.Spec

variable {n len : Nat}

/-- The places of which device `i` is the owner, in their order. -/
@[expose] def placesOf (owner : Fin len → Fin n) (i : Fin n) : List (Fin len) :=
  (List.finRange len).filter fun j => owner j == i

/-- The first place of stretch `s`, where `len` places are cut into n stretches, the first `len % n`
of which are longer by one. -/
@[expose] def stretchStart (n len s : Nat) : Nat := s * (len / n) + min s (len % n)

/-- The number of stretches that begin after the first one, at or before place `j`. -/
@[expose] def stretchOf (n len j : Nat) : Nat :=
  ((List.range' 1 (n - 1)).filter fun s => decide (stretchStart n len s ≤ j)).length

/-- Contiguous: device i holds stretch i of n. -/
@[expose] def contiguousOwner (h : 0 < n) (j : Fin len) : Fin n :=
  ⟨stretchOf n len j, by
    have := List.length_filter_le (fun s => decide (stretchStart n len s ≤ j))
      (List.range' 1 (n - 1))
    rw [List.length_range'] at this
    unfold stretchOf
    omega⟩

/-- Zigzag: of 2 · n stretches device i holds those with the numbers i and 2 · n − 1 − i. -/
@[expose] def zigzagOwner (h : 0 < n) (j : Fin len) : Fin n :=
  let s := stretchOf (2 * n) len j
  ⟨min s (2 * n - 1 - s), by omega⟩

/-- Striped: device i holds the places i, i + n, i + 2 · n, … -/
@[expose] def stripedOwner (h : 0 < n) (j : Fin len) : Fin n := ⟨j % n, Nat.mod_lt _ h⟩

end Attention.Spec
