module

public import Attention.Model.Exact
public import Attention.Proof.Scores.ScoreMods
public import Attention.Proof.Scores.Sink

public section

/-! # Wrong variants of biases and of the sink -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- Linear biases with the wrong sign: what is far away weighs more. -/
@[expose] def alibiPositive {q_len kv_len : Nat} (slope : Int) : ScoreMod Int q_len kv_len :=
  fun i j s => some (s + slope * ((i.val : Int) - j.val).natAbs)

/-- Linear biases without the absolute value: right in the past, wrong in the future. -/
@[expose] def alibiSigned {q_len kv_len : Nat} (slope : Int) : ScoreMod Int q_len kv_len :=
  fun i j s => some (s - slope * ((i.val : Int) - j.val))

/-- The claim of `weight_alibi` for one query and one key, made of any biases. -/
abbrev IsAlibi (alibi : Int → ScoreMod Int 2 2) : Prop :=
  ∀ (slope : Int) (Q K : Matrix Int 2 1) (i k : Fin 2) (n : Nat),
    ((i.val : Int) = k.val + n ∨ (k.val : Int) = i.val + n) →
    (weight (score 1 (alibi slope) Q K i k) : Rat)
      = weight (score 1 Mask.full.toScoreMod Q K i k) * exp (-slope) ^ n

/-- Positive control: the Spec's linear biases satisfy the claim. -/
theorem alibi_isAlibi : IsAlibi (ScoreMod.alibi .topLeft) := fun slope Q K i k n hn =>
  Proof.weight_alibi 1 Mask.full.toScoreMod Q K .topLeft slope i k (by simpa using hn)

theorem alibiPositive_refuted : ¬ IsAlibi alibiPositive := fun h =>
  absurd (h 1 #v[#v[0], #v[0]] #v[#v[0], #v[0]] 1 0 1 (by decide)) (by decide +kernel)

theorem alibiSigned_refuted : ¬ IsAlibi alibiSigned := fun h =>
  absurd (h 1 #v[#v[0], #v[0]] #v[#v[0], #v[0]] 0 1 1 (by decide)) (by decide +kernel)

/-- Additive bias where `none` adds nothing and does not mask. -/
@[expose] def biasNoneZero {q_len kv_len : Nat} (B : Matrix (Option Int) q_len kv_len) :
    ScoreMod Int q_len kv_len := fun i j s => some (s + B[i][j].getD 0)

theorem biasNoneZero_refuted : ¬ ∀ (Q K : Matrix Int 1 1) (B : Matrix (Option Int) 1 1),
    (weight (score 1 (biasNoneZero B) Q K 0 0) : Rat)
      = weight (score 1 Mask.full.toScoreMod Q K 0 0) * weight B[(0 : Fin 1)][(0 : Fin 1)] :=
  fun h => absurd (h #v[#v[0]] #v[#v[0]] #v[#v[none]]) (by decide +kernel)

/-- An operation to compute with, x ↦ 1 + x. It is no exponential: there is none of rationals to
rationals; but the equation which determines the softcap asks for no law. -/
@[expose] def onePlus : Exp Rat Rat := ⟨fun x => 1 + x⟩

/-- The equation of `softcap_eq` where it can be computed, made of any softcap. -/
abbrev IsSoftcap (softcap : Rat → ScoreMod Rat 1 1) : Prop :=
  ∀ cap s : Rat, 0 < cap → onePlus.exp (2 * s / cap) + 1 ≠ 0 →
    ∃ y, softcap cap 0 0 s = some y ∧ cap + y = onePlus.exp (2 * s / cap) * (cap - y)

/-- Positive control: the Spec's softcap satisfies the equation. -/
theorem softcap_isSoftcap : IsSoftcap (letI := onePlus; ScoreMod.softcap) := by
  intro cap s hcap he
  refine ⟨_, rfl, ?_⟩
  have h : s / cap + s / cap = 2 * s / cap := by grind
  simp only [tanh, h]
  grind

/-- The score is multiplied by cap and not divided by it. -/
theorem softcapUndivided_refuted :
    ¬ IsSoftcap fun cap _ _ s => some (cap * (letI := onePlus; tanh s)) := fun h =>
  absurd (h 2 1 (by decide +kernel) (by decide +kernel)) fun ⟨_, hy, h⟩ =>
    absurd (Option.some.inj hy ▸ h) (by decide +kernel)

/-- The score is divided by cap and not multiplied by it. -/
theorem softcapUnmultiplied_refuted :
    ¬ IsSoftcap fun cap _ _ s => some (letI := onePlus; tanh (s / cap)) := fun h =>
  absurd (h 2 1 (by decide +kernel) (by decide +kernel)) fun ⟨_, hy, h⟩ =>
    absurd (Option.some.inj hy ▸ h) (by decide +kernel)

/-- A sink that brings a value of its own into the numerator. -/
@[expose] def withSinkValue (sink : Int) (row : List (ScoredValue Int Rat 1)) :
    List (ScoredValue Int Rat 1) :=
  ⟨some sink, #v[1]⟩ :: row

/-- The claim of `getElem_attend_withSink`, made of any row with a sink. -/
abbrev IsSink (attendSink : Int → List (ScoredValue Int Rat 1) → Vec Rat 1) : Prop :=
  ∀ (sink : Int) (row : List (ScoredValue Int Rat 1)),
    (attendSink sink row)[0]
      = Proof.numerator row 0 (by decide) / (denominator (row.map (·.score)) + exp sink)

/-- Positive control: the Spec's sink satisfies the claim. -/
theorem withSink_isSink : IsSink fun sink row => attend (withSink sink row) := fun sink row =>
  Proof.getElem_attend_withSink sink row (by decide)

theorem withSinkValue_refuted : ¬ IsSink fun sink row => attend (withSinkValue sink row) :=
  fun h => absurd (h 0 [⟨some 0, #v[0]⟩]) (by decide +kernel)

/-- A sink that takes part in the maximum only, and not in the denominator. -/
theorem sinkInMaximumOnly_refuted : ¬ IsSink fun sink row =>
    finish (row.foldl step ⟨some sink, 0, Vec.zero⟩) :=
  fun h => absurd (h 0 [⟨some 0, #v[1]⟩]) (by decide +kernel)

/-- One sink for each tile of keys, where there is one for the row. -/
theorem sinkPerTile_refuted : ¬ ∀ (sink : Int) (blocks : List (List (ScoredValue Int Rat 1))),
    finish (online (blocks.map (withSink sink))) = attend (withSink sink blocks.flatten) :=
  fun h => absurd (congrArg Vector.toList (h 0 [[⟨some 0, #v[1]⟩], [⟨some 0, #v[1]⟩]]))
    (by decide +kernel)

end Attention.WrongVariants
