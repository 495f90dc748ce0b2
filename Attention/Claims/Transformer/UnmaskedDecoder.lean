module

public import Attention.Proof.Transformer.Causal

public section

/-! # An unmasked decoder sees the tokens to come

Claimed: row i of the decoder's output is the last row of what the decoder makes of the first i
rows. The decoder that is claimed of has no mask, and its rows see each other; with a mask that lets
no query see a later key it is true (`Proof.decoder_causal`). -/

namespace Attention.Claims

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- A decoder layer of width 2 with one head of width 1: the scores are all 0, a value is the first
component of the normalised row, and neither the attention to the context nor the feed-forward
network adds anything. -/
@[expose] def meanLayer (R : Type u) [OrderedField R] : DecoderLayer R 2 1 1 0 where
  attention := ⟨⟨#v[#v[0, 0]], #v[0]⟩, ⟨#v[#v[0, 0]], #v[0]⟩, ⟨#v[#v[1, 0]], #v[0]⟩,
    ⟨#v[#v[1], #v[0]], #v[0, 0]⟩⟩
  attentionNorm := ⟨#v[1, 1], #v[0, 0]⟩
  cross := ⟨⟨#v[#v[0, 0]], #v[0]⟩, ⟨#v[#v[0, 0]], #v[0]⟩, ⟨#v[#v[0, 0]], #v[0]⟩,
    ⟨#v[#v[0], #v[0]], #v[0, 0]⟩⟩
  crossNorm := ⟨#v[0, 0], #v[0, 0]⟩
  feedForward := ⟨⟨#v[], #v[]⟩, ⟨#v[#v[], #v[]], #v[0, 0]⟩⟩
  feedForwardNorm := ⟨#v[0, 0], #v[0, 0]⟩

/-- The claim about the decoder as it stands, without a mask: rows up to p of the output depend on
rows up to p of the input only. -/
@[expose] def UnmaskedCausal (sqrt : R → R) (ε scale : R) : Prop :=
  ∀ (layers : List (DecoderLayer R 2 1 1 0)) (C : Matrix R 0 2) (X X' : Matrix R 2 2) (p : Nat),
    Proof.AgreeUpTo p X X' →
    Proof.AgreeUpTo p (decode sqrt ε scale Mask.full Mask.full layers C X)
      (decode sqrt ε scale Mask.full Mask.full layers C X')

omit [OrderedField R] [Exponential R R] in
private theorem pair {a b c d : R} (h : a = c) (h' : b = d) : #v[a, b] = #v[c, d] := by
  rw [h, h']

omit [OrderedField R] [Exponential R R] in
private theorem map_two {n : Nat} (f : Vec R n → Vec R n) (x y : Vec R n) :
    Vec.map f #v[x, y] = #v[f x, f y] := rfl

omit [Exponential R R] in
/-- Of (a, −a), where a is 1 or −1, the normalisation of `meanLayer` makes the same again. -/
theorem meanLayer_norm {sqrt : R → R} (h : sqrt 1 = 1) {a : R} (ha : a * a = 1) :
    (meanLayer R).attentionNorm.row sqrt 0 #v[a, -a] = #v[a, -a] := by
  have c : centred (#v[a, -a] : Vec R 2)
      = #v[a - (a + (-a + 0)) / (1 + (1 + 0)), -a - (a + (-a + 0)) / (1 + (1 + 0))] := rfl
  have c : centred (#v[a, -a] : Vec R 2) = #v[a, -a] := by
    rw [c]
    have : (a + (-a + 0)) / (1 + (1 + 0)) = 0 := by grind
    rw [this]
    congr 3 <;> grind
  have v : variance (#v[a, -a] : Vec R 2) = 1 := by
    rw [variance, c]
    have : mean (Vec.map (fun c => c * c) (#v[a, -a] : Vec R 2))
        = (a * a + (-a * -a + 0)) / (1 + (1 + 0)) := rfl
    have two : (1 + (1 + 0) : R) ≠ 0 := by
      have := OrderedRing.zero_lt_one (R := R)
      grind
    rw [this]
    grind
  have o : (meanLayer R).attentionNorm.row sqrt 0 #v[a, -a]
      = #v[(centred (#v[a, -a] : Vec R 2))[0] / sqrt (variance (#v[a, -a] : Vec R 2) + 0) * 1 + 0,
        (centred (#v[a, -a] : Vec R 2))[1] / sqrt (variance (#v[a, -a] : Vec R 2) + 0) * 1 + 0] :=
    rfl
  have e : (1 + 0 : R) = 1 := by grind
  rw [o, v, c, e, h]
  have h₀ : (#v[a, -a] : Vec R 2)[0] / 1 * 1 + 0 = a := by
    show a / 1 * 1 + 0 = a
    grind
  have h₁ : (#v[a, -a] : Vec R 2)[1] / 1 * 1 + 0 = -a := by
    show -a / 1 * 1 + 0 = -a
    grind
  rw [h₀, h₁]

/-- Row 0 of the self-attention is the mean of the values of both rows. -/
private theorem attention_row {scale : R} (a : R) :
    let A : Matrix R 2 2 := #v[#v[1, -1], #v[a, -a]]
    ((meanLayer R).attention.rows scale Mask.full A A A)[(0 : Fin 2)]
      = #v[(1 + a) / (1 + 1), 0] := by
  intro A
  have q : (meanLayer R).attention.query.rows A = #v[#v[0], #v[0]] := by
    have e : (meanLayer R).attention.query.rows A
        = #v[#v[0 * 1 + (0 * -1 + 0) + 0], #v[0 * a + (0 * -a + 0) + 0]] := rfl
    rw [e]
    congr 3 <;> grind
  have k : (meanLayer R).attention.key.rows A = #v[#v[0], #v[0]] := q
  have v : (meanLayer R).attention.value.rows A = #v[#v[1], #v[a]] := by
    have e : (meanLayer R).attention.value.rows A
        = #v[#v[1 * 1 + (0 * -1 + 0) + 0], #v[1 * a + (0 * -a + 0) + 0]] := rfl
    have e₁ : (1 * 1 + (0 * -1 + 0) + 0 : R) = 1 := by grind
    have e₂ : (1 * a + (0 * -a + 0) + 0 : R) = a := by grind
    rw [e, e₁, e₂]
  rw [MultiHead.rows, q, k, v]
  have o : ((meanLayer R).attention.attend scale Mask.full #v[#v[0], #v[0]] #v[#v[0], #v[0]]
        #v[#v[1], #v[a]] : Matrix R 2 2)[(0 : Fin 2)]
      = #v[1 * (exp (scale * (0 * 0 + 0)) / (exp (scale * (0 * 0 + 0))
            + (exp (scale * (0 * 0 + 0)) + 0)) * 1
          + (exp (scale * (0 * 0 + 0)) / (exp (scale * (0 * 0 + 0))
            + (exp (scale * (0 * 0 + 0)) + 0)) * a + 0)) + 0 + 0,
        0 * (exp (scale * (0 * 0 + 0)) / (exp (scale * (0 * 0 + 0))
            + (exp (scale * (0 * 0 + 0)) + 0)) * 1
          + (exp (scale * (0 * 0 + 0)) / (exp (scale * (0 * 0 + 0))
            + (exp (scale * (0 * 0 + 0)) + 0)) * a + 0)) + 0 + 0] := rfl
  have z : scale * (0 * 0 + 0) = 0 := by grind
  have e : (exp (0 : R) / (exp (0 : R) + (exp (0 : R) + 0)) : R) = 1 / (1 + 1) := by
    rw [Exponential.exp_zero]
    grind
  rw [z, e] at o
  exact o.trans (pair (by grind) (by grind))

private theorem cross_row {scale : R} (X : Matrix R 2 2) :
    ((meanLayer R).cross.rows scale Mask.full X #v[] #v[])[(0 : Fin 2)] = #v[0, 0] := by
  have e : ∀ q : Matrix R 2 1, ((meanLayer R).cross.attend scale Mask.full q #v[] #v[])[(0 : Fin 2)]
      = #v[0 * 0 + 0 + 0, 0 * 0 + 0 + 0] := fun _ => rfl
  exact (e _).trans (pair (by grind) (by grind))

omit [Exponential R R] in
private theorem feedForward_row (x : Vec R 2) : (meanLayer R).feedForward.row x = #v[0, 0] := by
  have e : (meanLayer R).feedForward.output.row #v[] = #v[0 + 0, 0 + 0] := rfl
  exact e.trans (pair (by grind) (by grind))

private theorem preNorm_row {L : DecoderLayer R 2 1 1 0} {sqrt : R → R} {scale : R}
    {X A : Matrix R 2 2} {y c f : Vec R 2} (hA : L.attentionNorm.rows sqrt 0 X = A)
    (hy : (L.attention.rows scale Mask.full A A A)[(0 : Fin 2)] = y)
    (hc : ∀ Q : Matrix R 2 2, (L.cross.rows scale Mask.full Q #v[] #v[])[(0 : Fin 2)] = c)
    (hf : ∀ x, L.feedForward.row x = f) :
    (L.preNorm sqrt 0 scale Mask.full Mask.full #v[] X)[(0 : Fin 2)]
      = Vec.add (Vec.add (Vec.add X[(0 : Fin 2)] y) c) f := by
  have sum : ∀ (X Y : Matrix R 2 2) (i : Fin 2), (addRows X Y)[i] = Vec.add X[i] Y[i] :=
    Proof.getElem_addRows
  rw [DecoderLayer.preNorm, hA, sum, Proof.getElem_feedForward, hf, sum, hc, sum, hy]

omit [Exponential R R] in
private theorem add_row {x : Vec R 2} {a b p : R} (hx : x = #v[a, b]) :
    (Vec.add (Vec.add (Vec.add x #v[p, 0]) #v[0, 0]) #v[0, 0])[0] = a + p := by
  subst hx
  have e : (Vec.add (Vec.add (Vec.add #v[a, b] #v[p, 0]) #v[0, 0]) #v[0, 0])[0] = a + p + 0 + 0 :=
    rfl
  rw [e]
  grind

/-- Row 0 of the unmasked layer. -/
private theorem layer_row {sqrt : R → R} (h : sqrt 1 = 1) {scale a : R} (ha : a * a = 1)
    {X : Matrix R 2 2} (hX : X = #v[#v[1, -1], #v[a, -a]]) :
    ((meanLayer R).preNorm sqrt 0 scale Mask.full Mask.full #v[] X)[(0 : Fin 2)][0]
      = 1 + (1 + a) / (1 + 1) := by
  have norm : (meanLayer R).attentionNorm.rows sqrt 0 X = #v[#v[1, -1], #v[a, -a]] := by
    rw [hX, LayerNorm.rows, map_two, meanLayer_norm h (by grind), meanLayer_norm h ha]
  have row : X[(0 : Fin 2)] = #v[1, -1] := by
    rw [hX]
    rfl
  rw [preNorm_row norm (attention_row a) cross_row feedForward_row]
  exact add_row row

/-- An unmasked decoder's rows depend on later rows: for every exponential, every scale and whatever
takes the root of 1 right. Both inputs have the row (1, −1) first; then (1, −1) the one, (−1, 1) the
other. -/
theorem unmaskedCausal_refuted {sqrt : R → R} (h : sqrt 1 = 1) (scale : R) :
    ¬ UnmaskedCausal sqrt 0 scale := by
  intro claim
  have e := claim [meanLayer R] #v[] #v[#v[1, -1], #v[1, -1]] #v[#v[1, -1], #v[-1, - -1]] 0
    (fun i j hij hi => by
      have hi : i = 0 := Fin.ext (by simpa using hi)
      subst hi
      have hj : j = 0 := Fin.ext hij.symm
      subst hj
      rfl) (0 : Fin 2) (0 : Fin 2) rfl (Nat.le_refl _)
  simp only [decode, List.foldl_cons, List.foldl_nil] at e
  have e := congrArg (fun x : Vec R 2 => x[0]) e
  have e := (layer_row h (scale := scale) (a := 1) (by grind) rfl).symm.trans
    (e.trans (layer_row h (scale := scale) (a := -1) (by grind) rfl))
  have := OrderedRing.zero_lt_one (R := R)
  have two : (1 + 1 : R) ≠ 0 := by grind
  grind

end Attention.Claims
