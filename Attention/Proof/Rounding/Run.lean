module

public import Attention.Proof.Rounding.Gamma
public import Attention.Proof.Rounding.Sum

public section

/-! # The weights and sums that a function that rounds has computed

A part of the computation has a weight for each of its keys, so that its denominator and its
numerator differ from the sums of these weights only by the roundings of sums and products. A weight
is the rounded exponential of its key times the computed factors of all rescalings; it is off by
what exponentials and their arguments are off, which numerator and denominator share.
Source: docs/tolerances.md, sections 1 to 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-! ## The weights of a part -/

/-- The weight of one key after at most `r` rescalings, against the reference point `m`. -/
private structure Weighed (p : Precision R) (m : R) (r : Nat) (k : ComputedKey R × R) : Prop where
  masked : k.1.score = none → k.2 = 0
  le : k.1.score ≠ none → k.1.computed ≤ m
  pos : k.1.score ≠ none → 0 < k.2
  upper : k.1.score ≠ none → k.2 ≤ exp (k.1.computed - m)
    * (exp (p.unit * (m - k.1.computed)) / (1 - p.exponential) ^ (r + 1))
  lower : k.1.score ≠ none → exp (k.1.computed - m) ≤ k.2
    * (exp (p.unit * (m - k.1.computed)) / (1 - p.exponential) ^ (r + 1))

namespace Weighed

variable {p : Precision R} {m : R} {r : Nat} {k : ComputedKey R × R}

private theorem nonneg (h : Weighed p m r k) : 0 ≤ k.2 := by
  by_cases hk : k.1.score = none
  · rw [h.masked hk]
    exact Std.le_refl _
  · exact Std.le_of_lt (h.pos hk)

private theorem mono (hp : Precise p) {n : Nat} (h : Weighed p m r k) (hr : r ≤ n) :
    Weighed p m n k := by
  have hq := hp.exponential_lt
  have h₁ := hp.exponential
  have hE := exp_pos (R := R) (p.unit * (m - k.1.computed))
  have h₂ := OrderedField.div_le_div_left (Std.le_of_lt hE)
    (OrderedField.pow_pos (x := 1 - p.exponential) (by grind) _)
    (OrderedField.pow_le_pow_of_le_one (x := 1 - p.exponential) (by grind) (by grind)
      (Nat.succ_le_succ hr))
  refine ⟨h.masked, h.le, h.pos, fun hk => Std.le_trans (h.upper hk) ?_,
    fun hk => Std.le_trans (h.lower hk) ?_⟩
  · exact OrderedRing.mul_le_mul_of_nonneg_left h₂ (Std.le_of_lt (exp_pos _))
  · exact OrderedRing.mul_le_mul_of_nonneg_left h₂ (Std.le_of_lt (h.pos hk))

private theorem rescale (hp : Precise p) {m' x α : R} (h : Weighed p m r k) (hm : m ≤ m')
    (hx : Rounded p.unit (m - m') x) (hα : Rounded p.exponential (exp x) α) :
    Weighed p m' (r + 1) (k.1, α * k.2) := by
  have hq := hp.exponential_lt
  obtain ⟨h₁, h₂, h₃⟩ := rounded_exp hq hm hx hα
  have hP := OrderedField.pow_pos (x := 1 - p.exponential) (by grind) (r + 1)
  have e₁ : (exp (k.1.computed - m') : R) = exp (m - m') * exp (k.1.computed - m) :=
    (exp_sub_mul_sub _ _ _).symm
  have e₂ : (exp (p.unit * (m' - k.1.computed)) : R)
      = exp (p.unit * (m' - m)) * exp (p.unit * (m - k.1.computed)) := by
    rw [← exp_add]
    congr 1
    grind
  have hg := exp_pos (R := R) (m - m')
  have hg' := exp_pos (R := R) (k.1.computed - m)
  have e₃ : (exp (p.unit * (m' - k.1.computed)) / (1 - p.exponential) ^ (r + 1 + 1) : R)
      = exp (p.unit * (m' - m)) / (1 - p.exponential)
        * (exp (p.unit * (m - k.1.computed)) / (1 - p.exponential) ^ (r + 1)) := by
    rw [e₂, Semiring.pow_succ _ (r + 1)]
    generalize (1 - p.exponential) ^ (r + 1) = P at *
    grind
  refine ⟨fun hk => ?_, fun hk => Std.le_trans (h.le hk) hm,
    fun hk => OrderedRing.mul_pos h₁ (h.pos hk), fun hk => ?_, fun hk => ?_⟩
  · have := h.masked hk
    grind
  · have h₄ := OrderedField.mul_le_mul (Std.le_of_lt h₁) h₂ (Std.le_of_lt (h.pos hk)) (h.upper hk)
    rw [e₃, e₁]
    grind
  · have h₄ := OrderedField.mul_le_mul (Std.le_of_lt hg) h₃ (Std.le_of_lt hg') (h.lower hk)
    rw [e₃, e₁]
    grind

end Weighed

/-- `ws` are the weights of a part, as they were computed and as they were stored. -/
private structure Weights (p : Precision R) (m : R) (part : Part R)
    (ws : List (ComputedKey R × R × R)) : Prop where
  keys : ws.map (·.1) = part.keys
  weighed : ∀ k ∈ ws, Weighed p m part.rescalings (k.1, k.2.1)
  stored : ∀ k ∈ ws, Stored p.stored (p.storedTiny / (1 - p.exponential) ^ part.rescalings)
    k.2.1 k.2.2
  l : AtMost (((1 + p.unit) ^ (part.additions + part.rescalings) - 1)
    * sumOver (fun k => added p.denominator k.2.1 k.2.2) ws)
    (part.l - sumOver (fun k => added p.denominator k.2.1 k.2.2) ws)
  o : AtMost (((1 + p.accumulation) ^ (part.additions + part.rescalings + 1) - 1)
    * sumOver (fun k => k.2.2 * absolute k.1.value) ws)
    (part.o - sumOver (fun k => k.2.2 * k.1.value) ws)

omit [Exponential R R] in
/-- A stored weight is not negative. -/
theorem stored_nonneg {σ η w w' : R} (hw : 0 ≤ w) (h : Stored σ η w w') : 0 ≤ w' := by
  have := h.2.1
  rw [absolute_of_nonneg hw] at this
  grind

omit [Exponential R R] in
/-- A number that is not rounded is stored without an error. -/
theorem stored_refl {σ η : R} (hσ : 0 ≤ σ) (w : R) : Stored σ η w w := by
  have h := absolute_nonneg w
  rw [Stored, show w - w = 0 by grind]
  refine ⟨?_, .zero h⟩
  have := OrderedRing.mul_nonneg hσ h
  rw [OrderedField.max_def]
  split <;> exact .zero (by grind)

omit [Exponential R R] in
/-- The error of a weight below the normal numbers may be larger than it is. -/
theorem stored_mono {σ η η' w w' : R} (h : Stored σ η w w') (hη : η ≤ η') : Stored σ η' w w' := by
  refine ⟨h.1.mono ?_, h.2⟩
  rw [OrderedField.max_def, OrderedField.max_def]
  split <;> split <;> grind

omit [Exponential R R] in
/-- A stored weight that is multiplied by a number. -/
theorem stored_mul {σ η η' w w' α : R} (hα : 0 ≤ α) (hw : 0 ≤ w) (hη : α * η ≤ η')
    (h : Stored σ η w w') : Stored σ η' (α * w) (α * w') := by
  obtain ⟨h₁, h₂⟩ := h
  rw [Stored, absolute_of_nonneg (OrderedRing.mul_nonneg hα hw)]
  rw [absolute_of_nonneg hw] at h₁ h₂
  have e : α * (w' - w) = α * w' - α * w := by grind
  constructor
  · have h₃ := atMost_mul_left hα h₁
    rw [e] at h₃
    refine h₃.mono ?_
    rw [OrderedField.max_def, OrderedField.max_def]
    split <;> split <;> grind
  · have h₃ := atMost_mul_left hα h₂
    rwa [e] at h₃

omit [Exponential R R] in
/-- The denominator adds a number that is not negative for a weight. -/
theorem added_nonneg {d : Denominator} {σ η w w' : R} (hw : 0 ≤ w) (h : Stored σ η w w') :
    0 ≤ added d w w' := by
  cases d
  · exact hw
  · exact stored_nonneg hw h

private theorem added_sum_nonneg {p : Precision R} {m : R} {part : Part R}
    {ws : List (ComputedKey R × R × R)} (h : Weights p m part ws) :
    0 ≤ sumOver (fun k => added p.denominator k.2.1 k.2.2) ws :=
  sumOver_nonneg fun k hk => added_nonneg (h.weighed k hk).nonneg (h.stored k hk)

omit [Exponential R R] in
/-- A stored weight times a value. -/
theorem stored_atMost {w v : R} (hw : 0 ≤ w) : AtMost (w * absolute v) (w * v) :=
  AtMost.mul ⟨by grind, Std.le_refl _⟩ (atMost_absolute v)

private theorem weights_atMost {p : Precision R} {m : R} {part : Part R}
    {ws : List (ComputedKey R × R × R)} (h : Weights p m part ws) :
    AtMost (sumOver (fun k => k.2.2 * absolute k.1.value) ws)
      (sumOver (fun k => k.2.2 * k.1.value) ws) :=
  sumOver_atMost fun k hk => stored_atMost (stored_nonneg (h.weighed k hk).nonneg (h.stored k hk))

private theorem weights_masked {p : Precision R} (hp : Precise p) {m : R} {key : ComputedKey R}
    (hk : key.score = none) : Weights p m ⟨[key], 0, 0, 0, 0⟩ [(key, 0, 0)] where
  keys := rfl
  weighed k hk' := by
    rw [List.mem_singleton] at hk'
    subst hk'
    exact ⟨fun _ => rfl, fun h => absurd hk h, fun h => absurd hk h, fun h => absurd hk h,
      fun h => absurd hk h⟩
  stored k hk' := by
    rw [List.mem_singleton] at hk'
    subst hk'
    exact stored_refl hp.stored 0
  l := by
    have e : added p.denominator (0 : R) 0 = 0 := by cases p.denominator <;> rfl
    simp only [sumOver_cons, sumOver_nil, e]
    exact ⟨by grind, by grind⟩
  o := by
    simp only [sumOver_cons, sumOver_nil]
    exact ⟨by grind, by grind⟩

private theorem weights_key {p : Precision R} (hp : Precise p) {m x w w' o : R}
    {key : ComputedKey R} (hk : key.score ≠ none) (hm : key.computed ≤ m)
    (hx : Rounded p.unit (key.computed - m) x) (hw : Rounded p.exponential (exp x) w)
    (hw' : Stored p.stored p.storedTiny w w') (ho : Rounded p.accumulation (w' * key.value) o) :
    Weights p m ⟨[key], added p.denominator w w', o, 0, 0⟩ [(key, w, w')] := by
  obtain ⟨h₁, h₂, h₃⟩ := rounded_exp hp.exponential_lt hm hx hw
  have h₄ : Stored p.stored (p.storedTiny / (1 - p.exponential) ^ 0) w w' := by
    rw [Semiring.pow_zero, show p.storedTiny / 1 = p.storedTiny by grind]
    exact hw'
  refine ⟨rfl, fun k hk' => ?_, fun k hk' => ?_, ?_, ?_⟩
  · rw [List.mem_singleton] at hk'
    subst hk'
    refine ⟨fun h => absurd h hk, fun _ => hm, fun _ => h₁, fun _ => ?_, fun _ => ?_⟩
    · rwa [Semiring.pow_succ, Semiring.pow_zero, Semiring.one_mul]
    · rwa [Semiring.pow_succ, Semiring.pow_zero, Semiring.one_mul]
  · rw [List.mem_singleton] at hk'
    subst hk'
    exact h₄
  · simp only [sumOver_cons, sumOver_nil, Nat.add_zero, Semiring.pow_zero]
    exact ⟨by grind, by grind⟩
  · have h₅ := stored_atMost (v := key.value) (stored_nonneg (Std.le_of_lt h₁) h₄)
    have h₆ := rounded_error (c := 0) ho (e := w' * key.value) ⟨by grind, by grind⟩ h₅
    simp only [sumOver_cons, sumOver_nil, Nat.zero_add, Semiring.add_zero]
    rw [Semiring.pow_succ, Semiring.pow_zero, Semiring.one_mul]
    rwa [Semiring.add_zero, Semiring.one_mul] at h₆

omit [Exponential R R] in
private theorem added_mul (d : Denominator) (α w w' : R) :
    added d (α * w) (α * w') = α * added d w w' := by
  cases d <;> rfl

omit [Exponential R R] in
private theorem scaled_error {α c b x y : R} (hα : 0 ≤ α) (h : AtMost (c * b) (x - y)) :
    AtMost (c * (α * b)) (α * x - α * y) := by
  have h₁ := AtMost.mul (a := α) (x := α) ⟨by grind, Std.le_refl _⟩ h
  have e₁ : α * (c * b) = c * (α * b) := by grind
  have e₂ : α * (x - y) = α * x - α * y := by grind
  rwa [e₁, e₂] at h₁

/-- A rescaling is no larger than an exponential that is off makes it. -/
private theorem rescaling_le {p : Precision R} (hp : Precise p) (hu : p.unit ≤ 1) {m m' x α : R}
    (hm : m ≤ m') (hx : Rounded p.unit (m - m') x) (hα : Rounded p.exponential (exp x) α) :
    α * (1 - p.exponential) ≤ 1 := by
  have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
  have h := (rounded_exp hp.exponential_lt hm hx hα).2.1
  have e : (exp (m - m') : R) * (exp (p.unit * (m' - m)) / (1 - p.exponential))
      = exp (m - m' + p.unit * (m' - m)) / (1 - p.exponential) := by
    rw [exp_add, Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.mul_assoc]
  rw [e, OrderedField.le_div_iff hq] at h
  have i := OrderedRing.mul_nonneg (a := 1 - p.unit) (b := m' - m) (by grind) (by grind)
  have k : m - m' + p.unit * (m' - m) ≤ 0 := by grind
  have j : (exp (m - m' + p.unit * (m' - m)) : R) ≤ exp (0 : R) := exp_le k
  rw [exp_zero] at j
  grind

private theorem weights_rescale {p : Precision R} (hp : Precise p) (hu : p.unit ≤ 1)
    {m m' x α l o : R} {part : Part R} {ws : List (ComputedKey R × R × R)}
    (h : Weights p m part ws) (hm : m ≤ m')
    (hx : Rounded p.unit (m - m') x) (hα : Rounded p.exponential (exp x) α)
    (hl : Rounded p.unit (α * part.l) l) (ho : Rounded p.accumulation (α * part.o) o) :
    Weights p m' { part with l := l, o := o, rescalings := part.rescalings + 1 }
      (ws.map fun k => (k.1, α * k.2.1, α * k.2.2)) := by
  have h₀ := Std.le_of_lt (rounded_exp hp.exponential_lt hm hx hα).1
  have hα₀ : AtMost α α := ⟨by grind, Std.le_refl _⟩
  refine ⟨?_, fun k hk => ?_, fun k hk => ?_, ?_, ?_⟩
  · rw [List.map_map]
    exact h.keys
  · obtain ⟨k', hk', rfl⟩ := List.mem_map.mp hk
    exact (h.weighed k' hk').rescale hp hm hx hα
  · obtain ⟨k', hk', rfl⟩ := List.mem_map.mp hk
    refine stored_mul h₀ (h.weighed k' hk').nonneg ?_ (h.stored k' hk')
    have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
    have i₁ := OrderedField.pow_pos hq part.rescalings
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_left (rescaling_le hp hu hm hx hα) hp.storedTiny
    rw [OrderedField.le_div_iff (OrderedField.pow_pos hq _), Semiring.pow_succ]
    have e : (1 - p.exponential) ^ part.rescalings * (1 - p.exponential)
        * (α * (p.storedTiny / (1 - p.exponential) ^ part.rescalings))
        = p.storedTiny * (α * (1 - p.exponential)) := by
      generalize (1 - p.exponential) ^ part.rescalings = y at *
      generalize 1 - p.exponential = z at *
      clear i₂ hm hx hα hl ho h
      grind
    rw [e]
    grind
  · simp only [sumOver_map, added_mul, sumOver_mul_left]
    have h₁ := scaled_error h₀ h.l
    have h₂ := added_sum_nonneg h
    have h₃ := rounded_error hl h₁ (hα₀.mul ⟨by grind, Std.le_refl _⟩)
    have e₁ : (1 + ((1 + p.unit) ^ (part.additions + part.rescalings) - 1)) * (1 + p.unit) - 1
        = (1 + p.unit) ^ (part.additions + part.rescalings + 1) - 1 := by
      rw [Semiring.pow_succ]
      grind
    rwa [e₁] at h₃
  · simp only [sumOver_map, Semiring.mul_assoc, sumOver_mul_left]
    have h₁ := scaled_error h₀ h.o
    have h₃ := rounded_error ho h₁ (hα₀.mul (weights_atMost h))
    have e₁ : (1 + ((1 + p.accumulation) ^ (part.additions + part.rescalings + 1) - 1))
        * (1 + p.accumulation) - 1
        = (1 + p.accumulation) ^ (part.additions + (part.rescalings + 1) + 1) - 1 := by
      rw [← Nat.add_assoc, Semiring.pow_succ _ (part.additions + part.rescalings + 1)]
      grind
    rwa [e₁] at h₃

omit [OrderedField R] [Exponential R R] in
private theorem flatMap_keys {parts : List (Part R)}
    {f : Part R → List (ComputedKey R × R × R)}
    (h : ∀ part ∈ parts, (f part).map (·.1) = part.keys) :
    (parts.flatMap f).map (·.1) = parts.flatMap (·.keys) := by
  induction parts with
  | nil => rfl
  | cons part parts ih =>
    rw [List.flatMap_cons, List.flatMap_cons, List.map_append, h part (by simp),
      ih fun part hp => h part (by simp [hp])]

private theorem weights_join {p : Precision R} (hp : Precise p) {m l o : R}
    {parts : List (Part R)} {a k r : Nat} {f : Part R → List (ComputedKey R × R × R)}
    (h : ∀ part ∈ parts, Weights p m part (f part))
    (hr : ∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r)
    (hl : RoundedSum p.unit k (parts.map (·.l)) l)
    (ho : RoundedSum p.accumulation k (parts.map (·.o)) o) :
    Weights p m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩ (parts.flatMap f) := by
  refine ⟨flatMap_keys fun part hp => (h part hp).keys, fun w hw => ?_, fun w hw => ?_, ?_, ?_⟩
  · obtain ⟨part, hpart, hw⟩ := List.mem_flatMap.mp hw
    exact ((h part hpart).weighed w hw).mono hp (hr part hpart).2
  · obtain ⟨part, hpart, hw⟩ := List.mem_flatMap.mp hw
    refine stored_mono ((h part hpart).stored w hw) ?_
    have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
    exact OrderedField.div_le_div_left hp.storedTiny (OrderedField.pow_pos hq _)
      (OrderedField.pow_le_pow_of_le_one hq (by have := hp.exponential; grind) (hr part hpart).2)
  · have h₁ := roundedSum_map_error (c := (1 + p.unit) ^ (a + r) - 1)
      (e := fun part => sumOver (fun k => added p.denominator k.2.1 k.2.2) (f part))
      (b := fun part => sumOver (fun k => added p.denominator k.2.1 k.2.2) (f part)) hp.unit hl
      (fun part hpart => (h part hpart).l.mono ?_) (fun part hpart => ?_)
    · have e₁ : (1 + ((1 + p.unit) ^ (a + r) - 1)) * (1 + p.unit) ^ k - 1
          = (1 + p.unit) ^ (a + k + r) - 1 := by
        have e₂ : a + k + r = a + r + k := by omega
        rw [e₂, Semiring.pow_add _ (a + r)]
        grind
      rwa [e₁, ← sumOver_flatMap] at h₁
    · have h₁ := OrderedField.pow_le_pow (x := 1 + p.unit) (by have := hp.unit; grind)
        (Nat.add_le_add (hr part hpart).1 (hr part hpart).2)
      exact OrderedRing.mul_le_mul_of_nonneg_right (by grind) (added_sum_nonneg (h part hpart))
    · have h₁ := added_sum_nonneg (h part hpart)
      exact ⟨by grind, Std.le_refl _⟩
  · have h₁ := roundedSum_map_error
      (c := (1 + p.accumulation) ^ (a + r + 1) - 1)
      (e := fun part => sumOver (fun k => k.2.2 * k.1.value) (f part))
      (b := fun part => sumOver (fun k => k.2.2 * absolute k.1.value) (f part))
      hp.accumulation ho (fun part hpart => (h part hpart).o.mono ?_)
      (fun part hpart => weights_atMost (h part hpart))
    · have e₁ : (1 + ((1 + p.accumulation) ^ (a + r + 1) - 1)) * (1 + p.accumulation) ^ k - 1
          = (1 + p.accumulation) ^ (a + k + r + 1) - 1 := by
        have e₂ : a + k + r + 1 = a + r + 1 + k := by omega
        rw [e₂, Semiring.pow_add _ (a + r + 1)]
        grind
      rwa [e₁, ← sumOver_flatMap, ← sumOver_flatMap] at h₁
    · have h₁ := OrderedField.pow_le_pow (x := 1 + p.accumulation)
        (by have := hp.accumulation; grind)
        (Nat.succ_le_succ (Nat.add_le_add (hr part hpart).1 (hr part hpart).2))
      exact OrderedRing.mul_le_mul_of_nonneg_right (by grind)
        (weights_atMost (h part hpart)).nonneg

private theorem exists_weights {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) (hu : part.rescalings ≠ 0 → p.unit ≤ 1) :
    ∃ ws, Weights p m part ws := by
  induction run with
  | masked hk => exact ⟨_, weights_masked hp hk⟩
  | key hk hm hx hw hw' ho => exact ⟨_, weights_key hp hk hm hx hw hw' ho⟩
  | @join m l o parts a k r _ hr hl ho ih =>
    have : ∀ part, ∃ ws, part ∈ parts → Weights p m part ws := fun part => by
      by_cases h : part ∈ parts
      · obtain ⟨ws, hws⟩ := ih part h fun hn => hu (by
          have h₁ := (hr part h).2
          show r ≠ 0
          omega)
        exact ⟨ws, fun _ => hws⟩
      · exact ⟨[], fun h' => absurd h' h⟩
    obtain ⟨f, hf⟩ := Classical.skolem.mp this
    exact ⟨_, weights_join hp hf hr hl ho⟩
  | rescale _ hm hx hα hl ho ih =>
    obtain ⟨ws, h⟩ := ih fun _ => hu (Nat.succ_ne_zero _)
    exact ⟨_, weights_rescale hp (hu (Nat.succ_ne_zero _)) h hm hx hα hl ho⟩

/-- **Each part has weights**: one for each of its keys, 0 if the key is masked, and otherwise off
by one exponential, the rescalings and their arguments; and a stored weight, off by the error of
storing it, which rescalings enlarge by the errors of their exponentials at most. The denominator is
the sum of those that it adds, the numerator that of the stored ones times values, up to the
roundings of additions, products and rescalings. -/
theorem run_weights {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) (hu : part.rescalings ≠ 0 → p.unit ≤ 1) :
    ∃ ws : List (ComputedKey R × R × R),
      ws.map (·.1) = part.keys ∧
      (∀ k ∈ ws, k.1.score = none → k.2.1 = 0) ∧
      (∀ k ∈ ws, k.1.score ≠ none → k.1.computed ≤ m ∧ 0 < k.2.1 ∧
        k.2.1 ≤ exp (k.1.computed - m) * (exp (p.unit * (m - k.1.computed))
          / (1 - p.exponential) ^ (part.rescalings + 1)) ∧
        exp (k.1.computed - m) ≤ k.2.1 * (exp (p.unit * (m - k.1.computed))
          / (1 - p.exponential) ^ (part.rescalings + 1))) ∧
      (∀ k ∈ ws, Stored p.stored (p.storedTiny / (1 - p.exponential) ^ part.rescalings)
        k.2.1 k.2.2) ∧
      AtMost (((1 + p.unit) ^ (part.additions + part.rescalings) - 1)
          * sumOver (fun k => added p.denominator k.2.1 k.2.2) ws)
        (part.l - sumOver (fun k => added p.denominator k.2.1 k.2.2) ws) ∧
      AtMost (((1 + p.accumulation) ^ (part.additions + part.rescalings + 1) - 1)
          * sumOver (fun k => k.2.2 * absolute k.1.value) ws)
        (part.o - sumOver (fun k => k.2.2 * k.1.value) ws) := by
  obtain ⟨ws, h⟩ := exists_weights hp run hu
  exact ⟨ws, h.keys, fun k hk => (h.weighed k hk).masked,
    fun k hk hs => ⟨(h.weighed k hk).le hs, (h.weighed k hk).pos hs, (h.weighed k hk).upper hs,
      (h.weighed k hk).lower hs⟩, h.stored, h.l, h.o⟩

/-! ## Runs that the relation admits -/

/-- The weight of one key in a function that does not round. -/
private def exactWeight (m : R) (key : ComputedKey R) : R :=
  match key.score with
  | none => 0
  | some _ => exp (key.computed - m)

omit [Exponential R R] in
/-- To round nothing is a precision. -/
theorem precise_zero (d : Denominator) : Precise (⟨0, 0, 0, 0, 0, d⟩ : Precision R) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _,
    Std.le_refl _⟩

private theorem weighed_zero {d : Denominator} {m : R} {r : Nat} {k : ComputedKey R × R}
    (h : Weighed ⟨0, 0, 0, 0, 0, d⟩ m r k) : k.2 = exactWeight m k.1 := by
  unfold exactWeight
  split
  next hk => exact h.masked hk
  next s hk =>
    have hs : k.1.score ≠ none := by simp [hk]
    have h₁ := h.upper hs
    have h₂ := h.lower hs
    have e₁ : (exp (0 * (m - k.1.computed)) : R) / (1 - 0) ^ (r + 1) = 1 := by
      have e₂ : (1 : R) - 0 = 1 := by grind
      rw [Semiring.zero_mul, exp_zero, e₂, Semiring.one_pow]
      grind
    simp only [e₁, Semiring.mul_one] at h₁ h₂
    exact Std.le_antisymm h₁ h₂

/-- Where nothing is rounded, denominator and numerator are exactly those of the computed scores,
whatever the parts and their order: the relation admits no algorithm that computes another thing. -/
theorem run_exact {d : Denominator} {m : R} {part : Part R} (run : Run ⟨0, 0, 0, 0, 0, d⟩ m part) :
    part.l = sumOver (fun key => match key.score with
        | none => 0
        | some _ => exp (key.computed - m)) part.keys ∧
      part.o = sumOver (fun key => (match key.score with
        | none => 0
        | some _ => exp (key.computed - m) : R) * key.value) part.keys := by
  obtain ⟨ws, hw⟩ := exists_weights (precise_zero d) run fun _ =>
    Std.le_of_lt OrderedRing.zero_lt_one
  have h₀ : ∀ k ∈ ws, k.2.1 = exactWeight m k.1 := fun k hk => weighed_zero (hw.weighed k hk)
  have h₀' : ∀ k ∈ ws, k.2.2 = exactWeight m k.1 := fun k hk => by
    have h := (hw.stored k hk).1
    have e₁ : (1 : R) - 0 = 1 := by grind
    have e₂ : (0 : R) / 1 = 0 := by grind
    simp only [Semiring.zero_mul, e₁, e₂, Semiring.one_pow] at h
    rw [OrderedField.max_def, ite_self] at h
    obtain ⟨h₁, h₂⟩ := h
    rw [← h₀ k hk]
    grind
  have h₀'' : ∀ k ∈ ws, added d k.2.1 k.2.2 = exactWeight m k.1 := fun k hk => by
    cases d
    · exact h₀ k hk
    · exact h₀' k hk
  obtain ⟨h₁, h₂⟩ := hw.l
  obtain ⟨h₃, h₄⟩ := hw.o
  have e₁ : (1 : R) + 0 = 1 := Semiring.add_zero 1
  simp only [e₁, Semiring.one_pow] at h₁ h₂ h₃ h₄
  rw [sumOver_congr h₀''] at h₁ h₂
  have e₂ : sumOver (fun k => k.2.2 * k.1.value) ws
      = sumOver (fun k => exactWeight m k.1 * k.1.value) ws :=
    sumOver_congr fun k hk => by rw [h₀' k hk]
  rw [e₂] at h₃ h₄
  rw [← hw.keys, sumOver_map, sumOver_map]
  exact ⟨Std.le_antisymm (b := sumOver (fun k => exactWeight m k.1) ws) (by grind) (by grind),
    Std.le_antisymm (b := sumOver (fun k => exactWeight m k.1 * k.1.value) ws) (by grind)
      (by grind)⟩

end Attention.Proof
