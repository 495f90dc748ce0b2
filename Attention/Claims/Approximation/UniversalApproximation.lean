module

public import Attention.Claims.Approximation.Bounded

public section

/-! # Universal approximation, as it is claimed

Claimed: for each ε > 0, each function f from ℝⁿ to ℝᵐ and each compact set, some transformer is
within ε of f on the set. As typed, a transformer returns tokens, natural numbers: none is near ½.
With a vector of real numbers for its output, a transformer is bounded on a box: none is near 1 / x
on [0, 1]. True: `universal_approximation_transformer`, of uniformly continuous functions. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe v

attribute [local instance] Semiring.natCast

variable {R : Type v} {n m : Nat}

/-! ## Claimed -/

/-- A consequence of the claim, of the compact sets for boxes alone: each function is approximated
on each box by one of those that `computed` names. -/
@[expose] def UniversalApproximation [OrderedField R]
    (computed : ∀ n m : Nat, (Vec R n → Vec R m) → Prop) : Prop :=
  ∀ (n m : Nat) (a b ε : R) (f : Vec R n → Vec R m), 0 < ε →
    ∃ T, computed n m T ∧ ∀ x, InBox a b x → ∀ c : Fin m, AtMost ε ((T x)[c] - (f x)[c])

/-- The outputs are tokens, as Forward returns them. -/
@[expose] def GivesTokens [OrderedField R] (n m : Nat) (T : Vec R n → Vec R m) : Prop :=
  ∀ (x : Vec R n) (c : Fin m), ∃ token : Nat, (T x)[c] = (token : R)

/-- The functions from ℝⁿ to ℝᵐ that transformers compute when their output is not made a token: the
rows of the source and of the target are linear in x, and so is what is read from row i of the
decoder's output. Layers are normalised after, with a normalisation at the end, or before. -/
@[expose] def TransformerComputes [OrderedField R] [Exp R R] (sqrt : R → R) (ε : R) (n m : Nat)
    (T : Vec R n → Vec R m) : Prop :=
  ∃ (s t d_model num_heads d d_ff : Nat) (scale : R) (source : Vector (Linear R n d_model) s)
    (target : Vector (Linear R n d_model) t)
    (encoder : List (EncoderLayer R d_model num_heads d d_ff))
    (decoder : List (DecoderLayer R d_model num_heads d d_ff))
    (encoderNorm decoderNorm : LayerNorm R d_model) (mask : Mask s s) (targetMask : Mask t t)
    (crossMask : Mask t s) (output : Linear R d_model m) (i : Fin t),
    (∀ x, T x = (output.rows (decodePostNorm sqrt ε scale targetMask crossMask decoder decoderNorm
        (encodePostNorm sqrt ε scale mask encoder encoderNorm (Vec.map (·.row x) source))
        (Vec.map (·.row x) target)))[i]) ∨
    (∀ x, T x = (output.rows (decode sqrt ε scale targetMask crossMask decoder
        (encode sqrt ε scale mask encoder (Vec.map (·.row x) source))
        (Vec.map (·.row x) target)))[i])

/-- The step of the proof from a point to the nearest point of the cover: numbers within ε / 4 of
each other have values within ε / 2, whatever the function. -/
@[expose] def CoverOfValues (R : Type v) [OrderedField R] : Prop :=
  ∀ (f : R → R) (ε x y : R), 0 < ε → AtMost (ε / 4) (x - y) → AtMost (ε / 2) (f x - f y)

section
variable [OrderedField R]

/-- f x = 4 x moves by 1 between 0 and ¼. -/
theorem coverOfValues_refuted : ¬ CoverOfValues R := by
  intro claim
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have := (claim (fun x => 4 * x) 1 (1 / 4) 0 h₁ ⟨by grind, by grind⟩).2
  grind

private theorem not_half (token : Nat) : ¬ AtMost (1 / 4 : R) ((token : R) - 1 / 2) := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  rintro ⟨h, h'⟩
  cases token with
  | zero =>
    rw [Semiring.natCast_zero] at h
    grind
  | succ k =>
    have := natCast_nonneg (R := R) k
    rw [Semiring.natCast_add, Semiring.natCast_one] at h'
    grind

/-- No function whose outputs are tokens is within ¼ of ½. -/
theorem universalApproximation_tokens_refuted :
    ¬ UniversalApproximation (R := R) GivesTokens := by
  intro claim
  have h₁ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨T, hT, h⟩ := claim 0 1 0 1 (1 / 4) (fun _ => Vec.ofFn fun _ => 1 / 2) (by grind)
  obtain ⟨token, e⟩ := hT Vec.zero 0
  have h := h Vec.zero (fun k => k.elim0) 0
  rw [e] at h
  simp only [Fin.getElem_fin, Vec.getElem_ofFn] at h
  exact not_half token h

private theorem inverse_large {c : R} (hc : 0 ≤ c) :
    (0 ≤ (c + 2)⁻¹ ∧ (c + 2)⁻¹ ≤ 1) ∧ (c + 2)⁻¹⁻¹ = c + 2 := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have pos : 0 < c + 2 := by grind
  have h₀ : 0 ≤ (c + 2)⁻¹ := Field.IsOrdered.inv_nonneg_iff.mpr (Std.le_of_lt pos)
  have e : (c + 2)⁻¹ * (c + 2) = 1 := by grind
  have := OrderedRing.mul_nonneg h₀ (show 0 ≤ c + 1 by grind)
  exact ⟨⟨h₀, by grind⟩, by grind⟩

/-- Functions that are bounded on each box do not approximate 1 / x on [0, 1]. -/
private theorem bounded_refute {computed : ∀ n m : Nat, (Vec R n → Vec R m) → Prop}
    (bounded : ∀ (T : Vec R 1 → Vec R 1), computed 1 1 T →
      ∃ c, ∀ x, InBox 0 1 x → AtMost c (T x)[(0 : Fin 1)]) :
    ¬ UniversalApproximation computed := by
  intro claim
  have h₁ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨T, hT, h⟩ := claim 1 1 0 1 1 (Vec.map (·⁻¹)) h₁
  obtain ⟨c, hc⟩ := bounded T hT
  have hc₀ : 0 ≤ c := (hc Vec.zero fun k => by
    simp only [Fin.getElem_fin, Vec.getElem_zero]
    exact ⟨Std.le_refl _, Std.le_of_lt h₁⟩).nonneg
  obtain ⟨hbox, e⟩ := inverse_large hc₀
  have inside : InBox 0 1 (Vec.ofFn fun _ => (c + 2)⁻¹ : Vec R 1) := fun k => by
    simp only [Fin.getElem_fin, Vec.getElem_ofFn]
    exact hbox
  have far := (h _ inside 0).1
  have near := (hc _ inside).2
  simp only [Fin.getElem_fin, Vec.getElem_map, Vec.getElem_ofFn, e] at far near
  grind

end

/-- On [0, 1] a transformer is bounded, if the root in its normalisations is at least some σ₀ > 0 on
numbers of at least ε. -/
theorem TransformerComputes.bounded [OrderedField R] [Exponential R R] {sqrt : R → R} {ε σ₀ : R}
    (h₀ : 0 < σ₀) (hsqrt : ∀ z, ε ≤ z → σ₀ ≤ sqrt z) {T : Vec R 1 → Vec R 1}
    (hT : TransformerComputes sqrt ε 1 1 T) :
    ∃ c, ∀ x, InBox 0 1 x → AtMost c (T x)[(0 : Fin 1)] := by
  have input : ∀ {s d_model : Nat} (W : Vector (Linear R 1 d_model) s),
      Bounded (InBox 0 1) fun x : Vec R 1 => Vec.map (·.row x) W := fun {s d_model} W => by
    have rows : Bounded (InBox 0 1) fun x : Vec R 1 => (#v[x] : Matrix R 1 1) :=
      ⟨1, fun x hx i j => by
        have h := hx j
        have h₁ := OrderedRing.zero_lt_one (R := R)
        have e : (#v[x] : Matrix R 1 1)[i] = x := by
          have : i = 0 := Subsingleton.elim _ _
          subst this
          rfl
        rw [e]
        exact ⟨by grind, h.2⟩⟩
    refine Bounded.of_entries fun i j => ?_
    obtain ⟨c, hc⟩ := rows.linear W[i]
    refine ⟨c, fun x hx => ?_⟩
    have := hc x hx 0 j
    simpa [Linear.rows] using this
  obtain ⟨s, t, d_model, num_heads, d, d_ff, scale, source, target, encoder, decoder, encoderNorm,
    decoderNorm, mask, targetMask, crossMask, output, i, hT | hT⟩ := hT
  · obtain ⟨c, hc⟩ := (Bounded.decodePostNorm h₀ hsqrt scale targetMask crossMask decoder
      decoderNorm (Bounded.encodePostNorm h₀ hsqrt scale mask encoder encoderNorm (input source))
      (input target)).linear output
    exact ⟨c, fun x hx => by rw [hT]; exact hc x hx i 0⟩
  · obtain ⟨c, hc⟩ := (Bounded.decode h₀ hsqrt scale targetMask crossMask decoder
      (Bounded.encode h₀ hsqrt scale mask encoder (input source)) (input target)).linear output
    exact ⟨c, fun x hx => by rw [hT]; exact hc x hx i 0⟩

/-- No transformer with real outputs is within 1 of 1 / x on [0, 1], whatever its depth, its width
and its parameters: x⁻¹, with 0⁻¹ = 0, is a function on the whole compact set, and not bounded
there. Of the square root it is asked only that it is at least some σ₀ > 0 on numbers of at least
ε. -/
theorem universalApproximation_transformer_refuted [OrderedField R] [Exponential R R]
    {sqrt : R → R} {ε σ₀ : R} (h₀ : 0 < σ₀) (hsqrt : ∀ z, ε ≤ z → σ₀ ≤ sqrt z) :
    ¬ UniversalApproximation (TransformerComputes sqrt ε) :=
  bounded_refute fun _ hT => hT.bounded h₀ hsqrt

end Attention.Claims
