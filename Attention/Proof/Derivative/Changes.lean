module

public import Attention.Proof.Derivative.Path
public import Attention.Proof.Derivative.Tangent
public import Attention.Spec.Dropout
public import Attention.Spec.LogSumExp
public import Attention.Spec.ScoreMods
public import Attention.Spec.Sink

public section

/-! # What changes the scores, sinks, dropout and the log-sum-exp along any paths -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {ι : Type v} {d d_v q_len kv_len : Nat}

/-! ## Score transformations -/

/-- A mask. -/
theorem mask_tangent (mask : Mask q_len kv_len) :
    ModTangent (R := R) (fun (_ : ι) _ => mask.toScoreMod) fun _ => mask.toScoreMod := by
  intro i j f a hf
  cases h : mask i j with
  | false =>
    simp only [Mask.toScoreMod, h]
    exact .inl fun _ => ⟨rfl, fun _ => rfl⟩
  | true =>
    simp only [Mask.toScoreMod, h]
    exact .inr ⟨f, a, hf, fun _ => ⟨rfl, fun _ => rfl⟩⟩

/-- **bias-derivative**: a bias whose entries change. -/
theorem bias_tangent {B : ι → R → Matrix (Option R) q_len kv_len}
    {B' : ι → Matrix (Option (Dual R)) q_len kv_len}
    (hB : ∀ (i : Fin q_len) (j : Fin kv_len),
      ScoreTangent (fun x t => (B x t)[i][j]) fun x => (B' x)[i][j]) :
    ModTangent (fun x t => ScoreMod.bias (B x t)) fun x => ScoreMod.bias (B' x) := by
  intro i j f a hf
  rcases hB i j with h | ⟨g, b, hg, h⟩
  · have h₁ : ∀ x, (B' x)[i][j] = none := fun x => (h x).1
    have h₂ : ∀ x t, (B x t)[i][j] = none := fun x => (h x).2
    simp only [ScoreMod.bias, h₁, h₂, Option.map_none]
    exact .inl fun _ => ⟨rfl, fun _ => rfl⟩
  · have h₁ : ∀ x, (B' x)[i][j] = some (b x) := fun x => (h x).1
    have h₂ : ∀ x t, (B x t)[i][j] = some (g x t) := fun x => (h x).2
    simp only [ScoreMod.bias, h₁, h₂, Option.map_some]
    exact .inr ⟨_, _, hf.add hg, fun _ => ⟨rfl, fun _ => rfl⟩⟩

/-- **alibi-derivative**: linear biases whose slope changes. -/
theorem alibi_tangent (alignment : Alignment) {slope : ι → R → R} {slope' : ι → Dual R}
    (h : IsTangent slope slope') :
    ModTangent (R := R) (ι := ι) (q_len := q_len) (kv_len := kv_len)
      (fun x t => ScoreMod.alibi alignment (slope x t))
      fun x => ScoreMod.alibi alignment (slope' x) := fun i j _ _ hf =>
  .inr ⟨_, _, hf.add (h.mul (.const ((-(distance alignment i j : Int) : Int) : R))),
    fun _ => ⟨rfl, fun _ => rfl⟩⟩

/-- One transformation after the other. -/
theorem andThen_tangent {f g : ι → R → ScoreMod R q_len kv_len}
    {f' g' : ι → ScoreMod (Dual R) q_len kv_len} (hf : ModTangent f f') (hg : ModTangent g g') :
    ModTangent (fun x t => (f x t).andThen (g x t)) fun x => (f' x).andThen (g' x) := by
  intro i j s a hs
  rcases hf i j s a hs with h | ⟨r, b, hr, h⟩
  · have h₁ : ∀ x, f' x i j (a x) = none := fun x => (h x).1
    have h₂ : ∀ x t, f x t i j (s x t) = none := fun x => (h x).2
    simp only [ScoreMod.andThen, h₁, h₂, Option.bind_none]
    exact .inl fun _ => ⟨rfl, fun _ => rfl⟩
  · have h₁ : ∀ x, f' x i j (a x) = some (b x) := fun x => (h x).1
    have h₂ : ∀ x t, f x t i j (s x t) = some (r x t) := fun x => (h x).2
    simp only [ScoreMod.andThen, h₁, h₂, Option.bind_some]
    exact hg i j r b hr

variable [NaturalExp R]

/-- Softcap, whose cap may change, too, and is at least `m` at time 0. -/
theorem softcap_tangent {cap : ι → R → R} {cap' : ι → Dual R} (h : IsTangent cap cap') {m : R}
    (hm : 0 < m) (hcap : ∀ x, m ≤ (cap' x).val) :
    ModTangent (R := R) (ι := ι) (q_len := q_len) (kv_len := kv_len)
      (fun x t => ScoreMod.softcap (cap x t))
      fun x => ScoreMod.softcap (cap' x) := by
  intro i j f a hf
  have hx := hf.div h hm hcap
  have he := (hx.add hx).exp
  refine .inr ⟨_, _, h.mul ((he.sub .one).div (he.add .one) OrderedRing.zero_lt_one fun x => ?_),
    fun _ => ⟨rfl, fun _ => rfl⟩⟩
  have := Exponential.exp_pos (R := R) (a x / cap' x + a x / cap' x).val
  rw [Dual.val_add, Dual.val_exp, Dual.val_one]
  grind

/-! ## The log-sum-exp -/

/-- **lse-derivative**: the log-sum-exp of scores that change, some of them masked, changes at the
rate that it has over dual numbers; without a key that is not masked it stays −∞. -/
theorem logSumExp_tangent {α : Type} {keys : List α} {s : α → ι → R → Option R}
    {s' : α → ι → Option (Dual R)} (h : ∀ k ∈ keys, ScoreTangent (s k) (s' k))
    {L : ι → R → Option R} {L' : ι → Option (Dual R)}
    (hL : ∀ x t, IsLogSumExp R (L x t) (keys.map fun k => s k x t))
    (hL' : ∀ x, IsLogSumExp (Dual R) (L' x) (keys.map fun k => s' k x)) : ScoreTangent L L' := by
  have hw : ∀ l : Option R, (weight l : R) = 0 → l = none := fun l hl => by
    cases l with
    | none => rfl
    | some l => exact absurd hl (Exponential.exp_ne_zero l)
  by_cases hk : ∃ k ∈ keys, ∃ f a, IsTangent f a
      ∧ ∀ x, s' k x = some (a x) ∧ ∀ t, s k x t = some (f x t)
  · obtain ⟨k, hk, f, a, hf, hs⟩ := hk
    have hl := denominator_tangent h
    obtain ⟨m, hm, hb⟩ := denominator_apart (R := R) (keys := keys) hf hk fun x => (hs x).1
    have hpos : ∀ x t, (denominator (keys.map fun k => s k x t) : R) ≠ 0 := fun x t => by
      rw [denominator, sumOver_map]
      have h₁ := le_sumOver (f := fun k => (weight (s k x t) : R)) (fun k _ => weight_nonneg _) hk
      have h₂ : (weight (s k x t) : R) = exp (f x t) := by rw [(hs x).2 t]; rfl
      have := Exponential.exp_pos (R := R) (f x t)
      grind
    have some : ∀ x t, ∃ l, L x t = some l := fun x t => by
      cases hx : L x t with
      | some l => exact ⟨l, rfl⟩
      | none =>
        have := hL x t
        rw [hx, IsLogSumExp, weight] at this
        exact absurd this.symm (hpos x t)
    have some' : ∀ x, ∃ l, L' x = Option.some l := fun x => by
      cases hx : L' x with
      | some l => exact ⟨l, rfl⟩
      | none =>
        have := hL' x
        rw [hx, IsLogSumExp, weight] at this
        have h₁ := hb x
        rw [← this, Dual.val_zero] at h₁
        grind
    obtain ⟨g, hg⟩ := Classical.axiomOfChoice fun p : ι × R => some p.1 p.2
    obtain ⟨b, hb'⟩ := Classical.axiomOfChoice some'
    refine .inr ⟨fun x t => g (x, t), b, hl.log hm hb (fun x t => ?_) fun x => ?_, fun x =>
      ⟨hb' x, fun t => hg (x, t)⟩⟩
    · have := hL x t
      rw [hg (x, t)] at this
      exact this
    · have := hL' x
      rw [hb' x] at this
      exact this
  · have none : ∀ k ∈ keys, ∀ x, s' k x = Option.none ∧ ∀ t, s k x t = Option.none :=
      fun k hk' => (h k hk').resolve_right fun hs => hk ⟨k, hk', hs⟩
    refine .inl fun x => ⟨?_, fun t => hw _ ?_⟩
    · have h₁ := congrArg Dual.val (hL' x)
      rw [denominator, sumOver_map, Dual.val_sumOver, sumOver_eq_zero fun k hk => by
        rw [(none k hk x).1]; rfl] at h₁
      cases hx : L' x with
      | none => rfl
      | some l =>
        rw [hx] at h₁
        exact absurd h₁ (Exponential.exp_ne_zero l.val)
    · rw [show (weight (L x t) : R) = _ from hL x t, denominator, sumOver_map]
      exact sumOver_eq_zero fun k hk => by rw [(none k hk x).2 t]; rfl

omit [NaturalExp R] in
/-- Over dual numbers a row has a log-sum-exp, if it has one over their numbers: it changes at the
mean of the rates, by the softmax weights. -/
theorem isLogSumExp_dual [Exponential R R] {row : List (Option (Dual R))} {L : Option R}
    (h : IsLogSumExp R L (row.map primal)) :
    IsLogSumExp (Dual R) (L.map fun l => ⟨l, meanTangent row⟩) row := by
  have hm : denominator (row.map primal) * meanTangent row
      = sumOver (fun s => weight (primal s) * scoreTangent s) row := by
    by_cases h₀ : (denominator (row.map primal) : R) = 0
    · rw [h₀, Semiring.zero_mul]
      refine (sumOver_eq_zero fun s hs => ?_).symm
      have := denominator_eq_zero.mp h₀ _ (List.mem_map_of_mem hs)
      rw [this, weight, Semiring.zero_mul]
    · rw [meanTangent, ← sumOver_mul_left]
      refine sumOver_congr fun s _ => ?_
      rw [← Semiring.mul_assoc, OrderedField.mul_div_cancel h₀]
  rw [IsLogSumExp] at h ⊢
  rw [denominator_dual, ← hm, ← h]
  cases L with
  | none => simp only [Option.map_none, weight, Semiring.zero_mul]; rfl
  | some l => rfl

/-! ## Sinks and dropout -/

variable {scale : ι → R → R} {scale' : ι → Dual R}
variable {modify : ι → R → ScoreMod R q_len kv_len}
variable {modify' : ι → ScoreMod (Dual R) q_len kv_len}
variable {Q : ι → R → Matrix R q_len d} {Q' : ι → Matrix (Dual R) q_len d}
variable {K : ι → R → Matrix R kv_len d} {K' : ι → Matrix (Dual R) kv_len d}
variable {V : ι → R → Matrix R kv_len d_v} {V' : ι → Matrix (Dual R) kv_len d_v}
variable (hscale : IsTangent scale scale') (hmodify : ModTangent modify modify')
variable (hQ : MatrixTangent Q Q') (hK : MatrixTangent K K') (hV : MatrixTangent V V')
include hscale hmodify hQ hK hV

/-- **sink-derivative**: attention with a sink that changes. -/
theorem attentionSink_tangent {sink : ι → R → R} {sink' : ι → Dual R}
    (hsink : IsTangent sink sink') :
    MatrixTangent
      (fun x t => attentionSink (scale x t) (modify x t) (sink x t) (Q x t) (K x t) (V x t))
      fun x => attentionSink (scale' x) (modify' x) (sink' x) (Q' x) (K' x) (V' x) := by
  intro i hi
  let keys : List (Option (Fin kv_len)) := none :: (List.finRange kv_len).map some
  let f : Option (Fin kv_len) → ι → R → ScoredValue R R d_v := fun k x t => match k with
    | none => ⟨some (sink x t), Vec.zero⟩
    | some j => ⟨score (scale x t) (modify x t) (Q x t) (K x t) ⟨i, hi⟩ j, (V x t)[j]⟩
  let f' : Option (Fin kv_len) → ι → ScoredValue (Dual R) (Dual R) d_v := fun k x => match k with
    | none => ⟨some (sink' x), Vec.zero⟩
    | some j => ⟨score (scale' x) (modify' x) (Q' x) (K' x) ⟨i, hi⟩ j, (V' x)[j]⟩
  have h := attend_tangent (keys := keys) (f := f) (f' := f') (fun k _ => match k with
    | none => .inr ⟨sink, sink', hsink, fun _ => ⟨rfl, fun _ => rfl⟩⟩
    | some j => score_tangent hscale hmodify hQ hK ⟨i, hi⟩ j) (fun k _ => match k with
    | none => fun j hj => by
      simp only [f, f', Vec.getElem_zero]
      exact .zero
    | some j => hV j.val j.isLt)
  simp only [keys, List.map_cons, List.map_map, Function.comp_def] at h
  simp only [attentionSink, Vec.getElem_ofFn]
  exact h

/-- **dropout-derivative**: attention with factors that change. -/
theorem attentionDropout_tangent {Z : ι → R → WeightFactor R q_len kv_len}
    {Z' : ι → WeightFactor (Dual R) q_len kv_len}
    (hZ : ∀ i j, IsTangent (fun x t => Z x t i j) fun x => Z' x i j) :
    MatrixTangent
      (fun x t => attentionDropout (scale x t) (modify x t) (Q x t) (K x t) (V x t) (Z x t))
      fun x => attentionDropout (scale' x) (modify' x) (Q' x) (K' x) (V' x) (Z' x) := by
  have hP : ∀ {N : Type u} [Add N] [Mul N] [Div N] [OfNat N 0] [Exp N N] (c : N)
      (f : ScoreMod N q_len kv_len) (A : Matrix N q_len d) (B : Matrix N kv_len d) (i : Fin q_len)
      (j : Fin kv_len), (probabilities c f A B : Matrix N q_len kv_len)[i][j]
        = weightOver (denominator ((List.finRange kv_len).map fun k => score c f A B i k))
          (score c f A B i j) := by
    intro N _ _ _ _ _ c f A B i j
    simp only [probabilities, softmax, Fin.getElem_fin, Vec.getElem_ofFn, Vector.getElem_mk,
      List.getElem_toArray, List.getElem_map, List.getElem_finRange]
    show (match score c f A B i j with
      | none => 0
      | some s => exp s / denominator ((List.finRange kv_len).map (score c f A B i)) : N) = _
    generalize score c f A B i j = s
    cases s <;> rfl
  intro i hi c hc
  simp only [attentionDropout, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul]
  refine IsTangent.sumOver fun j _ => ?_
  simp only [hP]
  exact ((weightOver_tangent (fun k _ => score_tangent hscale hmodify hQ hK ⟨i, hi⟩ k)
    (List.mem_finRange j)).mul (hZ ⟨i, hi⟩ j)).mul (hV j.val j.isLt c hc)

end Attention.Proof
