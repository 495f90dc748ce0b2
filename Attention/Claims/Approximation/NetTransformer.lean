module

public import Attention.Claims.Approximation.Nearest
public import Attention.Claims.Approximation.UniversalApproximation
public import Attention.Claims.Memorise.Attention
public import Attention.Claims.Memorise.Norms

public section

/-! # A decoder that attends by distance

One layer, normalised before, with one head: its cross-attention finds points of its context by
their distances from the input x. The row of x is (x, 1, 0, …, 0). Normalisation subtracts the mean
μ and divides by a root σ; a query is made of differences from the last component, in which μ falls
out: it is (1, 2 x) / σ. A row of the context has the key (−|c|², c), then the value of c. So the
cross-attention is attention by distance, of the inverse temperature scale / σ, and adds the value
that it finds where the row of x is 0. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} {n m kv_len num_heads d_model d_ff : Nat}

/-- The functions from ℝⁿ to ℝᵐ that the decoder of a transformer computes whose source does not
depend on x, and whose target is one row, linear in x: x has to pass the normalisation of each layer
to reach the attention of it. Layers are normalised before. -/
@[expose] def DecoderComputes [OrderedField R] [Exp R R] (sqrt : R → R) (ε : R) (n m : Nat)
    (T : Vec R n → Vec R m) : Prop :=
  ∃ (s d_model num_heads d d_ff : Nat) (scale : R) (context : Matrix R s d_model)
    (target : Linear R n d_model) (decoder : List (DecoderLayer R d_model num_heads d d_ff))
    (crossMask : Mask 1 s) (output : Linear R d_model m),
    ∀ x, T x = (output.rows (decode sqrt ε scale Mask.full crossMask decoder context
      #v[target.row x]))[(0 : Fin 1)]

section
variable [OrderedField R]

/-- A linear layer that gives a vector whatever its input. -/
@[expose] def constLinear (n : Nat) (y : Vec R m) : Linear R n m := ⟨Vec.ofFn fun _ => Vec.zero, y⟩

theorem constLinear_row (y : Vec R m) (x : Vec R n) : (constLinear n y).row x = y :=
  Vector.ext fun j hj => by
    have e : Vec.dot (Vec.zero : Vec R n) x = 0 := sumOver_eq_zero fun i _ => by
      rw [Fin.getElem_fin, Vec.getElem_zero]
      grind
    rw [Linear.row, constLinear, Vec.getElem_ofFn]
    simp only [Fin.getElem_fin, Vec.getElem_ofFn, e]
    grind

/-- They are among those that transformers compute. -/
theorem DecoderComputes.transformerComputes [Exp R R] {sqrt : R → R} {ε : R}
    {T : Vec R n → Vec R m} (h : DecoderComputes sqrt ε n m T) :
    TransformerComputes sqrt ε n m T := by
  obtain ⟨s, d_model, num_heads, d, d_ff, scale, context, target, decoder, crossMask, output, h⟩ :=
    h
  let norm : LayerNorm R d_model := ⟨Vec.zero, Vec.zero⟩
  refine ⟨s, 1, d_model, num_heads, d, d_ff, scale, Vec.map (constLinear n) context, #v[target],
    [], decoder, norm, norm, Mask.full, Mask.full, crossMask, output, 0, .inr fun x => ?_⟩
  have e₁ : Vec.map (·.row x) (Vec.map (constLinear n) context) = context :=
    Vector.ext fun i hi => by rw [Vec.getElem_map, Vec.getElem_map, constLinear_row]
  have e₂ : Vec.map (·.row x) #v[target] = #v[target.row x] := rfl
  rw [h, e₁, e₂]
  rfl

/-! ## The parameters -/

/-- The row of the point c with the value v: (−|c|², c, v, 0). -/
@[expose] def pointRow (c : Vec R n) (v : Vec R m) : Vec R (n + 1 + m + 1) :=
  Vec.ofFn fun j => if h : j.val < n + 1 then (pointKey c)[j.val]
    else if h : j.val - (n + 1) < m then v[j.val - (n + 1)] else 0

/-- The row of the input: x ↦ (x, 1, 0, …, 0). -/
@[expose] def inputRow (n m : Nat) : Linear R n (n + 1 + m + 1) :=
  ⟨Vec.ofFn fun j => if j.val < n then unit n j.val else Vec.zero, unit _ n⟩

/-- The query of a row: (1, 2 x), each component the difference of two of the row. -/
@[expose] def differences (n m k : Nat) : Linear R (n + 1 + m + 1) k :=
  ⟨Vec.ofFn fun j => if j.val = 0 then sparse _ [(n, 1), (n + 1 + m, -1)]
    else if j.val < n + 1 then sparse _ [(j.val - 1, 2), (n + 1 + m, -2)] else Vec.zero, Vec.zero⟩

/-- The layer: self-attention and the feed-forward network add nothing; keys and values are the rows
of the context. -/
@[expose] def netLayer (n m : Nat) :
    DecoderLayer R (n + 1 + m + 1) 1 (n + 1 + m + 1) 1 where
  attention := noAttention _ _ _
  attentionNorm := plainNorm _
  cross := ⟨differences n m _, copyLinear (n + 1 + m + 1) _ _, copyLinear (n + 1 + m + 1) _ _,
    copyLinear (n + 1 + m + 1) _ _⟩
  crossNorm := plainNorm _
  feedForward := ⟨zeroLinear _ _, zeroLinear _ _⟩
  feedForwardNorm := plainNorm _

/-- The output: the components in which the value of a point stands. -/
@[expose] def valueLinear (n m : Nat) : Linear R (n + 1 + m + 1) m :=
  ⟨Vec.ofFn fun j => unit _ (n + 1 + j.val), Vec.zero⟩

/-! ## What they do -/

/-- The components of the row of the input. -/
theorem inputRow_row (x : Vec R n) {j : Nat} (hj : j < n + 1 + m + 1) :
    ((inputRow n m).row x)[j] = if h : j < n then x[j] else if j = n then 1 else 0 := by
  rw [Linear.row, inputRow, Vec.getElem_ofFn]
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, getElem_unit hj]
  by_cases h : j < n
  · rw [if_pos h, dif_pos h, dot_unit h, if_neg (by omega)]
    grind
  · have e : Vec.dot (Vec.zero : Vec R n) x = 0 := sumOver_eq_zero fun i _ => by
      rw [Fin.getElem_fin, Vec.getElem_zero]
      grind
    rw [if_neg h, dif_neg h, e]
    grind

/-- The output is read where the values stand. -/
private theorem valueLinear_row (y : Vec R (n + 1 + m + 1)) {c : Nat} (hc : c < m)
    (h : n + 1 + c < n + 1 + m + 1) : ((valueLinear n m).row y)[c] = y[n + 1 + c] := by
  rw [Linear.row, valueLinear, Vec.getElem_ofFn]
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero]
  rw [dot_unit h]
  grind

private theorem dot_difference {k p q : Nat} (hp : p < k) (hq : q < k) (c : R) (x : Vec R k) :
    Vec.dot (sparse k [(p, c), (q, -c)]) x = c * (x[p] - x[q]) := by
  have e : Vec.dot (sparse k [(p, c), (q, -c)]) x
      = sumOver (fun i : Fin k => (if i = ⟨p, hp⟩ then c * x[i] else 0)
        + if i = ⟨q, hq⟩ then -(c * x[i]) else 0) (List.finRange k) := sumOver_congr fun i _ => by
    rw [Fin.getElem_fin, getElem_sparse]
    simp only [weightAt, sumOver_cons, sumOver_nil, Fin.ext_iff]
    split <;> split <;> grind
  rw [e, sumOver_add, sumOver_ite_eq (fun i : Fin k => c * x[i]),
    sumOver_ite_eq (fun i : Fin k => -(c * x[i]))]
  simp only [Fin.getElem_fin]
  grind

/-- In differences of components the mean falls out. -/
private theorem plainNorm_sub {k p q : Nat} (sqrt : R → R) (ε : R) (y : Vec R k) (hp : p < k)
    (hq : q < k) :
    ((plainNorm k).row sqrt ε y)[p] - ((plainNorm k).row sqrt ε y)[q]
      = (y[p] - y[q]) / sqrt (variance y + ε) := by
  simp only [LayerNorm.row, plainNorm, centred, Vec.getElem_ofFn, Vec.getElem_map, Fin.getElem_fin,
    Field.div_eq_mul_inv]
  grind

/-- The query of the input is (1, 2 x) / σ. -/
theorem query_input (sqrt : R → R) (ε : R) (x : Vec R n) {k j : Nat} (hj : j < k) :
    ((differences n m k).row ((plainNorm _).row sqrt ε ((inputRow n m).row x)))[j]
      = if h : j < n + 1
        then (pointQuery x)[j] / sqrt (variance ((inputRow n m).row x) + ε) else 0 := by
  have query : ∀ {j : Nat} (h : j < n + 1), (pointQuery x)[j]
      = if h' : j = 0 then 1 else 2 * x[j - 1] := fun {j} h => by
    rw [pointQuery, Vec.getElem_ofFn]
    cases j with
    | zero => rfl
    | succ j => rfl
  have spare : ((inputRow n m).row x)[n + 1 + m] = (0 : R) := by
    rw [inputRow_row, dif_neg (by omega), if_neg (by omega)]
  rw [Linear.row, differences, Vec.getElem_ofFn]
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero]
  by_cases h : j < n + 1
  · rw [dif_pos h, query h]
    by_cases h₀ : j = 0
    · rw [if_pos h₀, dif_pos h₀, dot_difference (by omega) (by omega), plainNorm_sub, spare,
        inputRow_row, dif_neg (by omega), if_pos rfl]
      grind
    · rw [if_neg h₀, if_pos h, dif_neg h₀, dot_difference (by omega) (by omega), plainNorm_sub,
        spare, inputRow_row, dif_pos (by omega), Field.div_eq_mul_inv, Field.div_eq_mul_inv]
      grind
  · have e : ∀ y : Vec R (n + 1 + m + 1), Vec.dot Vec.zero y = 0 := fun y =>
      sumOver_eq_zero fun i _ => by
        rw [Fin.getElem_fin, Vec.getElem_zero]
        grind
    rw [dif_neg h, if_neg (by omega), if_neg h, e]
    grind

private theorem sumOver_first {k l : Nat} (h : k ≤ l) (f : Fin l → R)
    (zero : ∀ i : Fin l, ¬ i.val < k → f i = 0) :
    sumOver f (List.finRange l) = sumOver (fun i : Fin k => f (i.castLE h)) (List.finRange k) := by
  have e : sumOver (fun i : Fin k => f (i.castLE h)) (List.finRange k) = sumOver (fun i : Fin k =>
      sumOver (fun j : Fin l => if j = i.castLE h then f j else 0) (List.finRange l))
      (List.finRange k) := sumOver_congr fun i _ => (sumOver_ite_eq f (i.castLE h)).symm
  rw [e, sumOver_comm]
  refine sumOver_congr fun j _ => ?_
  by_cases hj : j.val < k
  · refine (Eq.trans (sumOver_congr fun i _ => ?_)
      (sumOver_ite_eq (fun _ : Fin k => f j) ⟨j.val, hj⟩)).symm
    simp only [Fin.ext_iff, Fin.val_castLE]
    split <;> split <;> first | rfl | omega
  · rw [zero j hj]
    exact (sumOver_eq_zero fun i _ => by split <;> rfl).symm

private theorem addRows_zero {k l : Nat} (X : Matrix R k l) :
    addRows X (Vec.ofFn fun _ => Vec.zero) = X :=
  Vector.ext fun i hi => Vector.ext fun j hj => by
    simp only [addRows, Vec.getElem_ofFn, Fin.getElem_fin, Vec.getElem_add, Vec.getElem_zero]
    grind

end

variable [OrderedField R] [Exponential R R]

/-- One layer adds its cross-attention. -/
private theorem netLayer_preNorm (sqrt : R → R) (ε scale : R) (mask : Mask 1 1)
    (crossMask : Mask 1 kv_len) (context : Matrix R kv_len (n + 1 + m + 1))
    (X : Matrix R 1 (n + 1 + m + 1)) :
    (netLayer n m).preNorm sqrt ε scale mask crossMask context X
      = addRows X ((netLayer n m).cross.rows scale crossMask ((plainNorm _).rows sqrt ε X)
        context context) := by
  have network : ∀ Y : Matrix R 1 (n + 1 + m + 1),
      (netLayer n m).feedForward.rows Y = Vec.ofFn fun _ => (Vec.zero : Vec R (n + 1 + m + 1)) :=
    fun Y => Vector.ext fun i hi => by
      rw [FeedForward.rows, Vec.getElem_map, Vec.getElem_ofFn]
      exact zeroLinear_row _
  have self : ∀ Y : Matrix R 1 (n + 1 + m + 1),
      (netLayer n m).attention.rows scale mask Y Y Y
        = Vec.ofFn fun _ => (Vec.zero : Vec R (n + 1 + m + 1)) :=
    fun Y => noAttention_rows scale mask Y Y
  simp only [DecoderLayer.preNorm, network, self, addRows_zero]
  rfl

private theorem column_val {d : Nat} (c : Fin d) : (headColumn (0 : Fin 1) c).val = c.val := by
  simp [headColumn]

/-- The query that the one row y of a target makes. -/
private def queryOf (y : Vec R (n + 1 + m + 1)) : Matrix R 1 (n + 1 + m + 1) :=
  Vec.ofFn fun _ => Vec.ofFn fun c =>
    ((differences n m (1 * (n + 1 + m + 1))).row y)[headColumn 0 c]

private theorem one_head {d k l : Nat} (scale : R) (modify : Fin 1 → ScoreMod R k l)
    (Q : Vector (Matrix R k d) 1) (K V : Vector (Matrix R l d) 1) (i : Fin k) {j : Nat}
    (hj : j < d) (hj' : j < 1 * d) : (concatHeads (multiHead scale modify Q K V))[i][j]
      = (attention scale (modify 0) Q[(0 : Fin 1)] K[(0 : Fin 1)] V[(0 : Fin 1)])[i][j] := by
  have e := Proof.getElem_concatHeads (multiHead scale modify Q K V) i 0 ⟨j, hj⟩
  have column : headColumn (0 : Fin 1) (⟨j, hj⟩ : Fin d) = ⟨j, hj'⟩ := Fin.ext (column_val _)
  simp only [column] at e
  have head : (multiHead scale modify Q K V)[(0 : Fin 1)]
      = attention scale (modify 0) Q[(0 : Fin 1)] K[(0 : Fin 1)] V[(0 : Fin 1)] := by
    rw [multiHead, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [head] at e
  exact e

omit [Exponential R R] in
private theorem split_query (Y : Matrix R 1 (n + 1 + m + 1)) :
    (splitHeads ((differences n m (1 * (n + 1 + m + 1))).rows Y))[(0 : Fin 1)]
      = queryOf Y[(0 : Fin 1)] := Vector.ext fun i hi => by
  obtain rfl : i = 0 := by omega
  have e := Proof.getElem_splitHeads
    ((differences n m (1 * (n + 1 + m + 1))).rows Y) 0 (0 : Fin 1)
  rw [Proof.getElem_linear] at e
  refine e.trans ?_
  show _ = (queryOf Y[(0 : Fin 1)])[0]
  rw [queryOf, Vec.getElem_ofFn]

omit [Exponential R R] in
private theorem split_copies {k : Nat} (context : Matrix R kv_len k) :
    (splitHeads ((copyLinear k k (1 * k)).rows context))[(0 : Fin 1)] = context :=
  Vector.ext fun i hi => Vector.ext fun c hc => by
    have e := congrArg (·[c]) (Proof.getElem_splitHeads
      ((copyLinear k k (1 * k)).rows context) 0 ⟨i, hi⟩)
    simp only [Vec.getElem_ofFn, Proof.getElem_linear] at e
    refine e.trans ?_
    rw [Fin.getElem_fin, copyLinear_row]
    simp only [column_val, hc, and_self, dif_pos]
    rfl

/-- A component that the cross-attention adds. -/
private theorem cross_component (scale : R) (mask : Mask 1 kv_len)
    (Y : Matrix R 1 (n + 1 + m + 1)) (context : Matrix R kv_len (n + 1 + m + 1)) {j : Nat}
    (hj : j < n + 1 + m + 1) :
    ((netLayer n m).cross.rows scale mask Y context context)[(0 : Fin 1)][j]
      = (attention scale mask.toScoreMod (queryOf Y[(0 : Fin 1)]) context context)[(0 : Fin 1)][j]
    := by
  have hj' : j < 1 * (n + 1 + m + 1) := by omega
  have e := Proof.getElem_linear (copyLinear (n + 1 + m + 1) (1 * (n + 1 + m + 1)) (n + 1 + m + 1))
    (concatHeads (multiHead scale (fun _ => mask.toScoreMod)
      (splitHeads ((differences n m (1 * (n + 1 + m + 1))).rows Y))
      (splitHeads ((copyLinear (n + 1 + m + 1) (n + 1 + m + 1) (1 * (n + 1 + m + 1))).rows context))
      (splitHeads ((copyLinear (n + 1 + m + 1) (n + 1 + m + 1) (1 * (n + 1 + m + 1))).rows
        context)))) (0 : Fin 1)
  refine (congrArg (fun x : Vec R (n + 1 + m + 1) => x[j]) e).trans ?_
  refine (copyLinear_row _ hj).trans ((dif_pos ⟨hj, hj'⟩).trans ?_)
  refine (one_head scale _ _ _ _ 0 hj hj').trans ?_
  rw [split_query, split_copies]

omit [Exponential R R] in
/-- A score is that of attention by distance. -/
private theorem score_pointRow (sqrt : R → R) (ε scale : R) (C : Matrix R kv_len n)
    (V : Matrix R kv_len m) (x : Vec R n) (k : Fin kv_len) :
    score scale Mask.full.toScoreMod
        (queryOf (n := n) (m := m) ((plainNorm _).row sqrt ε ((inputRow n m).row x)))
        (Vec.ofFn fun k => pointRow C[k] V[k]) 0 k
      = score (scale / sqrt (variance ((inputRow n m).row x) + ε)) Mask.full.toScoreMod
        (Vec.map pointQuery (#v[x] : Matrix R 1 n)) (Vec.map pointKey C) 0 k := by
  have query : ∀ {j : Nat} (hj : j < n + 1 + m + 1),
      (queryOf (n := n) (m := m) ((plainNorm _).row sqrt ε ((inputRow n m).row x)))[(0 : Fin 1)][j]
        = if h : j < n + 1
          then (pointQuery x)[j] / sqrt (variance ((inputRow n m).row x) + ε) else 0 :=
    fun {j} hj => by
      rw [queryOf, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_ofFn, Fin.getElem_fin]
      simp only [column_val]
      exact query_input sqrt ε x _
  have key : ∀ {j : Nat} (hj : j < n + 1), (Vec.ofFn fun k => pointRow C[k] V[k] :
      Matrix R kv_len (n + 1 + m + 1))[k][j] = (pointKey C[k])[j] := fun {j} hj => by
    rw [Fin.getElem_fin, Vec.getElem_ofFn, pointRow, Vec.getElem_ofFn]
    simp only [hj, dif_pos]
  have first : (Vec.map pointQuery (#v[x] : Matrix R 1 n))[(0 : Fin 1)] = pointQuery x := by
    rw [Fin.getElem_fin, Vec.getElem_map]
    rfl
  have point : (Vec.map pointKey C)[k] = pointKey C[k] := by
    rw [Fin.getElem_fin, Vec.getElem_map, Fin.getElem_fin]
  simp only [score, Mask.toScoreMod, Mask.full, if_true, Option.some.injEq]
  rw [first, point, Vec.dot, sumOver_first (k := n + 1) (by omega)]
  · rw [Vec.dot, ← sumOver_mul_left, ← sumOver_mul_left]
    refine sumOver_congr fun j _ => ?_
    have hj := j.isLt
    have q := query (j := j.val) (by omega)
    have c := key hj
    simp only [Fin.getElem_fin, Fin.val_castLE] at q c ⊢
    rw [q, dif_pos hj, c, Field.div_eq_mul_inv, Field.div_eq_mul_inv]
    grind
  · intro j hj
    have q := query j.isLt
    simp only [Fin.getElem_fin] at q ⊢
    rw [q, dif_neg hj, Semiring.zero_mul]

/-- **decoder-attends**: a decoder of one layer computes attention by distance over any points, of
the inverse temperature scale / σ, where σ is the root in its normalisation of the row of x. -/
theorem decoder_attends (sqrt : R → R) (ε scale : R) (C : Matrix R kv_len n)
    (V : Matrix R kv_len m) (x : Vec R n) :
    ((valueLinear n m).rows (decode sqrt ε scale Mask.full Mask.full [netLayer n m]
        (Vec.ofFn fun k : Fin kv_len => pointRow C[k] V[k]) #v[(inputRow n m).row x]))[(0 : Fin 1)]
      = (attendPoints (scale / sqrt (variance ((inputRow n m).row x) + ε)) #v[x] C V)[(0 : Fin 1)]
    := by
  refine Vector.ext fun c hc => ?_
  have hD : n + 1 + c < n + 1 + m + 1 := by omega
  have normed : ((plainNorm _).rows sqrt ε #v[(inputRow n m).row x])[(0 : Fin 1)]
      = (plainNorm _).row sqrt ε ((inputRow n m).row x) := by
    rw [LayerNorm.rows, Fin.getElem_fin, Vec.getElem_map]
    rfl
  have zero : (#v[(inputRow n m).row x] : Matrix R 1 _)[(0 : Fin 1)][n + 1 + c] = (0 : R) := by
    show ((inputRow n m).row x)[n + 1 + c] = (0 : R)
    rw [inputRow_row, dif_neg (by omega), if_neg (by omega)]
  have value : ∀ k : Fin kv_len, (Vec.ofFn fun k : Fin kv_len => pointRow C[k] V[k] :
      Matrix R kv_len (n + 1 + m + 1))[k][(⟨n + 1 + c, hD⟩ : Fin _)] = V[k][(⟨c, hc⟩ : Fin m)] :=
    fun k => by
      have h₁ : ¬ n + 1 + c < n + 1 := by omega
      have h₂ : n + 1 + c - (n + 1) = c := by omega
      simp only [Fin.getElem_fin, Vec.getElem_ofFn, pointRow, h₁, dif_neg, h₂, hc, dif_pos,
        not_false_eq_true]
  have sum : ∀ context : Matrix R kv_len (n + 1 + m + 1), (addRows #v[(inputRow n m).row x]
      ((netLayer n m).cross.rows scale Mask.full
        ((plainNorm _).rows sqrt ε #v[(inputRow n m).row x]) context context))[(0 : Fin 1)][
          n + 1 + c]
      = (attention scale Mask.full.toScoreMod
        (queryOf ((plainNorm _).row sqrt ε ((inputRow n m).row x))) context context)[(0 : Fin 1)][
          n + 1 + c] := fun context => by
    rw [Proof.getElem_addRows, Vec.getElem_add, zero, cross_component _ _ _ _ hD, normed]
    grind
  have e₁ := Proof.getElem_attention_eq_weights (R := R) scale Mask.full.toScoreMod
    (queryOf (n := n) (m := m) ((plainNorm _).row sqrt ε ((inputRow n m).row x)))
    (Vec.ofFn fun k : Fin kv_len => pointRow C[k] V[k])
    (Vec.ofFn fun k : Fin kv_len => pointRow C[k] V[k]) 0 ⟨n + 1 + c, hD⟩
  have e₂ := Proof.getElem_attention_eq_weights (R := R)
    (scale / sqrt (variance ((inputRow n m).row x) + ε)) Mask.full.toScoreMod
    (Vec.map pointQuery #v[x]) (Vec.map pointKey C) V 0 ⟨c, hc⟩
  simp only [score_pointRow, value] at e₁
  have layer : ∀ context : Matrix R kv_len (n + 1 + m + 1),
      decode sqrt ε scale Mask.full Mask.full [netLayer n m] context #v[(inputRow n m).row x]
        = addRows #v[(inputRow n m).row x] ((netLayer n m).cross.rows scale Mask.full
          ((plainNorm _).rows sqrt ε #v[(inputRow n m).row x]) context context) :=
    fun context => netLayer_preNorm sqrt ε scale Mask.full Mask.full context _
  rw [Proof.getElem_linear, layer, valueLinear_row _ hc hD]
  exact (sum _).trans (e₁.trans e₂.symm)

end Attention.Claims
