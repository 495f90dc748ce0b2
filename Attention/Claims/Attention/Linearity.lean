module

public import Attention.Algebra.SumExchange
public import Attention.Claims.Attention.DotProduct
public import Attention.Proof.Scores.ScoreMods

public section

/-! # Is attention linear?

Claimed: linear in keys and values together. True: linear in the values, for given queries and
keys. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

attribute [local instance] Ring.intCast

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- a · X + b · Y, for matrices of the same size. -/
@[expose] def combination [Add R] [Mul R] (a : R) (X : Matrix R kv_len d) (b : R)
    (Y : Matrix R kv_len d) : Matrix R kv_len d :=
  Vec.ofFn fun i => Vec.add (Vec.smul a X[i]) (Vec.smul b Y[i])

/-- The claim `Linearity`, for whole numbers a and b, which scores and values both have. -/
@[expose] def Linearity [OrderedCommRing S] [OrderedField R] (weights : List S → List R)
    (scale : S) : Prop :=
  ∀ (kv_len d d_v : Nat) (a b : Int) (ks ks' : Matrix S kv_len d) (q : Vec S d)
    (vs vs' : Matrix R kv_len d_v),
    dotProduct weights scale q (combination (a : S) ks (b : S) ks')
        (combination (a : R) vs (b : R) vs')
      = Vec.add (Vec.smul (a : R) (dotProduct weights scale q ks vs))
          (Vec.smul (b : R) (dotProduct weights scale q ks' vs'))

/-- The counterexample: a = b = 1, q = 1, keys (1, 3) and (1, 1), values (1, 0) twice. -/
private theorem Linearity.counterexample [OrderedCommRing S] [OrderedField R]
    {weights : List S → List R} {c : S} (h : Linearity weights c) {x x' y y' z z' : R}
    (h₁ : weights [c * 2, c * 4] = [x, x']) (h₂ : weights [c * 1, c * 3] = [y, y'])
    (h₃ : weights [c * 1, c * 1] = [z, z']) : 2 * x = y + z := by
  have e := h 2 1 1 1 1 #v[#v[1], #v[3]] #v[#v[1], #v[1]] #v[1] #v[#v[1], #v[0]] #v[#v[1], #v[0]]
  have kk : combination ((1 : Int) : S) #v[#v[1], #v[3]] ((1 : Int) : S) #v[#v[1], #v[1]]
      = (#v[#v[2], #v[4]] : Matrix S 2 1) := by
    have h : ∀ a b a' b' : S, combination ((1 : Int) : S) #v[#v[a], #v[b]] ((1 : Int) : S)
        #v[#v[a'], #v[b']] = #v[#v[((1 : Int) : S) * a + ((1 : Int) : S) * a'],
          #v[((1 : Int) : S) * b + ((1 : Int) : S) * b']] := fun _ _ _ _ => rfl
    have h₂ : ((1 : Int) : S) * 1 + ((1 : Int) : S) * 1 = 2 := by rw [Ring.intCast_one]; grind
    have h₄ : ((1 : Int) : S) * 3 + ((1 : Int) : S) * 1 = 4 := by rw [Ring.intCast_one]; grind
    rw [h, h₂, h₄]
  have vv : combination ((1 : Int) : R) #v[#v[1], #v[0]] ((1 : Int) : R) #v[#v[1], #v[0]]
      = (#v[#v[2], #v[0]] : Matrix R 2 1) := by
    have h : ∀ a b a' b' : R, combination ((1 : Int) : R) #v[#v[a], #v[b]] ((1 : Int) : R)
        #v[#v[a'], #v[b']] = #v[#v[((1 : Int) : R) * a + ((1 : Int) : R) * a'],
          #v[((1 : Int) : R) * b + ((1 : Int) : R) * b']] := fun _ _ _ _ => rfl
    have h₂ : ((1 : Int) : R) * 1 + ((1 : Int) : R) * 1 = 2 := by rw [Ring.intCast_one]; grind
    have h₀ : ((1 : Int) : R) * 0 + ((1 : Int) : R) * 0 = 0 := by rw [Ring.intCast_one]; grind
    rw [h, h₂, h₀]
  have s : ∀ a b : S, scores c #v[1] (#v[#v[a], #v[b]] : Matrix S 2 1) = [c * a, c * b] :=
    fun a b => scores_two (by rw [dot_one]; grind) (by rw [dot_one]; grind)
  rw [kk, vv, dotProduct_two 2 0 ((s 2 4) ▸ h₁) (z := 2 * x) (by grind),
    dotProduct_two 1 0 ((s 1 3) ▸ h₂) (z := y) (by grind),
    dotProduct_two 1 0 ((s 1 1) ▸ h₃) (z := z) (by grind)] at e
  have e : 2 * x = ((1 : Int) : R) * y + ((1 : Int) : R) * z :=
    congrArg (fun o : Vec R 1 => o[0]) e
  rw [Ring.intCast_one] at e
  grind

private theorem square_eq_one [OrderedField R] {x : R} (hp : 0 < x)
    (e : 2 * (x * x / (x * x + (x * x * (x * x) + 0))) = x / (x + (x * (x * x) + 0))
      + x / (x + (x + 0))) : x * x = 1 := by
  have h₀ : x ≠ 0 := by grind
  have h₂ : 0 < x * x := OrderedRing.mul_pos hp hp
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have a₁ : x * x / (x * x + (x * x * (x * x) + 0)) = 1 / (1 + x * x) := by
    have := OrderedField.mul_div_mul_left (c := x * x) (by grind) 1 (1 + x * x)
    rwa [Semiring.mul_one, Semiring.left_distrib, Semiring.mul_one,
      ← Semiring.add_zero (x * x * (x * x))] at this
  have a₂ : x / (x + (x * (x * x) + 0)) = 1 / (1 + x * x) := by
    have := OrderedField.mul_div_mul_left h₀ 1 (1 + x * x)
    rwa [Semiring.mul_one, Semiring.left_distrib, Semiring.mul_one,
      ← Semiring.add_zero (x * (x * x))] at this
  have a₃ : x / (x + (x + 0)) = 1 / (1 + 1) := by
    have := OrderedField.mul_div_mul_left h₀ 1 (1 + 1)
    rwa [Semiring.mul_one, Semiring.left_distrib, Semiring.mul_one, ← Semiring.add_zero (x + x),
      Semiring.add_assoc] at this
  have hu := OrderedField.mul_div_cancel (b := 1 + x * x) (by grind) 1
  have hv := OrderedField.mul_div_cancel (b := (1 + 1 : R)) (by grind) 1
  rw [a₁, a₂, a₃] at e
  clear a₁ a₂ a₃
  generalize 1 / (1 + x * x) = u at *
  generalize (1 / (1 + 1) : R) = v at *
  generalize x * x = s at *
  -- 2 u = u + v, so u = v, and (1 + s) u = 1 = (1 + 1) u
  have huv : u = v := by grind
  subst huv
  have : (1 + s) * u * (1 + s) = (1 + 1) * u * (1 + s) := by rw [hu, hv]
  grind

/-- Attention is not linear in keys and values together: for no exponential, and no scale but 0. -/
theorem linearity_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R] {scale : S}
    (hs : scale ≠ 0) : ¬ Linearity (expSoftmax : List S → List R) scale := by
  intro h
  have e := h.counterexample (rfl : expSoftmax (R := R) [scale * 2, scale * 4] = [_, _]) rfl rfl
  simp only [denominator, List.map_cons, List.map_nil, sumOver_cons, sumOver_nil, weight] at e
  generalize hx : (exp (scale * 1) : R) = x at e
  have h₂ : (exp (scale * 2) : R) = x * x := by rw [← hx, ← exp_add]; congr 1; grind
  have h₃ : (exp (scale * 3) : R) = x * (x * x) := by rw [← h₂, ← hx, ← exp_add]; congr 1; grind
  have h₄ : (exp (scale * 4) : R) = x * x * (x * x) := by rw [← h₂, ← exp_add]; congr 1; grind
  have hp : 0 < x := hx ▸ exp_pos _
  have hne : x * x ≠ 1 := by
    intro h₁
    rw [← h₂, ← exp_zero (S := S), exp_inj] at h₁
    grind
  rw [h₂, h₃, h₄] at e
  exact hne (square_eq_one hp e)

/-- Nor is it with the softmax that lacks the exponential. -/
theorem linearity_ratio_refuted : ¬ Linearity (ratio : List Rat → List Rat) 1 := fun h =>
  absurd (h.counterexample (x := 1/3) (x' := 2/3) (y := 1/4) (y' := 3/4) (z := 1/2) (z' := 1/2)
    (by decide +kernel) (by decide +kernel) (by decide +kernel)) (by decide +kernel)

/-- The values of the two sides: 2/3 and 3/4 without the exponential, 2/5 and 7/10 with 2 ^ x. -/
theorem linearity_values :
    (dotProduct ratio 1 #v[1] #v[#v[2], #v[4]] #v[#v[2], #v[0]] : Vec Rat 1).toList = [2/3] ∧
    (Vec.add (dotProduct ratio 1 #v[1] #v[#v[1], #v[3]] #v[#v[1], #v[0]])
      (dotProduct ratio 1 #v[1] #v[#v[1], #v[1]] #v[#v[1], #v[0]]) : Vec Rat 1).toList = [3/4] ∧
    (dotProduct expSoftmax (1 : Int) #v[1] #v[#v[2], #v[4]] #v[#v[2], #v[0]] : Vec Rat 1).toList
      = [2/5] ∧
    (Vec.add (dotProduct expSoftmax (1 : Int) #v[1] #v[#v[1], #v[3]] #v[#v[1], #v[0]])
      (dotProduct expSoftmax (1 : Int) #v[1] #v[#v[1], #v[1]] #v[#v[1], #v[0]]) :
        Vec Rat 1).toList = [7/10] := by
  decide +kernel

/-- For given queries and keys, attention is linear in the values. -/
theorem attention_linear_values [OrderedCommRing S] [OrderedField R] [Exponential S R] (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d) (a b : R)
    (V V' : Matrix R kv_len d_v) :
    attention scale modify Q K (combination a V b V')
      = combination a (attention scale modify Q K V) b (attention scale modify Q K V') := by
  refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
  have e := Proof.getElem_attention_eq_weights scale modify Q K (V := V) ⟨i, hi⟩ ⟨j, hj⟩
  have e' := Proof.getElem_attention_eq_weights scale modify Q K (V := V') ⟨i, hi⟩ ⟨j, hj⟩
  have e'' := Proof.getElem_attention_eq_weights scale modify Q K
    (V := combination a V b V') ⟨i, hi⟩ ⟨j, hj⟩
  simp only [Fin.getElem_fin] at e e' e''
  rw [e'']
  simp only [combination, Vec.getElem_ofFn, Vec.getElem_add, Vec.getElem_smul, Fin.getElem_fin, e,
    e']
  generalize sumOver (fun k => (weight (score scale modify Q K ⟨i, hi⟩ k) : R)) _ = l
  rw [sumOver_congr (g := fun k : Fin kv_len =>
      a * ((weight (score scale modify Q K ⟨i, hi⟩ k) : R) * V[k.val][j])
      + b * ((weight (score scale modify Q K ⟨i, hi⟩ k) : R) * V'[k.val][j]))
    fun k _ => by grind, sumOver_add, sumOver_mul_left, sumOver_mul_left]
  simp only [Field.div_eq_mul_inv]
  grind

end Attention.Claims
