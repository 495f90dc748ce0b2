module

public import Attention.Proof.Softmax.Tanh
public import Attention.Spec.Slopes

public section

/-! # The score transformations, run over dual numbers, and their slopes -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {q_len kv_len : Nat}

/-- No rates. -/
@[expose] def zeroMatrix : Matrix R q_len kv_len := Vec.ofFn fun _ => Vec.zero

private theorem getElem_zeroMatrix (i : Fin q_len) (j : Fin kv_len) :
    (zeroMatrix : Matrix R q_len kv_len)[i][j] = 0 := by
  simp only [zeroMatrix, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero]

/-- A mask has slope 1. -/
theorem isLift_mask (mask : Mask q_len kv_len) :
    ScoreMod.IsLift (R := R) mask.toScoreMod mask.toScoreMod ScoreSlope.one zeroMatrix := by
  intro i j s
  rw [getElem_zeroMatrix, ScoreSlope.one, Semiring.one_mul, Semiring.add_zero, Mask.toScoreMod,
    Mask.toScoreMod]
  cases mask i j <;> rfl

/-- An additive bias has slope 1, and its own rates are added. -/
theorem isLift_bias (B : Matrix (Option R) q_len kv_len) (dB : Matrix R q_len kv_len) :
    ScoreMod.IsLift (ScoreMod.bias (biasDual B dB)) (ScoreMod.bias B) ScoreSlope.one dB := by
  intro i j s
  have h : (biasDual B dB)[i][j] = B[i][j].map fun b => ⟨b, dB[i][j]⟩ := by
    simp only [biasDual, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [ScoreMod.bias, ScoreMod.bias, h, Option.map_map, Option.map_map, ScoreSlope.one,
    Semiring.one_mul]
  rfl

/-- After a transformation without rates of its own, the slopes multiply. -/
theorem IsLift.andThen {f g : ScoreMod R q_len kv_len} {f' g' : ScoreMod (Dual R) q_len kv_len}
    {slope slope' : ScoreSlope R R q_len kv_len} {dB : Matrix R q_len kv_len}
    (hf : f'.IsLift f slope zeroMatrix) (hg : g'.IsLift g slope' dB) :
    (f'.andThen g').IsLift (f.andThen g) (ScoreSlope.andThen f slope slope') dB := by
  intro i j s
  rw [ScoreMod.andThen, ScoreMod.andThen, hf, ScoreSlope.andThen, getElem_zeroMatrix,
    Semiring.add_zero]
  cases f i j s.val with
  | none => rfl
  | some t =>
    simp only [Option.map_some, Option.bind_some, hg i j, Semiring.mul_assoc]

/-- A mask afterwards changes neither slopes nor rates. -/
theorem IsLift.andThen_mask {f : ScoreMod R q_len kv_len} {f' : ScoreMod (Dual R) q_len kv_len}
    {slope : ScoreSlope R R q_len kv_len} {dB : Matrix R q_len kv_len} (hf : f'.IsLift f slope dB)
    (mask : Mask q_len kv_len) :
    (f'.andThen mask.toScoreMod).IsLift (f.andThen mask.toScoreMod) slope dB := by
  intro i j s
  rw [ScoreMod.andThen, ScoreMod.andThen, hf]
  cases f i j s.val with
  | none => rfl
  | some t =>
    simp only [Option.map_some, Option.bind_some, Mask.toScoreMod]
    cases mask i j <;> rfl

/-- A bias afterwards adds its own rates. -/
theorem IsLift.andThen_bias {f : ScoreMod R q_len kv_len} {f' : ScoreMod (Dual R) q_len kv_len}
    {slope : ScoreSlope R R q_len kv_len} {dA : Matrix R q_len kv_len} (hf : f'.IsLift f slope dA)
    (B : Matrix (Option R) q_len kv_len) (dB : Matrix R q_len kv_len) :
    (f'.andThen (ScoreMod.bias (biasDual B dB))).IsLift (f.andThen (ScoreMod.bias B)) slope
      (Vec.ofFn fun i => Vec.add dA[i] dB[i]) := by
  intro i j s
  rw [ScoreMod.andThen, ScoreMod.andThen, hf]
  cases f i j s.val with
  | none => rfl
  | some t =>
    simp only [Option.map_some, Option.bind_some, isLift_bias B dB i j]
    refine congrArg (Option.map · _) (funext fun b => ?_)
    simp only [ScoreSlope.one, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_add, Dual.mk.injEq,
      true_and]
    grind

variable [Exponential R R]

/-- The slope of the hyperbolic tangent is 1 − tanh². -/
theorem tanh_dual (x : Dual R) : (tanh x : Dual R)
    = ⟨tanh x.val, (1 - tanh x.val * tanh x.val) * x.der⟩ := by
  apply Dual.ext
  · rfl
  · have h := exp_pos (R := R) (x.val + x.val)
    have h₁ : (exp (x.val + x.val) : R) + 1 ≠ 0 := by grind
    have h₂ : (tanh x : Dual R).der = ((exp (x.val + x.val) * (x.der + x.der) - 0)
          * (exp (x.val + x.val) + 1) - (exp (x.val + x.val) - 1)
          * (exp (x.val + x.val) * (x.der + x.der) + 0))
        / ((exp (x.val + x.val) + 1) * (exp (x.val + x.val) + 1)) := rfl
    rw [h₂, tanh]
    clear h h₂
    generalize (exp (x.val + x.val) : R) = e at h₁
    grind

/-- **softcap-slope**: softcap, run over dual numbers, changes at 1 − tanh² (s / cap) times the rate
of the score. -/
theorem isLift_softcap {cap : R} (hcap : cap ≠ 0) :
    ScoreMod.IsLift (q_len := q_len) (kv_len := kv_len) (ScoreMod.softcap (Dual.const cap))
      (ScoreMod.softcap cap) (ScoreSlope.softcap cap) zeroMatrix := by
  intro i j s
  have h : s / Dual.const cap = ⟨s.val / cap, s.der / cap⟩ := by
    apply Dual.ext
    · rfl
    · rw [Dual.der_div, Dual.der_const, Dual.val_const, Semiring.mul_zero]
      grind
  rw [getElem_zeroMatrix, Semiring.add_zero, ScoreMod.softcap, ScoreMod.softcap, h, tanh_dual,
    Option.map_some, ScoreSlope.softcap]
  refine congrArg some (Dual.ext rfl ?_)
  rw [Dual.der_mul, Dual.der_const, Dual.val_const]
  generalize tanh (s.val / cap) = t
  grind

end Attention.Proof
