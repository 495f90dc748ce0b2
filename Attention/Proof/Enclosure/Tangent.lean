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
@[expose] def DualScoreContains : Option (Dual (Interval p)) → Option (Dual R) → Prop
  | none, none => True
  | some I, some x => DualContains I x
  | _, _ => False

/-- The score transformation makes, of what encloses a score that changes, what encloses the
transformed score; and it masks the same pairs. -/
@[expose] def DualModContains (modify' : ScoreMod (Dual (Interval p)) q_len kv_len)
    (modify : ScoreMod (Dual R) q_len kv_len) : Prop :=
  ∀ i j I x, DualContains I x → DualScoreContains (modify' i j I) (modify i j x)

/-- Each component is enclosed. -/
@[expose] def DualVecContains {n : Nat} (I : Vec (Dual (Interval p)) n) (x : Vec (Dual R) n) :
    Prop :=
  ∀ (j : Nat) (h : j < n), DualContains I[j] x[j]

/-! ## Operations -/

/-- 0 does not change. -/
theorem dualContains_zero : DualContains (0 : Dual (Interval p)) (0 : Dual R) :=
  ⟨contains_zero, contains_zero⟩

/-- Nor does 1. -/
theorem dualContains_one : DualContains (1 : Dual (Interval p)) (1 : Dual R) :=
  ⟨contains_one, contains_zero⟩

/-- A number that does not change. -/
theorem dualContains_const {I : Interval p} {x : R} (h : I.Contains x) :
    DualContains (Dual.const I) (Dual.const x) :=
  ⟨h, contains_zero⟩

variable {I J : Dual (Interval p)} {x y : Dual R}

/-- Sums. -/
theorem dualContains_add (hx : DualContains I x) (hy : DualContains J y) :
    DualContains (I + J) (x + y) :=
  ⟨Interval.contains_add hx.1 hy.1, Interval.contains_add hx.2 hy.2⟩

/-- Differences. -/
theorem dualContains_sub (hx : DualContains I x) (hy : DualContains J y) :
    DualContains (I - J) (x - y) :=
  ⟨Interval.contains_sub hx.1 hy.1, Interval.contains_sub hx.2 hy.2⟩

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

/-- Exponentials, by the chain rule. -/
theorem dualContains_exp [NaturalExp R] (hx : DualContains I x) :
    DualContains (exp I : Dual (Interval p)) (exp x : Dual R) :=
  ⟨Interval.contains_exp hx.1, Interval.contains_mul (Interval.contains_exp hx.1) hx.2⟩

/-- Sums of enclosed terms. -/
theorem dualContains_sumOver {α : Type} {f' : α → Dual (Interval p)} {f : α → Dual R} {xs : List α}
    (h : ∀ x ∈ xs, DualContains (f' x) (f x)) :
    DualContains (sumOver f' xs) (sumOver f xs) := by
  induction xs with
  | nil => exact dualContains_zero
  | cons x xs ih =>
    exact dualContains_add (h x (by simp)) (ih fun y hy => h y (by simp [hy]))

/-- The rows of a matrix, with its rates. -/
theorem dualContains_rows {m n : Nat} {A' dA' : Matrix (Interval p) m n} {A dA : Matrix R m n}
    (h : MatrixContains A' A) (h' : MatrixContains dA' dA) (i : Fin m) :
    DualVecContains (A'.dual dA')[i] (A.dual dA)[i] := by
  intro j hj
  simp only [Matrix.dual, Fin.getElem_fin, Vec.getElem_ofFn]
  exact ⟨h i.val i.isLt j hj, h' i.val i.isLt j hj⟩

/-! ## Score transformations -/

/-- Masks. -/
theorem mask_dualContains (mask : Mask q_len kv_len) :
    DualModContains (p := p) (R := R) mask.toScoreMod mask.toScoreMod := by
  intro i j I x hx
  rw [Mask.toScoreMod, Mask.toScoreMod]
  cases mask i j
  · trivial
  · exact hx

/-- One transformation after the other. -/
theorem andThen_dualContains {f' g' : ScoreMod (Dual (Interval p)) q_len kv_len}
    {f g : ScoreMod (Dual R) q_len kv_len} (hf : DualModContains f' f)
    (hg : DualModContains g' g) : DualModContains (f'.andThen g') (f.andThen g) := by
  intro i j I x hx
  have h := hf i j I x hx
  rw [ScoreMod.andThen, ScoreMod.andThen]
  cases h' : f' i j I <;> cases h₀ : f i j x <;> rw [h', h₀] at h
  · trivial
  · cases h
  · cases h
  · exact hg i j _ _ h

/-- A bias that changes. -/
theorem bias_dualContains {B' : Matrix (Option (Dual (Interval p))) q_len kv_len}
    {B : Matrix (Option (Dual R)) q_len kv_len}
    (hB : ∀ (i : Fin q_len) (j : Fin kv_len), DualScoreContains B'[i][j] B[i][j]) :
    DualModContains (.bias B') (.bias B) := by
  intro i j I x hx
  have h := hB i j
  rw [ScoreMod.bias, ScoreMod.bias]
  generalize B'[i][j] = b' at h ⊢
  generalize B[i][j] = b at h ⊢
  cases b' <;> cases b
  · trivial
  · cases h
  · cases h
  · exact dualContains_add hx h

/-- Linear biases whose slope changes. -/
theorem alibi_dualContains (alignment : Alignment) (h : DualContains I x) :
    DualModContains (q_len := q_len) (kv_len := kv_len) (.alibi alignment I)
      (.alibi alignment x) :=
  fun _ _ _ _ hs => dualContains_add hs
    (dualContains_mul h ⟨Interval.contains_intCast _, contains_zero⟩)

variable [NaturalExp R]

/-- Softcap. -/
theorem softcap_dualContains (h : DualContains I x) :
    DualModContains (q_len := q_len) (kv_len := kv_len) (.softcap I) (.softcap x) :=
  fun _ _ _ _ hs =>
    have hd := dualContains_div hs h
    have he := dualContains_exp (dualContains_add hd hd)
    dualContains_mul h (dualContains_div (dualContains_sub he dualContains_one)
      (dualContains_add he dualContains_one))

/-! ## Attention -/

/-- The weight of an enclosed score. -/
theorem dualContains_weight {s' : Option (Dual (Interval p))} {s : Option (Dual R)}
    (h : DualScoreContains s' s) :
    DualContains (weight s' : Dual (Interval p)) (weight s : Dual R) := by
  cases s' <;> cases s
  · exact dualContains_zero
  · cases h
  · cases h
  · exact dualContains_exp h

/-- The denominator of enclosed scores. -/
theorem dualContains_denominator {α : Type} {keys : List α}
    {s' : α → Option (Dual (Interval p))} {s : α → Option (Dual R)}
    (hs : ∀ k ∈ keys, DualScoreContains (s' k) (s k)) :
    DualContains (denominator (keys.map s') : Dual (Interval p))
      (denominator (keys.map s) : Dual R) := by
  rw [denominator, denominator, sumOver_map, sumOver_map]
  exact dualContains_sumOver fun k hk => dualContains_weight (hs k hk)

/-- The attention of a row of enclosed scores and values. -/
theorem dualContains_attend {α : Type} {keys : List α}
    {f' : α → ScoredValue (Dual (Interval p)) (Dual (Interval p)) d_v}
    {f : α → ScoredValue (Dual R) (Dual R) d_v}
    (hs : ∀ k ∈ keys, DualScoreContains (f' k).score (f k).score)
    (hv : ∀ k ∈ keys, DualVecContains (f' k).value (f k).value) :
    DualVecContains (attend (keys.map f')) (attend (keys.map f)) := by
  intro j hj
  rw [getElem_attend_map, getElem_attend_map]
  refine dualContains_sumOver fun k hk => dualContains_mul ?_ (hv k hk j hj)
  have hl := dualContains_denominator hs
  have h := hs k hk
  cases h' : (f' k).score <;> cases h₀ : (f k).score <;> rw [h', h₀] at h
  · exact dualContains_zero
  · cases h
  · cases h
  · exact dualContains_div (dualContains_exp h) hl

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
      (score (Dual.const scale) modify (Q.dual dQ) (K.dual dK) i j) :=
  hmodify _ _ _ _ (dualContains_mul (dualContains_const hscale)
    (dualContains_sumOver fun c _ => dualContains_mul (dualContains_rows hQ hdQ i c.val c.isLt)
      (dualContains_rows hK hdK j c.val c.isLt)))

/-- **tangent-enclosed**: the derivative of attention, computed with intervals over inputs, rates, a
scale and a score transformation that contain the true ones, contains the true derivative, whatever
natural exponential it is taken with. -/
theorem jvp_enclosed (hscale : scale'.Contains scale) (hmodify : DualModContains modify' modify)
    (hQ : MatrixContains Q' Q) (hdQ : MatrixContains dQ' dQ) (hK : MatrixContains K' K)
    (hdK : MatrixContains dK' dK) (hV : MatrixContains V' V) (hdV : MatrixContains dV' dV) :
    MatrixContains (jvp scale' modify' Q' dQ' K' dK' V' dV')
      (jvp scale modify Q dQ K dK V dV) := by
  intro i hi j hj
  simp only [jvp, attention, Matrix.tangent, Fin.getElem_fin, Vec.getElem_ofFn, scored]
  exact (dualContains_attend
    (fun k _ => dualContains_score hscale hmodify hQ hdQ hK hdK ⟨i, hi⟩ k)
    (fun k _ => dualContains_rows hV hdV k) j hj).2

/-- **tangent-sink-enclosed**: the same with a sink that changes. -/
theorem jvpSink_enclosed (hscale : scale'.Contains scale)
    (hmodify : DualModContains modify' modify) (hsink : sink'.Contains sink)
    (hdSink : dSink'.Contains dSink) (hQ : MatrixContains Q' Q) (hdQ : MatrixContains dQ' dQ)
    (hK : MatrixContains K' K) (hdK : MatrixContains dK' dK) (hV : MatrixContains V' V)
    (hdV : MatrixContains dV' dV) :
    MatrixContains (jvpSink scale' modify' sink' dSink' Q' dQ' K' dK' V' dV')
      (jvpSink scale modify sink dSink Q dQ K dK V dV) := by
  intro i hi j hj
  simp only [jvpSink, attentionSink, Matrix.tangent, Fin.getElem_fin, Vec.getElem_ofFn, scored,
    withSink_eq_map]
  refine (dualContains_attend (fun k _ => ?_) (fun k _ => ?_) j hj).2
  · cases k with
    | none => exact ⟨hsink, hdSink⟩
    | some k => exact dualContains_score hscale hmodify hQ hdQ hK hdK ⟨i, hi⟩ k
  · cases k with
    | none =>
      intro c hc
      show DualContains (Vec.zero : Vec (Dual (Interval p)) d_v)[c] (Vec.zero : Vec (Dual R) d_v)[c]
      rw [Vec.getElem_zero, Vec.getElem_zero]
      exact dualContains_zero
    | some k => exact dualContains_rows hV hdV k

end

/-! ## The log-sum-exp -/

/-- **tangent-lse-enclosed**: over enclosed scores that change, `lseTangent` of intervals contains
the rate of the log-sum-exp, which is that of every L with exp L = Σ exp s over dual numbers. -/
theorem lseTangent_enclosed {α : Type} {keys : List α} {s' : α → Option (Dual (Interval p))}
    {s : α → Option (Dual R)} (hs : ∀ k ∈ keys, DualScoreContains (s' k) (s k)) {L : Dual R}
    (hL : IsLogSumExp (Dual R) (some L) (keys.map s)) :
    (lseTangent (keys.map s')).Contains L.der := by
  have hl := dualContains_denominator hs
  have he : L.der = lseTangent (keys.map s) := by
    have hpos := Exponential.exp_ne_zero (R := R) L.val
    have h₀ : (denominator (keys.map s) : Dual R) = exp L := hL.symm
    simp only [lseTangent, h₀, Dual.val_exp, Dual.der_exp]
    grind
  rw [he]
  exact Interval.contains_div hl.2 hl.1

end Attention.Proof
