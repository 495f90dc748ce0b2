module

public import Attention.Claims.Approximation.Nearest
public import Attention.Model.Exact
public import Attention.Proof.Transformer.Basic

public section

/-! # Attention memorises

One attention suffices for what `AttentionIsAllYouNeed` asks of a transformer: whatever finite set
of inputs and targets, attention by distance over the inputs, with the targets for values, returns
the target of each input exactly, once the inverse temperature is large enough. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

attribute [local instance] Semiring.natCast

variable {S : Type u} {R : Type v} {n s t s_vocab t_vocab count : Nat}

/-- A sequence of tokens as a point: their numbers. -/
@[expose] def tokenPoint [NatCast S] (tokens : Vector (Fin s_vocab) s) : Vec S s :=
  Vec.map (fun token => (token.val : S)) tokens

/-- The vector that is 1 at one place and 0 elsewhere. -/
@[expose] def oneHot [OfNat R 0] [OfNat R 1] (k : Fin n) : Vec R n :=
  Vec.ofFn fun j => if j = k then 1 else 0

/-- The tokens that attention by distance recalls for an input: for each place of the targets the
values are their tokens at this place, one-hot, and the output is the place of the largest
component. -/
@[expose] def recall [Add S] [Sub S] [Neg S] [Mul S] [NatCast S] [OfNat S 0] [OfNat S 1] [OfNat S 2]
    [Add R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [LE R] [DecidableLE R] [Exp S R] (β : S)
    (inputs : Vector (Vector (Fin s_vocab) s) count)
    (targets : Vector (Vector (Fin t_vocab) t) count) (input : Vector (Fin s_vocab) s) :
    Vector (Option (Fin t_vocab)) t :=
  Vec.ofFn fun p => argmax (attendPoints β (#v[tokenPoint input] : Matrix S 1 s)
    (Vec.map tokenPoint inputs) (Vec.map (fun y => oneHot y[p]) targets) : Matrix R 1 t_vocab)[0]

section
variable [OrderedCommRing S]

private theorem square_nonneg (x : S) : 0 ≤ x * x := by
  rcases Std.le_total (a := 0) (b := x) with h | h
  · exact OrderedRing.mul_nonneg h h
  · have := OrderedRing.mul_nonneg (a := -x) (b := -x) (by grind) (by grind)
    grind

private theorem le_sum {α : Type} {f : α → S} (hf : ∀ x, 0 ≤ f x) {xs : List α} :
    0 ≤ sumOver f xs ∧ ∀ x ∈ xs, f x ≤ sumOver f xs := by
  induction xs with
  | nil => exact ⟨Std.le_refl _, fun x hx => by cases hx⟩
  | cons y ys ih =>
    have h := hf y
    rw [sumOver_cons]
    refine ⟨by grind, fun x hx => ?_⟩
    rcases List.mem_cons.mp hx with rfl | hx
    · grind
    · have := ih.2 x hx
      grind

private theorem natCast_nonneg' (k : Nat) : 0 ≤ (k : S) := by
  induction k with
  | zero => rw [Semiring.natCast_zero]; exact Std.le_refl _
  | succ k ih =>
    have := OrderedRing.zero_lt_one (R := S)
    rw [Semiring.natCast_add, Semiring.natCast_one]
    grind

private theorem one_le_square {a b : Nat} (h : a < b) :
    1 ≤ ((a : S) - (b : S)) * ((a : S) - (b : S)) := by
  obtain ⟨k, rfl⟩ := Nat.exists_eq_add_of_lt h
  have h₀ := natCast_nonneg' (S := S) k
  have h₁ := OrderedRing.mul_nonneg h₀ h₀
  rw [Semiring.natCast_add, Semiring.natCast_add, Semiring.natCast_one]
  grind

/-- Different sequences of tokens are at least 1 apart. -/
theorem one_le_sqDist {x y : Vector (Fin s_vocab) s} (h : x ≠ y) :
    1 ≤ sqDist (tokenPoint x : Vec S s) (tokenPoint y) := by
  have ⟨k, hk⟩ : ∃ k : Fin s, x[k] ≠ y[k] := Classical.byContradiction fun hn =>
    h (Vector.ext fun k hk => Classical.byContradiction fun hne => hn ⟨⟨k, hk⟩, hne⟩)
  have hk' : x[k].val ≠ y[k].val := fun e => hk (Fin.ext e)
  refine Std.le_trans ?_ ((le_sum (fun k : Fin s => square_nonneg
    ((tokenPoint x : Vec S s)[k] - (tokenPoint y : Vec S s)[k]))).2 k (List.mem_finRange k))
  simp only [tokenPoint, Fin.getElem_fin, Vec.getElem_map] at hk' ⊢
  rcases Nat.lt_or_gt_of_ne hk' with hlt | hlt
  · exact one_le_square hlt
  · have := one_le_square (S := S) hlt
    grind

end

private theorem separated [OrderedField R] {η a b : R} (hη : 2 * η < 1) (ha : AtMost η (a - 1))
    (hb : AtMost η (b - 0)) : b < a := by
  obtain ⟨h₁, -⟩ := ha
  obtain ⟨-, h₂⟩ := hb
  grind

private theorem share [OrderedField R] {c E : R} (hE : 0 < E) (h : 2 * c < E) :
    c * 1 ≤ c / E * E ∧ 2 * (c / E) < 1 := by
  have e := OrderedField.mul_div_cancel (b := E) (by grind) c
  generalize c / E = q at *
  subst e
  refine ⟨by grind, Classical.byContradiction fun hn => ?_⟩
  have := OrderedRing.mul_nonneg (Std.le_of_lt hE) (show 0 ≤ 2 * q - 1 by grind)
  grind

private theorem oneHot_atMost [OrderedField R] (k k' j : Fin n) :
    AtMost (1 : R) ((oneHot k : Vec R n)[j] - (oneHot k' : Vec R n)[j]) := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  simp only [oneHot, Fin.getElem_fin, Vec.getElem_ofFn]
  split <;> split <;> exact ⟨by grind, by grind⟩

/-- For every finite list of different inputs, and every list of targets, the target of each input
is recalled, if exp β exceeds twice their number. -/
theorem recall_eq [OrderedCommRing S] [OrderedField R] [Exponential S R] {β : S} (hβ : 0 ≤ β)
    {inputs : Vector (Vector (Fin s_vocab) s) count}
    (targets : Vector (Vector (Fin t_vocab) t) count)
    (different : ∀ i j : Fin count, inputs[i] = inputs[j] → i = j)
    (large : 2 * (count : R) < exp β) (i : Fin count) :
    recall (R := R) β inputs targets inputs[i] = Vec.map some targets[i] := by
  refine Vector.ext fun p hp => ?_
  have pos : (0 : R) < exp β := exp_pos β
  obtain ⟨hη, hη'⟩ := share pos large
  have one : β * 1 = β := by grind
  have near : ∀ c : Fin t_vocab, AtMost (0 + (count : R) / exp β)
      ((attendPoints β (#v[tokenPoint inputs[i]] : Matrix S 1 s) (Vec.map tokenPoint inputs)
        (Vec.map (fun y => oneHot y[p]) targets) : Matrix R 1 t_vocab)[(0 : Fin 1)][c]
        - (oneHot targets[i][p] : Vec R t_vocab)[c]) := fun c => by
    refine attendPoints_near (D := 1) (g := 1) (k₀ := i) hβ _ _ _ (Std.le_refl _)
      (Std.le_of_lt OrderedRing.zero_lt_one) (by rw [one]; exact hη) fun k => ?_
    have e : (Vec.map (fun y => oneHot y[p]) targets : Matrix R count t_vocab)[k]
        = oneHot targets[k][p] := by simp
    have point : ∀ k : Fin count,
        (Vec.map tokenPoint inputs : Matrix S count s)[k] = tokenPoint inputs[k] := by simp
    have query : (#v[tokenPoint inputs[i]] : Matrix S 1 s)[(0 : Fin 1)] = tokenPoint inputs[i] :=
      rfl
    rw [e, point, point, query]
    by_cases h : k = i
    · subst h
      exact .inl ⟨by grind, by grind⟩
    · refine .inr ⟨oneHot_atMost _ _ _, ?_⟩
      have := one_le_sqDist (S := S) (x := inputs[i]) (y := inputs[k])
        fun e => h (different i k e).symm
      rw [sqDist_self]
      grind
  simp only [recall, Vec.getElem_ofFn, Vec.getElem_map]
  refine Proof.argmax_eq fun c hc => ?_
  have zero : ∀ x : R, 0 + x = x := by grind
  have a := near targets[i][p]
  have b := near c
  have e₁ : (oneHot targets[i][p] : Vec R t_vocab)[targets[i][p]] = 1 := by simp [oneHot]
  have e₀ : (oneHot targets[i][p] : Vec R t_vocab)[c] = 0 := by
    simp only [oneHot, Fin.getElem_fin, Vec.getElem_ofFn]
    exact if_neg hc
  rw [zero, e₁] at a
  rw [zero, e₀] at b
  exact separated hη' a b

/-- **attention-memorises**: for every finite list of different inputs, sequences of tokens, and
every list of targets, softmax attention over the inputs, with the tokens at place p of the targets
for values, one-hot, gives a vector whose largest component is at the token at place p of the
input's target, if exp β exceeds twice the number of inputs. -/
theorem attention_memorises [OrderedCommRing S] [OrderedField R] [Exponential S R] {β : S}
    (hβ : 0 ≤ β) {inputs : Vector (Vector (Fin s_vocab) s) count}
    (targets : Vector (Vector (Fin t_vocab) t) count)
    (different : ∀ i j : Fin count, inputs[i] = inputs[j] → i = j)
    (large : 2 * (count : R) < exp β) (i : Fin count) (p : Fin t) :
    argmax (attention β Mask.full.toScoreMod
        (Vec.map pointQuery (#v[tokenPoint inputs[i]] : Matrix S 1 s))
        (Vec.map pointKey (Vec.map tokenPoint inputs))
        (Vec.map (fun y => oneHot y[p]) targets) : Matrix R 1 t_vocab)[0]
      = some targets[i][p] := by
  have h := congrArg (fun v : Vector (Option (Fin t_vocab)) t => v[p])
    (recall_eq (R := R) hβ targets different large i)
  simpa [recall, attendPoints] using h

/-- With the natural exponential, twice the number of inputs is a large enough β. -/
theorem recall_natural [OrderedField R] [NaturalExp R]
    {inputs : Vector (Vector (Fin s_vocab) s) count}
    (targets : Vector (Vector (Fin t_vocab) t) count)
    (different : ∀ i j : Fin count, inputs[i] = inputs[j] → i = j) (i : Fin count) :
    recall (R := R) (2 * (count : R)) inputs targets inputs[i] = Vec.map some targets[i] := by
  have h₀ := natCast_nonneg' (S := R) count
  have h₁ := OrderedRing.zero_lt_one (R := R)
  refine recall_eq (by grind) targets different ?_ i
  have := NaturalExp.one_add_le_exp (2 * (count : R))
  grind

/-- Exclusive or, memorised with exp k = 2 ^ k and β = 4. -/
theorem recall_xor :
    ([#v[0, 0], #v[0, 1], #v[1, 0], #v[1, 1]] : List (Vector (Fin 2) 2)).map (fun input =>
      (recall (R := Rat) (4 : Int) #v[#v[0, 0], #v[0, 1], #v[1, 0], #v[1, 1]]
        #v[#v[0], #v[1], #v[1], #v[0]] input : Vector (Option (Fin 2)) 1).toList)
      = [[some 0], [some 1], [some 1], [some 0]] := by
  decide +kernel

end Attention.Claims
