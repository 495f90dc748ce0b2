module

public import Attention.Model.FloatingPoint
public import Attention.Model.Interval
public import Attention.Model.IntervalSound
public import Attention.Model.Real.Exact
public import Attention.Model.Real.Floor
public import Attention.Model.RoundedScores
public import Attention.Spec.LogSumExp
public import Attention.Spec.Flash
public import Attention.Spec.Format
public import Attention.Spec.Masks
public import Attention.Spec.ScoreTolerance
import Attention.Proof.Enclosure.Basic
import Attention.Proof.Real.Exact
import Attention.Proof.Real.LogSumExp
import Attention.Proof.Rounding.Basic
import Attention.Proof.Rounding.Bits
import Attention.Proof.Rounding.Matrices

public section

/-! # The real numbers, intervals, and numbers that round -/

namespace Attention.Statements

open Spec Model

universe u

/-- Over the real numbers each row of scores has one log-sum-exp. -/
theorem lse_exists (row : List (Option Real)) :
    ∃ L, IsLogSumExp Real L row ∧ ∀ L', IsLogSumExp Real L' row → L' = L :=
  Proof.exists_isLogSumExp row

/-- A result that is computed exactly, from integers to fractions with exp k = 2 ^ k, is attention
over the real numbers with e ^ x and the scale multiplied by ln 2. -/
theorem exact_is_real {q_len kv_len d d_v : Nat} (scale : Int)
    {modify : ScoreMod Int q_len kv_len} {modify' : ScoreMod Real q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (Real.ofInt s * Real.log 2)
      = (modify i j s).map fun s => Real.ofInt s * Real.log 2)
    (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v) :
    attention (Real.ofInt scale * Real.log 2) modify' (Vec.map (Vec.map Real.ofInt) Q)
        (Vec.map (Vec.map Real.ofInt) K) (Vec.map (Vec.map Real.ofRat) V)
      = Vec.map (Vec.map Real.ofRat) (attention scale modify Q K V) :=
  Proof.attention_real scale (Proof.modIsReal_iff.mpr hmodify) Q K V

/-- Attention computed with intervals that contain the inputs contains the attention of these, here
under a Boolean mask. -/
theorem enclosure_sound {R : Type u} [OrderedField R] [NaturalExp R] {p q_len kv_len d d_v : Nat}
    {scale' : Interval p} {scale : R} (mask : Mask q_len kv_len)
    {Q' : Matrix (Interval p) q_len d} {Q : Matrix R q_len d}
    {K' : Matrix (Interval p) kv_len d} {K : Matrix R kv_len d}
    {V' : Matrix (Interval p) kv_len d_v} {V : Matrix R kv_len d_v}
    (hscale : scale'.Contains scale)
    (hQ : ∀ i (_ : i < q_len) t (_ : t < d), Q'[i][t].Contains Q[i][t])
    (hK : ∀ j (_ : j < kv_len) t (_ : t < d), K'[j][t].Contains K[j][t])
    (hV : ∀ j (_ : j < kv_len) c (_ : c < d_v), V'[j][c].Contains V[j][c])
    (i : Nat) (hi : i < q_len) (c : Nat) (hc : c < d_v) :
    (attention scale' mask.toScoreMod Q' K' V')[i][c].Contains
      (attention scale mask.toScoreMod Q K V)[i][c] := by
  refine Proof.enclosure_sound hscale (fun i j I x h => ?_) hQ hK hV i hi c hc
  simp only [Mask.toScoreMod]
  split <;> trivial

/-- Every function that computes a row's attention by parts, in any order and with every operation
rounded (`Run`), is within the tolerance of exact attention: `part` is what it has computed of all
keys, against the reference point `m`, which has to be the computed score of a key that is not
masked. A key's score may be off by its `error`, and by a number `c` that all keys share; the
quotient is rounded up to five times. A denominator may add the weights as they are stored for the
values if that takes a third of their sum at most. -/
theorem rounded_attention {R : Type u} [OrderedField R] [Exponential R R] {p : Precision R}
    (hp : Precise p) {m : R} {part : Part R} (run : Run p m part) {d : Nat}
    {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[j]) :=
  Proof.rounded_attention hp run hj same attained close hr ha third hN hD result negligible

/-- The tile loop, run over numbers that round in every operation, is within the tolerance of exact
attention of the same matrices, under any Boolean mask, in every row with an unmasked key: `unit`
bounds the relative error of an operation, `exponential` that of an exponential; so nothing
underflows or overflows. The scale is rounded three times at most. -/
theorem flash_within_allowance {R : Type u} [OrderedField R] [Exponential R R]
    {F : FloatingPoint R} {q_len kv_len d d_v : Nat} {scale : R} {mask : Mask q_len kv_len}
    {σ : F.Number} {Q : Matrix F.Number q_len d} {K : Matrix F.Number kv_len d}
    {V : Matrix F.Number kv_len d_v} {i : Fin q_len} {roundings rescalings : Nat}
    (hF : F.exponential < 1) (hσ : RoundedTimes F.unit 3 scale σ.val)
    (unmasked : ∃ k, mask i k = true) (hd : 10 * (numeral (d + 4) * F.unit) ≤ 1)
    (hN : numeral (roundings + 6) * F.unit < 1) (hD : 2 * numeral roundings * F.unit < 1)
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) (negligible : R)
    (ha : block_n + numTiles kv_len block_n + (numTiles kv_len block_n - 1) ≤ roundings)
    (hr : numTiles kv_len block_n - 1 ≤ rescalings) :
    let q : Matrix R q_len d := Vec.map (Vec.map (·.val)) Q
    let k : Matrix R kv_len d := Vec.map (Vec.map (·.val)) K
    let v : Matrix R kv_len d_v := Vec.map (Vec.map (·.val)) V
    ∃ o, (flash σ mask.toScoreMod Q K V block_m block_n)[i.val]? = some o ∧ ∀ t : Fin d_v,
      AtMost (tolerance F.precision roundings rescalings negligible
          (boundedKeys F.precision inAccumulator d scale mask q k v i t (List.finRange kv_len)))
        (o[t].val - (attention scale mask.toScoreMod q k v)[i][t]) :=
  Proof.flash_within_tolerance hF hσ unmasked hd hN hD hm hn negligible ha hr

/-- There are numbers that round as the result above asks for: real numbers of p bits, with e ^ x. A
format of p bits (binary32 of 24) rounds alike each result from its smallest normal number on, and
each sum and difference of its numbers, however small. -/
theorem rounding_exists (p : Nat) :
    ∃ F : FloatingPoint Real, F.unit = (2 : Real) ^ (-(p : Int)) ∧
      F.exponential = (2 : Real) ^ (-(p : Int)) ∧
      ∀ f : Format, f.precision = p →
        (∀ x, f.smallestNormal Real ≤ absolute x → F.round x = f.round Real.floor x) ∧
        (∀ x, f.smallestNormal Real ≤ exp x → F.roundedExp x = f.round Real.floor (exp x)) ∧
        ∀ a b, f.IsNumber a → f.IsNumber b →
          F.round (a + b) = f.round Real.floor (a + b) ∧
            F.round (a - b) = f.round Real.floor (a - b) :=
  Proof.exists_floatingPoint p

end Attention.Statements
