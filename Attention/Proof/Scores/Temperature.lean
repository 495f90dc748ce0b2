module

public import Attention.Proof.Backward.Options
public import Attention.Spec.Temperature

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

private theorem inner_scaleRows (t : R) (A B : Matrix R q_len d) :
    Matrix.inner (scaleRows t A) B = Matrix.inner A (scaleRows t B) := by
  refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
  simp only [scaleRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul]
  grind

private theorem inner_scaleRows_right (t : R) (A B : Matrix R q_len d) :
    Matrix.inner A (scaleRows t B) = Matrix.inner A B * t := by
  rw [Matrix.inner, Matrix.inner, ← sumOver_mul_right]
  refine sumOver_congr fun i _ => ?_
  rw [Vec.dot, Vec.dot, ← sumOver_mul_right]
  refine sumOver_congr fun j _ => ?_
  simp only [scaleRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul]
  grind

/-- Over dual numbers too: the rate of the scores is that of the queries times `t`. -/
private theorem score_temperature_dual (scale t δt : R) (lifted : ScoreMod (Dual R) q_len kv_len)
    (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (i : Fin q_len) (j : Fin kv_len) :
    score (Dual.const scale) ((ScoreMod.temperature ⟨t, δt⟩).andThen lifted) (Q.dual δQ) (K.dual δK)
        i j
      = score (Dual.const scale) lifted ((scaleRows t Q).dual
          (Vec.ofFn fun i => Vec.add (scaleRows t δQ)[i] (scaleRows δt Q)[i])) (K.dual δK) i j := by
  have h : (⟨t, δt⟩ : Dual R) * (Dual.const scale * Vec.dot (Q.dual δQ)[i] (K.dual δK)[j])
      = Dual.const scale * Vec.dot ((scaleRows t Q).dual
          (Vec.ofFn fun i => Vec.add (scaleRows t δQ)[i] (scaleRows δt Q)[i]))[i] (K.dual δK)[j] := by
    rw [Vec.dot, Vec.dot]
    refine Dual.ext ?_ ?_
    · simp only [Dual.val_mul, Dual.val_const, Dual.val_sumOver, Matrix.dual, scaleRows,
        Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul]
      rw [← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_mul_left]
      exact sumOver_congr fun c _ => by grind
    · simp only [Dual.val_mul, Dual.der_mul, Dual.val_const, Dual.der_const, Dual.val_sumOver,
        Dual.der_sumOver, Matrix.dual, scaleRows, Fin.getElem_fin, Vec.getElem_ofFn,
        Vec.getElem_smul, Vec.getElem_add, Semiring.zero_mul, Semiring.add_zero]
      simp only [← sumOver_mul_left, ← sumOver_add]
      exact sumOver_congr fun c _ => by grind
  simp only [score, ScoreMod.andThen, ScoreMod.temperature, Option.bind_some, h]

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
  have hj : jvp scale ((ScoreMod.temperature ⟨t, δt⟩).andThen lifted) Q δQ K δK V δV
      = jvp scale lifted (scaleRows t Q)
          (Vec.ofFn fun i => Vec.add (scaleRows t δQ)[i] (scaleRows δt Q)[i]) K δK V δV := by
    refine congrArg Matrix.tangent (congrArg Vec.ofFn (funext fun i => congrArg attend ?_))
    refine List.map_congr_left fun j _ => ?_
    rw [score_temperature_dual]
  have hQ : (Vec.ofFn fun i => Vec.map (fun x => x) Q[i] : Matrix R q_len d) = Q :=
    Vector.ext fun i hi => Vector.ext fun j hj => by
      simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map]
  have hg : g.dTemperature = Matrix.inner
      (vjp scale modify slope (scaleRows t Q) K V (fun x => x) dO Vec.zero).dQ Q :=
    congrArg _ hQ
  rw [hj, vjp_adjoint _ _ K δK V δV dO hlift, inner_addRows, hg, ← inner_scaleRows_right]
  show _ = Matrix.inner (scaleRows t _) δQ + _ + _ + _ + _
  rw [inner_scaleRows]
  generalize Matrix.inner _ (scaleRows t δQ) = a
  generalize Matrix.inner _ (scaleRows δt Q) = b
  show a + b + Matrix.inner _ δK + Matrix.inner _ δV + Matrix.inner _ δB = _
  grind

end

end Attention.Proof
