module

public import Attention.Algebra.SumExchange
public import Attention.Model.RoundedStoredGradients
public import Attention.Proof.Rounding.GradientSums
public import Attention.Proof.Rounding.StoredSums

public section

/-! # Gradients that are added up in a small format, within their tolerance

Each store on the way of a product to the whole is one factor more of its error; what numbers below
the normal ones lose on the way meets no more than all these factors.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {n : Nat}

/-- The same of a number that is stored several times. -/
private theorem scaled_belowTimes {Φ a b x x' y u η : R} (hΦ : 1 ≤ Φ) (hu : 0 ≤ u) (hη : 0 ≤ η)
    {k : Nat} (hx : Majorised (Φ * a) b x' x) (h : BelowTimes u η k x' y) :
    Majorised (Φ * (1 + u) ^ k * (a + numeral k * η)) b y x := by
  refine (hx.belowTimes hu hη h).mono ?_
  have n := OrderedRing.mul_nonneg (nonneg_of_one_le
    (OrderedField.one_le_pow (one_le_one_plus hu) k)) (OrderedRing.mul_nonneg
      (numeral_nonneg (R := R) k) hη)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hΦ n
  generalize (1 + u) ^ k = g at *
  generalize (numeral k : R) * η = m at *
  clear hx h
  grind

private theorem scaled_mul {Φ a b c x x' : R} (hx : Majorised (Φ * a) b x' x) (y : R)
    (hy : AtMost c y) : Majorised (Φ * (c * a)) (c * b) (y * x') (y * x) := by
  have := (Majorised.exact hy).mul hx
  rwa [show c * (Φ * a) = Φ * (c * a) by grind] at this

private theorem scaled_sum_of_tile {P q a l : R} (hP : 1 ≤ P) (hq : 0 ≤ q) (hl : 0 ≤ l) :
    q * (P * a + l) ≤ P * q * (a + l) := by
  have := OrderedRing.mul_le_mul_of_nonneg_left (OrderedRing.mul_le_mul_of_nonneg_right hP hl) hq
  grind

/-- A sum over the tiles of the sums over each, each times a factor. -/
private theorem sum_of_parts {parts : List (List (Fin n))}
    (h : parts.flatten.Perm (List.finRange n)) (c : R) (f : Fin n → R) :
    sumOver (fun part => c * sumOver f part) parts = c * sumOver f (List.finRange n) := by
  rw [sumOver_mul_left, ← sumOver_perm f h, ← List.flatMap_id, sumOver_flatMap]
  rfl

/-- A number once for each tile. -/
private theorem sum_of_constants {α : Type v} (xs : List α) (c : R) :
    sumOver (fun _ => c) xs = numeral xs.length * c := by
  rw [sumOver_const, numeral_eq]

private theorem tiled_bound {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores k a e : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hk : k ≤ roundings) (ha : a ≤ stores) (he : e ≤ 3)
    (tiles : Nat) :
    (1 + p.accumulation) ^ k * (1 + p.unit) ^ e * (1 + p.operands) ^ a * (1 + p.output) ^ tiles
      ≤ (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
        * power (1 + p.operands) stores * power (1 + p.output) tiles := by
  rw [power_eq, power_eq]
  have n₁ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) k)
  have n₂ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.unit) e)
  have n₃ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.operands) a)
  have n₄ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.output) tiles)
  exact OrderedRing.mul_le_mul_of_nonneg_right (OrderedField.mul_le_mul
    (OrderedRing.mul_nonneg n₁ n₂)
    (OrderedField.mul_le_mul n₁ (pow_le_gamma hp.accumulation hk hc) n₂
      (pow_le_gamma hp.unit he hu))
    n₃ (OrderedField.pow_le_pow (one_le_one_plus hp.operands) ha)) n₄

/-- The losses of each product before it is added: in its operand, and its own. -/
private theorem tiled_products {p : GradientPrecision R} (hp : PreciseGradient p) {a c : Nat}
    {σ y y' y'' x e product : R} {t : GradientTerm R}
    (ht : AtMost t.error (x - e) ∧ AtMost t.size e ∧ t.other = y)
    (hy : BelowTimes p.unit p.tiny c (σ * y) y')
    (hy' : BelowTimes p.operands p.operandsTiny a y' y'')
    (h : StoredBelow p.accumulation p.tiny (x * y'') product) :
    Majorised ((1 + p.unit) ^ c * (1 + p.operands) ^ a * (1 + p.accumulation)
        * ((t.size + t.error) * (absolute σ * absolute y
          + (numeral c * p.tiny + numeral a * p.operandsTiny)) + p.tiny))
      (absolute σ * (t.size * absolute y)) product (σ * (e * y)) := by
  have hx : Majorised (t.size + t.error) t.size x e := by
    refine ⟨?_, ht.2.1⟩
    rw [show t.size + t.error - t.size = t.error by grind]
    exact ht.1
  have f₁ := OrderedField.one_le_pow (one_le_one_plus hp.unit) c
  have f₂ := OrderedField.one_le_pow (one_le_one_plus hp.operands) a
  have h₁ : Majorised (1 * (absolute σ * absolute y)) (absolute σ * absolute y) (σ * y) (σ * y) :=
    (Majorised.exact ((atMost_absolute σ).mul (atMost_absolute y))).mono (by grind)
  have h₂ := scaled_belowTimes (Std.le_refl 1) hp.unit hp.tiny h₁ hy
  rw [Semiring.one_mul] at h₂
  have h₃ := hx.mul (scaled_belowTimes f₁ hp.operands hp.operandsTiny h₂ hy')
  have f := one_le_mul f₁ f₂
  generalize (1 + p.unit) ^ c * (1 + p.operands) ^ a = Φ at *
  generalize (numeral c : R) * p.tiny = l₁ at *
  generalize (numeral a : R) * p.operandsTiny = l₂ at *
  generalize absolute σ = w at *
  generalize absolute y = v at *
  rw [show (t.size + t.error) * (Φ * (w * v + l₁ + l₂))
      = Φ * ((t.size + t.error) * (w * v + (l₁ + l₂))) by clear h₁ h₂ h₃; grind,
    show t.size * (w * v) = w * (t.size * v) by clear h₁ h₂ h₃; grind,
    show e * (σ * y) = σ * (e * y) by clear h₁ h₂ h₃; grind] at h₃
  exact scaled_below f hp.accumulation hp.tiny h₃ h

/-- The sum that a tile adds. -/
private theorem tiled_part {p : GradientPrecision R} (hp : PreciseGradient p) {k b f : Nat}
    {Φ σ' sum sum' added : R} (hΦ : 1 ≤ Φ) {A B products E : Fin n → R} {part : List (Fin n)}
    (h : ∀ j, Majorised (Φ * A j) (B j) (products j) (E j))
    (hsum : FlushedSum p.accumulation p.tiny products k part sum)
    (hsum' : BelowTimes p.operands p.operandsTiny b sum sum')
    (hadded : BelowTimes p.unit p.tiny f (σ' * sum') added) :
    Majorised (Φ * (1 + p.accumulation) ^ k * (1 + p.operands) ^ b * (1 + p.unit) ^ f
        * (absolute σ' * sumOver (fun j => A j + p.tiny) part
          + (absolute σ' * (numeral b * p.operandsTiny) + numeral f * p.tiny)))
      (absolute σ' * sumOver B part) added (σ' * sumOver E part) := by
  have h₁ := Majorised.flushedSum_each hp.accumulation hp.tiny hsum fun j _ => h j
  have f₁ := OrderedField.one_le_pow (one_le_one_plus hp.accumulation) k
  have f₂ := OrderedField.one_le_pow (one_le_one_plus hp.operands) b
  have h₀ := OrderedRing.mul_le_mul_of_nonneg_left (sumOver_le_sumOver (xs := part)
    (f := fun j => Φ * A j + p.tiny) (g := fun j => Φ * (A j + p.tiny)) fun j _ => by
      have := OrderedRing.mul_le_mul_of_nonneg_right hΦ hp.tiny
      clear h h₁ f₁ f₂
      generalize A j = y
      grind) (nonneg_of_one_le f₁)
  rw [sumOver_mul_left, ← Semiring.mul_assoc, CommSemiring.mul_comm _ Φ] at h₀
  replace h₁ := h₁.mono h₀
  have h₂ := scaled_belowTimes (one_le_mul hΦ f₁) hp.operands hp.operandsTiny h₁ hsum'
  have h₃ := scaled_belowTimes (one_le_mul (one_le_mul hΦ f₁) f₂) hp.unit hp.tiny
    (scaled_mul h₂ σ' (atMost_absolute σ')) hadded
  refine h₃.mono ?_
  clear h h₀ h₁ h₂ h₃ f₁ f₂
  generalize Φ * (1 + p.accumulation) ^ k * (1 + p.operands) ^ b * (1 + p.unit) ^ f = F
  grind

/-- The losses meet no more than `reach`. -/
private theorem tiled_reach {reach v w N A l₃ l₄ l₅ l₆ : R} (h₁ : v * w ≤ reach) (h₂ : w ≤ reach)
    (h₃ : 1 ≤ reach) (nA : 0 ≤ A) (n₃ : 0 ≤ N * l₃) (n₄ : 0 ≤ N * l₄) (n₅ : 0 ≤ l₅)
    (n₆ : 0 ≤ l₆) :
    w * (v * A + N * (v * l₄ + l₃) + l₅) + l₆ ≤ reach * (A + N * (l₄ + l₃) + l₅ + l₆) := by
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right h₁ nA
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ n₄
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_right h₂ n₃
  have i₄ := OrderedRing.mul_le_mul_of_nonneg_right h₂ n₅
  have i₅ := OrderedRing.mul_le_mul_of_nonneg_right h₃ n₆
  clear h₁ h₂ h₃ nA n₃ n₄ n₅ n₆
  grind

/-- All losses together. -/
private theorem tiled_lost {ν η o X : R} (hν : 0 ≤ ν) (hη : 0 ≤ η) (ho : 0 ≤ o) (hX : 0 ≤ X)
    {n N a b c f g s roundings stores tiles : Nat} (hN : N ≤ tiles + 1) (hn : n ≤ roundings)
    (hs : s ≤ 2 * tiles) (hab : a + b ≤ stores) (hcfg : c + f + g ≤ 3) :
    (numeral c * ν + numeral a * η) * X + (numeral n * ν + numeral n * ν)
        + numeral N * (numeral b * η + numeral f * ν)
        + (numeral s * o + numeral (N - 1) * ν) + numeral g * ν
      ≤ (numeral 3 * ν + numeral stores * η) * (X + numeral (tiles + 1))
        + (numeral (2 * roundings + tiles) * ν + numeral (2 * tiles) * o) := by
  have le : ∀ {m n : Nat} {x : R}, 0 ≤ x → m ≤ n → numeral m * x ≤ numeral n * x := fun hx h =>
    OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral h) hx
  have product : ∀ {x : R}, 0 ≤ x → ∀ k : Nat, 0 ≤ numeral k * x := fun hx k =>
    OrderedRing.mul_nonneg (numeral_nonneg k) hx
  have h₁ := le hν (show c ≤ 3 by omega)
  have h₂ := le hη (show a ≤ stores by omega)
  have h₃ := le hν (show f + g ≤ 3 by omega)
  have h₄ := le hη (show b ≤ stores by omega)
  have h₅ := twice_lost_le hn hν
  have h₆ := le ho hs
  have h₀ := le hν (show N - 1 ≤ tiles by omega)
  rw [numeral_add (2 * roundings), Semiring.right_distrib (numeral (2 * roundings))]
  rw [numeral_add] at h₃
  have n₁ := product hν f
  have n₂ := product hη b
  have n₃ := product hν g
  have h₇ := le (show 0 ≤ numeral b * η + numeral f * ν by clear le product; grind) hN
  have h₈ := OrderedRing.mul_le_mul_of_nonneg_left
    (show numeral b * η + numeral f * ν ≤ numeral 3 * ν + numeral stores * η by
      clear le product; grind) (numeral_nonneg (R := R) tiles)
  have h₉ := OrderedRing.mul_le_mul_of_nonneg_right
    (show numeral c * ν + numeral a * η ≤ numeral 3 * ν + numeral stores * η by
      clear le product; grind) hX
  rw [numeral_succ tiles] at h₇ ⊢
  clear le product h₁ h₂ hX n₁ n₂
  generalize (numeral 3 : R) * ν = k₁ at *
  generalize (numeral stores : R) * η = k₂ at *
  generalize (numeral c : R) * ν + numeral a * η = k₃ at *
  generalize (numeral (2 * roundings) : R) * ν = k₄ at *
  generalize (numeral (2 * tiles) : R) * o = k₅ at *
  generalize (numeral n : R) * ν = k₆ at *
  generalize (numeral (N - 1) : R) * ν = m₄ at *
  generalize (numeral s : R) * o = k₇ at *
  generalize (numeral b : R) * η = k₈ at *
  generalize (numeral f : R) = k₉ at *
  generalize (numeral g : R) = m₁ at *
  generalize (numeral tiles : R) * ν = m₅ at *
  generalize (numeral tiles : R) = m₂ at *
  generalize (numeral N : R) = m₃ at *
  grind

/-- All factors of a product on its way to the whole. -/
private theorem tiled_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores tiles : Nat} {scale reach z : R} (hg : 1 ≤ reach) {x y e : Fin n → R}
    {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles scale reach x y z) :
    ∃ k a c : Nat, k ≤ roundings ∧ a ≤ stores ∧ c ≤ 3 ∧
      AtMost ((1 + p.accumulation) ^ k * (1 + p.unit) ^ c * (1 + p.operands) ^ a
          * (1 + p.output) ^ tiles * (absolute scale
            * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n)
            + reach * ((numeral 3 * p.tiny + numeral stores * p.operandsTiny)
              * (sumOver (fun j => (t j).size + (t j).error) (List.finRange n)
                + numeral (tiles + 1))
              + (numeral (2 * roundings + tiles) * p.tiny + numeral (2 * tiles) * p.outputTiny)))
          - absolute scale * sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n))
        (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨parts, k, l, s, a, b, c, f, g, h⟩ := h
  obtain ⟨σ, σ', σ'', y', y'', products, sum, sum', added, whole, h⟩ := h
  obtain ⟨hparts, hN, hn, hs, hkl, hab, hcfg, rfl, h⟩ := h
  obtain ⟨hσ', hσ'', hy, hy', hproducts, hsum, hsum', hadded, hwhole, hz⟩ := h
  refine ⟨k + l + 1, a + b, c + f + g, hkl, hab, hcfg, ?_⟩
  have one : ∀ {u : R}, 0 ≤ u → ∀ k : Nat, 1 ≤ (1 + u) ^ k := fun hu k =>
    OrderedField.one_le_pow (one_le_one_plus hu) k
  have product : ∀ {x : R}, 0 ≤ x → ∀ k : Nat, 0 ≤ numeral k * x := fun hx k =>
    OrderedRing.mul_nonneg (numeral_nonneg k) hx
  have f₁ := one_le_mul (one_le_mul (one hp.unit c) (one hp.operands a))
    (one_le_one_plus hp.accumulation)
  have f₂ := one_le_mul (one_le_mul (one_le_mul f₁ (one hp.accumulation k)) (one hp.operands b))
    (one hp.unit f)
  have f₃ := stored_growth hp.accumulation hp.output l tiles
  have h₁ := fun j => tiled_products hp (ht j) (hy j) (hy' j) (hproducts j)
  have h₂ := fun part hpart => tiled_part hp f₁ h₁ (hsum part hpart) (hsum' part hpart)
    (hadded part hpart)
  have h₃ := Majorised.storedSum hp.accumulation hp.tiny hp.output hp.outputTiny hwhole h₂
  rw [sumOver_mul_left, sumOver_add, sum_of_parts hparts, sum_of_parts hparts, sum_of_parts hparts,
    sum_of_constants, sumOver_add, sumOver_add, sumOver_numeral, Semiring.add_assoc,
    sumOver_mul_left, sumOver_mul_left] at h₃
  have lost₀ : 0 ≤ numeral s * p.outputTiny + numeral (parts.length - 1) * p.tiny := by
    have := product hp.outputTiny s
    have := product hp.tiny (parts.length - 1)
    clear h₁ h₂ h₃
    grind
  have h₄ := scaled_belowTimes (one_le_mul f₂ f₃) hp.unit hp.tiny (scaled_mul
    (h₃.mono (scaled_sum_of_tile f₂ (nonneg_of_one_le f₃) lost₀)) σ''
      (atMost_absolute σ'')) hz
  have s₁ : sumOver (fun j => ((t j).size + (t j).error) * (absolute σ * absolute (y j)
        + (numeral c * p.tiny + numeral a * p.operandsTiny))) (List.finRange n)
      = absolute σ * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j))
          (List.finRange n)
        + (numeral c * p.tiny + numeral a * p.operandsTiny)
          * sumOver (fun j => (t j).size + (t j).error) (List.finRange n) := by
    rw [← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add]
    refine sumOver_congr fun j _ => ?_
    generalize (numeral c : R) * p.tiny + numeral a * p.operandsTiny = m
    generalize absolute (y j) = r
    generalize absolute σ = v
    grind
  rw [s₁] at h₄
  have sizes : 0 ≤ sumOver (fun j => (t j).size + (t j).error) (List.finRange n) :=
    sumOver_nonneg fun j _ => by
      have i₁ := (ht j).1.nonneg
      have i₂ := (ht j).2.1.nonneg
      grind
  have lost := tiled_lost hp.tiny hp.operandsTiny hp.outputTiny sizes hN hn hs hab hcfg
  have hE : 0 ≤ (numeral c * p.tiny + numeral a * p.operandsTiny)
      * sumOver (fun j => (t j).size + (t j).error) (List.finRange n)
      + (numeral n * p.tiny + numeral n * p.tiny) := by
    have i₁ := product hp.tiny c
    have i₂ := product hp.operandsTiny a
    have i₃ := OrderedRing.mul_nonneg (a := numeral c * p.tiny + numeral a * p.operandsTiny)
      (by clear one product h₁ h₂ h₃ lost; grind) sizes
    have i₄ := product hp.tiny n
    clear one product h₁ h₂ h₃ lost
    grind
  have hσ := absolute_le hσ'
  rw [absolute_mul] at hσ
  have reached := tiled_reach (N := numeral parts.length) hσ (absolute_le hσ'') hg hE
    (OrderedRing.mul_nonneg (numeral_nonneg _) (product hp.tiny f))
    (OrderedRing.mul_nonneg (numeral_nonneg _) (product hp.operandsTiny b))
    lost₀ (product hp.tiny g)
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left lost (nonneg_of_one_le hg)
  have f₄ := one_le_mul (one_le_mul f₂ f₃) (one hp.unit g)
  clear lost lost₀ sizes hE hσ s₁ h₁ h₂ h₃ hproducts hy hy' hsum hsum' hadded hwhole hparts ht
  clear hσ' hσ''
  clear f₁ f₂ f₃ one product
  rw [absolute_mul, absolute_mul, Semiring.pow_succ, Semiring.pow_add, Semiring.pow_add,
    Semiring.pow_add, Semiring.pow_add]
  generalize (numeral 3 * p.tiny + numeral stores * p.operandsTiny)
      * (sumOver (fun j => (t j).size + (t j).error) (List.finRange n) + numeral (tiles + 1))
      + (numeral (2 * roundings + tiles) * p.tiny + numeral (2 * tiles) * p.outputTiny) = Z at *
  generalize sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) = A
    at *
  generalize (numeral c * p.tiny + numeral a * p.operandsTiny)
      * sumOver (fun j => (t j).size + (t j).error) (List.finRange n) = X at *
  generalize sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) = B at *
  generalize sumOver (fun j => e j * y j) (List.finRange n) = E at *
  generalize (1 + p.accumulation) ^ k = a₁ at *
  generalize (1 + p.accumulation) ^ l = a₂ at *
  generalize 1 + p.accumulation = a₃ at *
  generalize (1 + p.unit) ^ c = b₁ at *
  generalize (1 + p.unit) ^ f = b₂ at *
  generalize (1 + p.operands) ^ a = c₁ at *
  generalize (1 + p.operands) ^ b = c₂ at *
  generalize (1 + p.output) ^ tiles = d at *
  generalize absolute σ = w at *
  generalize absolute σ' = w' at *
  generalize (numeral parts.length : R) = N at *
  generalize (numeral n : R) * p.tiny + numeral n * p.tiny = l₁ at *
  generalize (numeral s : R) * p.outputTiny + numeral (parts.length - 1) * p.tiny = l₅ at *
  generalize (numeral f : R) * p.tiny = l₃ at *
  generalize (numeral b : R) * p.operandsTiny = l₄ at *
  generalize (numeral g : R) * p.tiny = l₆ at *
  generalize (1 + p.unit) ^ g = b₃ at *
  generalize absolute σ'' = w'' at *
  have h₅ := h₄.error
  clear h₄
  rw [show a₁ * a₂ * a₃ * (b₁ * b₂ * b₃) * (c₁ * c₂) * d
      = b₁ * c₁ * a₃ * a₁ * c₂ * b₂ * (a₂ * d) * b₃ by clear h₅ f₄ reached i₁; grind,
    show w * w' * w'' * B = w'' * (w' * (w * B)) by clear h₅ f₄ reached i₁; grind,
    show σ * σ' * σ'' * E = σ'' * (σ' * (σ * E)) by clear h₅ f₄ reached i₁; grind]
  generalize b₁ * c₁ * a₃ * a₁ * c₂ * b₂ * (a₂ * d) * b₃ = F at *
  refine h₅.mono ?_
  clear h₅
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left (Std.le_trans reached i₁) (nonneg_of_one_le f₄)
  have e₁ : w'' * (w' * (w * A + X + l₁) + N * (w' * l₄ + l₃) + l₅) + l₆
      = w * w' * w'' * A + (w'' * (w' * (X + l₁) + N * (w' * l₄ + l₃) + l₅) + l₆) := by
    clear h₆ f₄ reached i₁
    grind
  rw [e₁]
  clear e₁ reached i₁
  generalize w'' * (w' * (X + l₁) + N * (w' * l₄ + l₃) + l₅) + l₆ = Y at *
  grind

/-- **rounded-stored-gradient**: a sum of products of numbers that are off by an error each, added
up tile by tile, where what a tile adds and every sum of it may be stored in the format of the
output, each operation rounded, is within its bound, also where products and what is stored
underflow. -/
theorem rounded_tiledGradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores tiles : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {scale reach z : R} (hg : 1 ≤ reach) {x y e : Fin n → R}
    {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles scale reach x y z) :
    AtMost (tiledGradientError p roundings stores tiles scale reach ((List.finRange n).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨k, a, c, hk, ha, hc', h₁⟩ := tiled_majorised hp hg ht h
  have b₁ := tiled_bound hp hc hu hk ha hc' tiles
  have other : ∀ j, (t j).other = y j := fun j => (ht j).2.2
  rw [tiledGradientError, sumOver_map, sumOver_map]
  simp only [other]
  have n₀ : ∀ j, 0 ≤ (t j).size + (t j).error := fun j => by
    have h₁ := (ht j).1.nonneg
    have h₂ := (ht j).2.1.nonneg
    grind
  have n₁ : 0 ≤ absolute scale
      * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) :=
    OrderedRing.mul_nonneg (absolute_nonneg scale) (sumOver_nonneg fun j _ =>
      OrderedRing.mul_nonneg (n₀ j) (absolute_nonneg _))
  have n₂ : 0 ≤ reach * ((numeral 3 * p.tiny + numeral stores * p.operandsTiny)
      * (sumOver (fun j => (t j).size + (t j).error) (List.finRange n) + numeral (tiles + 1))
      + (numeral (2 * roundings + tiles) * p.tiny + numeral (2 * tiles) * p.outputTiny)) := by
    have product : ∀ {x : R}, 0 ≤ x → ∀ k : Nat, 0 ≤ numeral k * x := fun hx k =>
      OrderedRing.mul_nonneg (numeral_nonneg k) hx
    have add : ∀ {a b : R}, 0 ≤ a → 0 ≤ b → 0 ≤ a + b := fun ha hb => by grind
    exact OrderedRing.mul_nonneg (nonneg_of_one_le hg) (add (OrderedRing.mul_nonneg
      (add (product hp.tiny _) (product hp.operandsTiny _))
      (add (sumOver_nonneg fun j _ => n₀ j) (numeral_nonneg _)))
      (add (product hp.tiny _) (product hp.outputTiny _)))
  have s : ∀ v : R, sumOver (fun j => ((t j).error + (v - 1) * ((t j).size + (t j).error))
        * absolute (y j)) (List.finRange n)
      = v * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n)
        - sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) := fun v => by
    rw [← sumOver_mul_left, ← sumOver_sub]
    refine sumOver_congr fun j _ => ?_
    generalize absolute (y j) = r
    grind
  rw [s]
  refine h₁.mono ?_
  clear h₁ s other ht h n₀
  generalize (numeral 3 * p.tiny + numeral stores * p.operandsTiny)
      * (sumOver (fun j => (t j).size + (t j).error) (List.finRange n) + numeral (tiles + 1))
      + (numeral (2 * roundings + tiles) * p.tiny + numeral (2 * tiles) * p.outputTiny) = Z at *
  generalize sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) = A
    at *
  generalize sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) = B at *
  generalize absolute scale = w at *
  generalize (1 + p.accumulation) ^ k * (1 + p.unit) ^ c * (1 + p.operands) ^ a
    * (1 + p.output) ^ tiles = F at *
  generalize (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
    * power (1 + p.operands) stores * power (1 + p.output) tiles = G at *
  have b₂ := OrderedRing.mul_le_mul_of_nonneg_right b₁
    (show 0 ≤ w * A + reach * Z by clear b₁; grind)
  rw [show 1 + (G - 1) = G by grind]
  clear b₁ n₁ n₂
  grind

end Attention.Proof
