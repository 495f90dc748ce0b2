module

public import Attention.Spec.Schedule
public import Attention.Proof.Flash.Basic

public section

/-! # Tiles by their number -/

namespace Attention.Proof

open Spec

universe u

/-- The number of tiles exceeds `t` exactly when tile `t` starts before the end. -/
theorem lt_numTiles {n b t : Nat} (hb : 0 < b) : t < numTiles n b ↔ t * b < n := by
  rw [numTiles, Nat.lt_iff_add_one_le, Nat.le_div_iff_mul_le hb, Nat.add_mul]
  omega

/-- Tile `t` of the numbers below `n` holds those from t · b up to the next tile. -/
theorem mem_tile {n b t : Nat} {i : Fin n} :
    i ∈ tile b (List.finRange n) t ↔ t * b ≤ i.val ∧ i.val < (t + 1) * b := by
  rw [tile, List.mem_take_iff_getElem, Nat.add_mul]
  constructor
  · rintro ⟨m, hm, rfl⟩
    simp only [List.getElem_drop, List.getElem_finRange, Fin.val_cast]
    simp only [List.length_drop, List.length_finRange] at hm
    omega
  · intro h
    refine ⟨i.val - t * b, ?_, ?_⟩
    · simp only [List.length_drop, List.length_finRange]
      omega
    · ext
      simp only [List.getElem_drop, List.getElem_finRange, Fin.val_cast]
      omega

/-- The tiles by number, put together again, are the list. -/
theorem flatMap_tile {α : Type u} {b : Nat} (hb : 0 < b) (xs : List α) :
    (List.range (numTiles xs.length b)).flatMap (tile b xs) = xs :=
  tiles_flatten hb xs

/-- Tiles past the end are empty. -/
theorem tile_eq_nil {α : Type u} {b t : Nat} (hb : 0 < b) {xs : List α}
    (ht : numTiles xs.length b ≤ t) : tile b xs t = [] := by
  have h : ¬ t * b < xs.length := fun h => by have := (lt_numTiles hb).mpr h; omega
  rw [tile, List.drop_eq_nil_of_le (by omega), List.take_nil]

/-- A range that leaves out only empty contributions gathers all of them. -/
theorem flatMap_range {α : Type u} (g : Nat → List α) (n : Nat) (r : TileRange)
    (hn : ∀ u, n ≤ u → g u = []) (hr : ∀ u, r.contains u = false → g u = []) :
    (List.range' r.first (r.stop - r.first)).flatMap g = (List.range n).flatMap g := by
  have hout : ∀ k m, (∀ u, k ≤ u → u < k + m → g u = []) → (List.range' k m).flatMap g = [] :=
    fun k m h => List.flatMap_eq_nil_iff.mpr fun u hu => by
      have := List.mem_range'_1.mp hu
      exact h u this.1 this.2
  have hr' : ∀ u, u < r.first ∨ r.stop ≤ u → g u = [] := fun u hu => hr u (by
    simp only [TileRange.contains, Bool.and_eq_false_iff, decide_eq_false_iff_not]
    omega)
  have h₁ : (List.range (n + r.stop)).flatMap g = (List.range n).flatMap g := by
    rw [List.range_eq_range', List.range_eq_range', ← List.range'_append_1, List.flatMap_append,
      hout (0 + n) _ fun u hu _ => hn u (by omega), List.append_nil]
  rw [← h₁]
  by_cases h : r.first ≤ r.stop
  · have e : n + r.stop = r.first + ((r.stop - r.first) + n) := by omega
    rw [e, List.range_eq_range', ← List.range'_append_1, ← List.range'_append_1,
      List.flatMap_append, List.flatMap_append, hout 0 _ fun u _ hu => hr' u (by omega),
      hout (0 + r.first + (r.stop - r.first)) _ fun u hu _ => hr' u (by omega)]
    simp
  · rw [hout _ _ fun u hu hu' => hr' u (by omega), List.range_eq_range',
      hout _ _ fun u _ _ => hr' u (by omega)]

end Attention.Proof
