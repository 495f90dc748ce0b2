module

public import Attention.Vectors.Families
public import Attention.Vectors.Json

public section

/-! # The program that makes the vectors

`main [folder]` writes `folder/<family>.json` for every family. -/

namespace Attention.Vectors.Main

/-- Numbers from 000 up. -/
def number (i : Nat) : String :=
  let s := toString i
  String.ofList (List.replicate (3 - s.length) '0') ++ s

/-- The vectors of some cases, numbered from `i`. -/
def vectors (family : Family) (i : Nat) : List Case → Except String (List String)
  | [] => .ok []
  | c :: cases => do
    let id := family.name ++ "-" ++ number i
    match c.run with
    | .error e => throw s!"{id}: {e}"
    | .ok rows => return Json.vector id family.theoremId c rows :: (← vectors family (i + 1) cases)

/-- Writes the file of each family; the seed of a family is its place in the list, so a new family
at the end changes no other. -/
def write (folder : System.FilePath) (seed : Nat) : List Family → IO Unit
  | [] => return ()
  | family :: rest => do
    let (cases, _) := family.cases.run (1 + seed)
    match vectors family 0 cases with
    | .error e => throw (IO.userError e)
    | .ok vs =>
      IO.FS.writeFile (folder / (family.name ++ ".json")) (Json.file family.name family.about vs)
      IO.println s!"{family.name}: {vs.length} vectors"
    write folder (seed + 1) rest

/-- Entry point: one argument, an existing folder. -/
def main : List String → IO Unit
  | [folder] => write folder 0 families
  | args => throw (IO.userError s!"expected one argument, an existing folder, got {args.length}")

end Attention.Vectors.Main
