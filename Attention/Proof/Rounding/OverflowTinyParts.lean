module

public import Attention.Spec.OverflowUnderflow
public import Attention.Proof.Rounding.OverflowSizes
public import Attention.Proof.Rounding.OverflowTinySums
public import Attention.Proof.Rounding.UnderflowCosts

public section

/-! # A key, and a part that is rescaled, that underflow and stay in the range -/

namespace Attention.Proof.Overflow

open Spec Model Exponential Lean.Grind Underflow

universe u

variable {R : Type u} [OrderedField R]

/-- A key's number `x`, with room for what underflows of it after `r` rescalings. -/
@[expose] def roomy (ν : R) (r : Nat) (x : ComputedKey R → R) (key : ComputedKey R) : R :=
  x key + numeral (r + 3) * ν

/-- The conditions on a part. -/
structure TinyInRange (p : Precision R) (ν : R) (largest : Largest R) (reference : R)
    (roundings rescalings : Nat) (part : LimitedPart R) : Prop where
  /-- Rescaled no more often. -/
  raised : part.rescalings ≤ rescalings
  /-- Rounded no more often. -/
  depth : part.additions + part.rescalings ≤ roundings
  /-- The sum of its weights. -/
  count : (1 + p.accumulation) ^ (roundings + 1) * weightSize (roomForWeights p ν) rescalings
    * seen (fun _ => 1) part.keys ≤ largest.accumulator
  /-- The sum of the sizes of its values. -/
  values : (1 + p.accumulation) ^ (roundings + 1) * weightSize (roomForWeights p ν) rescalings
    * seen (roomy ν rescalings fun key => absolute key.value) part.keys ≤ largest.accumulator
  /-- Each score. -/
  score : ∀ key ∈ part.keys, key.score ≠ none → AtMost reference key.computed

/-- The properties that are shown of it. -/
structure TinySound [Exp R R] (p : Precision R) (ν μ m : R) (part : LimitedPart R) (l o : R) :
    Prop where
  /-- A number. -/
  l_eq : part.l = some l
  /-- A number. -/
  o_eq : part.o = some o
  /-- One without a largest number. -/
  run : TinyRun p ν μ m ⟨part.keys, l, o, part.additions, part.rescalings⟩
  /-- Nothing of masked keys. -/
  masked : (∀ key ∈ part.keys, key.score = none) → l = 0 ∧ o = 0
  /-- How large the denominator is. -/
  most_l : (∃ key ∈ part.keys, key.score ≠ none) →
    AtMost (growth (roomForWeights p ν) part.additions part.rescalings
      * seen (fun _ => 1) part.keys - ν) l
  /-- How large the numerator is. -/
  most_o : (∃ key ∈ part.keys, key.score ≠ none) →
    AtMost (growth (roomForWeights p ν) part.additions part.rescalings
      * seen (roomy ν part.rescalings fun key => absolute key.value) part.keys - ν) o

/-- A key that is seen counts. -/
theorem le_seen {x : ComputedKey R → R} (hx : ∀ key, 0 ≤ x key) {keys : List (ComputedKey R)}
    {key : ComputedKey R} (hk : key ∈ keys) (hs : key.score ≠ none) : x key ≤ seen x keys := by
  have h := le_sumOver (f := fun key => ofUnmasked key.toBoundedKey (x key))
    (fun key _ => ofUnmasked_nonneg (hx key)) hk
  simp only [ofUnmasked] at h
  split at h
  · next e => exact absurd e hs
  · exact h

/-- Room for one more rescaling. -/
theorem seen_step {ν : R} (hν : 0 ≤ ν) {x : ComputedKey R → R} (r : Nat)
    {keys : List (ComputedKey R)} (some : ∃ key ∈ keys, key.score ≠ none) :
    seen (roomy ν r x) keys + ν ≤ seen (roomy ν (r + 1) x) keys := by
  obtain ⟨key, hk, hs⟩ := some
  have h₁ := le_seen (x := fun _ => ν) (fun _ => hν) hk hs
  have h₂ : seen (roomy ν r x) keys + seen (fun _ => ν) keys = seen (roomy ν (r + 1) x) keys := by
    rw [seen, seen, seen, ← sumOver_add]
    refine sumOver_congr fun key _ => ?_
    simp only [ofUnmasked]
    split
    · grind
    · simp only [roomy]
      rw [show r + 1 + 3 = (r + 3) + 1 by omega, numeral_succ (r + 3)]
      grind
  grind

/-- More room. -/
theorem seen_room {ν : R} (hν : 0 ≤ ν) {x : ComputedKey R → R} {r r' : Nat} (h : r ≤ r')
    (keys : List (ComputedKey R)) : seen (roomy ν r x) keys ≤ seen (roomy ν r' x) keys := by
  refine sumOver_le_sumOver fun key _ => ?_
  simp only [ofUnmasked]
  split
  · exact Std.le_refl _
  · have := OrderedRing.mul_le_mul_of_nonneg_right
      (numeral_le_numeral (R := R) (Nat.add_le_add_right h 3)) hν
    simp only [roomy]
    grind

/-- Not negative where the number is not. -/
theorem roomy_nonneg {ν : R} (hν : 0 ≤ ν) {x : ComputedKey R → R} (hx : ∀ key, 0 ≤ x key) (r : Nat)
    (key : ComputedKey R) : 0 ≤ roomy ν r x key := by
  have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 3)) hν
  have := hx key
  rw [roomy]
  grind

variable {p : Precision R} {ν : R}

/-- Such a precision means something. -/
theorem roomForWeights_precise (hp : Precise p) (hν : 0 ≤ ν) (hν' : p.exponential + 2 * ν < 1) :
    Precise (roomForWeights p ν) := by
  have := hp.exponential
  exact ⟨hp.unit, hp.accumulation, by rw [roomForWeights, numeral_two]; grind,
    by rw [roomForWeights, numeral_two]; exact hν', hp.stored, hp.storedTiny⟩

section
variable (hp : Precise p) (hν : 0 ≤ ν)
include hp hν

/-- At least 1, as all its factors. -/
theorem one_le_growth (a r : Nat) : 1 ≤ growth (roomForWeights p ν) a r := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  rw [growth]
  simp only [roomForWeights, numeral_two]
  have h₁ := OrderedField.one_le_pow (x := 1 + p.accumulation) (by grind) (a + r + 1)
  have h₂ := OrderedField.one_le_pow (x := 1 + (p.exponential + 2 * ν)) (by grind) (r + 1)
  have h₃ := OrderedRing.mul_nonneg (a := (1 + (p.exponential + 2 * ν)) ^ (r + 1))
    (b := p.stored + p.storedTiny) (by grind) (by grind)
  have h₄ : 1 ≤ (1 + (p.exponential + 2 * ν)) ^ (r + 1) * (1 + p.stored + p.storedTiny) := by
    grind
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := (1 + p.accumulation) ^ (a + r + 1))
    (by grind)
  grind

omit hp hν in
/-- That of one key. -/
theorem growth_key : growth (roomForWeights p ν) 0 0
    = (1 + p.accumulation) * ((1 + p.exponential + 2 * ν) * (1 + p.stored + p.storedTiny)) := by
  rw [growth]
  simp only [roomForWeights, numeral_two, Nat.zero_add, Semiring.pow_one]
  grind

end

private theorem growth_sizes {a e ν T : R} (ha : 0 ≤ a) (he : 0 ≤ e)
    (hν : 0 ≤ ν) (hT : 1 ≤ T) {u : R} (hu : 0 ≤ u) (hua : u ≤ a) :
    (1 + u) * ((1 + e + ν) * (T - ν)) + ν ≤ (1 + a) * ((1 + e + 2 * ν) * T) - ν := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left hT hν
  have h₂ := OrderedRing.mul_nonneg (a := 1 + e + ν) (b := T) (by grind) (by grind)
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hua h₂
  have h₄ := OrderedRing.mul_nonneg ha (OrderedRing.mul_nonneg hν (show 0 ≤ T by grind))
  have h₅ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hu hν) (show 0 ≤ 1 + e + ν by grind)
  have h₆ := OrderedRing.mul_nonneg (show 0 ≤ e + ν by grind) hν
  grind

variable [Exponential R R]

/-- The exponential of a difference that is not positive is in the range. -/
theorem limited_tiny_exp {u ue μ largest a b : R} (hu : u ≤ 1) (hue : 0 ≤ ue) (hν : 0 ≤ ν)
    (h₁ : 1 ≤ largest) (hab : a ≤ b) (hd : AtMost largest (a - b)) {x w : Option R}
    (hx : Limited largest (Difference u μ) (a - b) x)
    (hw : ∀ y ∈ x, Limited largest (Stored ue ν) (exp y) w) :
    ∃ y z, x = some y ∧ w = some z ∧ Difference u μ (a - b) y ∧ Stored ue ν (exp y) z ∧
      0 ≤ z ∧ z ≤ 1 + ue + ν := by
  obtain ⟨y, rfl, hy⟩ := hx hd
  have one := OrderedRing.zero_lt_one (R := R)
  have hy₀ : y ≤ 0 := by
    rcases hy with ⟨θ, ⟨hθ, -⟩, rfl⟩ | ⟨-, rfl⟩
    · have := OrderedRing.mul_nonneg (a := b - a) (b := 1 + θ) (by grind) (by grind)
      grind
    · exact Std.le_refl _
  have pos := exp_pos (R := R) y
  have most : (exp y : R) ≤ 1 := by
    have := exp_le (R := R) hy₀
    rwa [exp_zero] at this
  obtain ⟨z, rfl, hz, hz'⟩ := limited_store hue hν (hw y rfl) (b := 1) ⟨by grind, most⟩ h₁
  refine ⟨y, z, rfl, rfl, hy, hz,
    (Underflow.weight_nonneg hz (Std.le_of_lt pos)).1, ?_⟩
  have := hz'.2
  grind

section
variable (hp : Precise p) (hν : 0 ≤ ν) (hν' : p.exponential + 2 * ν < 1)
variable (ha : p.accumulation < 1) (hu : p.unit ≤ p.accumulation)
variable {largest : Largest R} {reference μ : R} {roundings rescalings : Nat}
variable (hr : reference + reference ≤ largest.accumulator)
variable (hw₁ : weightSize (roomForWeights p ν) rescalings ≤ largest.accumulator)
variable (hw₂ : weightSize (roomForWeights p ν) rescalings ≤ largest.weights)
include hp hν hν' ha hu hr hw₁

omit [Exponential R R] ha hu hr hw₁ in
private theorem room_sizes (rescalings : Nat) :
    1 + p.exponential + 2 * ν ≤ weightSize (roomForWeights p ν) rescalings := by
  have := (one_add_le_weightSize (roomForWeights_precise hp hν hν') rescalings).1
  simp only [roomForWeights, numeral_two] at this ⊢
  grind

include hw₂ in
/-- One key. -/
theorem tiny_sound_key {m y : R} {x w w' l o : Option R} {key : ComputedKey R}
    (hk : key.score ≠ none) (hm : key.computed ≤ m) (href : AtMost reference m)
    (hx : Limited largest.accumulator (Difference p.unit μ) (key.computed - m) x)
    (hw : ∀ a ∈ x, Limited largest.accumulator (Stored p.exponential ν) (exp a) w)
    (hw' : ∀ a ∈ w, Limited largest.weights (Stored p.stored p.storedTiny) a w')
    (hy : AtMost ν (y - key.value))
    (ho : ∀ a ∈ w', Limited largest.accumulator (Stored p.accumulation ν) (a * y) o)
    (hl : ∀ a ∈ w, ∀ b ∈ w', l = some (added p.denominator a b))
    (h : TinyInRange p ν largest reference roundings rescalings ⟨[key], l, o, 0, 0⟩) :
    ∃ l' o', TinySound p ν μ m ⟨[key], l, o, 0, 0⟩ l' o' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have s₁ := room_sizes hp hν hν' rescalings
  have g₀ := growth_le (roomForWeights_precise hp hν hν') (a := 0) (r := 0) h.depth h.raised
  have g₁ := one_le_growth hp hν 0 0
  have e₀ := growth_key (p := p) (ν := ν)
  have hvalues := h.values
  rw [seen_single hk] at hvalues
  have hd := (h.score key (by simp) hk).sub href
  obtain ⟨a, b, rfl, rfl, ha₁, hb₁, pos, most⟩ := limited_tiny_exp (show p.unit ≤ 1 by grind) z₃ hν
    (show 1 ≤ largest.accumulator by grind) hm (hd.mono hr) hx hw
  obtain ⟨c, rfl, hc⟩ := hw' b rfl ⟨by grind, by grind⟩
  obtain ⟨c₁, c₂, c₃⟩ := stored_le (e := p.exponential + ν) z₄ z₅ (by grind) pos (by grind) hc
  have hv₀ := absolute_nonneg key.value
  -- The number that the weight meets.
  have hy' := (atMost_absolute key.value).add hy
  rw [show key.value + (y - key.value) = y by grind] at hy'
  obtain ⟨B, hB⟩ : ∃ B, B = 1 + p.stored + p.storedTiny := ⟨_, rfl⟩
  have hB₁ : 1 ≤ B := by grind
  rw [← hB] at c₃ e₀
  have hW : 0 ≤ (1 + (p.exponential + ν)) * B := OrderedRing.mul_nonneg (by grind) (by grind)
  have most_c : AtMost ((1 + (p.exponential + ν)) * B) c := ⟨by grind, c₃⟩
  have hprod := most_c.mul hy'
  have hνB := OrderedRing.mul_le_mul_of_nonneg_left hB₁ hν
  have hGW : (1 + p.accumulation) * ((1 + (p.exponential + ν)) * B) + ν
      ≤ growth (roomForWeights p ν) 0 0 := by
    have := OrderedRing.mul_nonneg z₂ (OrderedRing.mul_nonneg hν (show 0 ≤ B by grind))
    rw [e₀]
    clear hx hw hw' ho hl h hc ha₁ hb₁ hprod most_c c₃ hy hy'
    grind
  have hGW' := OrderedRing.mul_nonneg z₂ hW
  -- How large the product may be.
  have three : (numeral 3 : R) = 3 := by
    rw [numeral_succ, numeral_two]
    grind
  have hn : (3 : R) ≤ numeral (rescalings + 3) := by
    rw [← three]
    exact numeral_le_numeral (by omega)
  have room := OrderedRing.mul_le_mul_of_nonneg_right hn hν
  have vν : 0 ≤ absolute key.value + ν := by grind
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right (show (1 + (p.exponential + ν)) * B
    ≤ growth (roomForWeights p ν) 0 0 by grind) vν
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_trans
    (show (1 + p.accumulation) * ((1 + (p.exponential + ν)) * B)
      ≤ growth (roomForWeights p ν) 0 0 by grind) (Std.le_refl _)) vν
  have i₃ : growth (roomForWeights p ν) 0 0 * (absolute key.value + ν) ≤ largest.accumulator := by
    refine Std.le_trans (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left (c := growth
      (roomForWeights p ν) 0 0) (b := roomy ν rescalings (fun key => absolute key.value) key)
      (by rw [roomy]; grind) (by grind)) (OrderedRing.mul_le_mul_of_nonneg_right g₀ ?_)) hvalues
    exact roomy_nonneg hν (fun _ => absolute_nonneg _) _ _
  obtain ⟨o', rfl, ho₁, ho₂⟩ := limited_store z₂ hν (ho c rfl) hprod (Std.le_trans i₁ i₃)
  have hadd : 0 ≤ added p.denominator b c ∧
      added p.denominator b c ≤ (1 + (p.exponential + ν)) * B := by
    have h₁ := OrderedRing.mul_le_mul_of_nonneg_left hB₁ (c := 1 + (p.exponential + ν)) (by grind)
    cases p.denominator
    · exact ⟨pos, by simp only [added]; grind⟩
    · exact ⟨c₁, c₃⟩
  refine ⟨added p.denominator b c, o', hl b rfl c rfl, rfl,
    .key hk hm ha₁ hb₁ hc (.inr ⟨y, hy, ho₁⟩), fun h' => absurd (h' key (by simp)) hk,
    fun _ => ?_, fun _ => ?_⟩
  · show AtMost (growth (roomForWeights p ν) 0 0 * seen (fun _ => 1) [key] - ν) _
    rw [seen_single hk, Semiring.mul_one]
    clear hx hw hw' ho hl h hc ha₁ hb₁ hprod most_c c₃ hy hy' i₁ i₂ i₃ e₀ hvalues g₀ room ho₁ ho₂
    exact ⟨by grind, by grind⟩
  · show AtMost (growth (roomForWeights p ν) 0 0
      * seen (roomy ν 0 fun key => absolute key.value) [key] - ν) _
    rw [seen_single hk, roomy, Nat.zero_add, three]
    refine ho₂.mono ?_
    have := OrderedRing.mul_le_mul_of_nonneg_right g₁ hν
    clear hx hw hw' ho hl h hc ha₁ hb₁ hprod most_c c₃ hy hy' i₁ i₃ e₀ hvalues g₀ room ho₁ ho₂
    grind

/-- A part that is rescaled. -/
theorem tiny_sound_rescale {m m' : R} {x α l o : Option R} {part : LimitedPart R}
    (hm : m ≤ m') (href : AtMost reference m) (href' : AtMost reference m')
    (hx : Limited largest.accumulator (Difference p.unit μ) (m - m') x)
    (hα : ∀ a ∈ x, Limited largest.accumulator (Stored p.exponential ν) (exp a) α)
    (hl : ∀ a ∈ α, ∀ b ∈ part.l, Limited largest.accumulator (Stored p.unit ν) (a * b) l)
    (ho : ∀ a ∈ α, ∀ b ∈ part.o, Limited largest.accumulator (Stored p.accumulation ν) (a * b) o)
    (h : TinyInRange p ν largest reference roundings rescalings
      { part with l := l, o := o, rescalings := part.rescalings + 1 })
    {l₀ o₀ : R} (s : TinySound p ν μ m part l₀ o₀) :
    ∃ l' o', TinySound p ν μ m' { part with l := l, o := o, rescalings := part.rescalings + 1 }
      l' o' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have s₁ := room_sizes hp hν hν' rescalings
  obtain ⟨a, b, rfl, rfl, ha₁, hb₁, pos, most⟩ := limited_tiny_exp (show p.unit ≤ 1 by grind) z₃ hν
    (show 1 ≤ largest.accumulator by grind) hm ((href.sub href').mono hr) hx hα
  have most_b : AtMost (1 + p.exponential + ν) b := ⟨by grind, most⟩
  by_cases some : ∃ key ∈ part.keys, key.score ≠ none
  · have g := growth_le (roomForWeights_precise hp hν hν') (a := part.additions)
      (r := part.rescalings + 1) h.depth h.raised
    have e := growth_rescale (roomForWeights p ν) part.additions part.rescalings
    have e' : 1 + (roomForWeights p ν).exponential = 1 + p.exponential + 2 * ν := by
      rw [roomForWeights, numeral_two]
      grind
    have e'' : (roomForWeights p ν).accumulation = p.accumulation := rfl
    rw [e', e''] at e
    have g₁ := one_le_growth hp hν part.additions part.rescalings
    have g₂ := one_le_growth hp hν part.additions (part.rescalings + 1)
    have n₁ := seen_nonneg (R := R) (x := fun _ => 1) (fun _ => Std.le_of_lt one) part.keys
    have x₂ := fun r => roomy_nonneg (R := R) hν (x := fun key => absolute key.value)
      (fun _ => absolute_nonneg _) r
    have n₂ := seen_nonneg (x₂ part.rescalings) part.keys
    have i₁ := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right g n₁) h.count
    have i₂ := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left (seen_room hν h.raised part.keys)
      (show 0 ≤ growth (roomForWeights p ν) part.additions (part.rescalings + 1) by grind))
      (Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right g
        (seen_nonneg (x₂ rescalings) part.keys)) h.values)
    have i₃ := seen_step hν (x := fun key => absolute key.value) part.rescalings some
    have one_le : 1 ≤ seen (fun _ => (1 : R)) part.keys := by
      obtain ⟨key, hk, hs⟩ := some
      exact le_seen (x := fun _ => (1 : R)) (fun _ => Std.le_of_lt one) hk hs
    have hl₀ := s.most_l some
    have ho₀ := s.most_o some
    have hle := s.l_eq
    have hoe := s.o_eq
    have run := s.run
    have p₁ := most_b.mul hl₀
    have p₂ := most_b.mul ho₀
    have grown : ∀ {S : R}, 0 ≤ S → (1 + p.exponential + ν) *
        (growth (roomForWeights p ν) part.additions part.rescalings * S - ν)
        ≤ growth (roomForWeights p ν) part.additions (part.rescalings + 1) * S := fun {S} hS => by
      have k₁ := OrderedRing.mul_nonneg (show 0 ≤ growth (roomForWeights p ν) part.additions
        part.rescalings by grind) hS
      have k₂ := OrderedRing.mul_nonneg (show 0 ≤ 1 + p.exponential + ν by grind) k₁
      have k₃ := OrderedRing.mul_nonneg z₂ (OrderedRing.mul_nonneg
        (show 0 ≤ 1 + p.exponential + 2 * ν by grind) k₁)
      have k₄ := OrderedRing.mul_nonneg hν k₁
      have k₅ := OrderedRing.mul_nonneg (show 0 ≤ 1 + p.exponential + ν by grind) hν
      rw [← e]
      generalize growth (roomForWeights p ν) part.additions part.rescalings = G at *
      clear hx hα hl ho h s i₁ i₂ i₃ p₁ p₂ hl₀ ho₀ ha₁ hb₁ run g e most_b
      grind
    obtain ⟨l', rfl, hl₁, hl₂⟩ := limited_store z₁ hν (hl b rfl l₀ hle) p₁
      (Std.le_trans (grown n₁) i₁)
    obtain ⟨o', rfl, ho₁, ho₂⟩ := limited_store z₂ hν (ho b rfl o₀ hoe) p₂
      (Std.le_trans (Std.le_trans (grown n₂) (OrderedRing.mul_le_mul_of_nonneg_left
        (Std.le_trans (by grind) i₃) (by grind))) i₂)
    refine ⟨l', o', rfl, rfl, .rescale run hm ha₁ hb₁ hl₁ ho₁, fun h' => ?_, fun _ => ?_,
      fun _ => ?_⟩
    · obtain ⟨key, hk, hs⟩ := some
      exact absurd (h' key hk) hs
    · show AtMost (growth (roomForWeights p ν) part.additions (part.rescalings + 1)
        * seen (fun _ => 1) part.keys - ν) l'
      rw [← e]
      have k₁ := OrderedRing.mul_le_mul_of_nonneg_left one_le
        (show 0 ≤ growth (roomForWeights p ν) part.additions part.rescalings by grind)
      have k₂ := growth_sizes (T := growth (roomForWeights p ν) part.additions part.rescalings
        * seen (fun _ => 1) part.keys) z₂ z₃ hν (by grind) z₁ hu
      refine hl₂.mono (Std.le_trans k₂ ?_)
      generalize growth (roomForWeights p ν) part.additions part.rescalings = G
      generalize seen (fun _ => (1 : R)) part.keys = S
      rw [show ∀ a b c d : R, a * (b * c) * d = a * (b * (c * d)) from fun a b c d => by grind]
      exact Std.le_refl _
    · show AtMost (growth (roomForWeights p ν) part.additions (part.rescalings + 1)
        * seen (roomy ν (part.rescalings + 1) fun key => absolute key.value) part.keys - ν) o'
      refine ho₂.mono ?_
      have k₁ := OrderedRing.mul_le_mul_of_nonneg_left i₃
        (show 0 ≤ growth (roomForWeights p ν) part.additions (part.rescalings + 1) by grind)
      have k₂ := OrderedRing.mul_le_mul_of_nonneg_right g₂ hν
      have k₃ := OrderedRing.mul_nonneg (show 0 ≤ growth (roomForWeights p ν) part.additions
        part.rescalings by grind) n₂
      have k₄ := OrderedRing.mul_nonneg (show 0 ≤ 1 + p.accumulation by grind)
        (OrderedRing.mul_nonneg hν k₃)
      have k₅ := OrderedRing.mul_nonneg (show 0 ≤ p.exponential + ν by grind) hν
      have k₆ := OrderedRing.mul_nonneg z₂
        (OrderedRing.mul_nonneg (show 0 ≤ 1 + p.exponential + ν by grind) hν)
      rw [← e] at k₁ k₂ ⊢
      generalize growth (roomForWeights p ν) part.additions part.rescalings = G at *
      generalize seen (roomy ν part.rescalings fun key => absolute key.value) part.keys = S at *
      generalize seen (roomy ν (part.rescalings + 1) fun key => absolute key.value) part.keys
        = S' at *
      clear hx hα hl ho h s i₁ i₂ i₃ p₁ p₂ hl₀ ho₀ ha₁ hb₁ run g e most_b hl₁ ho₁ hl₂ ho₂ x₂ grown
      grind
  · have all : ∀ key ∈ part.keys, key.score = none := fun key hk =>
      Classical.byContradiction fun hs => some ⟨key, hk, hs⟩
    obtain ⟨rfl, rfl⟩ := s.masked all
    have zero : AtMost (0 : R) (b * 0) := by
      rw [Semiring.mul_zero]
      exact .zero (Std.le_refl _)
    have nothing : ∀ {u x : R}, Stored u ν (b * 0) x → x = 0 := fun {u x} h => by
      have h' := h.2
      rw [Semiring.mul_zero, absolute_of_nonneg (Std.le_refl (0 : R))] at h'
      obtain ⟨k₁, k₂⟩ := h'
      grind
    have big : 0 ≤ largest.accumulator := by grind
    obtain ⟨l', rfl, hl₁, -⟩ := limited_store z₁ hν (hl b rfl 0 s.l_eq) zero big
    obtain ⟨o', rfl, ho₁, -⟩ := limited_store z₂ hν (ho b rfl 0 s.o_eq) zero big
    exact ⟨l', o', rfl, rfl, .rescale s.run hm ha₁ hb₁ hl₁ ho₁,
      fun _ => ⟨nothing hl₁, nothing ho₁⟩, fun h' => absurd h' some, fun h' => absurd h' some⟩

end

end Attention.Proof.Overflow
