module

public import Attention.Spec.Transformer
public import Attention.Proof.Heads.MultiHead

public section

/-! # A masked decoder does not see the tokens to come

When no query of the self-attention sees a key after its own place, a row of a decoder layer, of the
whole stack and of the transformer depends on the rows up to there and on nothing after them: not
even on whether there is anything after them. -/

namespace Attention.Proof

open Spec

universe u

variable {R : Type u} {n n' s t t' d d_model num_heads d_ff : Nat}

/-- X and Y have the same rows up to row p, as far as both have rows. -/
@[expose] def AgreeUpTo (p : Nat) (X : Matrix R n d) (Y : Matrix R n' d) : Prop :=
  ∀ (i : Fin n) (j : Fin n'), i.val = j.val → i.val ≤ p → X[i] = Y[j]

/-- No query sees a key after its own place. -/
@[expose] def SeesNoLater (mask : Mask n n) : Prop := ∀ i j, mask i j = true → j ≤ i

/-- The masks treat pairs of equal places alike. -/
@[expose] def SameMask {k k' : Nat} (mask : Mask n k) (mask' : Mask n' k') : Prop :=
  ∀ i i' j j', i.val = i'.val → j.val = j'.val → mask i j = mask' i' j'

/-- The causal mask lets no query see a later key. -/
theorem causal_seesNoLater : SeesNoLater (Mask.causal .topLeft : Mask n n) := fun i j h => by
  simp only [Mask.causal, Alignment.shift, decide_eq_true_eq] at h
  exact Fin.le_def.mpr (by omega)

/-- The causal mask is the same in all lengths. -/
theorem causal_sameMask :
    SameMask (Mask.causal .topLeft : Mask n n) (Mask.causal .topLeft : Mask n' n') := by
  intro i i' j j' hi hj
  simp only [Mask.causal, Alignment.shift, hi, hj]

/-- A row of a layer normalisation's output is that of the row. -/
theorem getElem_layerNorm [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] (sqrt : R → R)
    (ε : R) (N : LayerNorm R d) (X : Matrix R n d) (i : Fin n) :
    (N.rows sqrt ε X)[i] = N.row sqrt ε X[i] := by
  rw [LayerNorm.rows, Fin.getElem_fin, Vec.getElem_map, Fin.getElem_fin]

/-- A row of a feed-forward network's output is that of the row. -/
theorem getElem_feedForward [Add R] [Mul R] [OfNat R 0] [Max R]
    (F : FeedForward R d d_ff) (X : Matrix R n d) (i : Fin n) : (F.rows X)[i] = F.row X[i] := by
  rw [FeedForward.rows, Fin.getElem_fin, Vec.getElem_map, Fin.getElem_fin]

variable [OrderedField R] [Exponential R R] {sqrt : R → R} {ε scale : R}

/-- Self-attention whose queries see no later keys: rows up to p depend on rows up to p. -/
theorem selfAttention_causal {W : MultiHead R d_model num_heads d} {mask : Mask t t}
    {mask' : Mask t' t'} (h : SeesNoLater mask) (h' : SeesNoLater mask') (hs : SameMask mask mask')
    {p : Nat} {X : Matrix R t d_model} {X' : Matrix R t' d_model} (hX : AgreeUpTo p X X') :
    AgreeUpTo p (W.rows scale mask X X X) (W.rows scale mask' X' X' X') := by
  intro i i' hi hp
  refine multiHead_attend_congr (m := i.val + 1) (by omega) (by omega)
    (fun j hj => Nat.lt_succ_of_le (h i j hj))
    (fun j hj => by have := Fin.le_def.mp (h' i' j hj); omega) ?_ fun j j' hj hjm => ?_
  · rw [getElem_linear, getElem_linear, hX i i' hi hp]
  · have e := hX j j' hj (by omega)
    exact ⟨hs i i' j j' hi hj, by rw [getElem_linear, getElem_linear, e],
      by rw [getElem_linear, getElem_linear, e]⟩

/-- Attention to a context: a row depends on its own query alone. -/
theorem crossAttention_row {W : MultiHead R d_model num_heads d} {mask : Mask t s}
    {mask' : Mask t' s} {X : Matrix R t d_model} {X' : Matrix R t' d_model}
    (C : Matrix R s d_model) {i : Fin t} {i' : Fin t'} (hs : ∀ j, mask i j = mask' i' j)
    (hX : X[i] = X'[i']) : (W.rows scale mask X C C)[i] = (W.rows scale mask' X' C C)[i'] := by
  refine multiHead_attend_congr (m := s) (Nat.le_refl _) (Nat.le_refl _) (fun j _ => j.isLt)
    (fun j _ => j.isLt) ?_ fun j j' hj _ => ?_
  · rw [getElem_linear, getElem_linear, hX]
  · rw [Fin.ext hj]
    exact ⟨hs j', rfl, rfl⟩

/-- One layer of a masked decoder: rows up to p depend on rows up to p. -/
theorem decoderLayer_causal {mask : Mask t t} {mask' : Mask t' t'} (h : SeesNoLater mask)
    (h' : SeesNoLater mask') (hs : SameMask mask mask') {crossMask : Mask t s}
    {crossMask' : Mask t' s} (hc : SameMask crossMask crossMask')
    (L : DecoderLayer R d_model num_heads d d_ff) (C : Matrix R s d_model) {p : Nat}
    {X : Matrix R t d_model} {X' : Matrix R t' d_model} (hX : AgreeUpTo p X X') :
    AgreeUpTo p (L.preNorm sqrt ε scale mask crossMask C X)
      (L.preNorm sqrt ε scale mask' crossMask' C X') := by
  intro i i' hi hp
  have norm : AgreeUpTo p (L.attentionNorm.rows sqrt ε X) (L.attentionNorm.rows sqrt ε X') :=
    fun i i' hi hp => by rw [getElem_layerNorm, getElem_layerNorm, hX i i' hi hp]
  have self := selfAttention_causal (scale := scale) (W := L.attention) h h' hs norm i i' hi hp
  have sum : ∀ {n : Nat} {X Y : Matrix R n d_model} (i : Fin n),
      (addRows X Y)[i] = Vec.add X[i] Y[i] := fun i => getElem_addRows _ _ i
  have cross := crossAttention_row (scale := scale) (W := L.cross) (mask := crossMask)
    (mask' := crossMask') (X := L.crossNorm.rows sqrt ε (addRows X (L.attention.rows scale mask
      (L.attentionNorm.rows sqrt ε X) (L.attentionNorm.rows sqrt ε X)
      (L.attentionNorm.rows sqrt ε X))))
    (X' := L.crossNorm.rows sqrt ε (addRows X' (L.attention.rows scale mask'
      (L.attentionNorm.rows sqrt ε X') (L.attentionNorm.rows sqrt ε X')
      (L.attentionNorm.rows sqrt ε X')))) C (i := i) (i' := i') (fun j => hc i i' j j hi rfl)
    (by rw [getElem_layerNorm, getElem_layerNorm, sum, sum, hX i i' hi hp, self])
  simp only [DecoderLayer.preNorm, sum, getElem_feedForward, getElem_layerNorm, cross,
    hX i i' hi hp, self]

/-- **decoder-causal**: under a self-attention mask that lets no query see a later key (the causal
one and whatever masks more), rows up to p of the decoder, of any number of layers, depend on rows
up to p of its input: not on later rows, nor on how many there are. -/
theorem decoder_causal {mask : Mask t t} {mask' : Mask t' t'} (h : SeesNoLater mask)
    (h' : SeesNoLater mask') (hs : SameMask mask mask') {crossMask : Mask t s}
    {crossMask' : Mask t' s} (hc : SameMask crossMask crossMask')
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (C : Matrix R s d_model) {p : Nat}
    {X : Matrix R t d_model} {X' : Matrix R t' d_model} (hX : AgreeUpTo p X X') :
    AgreeUpTo p (decode sqrt ε scale mask crossMask layers C X)
      (decode sqrt ε scale mask' crossMask' layers C X') := by
  simp only [decode]
  induction layers generalizing X X' with
  | nil => exact hX
  | cons L layers ih => exact ih (decoderLayer_causal h h' hs hc L C hX)

/-- One layer of a masked decoder that normalises after: rows up to p depend on rows up to p. -/
theorem decoderLayer_postNorm_causal {mask : Mask t t} {mask' : Mask t' t'} (h : SeesNoLater mask)
    (h' : SeesNoLater mask') (hs : SameMask mask mask') {crossMask : Mask t s}
    {crossMask' : Mask t' s} (hc : SameMask crossMask crossMask')
    (L : DecoderLayer R d_model num_heads d d_ff) (C : Matrix R s d_model) {p : Nat}
    {X : Matrix R t d_model} {X' : Matrix R t' d_model} (hX : AgreeUpTo p X X') :
    AgreeUpTo p (L.postNorm sqrt ε scale mask crossMask C X)
      (L.postNorm sqrt ε scale mask' crossMask' C X') := by
  intro i i' hi hp
  have sum : ∀ {n : Nat} {X Y : Matrix R n d_model} (i : Fin n),
      (addRows X Y)[i] = Vec.add X[i] Y[i] := fun i => getElem_addRows _ _ i
  have self := selfAttention_causal (scale := scale) (W := L.attention) h h' hs hX i i' hi hp
  have cross := crossAttention_row (scale := scale) (W := L.cross) (mask := crossMask)
    (mask' := crossMask') (X := L.attentionNorm.rows sqrt ε (addRows X (L.attention.rows scale mask
      X X X)))
    (X' := L.attentionNorm.rows sqrt ε (addRows X' (L.attention.rows scale mask' X' X' X'))) C
    (i := i) (i' := i') (fun j => hc i i' j j hi rfl)
    (by rw [getElem_layerNorm, getElem_layerNorm, sum, sum, hX i i' hi hp, self])
  simp only [DecoderLayer.postNorm, sum, getElem_feedForward, getElem_layerNorm, cross,
    hX i i' hi hp, self]

/-- A masked decoder that normalises after each sum, and once more at its end, is causal, too. -/
theorem decoder_postNorm_causal {mask : Mask t t} {mask' : Mask t' t'} (h : SeesNoLater mask)
    (h' : SeesNoLater mask') (hs : SameMask mask mask') {crossMask : Mask t s}
    {crossMask' : Mask t' s} (hc : SameMask crossMask crossMask')
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (norm : LayerNorm R d_model)
    (C : Matrix R s d_model) {p : Nat} {X : Matrix R t d_model} {X' : Matrix R t' d_model}
    (hX : AgreeUpTo p X X') :
    AgreeUpTo p (decodePostNorm sqrt ε scale mask crossMask layers norm C X)
      (decodePostNorm sqrt ε scale mask' crossMask' layers norm C X') := by
  have stack : AgreeUpTo p
      (layers.foldl (fun X L => L.postNorm sqrt ε scale mask crossMask C X) X)
      (layers.foldl (fun X L => L.postNorm sqrt ε scale mask' crossMask' C X) X') := by
    induction layers generalizing X X' with
    | nil => exact hX
    | cons L layers ih => exact ih (decoderLayer_postNorm_causal h h' hs hc L C hX)
  intro i i' hi hp
  simp only [decodePostNorm]
  rw [getElem_layerNorm, getElem_layerNorm, stack i i' hi hp]

/-- The probabilities of a transformer with a masked decoder, for the places up to p, depend on the
target's tokens up to p: not on later ones, nor on how many there are. -/
theorem transformer_causal {s_vocab t_vocab : Nat} {position : Nat → Vec R d_model}
    {sourceMask : Mask s s} {mask : Mask t t} {mask' : Mask t' t'} (h : SeesNoLater mask)
    (h' : SeesNoLater mask') (hs : SameMask mask mask') {crossMask : Mask t s}
    {crossMask' : Mask t' s} (hc : SameMask crossMask crossMask')
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff) (source : Vector (Fin s_vocab) s)
    {p : Nat} {target : Vector (Fin t_vocab) t} {target' : Vector (Fin t_vocab) t'}
    (ht : ∀ (i : Fin t) (i' : Fin t'), i.val = i'.val → i.val ≤ p → target[i] = target'[i']) :
    AgreeUpTo p
      (T.probabilities sqrt ε scale position sourceMask mask crossMask source target)
      (T.probabilities sqrt ε scale position sourceMask mask' crossMask' source target') := by
  have embedded : AgreeUpTo p (addPositions position (embed T.target target))
      (addPositions position (embed T.target target')) := by
    intro i i' hi hp
    have e : T.target[target[i]] = T.target[target'[i']] := by rw [ht i i' hi hp]
    simp only [Fin.getElem_fin] at e
    simp only [addPositions, embed, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map]
    rw [e, hi]
  intro i i' hi hp
  have e := decoder_causal (sqrt := sqrt) (ε := ε) (scale := scale) h h' hs hc T.decoder
    (T.encode sqrt ε scale position sourceMask source) embedded i i' hi hp
  have row : ∀ {n : Nat} (X : Matrix R n t_vocab) (i : Fin n),
      (Vec.map softmaxVec X)[i] = softmaxVec X[i] := fun X i => by
    simp only [Fin.getElem_fin, Vec.getElem_map]
  simp only [Transformer.probabilities, Transformer.logits]
  rw [row, row, getElem_linear, getElem_linear, e]

end Attention.Proof
