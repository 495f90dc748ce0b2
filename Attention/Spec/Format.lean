module

public import Attention.Spec.Tolerance

public section

/-! # Floating-point formats

Rounding to the nearest number of a binary format, of two that are as near to the one with an even
last bit, with gradual underflow: numbers below the normal ones have fewer bits and the same last
place. The whole part of a number is an argument: it is computed over fractions, and over the real
numbers it exists. A number past the largest is rounded as if there were larger ones;
`Format.Overflows` says of which this is so. Source: IEEE 754-2019, sections 3.3, 4.3.1 and 7.4. -/

namespace Attention.Spec

universe u

/-- A binary format. Its numbers are n · 2^e with |n| < 2^precision and least ≤ e, smaller in size
than 2^top. -/
structure Format where
  /-- How many bits a significand has, that which is not stored included. -/
  precision : Nat
  /-- The exponent of the smallest positive number. -/
  least : Int
  /-- The exponent of the first power of 2 that is too large. -/
  top : Int

/-- Double precision: 53 bits. -/
@[expose] def binary64 : Format := ⟨53, -1074, 1024⟩

/-- Single precision: 24 bits. -/
@[expose] def binary32 : Format := ⟨24, -149, 128⟩

/-- Half precision: 11 bits. -/
@[expose] def binary16 : Format := ⟨11, -24, 16⟩

/-- The upper half of a number of single precision: 8 bits. -/
@[expose] def bfloat16 : Format := ⟨8, -133, 128⟩

variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [OfNat R 2]
variable [IntCast R] [HPow R Int R] [Max R] [LE R] [DecidableLE R]

/-- The integer that is nearest to `x`; halfway between two the even one. -/
@[expose] def nearest (floor : R → Int) (x : R) : Int :=
  let n := floor x
  let twice := (x - (n : R)) + (x - (n : R))
  if twice ≤ 1 then if 1 ≤ twice then n + (n - 2 * (n / 2)) else n else n + 1

/-- The whole part of the logarithm of `x` in base 2, for x > 0: the e with 2^e ≤ x < 2^(e + 1). -/
@[expose] def exponent (floor : R → Int) (x : R) : Int :=
  if 1 ≤ x then ((floor x).toNat.log2 : Int)
  else
    let below := 0 - floor (0 - 1 / x) - 1
    0 - ((below.toNat.log2 : Int) + 1)

/-- The multiple of 2^e that is nearest to `x`. -/
@[expose] def roundAt (floor : R → Int) (e : Int) (x : R) : R :=
  (nearest floor (x / (2 : R) ^ e) : R) * (2 : R) ^ e

/-- `x` rounded to `precision` bits, whatever its size: no number is too small or too large. -/
@[expose] def roundBits (floor : R → Int) (precision : Nat) (x : R) : R :=
  if absolute x ≤ 0 then 0
  else roundAt floor (exponent floor (absolute x) - precision + 1) x

/-- The exponent of the last place of `x` in the format, for x ≠ 0. -/
@[expose] def Format.lastPlace (floor : R → Int) (f : Format) (x : R) : Int :=
  max (exponent floor (absolute x) - f.precision + 1) f.least

/-- `x` rounded to a number of the format. -/
@[expose] def Format.round (floor : R → Int) (f : Format) (x : R) : R :=
  if absolute x ≤ 0 then 0 else roundAt floor (f.lastPlace floor x) x

/-- `y` is a number of the format, or is past its largest one and has no more bits. -/
@[expose] def Format.IsNumber (f : Format) (y : R) : Prop :=
  ∃ n e : Int, n.natAbs < 2 ^ f.precision ∧ f.least ≤ e ∧ y = (n : R) * (2 : R) ^ e

variable (R) in
/-- The largest number of the format. -/
@[expose] def Format.largest (f : Format) : R :=
  (2 : R) ^ f.top - (2 : R) ^ (f.top - f.precision)

variable (R) in
/-- The smallest normal number: from here on a number has all bits. -/
@[expose] def Format.smallestNormal (f : Format) : R := (2 : R) ^ (f.least + f.precision - 1)

/-- Whether `x` is rounded to infinity. -/
@[expose] def Format.Overflows (floor : R → Int) (f : Format) (x : R) : Prop :=
  (2 : R) ^ f.top ≤ absolute (f.round floor x)

end Attention.Spec
