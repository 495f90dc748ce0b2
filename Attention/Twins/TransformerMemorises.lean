module

public import Attention.Claims.TransformerMemorises

public section

/-! # Wrong twins of a transformer that memorises

Refuted for every exponential, every root and every ε. -/

namespace Attention.Twins

open Spec Claims Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- What `transformer_memorises_full` says of a source of one token and a target of two, of two
tokens each, for another mask of the target. -/
abbrev MemorisesAll (targetMask : Mask 2 2) (sqrt : R → R) (ε : R) : Prop :=
  ∀ (d_model num_heads d d_ff : Nat), memoryWidth 1 2 2 2 ≤ d_model →
    memoryWidth 1 2 2 2 ≤ num_heads * d → memoryUnits 1 2 2 2 ≤ d_ff →
    ∀ best : Vector (Fin 2) 1 → Vector (Fin 2) 2 → Vector (Fin 2) 2,
      Memorises sqrt ε d_model num_heads d d_ff targetMask Mask.full best

/-- Positive control: no mask. -/
theorem memorisesAll_full {sqrt : R → R} (root : ∀ x, 0 < x → 0 < sqrt x) {ε : R} (hε : 0 ≤ ε) :
    MemorisesAll Mask.full sqrt ε := fun _ _ _ _ width heads units best =>
  transformer_memorises_full root hε (Exponential.exp_pos 0) width heads units best

/-- Under the causal mask no architecture, of whatever size, swaps the two tokens of a target. -/
theorem memorises_causal_swap (sqrt : R → R) (ε : R) (d_model num_heads d d_ff : Nat) :
    ¬ Memorises sqrt ε d_model num_heads d d_ff (Mask.causal .topLeft : Mask 2 2)
      (Mask.full : Mask 2 1)
      fun (_ : Vector (Fin 2) 1) (target : Vector (Fin 2) 2) => #v[target[1], target[0]] := by
  rintro ⟨position, encoderNorm, decoderNorm, T, h⟩
  have e := forward_causal (sqrt := sqrt) (ε := ε) (scale := 0) (position := position)
    (encoderNorm := encoderNorm) (decoderNorm := decoderNorm) (sourceMask := Mask.full)
    (crossMask := Mask.full) (target := #v[0, 0]) (target' := #v[0, 1]) (p := 0)
    Proof.causal_seesNoLater T #v[0] (by decide)
  rw [h, h] at e
  exact absurd e (by decide)

/-- So the masks have to let a place see what is asked for. -/
theorem memorisesAll_causal_refuted (sqrt : R → R) (ε : R) :
    ¬ MemorisesAll (Mask.causal .topLeft) sqrt ε := fun h =>
  memorises_causal_swap sqrt ε _ (memoryWidth 1 2 2 2) 1 _
    (h _ (memoryWidth 1 2 2 2) 1 _ (Nat.le_refl _) (Nat.le_of_eq (Nat.mul_one _).symm)
      (Nat.le_refl _) _)

/-- With vectors of one component no number of heads and of hidden units makes up for it: a source
of one token is not copied. -/
theorem memorises_narrow_refuted (sqrt : R → R) (ε : R) (num_heads d d_ff : Nat) :
    ¬ Memorises sqrt ε 1 num_heads d d_ff (Mask.full : Mask 1 1) (Mask.full : Mask 1 1)
      fun (source _ : Vector (Fin 2) 1) => source := by
  rintro ⟨position, encoderNorm, decoderNorm, T, h⟩
  have e := forward_one sqrt ε 0 position encoderNorm decoderNorm Mask.full Mask.full Mask.full T
    #v[0] #v[1] #v[0] #v[0]
  rw [h, h] at e
  have : (some 0 : Option (Fin 2)) = some 1 :=
    congrArg (fun v : Vector (Option (Fin 2)) 1 => v[0]) e
  cases this

end Attention.Twins
