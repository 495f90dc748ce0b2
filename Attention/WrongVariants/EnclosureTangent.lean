module

public import Attention.Proof.Enclosure.Tangent

public section

/-! # Wrong variants of dual numbers of intervals -/

namespace Attention.WrongVariants

open Spec Model Interval Proof

/-- The claim of `dualContains_mul`, made of any product. -/
abbrev EnclosesProduct (mul : Dual (Interval 1) → Dual (Interval 1) → Dual (Interval 1)) : Prop :=
  ∀ (I J : Dual (Interval 1)) (x y : Dual Rat), DualContains I x → DualContains J y →
    DualContains (mul I J) (x * y)

/-- Positive control: the product rule. -/
theorem mul_enclosesProduct : EnclosesProduct (· * ·) := fun _ _ _ _ hx hy =>
  dualContains_mul hx hy

/-- The rate of the second factor is left out. -/
@[expose] def mulFirstRate (I J : Dual (Interval 1)) : Dual (Interval 1) :=
  ⟨I.val * J.val, I.der * J.val⟩

theorem mulFirstRate_refuted : ¬ EnclosesProduct mulFirstRate := fun h =>
  absurd (h ⟨1, 0⟩ ⟨0, 1⟩ ⟨1, 0⟩ ⟨0, 1⟩ ⟨contains_one, contains_zero⟩
    ⟨contains_zero, contains_one⟩).2.2 (by decide +kernel)

/-- The claim of `dualContains_div`, made of any quotient. -/
abbrev EnclosesQuotient (div : Dual (Interval 1) → Dual (Interval 1) → Dual (Interval 1)) : Prop :=
  ∀ (I J : Dual (Interval 1)) (x y : Dual Rat), DualContains I x → DualContains J y →
    DualContains (div I J) (x / y)

/-- Positive control: the quotient rule. -/
theorem div_enclosesQuotient : EnclosesQuotient (· / ·) := fun _ _ _ _ hx hy =>
  dualContains_div hx hy

/-- The rate is divided by the denominator, and not by its square. -/
@[expose] def divOnce (I J : Dual (Interval 1)) : Dual (Interval 1) :=
  ⟨I.val / J.val, (I.der * J.val - I.val * J.der) / J.val⟩

theorem divOnce_refuted : ¬ EnclosesQuotient divOnce := fun h =>
  absurd (h ⟨0, 1⟩ ⟨2, 0⟩ ⟨0, 1⟩ ⟨2, 0⟩ ⟨contains_zero, contains_one⟩
    ⟨(⟨by decide +kernel, by decide +kernel⟩ : (2 : Interval 1).Contains (2 : Rat)),
      contains_zero⟩).2.1 (by decide +kernel)

/-- The claim of `related_bias` for one query and one key, made of any additive bias. -/
abbrev EnclosesMovingBias (bias : Matrix (Option (Dual (Interval 1))) 1 1 →
    ScoreMod (Dual (Interval 1)) 1 1) : Prop :=
  ∀ (B' : Matrix (Option (Dual (Interval 1))) 1 1) (B : Matrix (Option (Dual Rat)) 1 1),
    (∀ i j : Fin 1, DualScoreContains B'[i][j] B[i][j]) →
      DualModContains (bias B') (ScoreMod.bias B)

/-- Positive control: the Spec's additive bias. -/
theorem bias_enclosesMovingBias : EnclosesMovingBias ScoreMod.bias := fun _ _ h =>
  related_bias h

/-- The bias is added as if it did not change. -/
@[expose] def biasStill (B : Matrix (Option (Dual (Interval 1))) 1 1) :
    ScoreMod (Dual (Interval 1)) 1 1 :=
  fun i j s => B[i][j].map fun b => s + Dual.const b.val

theorem biasStill_refuted : ¬ EnclosesMovingBias biasStill := fun h =>
  absurd (h #v[#v[some ⟨0, 1⟩]] #v[#v[some ⟨0, 1⟩]]
    (fun | 0, 0 => (⟨contains_zero, contains_one⟩ : DualContains (⟨0, 1⟩ : Dual (Interval 1))
      (⟨0, 1⟩ : Dual Rat))) 0 0 0 0 dualContains_zero).2.2 (by decide +kernel)

end Attention.WrongVariants
