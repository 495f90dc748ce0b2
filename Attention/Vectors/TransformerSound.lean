module

public import Attention.Vectors.TransformerContains

public section

/-! # The bounds in the transformer's vectors are bounds of the true numbers

From the program that is run to what is true: if it yields bounds, then over every ordered field
with a natural exponential and square roots the Spec's own outcome lies between them. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R]

/-- **Published bounds of a matrix** are bounds of what the intervals contain, entry by entry. -/
theorem contains_narrowBounds {m n : Nat} {A : Matrix (Interval working) m n} {X : Matrix R m n}
    {B : RowBounds} (h : narrowBounds A = .ok B) (hA : MatrixContains A X) :
    BoundsContain B X := by
  rw [narrowBounds] at h
  cases hB : boundsOf A with
  | error e => simp [hB, bind, Except.bind] at h
  | ok B' =>
    simp only [hB, bind, Except.bind] at h
    split at h
    · cases h
      exact contains_boundsOf hB hA
    · cases h

/-! ## The program -/

variable [NaturalExp R] {root : R → R} (hroot : Interval.IsSqrt root) {number : Rat → R}
include hroot

/-- The outcome over the intervals of the inputs contains that over the inputs. -/
theorem contains_value {inputs : LayerInputs} (h : AllContain number inputs.numbers) :
    OutcomeContains (inputs.value Interval.sqrt ofRat scaleOf)
      (inputs.value root number (factorOf root number)) := by
  have hsqrt := rootContains_sqrt (p := working) hroot
  match inputs with
  | .linear W X => exact h.left.linear.rows h.right.rows
  | .layerNorm ε N X =>
    exact layerNorm_enclosed hsqrt h.left.head h.left.tail.layerNorm h.right.rows
  | .feedForward F X => exact feedForward_enclosed h.left.feedForward h.right.rows
  | .selfAttention (d := d) scale mask W X =>
    exact multiHead_enclosed (contains_factor hroot h.left.left d) h.left.right.multiHead _
      h.right.rows h.right.rows h.right.rows
  | .crossAttention (d := d) scale mask W X C V =>
    have hC := h.left.right.rows
    refine multiHead_enclosed (contains_factor hroot h.left.left.left.left d)
      h.left.left.left.right.multiHead _ h.left.left.right.rows hC ?_
    cases V with
    | none => exact hC
    | some V => exact AllContain.rows fun q hq => h.right q (by simpa using hq)
  | .encoder (d := d) options mask layers norm X =>
    exact contains_encoderValue hroot h.left.left.left.head
      (contains_factor hroot h.left.left.left.tail d) _ _ h.left.left.right.encoders
      h.left.right.norm h.right.rows
  | .decoder (d := d) options cached mask crossMask layers norm C X =>
    exact contains_decoderValue hroot h.left.left.left.left.head
      (contains_factor hroot h.left.left.left.left.tail d) _ _ _ _
      h.left.left.left.right.decoders h.left.left.right.norm h.left.right.rows h.right.rows

/-- **What is published of a layer**: if the program yields bounds, the Spec's outcome for the
inputs lies between them, over every ordered field with a natural exponential and square roots. -/
theorem layer_vectors_sound (hnumber : IsNumber number) {inputs : LayerInputs} {B : RowBounds}
    (h : inputs.run = .ok B) :
    ∃ X, inputs.value root number (factorOf root number) = some X ∧ BoundsContain B X := by
  simp only [LayerInputs.run, bind, Except.bind] at h
  cases hx : checkExact inputs.numbers with
  | error e => simp [hx] at h
  | ok =>
    have hv := contains_value hroot (allContain_of_checkExact hnumber hx)
    simp only [hx] at h
    split at h
    · cases hI : inputs.value Interval.sqrt ofRat scaleOf with
      | none =>
        simp only [hI] at h
        cases h
      | some A =>
        simp only [hI] at h
        cases hX : inputs.value root number (factorOf root number) with
        | none =>
          rw [hI, hX] at hv
          exact hv.elim
        | some X =>
          rw [hI, hX] at hv
          exact ⟨X, rfl, contains_narrowBounds h hv⟩
    · cases h

omit [NaturalExp R] hroot in
private theorem contains_position {c : TransformerCase} (hnumber : IsNumber number)
    (h : AllContain number (c.positions.flatMap (·.toList))) (i : Nat) :
    VecContains (c.position ofRat i) (c.position number i) := by
  cases hi : c.positions[i]? with
  | some x =>
    rw [TransformerCase.position, TransformerCase.position, hi]
    exact AllContain.vec fun q hq =>
      h q (List.mem_flatMap.mpr ⟨x, List.mem_of_getElem? hi, hq⟩)
  | none =>
    rw [TransformerCase.position, TransformerCase.position, hi]
    refine AllContain.vec fun q hq => ?_
    have : q = 0 := by
      simp only [Option.getD_none, Vec.zero, Vector.toList_replicate, List.mem_replicate] at hq
      exact hq.2
    subst this
    exact contains_ofRat (by decide) (hnumber 0)

/-- **transformer-vectors-sound**: if the program yields bounds, the logits and the probabilities of
the transformer lie between them, over every ordered field with a natural exponential and square
roots. -/
theorem transformer_vectors_sound (hnumber : IsNumber number) {c : TransformerCase}
    {out : TransformerResult} (h : c.run = .ok out) :
    BoundsContain out.logits ((mapTransformer number c.tie).logits root (number c.ε)
        (factorOf root number c.scale c.d) (c.position number) c.sourceMask.toMask c.mask.toMask
        c.contextMask.toMask c.sourceTokens c.targetTokens)
      ∧ BoundsContain out.probabilities ((mapTransformer number c.tie).probabilities root
        (number c.ε) (factorOf root number c.scale c.d) (c.position number) c.sourceMask.toMask
        c.mask.toMask c.contextMask.toMask c.sourceTokens c.targetTokens) := by
  simp only [TransformerCase.run, bind, Except.bind] at h
  cases hx : checkExact c.numbers with
  | error e => simp [hx] at h
  | ok =>
    have hall := allContain_of_checkExact hnumber hx
    have hv := transformer_enclosed hroot hall.left.left.head
      (contains_factor hroot hall.left.left.tail c.d)
      (contains_position (c := c) hnumber hall.right) hall.left.right.transformer
      c.sourceMask.toMask c.mask.toMask c.contextMask.toMask c.sourceTokens c.targetTokens
    simp only [hx] at h
    cases hc : c.check with
    | error e => simp [hc] at h
    | ok =>
      simp only [hc] at h
      cases hl : narrowBounds (c.value Interval.sqrt ofRat scaleOf).1 with
      | error e => simp [hl] at h
      | ok logits =>
        simp only [hl] at h
        cases hp : narrowBounds (c.value Interval.sqrt ofRat scaleOf).2 with
        | error e => simp [hp] at h
        | ok probabilities =>
          simp only [hp] at h
          cases ht : logits.mapM largest with
          | error e => simp [ht] at h
          | ok tokens =>
            simp only [ht, pure, Except.pure, Except.ok.injEq] at h
            subst h
            exact ⟨contains_narrowBounds hl hv.1, contains_narrowBounds hp hv.2⟩

end Attention.Vectors
