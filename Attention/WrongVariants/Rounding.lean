module

public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of attention functions that round

Rules that are wrong in exact arithmetic already: where nothing is rounded the tolerance is 0, and
the result is another. Over every ordered field, for every exponential. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

private theorem one_lt_exp : 1 < (exp (1 : R) : R) := by
  have h := exp_lt (R := R) (0 : R) 1 OrderedRing.zero_lt_one
  rwa [exp_zero] at h

private theorem exp_zero_sub_one_lt : (exp (0 - 1 : R) : R) < 1 := by
  have h := exp_lt (R := R) (0 - 1 : R) 0 (by
    have := OrderedRing.zero_lt_one (R := R)
    grind)
  rwa [exp_zero] at h

/-- A run over the keys (s, x) and (t, y) that rounds nothing, and does not come to their
attention. -/
private theorem refute {run : Precision R → R → Part R → Prop} {s t x y l o : R} {a r : Nat}
    (h : run (unitOnly 0) t ⟨[exactKey s x, exactKey t y], l, o, a, r⟩)
    (wrong : o / l ≠ (exp s * x + exp t * y) / (exp s + exp t)) : ¬ StaysAllowed run :=
  fun claim => wrong <| (claim.exact h (row := [⟨some s, #v[x]⟩, ⟨some t, #v[y]⟩]) rfl
    ⟨exactKey t y, by simp, by simp [exactKey], rfl⟩ (fun key hk => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hk
      rcases hk with rfl | rfl <;> exact ⟨rfl, fun _ h => Option.some.inj h⟩)).trans
    (attend_pair s t x y)

/-- The denominator is not rescaled when the reference point rises. -/
@[expose] def denominatorNotRescaled : RunRules R :=
  { rightRules with
    rescale p part m m' l o := l = part.l ∧ ∃ l', rightRules.rescale p part m m' l' o }

theorem denominatorNotRescaled_refuted :
    ¬ StaysAllowed (R := R) (RunBy denominatorNotRescaled) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := run_own (rules := denominatorNotRescaled) rfl (Std.le_refl (0 : R)) 0 1
  have h₂ := RunBy.rescale (m' := (1 : R)) (l := 1) (o := exp (0 - 1 : R) * 1) h₁
    ⟨rfl, _, Std.le_of_lt h₀, _, _, rounded_refl (Std.le_refl _) _,
      rounded_refl (Std.le_refl _) _, rounded_refl (Std.le_refl _) _,
      rounded_refl (Std.le_refl _) _⟩
  have h₃ := run_own (rules := denominatorNotRescaled) rfl (Std.le_refl (0 : R)) 1 1
  refine refute (join_pair h₂ h₃ (adds_pair (Std.le_refl _) _ _)) ?_
  have h₄ := exp_zero_sub_one_lt (R := R)
  have h₅ := one_lt_exp (R := R)
  simp only [singlePart, exp_zero]
  grind

/-- The reference point rises and nothing is rescaled. -/
@[expose] def nothingRescaled : RunRules R :=
  { rightRules with rescale _ part m m' l o := m ≤ m' ∧ l = part.l ∧ o = part.o }

theorem nothingRescaled_refuted : ¬ StaysAllowed (R := R) (RunBy nothingRescaled) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := run_own (rules := nothingRescaled) rfl (Std.le_refl (0 : R)) 0 1
  have h₂ := RunBy.rescale (m' := (1 : R)) h₁ ⟨Std.le_of_lt h₀, rfl, rfl⟩
  have h₃ := run_own (rules := nothingRescaled) rfl (Std.le_refl (0 : R)) 1 0
  refine refute (join_pair h₂ h₃ (adds_pair (Std.le_refl _) _ _)) ?_
  have h₅ := one_lt_exp (R := R)
  simp only [singlePart, exp_zero]
  grind

/-- The numerator of the first part is added twice. -/
@[expose] def firstAddedTwice : RunRules R :=
  { rightRules with
    join p parts k l o := RoundedSum p.unit k (parts.map (·.l)) l ∧
      RoundedSum p.accumulation k ((parts ++ parts.take 1).map (·.o)) o }

theorem firstAddedTwice_refuted : ¬ StaysAllowed (R := R) (RunBy firstAddedTwice) := by
  have h₁ := run_own (rules := firstAddedTwice) rfl (Std.le_refl (0 : R)) 0 1
  have h₂ := run_own (rules := firstAddedTwice) rfl (Std.le_refl (0 : R)) 0 0
  refine refute (join_pair h₁ h₂ (k := 2) (l := 1 + 1) (o := 1 + 0 + 1)
    ⟨.add (xs := [1]) (ys := [1]) .one .one (rounded_refl (Std.le_refl _) _)
        (rounded_refl (Std.le_refl _) _),
      .add (xs := [1, 0]) (ys := [1]) (roundedSum_pair (Std.le_refl _) _ _) .one
        (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _)⟩) ?_
  have := OrderedRing.zero_lt_one (R := R)
  simp only [exp_zero]
  grind

/-- The first part is left out of the sums. -/
@[expose] def firstDropped : RunRules R :=
  { rightRules with join p parts := adds p parts.tail }

theorem firstDropped_refuted : ¬ StaysAllowed (R := R) (RunBy firstDropped) := by
  have h₁ := run_own (rules := firstDropped) rfl (Std.le_refl (0 : R)) 0 1
  have h₂ := run_own (rules := firstDropped) rfl (Std.le_refl (0 : R)) 0 0
  refine refute (join_pair h₁ h₂ (k := 0) (l := 1) (o := 0) ⟨.one, .one⟩) ?_
  have := OrderedRing.zero_lt_one (R := R)
  simp only [exp_zero]
  grind

/-- Each key has its weight against its own score, whatever the reference point is. -/
@[expose] def ownReference : RunRules R :=
  { rightRules with key p key m l o := key.computed ≤ m ∧ weighs p key key.computed l o }

theorem ownReference_refuted : ¬ StaysAllowed (R := R) (RunBy ownReference) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ : RunBy ownReference (unitOnly (0 : R)) 1 (singlePart 0 1 1 1) :=
    .key ⟨Std.le_of_lt h₀, (key_own (Std.le_refl 0) 0 1).2⟩
  have h₂ : RunBy ownReference (unitOnly (0 : R)) 1 (singlePart 1 0 1 0) :=
    .key ⟨Std.le_refl _, (key_own (Std.le_refl 0) 1 0).2⟩
  refine refute (join_pair h₁ h₂ (adds_pair (Std.le_refl _) _ _)) ?_
  have h₅ := one_lt_exp (R := R)
  simp only [singlePart, exp_zero]
  grind

/-- A masked key counts like any other. -/
@[expose] def maskedCounted : RunRules R :=
  { rightRules with key p key m l o := key.computed ≤ m ∧ weighs p key m l o }

theorem maskedCounted_refuted : ¬ StaysAllowed (R := R) (RunBy maskedCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ : RunBy maskedCounted (unitOnly (0 : R)) 0 ⟨[⟨⟨none, 0, 1⟩, 0⟩], 1, 1, 0, 0⟩ :=
    .key ⟨Std.le_refl _, (key_own (Std.le_refl 0) 0 1).2⟩
  have h₂ : RunBy maskedCounted (unitOnly (0 : R)) 0 (singlePart 0 0 1 0) :=
    .key (key_own (Std.le_refl 0) 0 0)
  have h₃ := claim.exact (join_pair h₁ h₂ (adds_pair (Std.le_refl _) _ _))
    (row := [⟨none, #v[1]⟩, ⟨some 0, #v[0]⟩]) rfl
    ⟨exactKey 0 0, by simp [singlePart], by simp [exactKey], rfl⟩ (fun key hk => by
      simp only [singlePart, List.cons_append, List.nil_append, List.mem_cons, List.not_mem_nil,
        or_false] at hk
      rcases hk with rfl | rfl
      · exact ⟨rfl, fun _ h => nomatch h⟩
      · exact ⟨rfl, fun _ h => Option.some.inj h⟩)
  rw [Proof.getElem_attend] at h₃
  simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
    sumOver_nil, exp_zero, singlePart] at h₃
  have h₄ : ((1 : R) + 0) / (1 + 1) = (0 * 1 + (1 * 0 + 0)) / (0 + (1 + 0)) := h₃
  clear h₁ h₂ h₃ claim
  grind

end Attention.WrongVariants
