module

public import Attention.Proof.Backward.Options
public import Attention.Spec.ScoreTemperature

public section

/-! # A temperature may multiply the queries instead of the scores -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

variable {q_len kv_len d d_v : Nat}

section
variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]

omit [OrderedField R] [Exponential S R] in
private theorem dot_smul_left (t : S) (a b : Vec S d) :
    Vec.dot (Vec.smul t a) b = t * Vec.dot a b := by
  rw [Vec.dot, Vec.dot]
  generalize List.finRange d = xs
  induction xs with
  | nil => rw [sumOver_nil, sumOver_nil, Semiring.mul_zero]
  | cons x xs ih =>
    rw [sumOver_cons, sumOver_cons, ih, Fin.getElem_fin, Vec.getElem_smul, Semiring.left_distrib,
      Semiring.mul_assoc]
    rfl

/-- **temperature**: attention whose scores are multiplied by `t`, after the scale and before any
other transformation, is attention of the queries multiplied by `t`. -/
theorem attention_temperature (scale t : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    attention scale ((ScoreMod.temperature t).andThen modify) Q K V
      = attention scale modify (scaleRows t Q) K V := by
  refine congrArg Vec.ofFn (funext fun i => congrArg attend ?_)
  refine List.map_congr_left fun j _ => ?_
  have h : t * (scale * Vec.dot Q[i] K[j]) = scale * Vec.dot (scaleRows t Q)[i] K[j] := by
    simp only [scaleRows, Fin.getElem_fin, Vec.getElem_ofFn, dot_smul_left]
    grind
  simp only [score, ScoreMod.andThen, ScoreMod.temperature, Option.bind_some, h]

end

section
variable {R : Type u} [OrderedField R] [Exponential R R]

omit [Exponential R R] in
private theorem inner_scaleRows (t : R) (A B : Matrix R q_len d) :
    Matrix.inner (scaleRows t A) B = Matrix.inner A (scaleRows t B) := by
  refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
  simp only [scaleRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul]
  grind

omit [Exponential R R] in
private theorem inner_scaleRows_right (t : R) (A B : Matrix R q_len d) :
    Matrix.inner A (scaleRows t B) = Matrix.inner A B * t := by
  rw [Matrix.inner, Matrix.inner, ← sumOver_mul_right]
  refine sumOver_congr fun i _ => ?_
  rw [Vec.dot, Vec.dot, ← sumOver_mul_right]
  refine sumOver_congr fun j _ => ?_
  simp only [scaleRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul]
  grind

omit [Exponential R R] in
private theorem dot_add_left (a b c : Vec R d) :
    Vec.dot (Vec.add a b) c = Vec.dot a c + Vec.dot b c := by
  rw [Vec.dot, Vec.dot, Vec.dot, ← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  rw [Fin.getElem_fin, Vec.getElem_add, Semiring.right_distrib]
  rfl

omit [Exponential R R] in
private theorem getElem_scaleRows (t : R) (A : Matrix R q_len d) (i : Fin q_len) :
    (scaleRows t A)[i] = Vec.smul t A[i] := by
  simp only [scaleRows, Fin.getElem_fin, Vec.getElem_ofFn]

/-- The rates of the scaled queries. -/
private abbrev scaledRates (t δt : R) (Q δQ : Matrix R q_len d) : Matrix R q_len d :=
  Vec.ofFn fun i => Vec.add (scaleRows t δQ)[i] (scaleRows δt Q)[i]

omit [Exponential R R] in
/-- Over dual numbers too, a temperature multiplies the queries. -/
private theorem score_temperature_dual (scale t δt : R) (lifted : ScoreMod (Dual R) q_len kv_len)
    (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (i : Fin q_len) (j : Fin kv_len) :
    score (Dual.const scale) ((ScoreMod.temperature ⟨t, δt⟩).andThen lifted) (Q.dual δQ)
        (K.dual δK) i j
      = score (Dual.const scale) lifted ((scaleRows t Q).dual (scaledRates t δt Q δQ)) (K.dual δK)
          i j := by
  have h : (scaledRates t δt Q δQ)[i] = Vec.add (Vec.smul t δQ[i]) (Vec.smul δt Q[i]) := by
    simp only [scaledRates, scaleRows, Fin.getElem_fin, Vec.getElem_ofFn]
  simp only [score, ScoreMod.andThen, ScoreMod.temperature, Option.bind_some]
  refine congrArg (lifted i j) ?_
  rw [dot_dual, dot_dual, rawTangent, rawTangent, h, getElem_scaleRows, dot_smul_left,
    dot_smul_left, dot_add_left, dot_smul_left, dot_smul_left]
  generalize Vec.dot Q[i] K[j] = a
  generalize Vec.dot δQ[i] K[j] = b
  generalize Vec.dot Q[i] δK[j] = c
  refine Dual.ext ?_ ?_
  · rw [Dual.val_mul]
    grind
  · rw [Dual.der_mul]
    grind

omit [Exponential R R] in
private theorem sum_of_five (a b c d e : R) : a + b + c + d + e = a + c + d + b + e := by grind

/-- **temperature-gradient**: `temperatureVjp` is the adjoint of attention with a temperature, run
over dual numbers, for all rates of queries, keys, values, temperature and what else transforms the
scores. -/
theorem temperatureVjp_adjoint {scale : R} {modify : ScoreMod R q_len kv_len}
    {lifted : ScoreMod (Dual R) q_len kv_len} {slope : ScoreSlope R R q_len kv_len}
    {δB : Matrix R q_len kv_len} (hlift : lifted.IsLift modify slope δB) (t δt : R)
    (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v)
    (dO : Matrix R q_len d_v) :
    let g := temperatureVjp scale t modify slope Q K V (fun x => x) dO Vec.zero
    Matrix.inner dO
        (jvp scale ((ScoreMod.temperature ⟨t, δt⟩).andThen lifted) Q δQ K δK V δV)
      = Matrix.inner g.inputs.dQ δQ + Matrix.inner g.inputs.dK δK + Matrix.inner g.inputs.dV δV
        + g.dTemperature * δt + Matrix.inner g.inputs.dBias δB := by
  intro g
  let g' := vjp scale modify slope (scaleRows t Q) K V (fun x => x) dO Vec.zero
  have hj : jvp scale ((ScoreMod.temperature ⟨t, δt⟩).andThen lifted) Q δQ K δK V δV
      = jvp scale lifted (scaleRows t Q) (scaledRates t δt Q δQ) K δK V δV :=
    congrArg Matrix.tangent (congrArg Vec.ofFn (funext fun i => congrArg attend
      (List.map_congr_left fun j _ => by rw [score_temperature_dual])))
  have hQ : (Vec.ofFn fun i => Vec.map (fun x => x) Q[i] : Matrix R q_len d) = Q :=
    Vector.ext fun i hi => Vector.ext fun j hj => by
      simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map]
  have h₁ : Matrix.inner g.inputs.dQ δQ = Matrix.inner g'.dQ (scaleRows t δQ) :=
    inner_scaleRows t g'.dQ δQ
  have h₂ : g.dTemperature * δt = Matrix.inner g'.dQ (scaleRows δt Q) :=
    (congrArg (Matrix.inner g'.dQ · * δt) hQ).trans (inner_scaleRows_right δt g'.dQ Q).symm
  rw [hj, vjp_adjoint _ _ K δK V δV dO hlift, h₁, h₂, inner_addRows]
  exact sum_of_five _ _ _ _ _

end

end Attention.Proof
