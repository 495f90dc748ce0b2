module

public import Attention.Kernel.Tiles

public section

/-! # The forward kernel, once for all of its texts

Triton compiles one Python kernel to several texts: a window that is not there leaves no code, a
head size that fills its tile leaves no mask, and packed sequences have addresses of their own.
`Problem` has their arguments, the definitions their results; that a text computes these is proved
by unfolding (`Attention.Kernel.Unfolding`), and only theorems about the texts themselves are
claimed.
Source: `pyimpl/backends/kernels/forward.py`, and `loop.py` and `bounds.py` in `parts/`. -/

namespace Attention.Kernel

open Flt

universe u

/-- The arguments of a text of the forward kernel. A pointer is what lies behind it; strides are in
elements, 1 along vectors. left, right: of the window, `none` where there is no bound. even,
evenValue: the size of heads, or of values, fills its tile. tilesLen: the number of queries that the
programs' tiles are to cover. packed: the rows of packed tensors with which the sequence's queries
and its keys begin, for which there are no strides from batch to batch; `none`: not packed. -/
structure Problem (R : Type u) where
  query : Mem (Flt R)
  key : Mem (Flt R)
  value : Mem (Flt R)
  qb : Int
  qh : Int
  qm : Int
  kb : Int
  kh : Int
  kn : Int
  vb : Int
  vh : Int
  vn : Int
  ob : Int
  oh : Int
  om : Int
  lb : Int
  lh : Int
  heads : Int
  group : Int
  tilesLen : Int
  packed : Option (Int × Int)
  qLen : Int
  kvLen : Int
  dim : Int
  valueDim : Int
  scale : Flt R
  left : Option Int
  right : Option Int
  shift : Int
  even : Bool
  evenValue : Bool
  BM : Nat
  BN : Nat
  BD : Nat
  BV : Nat
  ln2 : R
  ln : R → R

namespace Problem

variable {R : Type u} (p : Problem R) (pid t : Int)

/-! ## Which queries and keys -/

/-- The number of tiles of queries. -/
@[expose] def tiles : Int := Int.tdiv (p.tilesLen + (p.BM - 1 : Int)) p.BM
/-- The tile of queries of program `pid`. -/
@[expose] def tile : Int := p.tiles - 1 - Int.tmod pid p.tiles
/-- Its batch, or sequence. -/
@[expose] def batch : Int := Int.tdiv (Int.tdiv pid p.tiles) p.heads
/-- Its head. -/
@[expose] def head : Int := Int.tmod (Int.tdiv pid p.tiles) p.heads
/-- Its head of keys and values. -/
@[expose] def kvHead : Int := Int.tdiv (p.head pid) p.group
/-- Its first query. -/
@[expose] def rowFirst : Int := p.tile pid * p.BM
/-- The query of row i. -/
@[expose] def row (i : Nat) : Int := p.rowFirst pid + i
/-- Its last query. -/
@[expose] def rowLast : Int := min ((p.tile pid + 1) * p.BM) p.qLen - 1

/-- The first key that a query sees. -/
@[expose] def firstKey : Int :=
  match p.left with
  | none => 0
  | some l => max (p.rowFirst pid + p.shift - l) 0
/-- One past the last key that a query sees. -/
@[expose] def stopKey : Int :=
  match p.right with
  | none => p.kvLen
  | some r => min p.kvLen (max (p.rowLast pid + p.shift + r + 1) 0)
/-- The first tile of keys. -/
@[expose] def first : Int :=
  match p.left with
  | none => 0
  | some _ => if decide (p.firstKey pid < p.stopKey pid) then Int.tdiv (p.firstKey pid) p.BN else 0
/-- One past the last tile of keys. -/
@[expose] def stop : Int :=
  if decide (p.firstKey pid < p.stopKey pid) then
    Int.tdiv (p.stopKey pid + (p.BN - 1 : Int)) p.BN else 0
/-- The first tile of which no query has its left edge in it. -/
@[expose] def unmaskedFirst : Int :=
  match p.left with
  | none => 0
  | some l => Int.tdiv (max (p.rowLast pid + p.shift - l) 0 + (p.BN - 1 : Int)) p.BN
/-- One past the last tile of which no query has its right edge in it. -/
@[expose] def unmaskedStop : Int :=
  match p.right with
  | none => Int.tdiv (p.kvLen + (p.BN - 1 : Int)) p.BN
  | some r =>
    if decide (p.kvLen ≤ max (p.rowFirst pid + p.shift + r + 1) 0) then
      Int.tdiv (p.kvLen + (p.BN - 1 : Int)) p.BN
    else Int.tdiv (max (p.rowFirst pid + p.shift + r + 1) 0) p.BN
/-- The first tile of keys that is taken without mask code. -/
@[expose] def wholeFirst : Int :=
  match p.left with
  | none => min (p.stop pid) 0
  | some _ => min (max (p.unmaskedFirst pid) (p.first pid)) (p.stop pid)
/-- One past the last such tile. -/
@[expose] def wholeStop : Int :=
  min (max (min (p.unmaskedStop pid) (Int.tdiv p.kvLen p.BN)) (p.wholeFirst pid)) (p.stop pid)

/-- The key of lane j of tile t. -/
@[expose] def keyAt (j : Nat) : Int := t * p.BN + j
/-- Key j of tile t is one of those that some query sees. -/
@[expose] def inside (j : Nat) : Bool :=
  decide (p.firstKey pid ≤ p.keyAt t j) && decide (p.keyAt t j < p.stopKey pid)
/-- The query of row i sees key j of tile t. -/
@[expose] def visible (i j : Nat) : Bool :=
  match p.left, p.right with
  | none, none => decide (p.keyAt t j < p.stopKey pid)
  | some l, none => decide (p.keyAt t j < p.stopKey pid) &&
      decide (p.row pid i + p.shift - l ≤ p.keyAt t j)
  | none, some r => decide (p.keyAt t j < p.stopKey pid) &&
      decide (p.keyAt t j ≤ p.row pid i + p.shift + r)
  | some l, some r => (decide (p.keyAt t j < p.stopKey pid) &&
      decide (p.row pid i + p.shift - l ≤ p.keyAt t j)) &&
      decide (p.keyAt t j ≤ p.row pid i + p.shift + r)

/-! ## Addresses -/

/-- Where the head of the queries begins: its first row, of packed sequences that of its own. -/
@[expose] def queryBase : Int :=
  match p.packed with
  | none => p.batch pid * p.qb + p.head pid * p.qh
  | some (q, _) => p.head pid * p.qh + q * p.qm
/-- The same of the keys. -/
@[expose] def keyBase : Int :=
  match p.packed with
  | none => p.batch pid * p.kb + p.kvHead pid * p.kh
  | some (_, k) => p.kvHead pid * p.kh + k * p.kn
/-- The same of the values. -/
@[expose] def valueBase : Int :=
  match p.packed with
  | none => p.batch pid * p.vb + p.kvHead pid * p.vh
  | some (_, k) => p.kvHead pid * p.vh + k * p.vn
/-- The same of the output. -/
@[expose] def outBase : Int :=
  match p.packed with
  | none => p.batch pid * p.ob + p.head pid * p.oh
  | some (q, _) => p.head pid * p.oh + q * p.om
/-- The same of the log-sum-exps. -/
@[expose] def lseBase : Int :=
  match p.packed with
  | none => p.batch pid * p.lb + p.head pid * p.lh
  | some (q, _) => p.head pid * p.lh + q
/-- Of component n of the query of row i. -/
@[expose] def queryAt (i n : Nat) : Int := 0 + p.queryBase pid + p.row pid i * p.qm + n
/-- Of component n of key j of tile t. -/
@[expose] def keyPtr (n j : Nat) : Int :=
  match p.packed with
  | none => 0 + (p.batch pid * p.kb + (p.kvHead pid * p.kh + t * p.BN * p.kn)) + (n + j * p.kn)
  | some (_, k) => 0 + (p.kvHead pid * p.kh + (k * p.kn + t * p.BN * p.kn)) + (n + j * p.kn)
/-- Of component c of value j of tile t. -/
@[expose] def valuePtr (j c : Nat) : Int :=
  match p.packed with
  | none => 0 + (p.batch pid * p.vb + (p.kvHead pid * p.vh + t * p.BN * p.vn)) + (j * p.vn + c)
  | some (_, k) => 0 + (p.kvHead pid * p.vh + (k * p.vn + t * p.BN * p.vn)) + (j * p.vn + c)
/-- Of component c of the output of row i. -/
@[expose] def outAt (i c : Nat) : Int := 0 + p.outBase pid + p.row pid i * p.om + c
/-- Of the log-sum-exp of row i. -/
@[expose] def lseAt (i : Nat) : Int := 0 + p.lseBase pid + p.row pid i

/-- What a store that this condition allows is allowed by: of packed sequences programs without a
query return before. -/
@[expose] def stored (allowed : Bool) : Bool :=
  match p.packed with
  | none => allowed
  | some _ => !decide (p.qLen ≤ p.rowFirst pid) && allowed

variable [OrderedField R] [Exp R R]

/-! ## Loads -/

/-- Component n of the query of row i. -/
@[expose] def queryTile (i n : Nat) : Flt R :=
  if decide (p.row pid i < p.qLen) && decide ((n : Int) < p.dim) then p.query (p.queryAt pid i n)
  else num 0
/-- Component n of key j of tile t where tiles are whole. -/
@[expose] def wholeKey (n j : Nat) : Flt R :=
  match p.even with
  | true => p.key (p.keyPtr pid t n j)
  | false => if decide ((n : Int) < p.dim) then p.key (p.keyPtr pid t n j) else num 0
/-- Component c of value j of tile t where tiles are whole. -/
@[expose] def wholeValue (j c : Nat) : Flt R :=
  match p.evenValue with
  | true => p.value (p.valuePtr pid t j c)
  | false => if decide ((c : Int) < p.valueDim) then p.value (p.valuePtr pid t j c) else num 0
/-- Component n of key j of tile t where tiles may be ragged. -/
@[expose] def checkedKey (n j : Nat) : Flt R :=
  if decide ((n : Int) < p.dim) && p.inside pid t j then p.key (p.keyPtr pid t n j) else num 0
/-- Component c of value j of tile t where tiles may be ragged. -/
@[expose] def checkedValue (j c : Nat) : Flt R :=
  if decide ((c : Int) < p.valueDim) && p.inside pid t j then p.value (p.valuePtr pid t j c)
  else num 0

/-! ## The loops -/

/-- The state of the loops: maxima, denominators and outputs of all rows. -/
abbrev State (R : Type u) := (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)

/-- Row i of a state. -/
@[expose] def rowOf (i : Nat) (s : State R) : RowState R := ⟨s.1 i, s.2.1 i, s.2.2 i⟩

/-- A state of rows. -/
@[expose] def ofRows (f : Nat → RowState R) : State R :=
  (fun i => (f i).m, fun i => (f i).l, fun i c => (f i).o c)

/-- The product of query and key, where tiles are whole. -/
@[expose] def wholeProduct (i j : Nat) : Flt R :=
  dot p.BD (fun n => p.queryTile pid i n) (fun n => p.wholeKey pid t n j) (num 0)
/-- The score, where tiles may be ragged. -/
@[expose] def checkedScore (i j : Nat) : Flt R :=
  if p.visible pid t i j then
    mul (dot p.BD (fun n => p.queryTile pid i n) (fun n => p.checkedKey pid t n j) (num 0)) p.scale
  else ninf

/-- One tile without mask code. -/
@[expose] def wholeBody (s : State R) : State R :=
  ofRows fun i => (rowOf i s).step p.BN
    (mul (maxOver p.BN fun j => p.wholeProduct pid t i j) p.scale)
    (fun j => mul (p.wholeProduct pid t i j) p.scale) (fun j c => p.wholeValue pid t j c)
/-- One tile with mask code. -/
@[expose] def checkedBody (s : State R) : State R :=
  ofRows fun i => (rowOf i s).step p.BN (maxOver p.BN fun j => p.checkedScore pid t i j)
    (fun j => p.checkedScore pid t i j) (fun j c => p.checkedValue pid t j c)

/-- The state before any key. -/
@[expose] def init : State R := (fun _ => ninf, fun _ => num 0, fun _ _ => num 0)
/-- The state after the left edge of the window. -/
@[expose] def afterLeft : State R :=
  match p.left with
  | none => init
  | some _ => forRange (p.first pid) (p.wholeFirst pid) (fun t => p.checkedBody pid t) init
/-- The state after all tiles. -/
@[expose] def result : State R :=
  forRange (p.wholeStop pid) (p.stop pid) (fun t => p.checkedBody pid t)
    (forRange (p.wholeFirst pid) (p.wholeStop pid) (fun t => p.wholeBody pid t)
      (p.afterLeft pid))

/-- The stored output. -/
@[expose] def storeOut (i c : Nat) : Store (Flt R) :=
  ⟨⟨p.stored pid (decide (p.row pid i < p.qLen) && decide ((c : Int) < p.valueDim)),
      p.outAt pid i c⟩,
    div ((p.result pid).2.2 i c)
      (if oeq ((p.result pid).2.1 i) (num 0) then num 1 else (p.result pid).2.1 i)⟩
/-- The stored log-sum-exp. -/
@[expose] def storeLse (i : Nat) : Store (Flt R) :=
  ⟨⟨p.stored pid (decide (p.row pid i < p.qLen)), p.lseAt pid i⟩,
    add (mul ((p.result pid).1 i) (num p.ln2))
      (log p.ln (if oeq ((p.result pid).2.1 i) (num 0) then num 1 else (p.result pid).2.1 i))⟩

end Problem

end Attention.Kernel
