module

public import Attention.Spec.Attention
public import Attention.Spec.Philox

public section

/-! # Which weights dropout keeps

A function of a seed, the head, the query and the key, by a counter-based generator: nothing has to
be stored, and any tile of the matrix can be drawn by itself, and drawn again in the backward pass
in tiles of other sizes. One call of the generator serves four neighbouring keys. -/

namespace Attention.Spec

/-- The key of the generator for a seed below 2 ^ 64: its lower and its upper 32 bits. -/
@[expose] def seedKey (seed : Nat) : PhiloxKey := ⟨seed % 2 ^ 32, seed / 2 ^ 32⟩

/-- The four random words of the keys 4g, 4g + 1, 4g + 2 and 4g + 3, for query `i` of a head. -/
@[expose] def dropoutWords (seed head i g : Nat) : List Nat :=
  let words := philox 10 (seedKey seed) ⟨g, i, head, 0⟩
  [words.c0, words.c1, words.c2, words.c3]

/-- A fraction rounded to the nearest integer, halves to the even one. -/
@[expose] def roundHalfEven (num den : Nat) : Nat :=
  let below := num / den
  let rest := num % den
  if 2 * rest < den then below else if den < 2 * rest then below + 1 else below + below % 2

/-- How many of the 2 ^ 32 words keep a weight, where p = num / den: (1 − p) · 2 ^ 32, rounded. -/
@[expose] def keepThreshold (num den : Nat) : Nat := roundHalfEven ((den - num) * 2 ^ 32) den

/-- Whether query `i` keeps the weight of key `j`. -/
@[expose] def keeps (threshold seed head i j : Nat) : Bool :=
  decide ((dropoutWords seed head i (j / 4)).getD (j % 4) 0 < threshold)

/-- Which weights are kept, as a matrix. -/
@[expose] def keepMask {q_len kv_len : Nat} (threshold seed head : Nat) : Mask q_len kv_len :=
  fun i j => keeps threshold seed head i.val j.val

/-- Whether query `i` keeps the weights of the `count` keys from `start` on, as a tile draws it: all
words of the groups of four that these keys lie in, without those of other keys. -/
@[expose] def keepsFrom (threshold seed head i start count : Nat) : List Bool :=
  let groups := List.range' (start / 4) ((start % 4 + count + 3) / 4)
  let words := groups.flatMap (dropoutWords seed head i)
  ((words.drop (start % 4)).take count).map fun word => decide (word < threshold)

end Attention.Spec
