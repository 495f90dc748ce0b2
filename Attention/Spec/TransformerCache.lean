module

public import Attention.Spec.Transformer

public section

/-! # The decoder token by token, with a cache of keys and values

While a text is generated its rows come one at a time. Each layer keeps the projected keys and
values of the rows that it has seen; a new row adds its own, and its query attends to all of them,
so that nothing masks anything. Nothing is computed anew for the rows before. -/

namespace Attention.Spec

universe u

/-- The entry that a layer keeps for each row that it has seen: the keys and the values of all
heads. -/
abbrev LayerCache (R : Type u) (width : Nat) := List (Vec R width × Vec R width)

variable {R : Type u} {s d_model num_heads d d_ff : Nat}
variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Max R] [Exp R R]
variable (sqrt : R → R) (ε scale : R)

omit [Sub R] [OfNat R 1] [Max R] in
/-- Multi-head attention of one row to all rows of a cache. -/
@[expose] def MultiHead.cachedRow (W : MultiHead R d_model num_heads d)
    (cache : LayerCache R (num_heads * d)) (x : Vec R d_model) : Vec R d_model :=
  let K : Matrix R cache.length (num_heads * d) := ⟨(cache.map fun kv => kv.1).toArray, by simp⟩
  let V : Matrix R cache.length (num_heads * d) := ⟨(cache.map fun kv => kv.2).toArray, by simp⟩
  let Q : Matrix R 1 (num_heads * d) := Vec.ofFn fun _ => W.query.row x
  (W.attend scale Mask.full Q K V)[0]

/-- One more row through a decoder layer, normalised before: the cache with its key and value, and
what becomes of the row. `visible` says which rows of `context` may be attended to. -/
@[expose] def DecoderLayer.step (visible : Fin s → Bool)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (cache : LayerCache R (num_heads * d)) (x : Vec R d_model) :
    LayerCache R (num_heads * d) × Vec R d_model :=
  let a := L.attentionNorm.row sqrt ε x
  let cache := cache ++ [(L.attention.key.row a, L.attention.value.row a)]
  let x := Vec.add x (L.attention.cachedRow scale cache a)
  let Q : Matrix R 1 d_model := Vec.ofFn fun _ => L.crossNorm.row sqrt ε x
  let x := Vec.add x (L.cross.rows scale (fun _ j => visible j) Q context context)[0]
  (cache, Vec.add x (L.feedForward.row (L.feedForwardNorm.row sqrt ε x)))

/-- One more row through all layers of a decoder: their caches, and what becomes of the row. -/
@[expose] def decodeStep (visible : Fin s → Bool)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (context : Matrix R s d_model)
    (caches : List (LayerCache R (num_heads * d))) (x : Vec R d_model) :
    List (LayerCache R (num_heads * d)) × Vec R d_model :=
  (layers.zip caches).foldl (fun (done, x) (L, cache) =>
    let out := L.step sqrt ε scale visible context cache x
    (done ++ [out.1], out.2)) ([], x)

/-- The decoder with a cache, from empty caches on: what becomes of each row, in their order. -/
@[expose] def decodeCached (visible : Fin s → Bool)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (context : Matrix R s d_model)
    (rows : List (Vec R d_model)) : List (Vec R d_model) :=
  (rows.foldl (fun (caches, done) x =>
    let out := decodeStep sqrt ε scale visible layers context caches x
    (out.1, done ++ [out.2])) (layers.map fun _ => [], [])).2

end Attention.Spec
