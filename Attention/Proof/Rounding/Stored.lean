module

public import Attention.Proof.Rounding.Attention
public import Attention.Proof.Rounding.Format

public section

/-! # Results stored in a format

What `rounded_output_matrices` says of a result that is stored, of one that is rounded to the
nearest number of a format. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {q_len kv_len d d_v : Nat}

attribute [local instance] Ring.intCast Semiring.natCast

/-- **format-output**: the result of a function that computes its scores and parts with relative
errors, rounded to the nearest number of a format, however small it is, is within what
`storedTolerance` has for a format of that precision and half of its smallest positive number. -/
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
    AtMost (storedTolerance p ((2 : R) ^ (-(format.precision : Int)))
        ((2 : R) ^ (format.least - 1)) roundings rescalings negligible
        (boundedKeys p f additions scale mask Q K V i t cols))
      (format.round floor o - (attention scale mask.toScoreMod Q K V)[i][t]) :=
  rounded_output_matrices hp hu hf hd hσ hcols scores run keys attained hr ha third hN hD result
    (round_storedNear hfloor o) negligible

end Attention.Proof
