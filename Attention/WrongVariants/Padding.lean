module

public import Attention.Spec.Masks
public import Attention.Model.Exact
public import Attention.Proof.Masks.Padding

public section

/-! # Wrong variants of padding -/

namespace Attention.WrongVariants

open Spec

/-- Queries and keys padded with ones. -/
@[expose] def padOnes {m n : Nat} (A : Matrix Int m n) : Matrix Int m (n + 1) :=
  Vec.map (fun row => Vec.append row #v[1]) A

/-- Every score grows by the scale, which softmax does not see when nothing is done to the scores:
only a transformation of the scores tells this wrong variant from the right one. -/
theorem padOnes_cancels (Q : Matrix Int 1 1) (K : Matrix Int 2 1) (V : Matrix Rat 2 1)
    (hQ : Q = #v[#v[1]]) (hK : K = #v[#v[0], #v[1]]) (hV : V = #v[#v[1], #v[4]]) :
    (attention 1 Mask.full.toScoreMod (padOnes Q) (padOnes K) V).toList.map Vector.toList
      = (attention 1 Mask.full.toScoreMod Q K V).toList.map Vector.toList := by
  subst hQ hK hV
  decide +kernel

theorem padOnes_refuted : ¬ ∀ (modify : ScoreMod Int 1 2) (Q : Matrix Int 1 1)
    (K : Matrix Int 2 1) (V : Matrix Rat 2 1),
    attention 1 modify (padOnes Q) (padOnes K) V = attention 1 modify Q K V :=
  fun h => absurd (congrArg (fun O => O.toList.map Vector.toList)
    (h (fun _ _ s => some (s * s)) #v[#v[1]] #v[#v[0], #v[1]] #v[#v[1], #v[4]]))
    (by decide +kernel)

/-- A scale that is computed from the width of the padded head. -/
@[expose] def attentionOwnScale {d : Nat} (scale : Nat → Int) (Q : Matrix Int 1 d)
    (K : Matrix Int 2 d) (V : Matrix Rat 2 1) : Matrix Rat 1 1 :=
  attention (scale d) Mask.full.toScoreMod Q K V

theorem attentionOwnScale_refuted : ¬ ∀ (scale : Nat → Int) (p : Nat) (Q : Matrix Int 1 1) K V,
    attentionOwnScale scale (Q.padCols p) (Matrix.padCols p K) V
      = attentionOwnScale scale Q K V :=
  fun h => absurd (congrArg (fun O => O.toList.map Vector.toList)
    (h (fun d => d) 1 #v[#v[1]] #v[#v[0], #v[1]] #v[#v[1], #v[4]])) (by decide +kernel)

/-- Zero keys and values at the end that are not masked: each has score 0, so it counts. -/
@[expose] def attentionUnmaskedPad (p : Nat) (Q : Matrix Int 1 1) (K : Matrix Int 2 1)
    (V : Matrix Rat 2 1) : Matrix Rat 1 1 :=
  attention 1 Mask.full.toScoreMod Q (Vec.append K (Vector.replicate p Vec.zero))
    (Vec.append V (Vector.replicate p Vec.zero))

theorem attentionUnmaskedPad_refuted : ¬ ∀ p Q K V,
    attentionUnmaskedPad p Q K V = attention 1 Mask.full.toScoreMod Q K V :=
  fun h => absurd (congrArg (fun O => O.toList.map Vector.toList)
    (h 1 #v[#v[1]] #v[#v[0], #v[1]] #v[#v[1], #v[4]])) (by decide +kernel)

/-- The mask of the padded keys is off by one: the first key beyond the end counts. -/
@[expose] def padOffByOne (p : Nat) (modify : ScoreMod Int 1 2) : ScoreMod Int 1 (2 + p) :=
  fun i j s => if h : j.val < 2 then modify i ⟨j, h⟩ s else if j.val = 2 then some s else none

theorem padOffByOne_refuted : ¬ ∀ (p : Nat) (Q : Matrix Int 1 1) (K : Matrix Int 2 1)
    (V : Matrix Rat 2 1) (K' : Matrix Int p 1) (V' : Matrix Rat p 1),
    attention 1 (padOffByOne p Mask.full.toScoreMod) Q (Vec.append K K') (Vec.append V V')
      = attention 1 Mask.full.toScoreMod Q K V :=
  fun h => absurd (congrArg (fun O => O.toList.map Vector.toList)
    (h 1 #v[#v[1]] #v[#v[0], #v[1]] #v[#v[1], #v[4]] #v[#v[7]] #v[#v[9]])) (by decide +kernel)

/-- The queries beyond the end put before the others: the last rows are cut, not the padding. -/
theorem padFront_refuted : ¬ ∀ (Q Q' : Matrix Int 1 1) (K : Matrix Int 2 1) (V : Matrix Rat 2 1),
    Vec.first 1 (attention 1 Mask.full.toScoreMod (Vec.append Q' Q) K V)
      = attention 1 Mask.full.toScoreMod Q K V :=
  fun h => absurd (congrArg (fun O => O.toList.map Vector.toList)
    (h #v[#v[1]] #v[#v[0]] #v[#v[0], #v[1]] #v[#v[1], #v[4]])) (by decide +kernel)

end Attention.WrongVariants
