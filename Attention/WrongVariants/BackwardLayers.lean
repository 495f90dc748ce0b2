module

public import Attention.Proof.Backward.Transformer

public section

/-! # Wrong variants of the backward passes of layers

Each is refuted by rates, whole numbers or fractions, at which the loss would change otherwise. -/

namespace Attention.WrongVariants

open Spec Proof

/-! ## Linear layers -/

/-- The backward pass of a linear layer from two numbers to one, on two rows. -/
abbrev LinearBack := Linear Rat 2 1 → Matrix Rat 2 2 → Matrix Rat 2 1 →
  Linear Rat 2 1 × Matrix Rat 2 2

/-- The claim of `linear_adjoint`, made of any backward pass. -/
abbrev IsLinearBack (back : LinearBack) : Prop :=
  ∀ (W : Linear (Dual Rat) 2 1) (X : Matrix (Dual Rat) 2 2) (dY : Matrix Rat 2 1),
    let g := back (Linear.primal W) X.primal dY
    Matrix.rate dY (W.rows X) = Linear.rate g.1 W + Matrix.rate g.2 X

/-- Positive control. -/
theorem isLinearBack_rowsVjp : IsLinearBack Linear.rowsVjp := linear_adjoint

/-- A bias that changes at the rate 1, and nothing else. -/
@[expose] def biasMoves : Linear (Dual Rat) 2 1 := ⟨#v[#v[⟨1, 0⟩, ⟨2, 0⟩]], #v[⟨0, 1⟩]⟩

/-- Two rows that stay. -/
@[expose] def rowsStay : Matrix (Dual Rat) 2 2 := #v[#v[⟨1, 0⟩, ⟨0, 0⟩], #v[⟨3, 0⟩, ⟨1, 0⟩]]

/-- The gradient by the bias is the mean over the rows, not the sum. -/
theorem biasMean_refuted : ¬ IsLinearBack fun W X dY =>
    let g := W.rowsVjp X dY
    ({ g.1 with bias := Vec.smul (1 / 2) g.1.bias }, g.2) := fun h =>
  absurd (h biasMoves rowsStay #v[#v[1], #v[1]]) (by decide +kernel)

/-- The gradient by the weights is of the last row alone: each row's is stored over the one before.
-/
theorem lastRowsWeight_refuted : ¬ IsLinearBack fun W X dY =>
    let g := W.rowsVjp X dY
    ({ g.1 with weight := #v[Vec.smul dY[1][0] X[1]] }, g.2) := fun h =>
  absurd (h ⟨#v[#v[⟨1, 1⟩, ⟨2, 0⟩]], #v[⟨0, 0⟩]⟩ rowsStay #v[#v[1], #v[1]]) (by decide +kernel)

/-! ## Residual connections -/

/-- The claim of `addRows_adjoint`, made of any gradients by the two parts. -/
abbrev IsResidualBack (back : Matrix Rat 1 1 → Matrix Rat 1 1 × Matrix Rat 1 1) : Prop :=
  ∀ (X Y : Matrix (Dual Rat) 1 1) (dY : Matrix Rat 1 1),
    Matrix.rate dY (addRows X Y) = Matrix.rate (back dY).1 X + Matrix.rate (back dY).2 Y

/-- Positive control. -/
theorem isResidualBack_both : IsResidualBack fun dY => (dY, dY) := addRows_adjoint

/-- The way around a part is forgotten: what is below gets the part's gradient alone. -/
theorem skipForgotten_refuted : ¬ IsResidualBack fun dY => (Vec.ofFn fun _ => Vec.zero, dY) :=
  fun h => absurd (h #v[#v[⟨0, 1⟩]] #v[#v[⟨0, 0⟩]] #v[#v[1]]) (by decide +kernel)

/-- The claim of `addRows_rate`, made of any gradient by a matrix that is used twice, as rows are
for queries and keys. -/
abbrev IsSharedBack (back : Matrix Rat 1 1 → Matrix Rat 1 1 → Matrix Rat 1 1) : Prop :=
  ∀ (G H : Matrix Rat 1 1) (X : Matrix (Dual Rat) 1 1),
    Matrix.rate (back G H) X = Matrix.rate G X + Matrix.rate H X

/-- Positive control. -/
theorem isSharedBack_addRows : IsSharedBack addRows := addRows_rate

/-- The gradient of the last use is stored over that of the first. -/
theorem lastUseAlone_refuted : ¬ IsSharedBack fun _ H => H :=
  fun h => absurd (h #v[#v[1]] #v[#v[1]] #v[#v[⟨0, 1⟩]]) (by decide +kernel)

/-! ## Feed-forward networks -/

/-- The claim of `feedForward_adjoint` for one unit on one row, made of any rule for it. -/
abbrev IsReluBack (back : Rat → Rat → Rat) : Prop :=
  ∀ (x : Dual Rat) (dy : Rat), dy * (relu x).der = back x.val dy * x.der

/-- Positive control. -/
theorem isReluBack_reluVjp : IsReluBack reluVjp := relu_der

/-- The gradient is passed on where the unit is off too. -/
theorem straightThrough_refuted : ¬ IsReluBack fun _ dy => dy :=
  fun h => absurd (h ⟨-1, 1⟩ 1) (by decide +kernel)

/-- At 0 the unit counts as on, where dual numbers have it off: 1 and 0 are both subgradients of
max(0, x) there, and the definition has the one that PyTorch has. -/
theorem onAtZero_refuted : ¬ IsReluBack fun x dy => if x < 0 then 0 else dy :=
  fun h => absurd (h ⟨0, 1⟩ 1) (by decide +kernel)

/-! ## Layer normalisation -/

/-- The claim of `normalised_adjoint` for rows of two components whose root is 2, made of any
gradient by the row. -/
abbrev IsNormalisedBack (back : Vec Rat 2 → Vec Rat 2 → Vec Rat 2) : Prop :=
  ∀ (r : Vec (Dual Rat) 2) (dn : Vec Rat 2),
    Vec.rate dn (normalised (Dual.root fun _ => 2) (Dual.const 3) r)
      = Vec.rate (back r.primal dn) r

/-- Positive control. -/
theorem isNormalisedBack_normalisedVjp : IsNormalisedBack (normalisedVjp (fun _ => 2) 3) :=
  normalised_adjoint _ 3

/-- A row of mean 0 and variance 1, whose first component changes. -/
@[expose] def changingRow : Vec (Dual Rat) 2 := #v[⟨1, 1⟩, ⟨-1, 0⟩]

/-- Mean and root are taken for constants. -/
theorem statisticsDetached_refuted : ¬ IsNormalisedBack fun _ dn => Vec.map (· / 2) dn :=
  fun h => absurd (h changingRow #v[1, 0]) (by decide +kernel)

/-- The root is taken for a constant, the mean is not. -/
theorem rootDetached_refuted : ¬ IsNormalisedBack fun _ dn => Vec.map (· / 2) (centred dn) :=
  fun h => absurd (h changingRow #v[1, 0]) (by decide +kernel)

/-! ## Normalisations behind the last layer -/

/-- The claim of `finalNorm_adjoint` for a row of two components whose root is 2, made of any
backward pass. -/
abbrev IsFinalNormBack (back : Option (LayerNorm Rat 2) → Matrix Rat 1 2 → Matrix Rat 1 2 →
    Option (LayerNorm Rat 2) × Matrix Rat 1 2) : Prop :=
  ∀ (N : Option (LayerNorm (Dual Rat) 2)) (X : Matrix (Dual Rat) 1 2) (dY : Matrix Rat 1 2),
    let g := back (N.map LayerNorm.primal) X.primal dY
    Matrix.rate dY (finalNorm (Dual.root fun _ => 2) (Dual.const 3) N X)
      = finalNormRate g.1 N + Matrix.rate g.2 X

/-- Positive control. -/
theorem isFinalNormBack_finalNormVjp : IsFinalNormBack (finalNormVjp (fun _ => 2) 3) :=
  finalNorm_adjoint _ 3

/-- The last layer gets the gradient by the normalised rows. -/
theorem finalNormPassed_refuted : ¬ IsFinalNormBack fun N X dY =>
    ((finalNormVjp (fun _ => 2) 3 N X dY).1, dY) :=
  fun h => absurd (h (some ⟨#v[⟨1, 0⟩, ⟨1, 0⟩], #v[⟨0, 0⟩, ⟨0, 0⟩]⟩) #v[changingRow] #v[#v[1, 0]])
    (by decide +kernel)

/-- Its own parameters get none. -/
theorem finalNormUntrained_refuted : ¬ IsFinalNormBack fun N X dY =>
    (none, (finalNormVjp (fun _ => 2) 3 N X dY).2) :=
  fun h => absurd (h (some ⟨#v[⟨1, 0⟩, ⟨1, 0⟩], #v[⟨0, 1⟩, ⟨0, 0⟩]⟩) #v[changingRow] #v[#v[1, 0]])
    (by decide +kernel)

/-! ## Embeddings -/

/-- The claim of `embed_adjoint` for two places of one token, without positions. -/
abbrev IsEmbedBack (back : Matrix Rat 2 1 → Matrix Rat 1 1) : Prop :=
  ∀ (E : Matrix (Dual Rat) 1 1) (dX : Matrix Rat 2 1),
    Matrix.rate dX (addPositions (fun _ => Vec.map Dual.const Vec.zero) (embed E #v[0, 0]))
      = Matrix.rate (back dX) E

/-- Positive control. -/
theorem isEmbedBack_embedVjp : IsEmbedBack (embedVjp #v[0, 0]) :=
  fun E dX => embed_adjoint (position := fun _ => Vec.zero) E _ dX

/-- A token that occurs twice gets the gradient of its last place: a scatter that stores where it
should add. -/
theorem lastPlaceAlone_refuted : ¬ IsEmbedBack fun dX => #v[dX[1]] :=
  fun h => absurd (h #v[#v[⟨0, 1⟩]] #v[#v[1], #v[1]]) (by decide +kernel)

end Attention.WrongVariants
