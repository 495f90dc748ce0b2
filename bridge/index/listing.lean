module

public import Lean.DeclarationRange
public import Lean.DocString.Extension
public import Lean.PrettyPrinter

public section

/-! # Lists what the stored modules of a library declare

Standard input: a line for each module of the library, its name and its stored output, separated by
a tab. Prints lines that begin with `@@` and hold JSON: one for each constant, and a last one with
how many there were. Run as it stands by `bridge/index/extract.py`.

Types, terms, positions and docstrings are read from the stored parts of each module: importing it
would show neither proofs nor what is private. The modules are imported too, for the notations that
the statements are printed with. -/

namespace Bridge.Index

open Lean

/-- A constant as it is stored. -/
structure Stored where
  info : ConstantInfo
  module : Name

/-- What the parts of all modules hold. -/
structure Library where
  constants : List Stored := []
  ranges : NameMap DeclarationRanges := {}
  docs : NameMap String := {}

/-- The entries of one extension among those of a module. -/
def entriesOf (extension : Name) (entries : Array (Name × Array EnvExtensionEntry)) :
    List EnvExtensionEntry :=
  ((entries.toList.filter fun e => e.1 == extension).map fun e => e.2.toList).flatten

unsafe def pairsOf (α : Type) (extension : Name) (data : ModuleData) : List (Name × α) :=
  (entriesOf extension data.entries).map fun entry => unsafeCast entry

unsafe def readModule (library : Library) (module : Name) (olean : String) : IO Library := do
  let parts ← readModuleDataParts #[olean, olean ++ ".server", olean ++ ".private"]
  match parts.toList with
  | [_, _, (full, _)] =>
    let ranges := pairsOf DeclarationRanges ``Lean.declRangeExt full
    let docs := pairsOf String `Lean.docStringExt full
    return {
      constants := full.constants.toList.foldl (fun cs info => { info, module } :: cs)
        library.constants
      ranges := ranges.foldl (fun map (name, range) => map.insert name range) library.ranges
      docs := docs.foldl (fun map (name, doc) => map.insert name doc) library.docs }
  | _ => throw (IO.userError (olean ++ " has no private part"))

unsafe def readAll (stdin : IO.FS.Stream) (library : Library) (modules : List Name) :
    IO (Library × List Name) := do
  let line ← stdin.getLine
  match line.trimAscii.toString.splitOn "\t" with
  | [module, olean] =>
    let name := module.toName
    readAll stdin (← readModule library name olean) (name :: modules)
  | _ => return (library, modules.reverse)

/-- Importers see no private constants: those that stand in a file are added without content, so
that they can be printed. -/
def withPrivate (env : Environment) (ranges : NameMap DeclarationRanges) :
    List Stored → Environment
  | [] => env
  | { info, .. } :: rest =>
    if env.contains info.name || !ranges.contains info.name then withPrivate env ranges rest
    else
      let decl := .axiomDecl {
        name := info.name, levelParams := info.levelParams, type := info.type, isUnsafe := false }
      match env.addDeclCore 0 decl none (doCheck := false) with
      | .ok env => withPrivate env ranges rest
      | .error _ => withPrivate env ranges rest

def kind : ConstantInfo → String
  | .thmInfo _ => "theorem"
  | .defnInfo _ => "definition"
  | .axiomInfo _ => "axiom"
  | .opaqueInfo _ => "opaque"
  | .inductInfo _ => "inductive"
  | .ctorInfo _ => "constructor"
  | .recInfo _ => "recursor"
  | .quotInfo _ => "quotient"

/-- All constants that a declaration rests on directly, those of its type left out. -/
def usesOfValue (info : ConstantInfo) : List Name :=
  let ofType := info.type.getUsedConstantsAsSet
  info.getUsedConstantsAsSet.toList.filter fun name => !ofType.contains name

def strings (names : List Name) : List String := names.map fun name => name.toString

/-- The declaration as it would be written, up to its value. -/
def statement (env : Environment) (name : Name) : IO String := do
  let context : Core.Context := {
    fileName := "<index>", fileMap := default
    currNamespace := (privateToUserName name).getPrefix }
  let work : MetaM Format := do return (← PrettyPrinter.ppSignature name).fmt
  let (format, _) ← (work.run' {}).toIO context { env }
  return format.pretty (width := 100)

def position (range : DeclarationRange) : List Nat :=
  [range.pos.line, range.pos.column, range.endPos.line, range.endPos.column]

def print (env : Environment) (library : Library) (stored : Stored) : IO Unit := do
  let { info, module } := stored
  let base := [
    ("name", toJson info.name.toString),
    ("module", toJson module.toString),
    ("kind", toJson (kind info)),
    ("uses_of_type", toJson (strings info.type.getUsedConstantsAsSet.toList)),
    ("uses_of_value", toJson (strings (usesOfValue info)))]
  let more ← match library.ranges.find? info.name with
    | none => pure []
    | some ranges =>
      pure [
        ("user_name", toJson (privateToUserName info.name).toString),
        ("statement", toJson (← statement env info.name)),
        ("doc", toJson (library.docs.find? info.name)),
        ("range", toJson (position ranges.range)),
        ("name_range", toJson (position ranges.selectionRange))]
  IO.println ("@@ " ++ (Json.mkObj (base ++ more)).compress)

def printAll (env : Environment) (library : Library) : List Stored → IO Unit
  | [] => return ()
  | stored :: rest => do
    print env library stored
    printAll env library rest

/-- Answers what standard input asks for. -/
unsafe def answerInput : IO Unit := do
  let (library, modules) ← readAll (← IO.getStdin) {} []
  let imports := modules.foldl (fun all module => all.push { module : Import })
    #[({ module := `Init } : Import)]
  let (_, state) ← (importModulesCore imports (globalLevel := .exported)
    (isExported := true)).run default
  let env ← finalizeImport state imports {} 0 false true (level := .exported) (isModule := true)
  let env := withPrivate (env.setExporting false) library.ranges library.constants
  printAll env library library.constants
  IO.println ("@@ " ++ (Json.mkObj [("listed", toJson library.constants.length)]).compress)
  (← IO.getStdout).flush

end Bridge.Index

/-- In a thread of its own, which has the stack that deep recursion in interpreted code needs: the
main thread of the embedded Lean has 64 KiB, and does not tell when they are used up. -/
unsafe def main (_ : List String) : IO Unit := do
  let task ← IO.asTask (prio := .dedicated) Bridge.Index.answerInput
  IO.ofExcept task.get
  IO.Process.exit 0
