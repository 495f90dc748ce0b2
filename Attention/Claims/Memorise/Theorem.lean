module

public import Attention.Claims.Memorise.Transformer
public import Attention.Proof.Transformer.Causal

public section

/-! # A transformer memorises

What is true of `AttentionIsAllYouNeed`: every architecture that is large enough has, for each
function of both sequences, parameters with which Forward returns it, if the masks let each place
see what the function depends on there. Under a causal mask these are the functions that Forward can
return at all. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} {s t s_vocab t_vocab d_model num_heads d d_ff : Nat}

/-- How many components suffice: one for each token at each place, of the target and of the source,
one for each token and each place, and one that is always 0. -/
@[expose] def memoryWidth (s t s_vocab t_vocab : Nat) : Nat :=
  t_vocab * t + s_vocab * s + (s_vocab + t_vocab) + (s + t) + 1

/-- How many hidden units suffice: one for each pair of sequences and each place, and one for each
token at each place. -/
@[expose] def memoryUnits (s t s_vocab t_vocab : Nat) : Nat :=
  s_vocab ^ s * (t_vocab ^ t * t) + s_vocab * s + t_vocab * t

/-- The token of `best` at a place depends on the target's token there, and on the tokens of the
target and of the source that the masks let this place see. -/
@[expose] def DependsOnVisible (targetMask : Mask t t) (crossMask : Mask t s)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t) : Prop :=
  ∀ source source' target target' (p : Fin t), target[p] = target'[p] →
    (∀ q, targetMask p q = true → target[q] = target'[q]) →
    (∀ j, crossMask p j = true → source[j] = source'[j]) →
    (best source target)[p] = (best source' target')[p]

/-- Some parameters of the architecture, so many layers of the encoder and of the decoder, make
Forward return `best` for all sequences, whatever the scale and the mask of the source. -/
@[expose] def Memorises [OrderedField R] [Exp R R] (sqrt : R → R) (ε : R)
    (encoders decoders d_model num_heads d d_ff : Nat) (targetMask : Mask t t)
    (crossMask : Mask t s)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t) : Prop :=
  ∃ (position : Nat → Vec R d_model) (encoderNorm decoderNorm : LayerNorm R d_model)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff),
    T.encoder.length = encoders ∧ T.decoder.length = decoders ∧
    ∀ (scale : R) (sourceMask : Mask s s) source target,
      forward sqrt ε scale position encoderNorm decoderNorm sourceMask targetMask crossMask T source
        target = Vec.map some (best source target)

variable [OrderedField R] {targetMask : Mask t t} {crossMask : Mask t s}
variable {best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t}

section
variable [Exp R R] {sqrt : R → R} (root : ∀ x, 0 < x → 0 < sqrt x) {ε : R} (hε : 0 ≤ ε)
  (positive : (0 : R) < exp (0 : R)) (width : memoryWidth s t s_vocab t_vocab ≤ d_model)
  (heads : memoryWidth s t s_vocab t_vocab ≤ num_heads * d)
  (units : memoryUnits s t s_vocab t_vocab ≤ d_ff)
include root hε positive width heads units

/-- **transformer-memorises**: every architecture that is large enough has, for each function `best`
of both sequences that depends on what the masks let a place see, parameters with which Forward
returns it for all sequences of the two lengths: one layer of the encoder and two of the decoder,
for any root that is positive and ε ≥ 0, whatever the scale and the mask of the source. -/
theorem transformer_memorises (visible : DependsOnVisible targetMask crossMask best) :
    Memorises sqrt ε 1 2 d_model num_heads d d_ff targetMask crossMask best := by
  rw [memoryUnits] at units
  rw [memoryWidth] at width heads
  have layer : slots s t s_vocab t_vocab + (s + t) < d_model := by
    rw [slots, codes]
    omega
  obtain ⟨E, hE⟩ := exists_encoder (s := s) (t := t) (s_vocab := s_vocab) (t_vocab := t_vocab)
    (d_model := d_model) (num_heads := num_heads) (d := d) (d_ff := d_ff) root hε (by omega)
    (Nat.le_trans (by omega) units)
  obtain ⟨D₁, h₁⟩ := exists_firstLayer (s := s) (t := t) (s_vocab := s_vocab) (t_vocab := t_vocab)
    (d_model := d_model) (num_heads := num_heads) (d := d) (d_ff := d_ff) root hε (by omega)
    (Nat.le_trans (by omega) units)
  obtain ⟨D₂, h₂⟩ := exists_secondLayer (d_model := d_model) (num_heads := num_heads) (d := d)
    (d_ff := d_ff) root hε positive (by omega) (by rw [codes]; omega)
    (Nat.le_trans (by omega) units) targetMask crossMask best visible
  let token : Nat → Vec R d_model := fun a => unit d_model (codes s t s_vocab t_vocab + a)
  let position : Nat → Vec R d_model := fun p => unit d_model (slots s t s_vocab t_vocab + p)
  have small : ∀ a : Fin t_vocab, codes s t s_vocab t_vocab + a.val + 1 < d_model := fun a => by
    have := a.isLt
    rw [codes]
    omega
  refine ⟨position, unitNorm d_model sqrt ε, unitNorm d_model sqrt ε,
    ⟨Vec.ofFn fun b => token b.val, Vec.ofFn fun a => token a.val, [E], [D₁, D₂],
      tiedOutput (Vec.ofFn fun a => token a.val)⟩, rfl, rfl,
    fun scale sourceMask source target => ?_⟩
  have rows : ∀ {v n : Nat} (tokens : Vector (Fin v) n),
      addPositions position (embed (Vec.ofFn fun a : Fin v => token a.val) tokens)
      = Vec.ofFn fun p => (embedded d_model (slots s t s_vocab t_vocab)
        (codes s t s_vocab t_vocab + tokens[p].val) p.val : Vec R d_model) :=
    fun tokens => Vector.ext fun p hp => by
      simp only [addPositions, embed, token, position, Vec.getElem_ofFn, Vec.getElem_map,
        Fin.getElem_fin, add_unit]
  have logit : ∀ a b : Fin t_vocab,
      ((tiedOutput (Vec.ofFn fun a : Fin t_vocab => token a.val)).row
        (unit d_model (codes s t s_vocab t_vocab + b.val)))[a] = if a = b then 1 else 0 :=
    fun a b => by
      have := small a
      rw [Linear.row, Fin.getElem_fin, Vec.getElem_ofFn]
      simp only [tiedOutput, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero, token]
      rw [dot_unit (by omega), getElem_unit]
      simp only [Fin.ext_iff, Nat.add_left_cancel_iff]
      grind
  rw [forward, decodePostNorm]
  simp only [rows, hE, List.foldl, h₁, h₂]
  refine Vector.ext fun p hp => ?_
  rw [Vec.getElem_map, Vec.getElem_map, Linear.rows, Vec.getElem_map, LayerNorm.rows,
    Vec.getElem_map, Vec.getElem_ofFn, unitNorm_row root hε (small _)]
  refine Proof.argmax_eq (k := (best source target)[(⟨p, hp⟩ : Fin t)]) fun a ha => ?_
  have one := OrderedRing.zero_lt_one (R := R)
  rw [logit, logit, if_neg ha, if_pos rfl]
  exact one

/-- Without masks each function of both sequences will do: `AttentionIsAllYouNeed` is true of every
architecture that is large enough. -/
theorem transformer_memorises_full
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t) :
    Memorises sqrt ε 1 2 d_model num_heads d d_ff Mask.full Mask.full best :=
  transformer_memorises root hε positive width heads units
    fun source source' target target' p _ ht hs => by
      have e₁ : source = source' := Vector.ext fun j hj => hs ⟨j, hj⟩ rfl
      have e₂ : target = target' := Vector.ext fun q hq => ht ⟨q, hq⟩ rfl
      rw [e₁, e₂]

/-- The same of a finite list of examples: a source, a target and what Forward is to return of them.
None may contradict another. -/
theorem transformer_memorises_examples
    (examples : List (Vector (Fin s_vocab) s × Vector (Fin t_vocab) t × Vector (Fin t_vocab) t))
    (consistent : ∀ x ∈ examples, ∀ y ∈ examples, x.1 = y.1 → x.2.1 = y.2.1 → x.2.2 = y.2.2) :
    ∃ (position : Nat → Vec R d_model) (encoderNorm decoderNorm : LayerNorm R d_model)
      (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff),
      ∀ (scale : R) (sourceMask : Mask s s), ∀ x ∈ examples,
        forward sqrt ε scale position encoderNorm decoderNorm sourceMask Mask.full Mask.full T
          x.1 x.2.1 = Vec.map some x.2.2 := by
  have ⟨best, h⟩ : ∃ best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t →
      Vector (Fin t_vocab) t, ∀ x ∈ examples, best x.1 x.2.1 = x.2.2 := by
    refine ⟨fun source target =>
      ((examples.find? fun x => x.1 = source ∧ x.2.1 = target).map (·.2.2)).getD target,
      fun x hx => ?_⟩
    cases e : examples.find? fun y => y.1 = x.1 ∧ y.2.1 = x.2.1 with
    | none =>
      have := List.find?_eq_none.mp e x hx
      simp at this
    | some y =>
      have h₁ := List.find?_some e
      simp only [decide_eq_true_eq] at h₁
      simp only [e, Option.map_some, Option.getD_some]
      exact consistent y (List.mem_of_find?_eq_some e) x hx h₁.1 h₁.2
  obtain ⟨position, encoderNorm, decoderNorm, T, -, -, hT⟩ :=
    transformer_memorises_full root hε positive width heads units best
  exact ⟨position, encoderNorm, decoderNorm, T, fun scale sourceMask x hx => by
    rw [hT, h x hx]⟩

end

/-! ## Causal masks -/

variable [Exponential R R] {sqrt : R → R} {ε : R}

/-- Under a mask that lets no place see a later one, Forward returns at a place what depends on the
target's tokens up to there, whatever the sizes and the parameters. -/
theorem forward_causal {scale : R} {position : Nat → Vec R d_model}
    {encoderNorm decoderNorm : LayerNorm R d_model} {sourceMask : Mask s s}
    (later : Proof.SeesNoLater targetMask)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff) (source : Vector (Fin s_vocab) s)
    {target target' : Vector (Fin t_vocab) t} {p : Fin t}
    (same : ∀ q, q ≤ p → target[q] = target'[q]) :
    (forward sqrt ε scale position encoderNorm decoderNorm sourceMask targetMask crossMask T source
        target)[p]
      = (forward sqrt ε scale position encoderNorm decoderNorm sourceMask targetMask crossMask T
        source target')[p] := by
  have embedded : Proof.AgreeUpTo p.val (addPositions position (embed T.target target))
      (addPositions position (embed T.target target')) := by
    intro i i' hi hp
    obtain rfl : i = i' := Fin.ext hi
    have e := same i (Fin.le_def.mpr hp)
    simp only [Fin.getElem_fin] at e
    simp only [addPositions, embed, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map, e]
  have refl : ∀ {k : Nat} (mask : Mask t k), Proof.SameMask mask mask :=
    fun mask i i' j j' hi hj => by rw [Fin.ext hi, Fin.ext hj]
  have e := Proof.decoder_postNorm_causal (sqrt := sqrt) (ε := ε) (scale := scale) later later
    (refl targetMask) (refl crossMask) T.decoder decoderNorm
    (encodePostNorm sqrt ε scale sourceMask T.encoder encoderNorm
      (addPositions position (embed T.source source))) embedded p p rfl (Nat.le_refl _)
  simp only [forward, Linear.rows, Fin.getElem_fin, Vec.getElem_map] at e ⊢
  rw [e]

/-- Under the causal mask no transformer, of whatever size, swaps two tokens. -/
theorem forward_swap_refuted (scale : R) (position : Nat → Vec R d_model)
    (encoderNorm decoderNorm : LayerNorm R d_model) (sourceMask : Mask s s) (crossMask : Mask 2 s)
    (T : Transformer R s_vocab 2 d_model num_heads d d_ff) (source : Vector (Fin s_vocab) s) :
    ¬ ∀ target : Vector (Fin 2) 2, forward sqrt ε scale position encoderNorm decoderNorm sourceMask
        (Mask.causal .topLeft) crossMask T source target
      = Vec.map some #v[target[1], target[0]] := by
  intro h
  have e := forward_causal (sqrt := sqrt) (ε := ε) (scale := scale) (position := position)
    (encoderNorm := encoderNorm) (decoderNorm := decoderNorm) (sourceMask := sourceMask)
    (crossMask := crossMask) (target := #v[0, 0]) (target' := #v[0, 1]) (p := 0)
    Proof.causal_seesNoLater T source (by decide)
  rw [h, h] at e
  exact absurd e (by decide)

/-- **transformer-causal-functions**: under the causal mask the functions that Forward can return,
with one layer of the encoder and two of the decoder, are exactly those that depend, at each place,
on the source and on the target's tokens up to there, once the architecture is large enough. -/
theorem memorises_causal_iff (root : ∀ x, 0 < x → 0 < sqrt x) (hε : 0 ≤ ε)
    (width : memoryWidth s t s_vocab t_vocab ≤ d_model)
    (heads : memoryWidth s t s_vocab t_vocab ≤ num_heads * d)
    (units : memoryUnits s t s_vocab t_vocab ≤ d_ff)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t) :
    Memorises sqrt ε 1 2 d_model num_heads d d_ff (Mask.causal .topLeft) Mask.full best ↔
      ∀ source target target' (p : Fin t), (∀ q, q ≤ p → target[q] = target'[q]) →
        (best source target)[p] = (best source target')[p] := by
  constructor
  · rintro ⟨position, encoderNorm, decoderNorm, T, -, -, h⟩ source target target' p same
    have e := forward_causal (sqrt := sqrt) (ε := ε) (scale := 0) (position := position)
      (encoderNorm := encoderNorm) (decoderNorm := decoderNorm) (sourceMask := Mask.full)
      (crossMask := Mask.full) Proof.causal_seesNoLater T source same
    rw [h, h] at e
    simpa only [Fin.getElem_fin, Vec.getElem_map, Option.some.injEq] using e
  · intro causal
    refine transformer_memorises root hε (Exponential.exp_pos 0) width heads units
      fun source source' target target' p _ ht hs => ?_
    obtain rfl : source = source' := Vector.ext fun j hj => hs ⟨j, hj⟩ rfl
    refine causal source target target' p fun q hq => ht q ?_
    have := Fin.le_def.mp hq
    simp only [Mask.causal, Alignment.shift, decide_eq_true_eq]
    omega

end Attention.Claims
