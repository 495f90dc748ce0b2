module

public import Attention.Spec.ScoreTemperature
public import Attention.Vectors.Natural
public import Attention.Vectors.SampledParts

public section

/-! # Cases of real sizes, of which some rows are computed

A batch with heads, past every tile that kernels use. Its numbers are drawn by rule, and the results
are those of some queries of each head: rows of attention do not depend on each other. -/

namespace Attention.Vectors

open Spec Model

universe u

/-- Inputs of attention with a batch and heads, with the reason why they are worth testing. -/
structure SampledCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score; none: 1 / √head_dim. -/
  scale : Option Rat
  /-- How many sequences. -/
  batch : Nat := 1
  /-- Number of heads of K and V of a sequence. -/
  num_kv_heads : Nat := 1
  /-- How many query heads share one of them. -/
  group : Nat := 1
  /-- Number of queries of each head. -/
  q_len : Nat
  /-- Number of keys of each head. -/
  kv_len : Nat
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- The entries of Q, of all heads of all sequences. -/
  q : Rule
  /-- The entries of K. -/
  k : Rule
  /-- The entries of V. -/
  v : Rule
  /-- Which keys each query may attend to: one for all query heads of all sequences, or one for
  each. -/
  masks : List MaskKind := [.none]
  /-- The queries of each head whose results are wanted. -/
  rows : List Nat
  /-- The bound of the scores; none: unbounded. -/
  softcap : Option Rat := none
  /-- Where query 0 stands, and for each head how much a score loses with each step of distance. -/
  alibi : Option (Alignment × List Rat) := none
  /-- Numbers to add to the scores, for each head a matrix that all sequences share. -/
  bias : Option Rule := none
  /-- For each head one more score in every softmax, without a value. -/
  sinks : Option (List Rat) := none
  /-- For each head a factor of its scores. -/
  temperatures : Option (List Rat) := none
  /-- The probability to drop a weight, and the seed. -/
  dropout : Option (Rat × Nat) := none
  /-- The numbers of queries and of keys of sequences that lie packed in each head; none: one
  sequence. The mask is then that of each sequence. -/
  packed : Option (List Nat × List Nat) := none

/-- The same with the natural exponential. -/
structure NaturalSampledCase where
  /-- The inputs. -/
  inputs : SampledCase

/-- Some rows of a matrix. -/
@[expose] def pickRows {α : Type u} {m n d : Nat} (rows : Vector (Fin m) n) (X : Matrix α m d) :
    Matrix α n d := Vec.ofFn fun r => X[rows[r]]

/-- What becomes of the scores of some rows: what becomes of them in the whole. -/
@[expose] def pickMod {S : Type u} {q_len kv_len n : Nat} (rows : Vector (Fin q_len) n)
    (modify : ScoreMod S q_len kv_len) : ScoreMod S n kv_len := fun r => modify rows[r]

/-- What the weights of some rows are multiplied by: what they are in the whole. -/
@[expose] def pickFactor {R : Type u} {q_len kv_len n : Nat} (rows : Vector (Fin q_len) n)
    (Z : WeightFactor R q_len kv_len) : WeightFactor R n kv_len := fun r => Z rows[r]

namespace SampledCase

variable (c : SampledCase)

/-- Number of query heads of a sequence. -/
@[expose] def heads : Nat := c.num_kv_heads * c.group

/-- A matrix of `m` rows and `n` columns, the one with this number. -/
@[expose] def part {α : Type u} (xs : Array Int) (of : Int → α) (number m n : Nat) :
    Matrix α m n :=
  Vec.ofFn fun i => Vec.ofFn fun j => of xs[(number * m + i.val) * n + j.val]!

/-- The mask of a query head, by its number among those of all sequences. -/
@[expose] def maskOf (number : Nat) : Mask c.q_len c.kv_len :=
  maskOfHead c.masks c.packed number

/-- The keys as each wanted query sees them, for each query head of each sequence. toScore, toValue:
a numerator as a number. modify: what becomes of the scores of a head, by its number in its
sequence, before they are masked. factors: what the weights of a head are multiplied by, by its
number among those of all sequences; none: nothing. -/
@[expose] def seen {S R : Type} [Add S] [Mul S] [OfNat S 0] [Inhabited S] [Inhabited R] [Mul R]
    (scale : S) (toScore : Nat → Int → S) (toValue : Nat → Int → R)
    (modify : Nat → ScoreMod S c.q_len c.kv_len)
    (factors : Option (Nat → WeightFactor R c.q_len c.kv_len) := none) :
    Except String (List (List (List (ScoredValue S R c.value_dim)))) := do
  c.q.check
  c.k.check
  c.v.check
  checkPacked c.q_len c.kv_len c.masks c.packed
  unless c.packed.isNone ∨ c.batch = 1 do throw "packed sequences have no batch"
  (c.temperatures.map (checkTemperatures c.heads · c.q)).getD (.ok ())
  let rows := indices c.q_len c.rows
  unless rows.length = c.rows.length ∧ (c.masks.length = 1 ∨ c.masks.length = c.batch * c.heads) do
    throw "rows or masks do not fit the sizes"
  let rows : Vector (Fin c.q_len) rows.length := ⟨rows.toArray, by simp⟩
  let qs := c.q.numerators (c.batch * c.heads * c.q_len * c.head_dim)
  let ks := c.k.numerators (c.batch * c.num_kv_heads * c.kv_len * c.head_dim)
  let vs := c.v.numerators (c.batch * c.num_kv_heads * c.kv_len * c.value_dim)
  return (List.range (c.batch * c.heads)).map fun number =>
    let Q := pickRows rows (part qs (toScore c.q.over) number c.q_len c.head_dim)
    let K : Matrix S c.kv_len c.head_dim := part ks (toScore c.k.over) (number / c.group) _ _
    let V : Matrix R c.kv_len c.value_dim := part vs (toValue c.v.over) (number / c.group) _ _
    let whole := (modify (number % c.heads)).andThen (c.maskOf number).toScoreMod
    (List.finRange rows.toList.length).map fun r =>
      let keys := List.finRange c.kv_len
      match factors with
      | none => scored scale (pickMod rows whole) Q K V ⟨r.val, by simpa using r.isLt⟩ keys
      | some Z => scoredDropout scale (pickMod rows whole) Q K V (pickFactor rows (Z number))
          ⟨r.val, by simpa using r.isLt⟩ keys

/-- The outcome of a row. Maximum and denominator need no values. -/
@[expose] def outcome {d : Nat} (row : List (ScoredValue Int Rat d)) : RowResult :=
  let scores : List (ScoredValue Int Rat 0) := row.map fun x => ⟨x.score, Vec.zero⟩
  { rowResult scores Vec.zero with output := (attend row).toList }

/-- Runs the Spec over the exact model: for each query head of each sequence the wanted rows. Of
what changes scores it has temperatures, which are integers. -/
@[expose] def run : Except String (List (List RowResult)) := do
  unless c.softcap.isNone ∧ c.alibi.isNone ∧ c.bias.isNone ∧ c.sinks.isNone do
    throw "the exact model has no place for what changes scores"
  let some scale := c.scale | throw "the exact model has no default scale"
  unless scale.den = 1 ∧ c.q.over = 1 ∧ c.k.over = 1 do throw "scores have to be integers"
  let ts := c.temperatures.getD (List.replicate c.heads 1)
  unless ts.all (·.den = 1) do throw "temperatures have to be integers"
  let heads ← c.seen (R := Rat) scale.num (fun _ x => x) (fun over x => mkRat x over)
    (fun h => .temperature (ts[h]!).num) (← factorsOf id c.dropout)
  return heads.map (·.map outcome)

end SampledCase

namespace NaturalSampledCase

section
variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [IntCast R] [Exp R R]
variable (number : Rat → R) (c : SampledCase)

/-- A numerator over a denominator as a number. number: a fraction as one. -/
@[expose] def quotient {R : Type u} (number : Rat → R) (over : Nat) (x : Int) : R :=
  number (mkRat x over)

/-- What becomes of the scores of a head, by its number in its sequence, before they are masked:
temperature, softcap, ALiBi, bias, in this order. added: the numerators of the bias. -/
@[expose] def changes (added : Array Int) (head : Nat) : ScoreMod R c.q_len c.kv_len :=
  let heated : ScoreMod R c.q_len c.kv_len :=
    c.temperatures.elim (fun _ _ s => some s) fun ts => .temperature (number ts[head]!)
  let changed := heated.andThen <| modified (q_len := c.q_len) (kv_len := c.kv_len) number
    c.softcap (c.alibi.map fun (alignment, slopes) => (alignment, slopes[head]!)) none .none
  match c.bias with
  | none => changed
  | some rule => changed.andThen fun i j s =>
    some (s + quotient number rule.over added[(head * c.q_len + i.val) * c.kv_len + j.val]!)

/-- The numerators of the bias, of all heads of a sequence. -/
@[expose] def added : Array Int :=
  (c.bias.map (·.numerators (c.heads * c.q_len * c.kv_len))).getD #[]

/-- The keys as a query of a query head sees them, by its number among those of all sequences, with
the sink if there is one. -/
@[expose] def sinkRow {d : Nat} (head : Nat) (row : List (ScoredValue R R d)) :
    List (ScoredValue R R d) :=
  match c.sinks with
  | none => row
  | some sinks => withSink (number sinks[head % c.heads]!) row

end

/-- Runs the Spec over intervals: for each query head of each sequence the wanted rows. -/
@[expose] def run (given : NaturalSampledCase) : Except String (List (List EnclosedRow)) := do
  let c := given.inputs
  unless c.dropout.isNone do throw "dropout is computed over the exact model alone"
  unless c.alibi.all (·.2.length = c.heads) ∧ c.sinks.all (·.length = c.heads) do
    throw "not one slope, or not one sink, for each head"
  checkExact (c.scale.toList ++ c.softcap.toList ++ (c.alibi.map (·.2)).getD []
    ++ c.sinks.getD [])
  (c.bias.map Rule.check).getD (.ok ())
  let added := added c
  let heads ← c.seen (scaleOf c.scale c.head_dim) (quotient ofRat) (quotient ofRat)
    (changes ofRat c added)
  (heads.zipIdx).mapM fun (rows, n) => rows.mapM fun row =>
    let row := sinkRow ofRat c n row
    enclosedRow (row.map (·.score)) (attend row)

end NaturalSampledCase

end Attention.Vectors
