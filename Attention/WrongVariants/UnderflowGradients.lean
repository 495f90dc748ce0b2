module

public import Attention.Proof.Rounding.UnderflowGradients
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the bound of two passes

A bound of weights in which the log-sum-exp that the forward pass wrote is exact: the score is
stored, and the two passes may store it differently.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- A bound of the errors of weights, as `passWeightError`. -/
abbrev PassBound (R : Type u) : Type u :=
  Precision R → ScoreFormats R → R → Nat → ScoreChanges R 1 1 → R → Mask 1 1 → Matrix R 1 1 →
    Matrix R 1 1 → Fin 1 → Nat → R → R → R → Option (Fin 1) → R

/-- The claim of `tiny_rows` on the weights of one query and one key, for any bound. -/
abbrev PassWeightsStay (bound : PassBound R := passWeightError) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (ν η scale : R) (additions roundings : Nat)
    (changes : ScoreChanges R 1 1) (mask : Mask 1 1) (Q K : Matrix R 1 1) (g : GradientPrecision R)
    (c : GradientCounts) (r : BackwardRow R 1 1) (L M E w : R), Precise p →
    p.unit ≤ p.accumulation → p.unit ≤ 1 / 128 → PreciseFormats f → 0 ≤ f.scores →
    f.scores ≤ 1 / 32 → 0 ≤ ν →
    10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    (∀ cap, changes.cap = some cap → 0 < cap) → p.accumulation < 1 → PreciseGradient g →
    OfForward p ν g → numeral (roundings + 1) * p.unit < 1 → numeral 4 * p.unit < 1 →
    (1 + g.output) * ((1 + p.accumulation) ^ 5 * (numeral 5 * ν)) + η ≤ g.outputTiny →
    r.Valid → changes.sink = none →
    QueryBounds p f ν additions changes scale mask Q K 0 roundings c.rescalings L M E →
    r.OfColumns changes scale mask Q K 0 L some →
    (∀ j, bound p f ν additions changes scale mask Q K 0 c.rescalings L M E (some j)
      ≤ r.error j) →
    (∀ j σ, SlopeAgain p f ν additions changes scale Q K 0 (some j) σ →
      AtMost (r.slopeError j) (σ - r.slope j)) →
    PassWeight p f ν additions changes scale mask Q K 0 roundings g c r some 0 w →
    r.ComputedWeight g 0 w

/-- Positive control: the bound of the theorem. -/
theorem passWeights_stay (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    PassWeightsStay (R := R) :=
  fun _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ w hp hu hu' hf hf₀ hf₁ hν hd hcap ha hg same hD h4 hη hr
    hsink bounds columns herror hslope h =>
    (Proof.tiny_rows archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap ha hg same hD h4 hη hr
      (by rw [ScoreChanges.columns, hsink]) (fun _ => columns.masked) (fun _ => ⟨bounds, columns⟩)
      herror hslope).2 0 w h

/-- The bound without the error of the log-sum-exp. -/
@[expose] def logSumExpExact : PassBound R :=
  fun p f ν additions changes scale mask Q K i rescalings L _ _ col =>
    match changes.score scale mask Q K i col with
    | none => 0
    | some s => recomputedError p.unit ν p.exponential s L
      (changes.cappedError p (changes.formats p f ν additions 1 scale) additions scale Q K i col
        + numeral (rescalings + 1) * ν) 0

/-! ## One key of score 32, which a format of 5 bits may store as 31 or as 33 -/

private def exactly : Precision R := ⟨0, 0, 0, 0, 0, .unrounded⟩

private def fiveBits : ScoreFormats R := ⟨0, 0, 1 / 32, 0, 1, 0⟩

private def unchanged : ScoreChanges R 1 1 := ⟨none, none, none⟩

private def all : Mask 1 1 := fun _ _ => true

private def query : Matrix R 1 1 := #v[#v[32]]

private def key : Matrix R 1 1 := #v[#v[1]]

private def nothing : GradientPrecision R := ⟨0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1⟩

private def few : GradientCounts := ⟨1, 2, 0⟩

/-- Its row: the weight 1, and the error of the bound without that of the log-sum-exp. -/
private def only (error : R) : BackwardRow R 1 1 :=
  ⟨fun _ => 1, fun _ => error, fun _ => 1, fun _ => 1, fun _ => 0, fun _ => #v[0], #v[0], 0⟩

private theorem score_32 (col : Option (Fin 1)) (h : col = some 0) :
    (unchanged (R := R)).score 1 all query key 0 col = some 32 := by
  subst h
  show some (1 * (32 * 1 + 0) : R) = some 32
  exact congrArg some (by grind)

private theorem exact_32 : (unchanged (R := R)).columns.map
    ((unchanged (R := R)).score 1 all query key 0) = [some 32] := by
  show [(unchanged (R := R)).score 1 all query key 0 (some 0)] = [some 32]
  rw [score_32 _ rfl]

omit [NaturalExp R] in
private theorem itself (ν x : R) : Stored 0 ν x x := Proof.stored_refl (Std.le_refl _) x

/-- Each score within a thirty-second of 32. -/
private theorem stored_score {x : R} (h : AtMost 1 (x - 32)) :
    TinyScores exactly fiveBits 0 0 unchanged 1 all query key 0 fun _ => x := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have one : AtMost ((1 + (0 : R)) ^ 3 * max 1 (absolute 1)) 1 := by
    rw [absolute_one, OrderedField.max_def, if_pos (Std.le_refl _)]
    exact ⟨by grind, by grind⟩
  refine ⟨nofun, _, .split (σ₁ := 1) (σ₂ := 1) (σ := 1) ⟨by
      show RoundedTimes (0 : R) 3 1 (1 * 1 * 1)
      rw [Semiring.mul_one, Semiring.mul_one]
      exact roundedTimes_refl (Std.le_refl _) 3 1, fun h => absurd h (by
        show ¬ (0 : R) < 0
        grind), fun h => absurd h (by show ¬ (0 : R) < 0; grind), fun h => absurd h (by
        show ¬ (0 : R) < 0
        grind)⟩ one, fun j _ => ⟨x, ?_, x, rfl, rfl⟩⟩
  obtain rfl : j = 0 := Subsingleton.elim _ _
  refine ⟨0, 0, fun _ => 32, fun _ => 1, fun _ => 32, 32, 32, Nat.le_refl _, fun i => ?_,
    fun i => ?_, fun i => ?_, .one, ⟨32, ⟨_, rfl, ?_⟩, itself _ _⟩, ?_⟩
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    show (32 : R) = 1 * 32
    rw [Semiring.one_mul]
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    show (1 : R) = 1 * 1
    rw [Semiring.one_mul]
  · show Stored (0 : R) 0 (32 * 1) 32
    rw [Semiring.mul_one]
    exact itself _ _
  · rw [Semiring.one_mul]
    exact itself _ _
  · refine ⟨x, ⟨(x - 32) / 32, ?_, ?_⟩, atMost_sub_self x⟩
    · have e : (x - 32) / 32 = (x - 32) * (1 / 32) := by grind
      show AtMost (1 / 32 : R) _
      rw [e]
      obtain ⟨h₁, h₂⟩ := h
      exact ⟨by grind, by grind⟩
    · grind

/-- The forward pass stores 31, and that is its log-sum-exp. -/
private theorem written_31 : TinyLogSumExpOf exactly fiveBits (0 : R) 0 unchanged 1 all query key 0
    (fun _ => 0) [some 0] 0 0 31 := by
  have e : (31 : R) - 31 = 0 := by grind
  refine ⟨fun _ => 31, 31, ⟨[_], 1, 0, 0, 0⟩, stored_score ⟨by grind, by grind⟩,
    .key (x := 0) (w := 1) (w' := 1) ?_ (Std.le_refl _) (.inl ?_) ?_ (itself _ _) ?_, fun h =>
      absurd rfl h, rfl, ⟨_, List.mem_singleton.mpr rfl, ?_, rfl⟩, Nat.le_refl _, Nat.le_refl _,
    0, 0, 0, 0, 0, 31, 0, 0, 31, by decide, by decide, exp_zero, ?_, rfl, rfl,
    ⟨by grind, by grind⟩, rfl⟩
  · show (unchanged (R := R)).score 1 all query key 0 (some 0) ≠ none
    rw [score_32 _ rfl]
    nofun
  · show Rounded (0 : R) (31 - 31) 0
    rw [e]
    exact rounded_refl (Std.le_refl _) _
  · rw [exp_zero]
    exact itself _ _
  · exact Proof.tinyProduct_of_stored (Std.le_refl _) (by
      show Stored (0 : R) 0 (1 * 0) 0
      rw [Semiring.one_mul]
      exact itself _ _)
  · show (unchanged (R := R)).score 1 all query key 0 (some 0) ≠ none
    rw [score_32 _ rfl]
    nofun
  · show AtMost ((0 : R) * 0 * (absolute 0 + 1)) (0 - 0)
    rw [Semiring.mul_zero, Semiring.zero_mul]
    exact atMost_sub_self 0

/-- The backward pass stores 33: the weight that it computes again is e². -/
private theorem again_two : WeightAgain exactly fiveBits (0 : R) 0 unchanged 1 all query key 0 0 0
    (some 0) 0 0 (exp (2 : R)) := by
  have here : ∀ x : R, StoredBelow 0 0 x x := fun x =>
    ⟨x, rounded_refl (Std.le_refl _) x, ⟨by grind, by grind⟩, id⟩
  rw [WeightAgain, score_32 _ rfl]
  refine ⟨fun _ => 0, [some 0], exp 2, .refl _, ⟨fun _ => 33, 31,
    stored_score ⟨by grind, by grind⟩, written_31, 33, 31, ?_, ?_, ?_⟩, here _⟩
  · exact ⟨33, ⟨33, ⟨33, rfl, here _⟩, here _⟩, here _⟩
  · exact ⟨31, ⟨31, ⟨31, rfl, here _⟩, here _⟩, here _⟩
  · rw [show (33 : R) - 31 = 2 by grind]
    exact here _

omit [NaturalExp R] in
private theorem factor_one (f : ScoreFormats R) (h : f.roundings = 0) :
    operandFactor exactly f = 1 := by
  rw [operandFactor, h, Proof.power_eq]
  exact Semiring.pow_zero _

/-- The score that is computed may be off by 1. -/
private theorem error_one : (unchanged (R := R)).cappedError exactly
    ((unchanged (R := R)).formats exactly fiveBits 0 0 1 1) 0 1 query key 0 (some 0) = 1 := by
  have e : (1 : R) * Vec.dot (query (R := R))[(0 : Fin 1)] (key (R := R))[(0 : Fin 1)] = 32 := by
    show (1 : R) * (32 * 1 + 0) = 32
    grind
  have h : (0 : R) ≤ 32 := by grind
  have e' : operandUnderflow (exactly (R := R)) (underflowFormats exactly fiveBits 0 0 1 1 0) 0
      query[(0 : Fin 1)] key[(0 : Fin 1)] = 0 := by
    simp only [operandUnderflow, underflowFormats, fiveBits, Semiring.mul_zero, Semiring.zero_mul]
  simp only [ScoreChanges.cappedError, cappedChangeError, ScoreChanges.pair, e]
  show scoreError exactly (underflowFormats exactly fiveBits 0 0 1 1 0) 0 1 _ (operandUnderflow
    exactly (underflowFormats exactly fiveBits 0 0 1 1 0) 0 query[(0 : Fin 1)] key[(0 : Fin 1)]) 32
    (absolute 32) = (1 : R)
  rw [e', scoreError, factor_one _ rfl]
  simp only [underflowFormats, exactly, fiveBits, gamma_zero, Proof.absolute_of_nonneg h,
    Semiring.mul_zero, Semiring.zero_mul]
  grind

private theorem row_one : weightRow exactly fiveBits (0 : R) 0 unchanged 1 all query key 0 0
    = [⟨some 32, 1, 0⟩] := by
  show [BoundedKey.flushed 0 0 (cappedKey exactly _ 0 unchanged 1 all query key 0 0 (some 0))]
    = [(⟨some 32, 1, 0⟩ : BoundedKey R)]
  rw [BoundedKey.flushed, cappedKey, score_32 _ rfl, error_one, Semiring.mul_zero,
    Semiring.add_zero]

omit [NaturalExp R] in
/-- Of what is stored exactly nothing is lost. -/
private theorem same_of_below {x y : R} (h : StoredBelow 0 0 x y) : y = x := by
  obtain ⟨z, ⟨θ, ⟨h₁, h₂⟩, rfl⟩, ⟨h₃, h₄⟩, -⟩ := h
  obtain rfl : θ = 0 := Std.le_antisymm h₂ (by grind)
  exact Std.le_antisymm (by grind) (by grind)

omit [NaturalExp R] in
private theorem smaller_zero (x : R) : smaller x 0 ≤ 0 := by
  rw [smaller]
  split
  · assumption
  · exact Std.le_refl _

private theorem bounds_32 : QueryBounds exactly fiveBits (0 : R) 0 unchanged 1 all query key 0 0 0
    32 32 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have weights : boundedWeights exactly 0 [(⟨some 32, 1, 0⟩ : BoundedKey R)]
      = [⟨1, exp (1 : R), 0⟩] := by
    show [boundedWeight exactly 0 (some 32) (max 0 1) (⟨some 32, 1, 0⟩ : BoundedKey R)] = _
    show [(⟨exp (32 - 32 : R), exp (1 + exactly.unit * (32 - 32 + 1 + max 0 1) : R)
      / power (1 - exactly.exponential) 1, 0⟩ : BoundedWeight R)] = _
    rw [show (32 : R) - 32 = 0 by grind, exp_zero, Proof.power_eq,
      show exactly.unit = (0 : R) from rfl, show exactly.exponential = (0 : R) from rfl,
      Semiring.zero_mul, Semiring.add_zero, show (1 : R) - 0 = 1 by grind, Semiring.one_pow]
    congr 2
    grind
  have least : 1 ≤ underflowLeft exactly (0 : R) 0 0 [⟨some 32, 1, 0⟩] := by
    have cost : underflowCost exactly (0 : R) 0 [⟨some 32, 1, 0⟩] (fun _ => 1) ≤ 0 := by
      have tiny : ∀ keys : List (BoundedWeight R), underflowShare exactly (0 : R) 0 keys = 0 :=
        fun keys => Semiring.zero_mul _
      have h := smaller_zero (power (numeral 3) 2 * (1 * exp (1 : R) / lowTotal [⟨1, exp (1 : R),
        0⟩]) : R)
      have h' := OrderedRing.mul_le_mul_of_nonneg_left h (Proof.numeral_nonneg (R := R) 2)
      simp only [underflowCost, weights, tiny, lostShare, Semiring.mul_zero, sumOver_cons,
        sumOver_nil, Semiring.mul_one, Semiring.add_zero] at h' ⊢
      exact h'
    show 1 ≤ 1 - gamma (0 + 1) (0 : R) - (1 + gamma (0 + 1) 0)
      * underflowCost exactly 0 0 [⟨some 32, 1, 0⟩] fun _ => 1
    rw [gamma_zero]
    generalize underflowCost exactly (0 : R) 0 [⟨some 32, 1, 0⟩] (fun _ => 1) = x at *
    clear weights
    grind
  refine ⟨?_, ?_, ?_, ?_⟩
  · rw [exact_32]
    show exp (32 : R) = exp (32 : R) + 0
    grind
  · rw [exact_32]
    rfl
  · rw [row_one]
    grind
  · rw [row_one, underflowLogSumExpFactor, weights]
    show (1 * exp (1 : R) + 0) / (1 + 0) / underflowLeft exactly 0 0 0 [⟨some 32, 1, 0⟩]
      ≤ exp (1 : R)
    have h := OrderedField.div_le_div_left (Std.le_of_lt (exp_pos (R := R) (1 : R))) h₀ least
    generalize underflowLeft exactly (0 : R) 0 0 [⟨some 32, 1, 0⟩] = x at *
    generalize (exp (1 : R) : R) = e at *
    clear weights least
    rw [show (1 * e + 0) / (1 + 0) = e by grind]
    grind

theorem logSumExpExact_refuted : ¬ PassWeightsStay (R := R) logSumExpExact := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have bound : logSumExpExact exactly fiveBits (0 : R) 0 unchanged 1 all query key 0 0 32 32 1
      (some 0) = exp (1 : R) - 1 := by
    rw [logSumExpExact, score_32 _ rfl]
    simp only
    rw [error_one]
    simp only [exactly, recomputedError, exponentError, gamma_zero, Semiring.zero_mul,
      Semiring.mul_zero, Semiring.add_zero, Semiring.mul_one]
  have h := claim exactly fiveBits 0 0 1 0 0 unchanged all query key nothing few
    (only (exp (1 : R) - 1)) 32 32 1 (exp (2 : R))
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 128; grind) ⟨Std.le_refl _, Std.le_refl _⟩
    (by show (0 : R) ≤ 1 / 32; grind) (Std.le_refl _) (Std.le_refl _)
    (by
      rw [factor_one _ rfl]
      show 10 * (numeral (0 + 4) * (0 : R)) + 4 * (1 - 1) ≤ 1
      rw [Semiring.mul_zero]
      grind) nofun h₀
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _, Std.le_refl _,
      Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _,
      Std.le_refl _, Std.le_refl _, Std.le_refl _⟩
    ⟨rfl, rfl, rfl, rfl, rfl⟩
    (by rw [show exactly.unit = (0 : R) from rfl, Semiring.mul_zero]; exact h₀)
    (by rw [show exactly.unit = (0 : R) from rfl, Semiring.mul_zero]; exact h₀)
    (by
      show (1 + 0) * ((1 + 0) ^ 5 * (numeral 5 * 0)) + 0 ≤ (0 : R)
      rw [Semiring.mul_zero, Semiring.mul_zero, Semiring.mul_zero]
      grind)
    ⟨fun _ => Std.le_of_lt h₀, fun _ => Std.le_of_lt h₀, fun _ => by
      have := exp_lt (R := R) (0 : R) 1 h₀
      rw [exp_zero] at this
      show (0 : R) ≤ exp (1 : R) - 1
      generalize (exp (1 : R) : R) = e at *
      clear claim bound
      grind⟩
    rfl bounds_32
    { different := Option.some.inj
      exact := bounds_32.exact
      masked := fun {j} hj => by
        obtain rfl : j = 0 := Subsingleton.elim _ _
        rw [score_32 _ rfl] at hj
        nomatch hj
      seen := fun {j s} hs => by
        obtain rfl : j = 0 := Subsingleton.elim _ _
        rw [score_32 _ rfl] at hs
        obtain rfl := Option.some.inj hs
        show (1 : R) = exp (32 - 32 : R)
        rw [show (32 : R) - 32 = 0 by grind, exp_zero] }
    (fun j => by
      obtain rfl : j = 0 := Subsingleton.elim _ _
      exact Proof.le_of_eq bound)
    (fun j σ hσ => by
      have hσ : σ = 1 := hσ
      subst hσ
      exact atMost_sub_self 1)
    ⟨exp (2 : R), 1, exp (2 : R), again_two, atMost_sub_self 1, by
      show AtMost (tinyOf (1 : R) 0) (exp (2 : R) - 1 * exp (2 : R) * 1)
      rw [Semiring.one_mul, Semiring.mul_one, Proof.tinyOf_pos (by grind)]
      exact atMost_sub_self _, ⟨exp (2 : R), rounded_refl (Std.le_refl _) _, atMost_sub_self _, id⟩⟩
  obtain ⟨x, t, y, ⟨z, hz, hx⟩, ht, hy, hw⟩ := h
  have hz : AtMost ((exp (1 : R) - 1) * 1 + tinyOf 1 0) (z - 1) := hz
  have hy : AtMost (tinyOf 1 0) (y - 1 * x * t) := hy
  have ht : AtMost 0 (t - 1) := ht
  rw [Proof.tinyOf_pos (by grind)] at hz hy
  have e₁ : x = z := same_of_below hx
  have e₂ : exp (2 : R) = y := same_of_below hw
  have e₃ : t = 1 := by
    obtain ⟨i₁, i₂⟩ := ht
    exact Std.le_antisymm (by grind) (by grind)
  have h₁ := exp_lt (R := R) (1 : R) 2 (by grind)
  obtain ⟨-, i₁⟩ := hz
  obtain ⟨-, i₂⟩ := hy
  subst e₁ e₃
  rw [← e₂] at i₂
  generalize (exp (1 : R) : R) = a at *
  generalize (exp (2 : R) : R) = b at *
  clear claim bound
  grind

end Attention.WrongVariants
