module

public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of weights that underflow where they are stored

Functions that lose more of a weight than their precision says, and one that is right but for its
reference point, which no weight of 1 has. Over every ordered field, for every exponential.
Source: docs/tolerances.md, section 3. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- Weights of any size are flushed to 0, and nobody says so. -/
@[expose] def flushesUnsaid (p : Precision R) : R → Part R → Prop := Run { p with storedTiny := 1 }

/-- Weights a hundred times as large as the precision says are flushed to 0. -/
@[expose] def flushesHundredfold (p : Precision R) : R → Part R → Prop :=
  Run { p with storedTiny := 100 * p.storedTiny }

/-- A weight below the normal numbers may be off by more than it is: it is raised to the smallest of
these. -/
@[expose] def raised : RunRules R :=
  { rightRules with
    key p key m l o := key.score ≠ none ∧ key.computed ≤ m ∧ ∃ x w w',
      Rounded p.unit (key.computed - m) x ∧ Rounded p.exponential (exp x) w ∧
      AtMost (max (p.stored * absolute w) p.storedTiny) (w' - w) ∧
      Rounded p.accumulation (w' * key.value) o ∧ l = added p.denominator w w' }

/-- A reference point that no score exceeds. -/
@[expose] def isAbove (m : R) (keys : List (ComputedKey R)) : Prop :=
  ∃ key ∈ keys, key.score ≠ none ∧ key.computed ≤ m

/-! ## What counterexamples are made of -/

/-- The precision of a function that flushes weights, and rounds nothing. -/
@[expose] def tinyOnly (η : R) : Precision R := ⟨0, 0, 0, 0, η, .unrounded⟩

omit [Exponential R R] in
theorem tinyOnly_precise {η : R} (h : 0 ≤ η) : Precise (tinyOnly η) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _, h⟩

/-- The weight of a key whose score is 1 below the largest. -/
theorem small_weight : 0 < (exp (0 - 1 : R) : R) ∧ (exp (0 - 1 : R) : R) < 1 := by
  refine ⟨exp_pos _, ?_⟩
  have h := exp_lt (R := R) (0 - 1 : R) 0 (by
    have := OrderedRing.zero_lt_one (R := R)
    grind)
  rwa [exp_zero] at h

omit [Exponential R R] in
private theorem least_le (x y : R) : smaller x y ≤ x ∧ smaller x y ≤ y := by
  rw [smaller]
  split
  · exact ⟨Std.le_refl _, by assumption⟩
  · exact ⟨by grind, Std.le_refl _⟩

omit [Exponential R R] in
private theorem flushed {w : R} (h : 0 ≤ w) : Stored 0 w w 0 := by
  rw [Stored, Proof.absolute_of_nonneg h]
  have e : max (0 * w) w = w := by
    rw [OrderedField.max_def]
    split <;> grind
  rw [e]
  exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩

/-- The keys (0, 0) and (−1, 1), of which the second has the stored weight `w'`. -/
private theorem run_two {η w' : R} (h : Stored 0 η (exp (0 - 1 : R)) w') :
    Run (tinyOnly η) 0 ⟨[exactKey 0 0, exactKey (0 - 1) 1], 1 + exp (0 - 1 : R), 0 + w', 1, 0⟩ := by
  have e₁ : ∀ x : R, x - 0 = x := fun x => by grind
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have a : Run (tinyOnly η) 0 (singlePart 0 0 1 0) :=
    .key (x := 0 - 0) (w := 1) (w' := 1) (by simp [exactKey]) (Std.le_refl _)
      (rounded_refl (Std.le_refl _) _)
      (by rw [exp_sub_self]; exact rounded_refl (Std.le_refl _) _)
      (Proof.stored_refl (Std.le_refl _) _)
      (by rw [Semiring.one_mul]; exact rounded_refl (Std.le_refl _) _)
  have b : Run (tinyOnly η) 0 (singlePart (0 - 1) 1 (exp (0 - 1 : R)) w') :=
    .key (x := 0 - 1 - 0) (w := exp (0 - 1 : R)) (w' := w') (by simp [exactKey])
      (by show (0 : R) - 1 ≤ 0; grind) (rounded_refl (Std.le_refl _) _)
      (by rw [e₁]; exact rounded_refl (Std.le_refl _) _) h
      (by
        show Rounded 0 (w' * 1) w'
        rw [Semiring.mul_one]
        exact rounded_refl (Std.le_refl _) _)
  exact .join (p := tinyOnly η) (m := 0) (a := 0) (k := 1) (r := 0)
    (parts := [singlePart 0 0 1 0, singlePart (0 - 1) 1 (exp (0 - 1 : R)) w'])
    (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl
      · exact a
      · exact b)
    (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl <;> exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
    (roundedSum_pair (Std.le_refl _) _ _) (roundedSum_pair (Std.le_refl _) _ _)

theorem boundedWeights_two (η : R) :
    boundedWeights (tinyOnly η) 0 [(⟨some 0, 0, 0⟩ : BoundedKey R), ⟨some (0 - 1), 0, 1⟩]
      = [⟨1, 1, 0⟩, ⟨exp (0 - 1 : R), 1, 1⟩] := by
  have h₁ : rowMax [some (0 : R), some (0 - 1)] = some 0 := by
    have := OrderedRing.zero_lt_one (R := R)
    have : ¬ (0 : R) ≤ 0 - 1 := by grind
    simp [rowMax, maxScore, this]
  have e₁ : ∀ s Δ : R, (0 : R) + 0 * (0 - s + 0 + Δ) = 0 := fun s Δ => by grind
  have e₂ : (1 : R) / 1 = 1 := by grind
  have e₃ : (1 : R) - 0 = 1 := by grind
  have e₄ : (0 : R) - 1 - 0 = 0 - 1 := by grind
  simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, h₁, tinyOnly, e₁, e₃, e₄,
    exp_sub_self, exp_zero, Proof.power_eq, Semiring.one_pow, e₂]

/-- The tolerance of them: η and w as shares of the sum of the weights. -/
theorem two_keys_allowed {η : R} (hη : 0 ≤ η) :
    tolerance (tinyOnly η) 1 0 0
        [(⟨some 0, 0, 0⟩ : BoundedKey R), ⟨some (0 - 1), 0, 1⟩] ≤ η / (1 + exp (0 - 1 : R)) ∧
      tolerance (tinyOnly η) 1 0 0 [(⟨some 0, 0, 0⟩ : BoundedKey R), ⟨some (0 - 1), 0, 1⟩]
        ≤ exp (0 - 1 : R) / (1 + exp (0 - 1 : R)) := by
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [tolerance, toleranceTerms, boundedWeights_two]
  generalize (exp (0 - 1 : R) : R) = w at *
  have e₀ : absolute (0 : R) = 0 := Proof.absolute_of_nonneg (Std.le_refl _)
  have e₂ : ∀ a b : R, 1 * (1 - 1) * a + w * (1 - 1) * b = 0 := fun a b => by grind
  have e₃ : ∀ a : R, 0 / a = 0 := fun a => by rw [Field.div_eq_mul_inv, Semiring.zero_mul]
  have e₄ : max (max (0 : R) 1) w = 1 := by
    have : max (0 : R) 1 = 1 := by
      rw [OrderedField.max_def]
      split <;> grind
    rw [this, OrderedField.max_def]
    split <;> grind
  have e₅ : (1 : R) / 1 + w / 1 = 1 + w := by grind
  have e₇ : ∀ a : R, 0 + a = a := fun a => by grind
  have e₆ : η * (1 / (1 + w)) = η / (1 + w) := by
    rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]
  have h₁ : η * smaller (1 / power (1 - 0) (0 + 1)) (1 / (1 + w)) ≤ η / (1 + w) := by
    rw [← e₆]
    exact OrderedRing.mul_le_mul_of_nonneg_left (least_le _ _).2 hη
  have h₂ : ∀ a : R, max (0 : R) a ≤ a ∨ a ≤ 0 := fun a => by
    rw [OrderedField.max_def]
    split
    · exact .inl (Std.le_refl _)
    · exact .inr (by grind)
  have h₃ := OrderedField.div_nonneg hη (b := 1 + w) (by grind)
  have sum_le : ∀ {x y c : R}, x ≤ 0 → y ≤ c → x + y ≤ c := fun _ _ => by grind
  simp only [tinyOnly, lowTotal, mostShare, tinyShare, storingError, gamma_zero, Semiring.zero_mul,
    sumOver_cons, sumOver_nil, List.foldl_cons, List.foldl_nil, e₂, e₃, e₄, e₅, e₇, absolute_one,
    e₀, Semiring.mul_zero, Semiring.mul_one, Semiring.add_zero]
  generalize η * smaller (1 / power (1 - 0) (0 + 1)) (1 / (1 + w)) = t at *
  constructor
  · refine sum_le (least_le _ _).1 (Std.le_trans (least_le _ _).1
      (Std.le_trans (least_le _ _).1 ?_))
    rw [OrderedField.max_def]
    split
    · have := (least_le (smaller (w / (1 + w)) 1) t).2
      grind
    · have := (least_le (smaller (w / (1 + w)) 1) 0).2
      grind
  · refine sum_le (least_le _ _).1 (Std.le_trans (least_le _ _).1
      (Std.le_trans (least_le _ _).1 ?_))
    have h₄ := (least_le (smaller (w / (1 + w)) 1) (max 0 t)).1
    have h₅ := (least_le (w / (1 + w)) (1 : R)).1
    grind

theorem attend_two : (attend [(⟨some 0, #v[0]⟩ : ScoredValue R R 1),
    ⟨some (0 - 1), #v[1]⟩])[0] = exp (0 - 1 : R) / (1 + exp (0 - 1 : R)) := by
  rw [attend_pair, exp_zero]
  generalize (exp (0 - 1 : R) : R) = w
  grind

/-- The claim for these keys. -/
private theorem two_keys {run : Precision R → R → Part R → Prop} (claim : StaysAllowed run)
    {η w' : R} (hη : 0 ≤ η) (h : run (tinyOnly η) 0
      ⟨[exactKey 0 0, exactKey (0 - 1) 1], 1 + exp (0 - 1 : R), 0 + w', 1, 0⟩) :
    AtMost (tolerance (tinyOnly η) 1 0 0
        [(⟨some 0, 0, 0⟩ : BoundedKey R), ⟨some (0 - 1), 0, 1⟩])
      ((w' - exp (0 - 1 : R)) / (1 + exp (0 - 1 : R))) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := claim _ (tinyOnly_precise hη) 0 _ h [⟨some 0, #v[0]⟩, ⟨some (0 - 1), #v[1]⟩] rfl
    ⟨exactKey 0 0, by simp, by simp [exactKey], rfl⟩ 0 (fun key hk s hs => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hk
      rcases hk with rfl | rfl <;>
      · obtain rfl := Option.some.inj hs
        exact exactKey_close ..)
    1 0 (Nat.le_refl _) (Nat.le_refl _) nofun
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀) _
    (roundedTimes_refl (Std.le_refl _) 5 _) 0
  rw [attend_two] at h₁
  have e : ∀ w : R, (0 + w') / (1 + w) - w / (1 + w) = (w' - w) / (1 + w) := fun w => by
    rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Field.div_eq_mul_inv]
    grind
  rwa [e] at h₁

omit [Exponential R R] in
/-- Quotients by the same positive number are compared as their numerators. -/
private theorem le_of_div {a b c : R} (hc : 0 < c) (h : a / c ≤ b / c) : a ≤ b := by
  have := OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt hc)
  rwa [OrderedField.mul_div_cancel (by grind), OrderedField.mul_div_cancel (by grind)] at this

/-! ## More than is said -/

theorem flushesUnsaid_refuted : ¬ StaysAllowed (R := R) flushesUnsaid := fun claim => by
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  have run : flushesUnsaid (tinyOnly (0 : R)) 0
      ⟨[exactKey 0 0, exactKey (0 - 1) 1], 1 + exp (0 - 1 : R), 0 + 0, 1, 0⟩ :=
    run_two (Proof.stored_mono (flushed (Std.le_of_lt hw)) (Std.le_of_lt hw₁))
  have h := (two_keys claim (Std.le_refl 0) run).mono (two_keys_allowed (Std.le_refl 0)).1
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := h.1
  clear claim h run
  generalize (exp (0 - 1 : R) : R) = w at *
  have e : -((0 : R) / (1 + w)) = 0 / (1 + w) := by
    rw [Field.div_eq_mul_inv, Semiring.zero_mul]
    grind
  rw [e] at h₁
  have := le_of_div (c := 1 + w) (by grind) h₁
  grind

theorem flushesHundredfold_refuted : ¬ StaysAllowed (R := R) flushesHundredfold := fun claim => by
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hη : 0 ≤ (exp (0 - 1 : R) : R) / 100 := by
    generalize (exp (0 - 1 : R) : R) = w at *
    clear claim
    grind
  have e : 100 * ((exp (0 - 1 : R) : R) / 100) = exp (0 - 1 : R) := by
    generalize (exp (0 - 1 : R) : R) = w at *
    clear claim
    grind
  have run : flushesHundredfold (tinyOnly ((exp (0 - 1 : R) : R) / 100)) 0
      ⟨[exactKey 0 0, exactKey (0 - 1) 1], 1 + exp (0 - 1 : R), 0 + 0, 1, 0⟩ := by
    show Run (tinyOnly (100 * ((exp (0 - 1 : R) : R) / 100))) 0 _
    rw [e]
    exact run_two (flushed (Std.le_of_lt hw))
  have h := (two_keys claim hη run).mono (two_keys_allowed hη).1
  have h₁ := h.1
  clear claim h run
  generalize (exp (0 - 1 : R) : R) = w at *
  have e₁ : -(w / 100 / (1 + w)) = -(w / 100) / (1 + w) := by
    rw [Field.div_eq_mul_inv (w / 100), Field.div_eq_mul_inv (-(w / 100))]
    grind
  rw [e₁] at h₁
  have := le_of_div (c := 1 + w) (by grind) h₁
  grind

theorem raised_refuted : ¬ StaysAllowed (R := R) (RunBy raised) := fun claim => by
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₁ : ∀ x : R, x - 0 = x := fun x => by grind
  have e₂ : max (0 * absolute (exp (0 - 1 : R)) : R) 1 = 1 := by
    rw [Semiring.zero_mul, OrderedField.max_def]
    split <;> grind
  have a : RunBy raised (tinyOnly (1 : R)) 0 (singlePart 0 0 1 0) :=
    .key ⟨by simp [exactKey], Std.le_refl _, 0 - 0, 1, 1, rounded_refl (Std.le_refl _) _,
      by rw [exp_sub_self]; exact rounded_refl (Std.le_refl _) _,
      (Proof.stored_refl (Std.le_refl _) _).1,
      by rw [Semiring.one_mul]; exact rounded_refl (Std.le_refl _) _, rfl⟩
  have b : RunBy raised (tinyOnly (1 : R)) 0
      (singlePart (0 - 1) 1 (exp (0 - 1 : R)) (1 + exp (0 - 1 : R))) :=
    .key ⟨by simp [exactKey], by show (0 : R) - 1 ≤ 0; clear claim; grind, 0 - 1 - 0,
      exp (0 - 1 : R), 1 + exp (0 - 1 : R), rounded_refl (Std.le_refl _) _,
      by rw [e₁]; exact rounded_refl (Std.le_refl _) _, by
        show AtMost (max (0 * absolute (exp (0 - 1 : R))) 1) _
        rw [e₂]
        clear claim
        exact ⟨by grind, by grind⟩, by
        show Rounded 0 ((1 + exp (0 - 1 : R)) * 1) (1 + exp (0 - 1 : R))
        rw [Semiring.mul_one]
        exact rounded_refl (Std.le_refl _) _, rfl⟩
  have run := join_pair a b (k := 1) ⟨roundedSum_pair (Std.le_refl _) _ _,
    roundedSum_pair (Std.le_refl _) _ _⟩
  have h := (two_keys claim (w' := 1 + exp (0 - 1 : R)) (Std.le_of_lt h₀) run).mono
    (two_keys_allowed (Std.le_of_lt h₀)).2
  have h₁ := h.2
  clear claim h run a b
  generalize (exp (0 - 1 : R) : R) = w at *
  have := le_of_div (c := 1 + w) (by grind) h₁
  grind

/-! ## A reference point above all scores -/

private theorem one_key_allowed {η : R} (hη : 0 ≤ η) :
    tolerance (tinyOnly η) 0 0 0 [(⟨some 0, 0, 1⟩ : BoundedKey R)] ≤ η := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hw : boundedWeights (tinyOnly η) 0 [(⟨some 0, 0, 1⟩ : BoundedKey R)] = [⟨1, 1, 1⟩] := by
    have e₁ : (0 : R) + 0 * (0 - 0 + 0 + max 0 0) = 0 := by grind
    have e₂ : (1 : R) / 1 = 1 := by grind
    have e₃ : (1 : R) - 0 = 1 := by grind
    simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, rowMax, maxScore,
      largestError, List.foldl_cons, List.foldl_nil, tinyOnly, e₁, e₃, exp_sub_self, exp_zero,
      Proof.power_eq, Semiring.one_pow, e₂]
  have e₂ : ∀ a : R, 1 * (1 - 1) * a = 0 := fun a => by grind
  have e₃ : ∀ a : R, 0 / a = 0 := fun a => by rw [Field.div_eq_mul_inv, Semiring.zero_mul]
  have e₄ : max (0 : R) 1 = 1 := by
    rw [OrderedField.max_def]
    split <;> grind
  have e₆ : (1 : R) / 1 = 1 := by grind
  have h₁ : η * smaller (1 / power (1 - 0) (0 + 1)) 1 ≤ η := by
    have := OrderedRing.mul_le_mul_of_nonneg_left
      (least_le (1 / power (1 - 0) (0 + 1)) (1 : R)).2 hη
    rwa [Semiring.mul_one] at this
  have sum_le : ∀ {x y c : R}, x ≤ 0 → y ≤ c → x + y ≤ c := fun _ _ => by grind
  rw [tolerance, toleranceTerms, hw]
  simp only [tinyOnly, lowTotal, mostShare, tinyShare, storingError, gamma_zero, Semiring.zero_mul,
    sumOver_cons, sumOver_nil, List.foldl_cons, List.foldl_nil, e₂, e₃, e₄, e₆, absolute_one,
    Semiring.mul_one, Semiring.add_zero]
  generalize η * smaller (1 / power (1 - 0) (0 + 1)) 1 = t at *
  refine sum_le (least_le _ _).1 (Std.le_trans (least_le _ _).1
    (Std.le_trans (least_le _ _).1 ?_))
  refine Std.le_trans (least_le _ _).2 ?_
  clear hw e₂ e₃ sum_le
  rw [OrderedField.max_def]
  split <;> grind

/-- Where nothing underflows any reference point will do; where weights do, one that all scores are
below flushes all of them. -/
theorem isAbove_refuted : ¬ StaysAllowed (R := R) (RunBy rightRules) isAbove := fun claim => by
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have run : RunBy rightRules (tinyOnly (exp (0 - 1 : R) : R)) 1
      (singlePart 0 1 (exp (0 - 1 : R)) 0) :=
    .key ⟨Std.le_of_lt h₀, 0 - 1, exp (0 - 1 : R), 0, rounded_refl (Std.le_refl _) _,
      rounded_refl (Std.le_refl _) _, flushed (Std.le_of_lt hw), by
        show Rounded 0 (0 * 1) 0
        rw [Semiring.zero_mul]
        exact rounded_refl (Std.le_refl _) _, rfl⟩
  have h := (claim _ (tinyOnly_precise (Std.le_of_lt hw)) 1 _ run [⟨some 0, #v[1]⟩] rfl
    ⟨exactKey 0 1, by simp [singlePart], by simp [exactKey], Std.le_of_lt h₀⟩ 0
    (fun key hk s hs => by
      obtain rfl := List.mem_singleton.mp hk
      obtain rfl : 0 = s := Option.some.inj hs
      exact exactKey_close ..)
    0 0 (Nat.le_refl _) (Nat.le_refl _) nofun
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀) _
    (roundedTimes_refl (Std.le_refl _) 5 _) 0).mono (one_key_allowed (Std.le_of_lt hw))
  have e₁ : (attend [(⟨some 0, #v[1]⟩ : ScoredValue R R 1)])[0] = 1 := by
    rw [Proof.getElem_attend]
    simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
      sumOver_nil, exp_zero]
    show (1 * 1 + 0) / (1 + 0) = (1 : R)
    clear claim h
    grind
  rw [e₁] at h
  have h₁ : -(exp (0 - 1 : R) : R) ≤ 0 / exp (0 - 1 : R) - 1 := h.1
  clear claim h run
  generalize (exp (0 - 1 : R) : R) = w at *
  grind

end Attention.WrongVariants
