module

public import Attention.Spec.Online
public import Attention.Spec.Rows

public section

/-! # Keys and values in pages

The cache is a pool of pages of `page_size` slots each. A sequence has a table, the list of its page
numbers, and a length: its token t lies in slot t % page_size of page table[t / page_size]. The last
page may be filled in part; its other slots hold whatever was there before.
Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
PagedAttention", section 4. -/

namespace Attention.Spec

open Online

universe u v w

variable {α : Type w} {page_size num_pages : Nat}

/-- The pages of a cache: each has `page_size` slots. -/
abbrev Pool (α : Type w) (page_size num_pages : Nat) := Vector (Vector α page_size) num_pages

/-- The entry of token `t` of the sequence with this table. -/
@[expose] def Pool.read (pool : Pool α page_size num_pages) (table : List (Fin num_pages))
    (t : Nat) : Option α :=
  (table[t / page_size]?).bind fun p => pool[p].toList[t % page_size]?

/-- The first `len` tokens of a sequence, in order. -/
@[expose] def Pool.gather (pool : Pool α page_size num_pages) (table : List (Fin num_pages))
    (len : Nat) : List α :=
  (List.range len).filterMap (pool.read table)

/-- Token `t` of a sequence is written to its place; nothing happens beyond the end of the table. -/
@[expose] def Pool.write (pool : Pool α page_size num_pages) (table : List (Fin num_pages))
    (t : Nat) (x : α) : Pool α page_size num_pages :=
  match table[t / page_size]? with
  | none => pool
  | some p => Vec.ofFn fun p' =>
      if p' = p then Vec.ofFn fun slot => if slot.val = t % page_size then x else pool[p'][slot]
      else pool[p']

/-- Tokens are written one after another, the first of them as token `len`. -/
@[expose] def Pool.store (pool : Pool α page_size num_pages) (table : List (Fin num_pages)) :
    (len : Nat) → List α → Pool α page_size num_pages
  | _, [] => pool
  | len, x :: xs => (pool.write table len x).store table (len + 1) xs

variable {S : Type u} {R : Type v} {d d_v : Nat}
variable [Add S] [Mul S] [OfNat S 0] (scale : S) (modify : Nat → S → Option S) (q : Vec S d)

/-- The `t`th page of a sequence of length `len` as the query sees it: slots at and beyond the
length are masked. -/
@[expose] def scoredPage (len t : Nat) (page : Vector (KeyValue S R d d_v) page_size) :
    List (ScoredValue S R d_v) :=
  scoredRows scale
    (fun slot s => if t * page_size + slot < len then modify (t * page_size + slot) s else none)
    q page.toList

/-- Attention of one query over a cache in pages, one page of the table after another. -/
@[expose] def attendPaged [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [Div R] [OfNat R 0]
    [Exp S R] (pool : Pool (KeyValue S R d d_v) page_size num_pages)
    (table : List (Fin num_pages)) (len : Nat) : Vec R d_v :=
  finish (online (table.zipIdx.map fun (p, t) => scoredPage scale modify q len t pool[p]))

end Attention.Spec
