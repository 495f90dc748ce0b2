module

public import Attention.Spec.Paged
public import Attention.Vectors.Varlen

public section

/-! # One case of a cache in pages -/

namespace Attention.Vectors

open Spec

/-- A query with the pages of its keys. -/
structure PagedSequence where
  /-- The query. -/
  q : List Int
  /-- The page numbers, in the order of the tokens. -/
  table : List Nat
  /-- The number of tokens. -/
  length : Nat

/-- A cache in pages and the sequences in it, with the reason why they are worth testing. -/
structure PagedCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score. -/
  scale : Int := 1
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- Slots to a page. -/
  page_size : Nat
  /-- Number of pages. -/
  num_pages : Nat
  /-- The rows of K, slot by slot; slots that no sequence uses hold what they hold. -/
  k : List (List (List Int))
  /-- The rows of V, slot by slot. -/
  v : List (List (List Rat))
  /-- The sequences. -/
  sequences : List PagedSequence

/-- The pool of these pages. -/
@[expose] def poolOf {d d_v : Nat} (page_size num_pages : Nat)
    (pages : List (List (KeyValue Int Rat d d_v))) :
    Pool (KeyValue Int Rat d d_v) page_size num_pages :=
  Vec.ofFn fun p => Vec.ofFn fun slot =>
    ((pages[p.val]?).bind (·[slot.val]?)).getD (Vec.zero, Vec.zero)

namespace PagedCase

/-- Runs the Spec over the exact model, a row for each sequence. -/
@[expose] def run (c : PagedCase) : Except String (List RowResult) := do
  checkExact ((rats c.k.flatten).flatten ++ c.v.flatten.flatten)
  unless c.k.length = c.num_pages ∧ c.v.length = c.num_pages do throw "not one entry for each page"
  let pages ← (c.k.zip c.v).mapM fun (k, v) => toKeyValues c.head_dim c.value_dim k v
  let pool := poolOf c.page_size c.num_pages pages
  unless pages.all (·.length = c.page_size) do throw "not one entry for each slot"
  c.sequences.mapM fun s => do
    checkExact (rats [s.q]).flatten
    let q ← toMatrix 1 c.head_dim [s.q]
    let table := indices c.num_pages s.table
    unless table.length = s.table.length ∧ s.length ≤ s.table.length * c.page_size do
      throw "a table does not fit the pool or the length"
    let kvs := pool.gather table s.length
    return rowResult (scoredRows c.scale (fun _ s => some s) q[0] kvs)
      (attendPaged c.scale (fun _ s => some s) q[0] pool table s.length)

end PagedCase

/-- A cache in pages whose numbers are drawn by rule. -/
structure DrawnPagedCase where
  /-- The case, but for its numbers. -/
  without : PagedCase
  /-- The rows of Q, one for each sequence. -/
  q : Rule
  /-- The rows of K of the whole pool, slot by slot. -/
  k : Rule
  /-- The rows of V. -/
  v : Rule

/-- Rows of a whole pool, slot by slot, as pages. -/
@[expose] def toPages {α : Type} (num_pages page_size : Nat) (rows : List α) : List (List α) :=
  (List.range num_pages).map fun p => (rows.drop (p * page_size)).take page_size

/-- The case with its numbers. -/
@[expose] def DrawnPagedCase.inputs (c : DrawnPagedCase) : Except String PagedCase := do
  let f := c.without
  let q ← c.q.integers f.sequences.length f.head_dim
  let k ← c.k.integers (f.num_pages * f.page_size) f.head_dim
  let v ← c.v.rows (f.num_pages * f.page_size) f.value_dim
  return { f with
    k := toPages f.num_pages f.page_size k, v := toPages f.num_pages f.page_size v
    sequences := f.sequences.zipWith (fun s row => { s with q := row }) q }

end Attention.Vectors
