module

public import Attention.Model.UnderflowScores
public import Attention.Proof.Rounding.Softcap
import Attention.Proof.Rounding.UnderflowScores

public section

/-! # Scores that a backward pass computes again, where their products underflow

They are scores of which nothing underflows in the accumulator, in the formats of `tiny-score`: so
are their softcap, its slope and the number that is added.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {p : Precision R} {f : ScoreFormats R}

/-- **tiny-capped-scores**: where products and quotients in the accumulator may be below its normal
numbers, the score of a query and a key that a backward pass computes again is off by no more than
its bound in the formats that count these, after softcap and a number that is added, and the slope
of that softcap by no more than its own. -/
theorem tiny_capped_score (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    {additions : Nat} {scale ν : R} (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hu' : p.unit ≤ 1 / 128) (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores)
    (hf₁ : f.scores ≤ 1 / 32) (hν : 0 ≤ ν)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    {change : ScoreChange R} (hcap : ∀ cap, change.cap = some cap → 0 < cap) {d : Nat}
    {product : Vec R d → Vec R d → R → Prop} (products : TinyProducts p f ν additions scale product)
    {q k : Vec R d} {x y : R} (score : product q k x) (changed : TinyChange p f ν change x y) :
    let g := underflowFormats p f ν additions d scale (change.cap.getD 0)
    let s := scale * Vec.dot q k
    let error := scoreError p g additions scale (magnitude q k)
      (operandUnderflow p g additions q k) s (absolute s)
    AtMost (cappedChangeError p g change s error) (y - change.apply s) ∧
      ∀ η cap z, change.cap = some cap → ComputedSlope p.unit η cap x z →
        AtMost (cappedSlopeError p.unit η cap s error)
          (z - (1 - tanh (s / cap) * tanh (s / cap))) := by
  intro g s error
  have hm := score_depth hp hf hd
  have hc : 0 ≤ change.cap.getD 0 := by
    cases e : change.cap with
    | none => exact Std.le_refl _
    | some cap => exact Std.le_of_lt (hcap cap e)
  obtain ⟨σ₁, σ₂, σ, hσ, computes⟩ := tiny_products (cap := change.cap.getD 0) hp hu hm hν hc
    products
  exact rounded_capped_score (f := g) archimedean hp hu hu' ⟨hf.operands, hf.operandsTiny⟩ hf₀ hf₁
    hd hσ hcap (computes q k x score)
    (tiny_change archimedean hp hu hm hν hc (fun cap e => ⟨hcap cap e, by rw [e]; rfl⟩) changed)

end Attention.Proof
