module

public import Attention.Algebra.Dual
public import Attention.Algebra.Magnitude

public section

/-! # Paths and their tangents

A number that changes with time is a path, t ↦ f t. Its dual number at time 0 is where it is then,
with the rate at which it changes: `IsTangent` says so without limits, and of a family of paths at
once. -/

namespace Attention

universe u v

variable {R : Type u} [OrderedField R] {ι : Type v}

/-- After a time t of at most `τ`, the path `f` is where `a` says: at its number plus t times its
rate, up to B · t². Number and rate are at most `B`. -/
@[expose] def TangentWithin (B τ : R) (f : R → R) (a : Dual R) : Prop :=
  AtMost B a.val ∧ AtMost B a.der
    ∧ ∀ t, AtMost τ t → AtMost (B * (t * t)) (f t - a.val - t * a.der)

/-- Each path of the family `f` has at time 0 the number and the rate that `a` gives it, and one
bound and one time serve all. For a family of one path this says that the rate is its derivative;
for all paths through bounded points, at bounded rates, it is total differentiability. -/
@[expose] def IsTangent (f : ι → R → R) (a : ι → Dual R) : Prop :=
  ∃ B τ : R, 0 < τ ∧ ∀ x, TangentWithin B τ (f x) (a x)

/-- The same, component by component. -/
@[expose] def VecTangent {d : Nat} (v : ι → R → Vec R d) (a : ι → Vec (Dual R) d) : Prop :=
  ∀ (j : Nat) (_ : j < d), IsTangent (fun x t => (v x t)[j]) (fun x => (a x)[j])

/-- The same, entry by entry. -/
@[expose] def MatrixTangent {m n : Nat} (A : ι → R → Matrix R m n)
    (A' : ι → Matrix (Dual R) m n) : Prop :=
  ∀ (i : Nat) (_ : i < m) (j : Nat) (_ : j < n),
    IsTangent (fun x t => (A x t)[i][j]) (fun x => (A' x)[i][j])

end Attention
