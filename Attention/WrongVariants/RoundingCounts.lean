module

public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants that only rounding shows

Rules that are right in exact arithmetic, and roundings that they do not count. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

private theorem boundedWeights_level (u x y : R) (r : Nat) :
    boundedWeights (unitOnly u) r [⟨some 0, 0, x⟩, ⟨some 0, 0, y⟩] = [⟨1, 1, x⟩, ⟨1, 1, y⟩] := by
  have h₁ : rowMax [some (0 : R), some 0] = some 0 := by
    simp only [rowMax, maxScore]
    split <;> rfl
  have h₂ : largestError [(⟨some 0, 0, x⟩ : BoundedKey R), ⟨some 0, 0, y⟩] = 0 := by
    simp only [largestError, List.foldl_cons, List.foldl_nil, OrderedField.max_def]
    split <;> rfl
  have e₁ : (0 : R) - 0 = 0 := by grind
  have e₂ : (0 : R) + u * (0 - 0 + 0 + 0) = 0 := by grind
  have e₃ : (1 : R) - 0 = 1 := by grind
  have e₄ : (1 : R) / 1 = 1 := by grind
  simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, h₁, h₂, unitOnly, e₂, e₃,
    exp_zero, Proof.power_eq, Semiring.one_pow, e₄, exp_sub_self]

/-- Of two keys with the same score what is allowed is the denominator's roundings. -/
private theorem tolerance_level {u : R} {k r : Nat} (h₀ : 0 ≤ gamma k u) (h₁ : gamma k u < 1)
    (x y : R) : tolerance (unitOnly u) k r 0 [⟨some 0, 0, x⟩, ⟨some 0, 0, y⟩]
      ≤ gamma k u * absolute ((x + y) / 2) / (1 - gamma k u) := by
  have e₁ : (1 * x + 1 * y) / (1 + 1) = (x + y) / (2 : R) := by grind
  have e₂ : ∀ a b : R, 1 * (1 - 1) * a + 1 * (1 - 1) * b = 0 := fun a b => by grind
  have e₃ : ∀ a : R, 0 / a = 0 := fun a => by rw [Field.div_eq_mul_inv, Semiring.zero_mul]
  have e₄ : ∀ a : R, 0 + a = a := fun a => by grind
  have h₂ : ∀ f : R, smaller 0 f ≤ 0 := fun f => by
    rw [smaller]
    split
    · exact Std.le_refl _
    · grind
  have h₄ : ∀ s a : R, smaller s 0 * absolute a ≤ 0 := fun s a => by
    have h₅ : smaller s 0 ≤ 0 := by
      rw [smaller]
      split
      · assumption
      · exact Std.le_refl _
    have := OrderedRing.mul_nonneg (a := -smaller s 0) (b := absolute a) (by grind)
      (Proof.absolute_nonneg a)
    grind
  have h₅ : ∀ a b c : R, b ≤ 0 → smaller (smaller a b) c ≤ 0 := fun a b c hb => by
    rw [smaller, smaller]
    split <;> split <;> grind
  rw [tolerance, toleranceTerms]
  simp only [boundedWeights_level, exactOutput]
  simp only [unitOnly, lowTotal, mostShare, tinyShare, gamma_zero, Semiring.zero_mul, sumOver_cons,
    sumOver_nil, Semiring.add_zero, e₁, e₂, e₃, e₄]
  have h₆ := h₄ (smaller ((1 : R) / (1 + 1)) 1)
  generalize hT : smaller (smaller _ _) (_ : R) = T
  have hT₀ : T ≤ 0 := hT ▸ h₅ _ _ _ (by
    have := h₆ x
    have := h₆ y
    grind)
  generalize hS : smaller (0 : R) _ = S
  have hS₀ : S ≤ 0 := hS ▸ h₂ _
  generalize absolute ((x + y) / 2 : R) = A
  generalize gamma k u = g at *
  have h₃ : g * (A + S + T) / (1 - g) ≤ g * A / (1 - g) := by
    rw [OrderedField.div_le_iff (by grind), OrderedField.mul_div_cancel (by grind)]
    exact OrderedRing.mul_le_mul_of_nonneg_left (by grind) h₀
  grind

/-- A run over two keys of score 0 that leaves this tolerance. -/
private theorem refute_level {run : Precision R → R → Part R → Prop}
    {reference : R → List (ComputedKey R) → Prop} {u m x y l o : R} {a r : Nat} (hu : 0 ≤ u)
    (h : run (unitOnly u) m ⟨[exactKey 0 x, exactKey 0 y], l, o, a, r⟩)
    (hm : reference m [exactKey 0 x, exactKey 0 y]) (hD : 2 * numeral (a + r) * u < 1)
    (h₀ : 0 ≤ gamma (a + r) u) (h₁ : gamma (a + r) u < 1)
    (wrong : ¬ AtMost (gamma (a + r) u * absolute ((x + y) / 2) / (1 - gamma (a + r) u))
      (o / l - (x + y) / 2)) : ¬ StaysAllowed run reference := fun claim => by
  have h₂ := claim _ (unitOnly_precise hu) m _ h [⟨some 0, #v[x]⟩, ⟨some 0, #v[y]⟩] rfl hm 0
    (fun key hk s hs => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hk
      rcases hk with rfl | rfl <;>
      · obtain rfl : 0 = s := Option.some.inj hs
        exact exactKey_close ..)
    (a + r) r (Nat.le_refl _) (Nat.le_refl _) nofun
    (by simp only [unitOnly, Semiring.mul_zero]; exact OrderedRing.zero_lt_one) hD (o / l)
    (roundedTimes_refl (Std.le_refl _) 5 _) 0
  rw [attend_pair, exp_zero] at h₂
  have e : (1 * x + 1 * y) / (1 + 1) = (x + y) / (2 : R) := by grind
  rw [e] at h₂
  exact wrong (h₂.mono (tolerance_level h₀ h₁ x y))

omit [Exponential R R] in
private theorem rounded_up {u : R} (hu : 0 ≤ u) (x : R) : Rounded u x (x * (1 + u)) :=
  ⟨u, ⟨by grind, Std.le_refl _⟩, rfl⟩

omit [Exponential R R] in
private theorem rounded_down {u : R} (hu : 0 ≤ u) (x : R) : Rounded u x (x * (1 - u)) :=
  ⟨-u, ⟨Std.le_refl _, by grind⟩, by grind⟩

omit [Exponential R R] in
private theorem adds_pair_up {u : R} (hu : 0 ≤ u) (a b : Part R) :
    adds (unitOnly u) [a, b] 1 ((a.l + b.l) * (1 + u)) (a.o + b.o) :=
  ⟨Semiring.right_distrib a.l b.l (1 + u) ▸
    .add (xs := [a.l]) (ys := [b.l]) .one .one (rounded_up hu _) (rounded_up hu _),
    roundedSum_pair (Std.le_refl _) _ _⟩

omit [Exponential R R] in
private theorem gamma_one {u : R} : gamma 1 u = u / (1 - u) := by
  rw [gamma, Proof.numeral_succ, Proof.numeral_eq]
  grind

omit [Exponential R R] in
private theorem hundredth : (0 : R) ≤ 1 / 100 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

/-- Additions are not counted. -/
@[expose] def additionsNotCounted : RunRules R := { rightRules with additions a _ := a }

theorem additionsNotCounted_refuted : ¬ StaysAllowed (R := R) (RunBy additionsNotCounted) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu : (0 : R) ≤ 1 / 4 := by grind
  have h₁ := run_own (rules := additionsNotCounted) rfl hu 0 1
  have e : gamma 0 (1 / 4 : R) = 0 := by
    rw [gamma, Proof.numeral_eq]
    grind
  refine refute_level hu (join_pair h₁ h₁ (adds_pair_up hu _ _))
    ⟨exactKey 0 1, by simp, by simp [exactKey], rfl⟩ ?_ ?_ ?_ fun h => ?_
  · simp only [additionsNotCounted, singlePart, Nat.max_self, Proof.numeral_eq]
    grind
  · exact e ▸ Std.le_refl _
  · exact e ▸ h₀
  · have h₂ : AtMost (gamma 0 (1 / 4) * absolute ((1 + 1) / 2) / (1 - gamma 0 (1 / 4)))
      (((1 : R) + 1) / ((1 + 1) * (1 + 1 / 4)) - (1 + 1) / 2) := h
    obtain ⟨h₃, _⟩ := h₂
    rw [e] at h₃
    grind

/-- Rescalings are not counted. -/
@[expose] def rescalingsNotCounted : RunRules R := { rightRules with rescalings r := r }

private theorem multiplies_level {u : R} (hu : 0 ≤ u) (m : R) (part : Part R) :
    multiplies (unitOnly u) part m m (part.l * (1 + u)) part.o := by
  have h := rounded_up hu (1 * part.l)
  rw [Semiring.one_mul] at h
  exact ⟨m - m, 1, rounded_refl hu _, exp_sub_self m ▸ rounded_refl (Std.le_refl _) _,
    by rwa [Semiring.one_mul],
    by rw [Semiring.one_mul]; exact rounded_refl (Std.le_refl _) _⟩

theorem rescalingsNotCounted_refuted : ¬ StaysAllowed (R := R) (RunBy rescalingsNotCounted) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu := hundredth (R := R)
  have h₁ := run_own (rules := rescalingsNotCounted) rfl hu 0 1
  have h₂ := RunBy.rescale h₁ ⟨Std.le_refl _, multiplies_level hu 0 _⟩
  have h₃ := RunBy.rescale h₂ ⟨Std.le_refl _, multiplies_level hu 0 _⟩
  have e : gamma 1 (1 / 100 : R) = 1 / 99 := by
    rw [gamma_one]
    grind
  refine refute_level hu (join_pair h₃ h₁ (adds_pair_up hu _ _))
    ⟨exactKey 0 1, by simp, by simp [exactKey], rfl⟩ ?_ ?_ ?_ fun h => ?_
  · have h₄ : 2 * numeral (R := R) 1 * (1 / 100) < 1 := by
      rw [Proof.numeral_succ, Proof.numeral_eq]
      grind
    exact h₄
  · have h₄ : (0 : R) ≤ gamma 1 (1 / 100) := by rw [e]; grind
    exact h₄
  · have h₄ : gamma 1 (1 / 100 : R) < 1 := by rw [e]; grind
    exact h₄
  · have h₅ : AtMost (gamma 1 (1 / 100) * absolute ((1 + 1) / 2) / (1 - gamma 1 (1 / 100)))
      (((1 : R) + 1) / ((1 * (1 + 1 / 100) * (1 + 1 / 100) + 1) * (1 + 1 / 100)) - (1 + 1) / 2) := h
    obtain ⟨h₆, _⟩ := h₅
    have e₁ : absolute ((1 + 1) / 2 : R) = 1 := by
      have e₂ : ((1 + 1) / 2 : R) = 1 := by grind
      rw [e₂, absolute_one]
    rw [e, e₁] at h₆
    clear h h₁ h₂ h₃
    grind

/-! ## The reference point

That it never falls, and is the score of some key at the end, is what bounds the roundings of the
differences. Here one needs that the exponential grows fast enough. -/

section

variable {R : Type u} [OrderedField R] [NaturalExp R]

private theorem natural_sum {a b c : R} (h : a = b + c) : (exp a : R) = exp b * exp c := by
  rw [h, exp_add]

omit [NaturalExp R] in
private theorem absolute_half : absolute (((1 : R) + 0) / 2) = 1 / 2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [absolute, OrderedField.max_def]
  split <;> grind

/-- The reference point may fall. -/
@[expose] def referenceFalls : RunRules R := { rightRules with rescale := multiplies }

omit [NaturalExp R] in
private theorem gamma_three : gamma 3 (1 / 100 : R) = 3 / 97 := by
  have e : (numeral 3 : R) = 3 := by
    rw [Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_eq]
    grind
  rw [gamma, e]
  grind

private theorem multiplies_to {u m m' x : R} (hu : 0 ≤ u) (h : Rounded u (m - m') x)
    (part : Part R) : multiplies (unitOnly u) part m m' (exp x * part.l) (exp x * part.o) :=
  ⟨x, exp x, h, rounded_refl (Std.le_refl _) _, rounded_refl hu _, rounded_refl (Std.le_refl _) _⟩

theorem referenceFalls_refuted : ¬ StaysAllowed (R := R) (RunBy referenceFalls) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu := hundredth (R := R)
  have h₁ := run_own (rules := referenceFalls) rfl hu 0 1
  have h₂ := RunBy.rescale h₁ (multiplies_to (m' := 1000) hu (rounded_down hu _) _)
  have h₃ := RunBy.rescale h₂ (multiplies_to (m' := 0) hu (rounded_up hu _) _)
  have h₄ := run_own (rules := referenceFalls) rfl hu 0 0
  refine refute_level hu (join_pair h₃ h₄ (adds_pair hu _ _))
    ⟨exactKey 0 1, by simp, by simp [exactKey], rfl⟩ ?_ ?_ ?_ fun h => ?_
  · have h₅ : 2 * numeral (R := R) 3 * (1 / 100) < 1 := by
      have e : (numeral 3 : R) = 3 := by
        rw [Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_eq]
        grind
      rw [e]
      grind
    exact h₅
  · have h₅ : (0 : R) ≤ gamma 3 (1 / 100) := by rw [gamma_three]; grind
    exact h₅
  · have h₅ : gamma 3 (1 / 100 : R) < 1 := by rw [gamma_three]; grind
    exact h₅
  · have h₅ : AtMost (gamma 3 (1 / 100 : R) * absolute ((1 + 0) / 2)
          / (1 - gamma 3 (1 / 100)))
      ((exp ((1000 - 0) * (1 + 1 / 100) : R) * (exp ((0 - 1000) * (1 - 1 / 100) : R) * 1) + 0)
        / (exp ((1000 - 0) * (1 + 1 / 100) : R) * (exp ((0 - 1000) * (1 - 1 / 100) : R) * 1) + 1)
        - (1 + 0) / 2) := h
    obtain ⟨_, h₆⟩ := h₅
    have h₇ := NaturalExp.one_add_le_exp (20 : R)
    have e : (exp (20 : R) : R) = exp ((1000 - 0) * (1 + 1 / 100) : R)
        * exp ((0 - 1000) * (1 - 1 / 100) : R) := natural_sum (by grind)
    rw [gamma_three, absolute_half, Semiring.mul_one, ← e] at h₆
    clear h h₁ h₂ h₃ h₄ e
    generalize (exp (20 : R) : R) = E at *
    have h₈ : 20 / 21 ≤ (E + 0) / (E + 1) := by
      rw [OrderedField.le_div_iff (by grind)]
      grind
    grind

/-- The claim with a reference point that no score exceeds, and none need reach. -/
theorem referenceNotReached_refuted : ¬ StaysAllowed (R := R) (RunBy rightRules)
    (fun m keys => ∃ key ∈ keys, key.score ≠ none ∧ key.computed ≤ m) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu := hundredth (R := R)
  have h₁ := run_own (rules := rightRules) rfl hu 0 1
  have h₂ := RunBy.rescale h₁
    ⟨by grind, multiplies_to (m' := 1000) hu (rounded_down hu _) _⟩
  have h₃ := run_own (rules := rightRules) rfl hu 0 0
  have h₄ := RunBy.rescale h₃
    ⟨by grind, multiplies_to (m' := 1000) hu (rounded_up hu _) _⟩
  have e₂ : gamma 2 (1 / 100 : R) = 2 / 98 := by
    rw [gamma, Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_eq]
    grind
  refine refute_level hu (join_pair h₂ h₄ (adds_pair hu _ _))
    ⟨exactKey 0 1, by simp, by simp [exactKey], by simp only [exactKey]; grind⟩ ?_ ?_ ?_
    fun h => ?_
  · have h₅ : 2 * numeral (R := R) 2 * (1 / 100) < 1 := by
      rw [Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_eq]
      grind
    exact h₅
  · have h₅ : (0 : R) ≤ gamma 2 (1 / 100) := by rw [e₂]; grind
    exact h₅
  · have h₅ : gamma 2 (1 / 100 : R) < 1 := by rw [e₂]; grind
    exact h₅
  · have h₅ : AtMost (gamma 2 (1 / 100 : R) * absolute ((1 + 0) / 2)
          / (1 - gamma 2 (1 / 100)))
      ((exp ((0 - 1000) * (1 - 1 / 100) : R) * 1 + exp ((0 - 1000) * (1 + 1 / 100) : R) * 0)
        / (exp ((0 - 1000) * (1 - 1 / 100) : R) * 1 + exp ((0 - 1000) * (1 + 1 / 100) : R) * 1)
        - (1 + 0) / 2) := h
    obtain ⟨_, h₆⟩ := h₅
    have h₇ := NaturalExp.one_add_le_exp (20 : R)
    have e : (exp ((0 - 1000) * (1 - 1 / 100) : R) : R) = exp ((0 - 1000) * (1 + 1 / 100) : R)
        * exp (20 : R) := natural_sum (by grind)
    have h₈ := exp_pos (R := R) ((0 - 1000) * (1 + 1 / 100) : R)
    rw [e₂, absolute_half, e] at h₆
    clear h h₁ h₂ h₃ h₄ e
    generalize (exp (20 : R) : R) = E at *
    generalize (exp ((0 - 1000) * (1 + 1 / 100) : R) : R) = a at *
    have h₉ : 20 / 21 ≤ (a * E * 1 + a * 0) / (a * E * 1 + a * 1) := by
      have h₁₀ := OrderedRing.mul_le_mul_of_nonneg_left h₇ (Std.le_of_lt h₈)
      rw [OrderedField.le_div_iff (by grind)]
      grind
    grind

end

end Attention.WrongVariants
