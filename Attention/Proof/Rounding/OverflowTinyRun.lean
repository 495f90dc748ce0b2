module

public import Attention.Proof.Rounding.OverflowTinyParts
public import Attention.Proof.Rounding.Underflow
import Attention.Proof.Rounding.Flushed
import Attention.Proof.Rounding.OverflowLogSumExp
import Attention.Proof.Rounding.OverflowQuotient
import Attention.Proof.Rounding.OverflowRun
import Attention.Proof.Rounding.Sum

public section

/-! # Computations whose numbers underflow and that stay in the range

Every part of a computation whose largest sums are within the range, with room for what underflows,
is made of numbers, and is a part that a function without a largest number may compute. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind Underflow

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [Exponential R R]

namespace Overflow

variable {p : Precision R} {ν μ : R} (hp : Precise p) (hν : 0 ≤ ν)
variable (hν' : p.exponential + 2 * ν < 1)
variable (ha : p.accumulation < 1) (hu : p.unit ≤ p.accumulation)
variable {largest : Largest R} {reference : R} {roundings rescalings : Nat}
include hp hν

omit [Exponential R R] in
/-- One component of the parts, together. -/
private theorem tiny_component {U : R} (hU : 0 ≤ U) (hUa : U ≤ p.accumulation)
    (hν' : p.exponential + 2 * ν < 1) {parts : List (LimitedPart R)} {a k r : Nat}
    {f : LimitedPart R → Option R} {x : Nat → ComputedKey R → R} (hx : ∀ r key, 0 ≤ x r key)
    (hx' : ∀ {r r'} key, r ≤ r' → x r key ≤ x r' key)
    (hbound : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (hf : ∀ part ∈ parts, ∃ y, f part = some y ∧ ((∀ key ∈ part.keys, key.score = none) → y = 0) ∧
      ((∃ key ∈ part.keys, key.score ≠ none) →
        AtMost (growth (roomForWeights p ν) part.additions part.rescalings
          * seen (x part.rescalings) part.keys - ν) y))
    {largest : R} {z : Option R} (h : LimitedPartSum largest U ν f k parts z)
    (fits : growth (roomForWeights p ν) (a + k) r * seen (x r) (parts.flatMap (·.keys))
      ≤ largest) :
    ∃ y, z = some y ∧ SumOf U ν (fun part : LimitedPart R => ∀ key ∈ part.keys, key.score = none)
        (fun part => (f part).getD 0) k parts y ∧
      ((∀ key ∈ parts.flatMap (·.keys), key.score = none) → y = 0) ∧
      ((∃ key ∈ parts.flatMap (·.keys), key.score ≠ none) →
        AtMost (growth (roomForWeights p ν) (a + k) r * seen (x r) (parts.flatMap (·.keys)) - ν)
          y) := by
  have one := OrderedRing.zero_lt_one (R := R)
  have q := roomForWeights_precise hp hν hν'
  let t := fun part : LimitedPart R => growth (roomForWeights p ν) a r * seen (x r) part.keys
  have hg := one_le_growth hp hν a r
  have ht₀ : ∀ part ∈ parts, 0 ≤ t part := fun part _ =>
    OrderedRing.mul_nonneg (by grind) (seen_nonneg (hx r) part.keys)
  have hm : ∀ part ∈ parts, (∀ key ∈ part.keys, key.score = none) → (f part).getD 0 = 0 :=
    fun part hpart all => by
      obtain ⟨y, e, h₁, -⟩ := hf part hpart
      rw [e]
      exact h₁ all
  have ht : ∀ part ∈ parts, ¬(∀ key ∈ part.keys, key.score = none) →
      AtMost (t part - ν) ((f part).getD 0) := fun part hpart some => by
    obtain ⟨y, e, -, h₂⟩ := hf part hpart
    rw [e]
    have some' : ∃ key ∈ part.keys, key.score ≠ none := Classical.byContradiction fun hn =>
      some fun key hk => Classical.byContradiction fun hs => hn ⟨key, hk, hs⟩
    refine (h₂ some').mono ?_
    have b := hbound part hpart
    have i₁ := growth_mono q b.1 b.2
    have i₂ : seen (x part.rescalings) part.keys ≤ seen (x r) part.keys := by
      refine sumOver_le_sumOver fun key _ => ?_
      simp only [ofUnmasked]
      split
      · exact Std.le_refl _
      · exact hx' key b.2
    have i₃ := OrderedField.mul_le_mul (growth_nonneg q part.additions part.rescalings) i₁
      (seen_nonneg (hx _) part.keys) i₂
    show _ ≤ growth (roomForWeights p ν) a r * seen (x r) part.keys - ν
    grind
  have e : sumOver t parts = growth (roomForWeights p ν) a r
      * seen (x r) (parts.flatMap (·.keys)) := by
    rw [seen_flatMap, ← sumOver_mul_left]
  have total := seen_nonneg (hx r) (parts.flatMap (·.keys))
  have hT := OrderedRing.mul_nonneg (show 0 ≤ growth (roomForWeights p ν) a r by grind) total
  have grown : (1 + U) ^ k * sumOver t parts
      ≤ growth (roomForWeights p ν) (a + k) r * seen (x r) (parts.flatMap (·.keys)) := by
    rw [e, ← growth_join (roomForWeights p ν) a k r, Semiring.mul_assoc]
    exact OrderedRing.mul_le_mul_of_nonneg_right (pow_le_left (x := 1 + U)
      (y := 1 + (roomForWeights p ν).accumulation) (by grind)
      (by show 1 + U ≤ 1 + p.accumulation; grind) k).2 hT
  obtain ⟨y, rfl, hy⟩ := limitedSumOf hU hν (h fun part hpart => by
    obtain ⟨y, e, -⟩ := hf part hpart
    rw [e]
    exact nofun) hm ht₀ ht (Std.le_trans grown fits)
  obtain ⟨h₁, h₂⟩ := sumOf_size hU hν hy hm ht₀ ht
  refine ⟨y, rfl, hy, fun all => h₂ fun part hpart key hk =>
    all key (List.mem_flatMap.mpr ⟨part, hpart, hk⟩), fun ⟨key, hk, hs⟩ => ?_⟩
  obtain ⟨part, hpart, hk⟩ := List.mem_flatMap.mp hk
  refine (h₁ ⟨part, hpart, fun h => hs (h key hk)⟩).mono ?_
  have := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedField.one_le_pow (x := 1 + U) (by grind) k) hν
  grind

include hν' in
private theorem tiny_join {m : R} {l o : Option R} {parts : List (LimitedPart R)} {a k r : Nat}
    (hu : p.unit ≤ p.accumulation)
    (hbound : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (hl : LimitedPartSum largest.accumulator p.unit ν (·.l) k parts l)
    (ho : LimitedPartSum largest.accumulator p.accumulation ν (·.o) k parts o)
    (h : TinyInRange p ν largest reference roundings rescalings
      ⟨parts.flatMap (·.keys), l, o, a + k, r⟩)
    (s : ∀ part ∈ parts, ∃ l o, TinySound p ν μ m part l o) :
    ∃ l' o', TinySound p ν μ m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩ l' o' := by
  have one := OrderedRing.zero_lt_one (R := R)
  have q := roomForWeights_precise hp hν hν'
  have g := growth_le q (a := a + k) (r := r) h.depth h.raised
  have x₂ := fun r => roomy_nonneg (R := R) hν (x := fun key => absolute key.value)
    (fun _ => absolute_nonneg _) r
  obtain ⟨l', rfl, l₁, l₂, l₃⟩ := tiny_component hp hν hp.unit hu hν' (f := (·.l))
    (x := fun _ _ => 1) (fun _ _ => Std.le_of_lt one) (fun _ _ => Std.le_refl _) hbound
    (fun part hpart => by
      obtain ⟨l, o, s⟩ := s part hpart
      exact ⟨l, s.l_eq, fun all => (s.masked all).1, s.most_l⟩) hl
    (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right g
      (seen_nonneg (fun _ => Std.le_of_lt one) _)) h.count)
  obtain ⟨o', rfl, o₁, o₂, o₃⟩ := tiny_component hp hν hp.accumulation (Std.le_refl _) hν'
    (f := (·.o)) (x := fun r => roomy ν r fun key => absolute key.value) x₂
    (fun {r r'} key hr => by
      have := OrderedRing.mul_le_mul_of_nonneg_right
        (numeral_le_numeral (R := R) (Nat.add_le_add_right hr 3)) hν
      simp only [roomy]
      grind) hbound
    (fun part hpart => by
      obtain ⟨l, o, s⟩ := s part hpart
      exact ⟨o, s.o_eq, fun all => (s.masked all).2, s.most_o⟩) ho
    (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left (seen_room hν h.raised _)
      (growth_nonneg q _ _)) (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right g
        (seen_nonneg (x₂ rescalings) _)) h.values))
  let c := fun part : LimitedPart R =>
    (⟨part.keys, part.l.getD 0, part.o.getD 0, part.additions, part.rescalings⟩ : Part R)
  have run := TinyRun.join (p := p) (ν := ν) (μ := μ) (m := m) (a := a) (k := k) (r := r) (l := l')
    (o := o') (parts := parts.map c)
    (fun part hpart => by
      obtain ⟨part', h', rfl⟩ := List.mem_map.mp hpart
      obtain ⟨l, o, s⟩ := s part' h'
      show TinyRun p ν μ m ⟨part'.keys, part'.l.getD 0, part'.o.getD 0, part'.additions,
        part'.rescalings⟩
      rw [s.l_eq, s.o_eq]
      exact s.run)
    (fun part hpart => by
      obtain ⟨part', h', rfl⟩ := List.mem_map.mp hpart
      exact hbound part' h')
    (sumOf_map c l₁ (fun _ _ => rfl) fun _ _ => .rfl)
    (sumOf_map c o₁ (fun _ _ => rfl) fun _ _ => .rfl)
  rw [List.flatMap_map] at run
  exact ⟨l', o', rfl, rfl, run, fun all => ⟨l₂ all, o₂ all⟩, l₃, o₃⟩

include hν' ha hu in
private theorem tiny_sound (hr : reference + reference ≤ largest.accumulator)
    (hw₁ : weightSize (roomForWeights p ν) rescalings ≤ largest.accumulator)
    (hw₂ : weightSize (roomForWeights p ν) rescalings ≤ largest.weights) {m : R}
    {part : LimitedPart R} (run : LimitedTinyRun p ν μ largest reference m part)
    (h : TinyInRange p ν largest reference roundings rescalings part) :
    ∃ l o, TinySound p ν μ m part l o := by
  induction run with
  | @masked m key hk =>
    have none : ¬∃ k ∈ [key], k.score ≠ none := fun ⟨k, h, hs⟩ => by
      rw [List.mem_singleton.mp h] at hs
      exact hs hk
    exact ⟨0, 0, rfl, rfl, .masked hk, fun _ => ⟨rfl, rfl⟩, fun h => absurd h none,
      fun h => absurd h none⟩
  | key hk hm href hx hw hw' hy ho hl =>
    exact tiny_sound_key hp hν hν' ha hu hr hw₁ hw₂ hk hm href hx hw hw' hy ho hl h
  | @join m l o parts a k r _ hbound hl ho ih =>
    refine tiny_join hp hν hν' hu hbound hl ho h fun part hpart => ?_
    have b := hbound part hpart
    have one := OrderedRing.zero_lt_one (R := R)
    have n := Std.le_trans (growth_nonneg (roomForWeights_precise hp hν hν') _ _)
      (growth_le (roomForWeights_precise hp hν hν') h.depth h.raised)
    exact ih part hpart
      { raised := Nat.le_trans b.2 h.raised
        depth := by have := h.depth; simp only at this; omega
        count := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left
          (seen_part_le (x := fun _ => 1) (fun _ => Std.le_of_lt one) hpart) n) h.count
        values := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left
          (seen_part_le (roomy_nonneg hν (fun _ => absolute_nonneg _) _) hpart) n) h.values
        score := fun key hk => h.score key (List.mem_flatMap.mpr ⟨part, hpart, hk⟩) }
  | rescale run hm href href' hx hα hl ho ih =>
    have r := h.raised
    have d := h.depth
    simp only at r d
    obtain ⟨l', o', s⟩ := ih
      { raised := by omega
        depth := by omega
        count := h.count
        values := h.values
        score := h.score }
    exact tiny_sound_rescale hp hν hν' ha hu hr hw₁ hm href href' hx hα hl ho h s

/-! ## What a whole row loses -/

omit [Exponential R R] hp hν in
private theorem numeral_costs (r : Nat) : (numeral (3 * r + 10) : R)
    = 2 * numeral (r + 2) + numeral (r + 6) := by
  rw [show 3 * r + 10 = (r + 2) + (r + 2) + (r + 6) by omega]
  simp only [numeral_eq, Semiring.natCast_add]
  grind

omit [Exponential R R] hν in
/-- Not negative. -/
theorem lostSize_nonneg (hν : 0 ≤ ν) (row : List (BoundedKey R)) :
    0 ≤ lostSize p ν roundings rescalings row := by
  have one := OrderedRing.zero_lt_one (R := R)
  have := hp.accumulation
  simp only [lostSize, power_eq]
  exact OrderedRing.mul_nonneg (Std.le_of_lt (OrderedField.pow_pos (by grind) _))
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (numeral_nonneg _)
      (OrderedField.div_nonneg hν (OrderedField.pow_pos (remainder_pos hp) _)))
      (sumOver_nonneg fun _ _ => ofUnmasked_nonneg (Std.le_of_lt one)))

/-- The costs of the keys, without an exponential. -/
private theorem costs_le {U m F : R} (hU : 0 ≤ U) (hUa : U ≤ p.accumulation) {n r : Nat}
    (hr : r ≤ rescalings) (hn : n ≤ roundings + 1) {f : ComputedKey R → R}
    {keys : List (ComputedKey R)} (hf₀ : ∀ k, 0 ≤ f k)
    (hf : ∀ k ∈ keys, k.score ≠ none → f k ≤ F) (hF : 1 ≤ F) :
    (1 + U) ^ n * sumOver (cost p ν m r f) keys
      ≤ lostSize p ν roundings rescalings (keys.map (·.toBoundedKey)) * F := by
  have one := OrderedRing.zero_lt_one (R := R)
  have hq := remainder_pos hp
  simp only [lostSize, power_eq, sumOver_map]
  have hs := OrderedField.div_nonneg hν (OrderedField.pow_pos hq r)
  have hs' := share_mono hp hν hr
  generalize hS : ν / (1 - p.exponential) ^ rescalings = S at *
  have n₁ : (numeral (3 * r + 10) : R) ≤ numeral (3 * rescalings + 10) :=
    numeral_le_numeral (by omega)
  have each : ∀ k ∈ keys, cost p ν m r f k
      ≤ numeral (3 * rescalings + 10) * S * F * ofUnmasked k.toBoundedKey 1 := fun k hk => by
    unfold cost
    simp only [ofUnmasked]
    split
    · next e =>
      simp only [e, Semiring.mul_zero]
      exact Std.le_refl _
    · next s e =>
      simp only [e, Semiring.mul_one]
      have h₁ := (smaller_le (3 ^ (r + 2) * most p m r k)
        (numeral (r + 2) * (ν / (1 - p.exponential) ^ r))).2
      have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (hf₀ k)
      have h₃ := hf k hk (by simp [e])
      have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₃
        (OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 2)) hs)
      have h₅ := OrderedRing.mul_le_mul_of_nonneg_left hF
        (OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 6)) hs)
      have h₆ := OrderedRing.mul_le_mul_of_nonneg_right (OrderedField.mul_le_mul
        (numeral_nonneg (R := R) _) n₁ hs hs') (show 0 ≤ F by grind)
      rw [numeral_costs r] at h₆
      generalize smaller (3 ^ (r + 2) * most p m r k)
        (numeral (r + 2) * (ν / (1 - p.exponential) ^ r)) = x at *
      generalize ν / (1 - p.exponential) ^ r = s' at *
      grind
  have sum := sumOver_le_sumOver each
  rw [sumOver_mul_left] at sum
  have hU' : 0 ≤ (1 + U) ^ n := Std.le_of_lt (OrderedField.pow_pos (by grind) n)
  have h₁ := pow_le_left (x := 1 + U) (y := 1 + p.accumulation) (by grind) (by grind) n
  have h₂ := OrderedField.pow_le_pow (x := 1 + p.accumulation) (by grind) hn
  have h₃ : 0 ≤ numeral (3 * rescalings + 10) * S * F
      * sumOver (fun k : ComputedKey R => ofUnmasked k.toBoundedKey 1) keys := by
    rw [← hS]
    exact OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (numeral_nonneg _)
      (OrderedField.div_nonneg hν (OrderedField.pow_pos hq _))) (by grind))
      (sumOver_nonneg fun _ _ => ofUnmasked_nonneg (Std.le_of_lt one))
  have h₄ := OrderedField.mul_le_mul hU' (Std.le_trans h₁.2 h₂) (c := sumOver (cost p ν m r f) keys)
    (sumOver_nonneg fun k _ => cost_nonneg hp hν (hf₀ k)) sum
  generalize (1 + p.accumulation) ^ (roundings + 1) = G at *
  generalize sumOver (fun k : ComputedKey R => ofUnmasked k.toBoundedKey 1) keys = C at *
  clear each hS
  grind

omit [Exponential R R] hp hν in
private theorem quotient_lost {g V L left l l₀ o o₀ x : R} (hg : 1 ≤ g) (hV : 0 ≤ V) (hL : 0 ≤ L)
    (hleft : 0 < left) (ex : left * x = L * (2 * V + 1)) (hl : left ≤ l) (hl₀ : AtMost L (l - l₀))
    (ho : AtMost (L * (V + 1)) (o - o₀)) (ho₀ : AtMost (2 * g * V * l₀) o₀) :
    0 ≤ x ∧ AtMost (2 * g * (V + x) * l) o := by
  have one := OrderedRing.zero_lt_one (R := R)
  have hx : 0 ≤ x := by
    refine Classical.byContradiction fun hn => ?_
    have h₁ := OrderedRing.mul_pos hleft (show 0 < -x by grind)
    have h₂ := OrderedRing.mul_nonneg hL (show 0 ≤ 2 * V + 1 by grind)
    grind
  refine ⟨hx, ?_⟩
  have h₁ := ho₀.add ho
  rw [show o₀ + (o - o₀) = o by grind] at h₁
  refine h₁.mono ?_
  have gV := OrderedRing.mul_nonneg (show 0 ≤ g by grind) hV
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (show l₀ ≤ l + L by have := hl₀.1; grind) gV
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left (OrderedRing.mul_le_mul_of_nonneg_right hl hx)
    (show 0 ≤ g by grind)
  have h₄ := OrderedRing.mul_nonneg hL (show 0 ≤ V + 1 by grind)
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right hg h₄
  have h₆ := OrderedRing.mul_nonneg (show 0 ≤ g by grind) h₄
  rw [ex] at h₃
  clear h₁ ho ho₀ hl₀ ex hl
  grind

end Overflow

open Overflow

/-- **tiny-parts-finite**: where the sums of a row fit, with room for what underflows, a part of a
computation that may overflow and whose products, exponentials, differences and sums underflow is
made of numbers, and is a part that a function without a largest number may compute; its denominator
lies between the Spec's bounds, which are positive, and the quotient is a number of the result's
format. -/
theorem limitedTinyRun {p : Precision R} {ν μ : R} (hp : Precise p) (hν : 0 ≤ ν) (hμ : 0 ≤ μ)
    (hν' : p.exponential + 2 * ν < 1) (hu : p.unit ≤ p.accumulation) (ha : p.accumulation < 1)
    (hσ : p.stored < 1) {largest : Largest R} {reference : R} {roundings rescalings : Nat} {m : R}
    {part : LimitedPart R} (run : LimitedTinyRun p ν μ largest reference m part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    (hr : part.rescalings ≤ rescalings) (hd : part.additions + part.rescalings ≤ roundings)
    (fits : tinySumsFit p ν largest roundings rescalings reference
      (part.keys.map (·.toBoundedKey)))
    (scores : ∀ key ∈ part.keys, key.score ≠ none → AtMost reference key.computed)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) :
    ∃ l o, part.l = some l ∧ part.o = some o ∧
      TinyRun p ν μ m ⟨part.keys, l, o, part.additions, part.rescalings⟩ ∧
      0 < tinyDenominatorLeast p ν roundings rescalings (part.keys.map (·.toBoundedKey)) ∧
      tinyDenominatorLeast p ν roundings rescalings (part.keys.map (·.toBoundedKey)) ≤ l ∧
      l ≤ denominatorSize (roomForWeights p ν) roundings rescalings
        (part.keys.map (·.toBoundedKey)) ∧
      ∀ y, LimitedTinyQuotient p ν largest part y →
        ∃ z, y = some z ∧ TinyTimes p.accumulation ν 5 (o / l) z ∧ AtMost largest.output z := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have q := roomForWeights_precise hp hν hν'
  simp only [tinySumsFit, sumsFit, Bool.and_eq_true, Bool.not_eq_true', decide_eq_true_eq,
    decide_eq_false_iff_not] at fits
  obtain ⟨⟨⟨⟨⟨⟨f₁, f₂⟩, f₃⟩, f₄⟩, -⟩, left⟩, f₅⟩ := fits
  obtain ⟨w₁, w₂⟩ := le_of_le_smaller f₂
  obtain ⟨q₁, q₂⟩ := le_of_le_smaller f₅
  rw [numeral_two] at f₁
  obtain ⟨v₀, v₁⟩ := valueSize_spec (part.keys.map (·.toBoundedKey))
  have roomy_eq : sumOver (fun key : BoundedKey R => ofUnmasked key (absolute key.value))
      ((part.keys.map (·.toBoundedKey)).map (roomForValue ν rescalings))
      = seen (roomy ν rescalings fun key => absolute key.value) part.keys := by
    rw [sumOver_map, sumOver_map, seen]
    refine sumOver_congr fun key _ => ?_
    have e := absolute_of_nonneg (roomy_nonneg (R := R) hν (x := fun key => absolute key.value)
      (fun _ => absolute_nonneg _) rescalings key)
    simp only [ofUnmasked, roomForValue]
    split
    · rfl
    · exact e
  have count_eq : denominatorSize (roomForWeights p ν) roundings rescalings
      ((part.keys.map (·.toBoundedKey)).map (roomForValue ν rescalings))
      = denominatorSize (roomForWeights p ν) roundings rescalings
        (part.keys.map (·.toBoundedKey)) := by
    rw [denominatorSize, denominatorSize, sumOver_map]
    rfl
  rw [count_eq] at f₃
  have most_eq : denominatorSize (roomForWeights p ν) roundings rescalings
      (part.keys.map (·.toBoundedKey)) = (1 + p.accumulation) ^ (roundings + 1)
        * weightSize (roomForWeights p ν) rescalings * seen (fun _ => 1) part.keys := by
    rw [denominatorSize, power_eq, sumOver_map]
    rfl
  rw [roomy_eq, power_eq] at f₄
  have f₃' := f₃
  rw [most_eq] at f₃'
  obtain ⟨l, o, s⟩ := tiny_sound hp hν hν' ha hu (show reference + reference ≤ _ by grind) w₁ w₂ run
    ⟨hr, hd, f₃', f₄, scores⟩
  obtain ⟨key, hkey, hscore, hm⟩ := attained
  -- A run without underflow.
  obtain ⟨moved, k₁, k₂, k₃⟩ := flushed_run z₁ hμ s.run
  obtain ⟨part₀, C⟩ := tiny_run hp hν (show p.unit ≤ 1 by grind) k₃ hνq
  have keys₀ : part₀.keys = moved.map raised := C.keys
  have bounded₀ : part₀.keys.map (·.toBoundedKey) = part.keys.map (·.toBoundedKey) := by
    have k₁ : part.keys = moved.map (·.1) := k₁
    rw [keys₀, k₁, List.map_map, List.map_map]
    rfl
  have value₀ : ∀ k ∈ part₀.keys, k.score ≠ none →
      AtMost (valueSize (part.keys.map (·.toBoundedKey))) k.value := fun k hk hs =>
    v₁ k.toBoundedKey (by rw [← bounded₀]; exact List.mem_map_of_mem hk) hs
  have attained₀ : ∃ k ∈ part₀.keys, k.score ≠ none ∧ k.computed = m := by
    have k₁ : part.keys = moved.map (·.1) := k₁
    rw [k₁] at hkey
    obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hkey
    refine ⟨raised k, by rw [keys₀]; exact List.mem_map_of_mem hk, hscore, ?_⟩
    obtain ⟨i₁, -, i₂⟩ := k₂ k hk
    have := i₂ hscore
    show k.1.computed + k.2 = m
    grind
  have ea : part₀.additions = part.additions := C.additions
  have er : part₀.rescalings = part.rescalings := C.rescalings
  -- What it loses.
  have L₀ := lostSize_nonneg (roundings := roundings) (rescalings := rescalings) hp hν
    (part.keys.map (·.toBoundedKey))
  have lost : AtMost (lostSize p ν roundings rescalings (part.keys.map (·.toBoundedKey)))
      (l - part₀.l) := by
    refine (C.l hp hν).mono ?_
    have := costs_le (roundings := roundings) (m := m) (F := 1) hp hν z₁ hu hr
      (show part.additions + part.rescalings ≤ roundings + 1 by omega) (f := fun _ => 1)
      (keys := part₀.keys) (fun _ => Std.le_of_lt one) (fun _ _ _ => Std.le_refl _)
      (Std.le_refl _)
    rw [bounded₀, Semiring.mul_one, keys₀] at this
    exact this
  have lost' : AtMost (lostSize p ν roundings rescalings (part.keys.map (·.toBoundedKey))
      * (valueSize (part.keys.map (·.toBoundedKey)) + 1)) (o - part₀.o) := by
    refine (C.o hp hν).mono ?_
    have := costs_le (roundings := roundings) (m := m)
      (F := valueSize (part.keys.map (·.toBoundedKey)) + 1) hp hν z₂ (Std.le_refl _) hr
      (show part.additions + part.rescalings + 1 ≤ roundings + 1 by omega)
      (f := fun k => absolute k.value) (keys := part₀.keys) (fun _ => absolute_nonneg _)
      (fun k hk hs => by
        have := absolute_le (value₀ k hk hs)
        grind) (by grind)
    rw [bounded₀, keys₀] at this
    exact this
  have least₀ : 0 < denominatorLeast p roundings rescalings := by
    rw [tinyDenominatorLeast] at left
    grind
  have base := base_of_denominatorLeast hp ha least₀
  have least := Std.le_trans (denominatorLeast_mono hp ha base hd hr)
    (by
      have := (run_least hp ha base hu hσ C.run).2.2 attained₀
      rwa [ea, er] at this)
  have low : tinyDenominatorLeast p ν roundings rescalings (part.keys.map (·.toBoundedKey))
      ≤ l := by
    have := lost.1
    rw [tinyDenominatorLeast]
    grind
  have pos : 0 < tinyDenominatorLeast p ν roundings rescalings
      (part.keys.map (·.toBoundedKey)) := by grind
  have most : l ≤ denominatorSize (roomForWeights p ν) roundings rescalings
      (part.keys.map (·.toBoundedKey)) := by
    have h₁ := (s.most_l ⟨key, hkey, hscore⟩).2
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (growth_le q hd hr)
      (seen_nonneg (fun _ => Std.le_of_lt one) part.keys)
    rw [most_eq]
    exact Std.le_trans h₁ (Std.le_trans (by grind) h₂)
  refine ⟨l, o, s.l_eq, s.o_eq, s.run, pos, low, most, fun y hy => ?_⟩
  obtain ⟨-, size₀⟩ := run_quotient hp ha hu v₀ C.run value₀
  rw [ea, er] at size₀
  have g₁ := ratio_mono hp ha (show part.additions + part.rescalings + 1 ≤ roundings + 1 by omega)
  have g₀ : 1 ≤ ratio p ^ (roundings + 1) := OrderedField.one_le_pow (by
    have := one_add_le_ratio hp ha
    grind) _
  have l₀ := Std.le_trans (Std.le_of_lt least₀) (show _ ≤ part₀.l from least)
  have g₂ := OrderedRing.mul_le_mul_of_nonneg_right (OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedRing.mul_le_mul_of_nonneg_left g₁ (c := 2) (by grind)) v₀) l₀
  obtain ⟨x, ex⟩ : ∃ x, x = lostSize p ν roundings rescalings (part.keys.map (·.toBoundedKey))
      * (numeral 2 * valueSize (part.keys.map (·.toBoundedKey)) + 1)
      / tinyDenominatorLeast p ν roundings rescalings (part.keys.map (·.toBoundedKey)) := ⟨_, rfl⟩
  have ex' := OrderedField.mul_div_cancel (b := tinyDenominatorLeast p ν roundings rescalings
    (part.keys.map (·.toBoundedKey))) (by grind) (lostSize p ν roundings rescalings
      (part.keys.map (·.toBoundedKey)) * (numeral 2 * valueSize
        (part.keys.map (·.toBoundedKey)) + 1))
  rw [← ex, numeral_two] at ex'
  obtain ⟨x₀, size⟩ := quotient_lost g₀ v₀ L₀ pos ex' low lost lost' (size₀.mono g₂)
  have hl : 0 < l := Std.lt_of_lt_of_le pos low
  have b : AtMost (2 * ratio p ^ (roundings + 1)
      * (valueSize (part.keys.map (·.toBoundedKey)) + x)) (o / l) := by
    obtain ⟨h₁, h₂⟩ := size
    constructor
    · rw [OrderedField.le_div_iff hl]
      grind
    · rw [OrderedField.div_le_iff hl]
      grind
  have total : (1 + p.accumulation) ^ 5 * (2 * ratio p ^ (roundings + 1)
      * (valueSize (part.keys.map (·.toBoundedKey)) + x) + numeral 5 * ν)
      ≤ tinyQuotientSize p ν roundings rescalings (part.keys.map (·.toBoundedKey)) := by
    have g₂ := pow_le_left (x := 1 + p.accumulation) (y := ratio p) (by grind)
      (one_add_le_ratio hp ha) 5
    have n₅ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 5) hν
    have g₃ := OrderedRing.mul_le_mul_of_nonneg_right
      (show 1 ≤ 2 * ratio p ^ (roundings + 1) by grind) n₅
    have g₄ := OrderedField.mul_le_mul (c := 2 * ratio p ^ (roundings + 1)
      * (valueSize (part.keys.map (·.toBoundedKey)) + x) + numeral 5 * ν)
      (d := 2 * ratio p ^ (roundings + 1)
        * (valueSize (part.keys.map (·.toBoundedKey)) + x + numeral 5 * ν)) g₂.1 g₂.2
      (by have := b.nonneg; grind) (by grind)
    refine Std.le_trans g₄ ?_
    simp only [tinyQuotientSize, power_eq, numeral_two] at ex ⊢
    rw [← ex, show (1 + p.accumulation) / (1 - p.accumulation) = ratio p from rfl,
      show roundings + 6 = 5 + (roundings + 1) by omega, Semiring.pow_add (ratio p) 5]
    generalize valueSize (part.keys.map (·.toBoundedKey)) + x + numeral 5 * ν = Y
    generalize ratio p ^ (roundings + 1) = G
    generalize ratio p ^ 5 = H
    rw [show ∀ a b c : R, a * (2 * b * c) = 2 * (a * b) * c from fun a b c => by grind]
    exact Std.le_refl _
  obtain ⟨z, e', h₁, h₂⟩ := limitedTinyTimes z₂ hν (hy o s.o_eq l s.l_eq (by grind)) b
    (Std.le_trans total q₁)
  exact ⟨z, e', h₁, h₂.mono (Std.le_trans total q₂)⟩

end Attention.Proof
