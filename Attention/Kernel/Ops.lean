module

public import Attention.Algebra.Exponential

public section

/-! # Triton's operations in exact arithmetic

Everything that the theorems about kernels take on trust about the meaning of Triton's intermediate
representation (TTIR), with `bridge/ttir/lean.py`, which translates it. A tensor is a function of
its indices, a pointer a memory and an offset in elements. Integers are unbounded: that none passes
its type is a statement of its own (`FitsI32`, `FitsI64`). Floats are numbers without rounding, so
that conversions between their types (`arith.truncf`, `arith.extf`) do nothing and have no name
here.
Source: MLIR, dialects `arith`, `math`, `scf`; Triton, dialect `tt` (`TritonOps.td`). -/

namespace Attention.Kernel

universe u v

/-- A float without rounding. -/
inductive Flt (R : Type u) where
  /-- −∞. -/
  | ninf
  /-- A number. -/
  | num (x : R)
  /-- NaN, +∞, or a number that a float may not reach: nothing is said of it. -/
  | undef

/-- The memory behind a pointer: an element for each offset. -/
abbrev Mem (α : Type u) := Int → α

/-- An access to memory by one element of a tensor: whether it takes place, and at which offset. -/
structure Access where
  /-- The mask. -/
  active : Bool
  /-- The offset from the pointer, in elements. -/
  offset : Int

/-- `tt.load` of an element: of what lies there, or where the mask is false of another value. -/
@[expose] def Access.read {α : Type u} (x : Access) (memory : Mem α) (other : α) : α :=
  if x.active then memory x.offset else other

/-- A store by one element of a tensor. -/
structure Store (α : Type u) extends Access where
  /-- The stored value. -/
  value : α

/-- A signed integer of 32 bits can be x. -/
@[expose] def FitsI32 (x : Int) : Prop := -2 ^ 31 ≤ x ∧ x < 2 ^ 31

/-- A signed integer of 64 bits can be x. -/
@[expose] def FitsI64 (x : Int) : Prop := -2 ^ 63 ≤ x ∧ x < 2 ^ 63

namespace Flt

variable {R : Type u} [OrderedField R]

/-- `arith.addf`. -/
@[expose] def add : Flt R → Flt R → Flt R
  | num x, num y => num (x + y)
  | undef, _ => undef
  | _, undef => undef
  | _, _ => ninf

/-- `arith.subf`. −∞ − −∞ is NaN, and x − −∞ is +∞. -/
@[expose] def sub : Flt R → Flt R → Flt R
  | num x, num y => num (x - y)
  | ninf, num _ => ninf
  | _, _ => undef

/-- `arith.mulf`. −∞ times 0 is NaN, and times a number below 0 +∞. -/
@[expose] def mul : Flt R → Flt R → Flt R
  | num x, num y => num (x * y)
  | num x, ninf => if x ≤ 0 then undef else ninf
  | ninf, num x => if x ≤ 0 then undef else ninf
  | _, _ => undef

/-- `arith.divf`. -/
@[expose] def div : Flt R → Flt R → Flt R
  | num x, num y => if y ≤ 0 ∧ 0 ≤ y then undef else num (x / y)
  | _, _ => undef

/-- `arith.maxnumf`, and `arith.maximumf`: they differ on NaN only. -/
@[expose] def max : Flt R → Flt R → Flt R
  | num x, num y => num (if x ≤ y then y else x)
  | undef, _ => undef
  | _, undef => undef
  | ninf, b => b
  | a, ninf => a

/-- `math.exp2`, which is the exponential of the class `Exp`. Above 0 it can pass what a float
reaches, so there it is left open: what is proved to be a number needed no such value. -/
@[expose] def exp2 [Exp R R] : Flt R → Flt R
  | num x => if x ≤ 0 then num (exp x) else undef
  | ninf => num 0
  | undef => undef

/-- `math.log`, by a function for it on the numbers above 0. -/
@[expose] def log (ln : R → R) : Flt R → Flt R
  | num x => if x ≤ 0 then undef else num (ln x)
  | _ => undef

/-- `arith.cmpf oeq`: false of a NaN. -/
@[expose] def oeq : Flt R → Flt R → Bool
  | num x, num y => decide (x ≤ y ∧ y ≤ x)
  | ninf, ninf => true
  | _, _ => false

/-- `tt.reduce` with `arith.addf`: without rounding the order does not matter. -/
@[expose] def sum (n : Nat) (f : Nat → Flt R) : Flt R :=
  (List.range n).foldr (fun j s => add (f j) s) (num 0)

/-- `tt.reduce` with `arith.maxnumf`. -/
@[expose] def maxOver (n : Nat) (f : Nat → Flt R) : Flt R :=
  (List.range n).foldr (fun j s => max (f j) s) ninf

/-- `tt.dot` of a row `a` and a column `b`, of n elements each, onto the accumulator `c`. -/
@[expose] def dot (n : Nat) (a b : Nat → Flt R) (c : Flt R) : Flt R :=
  add c (sum n fun j => mul (a j) (b j))

end Flt

/-- `scf.for` from `lo` to `hi` − 1 by steps of 1. -/
@[expose] def forRange {σ : Type v} (lo hi : Int) (body : Int → σ → σ) (init : σ) : σ :=
  (List.range (hi - lo).toNat).foldl (fun s (n : Nat) => body (lo + (n : Int)) s) init

end Attention.Kernel
