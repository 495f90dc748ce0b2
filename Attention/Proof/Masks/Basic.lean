module

public import Attention.Spec.Masks
public import Attention.Proof.Softmax.Attention

public section

/-! # What each mask lets through -/

namespace Attention.Proof

open Spec

variable {q_len kv_len : Nat} (i : Fin q_len) (j : Fin kv_len)

/-- **causal-mask**: under the causal mask aligned top-left, query `i` sees key `j` if and only if
j ≤ i. -/
theorem causal_iff : Mask.causal .topLeft i j = true ↔ j.val ≤ i.val := by
  simp [Mask.causal, Alignment.shift]

/-- **causal-bottom-right**: under the causal mask aligned bottom-right, query `i` sees key `j` if
and only if j + q_len ≤ i + kv_len; the last query sees every key. -/
theorem causal_bottomRight_iff :
    Mask.causal .bottomRight i j = true ↔ j.val + q_len ≤ i.val + kv_len := by
  simp only [Mask.causal, Alignment.shift, decide_eq_true_eq]
  omega

/-- For equal lengths the two alignments are one. -/
theorem causal_alignments {n : Nat} :
    (Mask.causal .topLeft : Mask n n) = Mask.causal .bottomRight := by
  funext i j
  simp [Mask.causal, Alignment.shift]

/-- **window**: under a sliding window query `i` sees key `j` if and only if
i + shift − left ≤ j ≤ i + shift + right, a bound that is `none` left out; shift is 0 when aligned
top-left and kv_len − q_len when aligned bottom-right. -/
theorem window_iff (alignment : Alignment) (left right : Option Nat) :
    Mask.window alignment left right i j = true ↔
      let shift : Int := match alignment with
        | .topLeft => 0
        | .bottomRight => (kv_len : Int) - q_len
      (∀ l, left = some l → (i.val : Int) + shift - (l : Nat) ≤ j.val) ∧
        (∀ r, right = some r → (j.val : Int) ≤ i.val + shift + (r : Nat)) := by
  cases alignment <;> cases left <;> cases right <;> simp [Mask.window, Alignment.shift]

/-- The causal mask is the window without bound to the left and with bound 0 to the right. -/
theorem causal_eq_window (alignment : Alignment) :
    (Mask.causal alignment : Mask q_len kv_len) = Mask.window alignment none (some 0) := by
  funext i j
  simp [Mask.causal, Mask.window]

/-- The window without bounds lets everything through. -/
theorem window_none (alignment : Alignment) :
    (Mask.window alignment none none : Mask q_len kv_len) = Mask.full := rfl

/-- Padding at the end is padding. -/
theorem keyLength_eq_keyPadding (length : Nat) :
    (Mask.keyLength length : Mask q_len kv_len)
      = Mask.keyPadding (Vector.ofFn fun j => decide (j.val < length)) := by
  funext i j
  simp [Mask.keyLength, Mask.keyPadding]

/-- **document-mask**: query `i` sees key `j` if and only if they are of the same document. -/
theorem document_iff (queries : Vector Nat q_len) (keys : Vector Nat kv_len) :
    Mask.document queries keys i j = true ↔ queries[i] = keys[j] := by
  simp [Mask.document]

/-- Both masks must let a key through. -/
theorem and_iff (a b : Mask q_len kv_len) :
    Mask.and a b i j = true ↔ a i j = true ∧ b i j = true := by
  simp [Mask.and]

end Attention.Proof
