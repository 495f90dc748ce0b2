module

public import Attention.Claims.Transformer.TiedOutput

public section

/-! # Wrong variants of tied embeddings

Refuted by tables of two embeddings. -/

namespace Attention.WrongVariants

open Spec

/-- The claim of `argmax_tiedOutput_embed` for one token, made of any layer of the logits that is
made of the table. -/
abbrev RecoversTokens (output : Matrix Rat 2 2 → Linear Rat 2 2) : Prop :=
  ∀ table : Matrix Rat 2 2,
    (∀ a b : Fin 2, Vec.dot table[a] table[a] = Vec.dot table[b] table[b]) →
    (∀ a b : Fin 2, table[a] = table[b] → a = b) →
    ∀ token : Fin 2, argmax ((output table).row table[token]) = some token

/-- Positive control: the Spec's. -/
theorem tiedOutput_recoversTokens : RecoversTokens tiedOutput :=
  fun table length different token => by
    have e := Claims.argmax_tiedOutput_embed table length different #v[token]
    exact congrArg (fun x : Vector (Option (Fin 2)) 1 => x[0]) e

private theorem distinct {d : Nat} {table : Matrix Rat 2 d} (f : Vec Rat d → Rat)
    (h : f table[0] ≠ f table[1]) : ∀ a b : Fin 2, table[a] = table[b] → a = b
  | 0, 0, _ => rfl
  | 0, 1, e => absurd (congrArg f e) h
  | 1, 0, e => absurd (congrArg f e).symm h
  | 1, 1, _ => rfl

/-- Rows times the table, not its transpose: that too has the right shape, if there are as many
tokens as components. -/
@[expose] def untransposed (table : Matrix Rat 2 2) : Linear Rat 2 2 :=
  tiedOutput (Vec.ofFn fun j => Vec.ofFn fun a => table[a][j])

theorem untransposed_refuted : ¬ RecoversTokens untransposed := fun h =>
  absurd (h #v[#v[0, 1], #v[-1, 0]] (by decide +kernel) (distinct (·[0]) (by decide +kernel)) 0)
    (by decide +kernel)

/-- The bias of an output that is not tied is left. -/
@[expose] def biased (bias : Vec Rat 2) (table : Matrix Rat 2 2) : Linear Rat 2 2 :=
  ⟨table, bias⟩

theorem biased_refuted : ¬ RecoversTokens (biased #v[0, 1]) := fun h =>
  absurd (h #v[#v[0, 1 / 2], #v[1 / 2, 0]] (by decide +kernel)
    (distinct (·[0]) (by decide +kernel)) 0) (by decide +kernel)

/-- **Not tied**: no layer of its own, whatever its parameters, recovers the tokens of every table.
The document 001 has one: it transposes a table that its Embed does not use. -/
theorem untied_refuted (output : Linear Rat 2 2) : ¬ RecoversTokens fun _ => output := fun h => by
  have h₁ := h #v[#v[0, 1], #v[1, 0]] (by decide +kernel) (distinct (·[0]) (by decide +kernel)) 0
  have h₂ := h #v[#v[1, 0], #v[0, 1]] (by decide +kernel) (distinct (·[0]) (by decide +kernel)) 1
  exact absurd (h₁.symm.trans h₂) (by decide)

/-- Embeddings of different lengths: the token of the longer one has the greater logit beside the
shorter one too. -/
theorem differentLengths_refuted : ¬ ∀ table : Matrix Rat 2 1,
    (∀ a b : Fin 2, table[a] = table[b] → a = b) →
    ∀ token : Fin 2, argmax ((tiedOutput table).row table[token]) = some token := fun h =>
  absurd (h #v[#v[1], #v[2]] (distinct (·[0]) (by decide +kernel)) 0) (by decide +kernel)

end Attention.WrongVariants
