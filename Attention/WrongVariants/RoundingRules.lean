module

public import Attention.Proof.Rounding.Exact

public section

/-! # Attention functions that round, by rules that can be replaced

What a function may do with a key, with parts that it puts together and with a part whose reference
point rises are rules here. By those of `Model.Run` it stays within its tolerance; `Rounding` and
`RoundingCounts` replace one each by a wrong one. Source: docs/tolerances.md, sections 1 to 4. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-! ## The rules, and the claim -/

/-- The statement of `Model.Run` about one step each. -/
structure RunRules (R : Type u) where
  /-- Precision, key, reference point; denominator and numerator of a part of this key alone. -/
  key : Precision R → ComputedKey R → R → R → R → Prop
  /-- Precision, parts, depth of the sums; denominator and numerator of them together. -/
  join : Precision R → List (Part R) → Nat → R → R → Prop
  /-- Precision, part, old and new reference point; the new denominator and numerator. -/
  rescale : Precision R → Part R → R → R → R → R → Prop
  /-- The additions of parts put together, from the most in a part and the depth of the sums. -/
  additions : Nat → Nat → Nat
  /-- The rescalings of a part rescaled. -/
  rescalings : Nat → Nat

/-- A run by these rules. -/
inductive RunBy (rules : RunRules R) (p : Precision R) : R → Part R → Prop
  /-- One key. -/
  | key {m l o : R} {key : ComputedKey R} : rules.key p key m l o →
      RunBy rules p m ⟨[key], l, o, 0, 0⟩
  /-- Parts are put together. -/
  | join {m l o : R} {parts : List (Part R)} {a k r : Nat} :
      (∀ part ∈ parts, RunBy rules p m part) →
      (∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r) → rules.join p parts k l o →
      RunBy rules p m ⟨parts.flatMap (·.keys), l, o, rules.additions a k, r⟩
  /-- The reference point changes. -/
  | rescale {m m' l o : R} {part : Part R} : RunBy rules p m part →
      rules.rescale p part m m' l o →
      RunBy rules p m' { part with l := l, o := o, rescalings := rules.rescalings part.rescalings }

/-- The weight of a key against a reference point, and its product with the value. -/
@[expose] def weighs (p : Precision R) (key : ComputedKey R) (m l o : R) : Prop :=
  ∃ x w w', Rounded p.unit (key.computed - m) x ∧ Rounded p.exponential (exp x) w ∧
    Stored p.stored p.storedTiny w w' ∧ Rounded p.accumulation (w' * key.value) o ∧
    l = added p.denominator w w'

/-- Denominator and numerator multiplied by the exponential of the difference. -/
@[expose] def multiplies (p : Precision R) (part : Part R) (m m' l o : R) : Prop :=
  ∃ x α, Rounded p.unit (m - m') x ∧ Rounded p.exponential (exp x) α ∧
    Rounded p.unit (α * part.l) l ∧ Rounded p.accumulation (α * part.o) o

omit [Exponential R R] in
/-- Denominators and numerators added. -/
@[expose] def adds (p : Precision R) (parts : List (Part R)) (k : Nat) (l o : R) : Prop :=
  RoundedSum p.unit k (parts.map (·.l)) l ∧ RoundedSum p.accumulation k (parts.map (·.o)) o

/-- The rules of `Model.Run`. -/
@[expose] def rightRules : RunRules R where
  key p key m l o := match key.score with
    | none => l = 0 ∧ o = 0
    | some _ => key.computed ≤ m ∧ weighs p key m l o
  join := adds
  rescale p part m m' l o := m ≤ m' ∧ multiplies p part m m' l o
  additions a k := a + k
  rescalings r := r + 1

/-- By the right rules a run is one of `Model.Run`. -/
theorem RunBy.run {p : Precision R} {m : R} {part : Part R} (h : RunBy rightRules p m part) :
    Run p m part := by
  induction h with
  | @key m l o key h =>
    cases hs : key.score with
    | none =>
      simp only [rightRules, hs] at h
      obtain ⟨rfl, rfl⟩ := h
      exact .masked hs
    | some s =>
      simp only [rightRules, hs] at h
      obtain ⟨h₁, x, w, w', h₂, h₃, h₄, h₅, rfl⟩ := h
      exact .key (by simp [hs]) h₁ h₂ h₃ h₄ h₅
  | join _ hr h ih => exact .join ih hr h.1 h.2
  | rescale _ h ih =>
    obtain ⟨h₁, x, α, h₂, h₃, h₄, h₅⟩ := h
    exact .rescale ih h₁ h₂ h₃ h₄ h₅

/-- The claim of `rounded_attention`, made of any runs and of any reference point. -/
abbrev StaysAllowed (run : Precision R → R → Part R → Prop)
    (reference : R → List (ComputedKey R) → Prop :=
      fun m keys => ∃ key ∈ keys, key.score ≠ none ∧ key.computed = m) : Prop :=
  ∀ p : Precision R, Precise p → ∀ (m : R) (part : Part R), run p m part →
    ∀ row : List (ScoredValue R R 1),
    part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[0])) →
    reference m part.keys → ∀ c : R,
    (∀ key ∈ part.keys, ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c))) →
    ∀ roundings rescalings : Nat, part.rescalings ≤ rescalings →
    part.additions + part.rescalings ≤ roundings →
    (p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1) →
    numeral (roundings + 6) * p.accumulation < 1 → 2 * numeral roundings * p.unit < 1 →
    ∀ o : R, RoundedTimes p.accumulation 5 (part.o / part.l) o → ∀ negligible : R,
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[0])

/-- Positive control: the right rules. -/
theorem rightRules_stayAllowed : StaysAllowed (R := R) (RunBy rightRules) :=
  fun _ hp _ _ run _ same attained _ close _ _ hr ha third hN hD _ result =>
    Proof.rounded_attention hp run.run Nat.zero_lt_one same attained close hr ha third hN hD result

/-! ## What counterexamples are made of -/

omit [Exponential R R] in
/-- A number that is not rounded is rounded with error 0. -/
theorem rounded_refl {u : R} (hu : 0 ≤ u) (x : R) : Rounded u x x :=
  ⟨0, AtMost.zero hu, by grind⟩

omit [Exponential R R] in
theorem gamma_zero (k : Nat) : gamma k (0 : R) = 0 := by
  rw [gamma, Semiring.mul_zero]
  grind

omit [Exponential R R] in
theorem atMost_sub_self (x : R) : AtMost 0 (x - x) := by
  rw [show x - x = 0 by grind]
  exact .zero (Std.le_refl _)

omit [Exponential R R] in
theorem absolute_one : absolute (1 : R) = 1 := by
  have h := OrderedRing.zero_lt_one (R := R)
  rw [absolute, OrderedField.max_def]
  split <;> grind

omit [Exponential R R] in
/-- The same several times. -/
theorem roundedTimes_refl {u : R} (hu : 0 ≤ u) (k : Nat) (x : R) :
    RoundedTimes u k x x := by
  induction k with
  | zero => rfl
  | succ k ih => exact ⟨x, ih, rounded_refl hu x⟩

omit [Exponential R R] in
/-- A sum of two numbers, nothing rounded. -/
theorem roundedSum_pair {u : R} (hu : 0 ≤ u) (x y : R) : RoundedSum u 1 [x, y] (x + y) :=
  .add (xs := [x]) (ys := [y]) .one .one (rounded_refl hu _) (rounded_refl hu _)

omit [Exponential R R] in
/-- A precision that rounds no more than the arguments of exponentials and the denominator. -/
@[expose] def unitOnly (u : R) : Precision R := ⟨u, 0, 0, 0, 0, .unrounded⟩

omit [Exponential R R] in
/-- It is a precision that means something. -/
theorem unitOnly_precise {u : R} (hu : 0 ≤ u) : Precise (unitOnly u) :=
  ⟨hu, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _, Std.le_refl _⟩

omit [Exponential R R] in
/-- A key whose score is computed exactly. -/
@[expose] def exactKey (s v : R) : ComputedKey R := ⟨⟨some s, 0, v⟩, s⟩

omit [Exponential R R] in
theorem exactKey_close (s v : R) :
    AtMost (exactKey s v).error ((exactKey s v).computed - (s + 0)) := by
  rw [Semiring.add_zero]
  exact atMost_sub_self s

/-- The weight of a key, nothing rounded. -/
theorem weighs_exactly {u : R} (hu : 0 ≤ u) (key : ComputedKey R) (m : R) :
    weighs (unitOnly u) key m (exp (key.computed - m)) (exp (key.computed - m) * key.value) :=
  ⟨_, _, _, rounded_refl hu _, rounded_refl (Std.le_refl _) _,
    Proof.stored_refl (Std.le_refl _) _, rounded_refl (Std.le_refl _) _, rfl⟩

/-- Where nothing is rounded, the claim is that of exactness. -/
theorem StaysAllowed.exact {run : Precision R → R → Part R → Prop}
    (claim : StaysAllowed run) {m : R} {part : Part R} (h : run (unitOnly 0) m part)
    {row : List (ScoredValue R R 1)}
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[0])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (exact : ∀ key ∈ part.keys, key.error = 0 ∧ ∀ s, key.score = some s → key.computed = s) :
    part.o / part.l = (attend row)[0] := by
  have h₀ : (0 : R) < 1 := OrderedRing.zero_lt_one
  have h₁ := claim _ (unitOnly_precise (Std.le_refl _)) m part h row same attained 0
    (fun key hk s hs => by
      obtain ⟨e₁, e₂⟩ := exact key hk
      rw [e₁, e₂ s hs]
      exact ⟨by grind, by grind⟩)
    _ _ (Nat.le_refl _) (Nat.le_refl _) nofun (by simp only [unitOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [unitOnly, Semiring.mul_zero]; exact h₀) _
    (roundedTimes_refl (Std.le_refl _) 5 _) 0
  obtain ⟨h₂, h₃⟩ := h₁.mono (Proof.tolerance_exact_le (fun key hk _ => by
    obtain ⟨key', hk', rfl⟩ := List.mem_map.mp hk
    exact (exact key' hk').1) _ _ _)
  grind

/-- The attention of the keys (s, x) and (t, y). -/
theorem attend_pair (s t x y : R) :
    (attend [(⟨some s, #v[x]⟩ : ScoredValue R R 1), ⟨some t, #v[y]⟩])[0]
      = (exp s * x + exp t * y) / (exp s + exp t) := by
  rw [Proof.getElem_attend]
  simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
    sumOver_nil, Semiring.add_zero]
  rfl

/-- Against its own score a key has weight 1. -/
theorem exp_sub_self (x : R) : (exp (x - x) : R) = 1 := by
  have e : x - x = 0 := by grind
  rw [e, exp_zero]

omit [Exponential R R] in
/-- A part of one key. -/
@[expose] def singlePart (s v l o : R) : Part R := ⟨[exactKey s v], l, o, 0, 0⟩

/-- A key by the right rule, nothing rounded. -/
theorem key_right {u : R} (hu : 0 ≤ u) {s m : R} (v : R) (h : s ≤ m) :
    rightRules.key (unitOnly u) (exactKey s v) m (exp (s - m)) (exp (s - m) * v) :=
  ⟨h, weighs_exactly hu (exactKey s v) m⟩

/-- The same against its own score. -/
theorem key_own {u : R} (hu : 0 ≤ u) (s v : R) :
    rightRules.key (unitOnly u) (exactKey s v) s 1 v := by
  have h := key_right hu v (Std.le_refl s)
  rwa [exp_sub_self, Semiring.one_mul] at h

/-- A run over one key. -/
theorem run_own {rules : RunRules R} (h : rules.key = rightRules.key) {u : R} (hu : 0 ≤ u)
    (s v : R) : RunBy rules (unitOnly u) s (singlePart s v 1 v) :=
  .key (h ▸ key_own hu s v)

omit [Exponential R R] in
/-- Two parts added, nothing rounded. -/
theorem adds_pair {u : R} (hu : 0 ≤ u) (a b : Part R) :
    adds (unitOnly u) [a, b] 1 (a.l + b.l) (a.o + b.o) :=
  ⟨roundedSum_pair hu _ _, roundedSum_pair (Std.le_refl _) _ _⟩

omit [OrderedField R] [Exponential R R] in
/-- A run over two parts. -/
theorem join_pair {rules : RunRules R} {p : Precision R} {m l o : R} {a b : Part R}
    {k : Nat} (ha : RunBy rules p m a) (hb : RunBy rules p m b)
    (h : rules.join p [a, b] k l o) : RunBy rules p m ⟨a.keys ++ b.keys, l, o,
      rules.additions (max a.additions b.additions) k, max a.rescalings b.rescalings⟩ := by
  have h₁ := RunBy.join (rules := rules) (p := p) (m := m) (parts := [a, b])
    (a := max a.additions b.additions) (r := max a.rescalings b.rescalings) (fun part hp => ?_)
    (fun part hp => ?_) h
  · simpa only [List.flatMap_cons, List.flatMap_nil, List.append_nil] using h₁
  all_goals
    simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
  · rcases hp with rfl | rfl
    · exact ha
    · exact hb
  · rcases hp with rfl | rfl
    · exact ⟨Nat.le_max_left _ _, Nat.le_max_left _ _⟩
    · exact ⟨Nat.le_max_right _ _, Nat.le_max_right _ _⟩

end Attention.WrongVariants
