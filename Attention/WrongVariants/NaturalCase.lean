module

public import Attention.Vectors.NaturalSound

public section

/-! # Wrong variants of the bounds that are written down -/

namespace Attention.WrongVariants

open Spec Model Vectors

/-- The hypothesis of `natural-vectors-sound` about the bounds that are written of an interval, of
any way to write them: what lies in the interval lies between them. -/
abbrev SoundBounds (bounds : Interval working → Except String (Int × Int)) : Prop :=
  ∀ (I : Interval working) (lo hi : Int) (x : Rat), bounds I = .ok (lo, hi) → I.Contains x →
    BoundContains (lo, hi) x

/-- Positive control: the program's. -/
theorem toBounds_soundBounds : SoundBounds toBounds := fun _ _ _ _ h hx => contains_toBounds h hx

/-- Both bounds rounded down. -/
@[expose] def toBoundsDown : Interval working → Except String (Int × Int)
  | .all => .error "the precision does not suffice for a bound"
  | .between lo hi =>
    let unit : Int := 2 ^ (working - published)
    .ok (lo / unit, hi / unit)

theorem toBoundsDown_refuted : ¬ SoundBounds toBoundsDown := fun h =>
  absurd (h (.between 1 1) 0 0 (mkRat 1 (2 ^ working))
    (congrArg Except.ok (show ((1 : Int) / 2 ^ (working - published),
      (1 : Int) / 2 ^ (working - published)) = (0, 0) by decide +kernel))
    ⟨by decide +kernel, by decide +kernel⟩).2 (by decide +kernel)

end Attention.WrongVariants
