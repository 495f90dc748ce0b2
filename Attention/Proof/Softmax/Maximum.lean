module

public import Attention.Spec.Maximum

public section

/-! # Maxima of scores, and weights against them -/

namespace Attention.Proof

open Spec Exponential

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-! ## Maxima of scores -/

section Max

omit [OrderedField R] [Exponential S R]

/-- `a ≤ b` where `none` stands for −∞. -/
@[expose] def ScoreLE : Option S → Option S → Prop
  | none, _ => True
  | some _, none => False
  | some a, some b => a ≤ b

@[simp] theorem maxScore_none_left (a : Option S) : maxScore none a = a := rfl

@[simp] theorem maxScore_none_right (a : Option S) : maxScore a none = a := by cases a <;> rfl

/-- The maximum does not depend on grouping. -/
theorem maxScore_assoc (a b c : Option S) :
    maxScore (maxScore a b) c = maxScore a (maxScore b c) := by
  cases a <;> cases b <;> cases c <;> simp only [maxScore, Option.some.injEq]
  grind

/-- The maximum does not depend on order. -/
theorem maxScore_comm (a b : Option S) : maxScore a b = maxScore b a := by
  cases a <;> cases b <;> simp only [maxScore, Option.some.injEq]
  grind

theorem ScoreLE.refl (a : Option S) : ScoreLE a a := by
  cases a with
  | none => trivial
  | some a => exact Std.le_refl a

theorem ScoreLE.trans {a b c : Option S} (hab : ScoreLE a b) (hbc : ScoreLE b c) :
    ScoreLE a c := by
  cases a <;> cases b <;> cases c <;> simp_all only [ScoreLE]
  exact Std.le_trans hab hbc

theorem le_maxScore_left (a b : Option S) : ScoreLE a (maxScore a b) := by
  cases a <;> cases b <;> simp only [maxScore, ScoreLE] <;> grind

theorem le_maxScore_right (a b : Option S) : ScoreLE b (maxScore a b) :=
  maxScore_comm b a ▸ le_maxScore_left b a

/-- The maximum of a concatenation is the larger of the two maxima. -/
theorem rowMax_append (xs ys : List (Option S)) :
    rowMax (xs ++ ys) = maxScore (rowMax xs) (rowMax ys) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp only [List.cons_append, rowMax, ih, maxScore_assoc]

/-- No score exceeds the maximum. -/
theorem le_rowMax {row : List (Option S)} {s : Option S} (h : s ∈ row) :
    ScoreLE s (rowMax row) := by
  induction row with
  | nil => cases h
  | cons x row ih =>
    rcases List.mem_cons.mp h with rfl | h
    · exact le_maxScore_left _ _
    · exact (ih h).trans (le_maxScore_right _ _)

/-- The maximum is one of the scores. -/
theorem rowMax_mem {row : List (Option S)} {m : S} (h : rowMax row = some m) : some m ∈ row := by
  induction row with
  | nil => cases h
  | cons x row ih =>
    simp only [rowMax] at h
    cases x with
    | none => exact List.mem_cons_of_mem _ (ih h)
    | some x =>
      cases hr : rowMax row with
      | none => simp_all
      | some y =>
        simp only [hr, maxScore, Option.some.injEq] at h
        split at h
        · exact List.mem_cons_of_mem _ (ih (by rw [hr, h]))
        · simp [h]

/-- There is no maximum exactly when every key is masked. -/
theorem rowMax_eq_none {row : List (Option S)} : rowMax row = none ↔ ∀ s ∈ row, s = none := by
  constructor
  · intro h s hs
    have := le_rowMax hs
    rw [h] at this
    cases s <;> simp_all [ScoreLE]
  · intro h
    cases hm : rowMax row with
    | none => rfl
    | some m => have := h _ (rowMax_mem hm); contradiction

end Max

/-! ## Weights against a reference point -/

/-- Weights against a reference point are non-negative. -/
theorem rescale_nonneg (s m : Option S) : (0 : R) ≤ rescale s m := by
  cases s <;> cases m <;> simp only [rescale] <;> first
    | exact Std.le_refl _
    | (rename_i s m; have := exp_pos (R := R) (s - m); grind)

@[simp] theorem rescale_none_left (m : Option S) : (rescale none m : R) = 0 := rfl

@[simp] theorem rescale_none_right (s : Option S) : (rescale s none : R) = 0 := by cases s <;> rfl

@[simp] theorem rescale_self (m : S) : (rescale (some m) (some m) : R) = 1 := by
  have h : m - m = 0 := by grind
  simp only [rescale, h, exp_zero]

/-- A weight moves to a later reference point by one factor. -/
theorem rescale_mul_rescale {s m m' : Option S} (h : ScoreLE s m) :
    (rescale m m' : R) * rescale s m = rescale s m' := by
  cases s with
  | none => simp only [rescale_none_left]; grind
  | some s =>
    cases m with
    | none => cases h
    | some m =>
      cases m' with
      | none => simp only [rescale_none_right]; grind
      | some m' => exact exp_sub_mul_sub s m m'

/-- No weight against the maximum exceeds 1. -/
theorem rescale_le_one {s : Option S} {m : S} (h : ScoreLE s (some m)) :
    (rescale s (some m) : R) ≤ 1 := by
  rw [← rescale_self m]
  cases s with
  | none => rw [rescale_self]; have := exp_pos (R := R) (0 : S); rw [exp_zero] at this; simp; grind
  | some s => exact exp_le (by simp only [ScoreLE] at h; grind)

end Attention.Proof
