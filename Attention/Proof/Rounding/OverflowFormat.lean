module

public import Attention.Model.RoundedOverflow
public import Attention.Proof.Rounding.Format
import Attention.Proof.Rounding.Sum

public section

/-! # Formats have a largest number -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {floor : R → Int} {f : Format} {x a b : R} {y : Option R}

attribute [local instance] Ring.intCast Semiring.natCast

/-- **format-limited**: rounding to a format, where a number that overflows may become anything, is
an operation with the largest number of the format: with a relative error from its smallest normal
number on, and in sums and differences of its numbers; and as weights are stored. -/
theorem limited_format (hf : IsFloor floor) (hp : 0 < f.precision)
    (hr : f.least + f.precision ≤ f.top) :
    ((¬ f.Overflows floor x → y = some (f.round floor x)) →
      Limited (f.largest R) (Stored ((2 : R) ^ (-(f.precision : Int))) ((2 : R) ^ (f.least - 1)))
        x y ∧
      (f.smallestNormal R ≤ absolute x →
        Limited (f.largest R) (Rounded ((2 : R) ^ (-(f.precision : Int)))) x y)) ∧
    (f.IsNumber a → f.IsNumber b →
      (¬ f.Overflows floor (a + b) → y = some (f.round floor (a + b))) →
      Limited (f.largest R) (Rounded ((2 : R) ^ (-(f.precision : Int)))) (a + b) y) ∧
    (f.IsNumber a → f.IsNumber b →
      (¬ f.Overflows floor (a - b) → y = some (f.round floor (a - b))) →
      Limited (f.largest R) (Rounded ((2 : R) ^ (-(f.precision : Int)))) (a - b) y) := by
  have finite : ∀ z : R, AtMost (f.largest R) z → ¬ f.Overflows floor z := fun z hz =>
    not_overflows hf hp hr (absolute_le hz)
  refine ⟨fun h => ⟨fun hx => ⟨_, h (finite x hx), round_stored hf hp x⟩, fun hn hx =>
    ⟨_, h (finite x hx), ?_⟩⟩, fun ha hb h hx => ⟨_, h (finite _ hx), (round_sums hf ha hb).1⟩,
    fun ha hb h hx => ⟨_, h (finite _ hx), (round_sums hf ha hb).2⟩⟩
  rw [round_eq_roundBits hf hn]
  exact roundBits_rounded hf _ x

end Attention.Proof
