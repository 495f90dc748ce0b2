module

public import Attention.Proof.Rounding.UnderflowRescaling

public section

/-! # A run whose numbers underflow is one without, but for a small error

`tiny_run`: what `TinyRun` may compute is what `Run` may compute of the same keys, and an error of
denominator and numerator that is a sum of small numbers, one for each unmasked key: what the
exponentials of its weight and rescalings are off by where they underflow, its products, and the
addition of it to another. Such a number grows with the weight by which a part is rescaled, as the
weights do. A part of n keys has n − 1 additions: what the n-th would lose is left (`Spent`).
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
  /-- The denominators are no further apart than the costs of the keys, and less. -/
  l_spent : ∃ c, Spent p ν m part.rescalings (fun _ => 1) part.keys c ∧
    AtMost ((1 + p.unit) ^ (part.additions + part.rescalings) * c) (part.l - part₀.l)
  /-- Nor are the numerators. -/
  o_spent : ∃ c, Spent p ν m part.rescalings (fun k => absolute k.value) part.keys c ∧
    AtMost ((1 + p.accumulation) ^ (part.additions + part.rescalings + 1) * c) (part.o - part₀.o)
  /-- How large the denominator is at most. -/
  l_size : AtMost ((1 + p.unit) ^ (part.additions + part.rescalings)
    * sumOver (size p m part.rescalings fun _ => 1) part.keys) part₀.l
  /-- How large the numerator is at most. -/
  o_size : AtMost ((1 + p.accumulation) ^ (part.additions + part.rescalings + 1)
    * sumOver (size p m part.rescalings fun k => absolute k.value) part.keys) part₀.o

private theorem grown_le (hp : Precise p) (hν : 0 ≤ ν) {U x c : R} (hU : 0 ≤ U)
    {f : ComputedKey R → R} (hf : ∀ k, 0 ≤ f k) {r n : Nat} {keys : List (ComputedKey R)}
    (hc : Spent p ν m r f keys c) (h : AtMost ((1 + U) ^ n * c) x) :
    AtMost ((1 + U) ^ n * sumOver (cost p ν m r f) keys) x := by
  have h₀ := OrderedField.one_le_pow (x := 1 + U) (by grind) n
  have := OrderedRing.zero_lt_one (R := R)
  exact h.mono (OrderedRing.mul_le_mul_of_nonneg_left (hc.le hp hν hf) (by grind))

/-- The denominators are no further apart than the costs of the keys. -/
theorem Companion.l (hp : Precise p) (hν : 0 ≤ ν) {part part₀ : Part R}
    (h : Companion p ν m part part₀) : AtMost ((1 + p.unit) ^ (part.additions + part.rescalings)
      * sumOver (cost p ν m part.rescalings fun _ => 1) part.keys) (part.l - part₀.l) :=
  have ⟨_, h₁, h₂⟩ := h.l_spent
  grown_le hp hν hp.unit (fun _ => Std.le_of_lt OrderedRing.zero_lt_one) h₁ h₂

/-- Nor are the numerators. -/
theorem Companion.o (hp : Precise p) (hν : 0 ≤ ν) {part part₀ : Part R}
    (h : Companion p ν m part part₀) :
    AtMost ((1 + p.accumulation) ^ (part.additions + part.rescalings + 1)
      * sumOver (cost p ν m part.rescalings fun k => absolute k.value) part.keys)
      (part.o - part₀.o) :=
  have ⟨_, h₁, h₂⟩ := h.o_spent
  grown_le hp hν hp.accumulation (fun k => absolute_nonneg k.value) h₁ h₂

private theorem companion_masked {key : ComputedKey R}
    (hk : key.score = none) : Companion p ν m ⟨[key], 0, 0, 0, 0⟩ ⟨[key], 0, 0, 0, 0⟩ := by
  have zero : ∀ (G : R) (c : ComputedKey R → R), c key = 0 →
      AtMost (G * sumOver c [key]) (0 : R) := fun G c h => by
    rw [sumOver_cons, sumOver_nil, h]
    exact ⟨by grind, by grind⟩
  have e : (0 : R) - 0 = 0 := by grind
  have unseen : ∀ k ∈ [key], ¬k.score ≠ none := fun k h hs => by
    rw [List.mem_singleton] at h
    exact hs (h ▸ hk)
  have spent : ∀ f : ComputedKey R → R, Spent p ν m 0 f [key] 0 := fun f =>
    ⟨Std.le_refl _, fun _ => rfl, fun ⟨k, h, hs⟩ => absurd hs (unseen k h)⟩
  have nothing : ∀ G : R, AtMost (G * 0) ((0 : R) - 0) := fun G => by
    rw [e, Semiring.mul_zero]
    exact .zero (Std.le_refl _)
  refine ⟨.masked hk, rfl, rfl, rfl, fun k h hs => absurd hs (unseen k h), ⟨0, spent _, nothing _⟩,
    ⟨0, spent _, nothing _⟩, ?_, ?_⟩
  all_goals refine zero _ _ ?_
  all_goals simp only [size, hk]

/-- What is lost of parts that are put together, and of the additions. -/
private theorem spent_join (hp : Precise p) (hν : 0 ≤ ν) {f : ComputedKey R → R}
    (hf : ∀ k, 0 ≤ f k) {r : Nat} {parts : List (Part R)} {lost : Part R → R} {n : R}
    (hc : ∀ part ∈ parts, Spent p ν m r f part.keys (lost part))
    (hn : Flushed ν (fun part => ∀ key ∈ part.keys, key.score = none) parts n) :
    Spent p ν m r f (parts.flatMap (·.keys)) (sumOver lost parts + n) := by
  have hq := remainder_pos hp
  have hP := OrderedField.pow_pos hq r
  have hP₁ : (1 - p.exponential) ^ r ≤ 1 := by
    have := OrderedField.pow_le_pow_of_le_one hq (by have := hp.exponential; grind) (Nat.zero_le r)
    rwa [Semiring.pow_zero] at this
  have h₀ := sumOver_nonneg (xs := parts) fun part h => (hc part h).nonneg
  have h₁ := hn.nonneg
  refine ⟨by grind, fun masked => ?_, fun ⟨key, hkey, hs⟩ => ?_⟩
  · have free : ∀ part ∈ parts, ∀ key ∈ part.keys, key.score = none := fun part h key hk =>
      masked key (List.mem_flatMap.mpr ⟨part, h, hk⟩)
    rw [hn.nothing free, sumOver_congr fun q h => (hc q h).masked (free q h), sumOver_const,
      Semiring.mul_zero, Semiring.add_zero]
  · obtain ⟨top, htop, hkey⟩ := List.mem_flatMap.mp hkey
    have h₂ := (hn.share hP hP₁).counted ⟨top, htop, fun h => hs (h key hkey)⟩
      (fun part => sumOver (cost p ν m r f) part.keys + (0 - 1) * lost part)
      (fun part h => by
        have := (hc part h).le hp hν hf
        show 0 ≤ sumOver (cost p ν m r f) part.keys + (0 - 1) * lost part
        grind) fun part h free => by
        have := (hc part h).counted (Classical.byContradiction fun unseen =>
          free fun k hk => Classical.byContradiction fun hs => unseen ⟨k, hk, hs⟩)
        show _ ≤ sumOver (cost p ν m r f) part.keys + (0 - 1) * lost part
        grind
    rw [sumOver_add, sumOver_mul_left] at h₂
    rw [sumOver_flatMap]
    grind

/-- What one component of the parts comes to where they are put together. -/
private theorem component_join (hp : Precise p) (hν : 0 ≤ ν) {U : R} (hU : 0 ≤ U)
    {f : ComputedKey R → R} (hf : ∀ k, 0 ≤ f k) {g g₀ : Part R → R} {k e r : Nat}
    {parts : List (Part R)} {z : R} (h : PartSum U ν g k parts z)
    (hc : ∀ part ∈ parts, ∃ c, Spent p ν m r f part.keys c ∧
      AtMost ((1 + U) ^ e * c) (g part - g₀ part))
    (hs : ∀ part ∈ parts, AtMost ((1 + U) ^ e * sumOver (size p m r f) part.keys) (g₀ part)) :
    ∃ z₀ c, RoundedSum U k (parts.map g₀) z₀ ∧ Spent p ν m r f (parts.flatMap (·.keys)) c ∧
      AtMost ((1 + U) ^ (k + e) * c) (z - z₀) ∧
      AtMost ((1 + U) ^ (k + e) * sumOver (size p m r f) (parts.flatMap (·.keys))) z₀ := by
  have : ∀ part, ∃ c, part ∈ parts → Spent p ν m r f part.keys c ∧
      AtMost ((1 + U) ^ e * c) (g part - g₀ part) := fun part => by
    by_cases h : part ∈ parts
    · obtain ⟨c, h₁⟩ := hc part h
      exact ⟨c, fun _ => h₁⟩
    · exact ⟨0, fun h' => absurd h' h⟩
  obtain ⟨lost, hlost⟩ := Classical.skolem.mp this
  obtain ⟨z₀, n, h₁, h₀, h₂⟩ := sumOf_companion (g := g₀) hU hν h (fun part hp => (hlost part hp).2)
    fun part hpart hm => by
    have h := hs part hpart
    have e₁ : sumOver (size p m r f) part.keys = sumOver (fun _ => 0) part.keys :=
      sumOver_congr fun k hk => by simp only [size, hm k hk]
    rw [e₁, sumOver_const, Semiring.mul_zero, Semiring.mul_zero] at h
    obtain ⟨a₁, a₂⟩ := h
    grind
  have h₃ := roundedSum_size hU h₁ hs
  rw [sumOver_mul_left, ← sumOver_flatMap, ← Semiring.mul_assoc, ← Semiring.pow_add] at h₃
  refine ⟨z₀, _, h₁, spent_join hp hν hf (fun part h => (hlost part h).1) h₀, h₂.mono ?_, h₃⟩
  rw [sumOver_mul_left, Semiring.pow_add]
  have i₁ := OrderedField.one_le_pow (x := 1 + U) (by grind) e
  have i₂ := OrderedField.one_le_pow (x := 1 + U) (by grind) k
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_left (OrderedRing.mul_le_mul_of_nonneg_right i₁
    h₀.nonneg) (c := (1 + U) ^ k) (by have := OrderedRing.zero_lt_one (R := R); grind)
  generalize (1 + U) ^ k = K at *
  generalize (1 + U) ^ e = E at *
  clear h h₁ h₂ h₃ hc hs hlost h₀ i₁ i₂
  grind

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
    (hl : PartSum p.unit ν (·.l) k parts l) (ho : PartSum p.accumulation ν (·.o) k parts o) :
    ∃ part₀, Companion p ν m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩ part₀ := by
  have one : ∀ _ : ComputedKey R, (0 : R) ≤ 1 := fun _ => Std.le_of_lt OrderedRing.zero_lt_one
  have abs : ∀ k : ComputedKey R, (0 : R) ≤ absolute k.value := fun k => absolute_nonneg _
  have costs : ∀ {U : R} (_ : 0 ≤ U) {f : ComputedKey R → R} (_ : ∀ k, 0 ≤ f k) (n : Nat) {x : R},
      ∀ part ∈ parts, (∃ c, Spent p ν m part.rescalings f part.keys c ∧
        AtMost ((1 + U) ^ (part.additions + part.rescalings + n) * c) x) →
      ∃ c, Spent p ν m r f part.keys c ∧ AtMost ((1 + U) ^ (a + r + n) * c) x :=
    fun hU _ hf n _ part hpart ⟨c, hc, hx⟩ => ⟨c, hc.mono hp hν hf (hr part hpart).2,
      hx.mono (grown_mono hU
        (Nat.add_le_add_right (Nat.add_le_add (hr part hpart).1 (hr part hpart).2) n) hc.nonneg
        (Std.le_refl _))⟩
  have sizes : ∀ {U : R} (_ : 0 ≤ U) {f : ComputedKey R → R} (_ : ∀ k, 0 ≤ f k) (n : Nat) {x : R},
      ∀ part ∈ parts, AtMost ((1 + U) ^ (part.additions + part.rescalings + n)
        * sumOver (size p m part.rescalings f) part.keys) x →
      AtMost ((1 + U) ^ (a + r + n) * sumOver (size p m r f) part.keys) x :=
    fun hU _ hf n _ part hpart hx => hx.mono (grown_mono hU
      (Nat.add_le_add_right (Nat.add_le_add (hr part hpart).1 (hr part hpart).2) n)
      (sumOver_nonneg fun k _ => size_nonneg hp (hf k))
      (sumOver_le_sumOver fun k _ => size_mono hp (hr part hpart).2 (hf k)))
  obtain ⟨l₀, lc, l₁, lc₁, l₂, l₃⟩ := component_join hp hν hp.unit one hl
    (g₀ := fun part => (c part).l) (e := a + r + 0)
    (fun part hpart => costs hp.unit one 0 part hpart (h part hpart).l_spent)
    fun part hpart => sizes hp.unit one 0 part hpart (h part hpart).l_size
  obtain ⟨o₀, oc, o₁, oc₁, o₂, o₃⟩ := component_join hp hν hp.accumulation abs ho
    (g₀ := fun part => (c part).o) (e := a + r + 1)
    (fun part hpart => costs hp.accumulation abs 1 part hpart (h part hpart).o_spent)
    fun part hpart => sizes hp.accumulation abs 1 part hpart (h part hpart).o_size
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
    exact (h part hpart).below k hk hs, ⟨lc, lc₁, l₂⟩, ⟨oc, oc₁, o₂⟩, l₃, o₃⟩

private theorem companion_rescale (hp : Precise p) (hν : 0 ≤ ν) (hνq : ν ≤ p.exponential)
    (hu : p.unit ≤ 1) {m' x α l o : R} {part part₀ : Part R} (h : Companion p ν m part part₀)
    (hm : m ≤ m') (hx : Rounded p.unit (m - m') x) (hα : Stored p.exponential ν (exp x) α)
    (hl : Stored p.unit ν (α * part.l) l) (ho : Stored p.accumulation ν (α * part.o) o) :
    ∃ part₀, Companion p ν m' { part with l := l, o := o, rescalings := part.rescalings + 1 }
      part₀ := by
  obtain ⟨α₀, hα₀, hfactor⟩ := factor hp hν hνq hu hm hx hα
  have grow : ∀ {U : R}, 0 ≤ U → ∀ n, 1 ≤ (1 + U) ^ n := fun hU n =>
    OrderedField.one_le_pow (by grind) n
  obtain ⟨lc, lc₁, lc₂⟩ := h.l_spent
  obtain ⟨oc, oc₁, oc₂⟩ := h.o_spent
  obtain ⟨l₀, lc', l₁, l₄, l₂, l₃⟩ := component_rescale hp hν hu hp.unit hfactor (grow hp.unit _)
    h.below (fun _ => Std.le_of_lt OrderedRing.zero_lt_one) lc₁ lc₂ h.l_size hl
  obtain ⟨o₀, oc', o₁, o₄, o₂, o₃⟩ := component_rescale hp hν hu hp.accumulation hfactor
    (grow hp.accumulation _) h.below (fun k => absolute_nonneg k.value) oc₁ oc₂ h.o_size ho
  rw [← Semiring.pow_succ] at l₂ l₃ o₂ o₃
  have n₂ : part.additions + part.rescalings + 1 + 1
      = part.additions + (part.rescalings + 1) + 1 := by omega
  rw [n₂] at o₂ o₃
  refine ⟨{ part₀ with l := l₀, o := o₀, rescalings := part₀.rescalings + 1 },
    .rescale h.run hm hx hα₀ l₁ o₁, h.keys, h.additions, congrArg (· + 1) h.rescalings,
    fun k hk hs => Std.le_trans (h.below k hk hs) hm, ⟨lc', l₄, l₂⟩, ⟨oc', o₄, o₂⟩, l₃, o₃⟩

/-- **tiny-run**: whatever a function computes whose products, exponentials and sums underflow, one
that rounds in the same places without underflow might have computed but for the costs of the keys,
where the unit roundoff is at most 1, and no error of an underflow larger than the relative error of
an exponential if something is rescaled. -/
theorem tiny_run (hp : Precise p) (hν : 0 ≤ ν) (hu : p.unit ≤ 1) {part : Part R}
    (run : TinyRun p ν 0 m part) (hr : part.rescalings ≠ 0 → ν ≤ p.exponential) :
    ∃ part₀, Companion p ν m part part₀ := by
  induction run with
  | masked hk => exact ⟨_, companion_masked hk⟩
  | @key m x w w' o key hk hm hx hw hw' ho =>
    obtain ⟨l₀, o₀, h₁, h₂, h₃, h₄, h₅⟩ :=
      key_companion hp hν hu hk hm (rounded_of_difference hp.unit hx) hw hw' ho
    have e : ∀ c : ComputedKey R → R, sumOver c [key] = c key := fun c => by
      rw [sumOver_cons, sumOver_nil, Semiring.add_zero]
    have hν' : ν / (1 - p.exponential) ^ 0 = ν := by
      rw [Semiring.pow_zero]
      grind
    have spent : ∀ (f : ComputedKey R → R) (U x : R), 0 ≤ U →
        AtMost ((1 + U) * (cost p ν m 0 f key - ν)) x →
        Spent p ν m 0 f [key] (cost p ν m 0 f key - ν) := fun f U x hU h => by
      refine ⟨?_, fun masked => absurd (masked key (List.mem_singleton.mpr rfl)) hk, fun _ => ?_⟩
      · refine Classical.byContradiction fun hn => ?_
        have := h.nonneg
        have := OrderedRing.mul_pos (a := 1 + U) (b := ν - cost p ν m 0 f key)
          (by have := OrderedRing.zero_lt_one (R := R); grind) (by grind)
        grind
      · rw [e, hν']
        grind
    have h₂' : AtMost ((1 + 0) * (cost p ν m 0 (fun _ => 1) key - ν))
        (added p.denominator w w' - l₀) := by rwa [show ∀ a : R, (1 + 0) * a = a by grind]
    refine ⟨_, h₁, rfl, rfl, rfl, fun k hk' _ => ?_, ⟨_, spent _ _ _ (Std.le_refl _) h₂', ?_⟩,
      ⟨_, spent _ _ _ hp.accumulation h₃, ?_⟩, ?_, ?_⟩
    · rw [List.mem_singleton] at hk'
      exact hk' ▸ hm
    · simpa only [Nat.add_zero, Semiring.pow_zero, Semiring.one_mul] using h₂
    · simpa only [Nat.add_zero, Nat.zero_add, Semiring.pow_succ, Semiring.pow_zero,
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
    exact companion_rescale hp hν (hr (Nat.succ_ne_zero _)) hu h hm
      (rounded_of_difference hp.unit hx) hα hl ho

end Attention.Proof
