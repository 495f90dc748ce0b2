module

public import Attention.Proof.Dropout.Basic

public section

/-! # The mean of attention with dropout -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

section
variable {R : Type v} [OrderedField R] (p : R)

/-- The mean of `f` over all lists of `n` Booleans, each entry true with probability 1 − p,
independently of the others. -/
@[expose] def meanOverMasks : (n : Nat) → (f : List Bool → R) → R
  | 0, f => f []
  | n + 1, f => (1 - p) * meanOverMasks n (fun bits => f (true :: bits))
      + p * meanOverMasks n (fun bits => f (false :: bits))

/-- The mean of a constant. -/
theorem meanOverMasks_const (c : R) (n : Nat) : meanOverMasks p n (fun _ => c) = c := by
  induction n with
  | zero => rfl
  | succ n ih => rw [meanOverMasks, ih]; grind

/-- The mean of a sum. -/
theorem meanOverMasks_add (n : Nat) : ∀ f g : List Bool → R,
    meanOverMasks p n (fun bits => f bits + g bits)
      = meanOverMasks p n f + meanOverMasks p n g := by
  induction n with
  | zero => exact fun _ _ => rfl
  | succ n ih =>
    intro f g
    rw [meanOverMasks, meanOverMasks, meanOverMasks, ih, ih]
    grind

/-- The mean of a multiple. -/
theorem meanOverMasks_mul (a : R) (n : Nat) : ∀ f : List Bool → R,
    meanOverMasks p n (fun bits => a * f bits) = a * meanOverMasks p n f := by
  induction n with
  | zero => exact fun _ => rfl
  | succ n ih =>
    intro f
    rw [meanOverMasks, meanOverMasks, ih, ih]
    grind

/-- The mean of a sum of several terms. -/
theorem meanOverMasks_sumOver {α : Type u} (n : Nat) (f : α → List Bool → R) (xs : List α) :
    meanOverMasks p n (fun bits => sumOver (fun x => f x bits) xs)
      = sumOver (fun x => meanOverMasks p n (f x)) xs := by
  induction xs with
  | nil => exact meanOverMasks_const p 0 n
  | cons x xs ih => rw [sumOver_cons, ← ih, ← meanOverMasks_add]; rfl

/-- The mean of what depends on one entry. -/
theorem meanOverMasks_entry (g : Bool → R) (n : Nat) : ∀ k, k < n →
    meanOverMasks p n (fun bits => g (bits.getD k false)) = (1 - p) * g true + p * g false := by
  induction n with
  | zero => intro k hk; omega
  | succ n ih =>
    intro k hk
    rw [meanOverMasks]
    cases k with
    | zero => simp only [List.getD_cons_zero, meanOverMasks_const]
    | succ k =>
      simp only [List.getD_cons_succ]
      rw [ih k (by omega)]
      grind

end

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- A mask by its entries, row by row. -/
@[expose] def maskOfBits (bits : List Bool) : Mask q_len kv_len :=
  fun i j => bits.getD (i.val * kv_len + j.val) false

/-- **dropout-none**: factors 1 drop nothing. -/
theorem attentionDropout_one :
    attentionDropout scale modify Q K V (fun _ _ => 1) = attention scale modify Q K V := by
  refine Vector.ext fun i hi => Vector.ext fun c hc => ?_
  have h := getElem_attentionDropout scale modify Q K V (fun _ _ => 1) ⟨i, hi⟩ ⟨c, hc⟩
  have h' := attention_eq_probabilities scale modify Q K V ⟨i, hi⟩ ⟨c, hc⟩
  simp only [Fin.getElem_fin] at h h'
  rw [h, h']
  exact sumOver_congr fun j _ => by rw [Semiring.mul_one]

/-- **dropout-expectation**: if each weight is kept with probability 1 − p, independently of the
others, and then divided by 1 − p, the mean of the output over all masks is attention. -/
theorem dropout_expectation {p : R} (hp : p ≠ 1) (i : Fin q_len) (c : Fin d_v) :
    meanOverMasks p (q_len * kv_len) (fun bits =>
        (attentionDropout scale modify Q K V (.dropout p (maskOfBits bits)))[i][c])
      = (attention scale modify Q K V)[i][c] := by
  have hmean : ∀ j : Fin kv_len, meanOverMasks p (q_len * kv_len)
      (fun bits => WeightFactor.dropout p (maskOfBits (q_len := q_len) bits) i j) = 1 := fun j => by
    have hk : i.val * kv_len + j.val < q_len * kv_len := by
      have := Nat.mul_le_mul_right kv_len (Nat.succ_le_of_lt i.isLt)
      rw [Nat.succ_mul] at this
      omega
    have := meanOverMasks_entry p (dropoutFactor p) (q_len * kv_len) _ hk
    simp only [dropoutFactor, if_true, Bool.false_eq_true, if_false] at this
    refine Eq.trans this ?_
    have hne : (1 : R) - p ≠ 0 := by grind
    grind
  rw [attention_eq_probabilities scale modify Q K V i c]
  simp only [getElem_attentionDropout]
  rw [meanOverMasks_sumOver]
  refine sumOver_congr fun j _ => ?_
  have h : (fun bits => (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
        * WeightFactor.dropout p (maskOfBits bits) i j * V[j][c])
      = fun bits => (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] * V[j][c]
        * WeightFactor.dropout p (maskOfBits bits) i j := by
    funext bits
    grind
  rw [h, meanOverMasks_mul, hmean, Semiring.mul_one]

end Attention.Proof
