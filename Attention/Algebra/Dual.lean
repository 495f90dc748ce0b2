module

public import Attention.Algebra.Exponential
public import Attention.Algebra.Vector

public section

/-! # Dual numbers: derivatives without limits

A dual number is a + b·ε with ε² = 0: a number with the rate at which it changes. A definition that
is run over dual numbers computes its value and, beside it, its derivative along the rates that its
inputs were given (forward mode). That this is the derivative is proved where it is used; here are
the operations only. They are no ordered field: what compares numbers does not run on them.
Source: Clifford 1871; Griewank & Walther 2008, "Evaluating Derivatives", chapter 3. -/

namespace Attention

universe u v

/-- The number `val`, changing at the rate `der`: val + der · ε. -/
structure Dual (R : Type u) where
  /-- The number. -/
  val : R
  /-- Its rate of change. -/
  der : R

namespace Dual

variable {R : Type u}

/-- Dual numbers are equal if their numbers and their rates are. -/
theorem ext {a b : Dual R} (h : a.val = b.val) (h' : a.der = b.der) : a = b := by
  cases a
  cases b
  simp only at h h'
  rw [h, h']

instance [OfNat R 0] : OfNat (Dual R) 0 := ⟨⟨0, 0⟩⟩

instance [OfNat R 0] [OfNat R 1] : OfNat (Dual R) 1 := ⟨⟨1, 0⟩⟩

/-- An integer does not change. -/
instance [OfNat R 0] [IntCast R] : IntCast (Dual R) := ⟨fun n => ⟨(n : R), 0⟩⟩

instance [Add R] : Add (Dual R) := ⟨fun a b => ⟨a.val + b.val, a.der + b.der⟩⟩

instance [Sub R] : Sub (Dual R) := ⟨fun a b => ⟨a.val - b.val, a.der - b.der⟩⟩

/-- The product rule. -/
instance [Add R] [Mul R] : Mul (Dual R) :=
  ⟨fun a b => ⟨a.val * b.val, a.der * b.val + a.val * b.der⟩⟩

/-- The quotient rule. -/
instance [Sub R] [Mul R] [Div R] : Div (Dual R) :=
  ⟨fun a b => ⟨a.val / b.val, (a.der * b.val - a.val * b.der) / (b.val * b.val)⟩⟩

/-- The chain rule for an exponential that is its own derivative: exp (a + b·ε) = exp a · (1 + b·ε).
-/
instance [Mul R] [Exp R R] : Exp (Dual R) (Dual R) :=
  ⟨fun a => ⟨exp a.val, exp a.val * a.der⟩⟩

/-- The larger of two by their numbers, and where these are equal the first: so the rectified linear
unit, max (0, x), does not change at x = 0, as PyTorch has it. -/
instance [LE R] [DecidableLE R] : Max (Dual R) := ⟨fun a b => if b.val ≤ a.val then a else b⟩

/-- A square root over dual numbers: √(a + b·ε) = √a + b / (2√a) · ε. -/
@[expose] def root [Add R] [Div R] (sqrt : R → R) (a : Dual R) : Dual R :=
  ⟨sqrt a.val, a.der / (sqrt a.val + sqrt a.val)⟩

/-- A number that does not change. -/
@[expose] def const [OfNat R 0] (a : R) : Dual R := ⟨a, 0⟩

section
variable [OfNat R 0]

@[simp] theorem val_zero : (0 : Dual R).val = 0 := by rfl
@[simp] theorem der_zero : (0 : Dual R).der = 0 := by rfl
@[simp] theorem val_const (a : R) : (const a).val = a := rfl
@[simp] theorem der_const (a : R) : (const a).der = 0 := rfl
@[simp] theorem val_one [OfNat R 1] : (1 : Dual R).val = 1 := by rfl
@[simp] theorem der_one [OfNat R 1] : (1 : Dual R).der = 0 := by rfl

end

@[simp] theorem val_add [Add R] (a b : Dual R) : (a + b).val = a.val + b.val := by rfl
@[simp] theorem der_add [Add R] (a b : Dual R) : (a + b).der = a.der + b.der := by rfl
@[simp] theorem val_sub [Sub R] (a b : Dual R) : (a - b).val = a.val - b.val := by rfl
@[simp] theorem der_sub [Sub R] (a b : Dual R) : (a - b).der = a.der - b.der := by rfl

@[simp] theorem val_mul [Add R] [Mul R] (a b : Dual R) : (a * b).val = a.val * b.val := by rfl
@[simp] theorem der_mul [Add R] [Mul R] (a b : Dual R) :
    (a * b).der = a.der * b.val + a.val * b.der := by rfl

@[simp] theorem val_div [Sub R] [Mul R] [Div R] (a b : Dual R) :
    (a / b).val = a.val / b.val := by rfl
@[simp] theorem der_div [Sub R] [Mul R] [Div R] (a b : Dual R) :
    (a / b).der = (a.der * b.val - a.val * b.der) / (b.val * b.val) := by rfl

@[simp] theorem val_exp [Mul R] [Exp R R] (a : Dual R) : (exp a : Dual R).val = exp a.val := by rfl
@[simp] theorem der_exp [Mul R] [Exp R R] (a : Dual R) :
    (exp a : Dual R).der = exp a.val * a.der := by rfl

/-- The value of a sum is the sum of the values. -/
@[simp] theorem val_sumOver [Add R] [OfNat R 0] {α : Type v} (f : α → Dual R) (xs : List α) :
    (sumOver f xs).val = sumOver (fun x => (f x).val) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [sumOver_cons, sumOver_cons, val_add, ih]

/-- The derivative of a sum is the sum of the derivatives. -/
@[simp] theorem der_sumOver [Add R] [OfNat R 0] {α : Type v} (f : α → Dual R) (xs : List α) :
    (sumOver f xs).der = sumOver (fun x => (f x).der) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [sumOver_cons, sumOver_cons, der_add, ih]

end Dual

end Attention
