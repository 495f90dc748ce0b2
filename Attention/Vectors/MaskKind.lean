module

public import Attention.Spec.Masks

public section

/-! # How the mask of a case is written down -/

namespace Attention.Vectors

open Spec

/-- The name of an alignment. -/
def alignmentName : Alignment → String
  | .topLeft => "top-left"
  | .bottomRight => "bottom-right"

instance : ToString Alignment := ⟨alignmentName⟩

/-- A mask by its kind, with what the kind needs. -/
inductive MaskKind where
  /-- Every query attends to every key. -/
  | none
  /-- Query `i` attends to key `j` if and only if j ≤ i. -/
  | causal
  /-- Causal, aligned bottom-right: the last query stands at the last key. -/
  | causalBottomRight
  /-- The sliding window, with inclusive bounds; none: no bound on that side. -/
  | window (alignment : Alignment) (left right : Option Nat)
  /-- Every query attends to the first `length` keys. -/
  | keyLength (length : Nat)
  /-- Every query attends to the keys that are true. -/
  | keyPadding (valid : List Bool)
  /-- The document of each query and of each key: a query attends to the keys of its own. -/
  | document (queries keys : List Nat)
  /-- One Boolean for each query and key; true means the query may attend. -/
  | boolean (rows : List (List Bool))

instance : ToString MaskKind where
  toString
    | .none => "none"
    | .causal => "causal"
    | .causalBottomRight => "causal-bottom-right"
    | .window alignment left right => s!"window {alignment} {left} {right}"
    | .keyLength length => s!"key-length {length}"
    | .keyPadding valid => s!"key-padding {valid}"
    | .document queries keys => s!"document {queries} {keys}"
    | .boolean rows => s!"boolean {rows}"

/-- The mask as the Spec takes it. -/
@[expose] def MaskKind.toMask {q_len kv_len : Nat} : MaskKind → Mask q_len kv_len
  | .none => Mask.full
  | .causal => Mask.causal .topLeft
  | .causalBottomRight => Mask.causal .bottomRight
  | .window alignment left right => Mask.window alignment left right
  | .keyLength length => Mask.keyLength length
  | .keyPadding valid => Mask.keyPadding (Vec.ofFn fun j => valid[j.val]!)
  | .document queries keys => Mask.document (Vec.ofFn fun i => queries[i.val]!)
      (Vec.ofFn fun j => keys[j.val]!)
  | .boolean rows => fun i j => (rows[i.val]!)[j.val]!

end Attention.Vectors
