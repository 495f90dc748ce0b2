module

public import Attention.Spec.Attention

public section

/-! # Masks

Which keys a query may attend to: everything, the causal past, a window, keys that are not padding,
keys of the same document, and conjunctions of these.

With unequal lengths there are two conventions for where query i stands on the axis of the keys.
Source: flash-attention from 2.1 on, `flash_attn_func`, for bottom-right alignment and the inclusive
bounds of the window; PyTorch, `scaled_dot_product_attention`, `is_causal`, for top-left alignment.
-/

namespace Attention.Spec

/-- Which corner of the score matrix the diagonal of a causal or windowed mask starts from. -/
inductive Alignment where
  /-- The first query stands at the first key. -/
  | topLeft
  /-- The last query stands at the last key. -/
  | bottomRight

/-- By how much a query's place on the axis of the keys differs from its own number. -/
@[expose] def Alignment.shift (q_len kv_len : Nat) : Alignment → Int
  | .topLeft => 0
  | .bottomRight => (kv_len : Int) - q_len

variable {q_len kv_len : Nat}

/-- Every query attends to every key. -/
@[expose] def Mask.full : Mask q_len kv_len := fun _ _ => true

/-- The causal mask: query `i` attends to key `j` if and only if j ≤ i + shift. -/
@[expose] def Mask.causal (alignment : Alignment) : Mask q_len kv_len := fun i j =>
  decide ((j.val : Int) ≤ i.val + alignment.shift q_len kv_len)

/-- The sliding window: query `i` attends to key `j` if and only if
i + shift − left ≤ j ≤ i + shift + right; `none` stands for no bound on that side. -/
@[expose] def Mask.window (alignment : Alignment) (left right : Option Nat) : Mask q_len kv_len :=
  fun i j =>
    let p : Int := i.val + alignment.shift q_len kv_len
    left.all (fun l => decide (p - (l : Nat) ≤ (j.val : Int))) &&
      right.all (fun r => decide ((j.val : Int) ≤ p + (r : Nat)))

/-- Key padding: every query attends to the keys that are `true`. -/
@[expose] def Mask.keyPadding (valid : Vector Bool kv_len) : Mask q_len kv_len :=
  fun _ j => valid[j]

/-- Key padding at the end: every query attends to the first `length` keys. -/
@[expose] def Mask.keyLength (length : Nat) : Mask q_len kv_len :=
  fun _ j => decide (j.val < length)

/-- Several documents in one sequence: a query attends to the keys of its own document. -/
@[expose] def Mask.document (queries : Vector Nat q_len) (keys : Vector Nat kv_len) :
    Mask q_len kv_len :=
  fun i j => queries[i] == keys[j]

/-- Both masks allow it. -/
@[expose] def Mask.and (a b : Mask q_len kv_len) : Mask q_len kv_len := fun i j => a i j && b i j

end Attention.Spec
