module

public import Attention.Proof.Dropout.Philox
public import Attention.Spec.KeepMask

public section

/-! # What dropout keeps does not depend on how it is drawn -/

namespace Attention.Proof

open Spec

/-- An entry of lists of four, one after the other. -/
private theorem getElem?_flatMap_four {α : Type} (f : Nat → List α) (h : ∀ g, (f g).length = 4)
    (n : Nat) : ∀ s k, k < 4 * n →
      ((List.range' s n).flatMap f)[k]? = (f (s + k / 4))[k % 4]? := by
  induction n with
  | zero => intro s k hk; omega
  | succ n ih =>
    intro s k hk
    rw [List.range'_succ, List.flatMap_cons, List.getElem?_append, h]
    split
    · rw [Nat.div_eq_of_lt ‹_›, Nat.mod_eq_of_lt ‹_›, Nat.add_zero]
    · rw [ih _ _ (by omega)]
      have h₁ : s + 1 + (k - 4) / 4 = s + k / 4 := by omega
      have h₂ : (k - 4) % 4 = k % 4 := by omega
      rw [h₁, h₂]

/-- **keep-mask-tile**: the keys that a tile keeps, drawn for this tile alone, wherever it starts
and however many keys it has, are those that are kept one by one. -/
theorem keepsFrom_eq (threshold seed head i start count : Nat) :
    keepsFrom threshold seed head i start count
      = (List.range count).map fun c => keeps threshold seed head i (start + c) := by
  have hlen : ∀ g, (dropoutWords seed head i g).length = 4 := fun _ => rfl
  have hw : ∀ c, c < count →
      ((List.range' (start / 4) ((start % 4 + count + 3) / 4)).flatMap
        (dropoutWords seed head i))[start % 4 + c]?
      = (dropoutWords seed head i ((start + c) / 4))[(start + c) % 4]? := fun c hc => by
    rw [getElem?_flatMap_four _ hlen _ _ _ (by omega)]
    have h₁ : start / 4 + (start % 4 + c) / 4 = (start + c) / 4 := by omega
    have h₂ : (start % 4 + c) % 4 = (start + c) % 4 := by omega
    rw [h₁, h₂]
  refine List.ext_getElem? fun c => ?_
  simp only [keepsFrom, List.getElem?_map, List.getElem?_take, List.getElem?_drop]
  by_cases hc : c < count
  · have hd : (start + c) % 4 < (dropoutWords seed head i ((start + c) / 4)).length := by
      rw [hlen]; omega
    simp only [hc, if_true, hw c hc, List.getElem?_range hc, Option.map_some, keeps,
      List.getD_eq_getElem?_getD, List.getElem?_eq_getElem hd, Option.getD_some]
  · simp [hc]

/-- The rounded fraction is the nearest integer: twice the error is at most the denominator. -/
theorem roundHalfEven_nearest (num : Nat) {den : Nat} (hd : 0 < den) :
    2 * num ≤ 2 * (roundHalfEven num den * den) + den ∧
      2 * (roundHalfEven num den * den) ≤ 2 * num + den := by
  have h := Nat.div_add_mod num den
  have hr := Nat.mod_lt num hd
  rw [Nat.mul_comm] at h
  simp only [roundHalfEven]
  generalize num / den = q at h ⊢
  generalize num % den = r at h hr ⊢
  have h2 := Nat.mod_two_eq_zero_or_one q
  split
  · omega
  · split
    · rw [Nat.add_mul, Nat.one_mul]; omega
    · rcases h2 with h2 | h2 <;> rw [h2]
      · rw [Nat.add_zero]; omega
      · rw [Nat.add_mul, Nat.one_mul]; omega

/-- **keep-threshold**: of the 2 ^ 32 words those that keep a weight are as near to the share 1 − p
as their number can be; if p is a multiple of 2 ^ −32, it is exact. -/
theorem keepThreshold_nearest {num den : Nat} (hd : 0 < den) :
    2 * ((den - num) * 2 ^ 32) ≤ 2 * (keepThreshold num den * den) + den ∧
      2 * (keepThreshold num den * den) ≤ 2 * ((den - num) * 2 ^ 32) + den :=
  roundHalfEven_nearest _ hd

/-- Every word is below 2 ^ 32. -/
theorem dropoutWords_lt {seed head i g : Nat} (hs : seed < 2 ^ 64) (hh : head < 2 ^ 32)
    (hi : i < 2 ^ 32) (hg : g < 2 ^ 32) : ∀ word ∈ dropoutWords seed head i g, word < 2 ^ 32 := by
  have hk : PhiloxKey.Valid (seedKey seed) := by
    simp only [PhiloxKey.Valid, seedKey]
    omega
  obtain ⟨h₀, h₁, h₂, h₃⟩ := philox_valid 10 hk
    (show Words.Valid ⟨g, i, head, 0⟩ from ⟨hg, hi, hh, Nat.two_pow_pos 32⟩)
  intro word hw
  simp only [dropoutWords, List.mem_cons, List.not_mem_nil, or_false] at hw
  rcases hw with rfl | rfl | rfl | rfl <;> assumption

/-- With p = 0 every weight is kept, with p = 1 none is. -/
theorem keeps_extremes {seed head i j den : Nat} (hd : 0 < den) (hs : seed < 2 ^ 64)
    (hh : head < 2 ^ 32) (hi : i < 2 ^ 32) (hj : j < 2 ^ 34) :
    keeps (keepThreshold 0 den) seed head i j = true ∧
      keeps (keepThreshold den den) seed head i j = false := by
  have h₀ : keepThreshold 0 den = 2 ^ 32 := by
    simp only [keepThreshold, roundHalfEven, Nat.sub_zero, Nat.mul_mod_right, Nat.mul_zero, hd,
      if_true, Nat.mul_div_cancel_left _ hd]
  have h₁ : keepThreshold den den = 0 := by
    simp only [keepThreshold, roundHalfEven, Nat.sub_self, Nat.zero_mul, Nat.zero_mod, Nat.mul_zero,
      hd, if_true, Nat.zero_div]
  have hlen : j % 4 < (dropoutWords seed head i (j / 4)).length := by
    rw [show (dropoutWords seed head i (j / 4)).length = 4 from rfl]; omega
  simp only [keeps, h₀, h₁, Nat.not_lt_zero, decide_false, and_true, decide_eq_true_eq,
    List.getD_eq_getElem?_getD, List.getElem?_eq_getElem hlen, Option.getD_some]
  exact dropoutWords_lt hs hh hi (by omega) _ (List.getElem_mem hlen)

end Attention.Proof
