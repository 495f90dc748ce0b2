module

public import Attention.Proof.Enclosure.Backward
public import Attention.Proof.Enclosure.Combine
public import Attention.Proof.Enclosure.Mods
public import Attention.WrongVariants.ScoreMods

public section

/-! # Wrong variants of score transformations and of combined splits, run over intervals

No natural exponential is at hand to evaluate with; where one is needed the operation `onePlus`
takes its place, of which nothing is asked but an interval that contains it. -/

namespace Attention.WrongVariants

open Spec Model Interval

/-! ## Score transformations -/

/-- The claim of `bias_enclosed` for one query and one key, made of any additive bias. -/
abbrev EnclosesBias
    (bias : Matrix (Option (Interval 1)) 1 1 → ScoreMod (Interval 1) 1 1) : Prop :=
  ∀ (B' : Matrix (Option (Interval 1)) 1 1) (B : Matrix (Option Rat) 1 1),
    (∀ i j : Fin 1, Proof.ScoreContains B'[i][j] B[i][j]) →
      Proof.ModContains (bias B') (ScoreMod.bias B)

/-- Positive control: the Spec's additive bias satisfies the claim. -/
theorem bias_enclosesBias : EnclosesBias ScoreMod.bias := fun _ _ h => Proof.bias_enclosed h

/-- A pair that the bias masks gets a number, however low, for −∞. -/
@[expose] def biasFinite (floor : Interval 1) (B : Matrix (Option (Interval 1)) 1 1) :
    ScoreMod (Interval 1) 1 1 := fun i j s => some (s + B[i][j].getD floor)

theorem biasFinite_refuted (floor : Interval 1) : ¬ EnclosesBias (biasFinite floor) := fun h =>
  h #v[#v[none]] #v[#v[none]] (fun | 0, 0 => trivial) 0 0 0 0 Proof.contains_zero

/-- The claim of `alibi_enclosed` for two queries and two keys, made of any linear biases. -/
abbrev EnclosesAlibi (alibi : Interval 1 → ScoreMod (Interval 1) 2 2) : Prop :=
  ∀ (slope' : Interval 1) (slope : Rat), slope'.Contains slope →
    Proof.ModContains (alibi slope') (ScoreMod.alibi .topLeft slope)

/-- Positive control: the Spec's linear biases satisfy the claim. -/
theorem alibi_enclosesAlibi : EnclosesAlibi (ScoreMod.alibi .topLeft) :=
  fun _ _ h => Proof.alibi_enclosed .topLeft h

/-- One number between the bounds of the slope stands for it. -/
@[expose] def alibiMidpoint : Interval 1 → ScoreMod (Interval 1) 2 2
  | between a b => ScoreMod.alibi .topLeft (between ((a + b) / 2) ((a + b) / 2))
  | all => ScoreMod.alibi .topLeft all

theorem alibiMidpoint_refuted : ¬ EnclosesAlibi alibiMidpoint := fun h =>
  absurd (h (between 0 2) 0 ⟨by decide +kernel, by decide +kernel⟩ 0 1 0 0 Proof.contains_zero).2
    (by decide +kernel)

/-- `onePlus` for intervals. -/
@[expose] def onePlusEnclosed : Exp (Interval 2) (Interval 2) := ⟨fun I => 1 + I⟩

/-- The claim of `contains_tanh`, with an operation in the place of the exponential that can be
computed. -/
abbrev EnclosesTanh (tanh' : Interval 2 → Interval 2) : Prop :=
  ∀ (I : Interval 2) (x : Rat), I.Contains x → (tanh' I).Contains (letI := onePlus; tanh x)

/-- Positive control: the Spec's tanh satisfies the claim. -/
theorem tanh_enclosesTanh : EnclosesTanh (letI := onePlusEnclosed; tanh) := fun _ _ hx =>
  Proof.contains_tanh_of_exp (contains_add Proof.contains_one (contains_add hx hx))

/-- A quotient with its lower bound rounded up and its upper bound rounded down. -/
@[expose] def divInward {p : Nat} : Interval p → Interval p → Interval p
  | between a b, between c d =>
    if 0 < c then between (-divLower p (-a) c d) (divLower p b c d) else all
  | _, _ => all

/-- The hyperbolic tangent, rounded inward. -/
@[expose] def tanhInward (I : Interval 2) : Interval 2 :=
  let e := onePlusEnclosed.exp (I + I)
  divInward (e - 1) (e + 1)

theorem tanhInward_refuted : ¬ EnclosesTanh tanhInward := fun h =>
  absurd (h (between 2 2) (1 / 2) ⟨by decide +kernel, by decide +kernel⟩).1 (by decide +kernel)

/-! ## Gradients -/

/-- The claim of `contains_slopeGradient` for two queries and two keys. -/
abbrev EnclosesSlopeGradient (gradient : Matrix (Interval 1) 2 2 → Interval 1) : Prop :=
  ∀ (dS' : Matrix (Interval 1) 2 2) (dS : Matrix Rat 2 2), Proof.MatrixContains dS' dS →
    (gradient dS').Contains (slopeGradient .topLeft dS)

/-- Positive control: the Spec's gradient, over intervals. -/
theorem slopeGradient_encloses : EnclosesSlopeGradient (slopeGradient .topLeft) :=
  fun _ _ h => Proof.contains_slopeGradient .topLeft h

/-- The lower bounds stand for the gradients by the scores. -/
@[expose] def slopeGradientLower (dS : Matrix (Interval 1) 2 2) : Interval 1 :=
  slopeGradient .topLeft (Vec.ofFn fun i : Fin 2 => Vec.ofFn fun j : Fin 2 =>
    match dS[i][j] with
    | between a _ => between a a
    | all => all)

theorem slopeGradientLower_refuted : ¬ EnclosesSlopeGradient slopeGradientLower := fun h =>
  absurd (h #v[#v[0, between 0 2], #v[0, 0]] #v[#v[0, 1], #v[0, 0]] (fun
    | 0, _ => fun
      | 0, _ => Proof.contains_zero
      | 1, _ => (⟨by decide +kernel, by decide +kernel⟩ :
          (between 0 2 : Interval 1).Contains (1 : Rat))
    | 1, _ => fun
      | 0, _ => Proof.contains_zero
      | 1, _ => Proof.contains_zero)).1
    (by decide +kernel)

/-! ## Splits -/

/-- The claim of `contains_combine` for one split, made of any reading of the log-sum-exp of all,
with an operation in the place of the exponential that can be computed. -/
abbrev EnclosesCombined (reads : Option (Interval 2) → Option (Interval 2)) : Prop :=
  ∀ (part' : Partial (Interval 2) (Interval 2) 1) (part : Partial Rat Rat 1)
    (L' : Option (Interval 2)) (L : Option Rat), Proof.VecContains part'.o part.o →
    Proof.ScoreContains part'.lse part.lse → Proof.ScoreContains L' L →
    Proof.VecContains (letI := onePlusEnclosed; combine (reads L') [part'])
      (letI := onePlus; combine L [part])

private theorem value_enclosed :
    Proof.VecContains (#v[4] : Vec (Interval 2) 1) (#v[4] : Vec Rat 1)
  | 0, _ => (⟨by decide +kernel, by decide +kernel⟩ : (4 : Interval 2).Contains (4 : Rat))

/-- Positive control: the log-sum-exp of all as it is. -/
theorem id_enclosesCombined : EnclosesCombined id := by
  intro part' part L' L ho hlse hL j hj
  obtain ⟨o', lse'⟩ := part'
  obtain ⟨o, lse⟩ := part
  simp only [combine, id, Vec.sumOver, Vec.getElem_add, Vec.getElem_smul, Vec.getElem_zero]
  refine contains_add (contains_mul ?_ (ho j hj)) Proof.contains_zero
  cases lse' <;> cases lse <;> cases L' <;> cases L <;> first
    | exact Proof.contains_zero
    | cases hlse
    | cases hL
    | exact contains_add Proof.contains_one (contains_sub hlse hL)

/-- One number between the bounds of the log-sum-exp stands for it. -/
@[expose] def midpoint : Option (Interval 2) → Option (Interval 2)
  | some (between a b) => some (between ((a + b) / 2) ((a + b) / 2))
  | L' => L'

theorem midpoint_refuted : ¬ EnclosesCombined midpoint := fun h =>
  absurd (h ⟨#v[4], some 0⟩ ⟨#v[4], some 0⟩ (some (between 0 8)) (some 0)
    value_enclosed Proof.contains_zero
    ⟨by decide +kernel, by decide +kernel⟩ 0 (by decide)).2 (by decide +kernel)

/-- −∞ for every log-sum-exp of all. -/
theorem lseNone_refuted : ¬ EnclosesCombined fun _ => none := fun h =>
  absurd (h ⟨#v[4], some 0⟩ ⟨#v[4], some 0⟩ (some 0) (some 0)
    value_enclosed Proof.contains_zero
    Proof.contains_zero 0 (by decide)).2 (by decide +kernel)

end Attention.WrongVariants
