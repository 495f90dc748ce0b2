module

public import Lean.Replay
public import Lean.Util.CollectAxioms

public section

/-! # Looks through the stored proof terms of a library, and has the kernel check them again

Argument: the folder of Lean's own modules as they were shipped. Standard input: a line for each module
of the library, its name and its stock output, separated by a tab. Prints lines that begin with `@@` and
hold JSON: one for each declaration, one for the replay. -/

namespace Bridge.Audit

open Lean

/-- A constant of the library and the module that declares it. -/
structure Own where
  info : ConstantInfo
  module : Name

abbrev Library := Std.HashMap Name Own

/-- The axioms that Lean's own logic has, and those that trust more than the kernel. -/
def knownAxioms : List Name :=
  [``propext, ``Classical.choice, ``Quot.sound, ``sorryAx, ``Lean.ofReduceBool,
   ``Lean.ofReduceNat, ``Lean.trustCompiler]

def usedBy (info : ConstantInfo) : List Name := info.getUsedConstantsAsSet.toList

/-- What is reached from a declaration: own constants seen, axioms, constants of Lean's modules. -/
structure Reached where
  seen : NameSet := {}
  axioms : NameSet := {}
  core : NameSet := {}

/-- Follows own constants through their full terms, and stops at constants of Lean's own modules. -/
partial def visit (library : Library) (core : Environment) (reached : Reached) (name : Name) :
    Reached :=
  if reached.seen.contains name then reached
  else
    let reached := { reached with seen := reached.seen.insert name }
    match library[name]? with
    | some own =>
      let reached := if own.info.isAxiom then
        { reached with axioms := reached.axioms.insert name } else reached
      (usedBy own.info).foldl (visit library core) reached
    | none =>
      let reached := if knownAxioms.contains name then
        { reached with axioms := reached.axioms.insert name } else reached
      match core.find? name with
      | none => { reached with axioms := reached.axioms.insert (name ++ `unknown) }
      | some info =>
        if info.isUnsafe || info.isPartial then
          { reached with axioms := reached.axioms.insert (name ++ `unsafe) }
        else if info.isAxiom && !knownAxioms.contains name then
          { reached with core := reached.core.insert name }
        else reached

def kind : ConstantInfo → String
  | .thmInfo _ => "theorem"
  | .defnInfo _ => "definition"
  | .axiomInfo _ => "axiom"
  | .opaqueInfo _ => "opaque"
  | .inductInfo _ => "inductive"
  | .ctorInfo _ => "constructor"
  | .recInfo _ => "recursor"
  | .quotInfo _ => "quotient"

def names (set : NameSet) : List String := set.toList.map fun name => name.toString

/-- The constants of the library that a statement mentions. -/
def mentions (library : Library) (info : ConstantInfo) : List String :=
  (info.type.getUsedConstantsAsSet.toList.filter library.contains).map fun name => name.toString

def printDeclaration (library : Library) (core : Environment) (name : Name) (own : Own) :
    IO Unit := do
  let reached := visit library core {} name
  IO.println ("@@ " ++ (Json.mkObj [
    ("name", toJson (privateToUserName name).toString),
    ("private", toJson (isPrivateName name)),
    ("internal", toJson (privateToUserName name).isInternalDetail),
    ("module", toJson own.module.toString),
    ("kind", toJson (kind own.info)),
    ("unsafe", toJson (own.info.isUnsafe || own.info.isPartial)),
    ("axioms", toJson (names reached.axioms)),
    ("mentions", toJson (mentions library own.info))]).compress)

/-- The full part of a stored module: its private part, where there is one. -/
def readFull (olean : String) : IO ModuleData := do
  let parts ← readModuleDataParts #[olean, olean ++ ".server", olean ++ ".private"]
  if h : 2 < parts.size then return parts[2].1
  else throw (IO.userError (olean ++ " has no private part"))

def addAll (library : Library) (module : Name) (data : ModuleData) (i : Nat) : Library :=
  if h : i < data.constants.size then
    let info := data.constants[i]
    addAll (library.insert info.name { info, module }) module data (i + 1)
  else library

partial def read (stdin : IO.FS.Stream) (library : Library) : IO Library := do
  let line ← stdin.getLine
  match line.trimAscii.toString.splitOn "\t" with
  | [module, olean] =>
    read stdin (addAll library module.toName (← readFull olean) 0)
  | _ => return library

def printAll (library : Library) (core : Environment) : List (Name × Own) → IO Unit
  | [] => return ()
  | (name, own) :: rest => do
    printDeclaration library core name own
    printAll library core rest

/-- Everything of Lean's own modules that the library's declarations take on trust. -/
def trusted (library : Library) (core : Environment) : Nat :=
  let reached := (library.toList.map Prod.fst).foldl (visit library core) {}
  reached.core.toList.length

/-- The kernel checks every constant of the library again, in a fresh environment. -/
def replay (library : Library) (core : Environment) : IO (Option String) := do
  let constants := library.toList.foldl (fun map (name, own) => map.insert name own.info) {}
  try
    let _ ← core.replay constants
    return none
  catch error => return some (toString error)

def main (args : List String) : IO Unit := do
  let [shipped] := args | throw (IO.userError "expected one argument, a folder")
  searchPathRef.set [shipped]
  let library ← read (← IO.getStdin) {}
  let imports : Array Import := #[{ module := `Init }]
  let (_, state) ← (importModulesCore imports (globalLevel := .exported)
    (isExported := true)).run default
  let core ← finalizeImport state imports {} 0 false false (level := .exported) (isModule := true)
  printAll library core library.toList
  let problem ← replay library core
  IO.println ("@@ " ++ (Json.mkObj [
    ("replayed", toJson library.toList.length),
    ("trusted", toJson (trusted library core)),
    ("problem", toJson problem)]).compress)

end Bridge.Audit
