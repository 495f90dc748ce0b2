module

public import Attention.Claims.Transformer.UnmaskedDecoder
public import Attention.Proof.Transformer.Cache

public section

/-! # Wrong variants of the masked decoder and of decoding with a cache

Refuted for every exponential, every scale and whatever takes the root of 1 right, by the layer
whose attention is the mean of the values. -/

namespace Attention.WrongVariants

open Spec Claims Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-! ## Causal -/

/-- The claim of `decoder_causal`, made of any mask of two rows. -/
abbrev GivesPrefix (mask : Mask 2 2) (sqrt : R → R) (scale : R) : Prop :=
  ∀ (layers : List (DecoderLayer R 2 1 1 0)) (C : Matrix R 0 2) (X X' : Matrix R 2 2) (p : Nat),
    Proof.AgreeUpTo p X X' → Proof.AgreeUpTo p (decode sqrt 0 scale mask Mask.full layers C X)
      (decode sqrt 0 scale mask Mask.full layers C X')

/-- Positive control: the causal mask. -/
theorem givesPrefix_causal (sqrt : R → R) (scale : R) :
    GivesPrefix (Mask.causal .topLeft) sqrt scale := fun layers C _ _ _ h =>
  Proof.decoder_causal Proof.causal_seesNoLater Proof.causal_seesNoLater Proof.causal_sameMask
    (fun _ _ _ _ _ _ => rfl) layers C h

/-- Query `i` attends to one key more than the causal mask allows: j ≤ i + 1. -/
@[expose] def causalOneAhead {n : Nat} : Mask n n := fun i j => decide (j.val ≤ i.val + 1)

theorem causalOneAhead_refuted {sqrt : R → R} (h : sqrt 1 = 1) (scale : R) :
    ¬ GivesPrefix causalOneAhead sqrt scale := by
  have e : (causalOneAhead : Mask 2 2) = Mask.full := by
    funext i j
    simp only [causalOneAhead, Mask.full, decide_eq_true_eq]
    omega
  rw [e]
  exact unmaskedCausal_refuted h scale

/-! ## With a cache -/

/-- The claim of `decode_cached` for one row through one layer, made of any such step. -/
abbrev FirstRow (step : DecoderLayer R 2 1 1 0 → Vec R 2 → Vec R 2) (sqrt : R → R) (scale : R) :
    Prop :=
  ∀ L x, step L x
    = (decode sqrt 0 scale (Mask.causal .topLeft) Mask.full [L] (#v[] : Matrix R 0 2)
        (#v[x] : Matrix R 1 2))[0]

/-- The parts of a layer after the self-attention. -/
@[expose] def afterAttention (sqrt : R → R) (scale : R) (L : DecoderLayer R 2 1 1 0)
    (x : Vec R 2) : Vec R 2 :=
  let Q : Matrix R 1 2 := Vec.ofFn fun _ => L.crossNorm.row sqrt 0 x
  let x := Vec.add x (L.cross.rows scale Mask.full Q (#v[] : Matrix R 0 2) #v[])[0]
  Vec.add x (L.feedForward.row (L.feedForwardNorm.row sqrt 0 x))

/-- One row with an empty cache, as `DecoderLayer.step` takes it. -/
@[expose] def firstStep (sqrt : R → R) (scale : R) (L : DecoderLayer R 2 1 1 0) (x : Vec R 2) :
    Vec R 2 :=
  (L.step sqrt 0 scale (fun _ => true) (#v[] : Matrix R 0 2) [] x).2

/-- Positive control: the row's own key and value are in the cache when it attends. -/
theorem firstRow_firstStep (sqrt : R → R) (scale : R) :
    FirstRow (firstStep sqrt scale) sqrt scale := by
  intro L x
  have h := Proof.decode_cached (sqrt := sqrt) (ε := 0) (scale := scale) (fun _ => true)
    (#v[] : Matrix R 0 2) [L] (#v[x] : Matrix R 1 2)
  have e : decodeCached sqrt 0 scale (fun _ => true) [L] (#v[] : Matrix R 0 2)
      (#v[x] : Matrix R 1 2).toList = [firstStep sqrt scale L x] := rfl
  rw [e] at h
  have h := congrArg (fun rows => rows[0]?) h
  simpa using h

/-- The row attends to the cache before its own key and value are put there. -/
@[expose] def lateStep (sqrt : R → R) (scale : R) (L : DecoderLayer R 2 1 1 0) (x : Vec R 2) :
    Vec R 2 :=
  afterAttention sqrt scale L
    (Vec.add x (L.attention.cachedRow scale [] (L.attentionNorm.row sqrt 0 x)))

private theorem after_mean {sqrt : R → R} {scale : R} (x : Vec R 2) :
    (afterAttention sqrt scale (meanLayer R) x)[0] = x[0] := by
  have cross : ∀ q : Matrix R 1 1, ((meanLayer R).cross.attend scale Mask.full q
      (#v[] : Matrix R 0 1) #v[])[0] = #v[0 * 0 + 0 + 0, 0 * 0 + 0 + 0] := fun _ => rfl
  have cross : ∀ Q : Matrix R 1 2, ((meanLayer R).cross.rows scale Mask.full Q
      (#v[] : Matrix R 0 2) #v[])[0] = #v[0 * 0 + 0 + 0, 0 * 0 + 0 + 0] := fun _ => cross _
  have ff : ∀ y : Vec R 2, (meanLayer R).feedForward.row y = #v[0 + 0, 0 + 0] := fun _ => rfl
  simp only [afterAttention, Vec.getElem_add, cross, ff]
  have e : ∀ y a b c d : R, y + (#v[a, b] : Vec R 2)[0] + (#v[c, d] : Vec R 2)[0] = y + a + c :=
    fun _ _ _ _ _ => rfl
  rw [e]
  grind

theorem lateStep_refuted {sqrt : R → R} (h : sqrt 1 = 1) (scale : R) :
    ¬ FirstRow (lateStep sqrt scale) sqrt scale := by
  intro claim
  have e := (claim (meanLayer R) #v[1, -1]).trans
    (firstRow_firstStep sqrt scale (meanLayer R) #v[1, -1]).symm
  have e := congrArg (fun x : Vec R 2 => x[0]) e
  have step : firstStep sqrt scale (meanLayer R) #v[1, -1]
      = afterAttention sqrt scale (meanLayer R) (Vec.add #v[1, -1]
        ((meanLayer R).attention.cachedRow scale
          [((meanLayer R).attention.key.row ((meanLayer R).attentionNorm.row sqrt 0 #v[1, -1]),
            (meanLayer R).attention.value.row ((meanLayer R).attentionNorm.row sqrt 0 #v[1, -1]))]
          ((meanLayer R).attentionNorm.row sqrt 0 #v[1, -1]))) := rfl
  have value : (meanLayer R).attention.value.row #v[1, -1] = #v[1 * 1 + (0 * -1 + 0) + 0] := rfl
  have none : ∀ a : Vec R 2, (meanLayer R).attention.cachedRow scale [] a
      = #v[1 * 0 + 0 + 0, 0 * 0 + 0 + 0] := fun _ => rfl
  have one : ∀ (a : Vec R 2) (k v : R), (meanLayer R).attention.cachedRow scale [(#v[k], #v[v])] a
      = let s := scale * (((meanLayer R).attention.query.row a)[0] * k + 0)
        #v[1 * (exp s / (exp s + 0) * v + 0) + 0 + 0,
          0 * (exp s / (exp s + 0) * v + 0) + 0 + 0] := fun _ _ _ => rfl
  have key : ∀ a : Vec R 2, (meanLayer R).attention.key.row a
      = #v[((meanLayer R).attention.key.row a)[0]] := fun _ => rfl
  simp only [step, lateStep, after_mean] at e
  rw [meanLayer_norm h (by grind), value, key, none, one] at e
  have add : ∀ x y a b : R, (Vec.add #v[x, y] #v[a, b] : Vec R 2)[0] = x + a := fun _ _ _ _ => rfl
  simp only [add] at e
  have p := Exponential.exp_ne_zero (R := R)
    (scale * (((meanLayer R).attention.query.row #v[1, -1])[0]
      * ((meanLayer R).attention.key.row #v[1, -1])[0] + 0))
  have := OrderedRing.zero_lt_one (R := R)
  grind

end Attention.WrongVariants
