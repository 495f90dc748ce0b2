module

public import Attention.Algebra.Magnitude
public import Attention.Spec.Transformer

public section

/-! # Is attention all one needs?

Claimed (`AttentionIsAllYouNeed`): for each transformer, some parameters make Forward return the
most probable output, whatever the probabilities. With vectors of one component this is false: a
layer normalisation of one component returns its bias, so Forward ignores its inputs. True of every
architecture that is large enough: `TransformerMemorises.lean`. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} {s t s_vocab t_vocab d_model num_heads d d_ff : Nat}

/-- Forward, as the document has it: embeddings and positions, an encoder and a decoder whose layers
are normalised after, a normalisation at the end of each, and for each place the token of the
largest logit. -/
@[expose] def forward [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [LE R] [DecidableLE R]
    [Max R] [Exp R R] (sqrt : R → R) (ε scale : R) (position : Nat → Vec R d_model)
    (encoderNorm decoderNorm : LayerNorm R d_model) (sourceMask : Mask s s) (targetMask : Mask t t)
    (crossMask : Mask t s) (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) :
    Vector (Option (Fin t_vocab)) t :=
  Vec.map argmax (T.output.rows (decodePostNorm sqrt ε scale targetMask crossMask T.decoder
    decoderNorm
    (encodePostNorm sqrt ε scale sourceMask T.encoder encoderNorm
      (addPositions position (embed T.source source)))
    (addPositions position (embed T.target target))))

/-- The claim, its quantifiers made definite: for each architecture (sizes, masks) and whatever is
the most probable output, a function `best` of both sequences, there are parameters with which
Forward returns it for all sequences. -/
@[expose] def AttentionIsAllYouNeed [OrderedField R] [Exp R R] (sqrt : R → R) (ε : R) : Prop :=
  ∀ (s t s_vocab t_vocab d_model num_heads d d_ff : Nat) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t),
    ∃ (scale : R) (position : Nat → Vec R d_model) (encoderNorm decoderNorm : LayerNorm R d_model)
      (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff),
      ∀ source target, forward sqrt ε scale position encoderNorm decoderNorm sourceMask targetMask
        crossMask T source target = Vec.map some (best source target)

variable [OrderedField R]

/-- Of one component, a layer normalisation returns its bias. -/
theorem layerNorm_one (sqrt : R → R) (ε : R) (N : LayerNorm R 1) (x : Vec R 1) :
    N.row sqrt ε x = N.bias := by
  refine Vector.ext fun j hj => ?_
  have hj : j = 0 := by omega
  subst hj
  have e : mean x = x[0] := by
    have h : mean x = (x[0] + 0) / (1 + 0) := rfl
    rw [h]
    have := OrderedRing.zero_lt_one (R := R)
    grind
  have c : (centred x)[0] = 0 := by
    simp only [centred, Vec.getElem_map, e]
    grind
  simp only [LayerNorm.row, Vec.getElem_ofFn, Fin.getElem_fin, c]
  rw [Field.div_eq_mul_inv]
  grind

/-- With vectors of one component Forward returns the same for all inputs, whatever the parameters,
the layers and the masks. -/
theorem forward_one [Exp R R] (sqrt : R → R) (ε scale : R) (position : Nat → Vec R 1)
    (encoderNorm decoderNorm : LayerNorm R 1) (sourceMask : Mask s s) (targetMask : Mask t t)
    (crossMask : Mask t s) (T : Transformer R s_vocab t_vocab 1 num_heads d d_ff)
    (source source' : Vector (Fin s_vocab) s) (target target' : Vector (Fin t_vocab) t) :
    forward sqrt ε scale position encoderNorm decoderNorm sourceMask targetMask crossMask T
        source target
      = forward sqrt ε scale position encoderNorm decoderNorm sourceMask targetMask crossMask T
        source' target' := by
  have rows : ∀ X Y : Matrix R t 1, decoderNorm.rows sqrt ε X = decoderNorm.rows sqrt ε Y :=
    fun X Y => Vector.ext fun i hi => by
      simp only [LayerNorm.rows, Vec.getElem_map, layerNorm_one]
  unfold forward decodePostNorm
  rw [rows]

/-- With vectors of one component and two tokens, no parameters make Forward copy a sequence of one
token. -/
theorem attentionIsAllYouNeed_refuted [Exp R R] (sqrt : R → R) (ε : R) :
    ¬ AttentionIsAllYouNeed sqrt ε := by
  intro claim
  obtain ⟨scale, position, encoderNorm, decoderNorm, T, h⟩ := claim 1 1 2 2 1 1 1 1
    (fun _ _ => true) (fun _ _ => true) (fun _ _ => true) fun source _ => source
  have e := (h #v[0] #v[0]).symm.trans ((forward_one sqrt ε scale position encoderNorm decoderNorm
    _ _ _ T #v[0] #v[1] #v[0] #v[0]).trans (h #v[1] #v[0]))
  have : (some 0 : Option (Fin 2)) = some 1 :=
    congrArg (fun v : Vector (Option (Fin 2)) 1 => v[0]) e
  cases this

/-! ## Descent -/

/-- "The loop guarantees a global optimum", of a loss of one parameter: where the loss is
the same all around, so that its gradient is 0 and the loop has converged, it is least. -/
@[expose] def ConvergedIsOptimal (loss : R → R) : Prop :=
  ∀ w δ : R, 0 < δ → (∀ w', AtMost δ (w' - w) → loss w' = loss w) → ∀ w', loss w ≤ loss w'

/-- A hidden unit that is 0 stays 0: whatever the loss g as a function of its output, if it would be
less at 1 than at 0, the loop stops at each negative weight and is not at the optimum. -/
theorem convergedIsOptimal_refuted {g : R → R} (h : g 1 < g 0) :
    ¬ ConvergedIsOptimal fun w => g (relu w) := by
  intro claim
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have dead : ∀ w : R, w < 0 → relu w = 0 := fun w hw =>
    (OrderedField.max_def 0 w).trans (if_neg (Std.not_le.mpr hw))
  have alive : relu (1 : R) = 1 :=
    (OrderedField.max_def 0 1).trans (if_pos (Std.le_of_lt h₁))
  have := claim (-2) 1 h₁ (fun w' hw => by
    obtain ⟨-, hw⟩ := hw
    show g (relu w') = g (relu (-2))
    rw [dead w' (by grind), dead (-2) (by grind)]) 1
  simp only [dead (-2 : R) (by grind), alive] at this
  grind

end Attention.Claims
