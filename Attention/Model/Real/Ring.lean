module

public import Attention.Model.Real.Cauchy

public section

/-! # The real numbers, and that they are a commutative ring

Sums and products are those of the sequences, member by member; so are the laws. -/

namespace Attention.Model

open Lean.Grind

/-- A Cauchy sequence of rational numbers. -/
structure CauchySeq where
  /-- The members. -/
  seq : Nat → Rat
  /-- They come as close to each other as one likes. -/
  isCauchy : IsCauchy seq

/-- Two sequences stand for the same number if they are close. -/
instance CauchySeq.setoid : Setoid CauchySeq where
  r f g := Close f.seq g.seq
  iseqv :=
    { refl := fun _ => Close.of_eq fun _ => rfl
      symm := Close.symm
      trans := fun h₁ h₂ => (h₁.below.trans h₂.below).close (h₂.symm.below.trans h₁.symm.below) }

/-- A real number: Cauchy sequences that are close to each other. -/
@[expose] def Real : Type := Quotient CauchySeq.setoid

namespace Real

/-- The number that a Cauchy sequence stands for. -/
@[expose] def mk (f : Nat → Rat) (hf : IsCauchy f) : Real := Quotient.mk _ ⟨f, hf⟩

/-- Every number has a sequence. -/
theorem exists_mk (x : Real) : ∃ f hf, x = mk f hf :=
  Quotient.inductionOn x fun f => ⟨f.seq, f.isCauchy, rfl⟩

/-- Two sequences stand for the same number if and only if they are close. -/
theorem mk_eq {f g : Nat → Rat} {hf : IsCauchy f} {hg : IsCauchy g} :
    mk f hf = mk g hg ↔ Close f g := ⟨Quotient.exact, fun h => Quotient.sound h⟩

/-- A rational number as a real one. -/
@[expose] def ofRat (q : Rat) : Real := mk (fun _ => q) (.const q)

/-- The sum. -/
def add : Real → Real → Real :=
  Quotient.lift₂ (fun f g => mk _ (f.isCauchy.add g.isCauchy)) fun _ _ _ _ h h' =>
    Quotient.sound (h.add h')

/-- The negative. -/
def neg : Real → Real :=
  Quotient.lift (fun f => mk _ f.isCauchy.neg) fun _ _ h => Quotient.sound h.neg

/-- The product. -/
def mul : Real → Real → Real :=
  Quotient.lift₂ (fun f g => mk _ (f.isCauchy.mul g.isCauchy)) fun f _ _ g' h h' =>
    Quotient.sound (h.mul f.isCauchy g'.isCauchy h')

/-- A power. -/
def pow (x : Real) : Nat → Real
  | 0 => ofRat 1
  | n + 1 => mul (pow x n) x

instance : Add Real := ⟨add⟩
instance : Mul Real := ⟨mul⟩
instance : Neg Real := ⟨neg⟩
instance : Sub Real := ⟨fun x y => x + -y⟩
instance : NatCast Real := ⟨fun n => ofRat n⟩
instance : IntCast Real := ⟨fun n => ofRat n⟩
instance (n : Nat) : OfNat Real n := ⟨ofRat n⟩
instance : SMul Nat Real := ⟨fun n x => n * x⟩
instance : SMul Int Real := ⟨fun n x => n * x⟩
instance : HPow Real Nat Real := ⟨pow⟩

section
variable {f g : Nat → Rat} (hf : IsCauchy f) (hg : IsCauchy g)

/-- The sum of two sequences. -/
theorem mk_add : mk f hf + mk g hg = mk (fun n => f n + g n) (hf.add hg) := (rfl)

/-- The product of two sequences. -/
theorem mk_mul : mk f hf * mk g hg = mk (fun n => f n * g n) (hf.mul hg) := (rfl)

/-- The negative of a sequence. -/
theorem mk_neg : -mk f hf = mk (fun n => -f n) hf.neg := (rfl)

/-- The numeral 0. -/
theorem zero_eq : (0 : Real) = ofRat 0 := (rfl)

/-- The numeral 1. -/
theorem one_eq : (1 : Real) = ofRat 1 := (rfl)

end

/-- Two rationals are added as reals are. -/
theorem ofRat_add (p q : Rat) : ofRat (p + q) = ofRat p + ofRat q := (rfl)

/-- Two rationals are multiplied as reals are. -/
theorem ofRat_mul (p q : Rat) : ofRat (p * q) = ofRat p * ofRat q := (rfl)

/-- The negative of a rational. -/
theorem ofRat_neg (q : Rat) : ofRat (-q) = -ofRat q := (rfl)

private theorem mk_congr {f g : Nat → Rat} {hf : IsCauchy f} {hg : IsCauchy g}
    (h : ∀ n, f n = g n) : mk f hf = mk g hg := mk_eq.mpr (.of_eq h)

private theorem mul_comm (x y : Real) : x * y = y * x := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  obtain ⟨g, hg, rfl⟩ := exists_mk y
  rw [mk_mul, mk_mul]
  exact mk_congr fun n => by grind

private theorem left_distrib (x y z : Real) : x * (y + z) = x * y + x * z := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  obtain ⟨g, hg, rfl⟩ := exists_mk y
  obtain ⟨h, hh, rfl⟩ := exists_mk z
  simp only [mk_add, mk_mul]
  exact mk_congr fun n => by grind

private theorem mul_one (x : Real) : x * 1 = x := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  rw [one_eq, ofRat, mk_mul]
  exact mk_congr fun n => by grind

private theorem mul_zero (x : Real) : x * 0 = 0 := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  rw [zero_eq, ofRat, mk_mul]
  exact mk_congr fun n => by grind

/-- The real numbers are a commutative ring. -/
instance : CommRing Real where
  add_zero x := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    rw [zero_eq, ofRat, mk_add]
    exact mk_congr fun n => by grind
  add_comm x y := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    obtain ⟨g, hg, rfl⟩ := exists_mk y
    rw [mk_add, mk_add]
    exact mk_congr fun n => by grind
  add_assoc x y z := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    obtain ⟨g, hg, rfl⟩ := exists_mk y
    obtain ⟨h, hh, rfl⟩ := exists_mk z
    simp only [mk_add]
    exact mk_congr fun n => by grind
  mul_assoc x y z := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    obtain ⟨g, hg, rfl⟩ := exists_mk y
    obtain ⟨h, hh, rfl⟩ := exists_mk z
    simp only [mk_mul]
    exact mk_congr fun n => by grind
  mul_comm := by exact mul_comm
  mul_one := by exact mul_one
  one_mul x := by rw [mul_comm, mul_one]
  left_distrib := by exact left_distrib
  right_distrib x y z := by rw [mul_comm, left_distrib, mul_comm z, mul_comm z]
  mul_zero := by exact mul_zero
  zero_mul x := by rw [mul_comm, mul_zero]
  pow_zero _ := by rfl
  pow_succ _ _ := by rfl
  ofNat_succ n := by
    show ofRat ((n + 1 : Nat) : Rat) = ofRat n + ofRat 1
    rw [← ofRat_add]
    congr 1
    grind
  ofNat_eq_natCast _ := by rfl
  nsmul_eq_natCast_mul _ _ := by rfl
  neg_add_cancel x := by
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    rw [zero_eq, ofRat, mk_neg, mk_add]
    exact mk_congr fun n => by grind
  sub_eq_add_neg _ _ := by rfl
  neg_zsmul n x := by
    show ofRat ((-n : Int) : Rat) * x = -(ofRat n * x)
    obtain ⟨f, hf, rfl⟩ := exists_mk x
    rw [ofRat, ofRat, mk_mul, mk_mul, mk_neg]
    exact mk_congr fun n => by grind
  zsmul_natCast_eq_nsmul n x := by
    show ofRat ((n : Int) : Rat) * x = ofRat (n : Rat) * x
    rw [Rat.intCast_natCast]
  intCast_ofNat n := by
    show ofRat ((n : Int) : Rat) = ofRat (n : Rat)
    rw [Rat.intCast_natCast]
  intCast_neg n := by
    show ofRat ((-n : Int) : Rat) = -ofRat n
    rw [← ofRat_neg, Rat.intCast_neg]

/-- A difference of rationals. -/
theorem ofRat_sub (p q : Rat) : ofRat (p - q) = ofRat p - ofRat q := by
  rw [Rat.sub_eq_add_neg, ofRat_add, ofRat_neg, Ring.sub_eq_add_neg]

/-- A natural number is the rational one. -/
theorem natCast_eq (n : Nat) : (n : Real) = ofRat n := (rfl)

/-- The difference of two sequences. -/
theorem mk_sub {f g : Nat → Rat} (hf : IsCauchy f) (hg : IsCauchy g) :
    mk f hf - mk g hg = mk (fun n => f n + -g n) (hf.add hg.neg) := (rfl)

end Real

end Attention.Model
