module

public import Attention.Proof.Rounding.UnderflowSoftcap
public import Attention.Proof.Rounding.UnderflowScores
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of sums of scores, and of sinks, that underflow

Formats in which neither the sum of an inner product nor that of a score and a number underflows, a
bound of a sink that has no such error, and functions that lose a hundred times as much of each as
they say. Source: docs/tolerances.md, section 1. -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R]

/-- `underflowFormats` where products and quotients underflow, and no sum does. -/
@[expose] def sumsNotCounted (p : Precision R) (f : ScoreFormats R) (ν : R) (additions d : Nat)
    (scale cap : R) : ScoreFormats R :=
  { f with
    scoresTiny := f.scoresTiny + (1 + f.scores) * ((1 + gamma (additions + 6) p.accumulation)
      * (ν * (numeral d * max 1 (absolute scale) + numeral 2 * (1 + cap)))) }

/-! ## What counterexamples are made of -/

/-- Nothing is rounded, and nothing stored. -/
private abbrev exactly : Precision R := ⟨0, 0, 0, 0, 0, .unrounded⟩

private abbrev asTheyAre : ScoreFormats R := ⟨0, 0, 0, 0, 1, 0⟩

private theorem exactly_precise : Precise (exactly : Precision R) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _,
    Std.le_refl _⟩

private theorem numeral_small : (numeral 0 : R) = 0 ∧ (numeral 2 : R) = 2 ∧ (numeral 3 : R) = 3 ∧
    (numeral 4 : R) = 4 := by
  refine ⟨rfl, ?_, ?_, ?_⟩ <;>
  · simp only [Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind

private theorem max_right {a b : R} (h : a ≤ b) : max a b = b := by
  rw [OrderedField.max_def, if_pos h]

private theorem kept {η : R} (x : R) : Stored 0 η x x := Proof.stored_refl (Std.le_refl _) x

private theorem near (x : R) : StoredNear 0 0 x x :=
  ⟨x, rounded_refl (Std.le_refl _) x, atMost_sub_self x⟩

/-- A number that is off by no more than `η`, nor than itself. -/
private theorem stored_off {η x y : R} (h₁ : AtMost η (y - x)) (h₂ : AtMost (absolute x) (y - x)) :
    Stored 0 η x y := by
  refine ⟨h₁.mono ?_, h₂⟩
  rw [OrderedField.max_def]
  split <;> grind

private theorem few : 10 * (numeral (0 + 4) * (exactly : Precision R).accumulation) ≤ 1 := by
  have := OrderedRing.zero_lt_one (R := R)
  rw [Semiring.mul_zero]
  grind

/-! ## Inner products -/

/-- The claim of `tiny_capped_score` for two products and scores that are not changed. -/
abbrev FlushedScoresStayClose
    (computes : Precision R → ScoreFormats R → R → R → Vec R 2 → Vec R 2 → R → Prop :=
      fun p f ν σ => TinyScore p f ν 1 1 1 σ)
    (formats : Precision R → ScoreFormats R → R → Nat → Nat → R → R → ScoreFormats R :=
      underflowFormats) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (scale ν : R) (q k : Vec R 2) (y : R), Precise p →
    p.unit ≤ p.accumulation → p.unit ≤ 1 / 128 → PreciseFormats f → 0 ≤ f.scores →
    f.scores ≤ 1 / 32 → 0 ≤ ν →
    10 * (numeral (1 + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    ScaledBy p f scale 1 1 scale → AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) scale →
    computes p f ν scale q k y →
    let g := formats p f ν 1 2 scale 0
    let s := scale * Vec.dot q k
    AtMost (scoreError p g 1 scale (magnitude q k) (operandUnderflow p g 1 q k) s (absolute s))
      (y - s)

/-- Positive control: the scores and the formats of the theorem. -/
theorem flushedScores_stayClose [NaturalExp R]
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    FlushedScoresStayClose (R := R) :=
  fun _ _ _ _ _ _ y hp hu hu' hf hf₀ hf₁ hν hd hσ hσ' score =>
    (Proof.tiny_capped_score archimedean hp hu hu' hf hf₀ hf₁ hν hd (change := ⟨none, none⟩) nofun
      (.split hσ hσ') score ⟨y, rfl, rfl⟩).1

/-- A score of which the sum of the products is off by a hundred times as much. -/
@[expose] def sumLosesMuch (p : Precision R) (f : ScoreFormats R) (ν σ : R) (q k : Vec R 2)
    (score : R) : Prop :=
  ∃ (products : Fin 2 → R) (sum x : R),
    (∀ i : Fin 2, Stored p.accumulation ν (q[i] * k[i]) (products i)) ∧
    SumOf p.accumulation (100 * ν) (fun i : Fin 2 => q[i] * k[i] = 0) products 1 (List.finRange 2)
      sum ∧ TinyTimes p.unit ν 2 (σ * sum) x ∧ StoredNear f.scores f.scoresTiny x score

private theorem allowed (t scale A s b : R) (q k : Vec R 2) :
    scoreError exactly ⟨0, 0, 0, 0, 1, t⟩ 1 scale A
      (operandUnderflow (exactly : Precision R) ⟨0, 0, 0, 0, 1, t⟩ 1 q k) s b = t := by
  have e : operandFactor (exactly : Precision R) ⟨0, 0, 0, 0, 1, t⟩ = 1 := by
    rw [operandFactor, Proof.power_eq]
    exact Semiring.pow_zero _
  have e' : operandUnderflow (exactly : Precision R) ⟨0, 0, 0, 0, 1, t⟩ 1 q k = 0 := by
    simp only [operandUnderflow, Semiring.mul_zero, Semiring.zero_mul]
  rw [e', scoreError, e]
  simp only [gamma_zero]
  grind

/-- What a claim says of such functions. -/
private theorem claimed
    {computes : Precision R → ScoreFormats R → R → R → Vec R 2 → Vec R 2 → R → Prop}
    {formats : Precision R → ScoreFormats R → R → Nat → Nat → R → R → ScoreFormats R}
    (claim : FlushedScoresStayClose computes formats) {scale x y t : R} (hscale : 1 ≤ scale)
    (h : computes exactly asTheyAre 1 scale #v[x, x] #v[x, x] y)
    (ht : formats exactly asTheyAre 1 1 2 scale 0 = ⟨0, 0, 0, 0, 1, t⟩) :
    AtMost t (y - scale * (2 * (x * x))) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : Vec.dot (#v[x, x] : Vec R 2) #v[x, x] = 2 * (x * x) := by
    have : Vec.dot (#v[x, x] : Vec R 2) #v[x, x] = x * x + (x * x + 0) := rfl
    rw [this]
    grind
  have factor : operandFactor (exactly : Precision R) asTheyAre = 1 := by
    rw [operandFactor, Proof.power_eq]
    exact Semiring.pow_zero _
  have never : ¬ (0 : R) < 0 := by grind
  have h := claim exactly asTheyAre scale 1 #v[x, x] #v[x, x] y exactly_precise (Std.le_refl _)
    (by show (0 : R) ≤ 1 / 128; grind) ⟨Std.le_refl _, Std.le_refl _⟩ (Std.le_refl _)
    (by show (0 : R) ≤ 1 / 32; grind) (Std.le_of_lt h₀)
    (by
      rw [factor, Semiring.mul_zero]
      grind)
    ⟨by
      rw [Semiring.mul_one, Semiring.one_mul]
      exact roundedTimes_refl (Std.le_refl _) 3 _, fun h => absurd h never,
      fun h => absurd h never, fun h => absurd h never⟩
    (by
      have e : absolute scale = scale := Proof.absolute_of_nonneg (by grind)
      rw [e, max_right hscale]
      show AtMost ((1 + (0 : R)) ^ 3 * scale) scale
      exact ⟨by grind, by grind⟩) h
  simp only [ht, e, allowed] at h
  exact h

/-- Two products and their sum. -/
private theorem two_added {ν c z : R} {free : Fin 2 → Prop} {products : Fin 2 → R}
    (h : ∀ i, ¬ free i) (hz : AtMost c (z - (products 0 + products 1))) (hν : c ≤ ν) :
    SumOf 0 ν free products 1 (List.finRange 2) z := by
  have e : List.finRange 2 = [0] ++ [1] := by decide
  rw [e]
  exact .tiny .one .one ⟨0, List.mem_singleton.mpr rfl, h 0⟩ ⟨1, List.mem_singleton.mpr rfl, h 1⟩
    (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _) (hz.mono hν)

theorem sumsNotCounted_refuted :
    ¬ FlushedScoresStayClose (R := R) (formats := sumsNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨n₀, n₂, n₃, n₄⟩ := numeral_small (R := R)
  have at₁ : ∀ i : Fin 2, (#v[(1 : R), 1] : Vec R 2)[i] = 1 := fun i => by
    match i with
    | 0 => rfl
    | 1 => rfl
  have score : TinyScore exactly asTheyAre (1 : R) 1 1 1 10 #v[1, 1] #v[1, 1] (10 * -1) := by
    refine ⟨0, 0, fun _ => 1, fun _ => 1, fun _ => 0, -1, 10 * -1, Nat.le_refl _, fun i => ?_,
      fun i => ?_, fun i => ?_, two_added (c := 1) (fun i => ?_) ?_ (Std.le_refl _),
      ⟨_, ⟨_, rfl, kept _⟩, kept _⟩, near _⟩
    · show (1 : R) = 1 * _
      rw [at₁, Semiring.mul_one]
    · show (1 : R) = 1 * _
      rw [at₁, Semiring.mul_one]
    · rw [Semiring.mul_one]
      show Stored (0 : R) 1 1 0
      exact stored_off ⟨by grind, by grind⟩ (by rw [absolute_one]; exact ⟨by grind, by grind⟩)
    · show ¬ (1 : R) * 1 = 0
      grind
    · show AtMost (1 : R) (-1 - (0 + 0))
      exact ⟨by grind, by grind⟩
  have h := claimed claim (t := 22) (by grind) score (by
    show (⟨0, 0, 0, 0, 1, 0 + (1 + 0) * ((1 + gamma (1 + 6) 0) * (1 * (numeral 2
      * max 1 (absolute 10) + numeral 2 * (1 + 0))))⟩ : ScoreFormats R) = _
    rw [gamma_zero, n₂, Proof.absolute_of_nonneg (show (0 : R) ≤ 10 by grind),
      max_right (show (1 : R) ≤ 10 by grind)]
    congr 1
    grind)
  have := h.1
  clear claim score
  grind

theorem sumLosesMuch_refuted : ¬ FlushedScoresStayClose (R := R) sumLosesMuch := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨n₀, n₂, n₃, n₄⟩ := numeral_small (R := R)
  have at₅ : ∀ i : Fin 2, (#v[(5 : R), 5] : Vec R 2)[i] = 5 := fun i => by
    match i with
    | 0 => rfl
    | 1 => rfl
  have score : sumLosesMuch exactly asTheyAre (1 : R) 1 #v[5, 5] #v[5, 5] 0 := by
    refine ⟨fun _ => 25, 0, 0, fun i => ?_, two_added (c := 100) (fun i => ?_) ?_ ?_,
      ⟨_, ⟨1 * 0, rfl, by rw [Semiring.mul_zero]; exact kept _⟩, kept _⟩, near _⟩
    · rw [at₅, show (5 : R) * 5 = 25 by grind]
      exact kept _
    · rw [at₅]
      grind
    · show AtMost (100 : R) (0 - (25 + 25))
      exact ⟨by grind, by grind⟩
    · grind
  have h := claimed claim (t := 7) (Std.le_refl _) score (by
    show (⟨0, 0, 0, 0, 1, 0 + (1 + 0) * ((1 + gamma (1 + 6) 0) * (1 * (numeral 4
      * max 1 (absolute 1) + numeral 3 * (1 + 0))))⟩ : ScoreFormats R) = _
    rw [gamma_zero, n₃, n₄, absolute_one, max_right (Std.le_refl _)]
    congr 1
    grind)
  have := h.1
  clear claim score
  grind

/-! ## Numbers that are added -/

/-- The claim of `tiny_added` and `rounded_sum` together, of a score that is no product. -/
abbrev FlushedSumsStayClose
    (computes : Precision R → ScoreFormats R → R → R → R → R → Prop := TinySum)
    (formats : Precision R → ScoreFormats R → R → Nat → Nat → R → R → ScoreFormats R :=
      underflowFormats) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (ν a s x y e : R), Precise p →
    p.unit ≤ p.accumulation → 10 * (numeral (0 + 4) * p.accumulation) ≤ 1 → 0 ≤ ν →
    AtMost e (x - s) → computes p f ν a x y →
    AtMost (addedError p (formats p f ν 0 0 0 0) a s e) (y - (s + a))

/-- Positive control: the sums and the formats of the theorem. -/
theorem flushedSums_stayClose : FlushedSumsStayClose (R := R) :=
  fun _ _ _ _ _ _ _ _ hp hu hm hν hx h =>
    Proof.rounded_sum hx (Proof.tiny_added hp hu hm hν (Std.le_refl _) h)

/-- A score and a number whose sum is off by a hundred times as much. -/
@[expose] def addedLosesMuch (p : Precision R) (f : ScoreFormats R) (ν a x y : R) : Prop :=
  ∃ b c s w : R, TinyTimes p.unit ν 2 a b ∧ StoredNear f.scores f.scoresTiny b c ∧
    AtMost (100 * ν) (s - (x + c)) ∧ TinyTimes p.unit ν 2 s w ∧
    StoredNear f.scores f.scoresTiny w y

private theorem allowed_sum (t a s : R) :
    addedError (exactly : Precision R) ⟨0, 0, 0, 0, 1, t⟩ a s 0 = 2 * t := by
  simp only [addedError]
  grind

theorem addedSumsNotCounted_refuted :
    ¬ FlushedSumsStayClose (R := R) (formats := sumsNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨n₀, n₂, n₃, n₄⟩ := numeral_small (R := R)
  have one : ∀ {x y : R}, 1 ≤ x → y = x - 1 → Stored 0 1 x y := fun {x y} hx hy =>
    stored_off ⟨by grind, by grind⟩ (by
      rw [Proof.absolute_of_nonneg (show 0 ≤ x by grind)]
      exact ⟨by grind, by grind⟩)
  have h := claim exactly asTheyAre 1 2 3 3 0 0 exactly_precise (Std.le_refl _) few
    (Std.le_of_lt h₀) ⟨by grind, by grind⟩ ⟨0, 0, 2, 0,
      ⟨1, ⟨2, rfl, one (by grind) (by grind)⟩, one (Std.le_refl _) (by grind)⟩, near _,
      ⟨by grind, by grind⟩,
      ⟨1, ⟨2, rfl, one (by grind) (by grind)⟩, one (Std.le_refl _) (by grind)⟩, near _⟩
  have e : sumsNotCounted exactly asTheyAre (1 : R) 0 0 0 0 = ⟨0, 0, 0, 0, 1, 2⟩ := by
    show (⟨0, 0, 0, 0, 1, 0 + (1 + 0) * ((1 + gamma (0 + 6) 0) * (1 * (numeral 0
      * max 1 (absolute 0) + numeral 2 * (1 + 0))))⟩ : ScoreFormats R) = _
    rw [gamma_zero, n₀, n₂]
    congr 1
    grind
  rw [e, allowed_sum] at h
  have := h.1
  clear claim
  grind

theorem addedLosesMuch_refuted : ¬ FlushedSumsStayClose (R := R) addedLosesMuch := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨n₀, n₂, n₃, n₄⟩ := numeral_small (R := R)
  have h := claim exactly asTheyAre 1 10 10 10 0 0 exactly_precise (Std.le_refl _) few
    (Std.le_of_lt h₀) ⟨by grind, by grind⟩ ⟨10, 10, 0, 0, ⟨10, ⟨10, rfl, kept _⟩, kept _⟩, near _,
      ⟨by grind, by grind⟩, ⟨0, ⟨0, rfl, kept _⟩, kept _⟩, near _⟩
  have e : underflowFormats exactly asTheyAre (1 : R) 0 0 0 0 = ⟨0, 0, 0, 0, 1, 3⟩ := by
    show (⟨0, 0, 0, 0, 1, 0 + (1 + 0) * ((1 + gamma (0 + 6) 0) * (1 * (numeral 0
      * max 1 (absolute 0) + numeral 3 * (1 + 0))))⟩ : ScoreFormats R) = _
    rw [gamma_zero, n₀, n₃]
    congr 1
    grind
  rw [e, allowed_sum] at h
  have := h.1
  clear claim
  grind

/-! ## Sinks -/

/-- The claim of `tiny_sink` and `rounded_sink` together. -/
abbrev FlushedSinksStayClose
    (computes : Precision R → ScoreFormats R → R → R → R → Prop := TinySink)
    (error : Precision R → ScoreFormats R → R → R := sinkError) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (ν sink y : R), Precise p → p.unit ≤ p.accumulation →
    10 * (numeral (0 + 4) * p.accumulation) ≤ 1 → 0 ≤ f.scores → 0 ≤ ν → computes p f ν sink y →
    AtMost (error p (underflowFormats p f ν 0 0 0 0) sink) (y - sink)

/-- Positive control: the sinks and the bound of the theorem. -/
theorem flushedSinks_stayClose : FlushedSinksStayClose (R := R) :=
  fun _ _ _ _ _ hp hu hm hf₀ hν h =>
    Proof.rounded_sink (Proof.tiny_sink hp hu hm hf₀ hν (Std.le_refl _) h)

/-- The bound of a sink that does not underflow. -/
@[expose] def sinkNotTiny (p : Precision R) (f : ScoreFormats R) (sink : R) : R :=
  sinkError p { f with scoresTiny := 0 } sink

/-- A sink that loses a hundred times as much. -/
@[expose] def sinkLosesMuch (p : Precision R) (f : ScoreFormats R) (ν sink y : R) : Prop :=
  TinySink p f (100 * ν) sink y

/-- A sink that is flushed to 0. -/
private theorem flushed_sink {ν sink : R} (h₀ : 0 ≤ sink) (h : sink ≤ ν) :
    TinySink exactly asTheyAre ν sink 0 := by
  refine ⟨0, ⟨0, ⟨sink, rfl, stored_off ⟨by grind, by grind⟩ ?_⟩, kept _⟩, atMost_sub_self 0⟩
  rw [Proof.absolute_of_nonneg h₀]
  exact ⟨by grind, by grind⟩

theorem sinkNotTiny_refuted : ¬ FlushedSinksStayClose (R := R) (error := sinkNotTiny) :=
    fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim exactly asTheyAre 1 1 0 exactly_precise (Std.le_refl _) few (Std.le_refl _)
    (Std.le_of_lt h₀) (flushed_sink (Std.le_of_lt h₀) (Std.le_refl _))
  simp only [sinkNotTiny, sinkError, absolute_one] at h
  have := h.1
  clear claim
  grind

theorem sinkLosesMuch_refuted : ¬ FlushedSinksStayClose (R := R) sinkLosesMuch := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨n₀, n₂, n₃, n₄⟩ := numeral_small (R := R)
  have h := claim exactly asTheyAre 1 50 0 exactly_precise (Std.le_refl _) few (Std.le_refl _)
    (Std.le_of_lt h₀) (flushed_sink (by grind) (by grind))
  simp only [sinkError, underflowFormats, gamma_zero, Nat.mul_zero, n₀, n₃] at h
  have := h.1
  clear claim
  grind

end Attention.WrongVariants
