module

public import Attention.Algebra.SumExchange
public import Attention.Proof.Flash.Tiles

public section

/-! # A sum may be taken tile by tile, tiles of zeros left out -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type v} [OrderedField R] {n : Nat}

/-- Sums over the tiles of a range, each that of its tile, are the sum over everything if the tiles
outside the range sum to 0. -/
theorem sumOver_tiles {b : Nat} (hb : 0 < b) (f : Fin n → R) (r : TileRange) {g : Nat → R}
    (hin : ∀ t, r.contains t = true → g t = sumOver f (tile b (List.finRange n) t))
    (hout : ∀ t, r.contains t = false → sumOver f (tile b (List.finRange n) t) = 0) :
    sumOver g (List.range' r.first (r.stop - r.first)) = sumOver f (List.finRange n) := by
  let G : Nat → List (Fin n) := fun t =>
    if r.contains t then tile b (List.finRange n) t else []
  have h₁ : sumOver g (List.range' r.first (r.stop - r.first))
      = sumOver f ((List.range' r.first (r.stop - r.first)).flatMap G) := by
    rw [sumOver_flatMap]
    refine sumOver_congr fun t ht => ?_
    have ht := List.mem_range'_1.mp ht
    have hc : r.contains t = true := by
      simp only [TileRange.contains, Bool.and_eq_true, decide_eq_true_eq]
      omega
    rw [hin t hc]
    simp only [G, hc, if_true]
  have h₂ := flatMap_range G (numTiles n b) r (fun u hu => by
    simp only [G]
    rw [tile_eq_nil hb (by rw [List.length_finRange]; exact hu)]
    exact ite_self _) fun u hu => by
    simp only [G, hu, Bool.false_eq_true, if_false]
  have h₃ := flatMap_tile hb (List.finRange n)
  rw [List.length_finRange] at h₃
  rw [h₁, h₂, ← h₃, sumOver_flatMap, sumOver_flatMap]
  refine sumOver_congr fun t _ => ?_
  cases hc : r.contains t
  · rw [hout t hc]
    simp only [G, hc, Bool.false_eq_true, if_false, sumOver_nil]
  · simp only [G, hc, if_true]

/-- A component of vectors that are added one after the other. -/
theorem getElem_foldl_add {α : Type u} {d : Nat} (g : α → Vec R d) (ts : List α) {c : Nat}
    (hc : c < d) : ∀ a : Vec R d, (ts.foldl (fun a t => Vec.add a (g t)) a)[c]
      = a[c] + sumOver (fun t => (g t)[c]) ts := by
  induction ts with
  | nil => intro a; rw [List.foldl_nil, sumOver_nil, Semiring.add_zero]
  | cons t ts ih =>
    intro a
    rw [List.foldl_cons, ih, Vec.getElem_add, sumOver_cons, Semiring.add_assoc]

end Attention.Proof
