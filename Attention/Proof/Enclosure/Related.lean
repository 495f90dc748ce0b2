module

public import Attention.Spec.Attention
public import Attention.Spec.ScoreMods
public import Attention.Spec.Sink

public section

/-! # The Spec makes related numbers of related numbers

For all relations of two kinds of numbers that the operations keep: intervals and the numbers in
them, dual numbers of intervals and dual numbers in them, numbers of the exact model and real ones.
Queries and keys, scores, and values may have a relation each (`N`, `A`, `C`): in the exact model
scores are multiplied by ln 2, which products do not keep, but a score is multiplied by inputs only.
There is one lemma for each combinator of the Spec, and `enclose` applies them. -/

namespace Attention.Proof

open Spec

universe u v w x

variable {S : Type u} {R : Type v} {T : Type w} {U : Type x} {m n d d_v q_len kv_len : Nat}

/-! ## Relations -/

/-- Both masked, or the scores are related. -/
@[expose] def ScoreRelated (A : S → R → Prop) : Option S → Option R → Prop
  | none, none => True
  | some I, some x => A I x
  | _, _ => False

/-- Components at one place are related. -/
@[expose] def VecRelated (A : S → R → Prop) (I : Vec S n) (x : Vec R n) : Prop :=
  ∀ (j : Nat) (h : j < n), A I[j] x[j]

/-- The first transformation makes, of what is related to a score, what is related to the score that
the second makes; and it masks the same pairs. -/
@[expose] def ModRelated (A : S → R → Prop) (modify' : ScoreMod S q_len kv_len)
    (modify : ScoreMod R q_len kv_len) : Prop :=
  ∀ i j I x, A I x → ScoreRelated A (modify' i j I) (modify i j x)

/-- Sums keep the relation. -/
class KeptBySum (A : S → R → Prop) [OfNat S 0] [Add S] [OfNat R 0] [Add R] : Prop where
  /-- 0. -/
  zero : A 0 0
  /-- Sums. -/
  add {I J x y} : A I x → A J y → A (I + J) (x + y)

/-- Products of factors with relations `A` and `B` have relation `C`, which has these factors
only. -/
class KeptByMul (A B : outParam (S → R → Prop)) (C : S → R → Prop) [Mul S] [Mul R] : Prop where
  /-- Products. -/
  mul {I J x y} : A I x → B J y → C (I * J) (x * y)

/-- The operations of a field keep the relation. -/
class KeptByField (A : S → R → Prop) [OfNat S 0] [OfNat S 1] [Add S] [Sub S] [Mul S] [Div S]
    [OfNat R 0] [OfNat R 1] [Add R] [Sub R] [Mul R] [Div R] : Prop
    extends KeptBySum A, KeptByMul A A A where
  /-- 1. -/
  one : A 1 1
  /-- Differences. -/
  sub {I J x y} : A I x → A J y → A (I - J) (x - y)
  /-- Quotients. -/
  div {I J x y} : A I x → A J y → A (I / J) (x / y)

/-- Exponentials of what has relation `A` have relation `C`. -/
class KeptByExp (A : outParam (S → R → Prop)) (C : T → U → Prop) [Exp S T] [Exp R U] : Prop where
  /-- Exponentials. -/
  exp {I x} : A I x → C (exp I) (exp x)

variable {N A : S → R → Prop} {C : T → U → Prop}

/-! ## The tactic -/

/-- A transformation that makes related scores of related ones. -/
theorem ModRelated.of_score {f' : ScoreMod S q_len kv_len} {f : ScoreMod R q_len kv_len}
    (h : ∀ i j I x, A I x → ScoreRelated A (f' i j I) (f i j x)) : ModRelated A f' f := h

/-- The lemma for the outermost combinator of a goal. A module that has lemmas for more of them adds
them by `macro_rules`. -/
syntax "enclose_step" : tactic

/-- Proves that what is made of related things is related, by the lemmas for the combinators that
make it and by the hypotheses. `enclose [f, g]` unfolds these definitions before. -/
macro "enclose" : tactic => `(tactic| (
  repeat' first
    | with_reducible assumption
    | with_reducible intro _
    | with_reducible enclose_step
    | apply_assumption
    | with_reducible apply ModRelated.of_score
    | with_reducible constructor
  done))

@[inherit_doc tacticEnclose]
macro "enclose" "[" names:ident,+ "]" : tactic => `(tactic| (
  delta $names*
  try dsimp only
  enclose))

/-! ## Scores -/

/-- Scores that are not masked. -/
theorem related_some {I : S} {x : R} (h : A I x) : ScoreRelated A (some I) (some x) := h

/-- Both are masked, or none. -/
theorem ScoreRelated.isNone_iff {s' : Option S} {s : Option R} (h : ScoreRelated A s' s) :
    s'.isNone = true ↔ s = none := by
  cases s' <;> cases s
  · exact ⟨fun _ => rfl, fun _ => rfl⟩
  · cases h
  · cases h
  · exact ⟨nofun, nofun⟩

/-- A step from a score to a score. -/
theorem ScoreRelated.bind {s' : Option S} {s : Option R} (h : ScoreRelated A s' s)
    {f' : S → Option S} {f : R → Option R} (hf : ∀ I x, A I x → ScoreRelated A (f' I) (f x)) :
    ScoreRelated A (s'.bind f') (s.bind f) := by
  cases s' <;> cases s
  · trivial
  · cases h
  · cases h
  · exact hf _ _ h

/-- A step from a number to a number. -/
theorem ScoreRelated.map {s' : Option S} {s : Option R} (h : ScoreRelated A s' s) {f' : S → S}
    {f : R → R} (hf : ∀ I x, A I x → A (f' I) (f x)) :
    ScoreRelated A (s'.map f') (s.map f) := by
  rw [Option.map_eq_bind, Option.map_eq_bind]
  exact h.bind hf

/-- A transformed score. -/
theorem ModRelated.score {f' : ScoreMod S q_len kv_len} {f : ScoreMod R q_len kv_len}
    (h : ModRelated A f' f) {I : S} {x : R} (hx : A I x) {i : Fin q_len} {j : Fin kv_len} :
    ScoreRelated A (f' i j I) (f i j x) := h i j I x hx

/-! ## Vectors and matrices -/

/-- The component at a place. -/
theorem VecRelated.component {I : Vec S n} {x : Vec R n} (h : VecRelated A I x) {i : Fin n} :
    A I[i] x[i] := h i.val i.isLt

/-- Vectors whose components are related. -/
theorem VecRelated.of_fin {I : Vec S n} {x : Vec R n} (h : ∀ i : Fin n, A I[i] x[i]) :
    VecRelated A I x := fun i hi => h ⟨i, hi⟩

/-- Vectors that are made of related components. -/
theorem related_ofFn {f' : Fin n → S} {f : Fin n → R} (h : ∀ i, A (f' i) (f i)) :
    VecRelated A (Vec.ofFn f') (Vec.ofFn f) := by
  intro i hi
  rw [Vec.getElem_ofFn, Vec.getElem_ofFn]
  exact h _

/-- A function of each component. -/
theorem related_map {f' : S → T} {f : R → U} {I : Vec S n} {x : Vec R n} (hx : VecRelated A I x)
    (hf : ∀ I x, A I x → C (f' I) (f x)) : VecRelated C (Vec.map f' I) (Vec.map f x) := by
  intro j hj
  rw [Vec.getElem_map, Vec.getElem_map]
  exact hf _ _ (hx j hj)

section Sums
variable [OfNat S 0] [Add S] [OfNat R 0] [Add R] [KeptBySum A]

/-- The zero vector. -/
theorem related_zero : VecRelated A (Vec.zero : Vec S n) (Vec.zero : Vec R n) := by
  intro j hj
  rw [Vec.getElem_zero, Vec.getElem_zero]
  exact KeptBySum.zero

/-- Sums of two vectors. -/
theorem related_add {I J : Vec S n} {x y : Vec R n} (hx : VecRelated A I x)
    (hy : VecRelated A J y) : VecRelated A (Vec.add I J) (Vec.add x y) := by
  intro j hj
  rw [Vec.getElem_add, Vec.getElem_add]
  exact KeptBySum.add (hx j hj) (hy j hj)

/-! ## Sums -/

/-- Sums of related terms. -/
theorem related_sumOver {α : Type} {f' : α → S} {f : α → R} {xs : List α}
    (h : ∀ x ∈ xs, A (f' x) (f x)) : A (sumOver f' xs) (sumOver f xs) := by
  induction xs with
  | nil => exact KeptBySum.zero
  | cons x xs ih => exact KeptBySum.add (h x (by simp)) (ih fun y hy => h y (by simp [hy]))

/-- Sums of vectors. -/
theorem related_sumOver_vec {α : Type} {f' : α → Vec S n} {f : α → Vec R n} {xs : List α}
    (h : ∀ x ∈ xs, VecRelated A (f' x) (f x)) :
    VecRelated A (Vec.sumOver f' xs) (Vec.sumOver f xs) := by
  intro j hj
  rw [Vec.getElem_sumOver, Vec.getElem_sumOver]
  exact related_sumOver fun x hx => h x hx j hj

end Sums

section Products
variable [Mul S] [Mul R] {F G : S → R → Prop} [KeptByMul F G A]

/-- Multiples of vectors. -/
theorem related_smul {c' : S} {c : R} {I : Vec S n} {x : Vec R n} (hc : F c' c)
    (hx : VecRelated G I x) : VecRelated A (Vec.smul c' I) (Vec.smul c x) := by
  intro j hj
  rw [Vec.getElem_smul, Vec.getElem_smul]
  exact KeptByMul.mul hc (hx j hj)

/-- Inner products. -/
theorem related_dot [OfNat S 0] [Add S] [OfNat R 0] [Add R] [KeptBySum A] {I J : Vec S n}
    {x y : Vec R n} (hx : VecRelated F I x) (hy : VecRelated G J y) :
    A (Vec.dot I J) (Vec.dot x y) :=
  related_sumOver fun _ _ => KeptByMul.mul hx.component hy.component

end Products

/-! ## Attention of one row -/

/-- The weight of one score in a softmax with denominator l. -/
@[expose] def weightOver {S : Type u} {R : Type v} [Div R] [OfNat R 0] [Exp S R] (l : R) :
    Option S → R
  | none => 0
  | some s => exp s / l

/-- Softmax, score by score. -/
theorem softmax_eq_map {S : Type u} {R : Type v} [Add R] [Div R] [OfNat R 0] [Exp S R]
    (row : List (Option S)) : softmax (R := R) row = row.map (weightOver (denominator row)) :=
  List.map_congr_left fun s _ => by cases s <;> rfl

/-- A component of the attention of a row that is made of keys. -/
theorem getElem_attend_map {α : Type} {S : Type u} {R : Type v} [Add R] [Mul R] [Div R]
    [OfNat R 0] [Exp S R] {d : Nat}
    (f : α → ScoredValue S R d) (keys : List α) {j : Nat} (h : j < d) :
    (attend (keys.map f))[j] = sumOver (fun k => weightOver
      (denominator (keys.map fun k => (f k).score)) (f k).score * (f k).value[j]) keys := by
  have zipped : ∀ (g : α → R) (v : α → Vec R d) (keys : List α),
      (keys.map g).zip (keys.map v) = keys.map fun k => (g k, v k) := fun g v keys => by
    induction keys with
    | nil => rfl
    | cons k keys ih => simp [ih]
  simp only [attend, softmax, List.map_map, Function.comp_def, zipped, Vec.getElem_sumOver,
    Vec.getElem_smul, sumOver_map]
  exact sumOver_congr fun k _ => congrArg (· * _) (by cases (f k).score <;> rfl)

/-- A row with its sink is made of its keys and of one thing more. -/
theorem withSink_eq_map {α : Type} {S : Type u} {R : Type v} [OfNat R 0] {d : Nat}
    (sink : S) (f : α → ScoredValue S R d) (keys : List α) :
    withSink sink (keys.map f)
      = (none :: keys.map some).map fun k => k.elim ⟨some sink, Vec.zero⟩ f := by
  rw [withSink, List.map_cons, List.map_map]
  rfl

section Row
variable [OfNat T 0] [OfNat T 1] [Add T] [Sub T] [Mul T] [Div T] [Exp S T]
variable [OfNat U 0] [OfNat U 1] [Add U] [Sub U] [Mul U] [Div U] [Exp R U]
variable [KeptByField C] [KeptByExp A C] {α : Type} {keys : List α}

/-- The weight of a score. -/
theorem related_weight {s' : Option S} {s : Option R} (h : ScoreRelated A s' s) :
    C (weight s') (weight s) := by
  cases s' <;> cases s
  · exact KeptBySum.zero
  · cases h
  · cases h
  · exact KeptByExp.exp h

/-- The softmax weight of a score. -/
theorem related_weightOver {l' : T} {l : U} (hl : C l' l) {s' : Option S} {s : Option R}
    (h : ScoreRelated A s' s) : C (weightOver l' s') (weightOver l s) := by
  cases s' <;> cases s
  · exact KeptBySum.zero
  · cases h
  · cases h
  · exact KeptByField.div (KeptByExp.exp h) hl

/-- The denominator of scores. -/
theorem related_denominator {s' : α → Option S} {s : α → Option R}
    (hs : ∀ k ∈ keys, ScoreRelated A (s' k) (s k)) :
    C (denominator (keys.map s')) (denominator (keys.map s)) := by
  rw [denominator, denominator, sumOver_map, sumOver_map]
  exact related_sumOver fun k hk => related_weight (hs k hk)

variable {f' : α → ScoredValue S T d} {f : α → ScoredValue R U d}

/-- The attention of a row of scores and values. -/
theorem related_attend (hs : ∀ k ∈ keys, ScoreRelated A (f' k).score (f k).score)
    (hv : ∀ k ∈ keys, VecRelated C (f' k).value (f k).value) :
    VecRelated C (attend (keys.map f')) (attend (keys.map f)) := by
  intro j hj
  rw [getElem_attend_map, getElem_attend_map]
  exact related_sumOver fun k hk => KeptByMul.mul
    (related_weightOver (related_denominator hs) (hs k hk)) (hv k hk j hj)

/-- The attention of a row with a sink. -/
theorem related_attend_withSink {sink' : S} {sink : R} (hsink : A sink' sink)
    (hs : ∀ k ∈ keys, ScoreRelated A (f' k).score (f k).score)
    (hv : ∀ k ∈ keys, VecRelated C (f' k).value (f k).value) :
    VecRelated C (attend (withSink sink' (keys.map f'))) (attend (withSink sink (keys.map f))) := by
  rw [withSink_eq_map, withSink_eq_map]
  refine related_attend (fun k hk => ?_) fun k hk => ?_ <;> cases k
  · exact hsink
  · exact hs _ (by simpa using hk)
  · exact related_zero
  · exact hv _ (by simpa using hk)

end Row

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | (apply VecRelated.of_fin; assumption) | apply VecRelated.component | apply related_ofFn
  | apply related_map | apply related_smul | apply related_sumOver_vec | apply related_add
  | apply related_zero | apply related_attend | apply related_attend_withSink
  | apply related_some | apply ScoreRelated.bind | apply ScoreRelated.map
  | (apply ModRelated.score; first | assumption | apply_assumption)
  | apply related_sumOver | apply related_dot | apply related_weight | apply related_weightOver
  | apply related_denominator | apply KeptByMul.mul | apply KeptBySum.add | apply KeptByField.sub
  | apply KeptByField.div | apply KeptByExp.exp | apply KeptBySum.zero | apply KeptByField.one)

/-! ## Score transformations -/

/-- A mask does the same to all numbers. -/
theorem related_mask (mask : Mask q_len kv_len) :
    ModRelated A mask.toScoreMod mask.toScoreMod := by
  intro i j I x hx
  rw [Mask.toScoreMod, Mask.toScoreMod]
  cases mask i j
  · trivial
  · exact hx

/-- One transformation after the other. -/
theorem related_andThen {f' g' : ScoreMod S q_len kv_len} {f g : ScoreMod R q_len kv_len}
    (hf : ModRelated A f' f) (hg : ModRelated A g' g) :
    ModRelated A (f'.andThen g') (f.andThen g) := by
  enclose [ScoreMod.andThen]

section Scores
variable [OfNat S 0] [Add S] [OfNat R 0] [Add R]

/-- An additive bias. -/
theorem related_bias [KeptBySum A] {B' : Matrix (Option S) q_len kv_len}
    {B : Matrix (Option R) q_len kv_len}
    (hB : ∀ (i : Fin q_len) (j : Fin kv_len), ScoreRelated A B'[i][j] B[i][j]) :
    ModRelated A (.bias B') (.bias B) := by
  have hB := VecRelated.of_fin fun i => VecRelated.of_fin (hB i)
  enclose [ScoreMod.bias]

variable [Mul S] [Mul R] [KeptByMul A N A]

/-- Linear biases. -/
theorem related_alibi [KeptBySum A] [IntCast S] [IntCast R] (hn : ∀ n : Int, N (n : S) (n : R))
    (alignment : Alignment) {slope' : S} {slope : R} (h : A slope' slope) :
    ModRelated (q_len := q_len) (kv_len := kv_len) A (.alibi alignment slope')
      (.alibi alignment slope) := by
  enclose [ScoreMod.alibi]

variable [KeptBySum N] [KeptByMul N N N]
variable {scale' sink' : S} {scale sink : R}
variable {modify' : ScoreMod S q_len kv_len} {modify : ScoreMod R q_len kv_len}
variable {Q' : Matrix S q_len d} {Q : Matrix R q_len d} {K' : Matrix S kv_len d}
variable {K : Matrix R kv_len d} {V' : Matrix T kv_len d_v} {V : Matrix U kv_len d_v}
variable (hscale : A scale' scale) (hmodify : ModRelated A modify' modify)
variable (hQ : VecRelated (VecRelated N) Q' Q) (hK : VecRelated (VecRelated N) K' K)
include hscale hmodify hQ hK

/-- The transformed score of a query and a key. -/
theorem related_score (i : Fin q_len) (j : Fin kv_len) :
    ScoreRelated A (score scale' modify' Q' K' i j) (score scale modify Q K i j) := by
  enclose [score]

/-! ## Attention of whole matrices -/

variable [OfNat T 0] [OfNat T 1] [Add T] [Sub T] [Mul T] [Div T] [Exp S T]
variable [OfNat U 0] [OfNat U 1] [Add U] [Sub U] [Mul U] [Div U] [Exp R U]
variable [KeptByField C] [KeptByExp A C]

/-- Attention. -/
theorem related_attention (hV : VecRelated (VecRelated C) V' V) :
    VecRelated (VecRelated C) (attention scale' modify' Q' K' V')
      (attention scale modify Q K V) := by
  enclose [attention, scored, score]

/-- Attention with a sink. -/
theorem related_attentionSink (hsink : A sink' sink) (hV : VecRelated (VecRelated C) V' V) :
    VecRelated (VecRelated C) (attentionSink scale' modify' sink' Q' K' V')
      (attentionSink scale modify sink Q K V) := by
  enclose [attentionSink, scored, score]

end Scores

section
variable [OfNat S 0] [OfNat S 1] [Add S] [Sub S] [Mul S] [Div S] [Exp S S]
variable [OfNat R 0] [OfNat R 1] [Add R] [Sub R] [Mul R] [Div R] [Exp R R]
variable [KeptByField A] [KeptByExp A A]

/-- The hyperbolic tangent. -/
theorem related_tanh {I : S} {x : R} (h : A I x) : A (tanh I) (tanh x) := by
  enclose [tanh]

/-- Softcap. -/
theorem related_softcap {cap' : S} {cap : R} (h : A cap' cap) :
    ModRelated (q_len := q_len) (kv_len := kv_len) A (.softcap cap') (.softcap cap) := by
  enclose [ScoreMod.softcap, tanh]

end

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply related_mask | apply related_andThen | apply related_bias | apply related_alibi
  | apply related_softcap | apply related_tanh | apply related_score | apply related_attention
  | apply related_attentionSink)

end Attention.Proof
