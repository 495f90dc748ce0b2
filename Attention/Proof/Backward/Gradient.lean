module

public import Attention.Proof.Backward.DropoutAdjoint
public import Attention.Proof.Backward.MultiHead
public import Attention.Proof.Backward.Options
public import Attention.Proof.Derivative.Changes

public section

/-! # The backward pass gives the derivative

A loss is Σ dO · O + Σ dLse · L, of the output O of attention and the log-sum-exps L of its rows.
Where the scale, the factors of dropout, dO and dLse stay and the rest is on any paths, it changes
at the rate that the gradients of the backward pass give: the adjoint over dual numbers together
with the tangents of output and log-sum-exp. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {ι : Type v} {m n d d_v q_len kv_len : Nat}

/-! ## Paths at time 0 -/

/-- A path, its number at time 0 and its rate. -/
private theorem tangent_start {f : ι → R → R} {a : ι → Dual R} (h : IsTangent f a) {r : ι → R}
    (hr : ∀ x, (a x).der = r x) : IsTangent f fun x => ⟨f x 0, r x⟩ := by
  have e : (fun x => (⟨f x 0, r x⟩ : Dual R)) = a :=
    funext fun x => Dual.ext (h.val_eq x) (hr x).symm
  rw [e]
  exact h

/-- A matrix on a path is at time 0 the numbers of its tangent. -/
private theorem dual_start {A : ι → R → Matrix R m n} {A' : ι → Matrix (Dual R) m n}
    (h : MatrixTangent A A') (x : ι) : (A x 0).dual (A' x).tangent = A' x := by
  refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
  simp only [Matrix.dual, Matrix.tangent, Fin.getElem_fin, Vec.getElem_ofFn]
  exact Dual.ext ((h i hi j hj).val_eq x) rfl

/-- A score on a path is at time 0 the number of its tangent. -/
private theorem primal_start {s : ι → R → Option R} {s' : ι → Option (Dual R)}
    (h : ScoreTangent s s') (x : ι) : primal (s' x) = s x 0 := by
  rcases h with h | ⟨f, a, hf, h⟩
  · rw [(h x).1, (h x).2]; rfl
  · rw [(h x).1, (h x).2, hf.val_eq x]; rfl

/-- An inner product with a matrix on a path. -/
private theorem innerTangent (G : Matrix R m n) {A : ι → R → Matrix R m n}
    {A' : ι → Matrix (Dual R) m n} (h : MatrixTangent A A') :
    IsTangent (fun x t => Matrix.inner G (A x t))
      fun x => ⟨Matrix.inner G (A x 0), Matrix.inner G (A' x).tangent⟩ := by
  have h' : IsTangent (fun x t => Matrix.inner G (A x t)) fun x =>
      sumOver (fun i : Fin m => sumOver (fun j : Fin n => Dual.const G[i][j] * (A' x)[i][j])
        (List.finRange n)) (List.finRange m) :=
    IsTangent.sumOver fun i _ => IsTangent.sumOver fun j _ =>
      (IsTangent.const G[i][j]).mul (h i.val i.isLt j.val j.isLt)
  refine tangent_start h' fun x => ?_
  rw [Dual.der_sumOver]
  refine sumOver_congr fun i _ => ?_
  rw [Dual.der_sumOver]
  refine sumOver_congr fun j _ => ?_
  simp only [Dual.der_mul, Dual.der_const, Dual.val_const, Semiring.zero_mul, Matrix.tangent,
    Fin.getElem_fin, Vec.getElem_ofFn, AddCommMonoid.zero_add]

/-! ## Heads -/

/-- A matrix in each head, all on paths. -/
@[expose] def HeadsTangent {heads : Nat} (A : ι → R → Vector (Matrix R m n) heads)
    (A' : ι → Vector (Matrix (Dual R) m n) heads) : Prop :=
  ∀ h : Fin heads, MatrixTangent (fun x t => (A x t)[h]) fun x => (A' x)[h]

/-- The rate of a loss with the gradients `G` by a matrix in each head: Σ Gᵢⱼ Aᵢⱼ′ over all. -/
@[expose] def headsRate {heads : Nat} (G : Vector (Matrix R m n) heads)
    (A' : Vector (Matrix (Dual R) m n) heads) : R :=
  sumOver (fun h : Fin heads => Matrix.rate G[h] A'[h]) (List.finRange heads)

/-! ## The log-sum-exp -/

variable [NaturalExp R]

/-- A log-sum-exp with the mean of the scores' rates. -/
private def lseDual (L : Option R) (row : List (Option (Dual R))) : Option (Dual R) :=
  L.map fun l => ⟨l, meanTangent row⟩

section
variable {α : Type} {keys : List α} {s : α → ι → R → Option R} {s' : α → ι → Option (Dual R)}

private theorem isLogSumExp_start (h : ∀ k ∈ keys, ScoreTangent (s k) (s' k)) {L : Option R}
    {x : ι} (hL : IsLogSumExp R L (keys.map fun k => s k x 0)) :
    IsLogSumExp (Dual R) (lseDual L (keys.map fun k => s' k x)) (keys.map fun k => s' k x) := by
  refine isLogSumExp_dual ?_
  rw [List.map_map]
  have e : keys.map (primal ∘ fun k => s' k x) = keys.map fun k => s k x 0 :=
    List.map_congr_left fun k hk => primal_start (h k hk) x
  rw [e]
  exact hL

/-- A number times a log-sum-exp on a path, −∞ counting 0. -/
private theorem lseTangent_start (h : ∀ k ∈ keys, ScoreTangent (s k) (s' k)) {c : R}
    {L : ι → R → Option R}
    (hL : ∀ x t, c = 0 ∨ IsLogSumExp R (L x t) (keys.map fun k => s k x t)) :
    IsTangent (fun x t => c * (L x t).getD 0) fun x =>
      ⟨c * (L x 0).getD 0, c * scoreTangent (lseDual (L x 0) (keys.map fun k => s' k x))⟩ := by
  by_cases hc : c = 0
  · simp only [hc, Semiring.zero_mul]
    exact .zero
  have hL : ∀ x t, IsLogSumExp R (L x t) (keys.map fun k => s k x t) :=
    fun x t => (hL x t).resolve_left hc
  have hs : ScoreTangent L fun x => lseDual (L x 0) (keys.map fun k => s' k x) :=
    logSumExp_tangent h hL fun x => isLogSumExp_start h (hL x 0)
  rcases hs with h | ⟨f, a, hf, h⟩ <;> dsimp only at h
  · have e : (fun x t => c * (L x t).getD 0) = fun _ _ => 0 := funext fun x => funext fun t => by
      rw [(h x).2 t, Option.getD_none, Semiring.mul_zero]
    have e' : (fun x => (⟨c * (L x 0).getD 0,
        c * scoreTangent (lseDual (L x 0) (keys.map fun k => s' k x))⟩ : Dual R)) = fun _ => 0 :=
      funext fun x => by
        rw [(h x).1, (h x).2 0, Option.getD_none, scoreTangent, Semiring.mul_zero]; rfl
    rw [e, e']
    exact .zero
  · refine tangent_start (a := fun x => Dual.const c * a x) ?_ fun x => ?_
    · have e : (fun x t => c * (L x t).getD 0) = fun x t => c * f x t :=
        funext fun x => funext fun t => by rw [(h x).2 t, Option.getD_some]
      rw [e]
      exact (IsTangent.const c).mul hf
    · rw [(h x).1, scoreTangent, Dual.der_mul, Dual.der_const, Dual.val_const, Semiring.zero_mul,
        AddCommMonoid.zero_add]

/-- A loss of output and log-sum-exps. -/
private theorem loss_tangent {rows : Nat} {s : Fin rows → α → ι → R → Option R}
    {s' : Fin rows → α → ι → Option (Dual R)}
    (h : ∀ i, ∀ k ∈ keys, ScoreTangent (s i k) (s' i k)) (dO : Matrix R rows n) (dLse : Vec R rows)
    {O : ι → R → Matrix R rows n} {O' : ι → Matrix (Dual R) rows n} (hO : MatrixTangent O O')
    {L : ι → R → Fin rows → Option R} (hL : ∀ x t (i : Fin rows),
      dLse[i] = 0 ∨ IsLogSumExp R (L x t i) (keys.map fun k => s i k x t)) :
    IsTangent (fun x t => Matrix.inner dO (O x t)
        + sumOver (fun i : Fin rows => dLse[i] * (L x t i).getD 0) (List.finRange rows))
      fun x => ⟨Matrix.inner dO (O x 0)
          + sumOver (fun i : Fin rows => dLse[i] * (L x 0 i).getD 0) (List.finRange rows),
        Matrix.inner dO (O' x).tangent + sumOver (fun i : Fin rows =>
          dLse[i] * scoreTangent (lseDual (L x 0 i) (keys.map fun k => s' i k x)))
            (List.finRange rows)⟩ := by
  refine tangent_start ((innerTangent dO hO).add (IsTangent.sumOver fun i _ =>
    lseTangent_start (h i) fun x t => hL x t i)) fun x => ?_
  rw [Dual.der_add, Dual.der_sumOver]

end

/-! ## Attention -/

section
variable {scale : R} {modify : ι → R → ScoreMod R q_len kv_len}
variable {modify' : ι → ScoreMod (Dual R) q_len kv_len} (hmodify : ModTangent modify modify')
variable {slope : ι → ScoreSlope R R q_len kv_len} {δB : ι → Matrix R q_len kv_len}
variable (hlift : ∀ x, (modify' x).IsLift (modify x 0) (slope x) (δB x))
variable {Q : ι → R → Matrix R q_len d} {Q' : ι → Matrix (Dual R) q_len d}
variable {K : ι → R → Matrix R kv_len d} {K' : ι → Matrix (Dual R) kv_len d}
variable {V : ι → R → Matrix R kv_len d_v} {V' : ι → Matrix (Dual R) kv_len d_v}
variable (hQ : MatrixTangent Q Q') (hK : MatrixTangent K K') (hV : MatrixTangent V V')
variable (dO : Matrix R q_len d_v) (dLse : Vec R q_len)
include hmodify hlift hQ hK hV

/-- **gradient-is-derivative**: along any paths of queries, keys, values and score transformations
Σ dO · O + Σ dLse · L changes at the rate that the gradients of the backward pass give, O being
attention's output and L the log-sum-exps of its rows, if those with a dLse other than 0 have one;
that of a row that sees no key counts 0. -/
theorem vjp_isDerivative {L : ι → R → Fin q_len → Option R}
    (hL : ∀ x t (i : Fin q_len), dLse[i] = 0 ∨ IsLogSumExp R (L x t i)
      ((List.finRange kv_len).map (score scale (modify x t) (Q x t) (K x t) i))) :
    let loss := fun x t => Matrix.inner dO (attention scale (modify x t) (Q x t) (K x t) (V x t))
      + sumOver (fun i : Fin q_len => dLse[i] * (L x t i).getD 0) (List.finRange q_len)
    let g := fun x =>
      vjp scale (modify x 0) (slope x) (Q x 0) (K x 0) (V x 0) (fun y => y) dO dLse
    IsTangent loss fun x => ⟨loss x 0, Matrix.rate (g x).dQ (Q' x) + Matrix.rate (g x).dK (K' x)
      + Matrix.rate (g x).dV (V' x) + Matrix.inner (g x).dBias (δB x)⟩ := by
  intro loss g
  have hs := fun (i : Fin q_len) (k : Fin kv_len) (_ : k ∈ List.finRange kv_len) =>
    score_tangent (.const scale) hmodify hQ hK i k
  have h := loss_tangent hs dO dLse (attention_tangent (.const scale) hmodify hQ hK hV) hL
  refine tangent_start h fun x => ?_
  have ha := vjp_adjoint_lse (scale := scale) (Q x 0) (Q' x).tangent (K x 0) (K' x).tangent (V x 0)
    (V' x).tangent dO dLse (hlift x) (L := fun i => lseDual (L x 0 i) ((List.finRange kv_len).map
      fun k => score (Dual.const scale) (modify' x) (Q' x) (K' x) i k)) fun i => by
        rw [dual_start hQ, dual_start hK]
        exact (hL x 0 i).imp_right fun h => isLogSumExp_start (hs i) h
  rw [jvp, dual_start hQ, dual_start hK, dual_start hV] at ha
  rw [← inner_tangent, ← inner_tangent, ← inner_tangent]
  exact ha

/-- **gradient-is-derivative-dropout**: so does it with dropout, whatever the factors Z, which
stay. -/
theorem vjpDropout_isDerivative (Z : WeightFactor R q_len kv_len) {L : ι → R → Fin q_len → Option R}
    (hL : ∀ x t (i : Fin q_len), dLse[i] = 0 ∨ IsLogSumExp R (L x t i)
      ((List.finRange kv_len).map (score scale (modify x t) (Q x t) (K x t) i))) :
    let loss := fun x t =>
      Matrix.inner dO (attentionDropout scale (modify x t) (Q x t) (K x t) (V x t) Z)
        + sumOver (fun i : Fin q_len => dLse[i] * (L x t i).getD 0) (List.finRange q_len)
    let g := fun x =>
      vjpDropout scale (modify x 0) (slope x) (Q x 0) (K x 0) (V x 0) Z (fun y => y) dO dLse
    IsTangent loss fun x => ⟨loss x 0, Matrix.rate (g x).dQ (Q' x) + Matrix.rate (g x).dK (K' x)
      + Matrix.rate (g x).dV (V' x) + Matrix.inner (g x).dBias (δB x)⟩ := by
  intro loss g
  have hs := fun (i : Fin q_len) (k : Fin kv_len) (_ : k ∈ List.finRange kv_len) =>
    score_tangent (.const scale) hmodify hQ hK i k
  have h := loss_tangent hs dO dLse (attentionDropout_tangent (.const scale) hmodify hQ hK hV
    (Z := fun _ _ => Z) (Z' := fun _ i j => Dual.const (Z i j)) fun i j => .const (Z i j)) hL
  refine tangent_start h fun x => ?_
  have ha := vjpDropout_adjoint (scale := scale) (Q x 0) (Q' x).tangent (K x 0) (K' x).tangent
    (V x 0) (V' x).tangent Z dO dLse (hlift x) (L := fun i => lseDual (L x 0 i)
      ((List.finRange kv_len).map fun k => score (Dual.const scale) (modify' x) (Q' x) (K' x) i k))
      fun i => by
        rw [dual_start hQ, dual_start hK]
        exact (hL x 0 i).imp_right fun h => isLogSumExp_start (hs i) h
  rw [jvpDropout, dual_start hQ, dual_start hK, dual_start hV] at ha
  rw [← inner_tangent, ← inner_tangent, ← inner_tangent]
  exact ha

end

/-! ## Softcap, slopes, a bias and a mask -/

/-- **gradient-is-derivative-slopes**: so does it where scores are softcapped first, then get linear
biases whose slope is on a path, an additive bias that is on a path, and a mask. -/
theorem slopes_isDerivative {scale cap : R} (hcap : 0 < cap) (alignment : Alignment)
    {slope : ι → R → R} {slope' : ι → Dual R} (hslope : IsTangent slope slope')
    {B : ι → R → Matrix (Option R) q_len kv_len} {δB : ι → Matrix R q_len kv_len}
    (hB : ∀ (i : Fin q_len) (j : Fin kv_len),
      ScoreTangent (fun x t => (B x t)[i][j]) fun x => (biasDual (B x 0) (δB x))[i][j])
    (mask : Mask q_len kv_len)
    {Q : ι → R → Matrix R q_len d} {Q' : ι → Matrix (Dual R) q_len d}
    {K : ι → R → Matrix R kv_len d} {K' : ι → Matrix (Dual R) kv_len d}
    {V : ι → R → Matrix R kv_len d_v} {V' : ι → Matrix (Dual R) kv_len d_v}
    (hQ : MatrixTangent Q Q') (hK : MatrixTangent K K') (hV : MatrixTangent V V')
    (dO : Matrix R q_len d_v) (dLse : Vec R q_len) {L : ι → R → Fin q_len → Option R} :
    let modify : ι → R → ScoreMod R q_len kv_len := fun x t =>
      (((ScoreMod.softcap cap).andThen (.alibi alignment (slope x t))).andThen
        (.bias (B x t))).andThen mask.toScoreMod
    (∀ x t (i : Fin q_len), dLse[i] = 0 ∨ IsLogSumExp R (L x t i)
      ((List.finRange kv_len).map (score scale (modify x t) (Q x t) (K x t) i))) →
    let loss := fun x t => Matrix.inner dO (attention scale (modify x t) (Q x t) (K x t) (V x t))
      + sumOver (fun i : Fin q_len => dLse[i] * (L x t i).getD 0) (List.finRange q_len)
    let g := fun x => vjp scale (modify x 0) (ScoreSlope.softcap cap) (Q x 0) (K x 0) (V x 0)
      (fun y => y) dO dLse
    IsTangent loss fun x => ⟨loss x 0, Matrix.rate (g x).dQ (Q' x) + Matrix.rate (g x).dK (K' x)
      + Matrix.rate (g x).dV (V' x) + (slopeGradient alignment (g x).dBias * (slope' x).der
        + Matrix.inner (g x).dBias (δB x))⟩ := by
  intro modify hL loss g
  have hmod : ModTangent modify fun x => (((ScoreMod.softcap (Dual.const cap)).andThen
      (.alibi alignment (slope' x))).andThen (.bias (biasDual (B x 0) (δB x)))).andThen
        mask.toScoreMod :=
    andThen_tangent (andThen_tangent (andThen_tangent
      (softcap_tangent (.const cap) hcap fun _ => Std.le_refl _) (alibi_tangent alignment hslope))
      (bias_tangent hB)) (mask_tangent mask)
  have h := vjp_isDerivative (scale := scale) hmod (slope := fun _ => ScoreSlope.softcap cap)
    (δB := fun x => Vec.ofFn fun i : Fin q_len =>
      Vec.add (alibiRates alignment (slope' x).der : Matrix R q_len kv_len)[i] (δB x)[i])
    (fun x => ?_) hQ hK hV dO dLse hL
  · simp only [inner_addRows, inner_alibiRates] at h
    exact h
  · refine IsLift.andThen_mask (IsLift.andThen_bias ?_ (B x 0) (δB x)) mask
    have e : slope' x = ⟨slope x 0, (slope' x).der⟩ := Dual.ext (hslope.val_eq x).symm rfl
    rw [e]
    intro i j s
    rw [IsLift.andThen (isLift_softcap (by grind)) (isLift_alibi alignment (slope x 0)
      (slope' x).der) i j s]
    cases hm : (ScoreMod.softcap cap : ScoreMod R q_len kv_len) i j s.val with
    | none => simp only [ScoreMod.andThen, hm]; rfl
    | some t => simp only [ScoreSlope.andThen, hm, ScoreSlope.one, Semiring.one_mul]

/-! ## Heads and sinks -/

variable {num_kv_heads group heads : Nat}

omit [NaturalExp R] in
/-- The rates of a matrix in each head. -/
private def headRates (A' : Vector (Matrix (Dual R) m n) heads) : Vector (Matrix R m n) heads :=
  Vec.ofFn fun h => A'[h].tangent

omit [NaturalExp R] in
private theorem dual_headRates {A : ι → R → Vector (Matrix R m n) heads}
    {A' : ι → Vector (Matrix (Dual R) m n) heads} (h : HeadsTangent A A') (x : ι) (c : Fin heads) :
    (A x 0)[c].dual (headRates (A' x))[c] = (A' x)[c] := by
  have e : (headRates (A' x))[c] = (A' x)[c].tangent := by
    simp only [headRates, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [e]
  exact dual_start (h c) x

omit [NaturalExp R] in
private theorem sum_headRates (G : Vector (Matrix R m n) heads)
    (A' : Vector (Matrix (Dual R) m n) heads) :
    sumOver (fun c : Fin heads => (Matrix.inner G[c] (headRates A')[c] : R)) (List.finRange heads)
      = headsRate G A' := by
  refine sumOver_congr fun c _ => ?_
  have e : (headRates A')[c] = A'[c].tangent := by
    simp only [headRates, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [e, inner_tangent]

section
variable {scale : R} {modify : ι → R → Fin (num_kv_heads * group) → ScoreMod R q_len kv_len}
variable {modify' : ι → Fin (num_kv_heads * group) → ScoreMod (Dual R) q_len kv_len}
variable {slope : ι → Fin (num_kv_heads * group) → ScoreSlope R R q_len kv_len}
variable {δB : ι → Vector (Matrix R q_len kv_len) (num_kv_heads * group)}
variable {Q : ι → R → Vector (Matrix R q_len d) (num_kv_heads * group)}
variable {Q' : ι → Vector (Matrix (Dual R) q_len d) (num_kv_heads * group)}
variable {K : ι → R → Vector (Matrix R kv_len d) num_kv_heads}
variable {K' : ι → Vector (Matrix (Dual R) kv_len d) num_kv_heads}
variable {V : ι → R → Vector (Matrix R kv_len d_v) num_kv_heads}
variable {V' : ι → Vector (Matrix (Dual R) kv_len d_v) num_kv_heads}

/-- **gradient-is-derivative-sink**: so does it with all heads and group sizes, and a sink in each
query head, which is on a path too and takes part in the log-sum-exps. -/
theorem sinkVjp_isDerivative
    (hmodify : ∀ h, ModTangent (fun x t => modify x t h) fun x => modify' x h)
    (hlift : ∀ x h, (modify' x h).IsLift (modify x 0 h) (slope x h) (δB x)[h])
    (hQ : HeadsTangent Q Q') (hK : HeadsTangent K K') (hV : HeadsTangent V V')
    {sinks : ι → R → Vec R (num_kv_heads * group)}
    {sinks' : ι → Vec (Dual R) (num_kv_heads * group)} (hsinks : VecTangent sinks sinks')
    (dO : Vector (Matrix R q_len d_v) (num_kv_heads * group))
    (dLse : Vector (Vec R q_len) (num_kv_heads * group))
    {L : ι → R → Fin (num_kv_heads * group) → Fin q_len → Option R}
    (hL : ∀ x t (h : Fin (num_kv_heads * group)) (i : Fin q_len), dLse[h][i] = 0
      ∨ IsLogSumExp R (L x t h i) (some (sinks x t)[h] :: (List.finRange kv_len).map
        (score scale (modify x t h) (Q x t)[h] (K x t)[kvHead h] i))) :
    let loss := fun x t => sumOver (fun h : Fin (num_kv_heads * group) =>
      Matrix.inner dO[h] (attentionSink scale (modify x t h) (sinks x t)[h] (Q x t)[h]
          (K x t)[kvHead h] (V x t)[kvHead h])
        + sumOver (fun i : Fin q_len => dLse[h][i] * (L x t h i).getD 0) (List.finRange q_len))
      (List.finRange (num_kv_heads * group))
    let g := fun x =>
      sinkVjp scale (modify x 0) (slope x) (sinks x 0) (Q x 0) (K x 0) (V x 0) (fun y => y) dO dLse
    IsTangent loss fun x => ⟨loss x 0, headsRate (g x).inputs.dQ (Q' x)
      + headsRate (g x).inputs.dK (K' x) + headsRate (g x).inputs.dV (V' x)
      + sumOver (fun h : Fin (num_kv_heads * group) =>
          (Matrix.inner (g x).inputs.dBias[h] (δB x)[h] : R)) (List.finRange _)
      + Vec.rate (g x).dSinks (sinks' x)⟩ := by
  intro loss g
  let keys : List (Option (Fin kv_len)) := none :: (List.finRange kv_len).map some
  let s := fun (h : Fin (num_kv_heads * group)) (i : Fin q_len) (k : Option (Fin kv_len)) (x : ι)
    (t : R) => match k with
    | none => some (sinks x t)[h]
    | some k => score scale (modify x t h) (Q x t)[h] (K x t)[kvHead h] i k
  let s' := fun (h : Fin (num_kv_heads * group)) (i : Fin q_len) (k : Option (Fin kv_len))
    (x : ι) => match k with
    | none => some (sinks' x)[h]
    | some k => score (Dual.const scale) (modify' x h) (Q' x)[h] (K' x)[kvHead h] i k
  have hs : ∀ h i, ∀ k ∈ keys, ScoreTangent (s h i k) (s' h i k) := fun h i k _ => match k with
    | none => .inr ⟨_, _, hsinks h.val h.isLt, fun _ => ⟨rfl, fun _ => rfl⟩⟩
    | some k => score_tangent (.const scale) (hmodify h) (hQ h) (hK (kvHead h)) i k
  have hrow : ∀ h i x t, (keys.map fun k => s h i k x t) = some (sinks x t)[h]
      :: (List.finRange kv_len).map (score scale (modify x t h) (Q x t)[h] (K x t)[kvHead h] i) :=
    fun h i x t => by simp only [keys, List.map_cons, List.map_map, Function.comp_def, s]
  have hrow' : ∀ h i x, (keys.map fun k => s' h i k x) = some (sinks' x)[h]
      :: (List.finRange kv_len).map (score (Dual.const scale) (modify' x h) (Q' x)[h]
        (K' x)[kvHead h] i) :=
    fun h i x => by simp only [keys, List.map_cons, List.map_map, Function.comp_def, s']
  have hl : ∀ x t h (i : Fin q_len), dLse[h][i] = 0
      ∨ IsLogSumExp R (L x t h i) (keys.map fun k => s h i k x t) := fun x t h i => by
    rw [hrow]
    exact hL x t h i
  have h := IsTangent.sumOver (xs := List.finRange (num_kv_heads * group)) fun h _ =>
    loss_tangent (hs h) dO[h] dLse[h] (attentionSink_tangent (.const scale) (hmodify h) (hQ h)
      (hK (kvHead h)) (hV (kvHead h)) (hsinks h.val h.isLt)) fun x t i => hl x t h i
  refine tangent_start h fun x => ?_
  have hsink : ∀ h : Fin (num_kv_heads * group),
      (⟨(sinks x 0)[h], (Vec.map (·.der) (sinks' x))[h]⟩ : Dual R) = (sinks' x)[h] := fun h => by
    refine Dual.ext ((hsinks h.val h.isLt).val_eq x) ?_
    simp only [Fin.getElem_fin, Vec.getElem_map]
  have ha := sinkVjp_adjoint (scale := scale) (sinks x 0) (Vec.map (·.der) (sinks' x)) (Q x 0)
    (headRates (Q' x)) (K x 0) (headRates (K' x)) (V x 0) (headRates (V' x)) (hlift x) dO dLse
    (L := fun h i => lseDual (L x 0 h i) (keys.map fun k => s' h i k x)) fun h i => by
      rw [hsink, dual_headRates hQ, dual_headRates hK, ← hrow']
      exact (hl x 0 h i).imp_right fun h' => isLogSumExp_start (hs h i) h'
  simp only [hsink, dual_headRates hQ, dual_headRates hK, dual_headRates hV] at ha
  rw [sum_headRates, sum_headRates, sum_headRates, ← Semiring.add_assoc] at ha
  rw [Dual.der_sumOver]
  have hd : Vec.dot (g x).dSinks (Vec.map (·.der) (sinks' x)) = Vec.rate (g x).dSinks (sinks' x) :=
    sumOver_congr fun h _ => by simp only [Fin.getElem_fin, Vec.getElem_map]
  rw [← hd]
  exact ha

end

end Attention.Proof
