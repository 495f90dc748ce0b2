module

public import Attention.Vectors.All
public import Attention.Vectors.SampledJson
public import Attention.Vectors.TangentJson
public import Attention.Vectors.TransformerJson
public import Attention.Vectors.Width

public section

/-! # The program that makes the vectors

`main [folder]` writes `folder/<family>.json` for every family. Several processes that are given the
same `[folder, claims]` write them together. -/

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

/-- Where files are written. `claims`: a folder that is empty when the first of several processes
starts; `none` for a process that makes every family. -/
structure Folder where
  path : System.FilePath
  claims : Option System.FilePath

/-- Whether a family is this process's to make: not if another has claimed it, by a folder of its
name. To make one that is there already fails, so only one process can. -/
def Folder.claim (folder : Folder) (name : String) : IO Bool := do
  let some claims := folder.claims | return true
  try
    IO.FS.createDir (claims / name)
    return true
  catch
    | .alreadyExists .. => return false
    | e => throw e

/-- Writes the file of a family. -/
def writeFile {Case : Type} (folder : System.FilePath) (family : Family Case)
    (operation model : String) : Except String (List String) → IO Unit
  | .error e => throw (IO.userError e)
  | .ok vs => do
    IO.FS.writeFile (folder / (family.name ++ ".json"))
      (Json.file family.name family.about operation model vs)
    IO.println s!"{family.name}: {vs.length} vectors"

/-- Writes the file of each family that this process claims. -/
def write {Case : Type} (folder : Folder) (operation model : String)
    (vector : String → String → Case → Except String String) : List (Family Case) → IO Unit
  | [] => return ()
  | family :: rest => do
    if ← folder.claim family.name then
      writeFile folder.path family operation model do
        vectors family.name (vector · family.theoremId) 0 (← family.draw)
    write folder operation model vector rest

/-- Writes the file of each family. -/
def writeAll (folder : Folder) : IO Unit := do
    match checkWidths with
    | .error e => throw (IO.userError e)
    | .ok () => pure ()
    -- These take longest: begun last, one would be left to a process alone.
    write folder "sampled-gradient" "natural"
      (fun id th c => return Json.sampledGradient id th c (← c.run)) sampledGradientCaseFamilies
    write folder "attention" "exact" (fun id th c => return Json.attention id th c (← c.run))
      caseFamilies
    write folder "attention" "natural"
      (fun id th c => return Json.naturalAttention id th c (← c.run)) naturalCaseFamilies
    write folder "grouped-query" "exact"
      (fun id th c => return Json.groupedQuery id th c (← c.run)) headsCaseFamilies
    write folder "varlen" "exact" (fun id th c => return Json.varlen id th c (← c.run))
      varlenCaseFamilies
    write folder "paged" "exact" (fun id th c => return Json.paged id th c (← c.run))
      pagedCaseFamilies
    write folder "cascade" "exact" (fun id th c => return Json.cascade id th c (← c.run))
      cascadeCaseFamilies
    write folder "shards" "exact" (fun id th c => return Json.shards id th c (← c.run))
      shardsCaseFamilies
    write folder "merge" "exact" (fun id th c => return Json.merge id th c (← c.run))
      mergeCaseFamilies
    write folder "cache" "exact" (fun id th c => return Json.cache id th c (← c.run))
      cacheCaseFamilies
    write folder "combine" "natural" (fun id th c => return Json.combine id th c (← c.run))
      combineCaseFamilies
    write folder "tile-bounds" "exact" (fun id th c => return Json.tileBounds id th c)
      tileBoundsCaseFamilies
    write folder "gradient" "exact" (fun id th c => do Json.gradient id th c (← c.run))
      gradientCaseFamilies
    write folder "gradient" "natural"
      (fun id th c => return Json.naturalGradient id th c (← c.run)) naturalGradientCaseFamilies
    write folder "tangent" "natural" (fun id th c => return Json.tangent id th c (← c.run))
      tangentCaseFamilies
    write folder "sampled" "exact" (fun id th c => return Json.sampled id th c (← c.run))
      sampledCaseFamilies
    write folder "sampled" "natural"
      (fun id th c => return Json.naturalSampled id th c (← c.run)) naturalSampledCaseFamilies
    write folder "varlen" "exact" Json.drawnVarlen drawnVarlenCaseFamilies
    write folder "paged" "exact" Json.drawnPaged drawnPagedCaseFamilies
    write folder "philox" "exact" (fun id th c => return Json.philox id th c) philoxCaseFamilies
    write folder "dropout" "exact" (fun id th c => return Json.dropout id th c (← c.run))
      dropoutCaseFamilies
    write folder "layer" "natural" (fun id th c => return Json.layer id th c (← c.inputs.run))
      layerCaseFamilies
    write folder "transformer" "natural"
      (fun id th c => return Json.transformer id th c (← c.run)) transformerCaseFamilies

/-- Entry point: one existing folder, or two, the second for the claims. -/
def main : List String → IO Unit
  | [folder] => writeAll ⟨folder, none⟩
  | [folder, claims] => writeAll ⟨folder, some claims⟩
  | args => throw (IO.userError s!"expected one or two existing folders, got {args.length}")

end Attention.Vectors.Main
