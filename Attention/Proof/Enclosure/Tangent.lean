module

public import Attention.Proof.Enclosure.Mods
public import Attention.Proof.Enclosure.Sink
public import Attention.Spec.LogSumExp
public import Attention.Spec.Tangent

public section

/-! # The derivative forwards, run over intervals, contains the true one

Attention over dual numbers whose numbers and rates are intervals: `Spec.jvp` asks for operations
only, so it runs over intervals as it does over numbers. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p q_len kv_len d d_v : Nat}

/-- The number lies in its interval, and its rate in that of the rate. -/
@[expose] def DualContains (I : Dual (Interval p)) (x : Dual R) : Prop :=
  I.val.Contains x.val ∧ I.der.Contains x.der

/-- Both masked, or the score is enclosed. -/
abbrev DualScoreContains : Option (Dual (Interval p)) → Option (Dual R) → Prop :=
  ScoreRelated DualContains

/-- The score transformation makes, of what encloses a score that changes, what encloses the
transformed score; and it masks the same pairs. -/
abbrev DualModContains (modify' : ScoreMod (Dual (Interval p)) q_len kv_len)
    (modify : ScoreMod (Dual R) q_len kv_len) : Prop :=
  ModRelated DualContains modify' modify

/-- Each component is enclosed. -/
abbrev DualVecContains {n : Nat} (I : Vec (Dual (Interval p)) n) (x : Vec (Dual R) n) : Prop :=
  VecRelated DualContains I x

/-! ## Operations -/

/-- 0 does not change. -/
theorem dualContains_zero : DualContains (0 : Dual (Interval p)) (0 : Dual R) :=
  ⟨contains_zero, contains_zero⟩

/-- A number that does not change. -/
theorem dualContains_const {I : Interval p} {x : R} (h : I.Contains x) :
    DualContains (Dual.const I) (Dual.const x) :=
  ⟨h, contains_zero⟩

variable {I J : Dual (Interval p)} {x y : Dual R}

/-- Products, by the product rule. -/
theorem dualContains_mul (hx : DualContains I x) (hy : DualContains J y) :
    DualContains (I * J) (x * y) :=
  ⟨Interval.contains_mul hx.1 hy.1, Interval.contains_add (Interval.contains_mul hx.2 hy.1)
    (Interval.contains_mul hx.1 hy.2)⟩

/-- Quotients, by the quotient rule. -/
theorem dualContains_div (hx : DualContains I x) (hy : DualContains J y) :
    DualContains (I / J) (x / y) :=
  ⟨Interval.contains_div hx.1 hy.1, Interval.contains_div (Interval.contains_sub
    (Interval.contains_mul hx.2 hy.1) (Interval.contains_mul hx.1 hy.2))
    (Interval.contains_mul hy.1 hy.1)⟩

/-- The operations keep the number in its interval, and the rate in its own. -/
instance keptByField_dualContains : KeptByField (DualContains (R := R) (p := p)) where
  zero := dualContains_zero
  one := ⟨contains_one, contains_zero⟩
  add hx hy := ⟨Interval.contains_add hx.1 hy.1, Interval.contains_add hx.2 hy.2⟩
  sub hx hy := ⟨Interval.contains_sub hx.1 hy.1, Interval.contains_sub hx.2 hy.2⟩
  mul := dualContains_mul
  div := dualContains_div

/-- And so does the exponential, by the chain rule. -/
instance keptByExp_dualContains [NaturalExp R] : KeptByExp (DualContains (R := R) (p := p))
    (DualContains (R := R) (p := p)) where
  exp hx := ⟨Interval.contains_exp hx.1, Interval.contains_mul (Interval.contains_exp hx.1) hx.2⟩

/-- A matrix with its rates. -/
theorem dualContains_matrix {m n : Nat} {A' dA' : Matrix (Interval p) m n} {A dA : Matrix R m n}
    (h : MatrixContains A' A) (h' : MatrixContains dA' dA) :
    VecRelated DualVecContains (A'.dual dA') (A.dual dA) :=
  related_ofFn fun _ => related_ofFn fun _ => ⟨h.component.component, h'.component.component⟩

/-- The rates of a matrix. -/
theorem contains_tangent {m n : Nat} {A' : Matrix (Dual (Interval p)) m n} {A : Matrix (Dual R) m n}
    (h : VecRelated DualVecContains A' A) : MatrixContains A'.tangent A.tangent :=
  related_ofFn fun _ => related_ofFn fun _ => h.component.component.2

/-- Linear biases whose slope changes. -/
theorem alibi_dualContains (alignment : Alignment) (h : DualContains I x) :
    DualModContains (q_len := q_len) (kv_len := kv_len) (.alibi alignment I)
      (.alibi alignment x) :=
  related_alibi (fun _ => ⟨Interval.contains_intCast _, contains_zero⟩) alignment h

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply dualContains_const | apply dualContains_matrix | apply contains_tangent
  | apply alibi_dualContains)

variable [NaturalExp R]

/-! ## Attention -/

section
variable {scale' sink' dSink' : Interval p} {scale sink dSink : R}
variable {modify' : ScoreMod (Dual (Interval p)) q_len kv_len}
variable {modify : ScoreMod (Dual R) q_len kv_len}
variable {Q' dQ' : Matrix (Interval p) q_len d} {Q dQ : Matrix R q_len d}
variable {K' dK' : Matrix (Interval p) kv_len d} {K dK : Matrix R kv_len d}
variable {V' dV' : Matrix (Interval p) kv_len d_v} {V dV : Matrix R kv_len d_v}

omit [NaturalExp R] in
/-- The score of a query and a key. -/
theorem dualContains_score (hscale : scale'.Contains scale)
    (hmodify : DualModContains modify' modify)
    (hQ : MatrixContains Q' Q) (hdQ : MatrixContains dQ' dQ) (hK : MatrixContains K' K)
    (hdK : MatrixContains dK' dK) (i : Fin q_len) (j : Fin kv_len) :
    DualScoreContains (score (Dual.const scale') modify' (Q'.dual dQ') (K'.dual dK') i j)
      (score (Dual.const scale) modify (Q.dual dQ) (K.dual dK) i j) := by
  enclose

/-- **tangent-enclosed**: the derivative of attention, computed with intervals over inputs, rates, a
scale and a score transformation that contain the true ones, contains the true derivative, whatever
natural exponential it is taken with. -/
theorem jvp_enclosed (hscale : scale'.Contains scale) (hmodify : DualModContains modify' modify)
    (hQ : MatrixContains Q' Q) (hdQ : MatrixContains dQ' dQ) (hK : MatrixContains K' K)
    (hdK : MatrixContains dK' dK) (hV : MatrixContains V' V) (hdV : MatrixContains dV' dV) :
    MatrixContains (jvp scale' modify' Q' dQ' K' dK' V' dV')
      (jvp scale modify Q dQ K dK V dV) := by
  enclose [jvp]

/-- **tangent-sink-enclosed**: the same with a sink that changes. -/
theorem jvpSink_enclosed (hscale : scale'.Contains scale)
    (hmodify : DualModContains modify' modify) (hsink : sink'.Contains sink)
    (hdSink : dSink'.Contains dSink) (hQ : MatrixContains Q' Q) (hdQ : MatrixContains dQ' dQ)
    (hK : MatrixContains K' K) (hdK : MatrixContains dK' dK) (hV : MatrixContains V' V)
    (hdV : MatrixContains dV' dV) :
    MatrixContains (jvpSink scale' modify' sink' dSink' Q' dQ' K' dK' V' dV')
      (jvpSink scale modify sink dSink Q dQ K dK V dV) := by
  have hs : DualContains ⟨sink', dSink'⟩ ⟨sink, dSink⟩ := ⟨hsink, hdSink⟩
  enclose [jvpSink]

end

/-! ## The log-sum-exp -/

/-- **tangent-lse-enclosed**: over enclosed scores that change, `lseTangent` of intervals contains
the rate of the log-sum-exp, which is that of every L with exp L = Σ exp s over dual numbers. -/
theorem lseTangent_enclosed {α : Type} {keys : List α} {s' : α → Option (Dual (Interval p))}
    {s : α → Option (Dual R)} (hs : ∀ k ∈ keys, DualScoreContains (s' k) (s k)) {L : Dual R}
    (hL : IsLogSumExp (Dual R) (some L) (keys.map s)) :
    (lseTangent (keys.map s')).Contains L.der := by
  have hl : DualContains (R := R) (p := p) _ _ := related_denominator hs
  have he : L.der = lseTangent (keys.map s) := by
    have hpos := Exponential.exp_ne_zero (R := R) L.val
    have h₀ : (denominator (keys.map s) : Dual R) = exp L := hL.symm
    simp only [lseTangent, h₀, Dual.val_exp, Dual.der_exp]
    grind
  rw [he]
  exact Interval.contains_div hl.2 hl.1

end Attention.Proof
