module

public import Attention.Claims.Memorise.Theorem

public section

/-! # Wrong variants of a transformer that memorises

Refuted for every exponential, every root and every ε. -/

namespace Attention.WrongVariants

open Spec Claims Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The statement of `transformer_memorises_full` about a source of one token and a target of two,
of two tokens each, for another mask of the target. -/
abbrev MemorisesAll (targetMask : Mask 2 2) (sqrt : R → R) (ε : R) : Prop :=
  ∀ (d_model num_heads d d_ff : Nat), memoryWidth 1 2 2 2 ≤ d_model →
    memoryWidth 1 2 2 2 ≤ num_heads * d → memoryUnits 1 2 2 2 ≤ d_ff →
    ∀ best : Vector (Fin 2) 1 → Vector (Fin 2) 2 → Vector (Fin 2) 2,
      Claims.Memorises sqrt ε 1 2 d_model num_heads d d_ff targetMask Mask.full best

/-- Positive control: no mask. -/
theorem memorisesAll_full {sqrt : R → R} (root : ∀ x, 0 < x → 0 < sqrt x) {ε : R} (hε : 0 ≤ ε) :
    MemorisesAll Mask.full sqrt ε := fun _ _ _ _ width heads units best =>
  transformer_memorises_full root hε (Exponential.exp_pos 0) width heads units best

/-- The causal mask: two tokens are not swapped, so the masks have to let a place see what is asked
for. -/
theorem memorisesAll_causal_refuted (sqrt : R → R) (ε : R) :
    ¬ MemorisesAll (Mask.causal .topLeft) sqrt ε := fun h => by
  obtain ⟨position, encoderNorm, decoderNorm, T, -, -, h⟩ := h _ (memoryWidth 1 2 2 2) 1 _
    (Nat.le_refl _) (Nat.le_of_eq (Nat.mul_one _).symm) (Nat.le_refl _)
    fun _ target => #v[target[1], target[0]]
  exact forward_swap_refuted 0 position encoderNorm decoderNorm Mask.full Mask.full T #v[0]
    fun target => h 0 Mask.full #v[0] target

/-- With vectors of one component no number of layers, of heads and of hidden units makes up for it:
a source of one token is not copied. -/
theorem memorises_narrow_refuted (sqrt : R → R) (ε : R)
    (encoders decoders num_heads d d_ff : Nat) :
    ¬ Claims.Memorises sqrt ε encoders decoders 1 num_heads d d_ff (Mask.full : Mask 1 1)
      (Mask.full : Mask 1 1)
      fun (source _ : Vector (Fin 2) 1) => source := by
  rintro ⟨position, encoderNorm, decoderNorm, T, -, -, h⟩
  have e := forward_one sqrt ε 0 position encoderNorm decoderNorm Mask.full Mask.full Mask.full T
    #v[0] #v[1] #v[0] #v[0]
  rw [h, h] at e
  have : (some 0 : Option (Fin 2)) = some 1 :=
    congrArg (fun v : Vector (Option (Fin 2)) 1 => v[0]) e
  cases this

end Attention.WrongVariants
