module

public import Attention.Vectors.NaturalFamilies
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
def vectors {α : Type} (name : String) (vector : String → α → Except String String) (i : Nat) :
    List α → Except String (List String)
  | [] => .ok []
  | c :: cases => do
    let id := name ++ "-" ++ number i
    match vector id c with
    | .error e => throw s!"{id}: {e}"
    | .ok text => return text :: (← vectors name vector (i + 1) cases)

/-- Writes the file of a family. -/
def writeFile (folder : System.FilePath) (name about model : String) :
    Except String (List String) → IO Unit
  | .error e => throw (IO.userError e)
  | .ok vs => do
    IO.FS.writeFile (folder / (name ++ ".json")) (Json.file name about model vs)
    IO.println s!"{name}: {vs.length} vectors"

/-- Writes the file of each family; the seed of a family is its place in the list, so a new family
at the end changes no other. -/
def write (folder : System.FilePath) (seed : Nat) : List Family → IO Unit
  | [] => return ()
  | family :: rest => do
    let (cases, _) := family.cases.run (1 + seed)
    writeFile folder family.name family.about "exact" <| vectors family.name
      (fun id c => do return Json.vector id family.theoremId c (← c.run)) 0 cases
    write folder (seed + 1) rest

/-- The same for the families of the natural exponential, which have seeds of their own. -/
def writeNatural (folder : System.FilePath) (seed : Nat) : List NaturalFamily → IO Unit
  | [] => return ()
  | family :: rest => do
    let (cases, _) := family.cases.run (1000 + seed)
    writeFile folder family.name family.about "natural" <| vectors family.name
      (fun id c => do return Json.naturalVector id c (← c.run)) 0 cases
    writeNatural folder (seed + 1) rest

/-- Entry point: one argument, an existing folder. -/
def main : List String → IO Unit
  | [folder] => do
    write folder 0 families
    writeNatural folder 0 naturalFamilies
  | args => throw (IO.userError s!"expected one argument, an existing folder, got {args.length}")

end Attention.Vectors.Main
