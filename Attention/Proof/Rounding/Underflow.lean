module

public import Attention.Proof.Rounding.UnderflowRescaling

public section

/-! # A run whose numbers underflow is one without, but for a small error

`tiny_run`: what `TinyRun` may compute is what `Run` may compute of the same keys, and an error of
denominator and numerator that is a sum of small numbers, one for each unmasked key: what the
exponentials of its weight and rescalings are off by where they underflow, and its products. Such a
number grows with the weight by which a part is rescaled, as the weights do.
Source: docs/tolerances.md, section 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

variable [Exponential R R]

open Underflow

/-! ## A whole run -/

variable {p : Precision R} {ν m : R}

/-- `part₀` is what a run without underflow might have computed in place of `part`. -/
structure Companion (p : Precision R) (ν m : R) (part part₀ : Part R) : Prop where
  /-- It is what such a run may compute. -/
  run : Run p m part₀
  /-- Of the same keys. -/
  keys : part₀.keys = part.keys
  /-- With as many roundings of sums. -/
  additions : part₀.additions = part.additions
  /-- With as many rescalings. -/
  rescalings : part₀.rescalings = part.rescalings
  /-- No score exceeds the reference point. -/
  below : ∀ k ∈ part.keys, k.score ≠ none → k.computed ≤ m
  /-- The denominators are no further apart than the costs of the keys. -/
  l : AtMost ((1 + p.unit) ^ (part.additions + part.rescalings)
    * sumOver (cost p ν m part.rescalings fun _ => 1) part.keys) (part.l - part₀.l)
  /-- Nor are the numerators. -/
  o : AtMost ((1 + p.accumulation) ^ (part.additions + part.rescalings + 1)
    * sumOver (cost p ν m part.rescalings fun k => absolute k.value) part.keys) (part.o - part₀.o)
  /-- How large the denominator is at most. -/
  l_size : AtMost ((1 + p.unit) ^ (part.additions + part.rescalings)
    * sumOver (size p m part.rescalings fun _ => 1) part.keys) part₀.l
  /-- How large the numerator is at most. -/
  o_size : AtMost ((1 + p.accumulation) ^ (part.additions + part.rescalings + 1)
    * sumOver (size p m part.rescalings fun k => absolute k.value) part.keys) part₀.o

private theorem companion_masked {key : ComputedKey R}
    (hk : key.score = none) : Companion p ν m ⟨[key], 0, 0, 0, 0⟩ ⟨[key], 0, 0, 0, 0⟩ := by
  have zero : ∀ (G : R) (c : ComputedKey R → R), c key = 0 →
      AtMost (G * sumOver c [key]) (0 : R) := fun G c h => by
    rw [sumOver_cons, sumOver_nil, h]
    exact ⟨by grind, by grind⟩
  have e : (0 : R) - 0 = 0 := by grind
  refine ⟨.masked hk, rfl, rfl, rfl, fun k h hs => ?_, ?_, ?_, ?_, ?_⟩
  · rw [List.mem_singleton] at h
    exact absurd (h ▸ hk) hs
  all_goals simp only [e]
  all_goals refine zero _ _ ?_
  all_goals simp only [cost, size, hk]

omit [Exponential R R] in
/-- What one component of the parts comes to where they are put together. -/
private theorem component_join {U : R} (hU : 0 ≤ U) {f g : Part R → R} {k e : Nat}
    {c s : ComputedKey R → R} {parts : List (Part R)} {z : R} (h : PartSum U 0 f k parts z)
    (hc : ∀ part ∈ parts, AtMost ((1 + U) ^ e * sumOver c part.keys) (f part - g part))
    (hs : ∀ part ∈ parts, AtMost ((1 + U) ^ e * sumOver s part.keys) (g part))
    (masked : ∀ key, key.score = none → s key = 0) :
    ∃ z₀, RoundedSum U k (parts.map g) z₀ ∧
      AtMost ((1 + U) ^ (k + e) * sumOver c (parts.flatMap (·.keys))) (z - z₀) ∧
      AtMost ((1 + U) ^ (k + e) * sumOver s (parts.flatMap (·.keys))) z₀ := by
  obtain ⟨z₀, _, h₁, h₀, h₂⟩ := sumOf_companion (g := g) hU (Std.le_refl _) h hc
    fun part hpart hm => by
    have h := hs part hpart
    have e₁ : sumOver s part.keys = sumOver (fun _ => 0) part.keys :=
      sumOver_congr fun k hk => masked k (hm k hk)
    rw [e₁, sumOver_const, Semiring.mul_zero, Semiring.mul_zero] at h
    obtain ⟨a₁, a₂⟩ := h
    grind
  have h₃ := roundedSum_size hU h₁ hs
  rw [h₀.eq_zero, Semiring.add_zero] at h₂
  rw [sumOver_mul_left, ← sumOver_flatMap, ← Semiring.mul_assoc, ← Semiring.pow_add] at h₂ h₃
  exact ⟨z₀, h₁, h₂, h₃⟩

omit [Exponential R R] in
private theorem grown_mono {U : R} (hU : 0 ≤ U) {a b : Nat} (h : a ≤ b) {x y : R} (hx : 0 ≤ x)
    (hxy : x ≤ y) : (1 + U) ^ a * x ≤ (1 + U) ^ b * y := by
  have h₀ := OrderedField.one_le_pow (x := 1 + U) (by grind) a
  have := OrderedRing.zero_lt_one (R := R)
  exact OrderedField.mul_le_mul (by grind) (OrderedField.pow_le_pow (by grind) h) hx hxy

omit [OrderedField R] [Exponential R R] in
private theorem flatMap_companion {parts : List (Part R)} {c : Part R → Part R}
    (h : ∀ part ∈ parts, (c part).keys = part.keys) :
    (parts.map c).flatMap (·.keys) = parts.flatMap (·.keys) := by
  induction parts with
  | nil => rfl
  | cons part parts ih =>
    rw [List.map_cons, List.flatMap_cons, List.flatMap_cons, h part (by simp),
      ih fun part hp => h part (by simp [hp])]

private theorem companion_join (hp : Precise p) (hν : 0 ≤ ν) {l o : R} {parts : List (Part R)}
    {a k r : Nat} {c : Part R → Part R} (h : ∀ part ∈ parts, Companion p ν m part (c part))
    (hr : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (hl : PartSum p.unit 0 (·.l) k parts l) (ho : PartSum p.accumulation 0 (·.o) k parts o) :
    ∃ part₀, Companion p ν m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩ part₀ := by
  have one : ∀ _ : ComputedKey R, (0 : R) ≤ 1 := fun _ => Std.le_of_lt OrderedRing.zero_lt_one
  have abs : ∀ k : ComputedKey R, (0 : R) ≤ absolute k.value := fun k => absolute_nonneg _
  have costs : ∀ {U : R} (_ : 0 ≤ U) {f : ComputedKey R → R} (_ : ∀ k, 0 ≤ f k) (n : Nat) {x : R},
      ∀ part ∈ parts, AtMost ((1 + U) ^ (part.additions + part.rescalings + n)
        * sumOver (cost p ν m part.rescalings f) part.keys) x →
      AtMost ((1 + U) ^ (a + r + n) * sumOver (cost p ν m r f) part.keys) x :=
    fun hU _ hf n _ part hpart hx => hx.mono (grown_mono hU
      (Nat.add_le_add_right (Nat.add_le_add (hr part hpart).1 (hr part hpart).2) n)
      (sumOver_nonneg fun k _ => cost_nonneg hp hν (hf k))
      (sumOver_le_sumOver fun k _ => cost_mono hp hν (hr part hpart).2 (hf k)))
  have sizes : ∀ {U : R} (_ : 0 ≤ U) {f : ComputedKey R → R} (_ : ∀ k, 0 ≤ f k) (n : Nat) {x : R},
      ∀ part ∈ parts, AtMost ((1 + U) ^ (part.additions + part.rescalings + n)
        * sumOver (size p m part.rescalings f) part.keys) x →
      AtMost ((1 + U) ^ (a + r + n) * sumOver (size p m r f) part.keys) x :=
    fun hU _ hf n _ part hpart hx => hx.mono (grown_mono hU
      (Nat.add_le_add_right (Nat.add_le_add (hr part hpart).1 (hr part hpart).2) n)
      (sumOver_nonneg fun k _ => size_nonneg hp (hf k))
      (sumOver_le_sumOver fun k _ => size_mono hp (hr part hpart).2 (hf k)))
  have masked : ∀ (f : ComputedKey R → R) (key : ComputedKey R), key.score = none →
      size p m r f key = 0 := fun f key hk => by simp only [size, hk]
  obtain ⟨l₀, l₁, l₂, l₃⟩ := component_join hp.unit hl (g := fun part => (c part).l)
    (e := a + r + 0)
    (fun part hpart => costs hp.unit one 0 part hpart (h part hpart).l)
    (fun part hpart => sizes hp.unit one 0 part hpart (h part hpart).l_size) (masked _)
  obtain ⟨o₀, o₁, o₂, o₃⟩ := component_join hp.accumulation ho (g := fun part => (c part).o)
    (e := a + r + 1) (fun part hpart => costs hp.accumulation abs 1 part hpart (h part hpart).o)
    (fun part hpart => sizes hp.accumulation abs 1 part hpart (h part hpart).o_size) (masked _)
  have ekeys : (parts.map c).flatMap (·.keys) = parts.flatMap (·.keys) := by
    exact flatMap_companion fun part hpart => (h part hpart).keys
  have run : Run p m ⟨(parts.map c).flatMap (·.keys), l₀, o₀, a + k, r⟩ := by
    refine .join (fun part hpart => ?_) (fun part hpart => ?_) ?_ ?_
    · obtain ⟨one, hone, rfl⟩ := List.mem_map.mp hpart
      exact (h one hone).run
    · obtain ⟨one, hone, rfl⟩ := List.mem_map.mp hpart
      rw [(h one hone).additions, (h one hone).rescalings]
      exact hr one hone
    · rw [List.map_map]
      exact l₁
    · rw [List.map_map]
      exact o₁
  rw [ekeys] at run
  have n₁ : k + (a + r + 0) = a + k + r := by omega
  have n₂ : k + (a + r + 1) = a + k + r + 1 := by omega
  rw [n₁] at l₂ l₃
  rw [n₂] at o₂ o₃
  exact ⟨_, run, rfl, rfl, rfl, fun k hk hs => by
    obtain ⟨part, hpart, hk⟩ := List.mem_flatMap.mp hk
    exact (h part hpart).below k hk hs, l₂, o₂, l₃, o₃⟩

private theorem companion_rescale (hp : Precise p) (hν : 0 ≤ ν) (hνq : ν ≤ p.exponential)
    (hu : p.unit ≤ 1) {m' x α l o : R} {part part₀ : Part R} (h : Companion p ν m part part₀)
    (hm : m ≤ m') (hx : Rounded p.unit (m - m') x) (hα : Stored p.exponential ν (exp x) α)
    (hl : Stored p.unit ν (α * part.l) l) (ho : Stored p.accumulation ν (α * part.o) o) :
    ∃ part₀, Companion p ν m' { part with l := l, o := o, rescalings := part.rescalings + 1 }
      part₀ := by
  obtain ⟨α₀, hα₀, hfactor⟩ := factor hp hν hνq hu hm hx hα
  have grow : ∀ {U : R}, 0 ≤ U → ∀ n, 1 ≤ (1 + U) ^ n := fun hU n =>
    OrderedField.one_le_pow (by grind) n
  obtain ⟨l₀, l₁, l₂, l₃⟩ := component_rescale hp hν hu hp.unit hfactor (grow hp.unit _) h.below
    (fun _ => Std.le_of_lt OrderedRing.zero_lt_one) h.l h.l_size hl
  obtain ⟨o₀, o₁, o₂, o₃⟩ := component_rescale hp hν hu hp.accumulation hfactor
    (grow hp.accumulation _) h.below (fun k => absolute_nonneg k.value) h.o h.o_size ho
  rw [← Semiring.pow_succ] at l₂ l₃ o₂ o₃
  have n₂ : part.additions + part.rescalings + 1 + 1
      = part.additions + (part.rescalings + 1) + 1 := by omega
  rw [n₂] at o₂ o₃
  refine ⟨{ part₀ with l := l₀, o := o₀, rescalings := part₀.rescalings + 1 },
    .rescale h.run hm hx hα₀ l₁ o₁, h.keys, h.additions, congrArg (· + 1) h.rescalings,
    fun k hk hs => Std.le_trans (h.below k hk hs) hm, l₂, o₂, l₃, o₃⟩

/-- **tiny-run**: whatever a function computes whose products and exponentials underflow, one that
rounds in the same places without underflow might have computed but for the costs of the keys, where
no error of an underflow is larger than the relative error of an exponential. -/
theorem tiny_run (hp : Precise p) (hν : 0 ≤ ν) {part : Part R} (run : TinyRun p ν 0 m part)
    (hr : part.rescalings ≠ 0 → p.unit ≤ 1 ∧ ν ≤ p.exponential) :
    ∃ part₀, Companion p ν m part part₀ := by
  induction run with
  | masked hk => exact ⟨_, companion_masked hk⟩
  | @key m x w w' o key hk hm hx hw hw' ho =>
    obtain ⟨l₀, o₀, h₁, h₂, h₃, h₄, h₅⟩ :=
      key_companion hp hν hk hm (rounded_of_difference hp.unit hx) hw hw' ho
    have e : ∀ c : ComputedKey R → R, sumOver c [key] = c key := fun c => by
      rw [sumOver_cons, sumOver_nil, Semiring.add_zero]
    refine ⟨_, h₁, rfl, rfl, rfl, fun k hk' _ => ?_, ?_, ?_, ?_, ?_⟩
    · rw [List.mem_singleton] at hk'
      exact hk' ▸ hm
    · simpa only [e, Nat.add_zero, Semiring.pow_zero, Semiring.one_mul] using h₂
    · simpa only [e, Nat.add_zero, Nat.zero_add, Semiring.pow_succ, Semiring.pow_zero,
        Semiring.one_mul] using h₃
    · simpa only [e, Nat.add_zero, Semiring.pow_zero, Semiring.one_mul] using h₄
    · simpa only [e, Nat.add_zero, Nat.zero_add, Semiring.pow_succ, Semiring.pow_zero,
        Semiring.one_mul] using h₅
  | @join m l o parts a k r _ hr' hl ho ih =>
    have : ∀ part, ∃ part₀, part ∈ parts → Companion p ν m part part₀ := fun part => by
      by_cases h : part ∈ parts
      · obtain ⟨part₀, h₀⟩ := ih part h fun hn => hr (by
          have h₁ := (hr' part h).2
          show r ≠ 0
          omega)
        exact ⟨part₀, fun _ => h₀⟩
      · exact ⟨part, fun h' => absurd h' h⟩
    obtain ⟨c, hc⟩ := Classical.skolem.mp this
    exact companion_join hp hν hc hr' hl ho
  | rescale _ hm hx hα hl ho ih =>
    obtain ⟨part₀, h⟩ := ih fun _ => hr (Nat.succ_ne_zero _)
    obtain ⟨hu, hνq⟩ := hr (Nat.succ_ne_zero _)
    exact companion_rescale hp hν hνq hu h hm (rounded_of_difference hp.unit hx) hα hl ho

end Attention.Proof
