module

public import Attention.Vectors.Natural

public section

/-! # Cases and results as JSON text

Laid out by hand, one field to a line and matrices by rows, so that a change of one number is a
change of one line. -/

namespace Attention.Vectors.Json

open Spec

/-- A string that needs no escapes, quoted. -/
def str (s : String) : String := "\"" ++ s ++ "\""

/-- A list of JSON texts as an array on one line. -/
def array (xs : List String) : String := "[" ++ ", ".intercalate xs ++ "]"

/-- Fields as an object on one line. -/
def object (fields : List (String × String)) : String :=
  "{" ++ ", ".intercalate (fields.map fun (name, value) => str name ++ ": " ++ value) ++ "}"

/-- A rational as a string: `"p"` or `"p/q"` in lowest terms. -/
def rat (x : Rat) : String :=
  str (if x.den = 1 then toString x.num else toString x.num ++ "/" ++ toString x.den)

/-- JSON texts one below the other, `indent` spaces in. -/
def lines (indent : Nat) (xs : List String) : String :=
  let pad := "\n" ++ String.ofList (List.replicate indent ' ')
  "[" ++ pad ++ ("," ++ pad).intercalate xs ++ "]"

/-- A matrix, a row to a line. -/
def matrix (rows : List (List Rat)) : String := lines 5 (rows.map fun row => array (row.map rat))

/-- A number of keys; none: all. -/
def bound : Option Nat → String
  | none => "null"
  | some n => toString n

/-- Booleans: 1 for true. -/
def bits (row : List Bool) : String := String.ofList (row.map fun b => if b then '1' else '0')

/-- A mask. -/
def mask : MaskKind → String
  | .none => object [("kind", str "none")]
  | .causal => object [("kind", str "causal")]
  | .causalBottomRight => object [("kind", str "causal-bottom-right")]
  | .window alignment left right =>
    object [("kind", str "window"),
      ("alignment", str (alignmentName alignment)), ("left", bound left), ("right", bound right)]
  | .keyLength length => object [("kind", str "key-length"), ("length", toString length)]
  | .keyPadding valid => object [("kind", str "key-padding"), ("valid", str (bits valid))]
  | .document queries keys =>
    object [("kind", str "document"), ("queries", array (queries.map toString)),
      ("keys", array (keys.map toString))]
  | .boolean rows =>
    object [("kind", str "boolean"), ("rows", lines 5 (rows.map fun row => str (bits row)))]

/-- A number, or null. -/
def optional : Option Rat → String
  | none => "null"
  | some x => rat x

/-- The outcome of a row: one denominator for the whole output, and integer numerators. -/
def rowResult (r : RowResult) : String :=
  let den : Nat := r.output.foldl (fun n x => Nat.lcm n x.den) 1
  let numerators := r.output.map fun x => rat (x * den)
  let exact := match r.logSumExp with
    | none => []
    | some L => [("log2_sum_exp", rat L)]
  object <| [
    ("max", optional (r.max.map fun (m : Int) => (m : Rat))),
    ("denominator", rat r.denominator),
    ("output", object [("denominator", rat den), ("numerators", array numerators)])] ++ exact

/-- Bounds of numbers, as integers over one power of two. -/
def bounds (xs : List (Int × Int)) : List (String × String) :=
  [("lower", array (xs.map fun (lo, _) => rat lo)), ("upper", array (xs.map fun (_, hi) => rat hi))]

/-- The enclosed outcome of a row. -/
def enclosedRow (r : EnclosedRow) : String :=
  let lse := match r.logSumExp with
    | none => "null"
    | some (lo, hi) => object [("lower", rat lo), ("upper", rat hi)]
  object [("log_sum_exp", lse), ("output", object (bounds r.output))]

/-- A vector: what all have in common, and its own fields, one to a line. -/
def vector (id lean theoremId reason : String) (fields : List (String × String)) : String :=
  let all := [("id", str id), ("lean", str lean), ("theorem", str theoremId),
    ("reason", str reason)] ++ fields
  "  {" ++ ",\n   ".intercalate (all.map fun (name, value) => str name ++ ": " ++ value) ++ "}"

/-- A case of attention over the exact model, with its outcome. -/
def attention (id theoremId : String) (c : Case) (rows : List RowResult) : String :=
  vector id c.algorithm.leanName theoremId c.reason <| [
    ("q_len", toString c.q.length), ("kv_len", toString c.k.length),
    ("head_dim", toString c.head_dim), ("value_dim", toString c.value_dim),
    ("scale", rat c.scale), ("q", matrix (rats c.q)), ("k", matrix (rats c.k)), ("v", matrix c.v),
    ("mask", mask c.mask)]
    ++ c.algorithm.sink.toList.map (fun (sink : Int) => ("sink", rat sink))
    ++ [("expected", lines 5 (rows.map rowResult))]

/-- A case of attention with the natural exponential, with its outcome. -/
def naturalAttention (id theoremId : String) (c : NaturalCase) (rows : List EnclosedRow) : String :=
  let given := [
    ("softcap", c.softcap.map rat),
    ("alibi", c.alibi.map fun (alignment, slope) =>
      object [("alignment", str (alignmentName alignment)), ("slope", rat slope)]),
    ("bias", c.bias.map fun rows => lines 5 (rows.map fun row => array (row.map optional))),
    ("sink", c.sink.map rat)]
  vector id c.leanName theoremId c.reason <| [
    ("q_len", toString c.q.length), ("kv_len", toString c.k.length),
    ("head_dim", toString c.head_dim), ("value_dim", toString c.value_dim),
    ("scale", match c.scale with | none => str "default" | some s => rat s),
    ("q", matrix c.q), ("k", matrix c.k), ("v", matrix c.v), ("mask", mask c.mask)]
    ++ given.filterMap (fun (name, value) => value.map (name, ·))
    ++ [("expected", lines 5 (rows.map enclosedRow))]

/-- A whole file. -/
def file (family about operation model : String) (vectors : List String) : String :=
  let fields := [
    ("format", str "attention-vectors-2"), ("family", str family), ("about", str about),
    ("operation", str operation), ("model", str model)]
  let head := fields.map fun (name, value) => str name ++ ": " ++ value ++ ",\n "
  "{" ++ String.join head ++ "\"vectors\": [\n" ++ ",\n".intercalate vectors ++ "\n]}\n"

end Attention.Vectors.Json
