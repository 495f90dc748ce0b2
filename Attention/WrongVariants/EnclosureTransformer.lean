module

public import Attention.Proof.Enclosure.TransformerCache
public import Attention.WrongVariants.EnclosureMods

public section

/-! # Wrong variants of the transformer, run over intervals

No square root is at hand over the rational numbers; the constant 1 takes its place, of which
nothing is asked but an interval that contains it. Layers have no heads where the exponential would
have to be evaluated: what attention gives is then the bias of its last projection. -/

namespace Attention.WrongVariants

open Spec Model Interval

/-- One number between the bounds stands for the interval. -/
@[expose] def middle {p : Nat} : Interval p → Interval p
  | between a b => between ((a + b) / 2) ((a + b) / 2)
  | all => all

private theorem root_one : Proof.RootContains (p := 1) (R := Rat) (fun _ => 1) fun _ => 1 :=
  fun _ _ _ => Proof.contains_one

/-- 1, in the interval from −1 to 1. -/
private theorem straddling : (between (-2) 2 : Interval 1).Contains (1 : Rat) :=
  ⟨by decide +kernel, by decide +kernel⟩

private theorem vec_straddling :
    Proof.VecContains (#v[between (-2) 2] : Vec (Interval 1) 1) (#v[1] : Vec Rat 1)
  | 0, _ => straddling

private theorem vec_zero : Proof.VecContains (#v[0] : Vec (Interval 1) 1) (#v[0] : Vec Rat 1)
  | 0, _ => Proof.contains_zero

private theorem vec_one : Proof.VecContains (#v[1] : Vec (Interval 1) 1) (#v[1] : Vec Rat 1)
  | 0, _ => Proof.contains_one

private theorem vec_none : Proof.VecContains (#v[] : Vec (Interval 1) 0) (#v[] : Vec Rat 0) :=
  fun _ h => absurd h (Nat.not_lt_zero _)

/-! ## Feed-forward networks -/

/-- The claim of `feedForward_enclosed` for one row of one component, made of any network. -/
abbrev EnclosesFeedForward
    (row : FeedForward (Interval 1) 1 1 → Vec (Interval 1) 1 → Vec (Interval 1) 1) : Prop :=
  ∀ F' (F : FeedForward Rat 1 1) I x, Proof.FeedForwardContains F' F → Proof.VecContains I x →
    Proof.VecContains (row F' I) (F.row x)

/-- Positive control: the Spec's network, over intervals. -/
theorem row_enclosesFeedForward : EnclosesFeedForward FeedForward.row := fun _ _ _ _ hF hx =>
  hF.row hx

/-- The interval of a positive number stays; 0 for every other, those that straddle 0 too. -/
@[expose] def reluOfPositive : Interval 1 → Interval 1
  | between a b => if 0 ≤ a then between a b else 0
  | all => all

/-- The network with this in the place of the rectified linear unit. -/
@[expose] def rowOfPositive (F : FeedForward (Interval 1) 1 1) (x : Vec (Interval 1) 1) :
    Vec (Interval 1) 1 :=
  F.output.row (Vec.map reluOfPositive (F.hidden.row x))

private theorem one_contains : Proof.LinearContains (p := 1) (R := Rat) ⟨#v[#v[1]], #v[0]⟩
    ⟨#v[#v[1]], #v[0]⟩ :=
  ⟨fun | 0, _ => vec_one, vec_zero⟩

theorem rowOfPositive_refuted : ¬ EnclosesFeedForward rowOfPositive := fun h =>
  absurd (h ⟨⟨#v[#v[1]], #v[0]⟩, ⟨#v[#v[1]], #v[0]⟩⟩ ⟨⟨#v[#v[1]], #v[0]⟩, ⟨#v[#v[1]], #v[0]⟩⟩ _ _
    ⟨one_contains, one_contains⟩ vec_straddling 0 (by decide)).2 (by decide +kernel)

/-! ## Layer normalisation -/

/-- The claim of `layerNorm_enclosed` for one row of two components. -/
abbrev EnclosesNorm
    (row : LayerNorm (Interval 1) 2 → Vec (Interval 1) 2 → Vec (Interval 1) 2) : Prop :=
  ∀ N' (N : LayerNorm Rat 2) I x, Proof.LayerNormContains N' N → Proof.VecContains I x →
    Proof.VecContains (row N' I) (N.row (fun _ => 1) 1 x)

/-- Positive control: the Spec's normalisation, over intervals. -/
theorem row_enclosesNorm : EnclosesNorm (LayerNorm.row (fun _ => 1) 1) := fun _ _ _ _ hN hx =>
  hN.row root_one Proof.contains_one hx

/-- One number between the bounds of the mean stands for it. -/
@[expose] def normMiddle (N : LayerNorm (Interval 1) 2) (x : Vec (Interval 1) 2) :
    Vec (Interval 1) 2 :=
  let m := middle (mean x)
  Vec.ofFn fun i => (x[i] - m) / 1 * N.gain[i] + N.bias[i]

theorem normMiddle_refuted : ¬ EnclosesNorm normMiddle := fun h =>
  absurd (h ⟨#v[1, 1], #v[0, 0]⟩ ⟨#v[1, 1], #v[0, 0]⟩ #v[0, between 0 8] #v[0, 4]
    ⟨fun
      | 0, _ => Proof.contains_one
      | 1, _ => Proof.contains_one, fun
      | 0, _ => Proof.contains_zero
      | 1, _ => Proof.contains_zero⟩
    (fun
      | 0, _ => Proof.contains_zero
      | 1, _ => (⟨by decide +kernel, by decide +kernel⟩ :
          (between 0 8 : Interval 1).Contains (4 : Rat))) 0 (by decide)).1
    (by decide +kernel)

/-! ## Layers -/

/-- The claim of `encoderLayer_enclosed` for one row of one component and no heads. -/
abbrev EnclosesLayer
    (layer : EncoderLayer (Interval 1) 1 0 0 0 → Matrix (Interval 1) 1 1 →
      Matrix (Interval 1) 1 1) : Prop :=
  ∀ L' (L : EncoderLayer Rat 1 0 0 0) X' X, Proof.EncoderLayerContains L' L →
    Proof.MatrixContains X' X →
    Proof.MatrixContains (layer L' X') (letI := onePlus; L.preNorm (fun _ => 1) 1 0 Mask.full X)

/-- The Spec's layer over intervals. -/
@[expose] def layerEnclosed (L : EncoderLayer (Interval 1) 1 0 0 0) (X : Matrix (Interval 1) 1 1) :
    Matrix (Interval 1) 1 1 :=
  letI : Exp (Interval 1) (Interval 1) := ⟨fun I => 1 + I⟩
  L.preNorm (fun _ => 1) 1 0 Mask.full X

/-- Positive control: the Spec's layer satisfies the claim. -/
theorem layerEnclosed_enclosesLayer : EnclosesLayer layerEnclosed := by
  intro L' L X' X hL hX
  have noHeads : ∀ (H' : Vector (Matrix (Interval 1) 1 0) 0) (H : Vector (Matrix Rat 1 0) 0),
      Proof.MatrixContains (concatHeads H') (concatHeads H) :=
    fun _ _ _ _ _ h => absurd h (Nat.not_lt_zero _)
  have attended := fun H' H =>
    Proof.contains_addRows hX (hL.attention.output.rows (noHeads H' H))
  exact Proof.contains_addRows (attended _ _) (Proof.feedForward_enclosed hL.feedForward
    (Proof.layerNorm_enclosed root_one Proof.contains_one hL.feedForwardNorm (attended _ _)))

/-- The rows that attention is added to are taken as one number each. -/
@[expose] def layerMiddle (L : EncoderLayer (Interval 1) 1 0 0 0) (X : Matrix (Interval 1) 1 1) :
    Matrix (Interval 1) 1 1 :=
  layerEnclosed L (Vec.map (Vec.map middle) X)

private theorem norm_one : Proof.LayerNormContains (p := 1) (R := Rat) ⟨#v[1], #v[0]⟩
    ⟨#v[1], #v[0]⟩ :=
  ⟨vec_one, vec_zero⟩

private theorem nothing {n : Nat} : Proof.LinearContains (p := 1) (R := Rat) (d_in := n)
    (d_out := 0) ⟨#v[], #v[]⟩ ⟨#v[], #v[]⟩ :=
  ⟨fun _ h => absurd h (Nat.not_lt_zero _), vec_none⟩

private theorem of_nothing : Proof.LinearContains (p := 1) (R := Rat) ⟨#v[#v[]], #v[0]⟩
    ⟨#v[#v[]], #v[0]⟩ :=
  ⟨fun | 0, _ => vec_none, vec_zero⟩

/-- A layer that adds nothing to its rows. -/
@[expose] def emptyLayer (T : Type) [OfNat T 0] [OfNat T 1] : EncoderLayer T 1 0 0 0 :=
  ⟨⟨⟨#v[], #v[]⟩, ⟨#v[], #v[]⟩, ⟨#v[], #v[]⟩, ⟨#v[#v[]], #v[0]⟩⟩, ⟨#v[1], #v[0]⟩,
    ⟨⟨#v[], #v[]⟩, ⟨#v[#v[]], #v[0]⟩⟩, ⟨#v[1], #v[0]⟩⟩

theorem layerMiddle_refuted : ¬ EnclosesLayer layerMiddle := fun h =>
  absurd (h (emptyLayer (Interval 1)) (emptyLayer Rat) #v[#v[between (-2) 2]] #v[#v[1]]
    ⟨⟨nothing, nothing, nothing, of_nothing⟩, norm_one, ⟨nothing, of_nothing⟩, norm_one⟩
    (fun | 0, _ => vec_straddling) 0 (by decide) 0 (by decide)).2 (by decide +kernel)

/-! ## Positions -/

/-- The hypothesis of `transformer_enclosed` about the encodings of the places. -/
abbrev EnclosesPositions (add : (Nat → Vec (Interval 1) 1) → Matrix (Interval 1) 1 1 →
    Matrix (Interval 1) 1 1) : Prop :=
  ∀ position' (position : Nat → Vec Rat 1) X' X,
    (∀ i, Proof.VecContains (position' i) (position i)) → Proof.MatrixContains X' X →
    Proof.MatrixContains (add position' X') (addPositions position X)

/-- Positive control: the Spec's sum, over intervals. -/
theorem addPositions_enclosesPositions : EnclosesPositions addPositions := fun _ _ _ _ h hX =>
  Proof.contains_addPositions h hX

/-- The encoding of a place is one number between the bounds. -/
theorem addMiddle_refuted :
    ¬ EnclosesPositions fun position => addPositions fun i => Vec.map middle (position i) :=
  fun h => absurd (h (fun _ => #v[between (-2) 2]) (fun _ => #v[1]) #v[#v[0]] #v[#v[0]]
    (fun _ => vec_straddling) (fun | 0, _ => vec_zero) 0 (by decide) 0 (by decide)).2
    (by decide +kernel)

/-! ## With a cache -/

/-- The statement of `decodeCached_enclosed` about the cache of one layer, made of any step. -/
abbrev EnclosesCache (step : DecoderLayer (Interval 1) 1 1 1 0 → LayerCache (Interval 1) 1 →
    Vec (Interval 1) 1 → LayerCache (Interval 1) 1) : Prop :=
  ∀ L' (L : DecoderLayer Rat 1 1 1 0) cache' cache I x, Proof.DecoderLayerContains L' L →
    Proof.CacheContains cache' cache → Proof.VecContains I x →
    Proof.CacheContains (step L' cache' I)
      (letI := onePlus
      (L.step (fun _ => 1) 1 0 (fun _ => true) (#v[] : Matrix Rat 0 1) cache x).1)

/-- The cache after the Spec's step over intervals. -/
@[expose] def cacheEnclosed (L : DecoderLayer (Interval 1) 1 1 1 0)
    (cache : LayerCache (Interval 1) 1) (x : Vec (Interval 1) 1) : LayerCache (Interval 1) 1 :=
  letI : Exp (Interval 1) (Interval 1) := ⟨fun I => 1 + I⟩
  (L.step (fun _ => 1) 1 0 (fun _ => true) (#v[] : Matrix (Interval 1) 0 1) cache x).1

/-- Positive control: the Spec's step satisfies the claim. -/
theorem cacheEnclosed_enclosesCache : EnclosesCache cacheEnclosed := by
  intro L' L cache' cache I x hL hcache hx
  have ha := hL.attentionNorm.row root_one Proof.contains_one hx
  exact Proof.Pointwise.concat (a := (_, _)) (b := (_, _)) hcache
    ⟨hL.attention.key.row ha, hL.attention.value.row ha⟩

/-- The entries kept of a row are numbers. -/
@[expose] def cacheMiddle (L : DecoderLayer (Interval 1) 1 1 1 0)
    (cache : LayerCache (Interval 1) 1) (x : Vec (Interval 1) 1) : LayerCache (Interval 1) 1 :=
  (cacheEnclosed L cache x).map fun kv => (Vec.map middle kv.1, Vec.map middle kv.2)

/-- A layer whose keys and values are the bias b of the normalisation that goes before. -/
@[expose] def keepingLayer {T : Type} [OfNat T 0] [OfNat T 1] (b : T) : DecoderLayer T 1 1 1 0 :=
  let W : Linear T 1 1 := ⟨#v[#v[1]], #v[0]⟩
  ⟨⟨W, W, W, W⟩, ⟨#v[1], #v[b]⟩, ⟨W, W, W, W⟩, ⟨#v[1], #v[0]⟩,
    ⟨⟨#v[], #v[]⟩, ⟨#v[#v[]], #v[0]⟩⟩, ⟨#v[1], #v[0]⟩⟩

private theorem keeping_contains : Proof.DecoderLayerContains
    (keepingLayer (between (-2) 2 : Interval 1)) (keepingLayer (1 : Rat)) :=
  have W : Proof.MultiHeadContains (p := 1) (R := Rat) (num_heads := 1) (d := 1) _ _ :=
    ⟨one_contains, one_contains, one_contains, one_contains⟩
  ⟨W, ⟨vec_one, vec_straddling⟩, W, norm_one, ⟨nothing, of_nothing⟩, norm_one⟩

theorem cacheMiddle_refuted : ¬ EnclosesCache cacheMiddle := fun h =>
  absurd ((h _ _ [] [] _ _ keeping_contains trivial vec_zero).1.1 0 (by decide)).2
    (by decide +kernel)

end Attention.WrongVariants
