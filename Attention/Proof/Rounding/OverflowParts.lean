module

public import Attention.Proof.Rounding.OverflowSizes

public section

/-! # A key, and a part that is rescaled, that stay in the range -/

namespace Attention.Proof.Overflow

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The conditions on a part. -/
structure InRange (p : Precision R) (largest : Largest R) (reference value : R)
    (roundings rescalings : Nat) (part : LimitedPart R) : Prop where
  /-- Rescaled no more often. -/
  raised : part.rescalings ≤ rescalings
  /-- Rounded no more often. -/
  depth : part.additions + part.rescalings ≤ roundings
  /-- The sum of its weights. -/
  count : (1 + p.accumulation) ^ (roundings + 1) * weightSize p rescalings
    * seen (fun _ => 1) part.keys ≤ largest.accumulator
  /-- The sum of the sizes of its values. -/
  values : (1 + p.accumulation) ^ (roundings + 1) * weightSize p rescalings
    * seen (fun key => absolute key.value) part.keys ≤ largest.accumulator
  /-- Each value. -/
  value : ∀ key ∈ part.keys, key.score ≠ none → AtMost value key.value
  /-- Each score. -/
  score : ∀ key ∈ part.keys, key.score ≠ none → AtMost reference key.computed

/-- The properties that are shown of it. -/
structure Sound (p : Precision R) (value m : R) (part : LimitedPart R) (l o : R) :
    Prop where
  /-- A number. -/
  l_eq : part.l = some l
  /-- A number. -/
  o_eq : part.o = some o
  /-- One without a largest number. -/
  run : Run p m ⟨part.keys, l, o, part.additions, part.rescalings⟩
  /-- The denominator is not negative. -/
  nonneg : 0 ≤ l
  /-- How large it is. -/
  most_l : l ≤ growth p part.additions part.rescalings * seen (fun _ => 1) part.keys
  /-- How large the numerator is. -/
  most_o : AtMost (growth p part.additions part.rescalings
    * seen (fun key => absolute key.value) part.keys) o
  /-- How large their quotient is. -/
  quotient : AtMost (2 * ratio p ^ (part.additions + part.rescalings + 1) * value * l) o
  /-- No score is above the reference point. -/
  below : ∀ key ∈ part.keys, key.score ≠ none → key.computed ≤ m
  /-- One that attains it makes the denominator positive. -/
  pos : (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) → 0 < l

omit [Exponential R R] in
private theorem seen_masked {x : ComputedKey R → R} {key : ComputedKey R} (h : key.score = none) :
    seen x [key] = 0 := by
  rw [seen, sumOver_cons, sumOver_nil, ofUnmasked, h]
  grind

/-- A masked key. -/
theorem sound_masked {p : Precision R} {value m : R} {key : ComputedKey R}
    (h : key.score = none) : Sound p value m ⟨[key], some 0, some 0, 0, 0⟩ 0 0 where
  l_eq := rfl
  o_eq := rfl
  run := .masked h
  nonneg := Std.le_refl _
  most_l := by
    rw [seen_masked h, Semiring.mul_zero]
    exact Std.le_refl _
  most_o := by
    rw [seen_masked h, Semiring.mul_zero]
    exact .zero (Std.le_refl _)
  quotient := by
    rw [Semiring.mul_zero]
    exact .zero (Std.le_refl _)
  below key' h' hs := by
    rw [List.mem_singleton.mp h'] at hs
    exact absurd h hs
  pos h' := by
    obtain ⟨key', h', hs, -⟩ := h'
    rw [List.mem_singleton.mp h'] at hs
    exact absurd h hs

section
variable {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
variable (hu : p.unit ≤ p.accumulation) (hσ : p.stored < 1) (hη : p.storedTiny < 1 - p.exponential)
variable {largest : Largest R} {reference value : R} {roundings rescalings : Nat}
variable (hr : reference + reference ≤ largest.accumulator)
variable (hw₁ : weightSize p rescalings ≤ largest.accumulator)
variable (hw₂ : weightSize p rescalings ≤ largest.weights)
include hp ha hu hr hw₁

include hσ hη hw₂ in
/-- One key. -/
theorem sound_key {m : R} {x w w' l o : Option R} {key : ComputedKey R}
    (hk : key.score ≠ none) (hm : key.computed ≤ m) (href : AtMost reference m)
    (hx : Limited largest.accumulator (Rounded p.unit) (key.computed - m) x)
    (hw : ∀ a ∈ x, Limited largest.accumulator (Rounded p.exponential) (exp a) w)
    (hw' : ∀ a ∈ w, Limited largest.weights (Stored p.stored p.storedTiny) a w')
    (ho : ∀ a ∈ w', Limited largest.accumulator (Rounded p.accumulation) (a * key.value) o)
    (hl : ∀ a ∈ w, ∀ b ∈ w', l = some (added p.denominator a b))
    (h : InRange p largest reference value roundings rescalings ⟨[key], l, o, 0, 0⟩) :
    ∃ l' o', Sound p value m ⟨[key], l, o, 0, 0⟩ l' o' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  obtain ⟨s₁, s₂⟩ := one_add_le_weightSize hp rescalings
  have g₀ := growth_le hp (a := 0) (r := 0) h.depth h.raised
  have e₀ : growth p 0 0
      = (1 + p.accumulation) * ((1 + p.exponential) * (1 + p.stored + p.storedTiny)) := by
    rw [growth]
    simp only [Nat.zero_add, Semiring.pow_one]
  have hv := h.value key (by simp) hk
  have hvalues := h.values
  rw [seen_single hk] at hvalues
  have hd := (h.score key (by simp) hk).sub href
  obtain ⟨a, b, rfl, rfl, ha₁, hb₁, pos, most, top⟩ := limited_exp (show p.unit ≤ 1 by grind) z₆
    (show 1 ≤ largest.accumulator by grind) hm (hd.mono hr) hx hw
  obtain ⟨c, rfl, hc⟩ := hw' b rfl ⟨by grind, by grind⟩
  obtain ⟨c₁, c₂, c₃⟩ := stored_le z₄ z₅ z₃ (Std.le_of_lt pos) most hc
  have hv₀ := absolute_nonneg key.value
  have hW : 0 ≤ (1 + p.exponential) * (1 + p.stored + p.storedTiny) :=
    OrderedRing.mul_nonneg (by grind) (by grind)
  have most_c : AtMost ((1 + p.exponential) * (1 + p.stored + p.storedTiny)) c :=
    ⟨by grind, c₃⟩
  have hprod := most_c.mul (atMost_absolute key.value)
  have hg := OrderedRing.mul_le_mul_of_nonneg_right g₀ hv₀
  have grown := le_one_add_mul z₂ hprod.nonneg
  rw [e₀] at hg
  obtain ⟨o', rfl, ho₁, ho₂⟩ := limited_rounded (ho c rfl) hprod (by grind)
  have hprod' := (show AtMost c c from ⟨by grind, Std.le_refl _⟩).mul hv
  have ho₃ := rounded_atMost ho₁ hprod'
  have hadd : 0 ≤ added p.denominator b c ∧ c ≤ 2 * added p.denominator b c ∧
      added p.denominator b c ≤ (1 + p.exponential) * (1 + p.stored + p.storedTiny) := by
    have h₁ := OrderedRing.mul_nonneg (a := 1 + p.exponential) (b := p.stored + p.storedTiny)
      (by grind) (by grind)
    cases p.denominator
    · exact ⟨Std.le_of_lt pos, c₂, by simp only [added]; grind⟩
    · exact ⟨c₁, by simp only [added]; grind, c₃⟩
  have hpos : key.computed = m → 0 < added p.denominator b c := fun e => by
    cases p.denominator
    · exact pos
    · exact stored_pos hσ z₆ hη (top e) hc
  refine ⟨added p.denominator b c, o', hl b rfl c rfl, rfl, .key hk hm ha₁ hb₁ hc ho₁, hadd.1, ?_,
    ?_, ?_, fun key' h' _ => ?_, fun h' => ?_⟩
  · rw [seen_single hk, e₀, Semiring.mul_one]
    exact Std.le_trans hadd.2.2 (le_one_add_mul z₂ hW)
  · rw [seen_single hk, e₀]
    exact ho₂.mono (by grind)
  · refine ho₃.mono ?_
    have h₁ := one_add_le_ratio hp ha
    have h₂ := OrderedRing.mul_nonneg hv.nonneg hadd.1
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₁ h₂
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_right hadd.2.1 hv.nonneg
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := 1 + p.accumulation) (by grind)
    simp only [Nat.zero_add, Semiring.pow_one]
    generalize ratio p = g at *
    generalize added p.denominator b c = A at *
    clear h hx hw hw' ho hl hc ho₁ ho₂ ho₃ hprod hprod' hvalues hg g₀ e₀ grown
    grind
  · rw [List.mem_singleton.mp h']
    exact hm
  · obtain ⟨key', h', -, e⟩ := h'
    rw [List.mem_singleton.mp h'] at e
    exact hpos e

/-- A part that is rescaled. -/
theorem sound_rescale {m m' : R} {x α l o : Option R} {part : LimitedPart R}
    (hm : m ≤ m') (href : AtMost reference m) (href' : AtMost reference m')
    (hx : Limited largest.accumulator (Rounded p.unit) (m - m') x)
    (hα : ∀ a ∈ x, Limited largest.accumulator (Rounded p.exponential) (exp a) α)
    (hl : ∀ a ∈ α, ∀ b ∈ part.l, Limited largest.accumulator (Rounded p.unit) (a * b) l)
    (ho : ∀ a ∈ α, ∀ b ∈ part.o, Limited largest.accumulator (Rounded p.accumulation) (a * b) o)
    (h : InRange p largest reference value roundings rescalings
      { part with l := l, o := o, rescalings := part.rescalings + 1 })
    (hV : 0 ≤ value) {l₀ o₀ : R} (s : Sound p value m part l₀ o₀) :
    ∃ l' o', Sound p value m' { part with l := l, o := o, rescalings := part.rescalings + 1 }
      l' o' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  obtain ⟨s₁, s₂⟩ := one_add_le_weightSize hp rescalings
  obtain ⟨a, b, rfl, rfl, ha₁, hb₁, pos, most, top⟩ := limited_exp (show p.unit ≤ 1 by grind) z₆
    (show 1 ≤ largest.accumulator by grind) hm ((href.sub href').mono hr) hx hα
  have most_b : AtMost (1 + p.exponential) b := ⟨by grind, most⟩
  have g := growth_le hp (a := part.additions) (r := part.rescalings + 1) h.depth h.raised
  have e := growth_rescale p part.additions part.rescalings
  have hcount := h.count
  have hvalues := h.values
  have n₁ := seen_nonneg (R := R) (x := fun _ => 1) (fun _ => Std.le_of_lt one) part.keys
  have n₂ := seen_nonneg (R := R) (x := fun key => absolute key.value)
    (fun _ => absolute_nonneg _) part.keys
  have g₁ := OrderedRing.mul_le_mul_of_nonneg_right g n₁
  have g₂ := OrderedRing.mul_le_mul_of_nonneg_right g n₂
  rw [← e] at g₁ g₂
  have hl₀ : AtMost (growth p part.additions part.rescalings * seen (fun _ => 1) part.keys) l₀ :=
    ⟨by have := s.nonneg; have := s.most_l; grind, s.most_l⟩
  have p₁ := most_b.mul hl₀
  have p₂ := most_b.mul s.most_o
  have i₁ := le_one_add_mul z₂ p₁.nonneg
  have i₂ := le_one_add_mul z₂ p₂.nonneg
  obtain ⟨l', rfl, hl₁, hl₂⟩ := limited_rounded (hl b rfl l₀ s.l_eq) p₁ (by grind)
  obtain ⟨o', rfl, ho₁, ho₂⟩ := limited_rounded (ho b rfl o₀ s.o_eq) p₂ (by grind)
  have low : (1 - p.accumulation) * (b * l₀) ≤ l' := by
    obtain ⟨θ, ⟨hθ, -⟩, rfl⟩ := hl₁
    have h₁ := OrderedRing.mul_nonneg (Std.le_of_lt pos) s.nonneg
    have := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 - p.accumulation) (b := 1 + θ)
      (by grind) h₁
    grind
  have h₀ := OrderedRing.mul_nonneg (Std.le_of_lt pos) s.nonneg
  have hl' : 0 ≤ l' := by
    have := OrderedRing.mul_nonneg (a := 1 - p.accumulation) (by grind) h₀
    grind
  refine ⟨l', o', rfl, rfl, .rescale s.run hm ha₁ hb₁ hl₁ ho₁, hl', ?_, ?_, ?_,
    fun key hk hs => Std.le_trans (s.below key hk hs) hm, fun h' => ?_⟩
  · show l' ≤ growth p part.additions (part.rescalings + 1) * seen (fun _ => 1) part.keys
    rw [← e]
    have h₁ := hl₂.2
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (a := 1 + p.unit) (b := 1 + p.accumulation)
      (by grind) p₁.nonneg
    grind
  · show AtMost (growth p part.additions (part.rescalings + 1)
      * seen (fun key => absolute key.value) part.keys) o'
    rw [← e]
    exact ho₂.mono (by grind)
  · show AtMost (2 * ratio p ^ (part.additions + (part.rescalings + 1) + 1) * value * l') o'
    have h₁ := rounded_atMost ho₁
      ((show AtMost b b from ⟨by grind, Std.le_refl _⟩).mul s.quotient)
    refine h₁.mono ?_
    rw [show part.additions + (part.rescalings + 1) + 1
      = part.additions + part.rescalings + 1 + 1 by omega,
      Semiring.pow_succ (ratio p) (part.additions + part.rescalings + 1)]
    have h₂ := ratio_pow ha 1
    simp only [Semiring.pow_one] at h₂
    have h₃ := OrderedRing.mul_nonneg
      (OrderedRing.mul_nonneg (a := 2) (by grind) (Std.le_of_lt (ratio_pos hp ha
        (part.additions + part.rescalings + 1)))) hV
    have h₄ := Std.le_of_lt (ratio_pos hp ha 1)
    rw [Semiring.pow_one] at h₄
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_left low h₄
    have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₅ h₃
    exact quotient_step h₂ h₆
  · obtain ⟨key, hk, hs, e'⟩ := h'
    have h₁ := s.below key hk hs
    have h₂ : key.computed = m := by grind
    have h₃ := s.pos ⟨key, hk, hs, h₂⟩
    have h₄ := OrderedRing.mul_pos (a := 1 - p.accumulation) (by grind) (OrderedRing.mul_pos pos h₃)
    grind

end

end Attention.Proof.Overflow
