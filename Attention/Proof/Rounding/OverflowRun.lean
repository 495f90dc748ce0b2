module

public import Attention.Proof.Rounding.OverflowParts

public section

/-! # Computations that stay in the range

Every part of a computation whose largest sums are within the range is made of numbers, and is a
part that a function without a largest number may compute. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

namespace Overflow

section
variable {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
variable (hu : p.unit ≤ p.accumulation) (hσ : p.stored < 1) (hη : p.storedTiny < 1 - p.exponential)
variable {largest : Largest R} {reference value : R} {roundings rescalings : Nat}
variable (hr : reference + reference ≤ largest.accumulator)
variable (hw₁ : weightSize p rescalings ≤ largest.accumulator)
variable (hw₂ : weightSize p rescalings ≤ largest.weights)
include hp ha hu hr hw₁

omit [Exponential R R] hp ha hr hw₁ hu in
private theorem growth_sum {B S : R} {k : Nat} {u : R} (hu₀ : 0 ≤ u) (hu : u ≤ p.accumulation)
    (hS : S ≤ B) (hB : 0 ≤ B) : (1 + u) ^ k * S ≤ (1 + p.accumulation) ^ k * B := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₁ := pow_le_left (x := 1 + u) (y := 1 + p.accumulation) (by grind) (by grind) k
  exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hS h₁.1)
    (OrderedRing.mul_le_mul_of_nonneg_right h₁.2 hB)

omit [Exponential R R] hr hw₁ ha hu in
/-- The sizes of parts, together. -/
private theorem parts_le {x : ComputedKey R → R} (hx : ∀ key, 0 ≤ x key)
    {parts : List (LimitedPart R)} {a r : Nat} {f : LimitedPart R → R}
    (hbound : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (hf : ∀ part ∈ parts, AtMost (growth p part.additions part.rescalings * seen x part.keys)
      (f part)) :
    sumOver absolute (parts.map f) ≤ growth p a r * seen x (parts.flatMap (·.keys)) := by
  rw [sumOver_map, seen_flatMap, ← sumOver_mul_left]
  refine sumOver_le_sumOver fun part h => Std.le_trans (absolute_le (hf part h)) ?_
  exact OrderedRing.mul_le_mul_of_nonneg_right
    (growth_mono hp (hbound part h).1 (hbound part h).2) (seen_nonneg hx part.keys)

omit hr hw₁ in
private theorem quotient_join {parts : List (LimitedPart R)} {a k r : Nat} {m l' o' : R}
    (hV : 0 ≤ value) (hbound : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (s : ∀ part ∈ parts, Sound p value m part (part.l.getD 0) (part.o.getD 0))
    (hl : RoundedSum p.unit k (parts.map fun part => part.l.getD 0) l')
    (ho : AtMost ((1 + p.accumulation) ^ k
      * sumOver absolute (parts.map fun part => part.o.getD 0)) o') :
    AtMost (2 * ratio p ^ (a + k + r + 1) * value * l') o' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have nonneg : ∀ x ∈ parts.map fun part => part.l.getD 0, 0 ≤ x := fun x hx => by
    obtain ⟨part, h, rfl⟩ := List.mem_map.mp hx
    exact (s part h).nonneg
  have h₁ := le_roundedSum z₁ (by grind) hl nonneg
  have h₂ : 0 ≤ sumOver id (parts.map fun part => part.l.getD 0) := sumOver_nonneg nonneg
  have h₃ : sumOver absolute (parts.map fun part => part.o.getD 0)
      ≤ 2 * ratio p ^ (a + r + 1) * value
        * sumOver id (parts.map fun part => part.l.getD 0) := by
    rw [sumOver_map, sumOver_map, ← sumOver_mul_left]
    refine sumOver_le_sumOver fun part h => Std.le_trans (absolute_le (s part h).quotient) ?_
    have i₁ := ratio_mono hp ha (k := part.additions + part.rescalings + 1) (n := a + r + 1)
      (by have := hbound part h; omega)
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_left i₁ (c := 2) (by grind)
    exact OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedRing.mul_le_mul_of_nonneg_right i₂ hV) (s part h).nonneg
  have h₄ := pow_le_left (x := 1 - p.accumulation) (y := 1 - p.unit) (by grind) (by grind) k
  have h₅ := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right h₄.2 h₂) h₁
  have h₆ := Std.le_of_lt (ratio_pos hp ha k)
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_left h₅ h₆
  have e := ratio_pow ha k
  have h₈ := OrderedRing.mul_nonneg
    (OrderedRing.mul_nonneg (a := 2) (by grind) (Std.le_of_lt (ratio_pos hp ha (a + r + 1)))) hV
  have h₉ := OrderedRing.mul_le_mul_of_nonneg_left h₇ h₈
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left h₃
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.accumulation) (by grind) k))
  refine ho.mono (Std.le_trans i₁ ?_)
  rw [show a + k + r + 1 = (a + r + 1) + k by omega,
    Semiring.pow_add (ratio p) (a + r + 1) k, ← e]
  exact quotient_sum h₉

omit hr hw₁ in
private theorem sound_join {m : R} {l o : Option R} {parts : List (LimitedPart R)} {a k r : Nat}
    (hbound : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (hl : ∀ ls : List R, parts.map (·.l) = ls.map some →
      LimitedSum largest.accumulator p.unit k ls l)
    (ho : ∀ os : List R, parts.map (·.o) = os.map some →
      LimitedSum largest.accumulator p.accumulation k os o)
    (h : InRange p largest reference value roundings rescalings
      ⟨parts.flatMap (·.keys), l, o, a + k, r⟩)
    (hV : 0 ≤ value)
    (s : ∀ part ∈ parts, Sound p value m part (part.l.getD 0) (part.o.getD 0)) :
    ∃ l' o', Sound p value m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩ l' o' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have el : parts.map (·.l) = (parts.map fun part => part.l.getD 0).map some := by
    rw [List.map_map]
    exact List.map_congr_left fun part hp => (s part hp).l_eq
  have eo : parts.map (·.o) = (parts.map fun part => part.o.getD 0).map some := by
    rw [List.map_map]
    exact List.map_congr_left fun part hp => (s part hp).o_eq
  have x₁ : ∀ key : ComputedKey R, (0 : R) ≤ (fun _ => 1) key := fun _ => Std.le_of_lt one
  have x₂ : ∀ key : ComputedKey R, (0 : R) ≤ (fun key => absolute key.value) key :=
    fun _ => absolute_nonneg _
  have b₁ := parts_le hp x₁ hbound (f := fun part => part.l.getD 0) fun part h =>
    ⟨by have := (s part h).nonneg; have := (s part h).most_l; grind, (s part h).most_l⟩
  have b₂ := parts_le hp x₂ hbound (f := fun part => part.o.getD 0) fun part h => (s part h).most_o
  have n₁ := OrderedRing.mul_nonneg (growth_nonneg hp a r)
    (seen_nonneg x₁ (parts.flatMap (·.keys)))
  have n₂ := OrderedRing.mul_nonneg (growth_nonneg hp a r)
    (seen_nonneg x₂ (parts.flatMap (·.keys)))
  have g₁ := growth_sum (k := k) z₁ hu b₁ n₁
  have g₂ := growth_sum (k := k) z₂ (Std.le_refl _) b₂ n₂
  have e := growth_join p a k r
  rw [← Semiring.mul_assoc, e] at g₁ g₂
  have g := growth_le hp (a := a + k) (r := r) h.depth h.raised
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right g (seen_nonneg x₁ (parts.flatMap (·.keys)))
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right g (seen_nonneg x₂ (parts.flatMap (·.keys)))
  have hcount := h.count
  have hvalues := h.values
  obtain ⟨l', rfl, hl₁, hl₂⟩ := limitedSum z₁ (hl _ el) (Std.le_trans (Std.le_trans g₁ i₁) hcount)
  obtain ⟨o', rfl, ho₁, ho₂⟩ := limitedSum z₂ (ho _ eo) (Std.le_trans (Std.le_trans g₂ i₂) hvalues)
  have nonneg : ∀ x ∈ parts.map fun part => part.l.getD 0, 0 ≤ x := fun x hx => by
    obtain ⟨part, h, rfl⟩ := List.mem_map.mp hx
    exact (s part h).nonneg
  have low := le_roundedSum z₁ (by grind) hl₁ nonneg
  have power := OrderedField.pow_pos (x := 1 - p.unit) (by grind) k
  have low₀ := OrderedRing.mul_nonneg (Std.le_of_lt power)
    (sumOver_nonneg (f := id) nonneg)
  have run := Run.join (p := p) (m := m) (a := a) (k := k) (r := r) (l := l') (o := o')
    (parts := parts.map fun part =>
      ⟨part.keys, part.l.getD 0, part.o.getD 0, part.additions, part.rescalings⟩)
    (fun part h => by
      obtain ⟨part', h', rfl⟩ := List.mem_map.mp h
      exact (s part' h').run)
    (fun part h => by
      obtain ⟨part', h', rfl⟩ := List.mem_map.mp h
      exact hbound part' h')
    (by rw [List.map_map]; exact hl₁) (by rw [List.map_map]; exact ho₁)
  rw [List.flatMap_map] at run
  refine ⟨l', o', rfl, rfl, run, Std.le_trans low₀ low, Std.le_trans hl₂.2 g₁, ho₂.mono g₂,
    quotient_join hp ha hu hV hbound s hl₁ ho₂, fun key h' hs => ?_, fun h' => ?_⟩
  · obtain ⟨part, hpart, hk⟩ := List.mem_flatMap.mp h'
    exact (s part hpart).below key hk hs
  · obtain ⟨key, h', hs, e'⟩ := h'
    obtain ⟨part, hpart, hk⟩ := List.mem_flatMap.mp h'
    have h₁ := (s part hpart).pos ⟨key, hk, hs, e'⟩
    have h₂ := le_sumOver (f := id) nonneg
      (List.mem_map_of_mem (f := fun part : LimitedPart R => part.l.getD 0) hpart)
    have h₃ := OrderedRing.mul_pos power (show 0 < sumOver id
      (parts.map fun part => part.l.getD 0) from Std.lt_of_lt_of_le h₁ h₂)
    exact Std.lt_of_lt_of_le h₃ low

include hσ hη hw₂ in
private theorem sound {m : R} {part : LimitedPart R} (hV : 0 ≤ value)
    (run : LimitedRun p largest reference m part)
    (h : InRange p largest reference value roundings rescalings part) :
    ∃ l o, Sound p value m part l o := by
  induction run with
  | masked hk => exact ⟨0, 0, sound_masked hk⟩
  | key hk hm href hx hw hw' ho hl =>
    exact sound_key hp ha hu hσ hη hr hw₁ hw₂ hk hm href hx hw hw' ho hl h
  | @join m l o parts a k r _ hbound hl ho ih =>
    refine sound_join hp ha hu hbound hl ho h hV fun part hpart => ?_
    have b := hbound part hpart
    have one := OrderedRing.zero_lt_one (R := R)
    have n := Std.le_trans (growth_nonneg hp _ _) (growth_le hp h.depth h.raised)
    obtain ⟨l', o', s⟩ := ih part hpart
      { raised := Nat.le_trans b.2 h.raised
        depth := by have := h.depth; simp only at this; omega
        count := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left
          (seen_part_le (x := fun _ => 1) (fun _ => Std.le_of_lt one) hpart) n) h.count
        values := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left
          (seen_part_le (x := fun key => absolute key.value) (fun _ => absolute_nonneg _) hpart) n)
          h.values
        value := fun key hk => h.value key (List.mem_flatMap.mpr ⟨part, hpart, hk⟩)
        score := fun key hk => h.score key (List.mem_flatMap.mpr ⟨part, hpart, hk⟩) }
    have e₁ := s.l_eq
    have e₂ := s.o_eq
    rw [e₁, e₂]
    exact s
  | rescale run hm href href' hx hα hl ho ih =>
    have r := h.raised
    have d := h.depth
    simp only at r d
    obtain ⟨l', o', s⟩ := ih
      { raised := by omega
        depth := by omega
        count := h.count
        values := h.values
        value := h.value
        score := h.score }
    exact sound_rescale hp ha hu hr hw₁ hm href href' hx hα hl ho h hV s

end

/-! ## Rows -/

omit [Exponential R R] in
/-- No value is larger. -/
theorem valueSize_spec (row : List (BoundedKey R)) : 0 ≤ valueSize row ∧
    ∀ key ∈ row, key.score ≠ none → AtMost (valueSize row) key.value := by
  obtain ⟨h₁, h₂⟩ := le_foldl (b := 0)
    (f := fun x key : _ => max x (ofUnmasked key (absolute (BoundedKey.value key))))
    (fun x key => (le_max (R := R) _ _).1) row
  refine ⟨h₁, fun key hk hs => (atMost_absolute key.value).mono ?_⟩
  have h₃ : ofUnmasked key (absolute key.value) ≤ valueSize row :=
    h₂ (fun key => ofUnmasked key (absolute key.value)) (fun x key => (le_max _ _).2) key hk
  have e : ofUnmasked key (absolute key.value) = absolute key.value := by
    rw [ofUnmasked]
    split
    · next e => exact absurd e hs
    · rfl
  rw [e] at h₃
  exact h₃

omit [Exponential R R] in
/-- A number that is at least all values is at least the largest. -/
theorem valueSize_le {row : List (BoundedKey R)} {c : R} (hc : 0 ≤ c)
    (h : ∀ key ∈ row, ofUnmasked key (absolute key.value) ≤ c) : valueSize row ≤ c := by
  rw [valueSize]
  have key : ∀ (b : R), b ≤ c →
      row.foldl (fun x key => max x (ofUnmasked key (absolute key.value))) b ≤ c := by
    induction row with
    | nil => exact fun b hb => hb
    | cons y ys ih =>
      refine fun b hb => ih (fun key hk => h key (by simp [hk])) _ ?_
      have := h y (by simp)
      show max b (ofUnmasked y (absolute y.value)) ≤ c
      rw [OrderedField.max_def]
      split
      · exact this
      · exact hb
  exact key 0 hc

omit [Exponential R R] in
/-- No value of a key that is seen is larger. -/
theorem ofUnmasked_le (row : List (BoundedKey R)) :
    ∀ key ∈ row, ofUnmasked key (absolute key.value) ≤ valueSize row := fun key hk => by
  have h := valueSize_spec row
  rw [ofUnmasked]
  split
  · exact h.1
  · next e => exact absolute_le (h.2 key hk (by simp [e]))

omit [Exponential R R] in
/-- A key counts no more if it is no larger. -/
theorem ofUnmasked_mono {a b : BoundedKey R} (h : a.score = none ↔ b.score = none) {x y : R}
    (hxy : b.score ≠ none → x ≤ y) : ofUnmasked a x ≤ ofUnmasked b y := by
  rw [ofUnmasked, ofUnmasked]
  cases ea : a.score <;> cases eb : b.score <;> simp_all [Std.le_refl]

omit [Exponential R R] in
/-- Of the keys it matters only which are masked. -/
theorem denominatorSize_eq {α : Type} {xs ys : List α} (perm : xs.Perm ys) {f g : α → BoundedKey R}
    (same : ∀ x ∈ xs, (f x).score = none ↔ (g x).score = none) (p : Precision R)
    (roundings rescalings : Nat) : denominatorSize p roundings rescalings (xs.map f)
      = denominatorSize p roundings rescalings (ys.map g) := by
  rw [denominatorSize, denominatorSize, sumOver_map, sumOver_map, ← sumOver_perm _ perm]
  congr 1
  refine sumOver_congr fun x hx => ?_
  have := same x hx
  exact Std.le_antisymm (ofUnmasked_mono this fun _ => Std.le_refl _)
    (ofUnmasked_mono this.symm fun _ => Std.le_refl _)

omit [Exponential R R] in
/-- Neither the order of the keys nor their scores matter, and smaller values fit too. -/
theorem sumsFit_mono {α : Type} {xs ys : List α} (perm : xs.Perm ys) {f g : α → BoundedKey R}
    (same : ∀ x ∈ xs, (f x).score = none ↔ (g x).score = none)
    (value : ∀ x ∈ xs, (g x).score ≠ none → absolute (f x).value ≤ absolute (g x).value)
    {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
    {largest : Largest R} {roundings rescalings : Nat} {reference : R}
    (h : sumsFit p largest roundings rescalings reference (ys.map g)) :
    sumsFit p largest roundings rescalings reference (xs.map f) := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have growth : 0 ≤ (1 + p.accumulation) ^ (roundings + 1) * weightSize p rescalings :=
    Std.le_trans (growth_nonneg hp 0 0) (growth_le hp (Nat.zero_le _) (Nat.zero_le _))
  have most : ∀ x ∈ xs, ofUnmasked (f x) (absolute (f x).value)
      ≤ ofUnmasked (g x) (absolute (g x).value) := fun x hx =>
    ofUnmasked_mono (same x hx) (value x hx)
  have e₁ := denominatorSize_eq perm same p roundings rescalings
  have e₂ : sumOver (fun x => ofUnmasked (f x) (absolute (f x).value)) xs
      ≤ sumOver (fun x => ofUnmasked (g x) (absolute (g x).value)) ys := by
    rw [← sumOver_perm _ perm]
    exact sumOver_le_sumOver most
  have e₃ : valueSize (xs.map f) ≤ valueSize (ys.map g) := by
    refine valueSize_le (valueSize_spec _).1 fun key hk => ?_
    obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hk
    exact Std.le_trans (most x hx)
      (ofUnmasked_le (ys.map g) (g x) (List.mem_map_of_mem (perm.mem_iff.mp hx)))
  simp only [sumsFit, sumOver_map, quotientSize, power_eq, Bool.and_eq_true,
    decide_eq_true_eq] at h ⊢
  obtain ⟨⟨⟨⟨f₁, f₂⟩, f₃⟩, f₄⟩, f₅⟩ := h
  have r := Std.le_of_lt (ratio_pos hp ha (roundings + 6))
  refine ⟨⟨⟨⟨f₁, f₂⟩, by rwa [e₁]⟩,
    Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left e₂ growth) f₄⟩,
    Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left e₃
      (OrderedRing.mul_nonneg (numeral_nonneg 2) r)) f₅⟩

end Overflow

open Overflow

/-- **parts-finite**: where the sums of a row fit, a part of a computation that may overflow is
made of numbers, and is a part that a function without a largest number may compute; its denominator
is positive and no larger than its bound, and the quotient is a number of the result's format. -/
theorem limitedRun {p : Precision R} (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (ha : p.accumulation < 1) (hσ : p.stored < 1) (hη : p.storedTiny < 1 - p.exponential)
    {largest : Largest R} {reference : R} {roundings rescalings : Nat} {m : R}
    {part : LimitedPart R} (run : LimitedRun p largest reference m part)
    (hr : part.rescalings ≤ rescalings) (hd : part.additions + part.rescalings ≤ roundings)
    (fits : sumsFit p largest roundings rescalings reference (part.keys.map (·.toBoundedKey)))
    (scores : ∀ key ∈ part.keys, key.score ≠ none → AtMost reference key.computed)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) :
    ∃ l o, part.l = some l ∧ part.o = some o ∧
      Run p m ⟨part.keys, l, o, part.additions, part.rescalings⟩ ∧ 0 < l ∧
      l ≤ denominatorSize p roundings rescalings (part.keys.map (·.toBoundedKey)) ∧
      ∀ y, LimitedQuotient p largest part y →
        ∃ z, y = some z ∧ RoundedTimes p.accumulation 5 (o / l) z ∧ AtMost largest.output z := by
  simp only [sumsFit, Bool.and_eq_true, decide_eq_true_eq, power_eq, quotientSize] at fits
  obtain ⟨⟨⟨⟨f₁, f₂⟩, f₃⟩, f₄⟩, f₅⟩ := fits
  obtain ⟨w₁, w₂⟩ := le_of_le_smaller f₂
  obtain ⟨q₁, q₂⟩ := le_of_le_smaller f₅
  have two : (numeral 2 : R) = 2 := by
    rw [numeral_eq]
    exact (Semiring.ofNat_eq_natCast 2).symm
  rw [two] at f₁ q₁ q₂
  obtain ⟨v₀, v₁⟩ := valueSize_spec (part.keys.map (·.toBoundedKey))
  rw [denominatorSize, power_eq, sumOver_map] at f₃
  rw [sumOver_map] at f₄
  obtain ⟨l, o, s⟩ := sound hp ha hu hσ hη (show reference + reference ≤ _ by grind) w₁ w₂ v₀ run
    ⟨hr, hd, f₃, f₄, fun key hk hs => v₁ _ (List.mem_map_of_mem hk) hs, scores⟩
  have pos := s.pos attained
  have most : l ≤ denominatorSize p roundings rescalings (part.keys.map (·.toBoundedKey)) := by
    rw [denominatorSize, power_eq, sumOver_map]
    exact Std.le_trans s.most_l (OrderedRing.mul_le_mul_of_nonneg_right (growth_le hp hd hr)
      (seen_nonneg (fun _ => Std.le_of_lt OrderedRing.zero_lt_one) part.keys))
  refine ⟨l, o, s.l_eq, s.o_eq, s.run, pos, most, fun y hy => ?_⟩
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  have b : AtMost (2 * ratio p ^ (part.additions + part.rescalings + 1)
      * valueSize (part.keys.map (·.toBoundedKey))) (o / l) := by
    obtain ⟨h₁, h₂⟩ := s.quotient
    constructor
    · rw [OrderedField.le_div_iff pos]
      grind
    · rw [OrderedField.div_le_iff pos]
      grind
  have g₁ := ratio_mono hp ha (show part.additions + part.rescalings + 1 ≤ roundings + 1 by omega)
  have g₂ := pow_le_left (x := 1 + p.accumulation) (y := ratio p) (by grind)
    (one_add_le_ratio hp ha) 5
  have g₃ := OrderedRing.mul_le_mul_of_nonneg_left g₁ (c := 2) (by grind)
  have g₄ := OrderedRing.mul_le_mul_of_nonneg_right g₃ v₀
  have g₅ := OrderedField.mul_le_mul g₂.1 g₂.2 b.nonneg g₄
  have e : ratio p ^ 5 * (2 * ratio p ^ (roundings + 1)
      * valueSize (part.keys.map (·.toBoundedKey))) = 2 * ratio p ^ (roundings + 6)
      * valueSize (part.keys.map (·.toBoundedKey)) := by
    rw [show roundings + 6 = 5 + (roundings + 1) by omega,
      Semiring.pow_add (ratio p) 5 (roundings + 1)]
    grind
  rw [e] at g₅
  rw [show (1 + p.accumulation) / (1 - p.accumulation) = ratio p from rfl] at q₁ q₂
  obtain ⟨z, e', h₁, h₂⟩ := limitedTimes z₂ (hy o s.o_eq l s.l_eq (by grind)) b
    (Std.le_trans g₅ q₁)
  exact ⟨z, e', h₁, h₂.mono (Std.le_trans g₅ q₂)⟩

end Attention.Proof
