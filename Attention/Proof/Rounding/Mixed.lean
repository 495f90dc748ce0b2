module

public import Attention.Algebra.Floor
public import Attention.Model.Mixed
public import Attention.Spec.Masks
public import Attention.Spec.UnderflowTolerance
import Attention.Proof.Rounding.Attention
import Attention.Proof.Rounding.Bits
import Attention.Proof.Rounding.UnderflowMatrices
import Attention.Proof.Rounding.UnderflowScores
import Attention.Proof.Softmax.Maximum

public section

/-! # Attention in two precisions, within its tolerance

From the products of queries and keys to the stored result, with numbers below the normal ones of
each format. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {floor : R → Int} {p : Mixed} {q_len kv_len d d_v : Nat}

attribute [local instance] Ring.intCast Semiring.natCast

private theorem stored_acc (hf : IsFloor floor) (ha : 0 < p.accumulator.precision) (x : R) :
    Stored (p.precision R).unit (p.underflow R) x (p.accumulator.round floor x) :=
  round_stored hf ha x

private theorem unit_nonneg : 0 ≤ (p.precision R).unit := Std.le_of_lt (two_zpow_pos _)

private theorem stored_same (x : R) : Stored (p.precision R).unit (p.underflow R) x x :=
  stored_refl unit_nonneg x

private theorem rounded_same {u : R} (hu : 0 ≤ u) (x : R) : Rounded u x x :=
  ⟨0, .zero hu, by grind⟩

private theorem number_zero (f : Format) : f.IsNumber (0 : R) :=
  ⟨0, f.least, Nat.two_pow_pos _, Int.le_refl _, by rw [Ring.intCast_zero, Semiring.zero_mul]⟩

/-- Sums of numbers of the accumulator have relative errors alone, whatever they might lose. -/
private theorem sum_rounded (hf : IsFloor floor) (ha : 0 < p.accumulator.precision)
    {α : Type v} {ν : R} {free : α → Prop} {g : α → R} (as : List α)
    (numbers : ∀ a ∈ as, p.accumulator.IsNumber (g a)) :
    SumOf (p.precision R).unit ν free g as.length as (p.sum floor (as.map g)) ∧
      p.accumulator.IsNumber (p.sum floor (as.map g)) := by
  induction as with
  | nil => exact ⟨.nil, number_zero _⟩
  | cons a as ih =>
    obtain ⟨h, n⟩ := ih fun b hb => numbers b (List.mem_cons_of_mem _ hb)
    obtain ⟨θ, hθ, e⟩ := (round_sums hf (numbers a List.mem_cons_self) n).1
    refine ⟨?_, isNumber_round hf ha _⟩
    rw [List.map_cons, show p.sum floor (g a :: as.map g)
      = p.accumulator.round floor (g a + p.sum floor (as.map g)) from rfl, e,
      Semiring.right_distrib]
    exact .add (xs := [a]) .one h ⟨θ, hθ, rfl⟩ ⟨θ, hθ, rfl⟩

/-- The score is one that a function may compute. -/
private theorem score_computed (hf : IsFloor floor) (ha : 0 < p.accumulator.precision) (scale : R)
    (q k : Vec R d) :
    TinyScore (p.precision R) inAccumulator (p.underflow R) d 1 1 scale q k
      (p.score floor scale q k) := by
  refine ⟨0, 0, fun t => 1 * q[t], fun t => 1 * k[t],
    fun t => p.accumulator.round floor (q[t] * k[t]), _, _, Nat.le_refl _, fun _ => rfl,
    fun _ => rfl, fun t => ?_, ?_, ⟨_, ⟨_, rfl, stored_acc hf ha _⟩, stored_same _⟩,
    storedNear_of_rounded (rounded_same (Std.le_refl _) _) (Std.le_refl _)⟩
  · show Stored _ _ (1 * q[t] * (1 * k[t])) _
    rw [Semiring.one_mul, Semiring.one_mul]
    exact stored_acc hf ha _
  · have := (sum_rounded (p := p) (ν := p.underflow R) hf ha
      (free := fun t : Fin d => 1 * q[t] * (1 * k[t]) = 0)
      (g := fun t : Fin d => p.accumulator.round floor (q[t] * k[t])) (List.finRange d)
      fun _ _ => isNumber_round hf ha _).1
    rwa [List.length_finRange] at this

variable [Exponential R R]

/-- The weight of a key is a number of the accumulator, and so is its part of the numerator. -/
private theorem key_numbers (hf : IsFloor floor) (ha : 0 < p.accumulator.precision) (m s value : R)
    (unmasked : Bool) :
    p.accumulator.IsNumber (p.weight floor m unmasked s) ∧
      p.accumulator.IsNumber (p.product floor m unmasked s value) := by
  cases unmasked
  · exact ⟨number_zero _, number_zero _⟩
  · exact ⟨isNumber_round hf ha _, isNumber_round hf ha _⟩

/-- One key is a part that a function may compute, if its score is at most `m`. -/
private theorem run_key (hf : IsFloor floor) (ha : 0 < p.accumulator.precision)
    (hw : 0 < p.weights.precision) {m : R} (hm : p.accumulator.IsNumber m) {key : ComputedKey R}
    (number : p.accumulator.IsNumber key.computed) (h : key.score ≠ none → key.computed ≤ m) :
    TinyRun (p.precision R) (p.underflow R) 0 m
      ⟨[key], p.weight floor m key.score.isSome key.computed,
        p.product floor m key.score.isSome key.computed key.value, 0, 0⟩ := by
  cases hs : key.score with
  | none => exact .masked hs
  | some s =>
    refine .key (w' := p.weights.round floor
        (p.weight floor m key.score.isSome key.computed)) (by simp [hs]) (h (by simp [hs]))
      (.inl (round_sums hf number hm).2) ?_ ?_ ?_
    all_goals simp only [Mixed.product, Mixed.weight, hs, Option.isSome, if_true]
    · exact stored_acc hf ha _
    · exact round_stored hf hw _
    · exact tinyProduct_of_stored (Std.le_of_lt (two_zpow_pos _)) (stored_acc hf ha _)

/-- Keys with scores that are at most `m` are a part that a function may compute. -/
private theorem run_keys (hf : IsFloor floor) (ha : 0 < p.accumulator.precision)
    (hw : 0 < p.weights.precision) {m : R} (hm : p.accumulator.IsNumber m)
    (keys : List (ComputedKey R)) (numbers : ∀ key ∈ keys, p.accumulator.IsNumber key.computed)
    (h : ∀ key ∈ keys, key.score ≠ none → key.computed ≤ m) :
    TinyRun (p.precision R) (p.underflow R) 0 m ⟨keys,
      p.sum floor (keys.map fun k => p.weight floor m k.score.isSome k.computed),
      p.sum floor (keys.map fun k => p.product floor m k.score.isSome k.computed k.value),
      keys.length, 0⟩ := by
  have add := fun (g : Part R → R) (hg : ∀ key : ComputedKey R, p.accumulator.IsNumber (g ⟨[key],
      p.weight floor m key.score.isSome key.computed,
      p.product floor m key.score.isSome key.computed key.value, 0, 0⟩)) =>
    (sum_rounded (p := p) (ν := p.underflow R)
      (free := fun part : Part R => ∀ key ∈ part.keys, key.score = none) hf ha
      (g := g) (keys.map fun k => ⟨[k], p.weight floor m k.score.isSome k.computed,
        p.product floor m k.score.isSome k.computed k.value, 0, 0⟩) fun part hpart => by
      obtain ⟨key, -, rfl⟩ := List.mem_map.mp hpart
      exact hg key).1
  have hl := add (·.l) fun key => (key_numbers hf ha m key.computed key.value _).1
  have ho := add (·.o) fun key => (key_numbers hf ha m key.computed key.value _).2
  rw [List.length_map, List.map_map] at hl ho
  have := TinyRun.join (p := p.precision R) (ν := p.underflow R) (μ := 0) (m := m) (a := 0) (r := 0)
    (fun part hpart => by
      obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hpart
      exact run_key hf ha hw hm (numbers key hkey) (h key hkey))
    (fun part hpart => by
      obtain ⟨key, -, rfl⟩ := List.mem_map.mp hpart
      exact ⟨Nat.le_refl _, Nat.le_refl _⟩) hl ho
  rw [Nat.zero_add, List.flatMap_map, List.flatMap_singleton'] at this
  exact this

omit [Exponential R R] in
private theorem scale_bound (scale : R) :
    AtMost ((1 + (p.precision R).unit) ^ 3 * max 1 (absolute scale)) scale := by
  have h₁ := OrderedField.one_le_pow (x := 1 + (p.precision R).unit)
    (by have := unit_nonneg (R := R) (p := p); grind) 3
  have h₂ : absolute scale ≤ max 1 (absolute scale) := by
    rw [OrderedField.max_def]
    split <;> grind
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₁
    (Std.le_trans (absolute_nonneg scale) h₂)
  exact (atMost_absolute scale).mono (by grind)

/-- **mixed-within-allowance**: attention in a format of more bits with weights that are stored in
one of few, its result rounded to another, is within the tolerance and what the Spec adds for
numbers below the normal ones of the accumulator: of the roundings nothing is supposed but that the
bits of the accumulator suffice for the sizes, and that underflow leaves something of the
denominator. -/
theorem mixed_within_tolerance (hf : IsFloor floor) (hw : 0 < p.weights.precision)
    (format : Format) {scale : R}
    {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {V : Matrix R kv_len d_v} {i : Fin q_len} (unmasked : ∃ j, mask i j = true)
    (hd : 10 * (d + 4) ≤ 2 ^ p.accumulator.precision)
    (hk : 2 * kv_len + 7 ≤ 2 ^ p.accumulator.precision) (t : Fin d_v) {row : List (BoundedKey R)}
    (hrow : row = boundedKeys (p.precision R)
      (underflowFormats (p.precision R) inAccumulator (p.underflow R) d d scale 0) d scale mask
      Q K V i t (List.finRange kv_len))
    (left : 0 < underflowLeft (p.precision R) (p.underflow R) kv_len 0 row) (negligible : R) :
    AtMost (outputTolerance (p.precision R) (p.underflow R)
        ((2 : R) ^ (-(format.precision : Int))) ((2 : R) ^ (format.least - 1)) kv_len 0 negligible
        row)
      (format.round floor (p.output floor scale mask Q K V i t)
        - (attention scale mask.toScoreMod Q K V)[i][t]) := by
  have ha : 0 < p.accumulator.precision := by
    rcases Nat.eq_zero_or_pos p.accumulator.precision with h | h
    · rw [h] at hk
      omega
    · exact h
  have pos : 0 < (2 : R) ^ (-(p.accumulator.precision : Int)) := two_zpow_pos _
  have one := OrderedRing.zero_lt_one (R := R)
  have small : (2 : R) ^ (-(p.accumulator.precision : Int)) < 1 := by
    have h := numeral_mul_le (R := R) (p := p.accumulator.precision) (n := 1 + 1) (by omega)
    rw [numeral_succ, numeral_succ] at h
    have e : (numeral 0 : R) = 0 := rfl
    rw [e] at h
    generalize (2 : R) ^ (-(p.accumulator.precision : Int)) = u at *
    clear hd hk unmasked left hrow
    grind
  have hp : Precise (p.precision R) :=
    ⟨Std.le_of_lt pos, Std.le_of_lt pos, Std.le_of_lt pos, small, Std.le_of_lt (two_zpow_pos _),
      Std.le_of_lt (two_zpow_pos _)⟩
  have hν : 0 ≤ p.underflow R := Std.le_of_lt (two_zpow_pos _)
  have self := rounded_same (R := R) (Std.le_of_lt pos)
  have unscaled : Rounded (p.precision R).unit scale (1 * 1 * scale) :=
    ⟨0, .zero (Std.le_of_lt pos), by clear left hrow; grind⟩
  let f := underflowFormats (p.precision R) inAccumulator (p.underflow R) d d scale 0
  let s := fun j : Fin kv_len => p.score floor scale Q[i] K[j]
  have factor : operandFactor (p.precision R) f = 1 := rfl
  have h₁ := numeral_mul_le (R := R) hd
  have h₂ := numeral_mul_le (R := R) (p := p.accumulator.precision) (n := kv_len + 6 + 1)
    (by omega)
  have h₃ := numeral_mul_le (R := R) (p := p.accumulator.precision) (n := 2 * (kv_len + 1) + 1)
    (by omega)
  have two : (numeral 2 : R) = 2 := by
    rw [numeral_eq]
    exact (Semiring.ofNat_eq_natCast 2).symm
  have ten : (numeral 10 : R) = 10 := by
    rw [numeral_eq]
    exact (Semiring.ofNat_eq_natCast 10).symm
  rw [numeral_mul, ten] at h₁
  rw [numeral_succ] at h₂
  rw [numeral_succ, numeral_mul, two] at h₃
  rw [Semiring.mul_assoc] at h₁
  have hm₁ : 10 * (numeral (d + 4) * (p.precision R).accumulation) ≤ 1 := h₁
  have hN : numeral (kv_len + 6) * (p.precision R).accumulation < 1 := by
    show numeral (kv_len + 6) * (2 : R) ^ (-(p.accumulator.precision : Int)) < 1
    clear left hrow hm₁ h₁ h₃ hd hk unmasked
    grind
  have hD : 2 * numeral (kv_len + 1) * (p.precision R).unit < 1 := by
    show 2 * numeral (kv_len + 1) * (2 : R) ^ (-(p.accumulator.precision : Int)) < 1
    clear left hrow hm₁ h₁ h₂ hd hk unmasked hN
    grind
  have hd' : 10 * (numeral (d + 4) * (p.precision R).accumulation)
      + 4 * (operandFactor (p.precision R) f - 1) ≤ 1 := by
    rw [factor]
    clear left hrow h₁ h₂ h₃ hd hk unmasked hN hD
    grind
  cases hm : rowMax ((List.finRange kv_len).map fun j => if mask i j then some (s j) else none) with
  | none =>
    obtain ⟨j, hj⟩ := unmasked
    have := rowMax_eq_none.mp hm _ (List.mem_map_of_mem (List.mem_finRange j))
    simp [hj] at this
  | some m =>
    let keys := computedKeys (p.precision R) f d scale mask Q K V i t (List.finRange kv_len) s
    have isSome : ∀ j, (boundedKey (p.precision R) f d scale mask Q K V i t
        (rowMax ((List.finRange kv_len).map
          (Spec.score scale mask.toScoreMod Q K i))) j).score.isSome
          = mask i j := fun j => by
      rw [boundedKey_score (List.mem_finRange j)]
      cases h : mask i j <;> simp [Spec.score, Mask.toScoreMod, h]
    have top : ∀ key ∈ keys, key.score ≠ none → key.computed ≤ m := fun key hkey hs => by
      obtain ⟨j, -, rfl⟩ := List.mem_map.mp hkey
      have hj : mask i j = true := by
        rw [← isSome j]
        exact Option.isSome_iff_ne_none.mpr hs
      have := le_rowMax (List.mem_map_of_mem
        (f := fun j => if mask i j then some (s j) else none) (List.mem_finRange j))
      simp only [hm, hj, if_true] at this
      exact this
    have attained : ∃ j, mask i j = true ∧ s j = m := by
      obtain ⟨j, -, hj⟩ := List.mem_map.mp (rowMax_mem hm)
      cases h : mask i j
      · simp [h] at hj
      · exact ⟨j, h, by simpa [h] using hj⟩
    have number : p.accumulator.IsNumber m := by
      obtain ⟨j, -, rfl⟩ := attained
      exact isNumber_round hf ha _
    have run := run_keys (p := p) hf ha hw number keys (fun key hkey => by
      obtain ⟨j, -, rfl⟩ := List.mem_map.mp hkey
      exact isNumber_round hf ha _) top
    have length : keys.length = kv_len := by simp [keys, computedKeys]
    have value : ∀ j, (boundedKey (p.precision R) f d scale mask Q K V i t
        (rowMax ((List.finRange kv_len).map (Spec.score scale mask.toScoreMod Q K i))) j).value
          = V[j][t] := fun j => by
      simp only [boundedKey]
      split <;> rfl
    have e : p.output floor scale mask Q K V i t = p.accumulator.round floor
        (p.sum floor (keys.map fun k => p.product floor m k.score.isSome k.computed k.value)
          / p.sum floor (keys.map fun k => p.weight floor m k.score.isSome k.computed)) := by
      simp only [keys, s, computedKeys, List.map_map, Function.comp_def, isSome, value]
      simp only [s] at hm
      simp only [Mixed.output, hm]
    obtain ⟨same, seen, c, close⟩ := computedKeys_row (f := f) (additions := d) (σ₁ := 1)
      (σ₂ := 1) (σ := scale) hp (Std.le_refl _) ⟨Std.le_refl _, Std.le_refl _⟩ hd'
      (scaledBy_normal rfl ⟨_, ⟨_, ⟨_, rfl, unscaled⟩, self _⟩, self _⟩) V t
      (List.Perm.refl (List.finRange kv_len))
      (fun j _ => tiny_score hp (Std.le_refl _) hm₁ hν (Std.le_refl _) (scale_bound scale)
        (score_computed hf ha scale Q[i] K[j])) attained
    have bounded : keys.map (·.toBoundedKey) = row := by
      rw [hrow]
      exact computedKeys_toBoundedKey
    rw [e, attention_of_cols (List.Perm.refl _), ← bounded]
    rw [← bounded] at left
    refine rounded_output_underflow hp hν (Std.le_refl 0) run (fun h => absurd rfl h) t.isLt
      same seen (fun key hk s hs => room_zero (close key hk s hs)) (Nat.le_refl _)
      (by simp only [length]; omega) nofun hN hD left
      ⟨_, ⟨_, ⟨_, ⟨_, ⟨_, rfl, stored_acc hf ha _⟩, stored_same _⟩, stored_same _⟩,
        stored_same _⟩, stored_same _⟩ (round_storedNear hf _) negligible

end Attention.Proof
