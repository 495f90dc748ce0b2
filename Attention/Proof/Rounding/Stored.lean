module

public import Attention.Proof.Rounding.Attention
public import Attention.Proof.Rounding.Format

public section

/-! # Results stored in a format

What `rounded_output_matrices` says of a result that is stored with a relative error, of one that is
rounded to the nearest number of a format: where that is below the normal ones, the error of the
smallest ones comes on top. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {q_len kv_len d d_v : Nat}

attribute [local instance] Ring.intCast Semiring.natCast

/-- **format-output**: the result of a function that computes its scores and parts with relative
errors, rounded to the nearest number of a format, is within what `storedTolerance` has for a format
of that precision and half of the format's smallest positive number, however small it is. -/
theorem format_output_matrices {floor : R → Int} (hfloor : IsFloor floor) (format : Format)
    {p : Precision R} (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) {f : ScoreFormats R} (hf : PreciseFormats f) {additions : Nat}
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {scale σ₁ σ₂ σ : R} (hσ : ScaledBy p f scale σ₁ σ₂ σ) {mask : Mask q_len kv_len}
    {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
    {t : Fin d_v} {cols : List (Fin kv_len)} (hcols : cols.Perm (List.finRange kv_len))
    {computed : Fin kv_len → R}
    (scores : ∀ j, mask i j → ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] (computed j))
    {m : R} {part : Part R} (run : Run p m part)
    (keys : part.keys = computedKeys p f additions scale mask Q K V i t cols computed)
    (attained : ∃ j, mask i j ∧ computed j = m)
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
      (boundedKeys p f additions scale mask Q K V i t cols)) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (storedTolerance p ((2 : R) ^ (-(format.precision : Int))) roundings rescalings
        negligible (boundedKeys p f additions scale mask Q K V i t cols)
        + (2 : R) ^ (format.least - 1))
      (format.round floor o - (attention scale mask.toScoreMod Q K V)[i][t]) := by
  obtain ⟨θ, δ, hθ, hδ, -, -, e⟩ := round_error (f := format) hfloor o
  have := (rounded_output_matrices hp hu hf hd hσ hcols scores run keys attained hr ha third hN hD
    result
    (o' := o * (1 + θ)) ⟨θ, hθ, rfl⟩ negligible).add hδ
  rw [e]
  generalize (attention scale mask.toScoreMod Q K V)[i][t] = exact at *
  have e₁ : o * (1 + θ) - exact + δ = o * (1 + θ) + δ - exact := by grind
  rwa [e₁] at this

end Attention.Proof
