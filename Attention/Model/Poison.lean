module

public import Attention.Algebra.Exponential

public section

/-! # Numbers with a poison

A program for floating-point numbers makes a NaN of finite numbers if it takes the exponential of a
number that is too large, or divides by 0, and goes on with the outcome. Here such numbers are any
types with operations: `Clean` says which numbers of theirs are proper ones, and that the operations
on these are what they should be, but for the exponential above a bound and the quotient by 0. Of
these, and of whatever else is computed with a number that is not proper, nothing is said: 0 times
it, too, may be anything. `Poisoned` is an example of such numbers: one more number, which stays
whatever is done with it. -/

namespace Attention.Model

universe u v w x

/-- The scores `s`, as `σ s`, and the values `a`, as `ρ a`, are proper numbers among those of two
types which also have others. On proper numbers the operations are what they should be, but for
exponentials of numbers above `bound` and quotients by 0, which may be anything. -/
structure Clean {S : Type u} {R : Type v} {S' : Type w} {R' : Type x}
    [OrderedCommRing S] [OrderedField R] [Exponential S R]
    [Add S'] [Sub S'] [Mul S'] [OfNat S' 0] [LE S']
    [Add R'] [Sub R'] [Mul R'] [Div R'] [OfNat R' 0] [OfNat R' 1] [Exp S' R']
    (bound : S) (σ : S → S') (ρ : R → R') : Prop where
  /-- 0 is a proper score. -/
  score_zero : σ 0 = 0
  /-- A sum of scores. -/
  score_add : ∀ a b, σ (a + b) = σ a + σ b
  /-- A difference of scores. -/
  score_sub : ∀ a b, σ (a - b) = σ a - σ b
  /-- A product of scores. -/
  score_mul : ∀ a b, σ (a * b) = σ a * σ b
  /-- Proper scores are compared as they should be. -/
  score_le : ∀ a b, σ a ≤ σ b ↔ a ≤ b
  /-- 0 is a proper value. -/
  zero : ρ 0 = 0
  /-- 1 is a proper value. -/
  one : ρ 1 = 1
  /-- A sum of values. -/
  add : ∀ a b, ρ (a + b) = ρ a + ρ b
  /-- A difference of values. -/
  sub : ∀ a b, ρ (a - b) = ρ a - ρ b
  /-- A product of values. -/
  mul : ∀ a b, ρ (a * b) = ρ a * ρ b
  /-- A quotient, unless it is by 0. -/
  div : ∀ a b, b ≠ 0 → ρ (a / b) = ρ a / ρ b
  /-- The exponential, up to the bound. -/
  exp : ∀ x : S, x ≤ bound → (exp (σ x) : R') = ρ (exp x)

/-- A number, or the poison (`none`): a NaN. -/
structure Poisoned (R : Type u) where
  /-- The number, if it is one. -/
  val : Option R

namespace Poisoned

variable {R : Type u}

/-- A proper number. -/
@[expose] def ok (a : R) : Poisoned R := ⟨some a⟩

/-- An operation on two numbers: of the poison, the poison. -/
@[expose] def lift (f : R → R → Option R) (a b : Poisoned R) : Poisoned R :=
  ⟨a.val.bind fun a => b.val.bind (f a)⟩

instance (n : Nat) [OfNat R n] : OfNat (Poisoned R) n := ⟨ok (OfNat.ofNat n)⟩

instance [Add R] : Add (Poisoned R) := ⟨lift fun a b => some (a + b)⟩

instance [Sub R] : Sub (Poisoned R) := ⟨lift fun a b => some (a - b)⟩

instance [Mul R] : Mul (Poisoned R) := ⟨lift fun a b => some (a * b)⟩

/-- A quotient by 0 is the poison. -/
instance [Div R] [OfNat R 0] [DecidableEq R] : Div (Poisoned R) :=
  ⟨lift fun a b => if b = 0 then none else some (a / b)⟩

/-- Whether a ≤ b, where both are numbers; the poison is comparable with nothing. -/
instance [LE R] : LE (Poisoned R) :=
  ⟨fun a b => match a.val, b.val with
    | some a, some b => a ≤ b
    | _, _ => False⟩

instance [LE R] [DecidableLE R] : DecidableLE (Poisoned R) := fun a b => by
  show Decidable (match a.val, b.val with
    | some a, some b => a ≤ b
    | _, _ => False)
  cases a.val <;> cases b.val <;> infer_instance

/-- An exponential: of a number above the bound, the poison. -/
@[expose] def expUpTo {S : Type v} [LE S] [DecidableLE S] [Exp S R] (bound : S) :
    Exp (Poisoned S) (Poisoned R) :=
  ⟨fun x => ⟨x.val.bind fun x => if x ≤ bound then some (exp x) else none⟩⟩

/-- The exponential of a positive number is the poison. -/
instance {S : Type v} [LE S] [DecidableLE S] [OfNat S 0] [Exp S R] :
    Exp (Poisoned S) (Poisoned R) :=
  expUpTo 0

/-- `Poisoned` is such numbers, with any bound. -/
theorem cleanUpTo {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [DecidableEq R]
    [Exponential S R] (bound : S) :
    (letI : Exp (Poisoned S) (Poisoned R) := expUpTo bound
    Clean bound (ok : S → Poisoned S) (ok : R → Poisoned R)) :=
  letI : Exp (Poisoned S) (Poisoned R) := expUpTo bound
  { score_zero := rfl
    score_add := fun _ _ => rfl
    score_sub := fun _ _ => rfl
    score_mul := fun _ _ => rfl
    score_le := fun _ _ => Iff.rfl
    zero := rfl
    one := rfl
    add := fun _ _ => rfl
    sub := fun _ _ => rfl
    mul := fun _ _ => rfl
    div := fun a b hb => by
      show ok (a / b) = ⟨if b = 0 then none else some (a / b)⟩
      rw [if_neg hb]
      rfl
    exp := fun x hx => by
      show (⟨if x ≤ bound then some (exp x) else none⟩ : Poisoned R) = ok (exp x)
      rw [if_pos hx]
      rfl }

/-- `Poisoned` is such numbers, with the bound 0. -/
theorem clean {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [DecidableEq R]
    [Exponential S R] : Clean (0 : S) (ok : S → Poisoned S) (ok : R → Poisoned R) :=
  cleanUpTo 0

end Poisoned

end Attention.Model
