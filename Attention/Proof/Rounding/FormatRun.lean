module

public import Attention.Model.FormatRun
public import Attention.Proof.Rounding.Format
public import Attention.Proof.Rounding.UnderflowTolerance

public section

/-! # Attention in one format, within its tolerance

Rounding to the nearest number of a format, with gradual underflow, follows the rules of `TinyRun`:
so attention by parts in one format is within the tolerance, numbers below the normal ones
included, as long as nothing overflows. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {floor : R → Int} {f : Format}

attribute [local instance] Ring.intCast Semiring.natCast

omit [Exponential R R] in
/-- The precision of a format means something. -/
theorem formatPrecision_precise (hp : 0 < f.precision) : Precise (formatPrecision R f) := by
  have pos : 0 ≤ (2 : R) ^ (-(f.precision : Int)) := Std.le_of_lt (two_zpow_pos _)
  have small : (2 : R) ^ (-(f.precision : Int)) < 1 := by
    have h : (2 : R) ^ (-(f.precision : Int)) ≤ (2 : R) ^ (-1 : Int) := two_zpow_le (by omega)
    have e := two_zpow_succ (R := R) (-1)
    rw [show (-1 : Int) + 1 = 0 by omega, Field.zpow_zero] at e
    have := OrderedRing.zero_lt_one (R := R)
    generalize (2 : R) ^ (-(f.precision : Int)) = x at *
    generalize (2 : R) ^ (-1 : Int) = y at *
    grind
  exact ⟨pos, pos, pos, small, Std.le_refl _, Std.le_refl _⟩

/-- **format-run**: denominators and numerators computed by parts in one format are those of a run
whose products and exponentials underflow by half of its smallest positive number at most. -/
theorem format_run (hf : IsFloor floor) (hp : 0 < f.precision) {m : R} {part : Part R}
    (run : FormatRun floor f m part) :
    TinyRun (formatPrecision R f) ((2 : R) ^ (f.least - 1)) 0 m part ∧ f.IsNumber part.l ∧
      f.IsNumber part.o := by
  have number := fun x : R => isNumber_round (f := f) hf hp x
  induction run with
  | masked hk =>
    have zero : f.IsNumber (0 : R) := by
      have := number 0
      have e : f.round floor (0 : R) = 0 := by
        rw [Format.round, if_pos]
        rw [absolute_of_nonneg (Std.le_refl _)]
        exact Std.le_refl _
      rwa [e] at this
    exact ⟨.masked hk, zero, zero⟩
  | @key m key hk hm hc hm' =>
    exact ⟨.key hk hm (.inl (round_sums hf hc hm').2) (round_stored hf hp _)
      (stored_refl (Std.le_refl _) _) (tinyProduct_of_stored (Std.le_of_lt (two_zpow_pos _))
        (round_stored hf hp _)), number _, number _⟩
  | @add m a b _ _ iha ihb =>
    obtain ⟨ra, la, oa⟩ := iha
    obtain ⟨rb, lb, ob⟩ := ihb
    have sum : ∀ {g : Part R → R}, f.IsNumber (g a) → f.IsNumber (g b) →
        PartSum ((2 : R) ^ (-(f.precision : Int))) ((2 : R) ^ (f.least - 1)) g 1 [a, b]
          (f.round floor (g a + g b)) :=
      fun ha hb => by
        obtain ⟨θ, hθ, e⟩ := (round_sums hf ha hb).1
        rw [e, Semiring.right_distrib]
        exact .add (xs := [a]) (ys := [b]) .one .one ⟨θ, hθ, rfl⟩ ⟨θ, hθ, rfl⟩
    have := TinyRun.join (p := formatPrecision R f) (ν := (2 : R) ^ (f.least - 1)) (μ := 0) (m := m)
      (parts := [a, b]) (a := max a.additions b.additions) (k := 1)
      (r := max a.rescalings b.rescalings)
      (fun part h => by
        simp only [List.mem_cons, List.not_mem_nil, or_false] at h
        rcases h with rfl | rfl
        · exact ra
        · exact rb)
      (fun part h => by
        simp only [List.mem_cons, List.not_mem_nil, or_false] at h
        rcases h with rfl | rfl <;> exact ⟨by omega, by omega⟩)
      (sum (g := (·.l)) la lb) (sum (g := (·.o)) oa ob)
    rw [List.flatMap_cons, List.flatMap_cons, List.flatMap_nil, List.append_nil] at this
    exact ⟨this, number _, number _⟩
  | rescale _ hm hn hn' ih =>
    exact ⟨.rescale ih.1 hm (.inl (round_sums hf hn hn').2) (round_stored hf hp _)
      (round_stored hf hp _) (round_stored hf hp _), number _, number _⟩

/-- **format-attention**: attention computed by parts in one format, of scores that are known but
for δ each and a constant of the row, its quotient rounded to the format too, is within the
tolerance and what the Spec adds for underflow, however small its numbers are. -/
theorem format_attention (hf : IsFloor floor) (hp : 0 < f.precision)
    (hleast : f.least + f.precision ≤ 1) {m : R} {part : Part R}
    (run : FormatRun floor f m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat}
    (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hN : numeral (roundings + 6) * (2 : R) ^ (-(f.precision : Int)) < 1)
    (hD : 2 * numeral (roundings + 1) * (2 : R) ^ (-(f.precision : Int)) < 1)
    (left : 0 < underflowLeft (formatPrecision R f) ((2 : R) ^ (f.least - 1)) roundings rescalings
      (part.keys.map (·.toBoundedKey))) (negligible : R) :
    AtMost (tolerance (formatPrecision R f) roundings rescalings negligible
          (part.keys.map (·.toBoundedKey))
        + underflowError (formatPrecision R f) ((2 : R) ^ (f.least - 1)) roundings rescalings
          negligible (part.keys.map (·.toBoundedKey)))
      (f.round floor (part.o / part.l) - (attend row)[j]) := by
  have precise := formatPrecision_precise (R := R) hp
  have same_stored := fun x : R => stored_refl (η := (2 : R) ^ (f.least - 1)) precise.accumulation x
  exact rounded_attention_underflow precise (Std.le_of_lt (two_zpow_pos _)) (Std.le_refl 0)
    (format_run hf hp run).1 (fun _ => two_zpow_le (by omega)) hj same attained
    (fun key hk s hs => room_zero (close key hk s hs)) hr ha nofun hN hD left
    ⟨_, ⟨_, ⟨_, ⟨_, ⟨_, rfl, round_stored hf hp _⟩, same_stored _⟩, same_stored _⟩, same_stored _⟩,
      same_stored _⟩ negligible

end Attention.Proof
