module

public import Attention.Proof.Softmax.LogSumExp
public import Attention.WrongVariants.Online

public section

/-! # Wrong variants of the log-sum-exp -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-! ## Read from the state of online softmax -/

/-- The claim of `online_hasLogSumExp`, made of any reading of the state. -/
abbrev ReadsLogSumExp (reads : State Int Rat 1 → Option Int → Prop) : Prop :=
  ∀ (blocks : List (List (ScoredValue Int Rat 1))) (L : Option Int),
    reads (online blocks) L ↔ IsLogSumExp Rat L (blocks.flatten.map (·.score))

/-- Positive control: m + ln l is right. -/
theorem hasLogSumExp_reads : ReadsLogSumExp State.HasLogSumExp :=
  fun blocks _ => Proof.online_hasLogSumExp blocks

/-- Something read that is not the log-sum-exp refutes the claim. -/
theorem ReadsLogSumExp.refute {reads} (blocks : List (List (ScoredValue Int Rat 1)))
    (L : Option Int) (hr : reads (online blocks) L)
    (h : ¬ IsLogSumExp Rat L (blocks.flatten.map (·.score))) : ¬ ReadsLogSumExp reads :=
  fun claim => h ((claim blocks L).mp hr)

/-- The maximum for the log-sum-exp; `l` is left out. -/
@[expose] def readsMax (s : State Int Rat 1) (L : Option Int) : Prop := L = s.m

/-- Two keys with score 0: the log-sum-exp in base 2 is 1. -/
@[expose] def twoKeys : List (List (ScoredValue Int Rat 1)) :=
  [[⟨some 0, #v[1]⟩, ⟨some 0, #v[0]⟩]]

theorem readsMax_refuted : ¬ ReadsLogSumExp readsMax :=
  ReadsLogSumExp.refute twoKeys (some 0) (by unfold readsMax; decide +kernel) (by decide +kernel)

/-- ln l for the log-sum-exp; the maximum is not added back. -/
@[expose] def readsL (s : State Int Rat 1) : Option Int → Prop
  | none => s.m = none
  | some L => (exp L : Rat) = s.l

/-- One key with score 1. -/
@[expose] def oneKey : List (List (ScoredValue Int Rat 1)) := [[⟨some 1, #v[1]⟩]]

theorem readsL_refuted : ¬ ReadsLogSumExp readsL :=
  ReadsLogSumExp.refute oneKey (some 0) (by unfold readsL; decide +kernel) (by decide +kernel)

/-- m − ln l: the sign of the logarithm is wrong. -/
@[expose] def readsMinus (s : State Int Rat 1) : Option Int → Prop
  | none => s.m = none
  | some L => ∃ m, s.m = some m ∧ (exp (m - L) : Rat) = s.l

theorem readsMinus_refuted : ¬ ReadsLogSumExp readsMinus :=
  ReadsLogSumExp.refute twoKeys (some (-1))
    ⟨0, by decide +kernel, by decide +kernel⟩ (by decide +kernel)

/-- A number where there is nothing to take the logarithm of. -/
@[expose] def readsFinite (floor : Int) (s : State Int Rat 1) (L : Option Int) : Prop :=
  match s.m with
  | none => L = some floor
  | some _ => s.HasLogSumExp L

/-- Whatever the number. -/
theorem readsFinite_refuted (floor : Int) : ¬ ReadsLogSumExp (readsFinite floor) :=
  ReadsLogSumExp.refute [] (some floor) rfl (Exponential.exp_ne_zero floor)

/-! ## Shifts, and splits -/

/-- The log-sum-exp does not stay when the scores are shifted. -/
theorem lse_shift_refuted : ¬ ∀ (c : Int) (L : Option Int) (row : List (Option Int)),
    IsLogSumExp Rat L row → IsLogSumExp Rat L (row.map (Option.map (· + c))) :=
  fun h => absurd (h 1 (some 0) [some 0] (by decide +kernel)) (by decide +kernel)

/-- The maximum moves with the scores, is −∞ only where all are masked, and comes from the maxima
of splits, as the log-sum-exp does; but it is not the log-sum-exp. -/
theorem rowMax_refuted : ¬ ∀ row : List (Option Int), IsLogSumExp Rat (rowMax row) row :=
  fun h => absurd (h [some 0, some 0]) (by decide +kernel)

/-- The largest log-sum-exp of two splits is not that of both. -/
theorem lse_of_max_refuted : ¬ ∀ (a b : Option Int) (as bs : List (Option Int)),
    IsLogSumExp Rat a as → IsLogSumExp Rat b bs → IsLogSumExp Rat (maxScore a b) (as ++ bs) :=
  fun h => absurd (h (some 0) (some 0) [some 0] [some 0] (by decide +kernel) (by decide +kernel))
    (by decide +kernel)

/-- The softmax is not exp (s − m) with m the maximum. -/
theorem softmax_from_max_refuted : ¬ ∀ row : List (Option Int),
    softmax (R := Rat) row = row.map fun s => rescale s (rowMax row) :=
  fun h => absurd (h [some 0, some 0]) (by decide +kernel)

/-! ## That there is one -/

/-- Over the real numbers each row has a log-sum-exp; over the exact model three equal scores have
none, since no power of 2 is 3. -/
theorem exists_lse_refuted : ¬ ∀ row : List (Option Int), ∃ L, IsLogSumExp Rat L row := fun h => by
  have e : (denominator [some 0, some 0, some (0 : Int)] : Rat) = 3 := by decide +kernel
  obtain ⟨L, hL⟩ := h [some 0, some 0, some 0]
  clear h
  rw [IsLogSumExp, e] at hL
  cases L with
  | none => exact absurd hL (by decide +kernel)
  | some L =>
    replace hL : (exp L : Rat) = 3 := hL
    have h₁ : (exp (1 : Int) : Rat) = 2 := by decide +kernel
    have h₂ : (exp (2 : Int) : Rat) = 4 := by decide +kernel
    by_cases h : L ≤ 1
    · have := Exponential.exp_le (R := Rat) h
      grind
    · have := Exponential.exp_le (R := Rat) (show 2 ≤ L by omega)
      grind

/-! ## Bases -/

/-- Powers of 4, beside the powers of 2 of the exact model: 4 ^ x = 2 ^ (2 · x). -/
@[expose, reducible] def base4 : Exp Int Rat := ⟨fun x => 2 ^ (2 * x)⟩

/-- The claim of `isLogSumExp_base` for base 4, made of any conversion of the log-sum-exp. -/
abbrev ConvertsLogSumExp (convert : Int → Int) : Prop :=
  ∀ (L : Option Int) (row : List (Option Int)), IsLogSumExp Rat (base := base4) L row →
    IsLogSumExp Rat (base := Model.exactExp) (L.map convert) (row.map (Option.map (2 * ·)))

/-- Positive control: the factor is that of the exponents. -/
theorem convert_double : ConvertsLogSumExp (2 * ·) := fun L row =>
  (Proof.isLogSumExp_base base4 Model.exactExp (fun _ => rfl) L row).mp

/-- Taken over as it is. -/
theorem convert_id_refuted : ¬ ConvertsLogSumExp id :=
  fun h => absurd (h (some 1) [some 1]
    (by decide +kernel)) (by decide +kernel)

/-- Divided where it should be multiplied. -/
theorem convert_half_refuted : ¬ ConvertsLogSumExp (· / 2) :=
  fun h => absurd (h (some 1) [some 1]
    (by decide +kernel)) (by decide +kernel)

/-- Base e where ln 2 and log₂ e are to be numbers that can be computed with: x ↦ x. It is no
exponential; but the conversion of bases asks for no law. -/
@[expose, reducible] def line : Exp Rat Rat := ⟨fun x => x⟩

/-- Base 2 to that: 2 ^ x = exp (ln 2 · x), with ln 2 = 2. -/
@[expose, reducible] def line2 : Exp Rat Rat := ⟨fun x => 2 * x⟩

/-- The claim of `isLogSumExp_log2e` where it can be computed, made of any conversion of the scores
on the way in and of the log-sum-exp on the way out. -/
abbrev ComputesInBase2 (scores lse : Rat → Rat) : Prop :=
  ∀ (L : Option Rat) (row : List (Option Rat)),
    IsLogSumExp Rat (base := line2) L (row.map (Option.map scores))
      ↔ IsLogSumExp Rat (base := line) (L.map lse) row

/-- Positive control: scores times log₂ e = 1/2, log-sum-exp times ln 2 = 2. -/
theorem log2e_ln2 : ComputesInBase2 (1 / 2 * ·) (2 * ·) :=
  Proof.isLogSumExp_log2e line2 line (by decide +kernel) fun _ => rfl

/-- The log-sum-exp is handed out in base 2. -/
theorem log2e_only_refuted : ¬ ComputesInBase2 (1 / 2 * ·) id :=
  fun h => absurd ((h (some (1 / 2)) [some 1]).mp (by decide +kernel)) (by decide +kernel)

/-- The scores are not converted. -/
theorem ln2_only_refuted : ¬ ComputesInBase2 id (2 * ·) :=
  fun h => absurd ((h (some 1) [some 1]).mp (by decide +kernel)) (by decide +kernel)

/-- Attention in base 4 is not that of base 2 over the same scores. -/
theorem attend_otherBase_refuted : ¬ ∀ row : List (ScoredValue Int Rat 1),
    @attend Int Rat 1 _ _ _ _ base4 row = @attend Int Rat 1 _ _ _ _ Model.exactExp row :=
  fun h => absurd (congrArg Vector.toList (h [⟨some 0, #v[0]⟩, ⟨some 1, #v[1]⟩]))
    (by decide +kernel)

end Attention.WrongVariants
