module

public import Attention.Algebra.Floor
public import Attention.Model.Mixed
public import Attention.Spec.Masks
import Attention.Proof.Rounding.Bits
import Attention.Proof.Rounding.Stored
import Attention.Proof.Softmax.Maximum

public section

/-! # Attention in two precisions, within its tolerance -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {floor : R → Int} {p : Mixed} {q_len kv_len d d_v : Nat}

attribute [local instance] Ring.intCast Semiring.natCast

private theorem rounded_acc (hf : IsFloor floor) (x : R) :
    Rounded (p.precision R).unit x (roundBits floor p.accumulator x) :=
  roundBits_rounded hf _ x

private theorem rounded_same {u : R} (hu : 0 ≤ u) (x : R) : Rounded u x x :=
  ⟨0, .zero hu, by grind⟩

private theorem sum_rounded (hf : IsFloor floor) (xs : List R) :
    RoundedSum (p.precision R).unit xs.length xs (p.sum floor xs) := by
  induction xs with
  | nil => exact .nil
  | cons x xs ih => exact roundedSum_add (xs := [x]) .one ih (rounded_acc hf _)

/-- The score is one that a function may compute. -/
private theorem score_computed (hf : IsFloor floor) (scale : R) (q k : Vec R d) :
    ComputedScore (p.precision R) inAccumulator d 1 1 scale q k (p.score floor scale q k) := by
  have pos : 0 ≤ (p.precision R).unit := Std.le_of_lt (two_zpow_pos _)
  refine ⟨0, 0, fun t => 1 * q[t], fun t => 1 * k[t],
    fun t => roundBits floor p.accumulator (q[t] * k[t]), _, _, Nat.le_refl _, fun _ => rfl,
    fun _ => rfl, fun t => ?_, ?_,
    ⟨_, ⟨_, rfl, rounded_acc hf _⟩, rounded_same pos _⟩,
    storedNear_of_rounded (rounded_same (Std.le_refl _) _) (Std.le_refl _)⟩
  · show Rounded _ (1 * q[t] * (1 * k[t])) _
    rw [Semiring.one_mul, Semiring.one_mul]
    exact rounded_acc hf _
  · have := sum_rounded (p := p) hf ((List.finRange d).map fun t =>
      roundBits floor p.accumulator (q[t] * k[t]))
    rwa [List.length_map, List.length_finRange] at this

variable [Exponential R R]

/-- One key is a part that a function may compute, if its score is at most `m`. -/
private theorem run_key (hf : IsFloor floor) (hw : 0 < p.weights.precision) {m : R}
    {key : ComputedKey R}
    (h : key.score ≠ none → key.computed ≤ m) :
    Run (p.precision R) m ⟨[key], p.weight floor m key.score.isSome key.computed,
      p.product floor m key.score.isSome key.computed key.value, 0, 0⟩ := by
  cases hs : key.score with
  | none => exact .masked hs
  | some s =>
    refine .key (w' := p.weights.round floor
        (p.weight floor m key.score.isSome key.computed)) (by simp [hs]) (h (by simp [hs]))
      (rounded_acc hf _) ?_ ?_ ?_
    all_goals simp only [Mixed.product, Mixed.weight, hs, Option.isSome, if_true]
    · exact rounded_acc hf _
    · exact round_stored hf hw _
    · exact rounded_acc hf _

/-- Keys with scores that are at most `m` are a part that a function may compute. -/
private theorem run_keys (hf : IsFloor floor) (hw : 0 < p.weights.precision) {m : R}
    (keys : List (ComputedKey R))
    (h : ∀ key ∈ keys, key.score ≠ none → key.computed ≤ m) :
    Run (p.precision R) m ⟨keys,
      p.sum floor (keys.map fun k => p.weight floor m k.score.isSome k.computed),
      p.sum floor (keys.map fun k => p.product floor m k.score.isSome k.computed k.value),
      keys.length, 0⟩ := by
  have := Run.join (p := p.precision R) (m := m) (a := 0) (k := keys.length) (r := 0)
    (parts := keys.map fun k => ⟨[k], p.weight floor m k.score.isSome k.computed,
      p.product floor m k.score.isSome k.computed k.value, 0, 0⟩)
    (l := p.sum floor (keys.map fun k => p.weight floor m k.score.isSome k.computed))
    (o := p.sum floor (keys.map fun k => p.product floor m k.score.isSome k.computed k.value))
    (fun part hpart => by
      obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hpart
      exact run_key hf hw (h key hkey))
    (fun part hpart => by
      obtain ⟨key, -, rfl⟩ := List.mem_map.mp hpart
      exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
    (by
      rw [List.map_map]
      have := sum_rounded (p := p) hf
        (keys.map fun k => p.weight floor m k.score.isSome k.computed)
      rwa [List.length_map] at this)
    (by
      rw [List.map_map]
      have := sum_rounded (p := p) hf
        (keys.map fun k => p.product floor m k.score.isSome k.computed k.value)
      rwa [List.length_map] at this)
  rwa [Nat.zero_add, List.flatMap_map, List.flatMap_singleton'] at this

/-- **mixed-within-allowance**: attention with sums and exponentials of more bits, weights stored in
a format of few, where they may underflow, and its result rounded to another, is within the
tolerance: of the roundings nothing is supposed but that the bits of the accumulator suffice for the
sizes. -/
theorem mixed_within_tolerance (hf : IsFloor floor) (hw : 0 < p.weights.precision)
    (format : Format) {scale : R}
    {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
    {V : Matrix R kv_len d_v} {i : Fin q_len} (unmasked : ∃ j, mask i j = true)
    (hd : 10 * (d + 4) ≤ 2 ^ p.accumulator) (hk : 2 * kv_len + 7 ≤ 2 ^ p.accumulator)
    (negligible : R) (t : Fin d_v) :
    AtMost (storedTolerance (p.precision R) ((2 : R) ^ (-(format.precision : Int)))
        ((2 : R) ^ (format.least - 1)) kv_len 0 negligible
        (boundedKeys (p.precision R) inAccumulator d scale mask Q K V i t (List.finRange kv_len)))
      (format.round floor (p.output floor scale mask Q K V i t)
        - (attention scale mask.toScoreMod Q K V)[i][t]) := by
  have pos : 0 < (2 : R) ^ (-(p.accumulator : Int)) := two_zpow_pos _
  have one := OrderedRing.zero_lt_one (R := R)
  have small : (2 : R) ^ (-(p.accumulator : Int)) < 1 := by
    have h := numeral_mul_le (R := R) (p := p.accumulator) (n := 1 + 1) (by omega)
    rw [numeral_succ, numeral_succ] at h
    have e : (numeral 0 : R) = 0 := rfl
    rw [e] at h
    generalize (2 : R) ^ (-(p.accumulator : Int)) = u at *
    clear hd hk unmasked
    grind
  have hp : Precise (p.precision R) :=
    ⟨Std.le_of_lt pos, Std.le_of_lt pos, Std.le_of_lt pos, small, Std.le_of_lt (two_zpow_pos _),
      Std.le_of_lt (two_zpow_pos _)⟩
  let s := fun j : Fin kv_len => p.score floor scale Q[i] K[j]
  cases hm : rowMax ((List.finRange kv_len).map fun j => if mask i j then some (s j) else none) with
  | none =>
    obtain ⟨j, hj⟩ := unmasked
    have := rowMax_eq_none.mp hm _ (List.mem_map_of_mem (List.mem_finRange j))
    simp [hj] at this
  | some m =>
    let keys := computedKeys (p.precision R) inAccumulator d scale mask Q K V i t
      (List.finRange kv_len) s
    have isSome : ∀ j, (boundedKey (p.precision R) inAccumulator d scale mask Q K V i t
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
    have run := run_keys (p := p) hf hw keys top
    have length : keys.length = kv_len := by simp [keys, computedKeys]
    have self := rounded_same (R := R) (Std.le_of_lt pos)
    have h₁ := numeral_mul_le (R := R) hd
    have h₂ := numeral_mul_le (R := R) (p := p.accumulator) (n := kv_len + 6 + 1) (by omega)
    have h₃ := numeral_mul_le (R := R) (p := p.accumulator) (n := 2 * kv_len + 1) (by omega)
    have two : (numeral 2 : R) = 2 := by
      rw [numeral_eq]
      exact (Semiring.ofNat_eq_natCast 2).symm
    have ten : (numeral 10 : R) = 10 := by
      rw [numeral_eq]
      exact (Semiring.ofNat_eq_natCast 10).symm
    rw [numeral_mul, ten] at h₁
    rw [numeral_succ] at h₂
    rw [numeral_succ, numeral_mul, two] at h₃
    have value : ∀ j, (boundedKey (p.precision R) inAccumulator d scale mask Q K V i t
        (rowMax ((List.finRange kv_len).map (Spec.score scale mask.toScoreMod Q K i))) j).value
          = V[j][t] := fun j => by
      simp only [boundedKey]
      split <;> rfl
    have e : p.output floor scale mask Q K V i t = roundBits floor p.accumulator
        (p.sum floor (keys.map fun k => p.product floor m k.score.isSome k.computed k.value)
          / p.sum floor (keys.map fun k => p.weight floor m k.score.isSome k.computed)) := by
      simp only [keys, s, computedKeys, List.map_map, Function.comp_def, isSome, value]
      simp only [s] at hm
      simp only [Mixed.output, hm]
    rw [e]
    refine format_output_matrices hf format hp (Std.le_refl _) inAccumulator_precise (σ₁ := 1)
      (σ₂ := 1) (σ := scale) (additions := d) ?_
      (scaledBy_normal rfl ⟨_, ⟨_, ⟨_, rfl, ?_⟩, self _⟩, self _⟩) (List.Perm.refl _)
      (fun j _ => score_computed hf scale Q[i] K[j]) run rfl attained (Nat.le_refl _)
      (by simp only [length]; omega) nofun ?_ ?_
      ⟨_, ⟨_, ⟨_, ⟨_, ⟨_, rfl, rounded_acc hf _⟩, self _⟩, self _⟩, self _⟩, self _⟩ negligible
    · rw [show operandFactor (p.precision R) inAccumulator = 1 from rfl]
      show 10 * (numeral (d + 4) * (2 : R) ^ (-(p.accumulator : Int))) + 4 * (1 - 1) ≤ 1
      grind
    · exact ⟨0, .zero (Std.le_of_lt pos), by grind⟩
    · show numeral (kv_len + 6) * (2 : R) ^ (-(p.accumulator : Int)) < 1
      grind
    · show 2 * numeral kv_len * (2 : R) ^ (-(p.accumulator : Int)) < 1
      grind

end Attention.Proof
