module

public import Attention.Spec.Online

public section

/-! # Two memories, and programs that are counted

A program moves rows between a slow memory, where inputs and output lie, and a fast one, where alone
it can compute. It is data: a list of instructions that is written down before any input is there.
An operation is a function of what lies in fast memory, so what a program knows of an input it has
loaded, and loading is counted. What it keeps lies in one of the two memories, and both are measured
by what they hold, not by what a program says of itself.

Counted are elements: a number, or a masked score, is one element. A row of queries, keys or values
has as many as the head dimension; a state of online softmax has m, l, and those of o.

Not captured: the numbers of tile sizes and places, what an operation needs beyond its operands and
its result (they are in fast memory at the same time; nothing is overwritten in place), what a mask
or score transformation is made from, the size of an element in bytes, and time.
Source: Hong & Kung 1981, "I/O complexity: the red-blue pebble game", for the two memories; Dao et
al. 2022, "FlashAttention", section 2.1 (HBM and SRAM). -/

namespace Attention.Model

open Spec Spec.Online

universe u v

/-- The kinds of rows that an array has. -/
inductive Row where
  /-- A query or a key, of `d` components. -/
  | scores (d : Nat)
  /-- A value or an output, of `d` components. -/
  | values (d : Nat)
  /-- The scores of one query and some keys, masked ones too. -/
  | masked
  /-- The softmax weights of one query and some keys. -/
  | weights
  /-- The state of online softmax of one query, for values of `d` components. -/
  | state (d : Nat)

/-- The rows of a kind, over scores `S` and values `R`. -/
abbrev Row.Val (S R : Type u) : Row → Type u
  | scores d => Vec S d
  | values d => Vec R d
  | masked => List (Option S)
  | weights => List R
  | state d => State S R d

/-- The elements of one row. -/
@[expose] def Row.size {S R : Type u} : (ρ : Row) → ρ.Val S R → Nat
  | scores d, _ => d
  | values d, _ => d
  | masked, row => row.length
  | weights, row => row.length
  | state d, _ => 2 + d

/-- The elements of some rows. -/
@[expose] def Row.sizes {S R : Type u} (ρ : Row) (rows : List (ρ.Val S R)) : Nat :=
  (rows.map ρ.size).sum

/-- The contents of a memory: for each kind of the list an array, which is a list of rows. -/
inductive Memory (S R : Type u) : List Row → Type u where
  /-- A memory without arrays. -/
  | nil : Memory S R []
  /-- One array more. -/
  | cons {ρ : Row} {Γ : List Row} (array : List (ρ.Val S R)) (rest : Memory S R Γ) :
    Memory S R (ρ :: Γ)

/-- Which array of a memory. -/
inductive Place : List Row → Row → Type where
  /-- The first. -/
  | here {ρ : Row} {Γ : List Row} : Place (ρ :: Γ) ρ
  /-- One after the first. -/
  | there {ρ σ : Row} {Γ : List Row} (place : Place Γ ρ) : Place (σ :: Γ) ρ

namespace Memory

variable {S R : Type u}

/-- The elements of all arrays. -/
@[expose] def size : {Γ : List Row} → Memory S R Γ → Nat
  | _, nil => 0
  | _, cons (ρ := ρ) array rest => ρ.sizes array + rest.size

/-- The array at a place. -/
@[expose] def get {ρ : Row} : {Γ : List Row} → Place Γ ρ → Memory S R Γ → List (ρ.Val S R)
  | _, .here, cons array _ => array
  | _, .there place, cons _ rest => rest.get place

/-- Rows written behind those of the array at a place. -/
@[expose] def append {ρ : Row} (rows : List (ρ.Val S R)) :
    {Γ : List Row} → Place Γ ρ → Memory S R Γ → Memory S R Γ
  | _, .here, cons array rest => cons (array ++ rows) rest
  | _, .there place, cons array rest => cons array (rest.append rows place)

end Memory

/-- Programs over a slow memory `Δ`, from a fast memory `Γ` to a fast memory `Γ'`. The type mentions
no input: a program cannot hold one. -/
inductive Program (S R : Type u) (Δ : List Row) : List Row → List Row → Type u where
  /-- Nothing. -/
  | skip {Γ : List Row} : Program S R Δ Γ Γ
  /-- One after the other. -/
  | seq {Γ Γ' Γ'' : List Row} (first : Program S R Δ Γ Γ') (second : Program S R Δ Γ' Γ'') :
    Program S R Δ Γ Γ''
  /-- Read these rows of an array of slow memory into fast memory. -/
  | load {Γ : List Row} {ρ : Row} (array : Place Δ ρ) (rows : List Nat) : Program S R Δ Γ (ρ :: Γ)
  /-- Compute an array of fast memory from all that lies there; the operands stay. -/
  | compute {Γ : List Row} (ρ : Row) (f : Memory S R Γ → List (ρ.Val S R)) :
    Program S R Δ Γ (ρ :: Γ)
  /-- Free the first array of fast memory. -/
  | free {Γ : List Row} {ρ : Row} : Program S R Δ (ρ :: Γ) Γ
  /-- Free the second array of fast memory. -/
  | freeSecond {Γ : List Row} {ρ σ : Row} : Program S R Δ (σ :: ρ :: Γ) (σ :: Γ)
  /-- Write the first array of fast memory behind the rows of an array of slow memory; free it. -/
  | store {Γ : List Row} {ρ : Row} (array : Place Δ ρ) : Program S R Δ (ρ :: Γ) Γ

/-- A program for each of some things, one after the other. -/
@[expose] def Program.forEach {S R : Type u} {α : Type v} {Δ Γ : List Row}
    (body : α → Program S R Δ Γ Γ) : List α → Program S R Δ Γ Γ
  | [] => skip
  | x :: xs => seq (body x) (forEach body xs)

/-- The counts: elements read from slow memory and written to it, and the most elements that
either memory held. -/
structure Counts where
  /-- Elements moved from slow to fast memory. -/
  reads : Nat
  /-- Elements moved from fast to slow memory. -/
  writes : Nat
  /-- The most elements in slow memory at any time, inputs and output among them. -/
  slowPeak : Nat
  /-- The most elements in fast memory at any time. -/
  fastPeak : Nat

/-- Elements moved between the two memories. -/
@[expose] def Counts.transfers (counts : Counts) : Nat := counts.reads + counts.writes

/-- Both memories, and the counts so far. -/
structure Machine (S R : Type u) (Δ Γ : List Row) where
  /-- Slow memory. -/
  slow : Memory S R Δ
  /-- Fast memory. -/
  fast : Memory S R Γ
  /-- The counts so far. -/
  counts : Counts

/-- The machine before a program: inputs in slow memory, nothing in fast memory. -/
@[expose] def Machine.start {S R : Type u} {Δ : List Row} (slow : Memory S R Δ) :
    Machine S R Δ [] :=
  ⟨slow, .nil, ⟨0, 0, slow.size, 0⟩⟩

/-- Run a program, and count. -/
@[expose] def Program.run {S R : Type u} {Δ : List Row} :
    {Γ Γ' : List Row} → Program S R Δ Γ Γ' → Machine S R Δ Γ → Machine S R Δ Γ'
  | _, _, skip, machine => machine
  | _, _, seq first second, machine => second.run (first.run machine)
  | _, _, load (ρ := ρ) array rows, ⟨slow, fast, counts⟩ =>
    let loaded := rows.filterMap fun i => (slow.get array)[i]?
    let fast := Memory.cons loaded fast
    ⟨slow, fast, { counts with
      reads := counts.reads + ρ.sizes loaded
      fastPeak := max counts.fastPeak fast.size }⟩
  | _, _, compute _ f, ⟨slow, fast, counts⟩ =>
    let fast := Memory.cons (f fast) fast
    ⟨slow, fast, { counts with fastPeak := max counts.fastPeak fast.size }⟩
  | _, _, free, ⟨slow, .cons _ rest, counts⟩ => ⟨slow, rest, counts⟩
  | _, _, freeSecond, ⟨slow, .cons array (.cons _ rest), counts⟩ => ⟨slow, .cons array rest, counts⟩
  | _, _, store (ρ := ρ) array, ⟨slow, .cons rows rest, counts⟩ =>
    let slow := slow.append rows array
    ⟨slow, rest, { counts with
      writes := counts.writes + ρ.sizes rows
      slowPeak := max counts.slowPeak slow.size }⟩

end Attention.Model
