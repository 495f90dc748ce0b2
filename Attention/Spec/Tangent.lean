module

public import Attention.Algebra.Dual
public import Attention.Spec.Sink

public section

/-! # The derivative of attention, forwards

Attention itself, run over dual numbers: from inputs and the rates at which they change, the rates
at which its output and its log-sum-exp change. Scores and values are of one type here.
Source: Griewank & Walther 2008, "Evaluating Derivatives", section 3.1 (tangents);
`torch.func.jvp`. -/

namespace Attention

universe u v

variable {R : Type u} {m n : Nat}

/-- The matrix `A`, changing at the rates `dA`. -/
@[expose] def Matrix.dual (A dA : Matrix R m n) : Matrix (Dual R) m n :=
  Vec.ofFn fun i => Vec.ofFn fun j => ⟨A[i][j], dA[i][j]⟩

/-- The rates at which a matrix changes. -/
@[expose] def Matrix.tangent (A : Matrix (Dual R) m n) : Matrix R m n :=
  Vec.ofFn fun i => Vec.ofFn fun j => A[i][j].der

/-- The matrix `A` after time `t` at the rates `dA`: A + t · dA. -/
@[expose] def Matrix.moved [Add R] [Mul R] (A : Matrix R m n) (t : R) (dA : Matrix R m n) :
    Matrix R m n :=
  Vec.ofFn fun i => Vec.ofFn fun j => A[i][j] + t * dA[i][j]

/-- The inner product of two matrices, Σ Aᵢⱼ Bᵢⱼ. -/
@[expose] def Matrix.inner [Add R] [Mul R] [OfNat R 0] (A B : Matrix R m n) : R :=
  sumOver (fun i : Fin m => Vec.dot A[i] B[i]) (List.finRange m)

namespace Spec

variable {q_len kv_len d d_v : Nat}

/-- The rate of change of a score; a masked one has none, which counts 0. -/
@[expose] def scoreTangent [OfNat R 0] : Option (Dual R) → R
  | none => 0
  | some s => s.der

/-- The slope of a score transformation: its derivative by the score, at a query, a key and the
score before the transformation. -/
abbrev ScoreSlope (S : Type u) (R : Type v) (q_len kv_len : Nat) := Fin q_len → Fin kv_len → S → R

/-- `lifted` is the score transformation `modify` over dual numbers: it masks what `modify` masks,
and otherwise a score that changes at the rate s' comes to change at the rate slope · s' + dB, where
dB is the rate of an additive bias. -/
@[expose] def ScoreMod.IsLift [Add R] [Mul R] (lifted : ScoreMod (Dual R) q_len kv_len)
    (modify : ScoreMod R q_len kv_len) (slope : ScoreSlope R R q_len kv_len)
    (dB : Matrix R q_len kv_len) : Prop :=
  ∀ i j s, lifted i j s = (modify i j s.val).map fun t => ⟨t, slope i j s.val * s.der + dB[i][j]⟩

/-- The derivative of attention along the rates `dQ`, `dK` and `dV`, and those in `modify`:
the Jacobian of attention, times these (Jacobian-vector product). -/
@[expose] def jvp [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [Exp R R] (scale : R)
    (modify : ScoreMod (Dual R) q_len kv_len) (Q dQ : Matrix R q_len d) (K dK : Matrix R kv_len d)
    (V dV : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  Matrix.tangent
    (attention (Dual.const scale) modify (Matrix.dual Q dQ) (Matrix.dual K dK) (Matrix.dual V dV))

/-- The same with a sink, which changes too. -/
@[expose] def jvpSink [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [Exp R R] (scale : R)
    (modify : ScoreMod (Dual R) q_len kv_len) (sink dSink : R) (Q dQ : Matrix R q_len d)
    (K dK : Matrix R kv_len d) (V dV : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  Matrix.tangent (attentionSink (Dual.const scale) modify ⟨sink, dSink⟩ (Matrix.dual Q dQ)
    (Matrix.dual K dK) (Matrix.dual V dV))

/-- The rate at which the log-sum-exp of a row of scores changes that change: the rate of the
denominator, by the denominator. -/
@[expose] def lseTangent [Add R] [Mul R] [Div R] [OfNat R 0] [Exp R R]
    (row : List (Option (Dual R))) : R :=
  let l : Dual R := denominator row
  l.der / l.val

end Spec

end Attention
