module

public import Attention.Algebra.Vector

public section

/-! # Which shards see each other

Whether some query of one device sees some key of another, found from the first place, the number
and the step of neighbours in their shards, by integer bounds and not pair by pair: causality,
windows, and documents in one sequence.
Source: the bounds are those of `TileBounds`, for runs of places with a step; Brandon et al. 2023,
"Striped Attention", section 3, for the causal mask of two shards with a step. -/

namespace Attention.Spec

/-! ## Places -/

/-- Whether two places belong to one document: the documents' prefix sums, `[0, n₀, n₀ + n₁, …]`;
`none`: the sequence is one document. -/
@[expose] def oneDocument (documents : Option (List Nat)) (i j : Nat) : Bool :=
  match documents with
  | none => true
  | some sums => (sums.zip sums.tail).any fun between =>
      decide (between.1 ≤ i ∧ i < between.2 ∧ between.1 ≤ j ∧ j < between.2)

/-- Whether the query at place i sees the key at place j:
i + shift − left ≤ j ≤ i + shift + right, in one document. -/
@[expose] def seesPlace (left right : Option Nat) (shift : Int) (documents : Option (List Nat))
    (i j : Nat) : Bool :=
  left.all (fun l => decide ((i : Int) + shift - (l : Nat) ≤ (j : Int))) &&
    right.all (fun r => decide ((j : Int) ≤ (i : Int) + shift + (r : Nat))) &&
    oneDocument documents i j

/-! ## Runs of places -/

/-- `size` neighbours in a shard, that stand in the sequence at `first`, first + step, … -/
structure Stretch where
  /-- The place of the first. -/
  first : Nat
  /-- How many they are. -/
  size : Nat
  /-- From the place of one to that of the next. -/
  step : Nat

/-- The places of a run. -/
@[expose] def Stretch.places (run : Stretch) : List Nat :=
  (List.range run.size).map fun k => run.first + run.step * k

/-- Places as runs of step 1, each as long as can be. -/
@[expose] def stretches : List Nat → List Stretch
  | [] => []
  | place :: places =>
    match stretches places with
    | [] => [⟨place, 1, 1⟩]
    | run :: rest =>
      if run.first = place + 1 then ⟨place, run.size + 1, 1⟩ :: rest
      else ⟨place, 1, 1⟩ :: run :: rest

/-- Places as one run of a step above 1, where they are one, else as stretches; `none`: there are
more than `most` of these. -/
@[expose] def runsOf (most : Nat) (places : List Nat) : Option (List Stretch) :=
  let run : Stretch := ⟨places.getD 0 0, places.length, places.getD 1 0 - places.getD 0 0⟩
  if 1 < run.step ∧ run.places = places then some [run]
  else
    let runs := stretches places
    if runs.length ≤ most then some runs else none

/-- The runs of a document alone, of stretches: from place `first` up to but without `stop`. -/
@[expose] def Stretch.part (first stop : Nat) (run : Stretch) : Stretch :=
  let low := max run.first first
  ⟨low, min (run.first + run.size) stop - low, 1⟩

/-! ## Bounds -/

/-- Of query number i of a run and key number j of another: the least j − i of those that see each
other; `none`: there is no bound. The first query stands `distance` after the first key. -/
@[expose] def leastApart (left : Option Nat) (step : Nat) (distance : Int) : Option Int :=
  match left with
  | none => none
  | some l => some (-(((l : Int) - distance) / (step : Int)))

/-- The greatest j − i of those that see each other. -/
@[expose] def mostApart (right : Option Nat) (step : Nat) (distance : Int) : Option Int :=
  match right with
  | none => none
  | some r => some ((distance + (r : Int)) / (step : Int))

/-- Whether some query of a run sees some key of another, both of this step: j − i can be all from
1 − size of the queries to size of the keys − 1. -/
@[expose] def Stretch.sees (left right : Option Nat) (shift : Int) (step : Nat)
    (queries keys : Stretch) : Bool :=
  let distance : Int := (queries.first : Int) + shift - (keys.first : Int)
  let lowest : Int := 1 - (queries.size : Int)
  let highest : Int := (keys.size : Int) - 1
  let least := leastApart left step distance
  let greatest := mostApart right step distance
  decide (0 < queries.size) && decide (0 < keys.size) &&
    least.all (fun x => decide (x ≤ highest) && greatest.all fun y => decide (x ≤ y)) &&
    greatest.all fun y => decide (lowest ≤ y)

/-- The step of the runs of a shard; `none` where they hold so few places that any is. -/
@[expose] def stepOf (runs : List Stretch) : Option Nat :=
  if (runs.flatMap Stretch.places).length < 2 then none
  else some (runs.foldl (fun step run => max step run.step) 1)

/-- The one step of two shards; `none` if they have two. -/
@[expose] def commonStep (queries keys : List Stretch) : Option Nat :=
  match stepOf queries, stepOf keys with
  | none, none => some 1
  | none, some step => some step
  | some step, none => some step
  | some step, some other => if step = other then some step else none

/-- Whether some query of one shard sees some key of another, by their runs: of one document, where
there are several, and these of stretches. -/
@[expose] def runsSee (left right : Option Nat) (shift : Int) (documents : Option (List Nat))
    (step : Nat) (queries keys : List Stretch) : Bool :=
  match documents with
  | none => queries.any fun a => keys.any fun b => a.sees left right shift step b
  | some sums => (sums.zip sums.tail).any fun between =>
      queries.any fun a => keys.any fun b =>
        (a.part between.1 between.2).sees left right shift 1 (b.part between.1 between.2)

/-- Whether a device computes its queries with the keys of another, by the places of both. Shards
that are not runs of one step, or of another than 1 with documents, do, unless one is empty. -/
@[expose] def meets (most : Nat) (left right : Option Nat) (shift : Int)
    (documents : Option (List Nat)) (queries keys : List Nat) : Bool :=
  let both := decide (0 < queries.length) && decide (0 < keys.length)
  match runsOf most queries, runsOf most keys with
  | some ours, some theirs =>
    match commonStep ours theirs with
    | none => both
    | some step =>
      if documents.all (fun _ => decide (step = 1)) then
        runsSee left right shift documents step ours theirs
      else both
  | _, _ => both

end Attention.Spec
