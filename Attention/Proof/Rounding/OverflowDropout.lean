module

public import Attention.Proof.Rounding.DroppedMatrices
public import Attention.Proof.Rounding.OverflowChanged

public section

/-! # Attention with dropout that overflows nowhere, from matrices to the tolerance -/

namespace Attention.Proof

open Spec Model Overflow Lean.Grind

universe u

attribute [local instance] Ring.intCast Semiring.natCast

variable {R : Type u} [OrderedField R]

/-- The factor of a weight that is kept. -/
private theorem limitedFactor {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
    {q largest : R} (hq : 0 ≤ q) (hq₁ : q * (1 + p.accumulation) < 1) (hone : 1 ≤ largest)
    (factor : factorSize p q ≤ largest) {q' c z : Option R}
    (h₁ : Limited largest (Rounded p.accumulation) q q')
    (h₂ : ∀ a ∈ q', Limited largest (Rounded p.accumulation) (1 - a) c)
    (h₃ : ∀ a ∈ c, a ≠ 0 → LimitedTimes largest p.accumulation 4 (1 / a) z) :
    ∃ q₀ c₀ z₀, q' = some q₀ ∧ c = some c₀ ∧ z = some z₀ ∧ Rounded p.accumulation q q₀ ∧
      Rounded p.accumulation (1 - q₀) c₀ ∧ RoundedTimes p.accumulation 4 (1 / c₀) z₀ ∧
      AtMost (factorSize p q) z₀ := by
  have one := OrderedRing.zero_lt_one (R := R)
  have hu := hp.accumulation
  simp only [factorSize, power_eq] at factor ⊢
  generalize p.accumulation = u at *
  have hqu := OrderedRing.mul_nonneg hq hu
  obtain ⟨q'', rfl, r₁⟩ := h₁ ⟨by grind, by grind⟩
  have b₁ : 0 ≤ q'' ∧ q'' ≤ q * (1 + u) := by
    obtain ⟨θ, ⟨hθ, hθ'⟩, rfl⟩ := r₁
    have k₁ := OrderedRing.mul_nonneg hq (b := 1 + θ) (by grind)
    have k₂ := OrderedRing.mul_le_mul_of_nonneg_left hθ' hq
    exact ⟨k₁, by grind⟩
  obtain ⟨c', rfl, r₂⟩ := h₂ q'' rfl ⟨by grind, by grind⟩
  have low : 0 < (1 - q * (1 + u)) * (1 - u) := OrderedRing.mul_pos (by grind) (by grind)
  have b₂ : (1 - q * (1 + u)) * (1 - u) ≤ c' := by
    obtain ⟨θ, ⟨hθ, hθ'⟩, rfl⟩ := r₂
    have k₁ := OrderedRing.mul_le_mul_of_nonneg_right (a := 1 - q * (1 + u)) (b := 1 - q'')
      (by grind) (c := 1 - u) (by grind)
    have k₂ := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 - u) (b := 1 + θ) (by grind)
      (c := 1 - q'') (by grind)
    exact Std.le_trans k₁ k₂
  generalize (1 - q * (1 + u)) * (1 - u) = lo at *
  have pos : 0 < c' := Std.lt_of_lt_of_le low b₂
  have b₃ : AtMost (1 / lo) (1 / c') := by
    have k₁ := OrderedField.div_nonneg (Std.le_of_lt one) pos
    have k₂ := OrderedField.div_le_div_left (a := 1) (Std.le_of_lt one) low b₂
    exact ⟨by grind, k₂⟩
  obtain ⟨z', rfl, r₃, b₄⟩ := limitedTimes hu (h₃ c' rfl (by grind)) b₃ factor
  exact ⟨q'', c', z', rfl, rfl, rfl, r₁, r₂, r₃, b₄⟩

/-- **dropped-finite**: a value times its factor of dropout is a number, and one that a function
without a largest number may compute, where the factor and the product are in the range. -/
theorem limitedDropout {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1) {q largest : R}
    (hq : 0 ≤ q) (hq₁ : q * (1 + p.accumulation) < 1) (hone : 1 ≤ largest)
    (factor : factorSize p q ≤ largest) {keep : Bool} {v : R}
    (product : droppedSize p q keep v ≤ largest) {y : Option R}
    (h : LimitedDropout largest p.accumulation q keep v y) :
    ∃ z, y = some z ∧ ComputedDropout p.accumulation q keep v z ∧
      AtMost (droppedSize p q keep v) z := by
  have hu := hp.accumulation
  cases keep with
  | false => exact ⟨0, h, rfl, .zero (Std.le_refl _)⟩
  | true =>
    obtain ⟨q', c, z, h₁, h₂, h₃, h₄⟩ := h
    obtain ⟨q₀, c₀, z₀, rfl, rfl, rfl, r₁, r₂, r₃, b₁⟩ := limitedFactor hp ha hq hq₁ hone factor
      h₁ h₂ h₃
    simp only [droppedSize, ↓reduceIte] at product ⊢
    have b₂ := b₁.mul (atMost_absolute v)
    obtain ⟨y₀, rfl, r₄, b₃⟩ := limited_rounded (h₄ z₀ rfl) b₂
      (Std.le_trans (le_one_add_mul hu b₂.nonneg) product)
    exact ⟨y₀, rfl, ⟨q₀, c₀, z₀, r₁, r₂, r₃, r₄⟩, b₃⟩

private theorem limitedTimes_of {largest u x z : R} {k : Nat} (h : RoundedTimes u k x z) :
    LimitedTimes largest u k x (some z) := by
  induction k generalizing z with
  | zero => exact congrArg some h
  | succ k ih =>
    obtain ⟨w, h₁, h₂⟩ := h
    refine ⟨some w, ih h₁, fun a ha _ => ?_⟩
    obtain rfl := Option.some.inj ha
    exact ⟨z, rfl, h₂⟩

/-- **dropped-weight-finite**: a function that multiplies a weight by its factor of dropout computes
what one may that multiplies the value by it, where these products fit. -/
theorem limitedDroppedWeight {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
    {largest : Largest R} {rescalings : Nat} {q : R} (hq : 0 ≤ q) {keep : Bool} {w v : R}
    (fits : droppedWeightFits p largest rescalings q keep v)
    (hw : AtMost (weightSize p rescalings) w) {y : Option R}
    (h : LimitedDroppedWeight largest p.accumulation q keep w v y) :
    ∃ used, LimitedDropout largest.accumulator p.accumulation q keep v (some used) ∧
      Limited largest.accumulator (Rounded p.accumulation) (w * used) y ∧ y ≠ none := by
  have hu := hp.accumulation
  simp only [droppedWeightFits, Bool.and_eq_true, Bool.not_eq_true', decide_eq_false_iff_not,
    decide_eq_true_eq] at fits
  obtain ⟨⟨⟨⟨⟨f₁, f₂⟩, f₃⟩, f₄⟩, f₅⟩, f₆⟩ := fits
  cases keep with
  | false =>
    obtain rfl : y = some 0 := h
    refine ⟨0, rfl, fun _ => ⟨0, rfl, 0, .zero hu, ?_⟩, nofun⟩
    grind
  | true =>
    obtain ⟨q', c, z, x, h₁, h₂, h₃, h₄, h₅⟩ := h
    obtain ⟨q₀, c₀, z₀, rfl, rfl, rfl, r₁, r₂, r₃, b₁⟩ := limitedFactor hp ha hq (by grind) f₂ f₃
      h₁ h₂ h₃
    have b₂ := hw.mul b₁
    obtain ⟨x₀, rfl, r₄, b₃⟩ := limited_rounded (h₄ z₀ rfl) b₂ f₅
    have b₄ := b₃.mul (atMost_absolute v)
    have e : (1 + p.accumulation) * (weightSize p rescalings * factorSize p q) * absolute v
        = weightSize p rescalings * droppedSize p q true v := by
      simp only [droppedSize, ↓reduceIte]
      grind
    rw [e] at b₄
    obtain ⟨y₀, rfl, r₅, -⟩ := limited_rounded (h₅ x₀ rfl) b₄ f₆
    obtain ⟨θ, hθ, rfl⟩ := r₄
    refine ⟨z₀ * v * (1 + θ), ?_, fun _ => ⟨y₀, rfl, ?_⟩, nofun⟩
    · exact ⟨some q₀, some c₀, some z₀, fun _ => ⟨q₀, rfl, r₁⟩, fun a ha _ => by
        obtain rfl := Option.some.inj ha
        exact ⟨c₀, rfl, r₂⟩, fun a ha _ => by
        obtain rfl := Option.some.inj ha
        exact limitedTimes_of r₃, fun a ha _ => by
        obtain rfl := Option.some.inj ha
        exact ⟨_, rfl, θ, hθ, rfl⟩⟩
    · obtain ⟨θ', hθ', rfl⟩ := r₅
      exact ⟨θ', hθ', by grind⟩

variable [NaturalExp R] {q_len kv_len d d_v : Nat}
variable {p : Precision R} {f : ScoreFormats R} {largest : Largest R}
variable {additions roundings rescalings : Nat} {scale σ₁ σ₂ σ : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
variable {t : Fin d_v} {cols : List (Option (Fin kv_len))}
variable {computed : Option (Fin kv_len) → Option R}

/-- **dropout-overflow-excluded**: so it is with dropout, of a function that multiplies values by
their factors, the sink's being 0: the products are numbers, and so is the output. -/
theorem limited_dropout_matrices {floor : R → Int} (hfloor : IsFloor floor) (format : Format)
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hstored : p.stored < 1)
    (htiny : p.storedTiny < 1 - p.exponential) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hf₂ : 0 ≤ f.scoresTiny)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    {q z : R} (hq : 0 ≤ q) (hz : 0 ≤ z) {keep : Mask q_len kv_len}
    (hkeep : ∀ j, dropoutFactor q (keep i j) ≤ z)
    (fits : changes.droppedFits p f largest additions roundings rescalings σ₁ σ₂ σ mask Q K V q
      keep i t)
    (hformat : 0 < format.precision ∧ format.least + format.precision ≤ format.top ∧
      largest.output ≤ format.largest R)
    (scores : LimitedScores p f largest additions σ₁ σ₂ σ changes mask Q K i computed)
    {used : Option (Fin kv_len) → Option R} (sink : used none = some 0)
    (factors : ∀ j, LimitedDropout largest.accumulator p.accumulation q (keep i j) V[j][t]
      (used (some j)))
    (hN : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1)
    (hD : 2 * numeral roundings * p.unit < 1) (negligible : R) :
    (∀ col, changes.sees mask i col → computed col ≠ none) ∧ (∀ col, used col ≠ none) ∧
      ∀ {m : R} {part : LimitedPart R},
        LimitedRun p largest (changes.rowSize p f additions σ₁ σ₂ σ mask Q K i) m part →
        part.keys = computedChangedKeys p f additions changes false scale mask Q K V i t cols
          (fun col => (computed col).getD 0) (fun col => (used col).getD 0) →
        (∃ col, changes.sees mask i col ∧ computed col = some m) → part.rescalings ≤ rescalings →
        part.additions + part.rescalings ≤ roundings →
        (p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
          (changedKeys p f additions changes false scale mask Q K
            (droppedValues V (.dropout q keep) i) i t cols)) ≤ 1) →
        ∀ {o : Option R}, LimitedQuotient p largest part o →
          ∃ y, o = some y ∧ ¬ format.Overflows floor y ∧
            AtMost (storedTolerance (moreRoundings p (roundings + 6) (z + numeral 5))
                ((2 : R) ^ (-(format.precision : Int))) ((2 : R) ^ (format.least - 1)) roundings
                rescalings negligible (changedKeys p f additions changes false scale mask Q K
                  (droppedValues V (.dropout q keep) i) i t cols))
              (format.round floor y
                - (changes.attentionDropout scale mask Q K V (.dropout q keep))[i][t]) := by
  have one := OrderedRing.zero_lt_one (R := R)
  have small : p.accumulation < 1 := by
    have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (roundings + 5)) hp.accumulation
    have h₂ := OrderedRing.mul_nonneg (a := z + numeral 5) (b := p.accumulation)
      (by have := numeral_nonneg (R := R) 5; grind) hp.accumulation
    rw [numeral_succ] at hN
    generalize z + numeral 5 = x at *
    grind
  simp only [ScoreChanges.droppedFits, Bool.and_eq_true, Bool.not_eq_true', decide_eq_true_eq,
    decide_eq_false_iff_not, List.all_eq_true] at fits
  obtain ⟨⟨⟨f₁, f₂⟩, f₃⟩, f₄⟩ := fits
  have hone : 1 ≤ largest.accumulator := by
    have h := f₄
    simp only [ScoreChanges.rowFits, sumsFit, Bool.and_eq_true, decide_eq_true_eq] at h
    have h₁ := (le_of_le_smaller h.2.1.1.1.2).1
    have h₂ := (one_add_le_weightSize hp rescalings).1
    have := hp.exponential
    grind
  have below : q * (1 + p.accumulation) < 1 := by grind
  have number : ∀ j, ∃ x, used (some j) = some x ∧
      ComputedDropout p.accumulation q (keep i j) V[j][t] x ∧
      AtMost (droppedSize p q (keep i j) V[j][t]) x := fun j =>
    limitedDropout hp small hq below hone f₂ (f₃ j (List.mem_finRange j)) (factors j)
  obtain ⟨h₁, h₂, h₃⟩ := limitedRow (scale := scale) (V := V) (t := t) (cols := cols) hp hu small
    hstored htiny hf hf₀ hf₂ hcap f₄ scores
  refine ⟨fun col h e => ?_, fun col => ?_,
    fun {m part} run keys attained hr ha third o quotient => ?_⟩
  · obtain ⟨s, e', -⟩ := h₁ col h
    rw [e] at e'
    cases e'
  · cases col with
    | none => simp [sink]
    | some j =>
      obtain ⟨x, e, -⟩ := number j
      simp [e]
  obtain ⟨l, o', -, -, h₄, h₅, -, -, h₆⟩ := h₃ (fun col _ => by
    cases col with
    | none =>
      simp only [sink, Option.getD_some]
      exact .zero (absolute_nonneg _)
    | some j =>
      obtain ⟨x, e, -, h⟩ := number j
      simp only [e, Option.getD_some]
      exact h.mono (atMost_absolute _).2) hcols run keys attained hr ha
  obtain ⟨y, rfl, h₇, h₈⟩ := h₆ o quotient
  refine ⟨y, rfl, not_overflows hfloor hformat.1 hformat.2.1
    (Std.le_trans (absolute_le h₈) hformat.2.2), ?_⟩
  have hq₁ : q < 1 := by
    have := OrderedRing.mul_nonneg hq hp.accumulation
    grind
  exact rounded_dropout_matrices archimedean hp hu hu' hf hf₀ hf₁ hd hσ hcap hcols h₂ hq hq₁ hz
    (used := fun col => (used col).getD 0) (by simp only [sink, Option.getD_some])
    (fun j => ⟨hkeep j, by
      obtain ⟨x, e, h, -⟩ := number j
      simp only [e, Option.getD_some]
      exact h⟩) h₄ keys h₅ hr ha third hN hD h₇ (round_storedNear hfloor y) negligible

end Attention.Proof
