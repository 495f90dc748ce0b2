module

public import Attention.Proof.TransformerCausal

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

private theorem norm_row {sqrt : R → R} (h : sqrt 1 = 1) {a : R} (ha : a * a = 1) :
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

end Attention.Claims
