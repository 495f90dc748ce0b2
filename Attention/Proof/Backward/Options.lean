module

public import Attention.Proof.Backward.Heads
public import Attention.Proof.Scores.Sink
public import Attention.Proof.Derivative.Slopes
public import Attention.Spec.BackwardOptions

public section

/-! # The gradients by biases that are shared, slopes of ALiBi, and sinks are adjoints too -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v w

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {q_len kv_len d d_v num_kv_heads group : Nat}

/-! ## Biases that queries share -/

/-- A row that all queries share, as a matrix. -/
@[expose] def repeatRow (b : Matrix R 1 kv_len) : Matrix R q_len kv_len := Vec.ofFn fun _ => b[0]

/-- The inner product with the sum of the rows is that with a matrix of equal rows: the gradient by
a bias that all queries share. -/
theorem inner_sumRows (A : Matrix R q_len kv_len) (δb : Matrix R 1 kv_len) :
    Matrix.inner (sumRows A) δb = Matrix.inner A (repeatRow δb) := by
  have h : Matrix.inner (sumRows A) δb = Vec.dot (sumRows A)[(0 : Fin 1)] δb[(0 : Fin 1)] := by
    rw [Matrix.inner, show List.finRange 1 = [0] from rfl, sumOver_cons, sumOver_nil,
      Semiring.add_zero]
  rw [h, Matrix.inner, Vec.dot]
  refine Eq.trans (sumOver_congr fun j _ => ?_) (sumOver_comm (fun i (j : Fin kv_len) =>
    A[i][j] * (repeatRow δb : Matrix R q_len kv_len)[i][j]) _ _).symm
  rw [sumRows, Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver,
    ← sumOver_mul_right]
  refine sumOver_congr fun i _ => ?_
  simp only [repeatRow, Fin.getElem_fin, Vec.getElem_ofFn]
  rfl

/-! ## Slopes -/

/-- The rates at which scores change with a slope that changes at the rate `δ`. -/
@[expose] def alibiRates (alignment : Alignment) (δ : R) : Matrix R q_len kv_len :=
  Vec.ofFn fun i => Vec.ofFn fun j => δ * ((-(distance alignment i j : Int) : Int) : R)

/-- Linear biases have slope 1, and change at the rates of their slope. -/
theorem isLift_alibi (alignment : Alignment) (slope δ : R) :
    ScoreMod.IsLift (q_len := q_len) (kv_len := kv_len)
      (ScoreMod.alibi alignment (⟨slope, δ⟩ : Dual R)) (ScoreMod.alibi alignment slope)
      ScoreSlope.one (alibiRates alignment δ) := by
  intro i j s
  rw [ScoreMod.alibi, ScoreMod.alibi, Option.map_some, ScoreSlope.one, Semiring.one_mul]
  refine congrArg some (Dual.ext rfl ?_)
  simp only [alibiRates, Fin.getElem_fin, Vec.getElem_ofFn]
  show s.der + (δ * _ + slope * 0) = _
  rw [Semiring.mul_zero, Semiring.add_zero]
  rfl

/-- The inner product of any gradients by scores with the rates of a slope is the gradient by the
slope, times its rate. -/
theorem inner_alibiRates (alignment : Alignment) (dS : Matrix R q_len kv_len) (δ : R) :
    Matrix.inner dS (alibiRates alignment δ) = slopeGradient alignment dS * δ := by
  rw [Matrix.inner, slopeGradient, ← sumOver_mul_right]
  refine sumOver_congr fun i _ => ?_
  rw [Vec.dot, ← sumOver_mul_right]
  refine sumOver_congr fun j _ => ?_
  simp only [alibiRates, Fin.getElem_fin, Vec.getElem_ofFn]
  grind

/-- The inner product with a sum of rates. -/
theorem inner_addRows (A X Y : Matrix R q_len kv_len) :
    Matrix.inner A (Vec.ofFn fun i : Fin q_len => Vec.add X[i] Y[i] : Matrix R q_len kv_len)
      = Matrix.inner A X + Matrix.inner A Y := by
  rw [Matrix.inner, Matrix.inner, Matrix.inner, ← sumOver_add]
  refine sumOver_congr fun i _ => ?_
  rw [Vec.dot, Vec.dot, Vec.dot, ← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_add]
  grind

section
variable [Exponential R R] {scale : R}
variable (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v)

/-- **slopes-gradient**: with linear biases after any score transformation (softcap), before an
additive bias and any mask, the slope and the bias changing too: the gradient by the slope,
Σ dS · (−distance), is what belongs beside those by queries, keys, values and the bias. -/
theorem slopeGradient_adjoint {f : ScoreMod R q_len kv_len} {f' : ScoreMod (Dual R) q_len kv_len}
    {rate : ScoreSlope R R q_len kv_len} (hf : f'.IsLift f rate zeroMatrix) (alignment : Alignment)
    (slope δslope : R) (B : Matrix (Option R) q_len kv_len) (δB : Matrix R q_len kv_len)
    (mask : Mask q_len kv_len) (dO : Matrix R q_len d_v) :
    let modify := ((f.andThen (.alibi alignment slope)).andThen (.bias B)).andThen mask.toScoreMod
    let lifted := ((f'.andThen (.alibi alignment ⟨slope, δslope⟩)).andThen
      (.bias (biasDual B δB))).andThen mask.toScoreMod
    let g := vjp scale modify rate Q K V (fun x => x) dO Vec.zero
    Matrix.inner dO (jvp scale lifted Q δQ K δK V δV)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + (slopeGradient alignment g.dBias * δslope + Matrix.inner g.dBias δB) := by
  intro modify lifted g
  rw [← inner_alibiRates, ← inner_addRows]
  refine vjp_adjoint Q δQ K δK V δV dO
    (IsLift.andThen_mask (IsLift.andThen_bias (dA := alibiRates alignment δslope) ?_ B δB) mask)
  intro i j s
  rw [IsLift.andThen hf (isLift_alibi alignment slope δslope) i j s]
  cases hm : f i j s.val with
  | none => simp only [ScoreMod.andThen, hm]; rfl
  | some t => simp only [ScoreSlope.andThen, hm, ScoreSlope.one, Semiring.one_mul]

end

/-! ## Sinks -/

/-- At the place of the sink. -/
theorem sinkFirst_zero {α : Type v} (a : α) (f : Fin kv_len → α) : sinkFirst a f 0 = a := rfl

/-- At the place of a key. -/
theorem sinkFirst_succ {α : Type v} (a : α) (f : Fin kv_len → α) (k : Fin kv_len) :
    sinkFirst a f k.succ = f k := rfl

/-- Attention with a sink is attention with one more key, over any numbers. -/
theorem attentionSink_eq_attention {S : Type v} {T : Type w} [Add S] [Mul S] [OfNat S 0] [Add T]
    [Mul T] [Div T] [OfNat T 0] [Exp S T] (scale : S) (modify : ScoreMod S q_len kv_len) (sink : S)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix T kv_len d_v) :
    attentionSink scale modify sink Q K V
      = attention scale (modify.behindSink sink) Q (rowsBehindSink K) (rowsBehindSink V) := by
  refine congrArg Vec.ofFn (funext fun i => congrArg attend ?_)
  rw [withSink, scored, scored, List.finRange_succ, List.map_cons, List.map_map]
  refine congr (congrArg List.cons ?_) (List.map_congr_left fun k _ => ?_)
  · simp only [score, ScoreMod.behindSink, sinkFirst_zero, rowsBehindSink, Fin.getElem_fin,
      Vec.getElem_ofFn]
    rfl
  · simp only [Function.comp_def, score, ScoreMod.behindSink, sinkFirst_succ, rowsBehindSink,
      Fin.getElem_fin, Vec.getElem_ofFn]
    rfl

/-- Rows that change, behind a sink's that does not. -/
theorem dual_rowsBehindSink {n : Nat} (A δA : Matrix R kv_len n) :
    (rowsBehindSink A).dual (rowsBehindSink δA) = rowsBehindSink (A.dual δA) := by
  refine congrArg Vec.ofFn (funext fun j => ?_)
  simp only [rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn]
  by_cases h : j.val = 0
  · simp only [sinkFirst, h, dif_pos]
    apply Vector.ext
    intro c hc
    rw [Vec.getElem_ofFn, Vec.getElem_zero, Vec.getElem_zero]
    rfl
  · simp only [sinkFirst, h, dif_neg, not_false_eq_true, Matrix.dual, Fin.getElem_fin,
      Vec.getElem_ofFn]

/-- The rates at which scores change with those of a bias, and with a sink. -/
@[expose] def sinkRates (δsink : R) (δB : Matrix R q_len kv_len) : Matrix R q_len (kv_len + 1) :=
  Vec.ofFn fun i => Vec.ofFn (sinkFirst δsink fun j => δB[i][j])

/-- A sink has slope 0 and changes at its own rate. -/
theorem IsLift.behindSink {modify : ScoreMod R q_len kv_len}
    {lifted : ScoreMod (Dual R) q_len kv_len} {slope : ScoreSlope R R q_len kv_len}
    {δB : Matrix R q_len kv_len} (hlift : lifted.IsLift modify slope δB) (sink δsink : R) :
    (lifted.behindSink ⟨sink, δsink⟩).IsLift (modify.behindSink sink) slope.behindSink
      (sinkRates δsink δB) := by
  intro i j s
  simp only [ScoreMod.behindSink, ScoreSlope.behindSink, sinkRates, sinkFirst, Fin.getElem_fin,
    Vec.getElem_ofFn]
  split
  · rw [Option.map_some, Semiring.zero_mul, AddCommMonoid.zero_add]
  · exact hlift i _ s

/-- Of an inner product with rates behind a sink's, which are 0, the keys' part is left. -/
theorem inner_rowsBehindSink {n : Nat} (A : Matrix R (kv_len + 1) n) (δ : Matrix R kv_len n) :
    Matrix.inner A (rowsBehindSink δ) = Matrix.inner (rowsOfKeys A) δ := by
  rw [Matrix.inner, List.finRange_succ, sumOver_cons, sumOver_map, Matrix.inner]
  have h : Vec.dot A[(0 : Fin (kv_len + 1))] (rowsBehindSink δ)[(0 : Fin (kv_len + 1))] = 0 :=
    sumOver_eq_zero fun c _ => by
      simp only [rowsBehindSink, Fin.getElem_fin, Vec.getElem_ofFn]
      show _ * (Vec.zero : Vec R n)[c.val] = 0
      rw [Vec.getElem_zero, Semiring.mul_zero]
  rw [h, AddCommMonoid.zero_add]
  refine sumOver_congr fun k _ => ?_
  simp only [rowsBehindSink, rowsOfKeys, Fin.getElem_fin, Vec.getElem_ofFn]
  rfl

/-- The inner product with the rates of scores, the sink's taken apart. -/
theorem inner_sinkRates (A : Matrix R q_len (kv_len + 1)) (δsink : R) (δB : Matrix R q_len kv_len) :
    Matrix.inner A (sinkRates δsink δB)
      = Matrix.inner (Vec.ofFn fun i => Vec.ofFn fun j => A[i][j.succ] : Matrix R q_len kv_len) δB
        + sumOver (fun i : Fin q_len => A[i][(0 : Fin (kv_len + 1))]) (List.finRange q_len)
          * δsink := by
  rw [Matrix.inner, Matrix.inner, ← sumOver_mul_right, ← sumOver_add]
  refine sumOver_congr fun i _ => ?_
  rw [Vec.dot, List.finRange_succ, sumOver_cons, sumOver_map, Vec.dot, Semiring.add_comm]
  refine congr (congrArg HAdd.hAdd (sumOver_congr fun j _ => ?_)) ?_ <;>
    simp only [sinkRates, Fin.getElem_fin, Vec.getElem_ofFn] <;> rfl

section
variable [Exponential R R] {scale : R}
variable {modify : Fin (num_kv_heads * group) → ScoreMod R q_len kv_len}
variable {lifted : Fin (num_kv_heads * group) → ScoreMod (Dual R) q_len kv_len}
variable {slope : Fin (num_kv_heads * group) → ScoreSlope R R q_len kv_len}
variable (sinks δsinks : Vec R (num_kv_heads * group))
variable (Q δQ : Vector (Matrix R q_len d) (num_kv_heads * group))
variable (K δK : Vector (Matrix R kv_len d) num_kv_heads)
variable (V δV : Vector (Matrix R kv_len d_v) num_kv_heads)
variable {δB : Vector (Matrix R q_len kv_len) (num_kv_heads * group)}

/-- **sink-gradient**: for all heads and group sizes, score transformations and masks, and a sink in
each query head, which changes too: the gradients by queries, keys, values, bias and sinks have with
the rates of these the inner product that the gradients by the outputs and the log-sum-exps, of
which the sink is a part, have with the rates that dual numbers give them; a row whose log-sum-exp
has the gradient 0 needs to have none. -/
theorem sinkVjp_adjoint (hlift : ∀ h, (lifted h).IsLift (modify h) (slope h) δB[h])
    (dO : Vector (Matrix R q_len d_v) (num_kv_heads * group))
    (dLse : Vector (Vec R q_len) (num_kv_heads * group))
    {L : Fin (num_kv_heads * group) → Fin q_len → Option (Dual R)}
    (hL : ∀ h i, dLse[h][i] = 0 ∨ IsLogSumExp (Dual R) (L h i) (some ⟨sinks[h], δsinks[h]⟩ ::
      (List.finRange kv_len).map (score (Dual.const scale) (lifted h) (Q[h].dual δQ[h])
        (K[kvHead h].dual δK[kvHead h]) i))) :
    let g := sinkVjp scale modify slope sinks Q K V (fun x => x) dO dLse
    let dOut : Fin (num_kv_heads * group) → Matrix R q_len d_v := fun h => Matrix.tangent
      (attentionSink (Dual.const scale) (lifted h) ⟨sinks[h], δsinks[h]⟩ (Q[h].dual δQ[h])
        (K[kvHead h].dual δK[kvHead h]) (V[kvHead h].dual δV[kvHead h]))
    let heads := List.finRange (num_kv_heads * group)
    let kvHeads := List.finRange num_kv_heads
    let lseRate : Fin (num_kv_heads * group) → R := fun h =>
      sumOver (fun i : Fin q_len => dLse[h][i] * scoreTangent (L h i)) (List.finRange q_len)
    sumOver (fun h : Fin (num_kv_heads * group) => (Matrix.inner dO[h] (dOut h) : R) + lseRate h)
        heads
      = sumOver (fun h : Fin (num_kv_heads * group) => (Matrix.inner g.inputs.dQ[h] δQ[h] : R))
          heads
        + sumOver (fun c : Fin num_kv_heads => (Matrix.inner g.inputs.dK[c] δK[c] : R)) kvHeads
        + sumOver (fun c : Fin num_kv_heads => (Matrix.inner g.inputs.dV[c] δV[c] : R)) kvHeads
        + (sumOver (fun h : Fin (num_kv_heads * group) =>
            (Matrix.inner g.inputs.dBias[h] δB[h] : R)) heads + Vec.dot g.dSinks δsinks) := by
  intro g dOut heads kvHeads lseRate
  let behind := fun {n : Nat} (X : Vector (Matrix R kv_len n) num_kv_heads) =>
    (Vec.ofFn fun c => rowsBehindSink X[c] : Vector (Matrix R (kv_len + 1) n) num_kv_heads)
  let rates : Vector (Matrix R q_len (kv_len + 1)) (num_kv_heads * group) :=
    Vec.ofFn fun h => sinkRates δsinks[h] δB[h]
  have hl : ∀ h : Fin (num_kv_heads * group), ((lifted h).behindSink ⟨sinks[h], δsinks[h]⟩).IsLift
      ((modify h).behindSink sinks[h]) (slope h).behindSink rates[h] := fun h => by
    have := IsLift.behindSink (hlift h) sinks[h] δsinks[h]
    simpa only [rates, Fin.getElem_fin, Vec.getElem_ofFn] using this
  have hdual : ∀ {n : Nat} (X δX : Vector (Matrix R kv_len n) num_kv_heads) (c : Fin num_kv_heads),
      (behind X)[c].dual (behind δX)[c] = rowsBehindSink (X[c].dual δX[c]) := fun X δX c => by
    simp only [behind, Fin.getElem_fin, Vec.getElem_ofFn, dual_rowsBehindSink]
  have main := groupedQueryVjp_adjoint (scale := scale) Q δQ (behind K) (behind δK) (behind V)
    (behind δV) hl dO dLse (L := L) fun h i => (hL h i).imp_right fun this => by
      rw [List.finRange_succ, List.map_cons, List.map_map]
      refine Eq.trans this (congrArg denominator ?_)
      refine congr (congrArg List.cons rfl) (List.map_congr_left fun k _ => ?_)
      rw [hdual]
      simp only [Function.comp_def, score, ScoreMod.behindSink, sinkFirst_succ, rowsBehindSink,
        Fin.getElem_fin, Vec.getElem_ofFn]
      rfl
  have hout : ∀ h : Fin (num_kv_heads * group), dOut h
      = (groupedQueryJvp scale (fun h => (lifted h).behindSink ⟨sinks[h], δsinks[h]⟩) Q δQ
        (behind K) (behind δK) (behind V) (behind δV))[h] := fun h => by
    rw [getElem_groupedQueryJvp, jvp, hdual, hdual, ← attentionSink_eq_attention]
  have hsum : sumOver (fun h : Fin (num_kv_heads * group) =>
        (Matrix.inner g.inputs.dBias[h] δB[h] : R)) heads + Vec.dot g.dSinks δsinks
      = sumOver (fun h : Fin (num_kv_heads * group) => (Matrix.inner (groupedQueryVjp scale
          (fun h => (modify h).behindSink sinks[h]) (fun h => (slope h).behindSink) Q (behind K)
          (behind V) (fun x => x) dO dLse).dBias[h] rates[h] : R)) heads := by
    rw [Vec.dot, ← sumOver_add]
    refine sumOver_congr fun h _ => ?_
    have hr : rates[h] = sinkRates δsinks[h] δB[h] := by
      simp only [rates, Fin.getElem_fin, Vec.getElem_ofFn]
    rw [hr, inner_sinkRates]
    simp only [g, sinkVjp, Fin.getElem_fin, Vec.getElem_ofFn]
    rfl
  have hrows : ∀ {n : Nat} (A : Vector (Matrix R (kv_len + 1) n) num_kv_heads)
      (δ : Vector (Matrix R kv_len n) num_kv_heads) (c : Fin num_kv_heads),
      Matrix.inner (Vec.ofFn fun c => rowsOfKeys A[c] :
        Vector (Matrix R kv_len n) num_kv_heads)[c] δ[c]
        = Matrix.inner A[c] (behind δ)[c] := fun A δ c => by
    simp only [behind, Fin.getElem_fin, Vec.getElem_ofFn, inner_rowsBehindSink]
  rw [hsum]
  refine Eq.trans (sumOver_congr fun h _ => ?_) (main.trans ?_)
  · rw [hout h]
  · refine congrArg (· + _) (congr (congrArg HAdd.hAdd (congrArg (_ + ·) ?_)) ?_) <;>
      exact sumOver_congr fun c _ => (hrows _ _ c).symm

end

end Attention.Proof
