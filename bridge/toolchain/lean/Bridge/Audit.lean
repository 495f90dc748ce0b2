module

public import Lean.AddDecl
public import Lean.Replay
public import Lean.Util.CollectAxioms

public section

/-! # Looks through the stored proof terms of a library, and has the kernel check them again

Argument: the folder of Lean's own modules as they were shipped. Standard input: a line for each
module of the library, its name and its stock output, separated by a tab; imports come first. Prints
lines that begin with `@@` and hold JSON: one for each declaration, one for each module that the
kernel has checked, one for the whole. -/

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

def kind : ConstantInfo → String
  | .thmInfo _ => "theorem"
  | .defnInfo _ => "definition"
  | .axiomInfo _ => "axiom"
  | .opaqueInfo _ => "opaque"
  | .inductInfo _ => "inductive"
  | .ctorInfo _ => "constructor"
  | .recInfo _ => "recursor"
  | .quotInfo _ => "quotient"

/-- What a constant of Lean's own modules was before its body was left out, where it was: what is
stored in its place is an axiom. -/
def withoutBody? (core : Environment) : ConstantInfo → Option String
  | .axiomInfo info =>
    if knownAxioms.contains info.name then none
    else match getOriginalConstKind? core info.name with
      | some .thm => some "theorem"
      | some .defn => some "definition"
      | some .opaque => some "opaque constant"
      | _ => none
  | _ => none

/-- What a constant is found to be by itself: an axiom, or something that no proof may rest on. -/
def ownFindings (library : Library) (core : Environment) (name : Name) : NameSet :=
  match library[name]? with
  | some own => if own.info.isAxiom then NameSet.empty.insert name else {}
  | none => match core.find? name with
    | none => NameSet.empty.insert (name ++ `unknown)
    | some info =>
      if info.isUnsafe || info.isPartial then NameSet.empty.insert (name ++ `unsafe)
      else if info.isAxiom && (withoutBody? core info).isNone then NameSet.empty.insert name
      else {}

/-- What the library's declarations reach: each constant after those that it names, as far as none
of these names it in turn; and the constants that each of them names. -/
structure Reached where
  order : Array Name := #[]
  named : Std.HashMap Name (Array Name) := {}

/-- Follows the full terms of a constant, of Lean's own modules too as far as they are there. -/
partial def visit (library : Library) (core : Environment) (reached : Reached) (name : Name) :
    Reached :=
  if reached.named.contains name then reached
  else
    let info? := (library[name]?.map Own.info) <|> core.find? name
    let named := (info?.map fun info => info.getUsedConstantsAsSet.toArray).getD #[]
    let reached := { reached with named := reached.named.insert name named }
    let reached := named.foldl (visit library core) reached
    { reached with order := reached.order.push name }

/-- By constant, what it is found to rest on. A turn adds to each constant what those that it names
rest on; an inductive type and its constructors name each other, so it is done until nothing is
added. -/
partial def restsOn (reached : Reached) (found : Std.HashMap Name NameSet) :
    Std.HashMap Name NameSet :=
  let (found', added) := reached.order.foldl turn (found, false)
  if added then restsOn reached found' else found'
where
  turn (state : Std.HashMap Name NameSet × Bool) (name : Name) :=
    let (found, added) := state
    let before := found.getD name {}
    let after := reached.named[name]!.foldl (init := before) fun set one =>
      (found.getD one {}).foldl NameSet.insert set
    if after.size == before.size then (found, added) else (found.insert name after, true)

def names (set : NameSet) : List String := set.toList.map fun name => name.toString

/-- The constants of the library that a statement mentions. -/
def mentions (library : Library) (info : ConstantInfo) : List String :=
  (info.type.getUsedConstantsAsSet.toList.filter library.contains).map fun name => name.toString

def printDeclaration (library : Library) (found : Std.HashMap Name NameSet) (name : Name)
    (own : Own) : IO Unit := do
  IO.println ("@@ " ++ (Json.mkObj [
    ("name", toJson (privateToUserName name).toString),
    ("private", toJson (isPrivateName name)),
    ("internal", toJson (privateToUserName name).isInternalDetail),
    ("module", toJson own.module.toString),
    ("kind", toJson (kind own.info)),
    ("unsafe", toJson (own.info.isUnsafe || own.info.isPartial)),
    ("axioms", toJson (names (found.getD name {}))),
    ("mentions", toJson (mentions library own.info))]).compress)

/-- The full part of a stored module: its private part, where there is one. -/
def readFull (olean : String) : IO ModuleData := do
  let parts ← readModuleDataParts #[olean, olean ++ ".server", olean ++ ".private"]
  if h : 2 < parts.size then return parts[2].1
  else throw (IO.userError (olean ++ " has no private part"))

/-- The modules and their constants, in the order in which they are named. -/
partial def read (stdin : IO.FS.Stream) (modules : Array (Name × Array ConstantInfo)) :
    IO (Array (Name × Array ConstantInfo)) := do
  let line ← stdin.getLine
  match line.trimAscii.toString.splitOn "\t" with
  | [module, olean] =>
    read stdin (modules.push (module.toName, (← readFull olean).constants))
  | _ => return modules

def libraryOf (modules : Array (Name × Array ConstantInfo)) : Library :=
  modules.foldl (init := {}) fun library (module, constants) =>
    constants.foldl (init := library) fun library info => library.insert info.name { info, module }

/-- The constants of Lean's own modules, among those that are reached, of which the body is left
out: what each was, and their names. -/
def trusted (core : Environment) (reached : Reached) : Std.TreeMap String (List String) :=
  reached.order.foldr (init := {}) fun name found =>
    match core.find? name >>= withoutBody? core with
    | some kind => found.insert kind (name.toString :: found.getD kind [])
    | none => found

/-- A constant as it is checked in an environment that may have one of its name: Lean makes equation
lemmas where they are asked for, so two modules can store the same theorem. The second is checked
under a name of its own. Anything else that is there twice is an error. -/
def checkedAs (env : Environment) (module : Name) (info : ConstantInfo) : IO ConstantInfo :=
  match env.find? info.name, info with
  | none, _ => return info
  | some (.thmInfo before), .thmInfo again => do
    unless before.type == again.type && before.levelParams == again.levelParams do
      throw (IO.userError s!"two modules have different theorems {info.name}")
    let name := info.name ++ module
    return .thmInfo { again with name, all := [name] }
  | some _, _ => throw (IO.userError s!"two modules declare {info.name}")

/-- The kernel checks every constant of the library again, each module in an environment that holds
Lean's own modules and what of the library it has checked before. Says after each module how many
constants it has checked, of how many; returns that, and what it does not accept. -/
def replay (modules : Array (Name × Array ConstantInfo)) (core : Environment) :
    IO (Nat × Option String) := do
  let total := modules.foldl (fun total (_, constants) => total + constants.size) 0
  try
    let (_, checked) ← modules.foldlM (init := (core, 0)) fun (env, checked) (module, constants) => do
      let infos ← constants.mapM (checkedAs env module)
      let env ← env.replay (infos.foldl (fun map info => map.insert info.name info) {})
      let checked := checked + constants.size
      IO.println ("@@ " ++ (Json.mkObj [("checked", toJson checked), ("of", toJson total)]).compress)
      (← IO.getStdout).flush
      return (env, checked)
    return (checked, none)
  catch error => return (0, some (toString error))

def main (args : List String) : IO Unit := do
  let shipped :: rest := args | throw (IO.userError "expected a folder")
  let replays := !rest.contains "--no-replay"
  searchPathRef.set [shipped]
  let modules ← read (← IO.getStdin) #[]
  let library := libraryOf modules
  let imports : Array Import := #[{ module := `Init }]
  let (_, state) ← (importModulesCore imports (globalLevel := .exported)
    (isExported := true)).run default
  let core ← finalizeImport state imports {} 0 false false (level := .exported) (isModule := true)
  let own := library.toList
  let reached := own.foldl (fun reached (name, _) => visit library core reached name) {}
  let found := restsOn reached (reached.order.foldl (init := {}) fun found name =>
    found.insert name (ownFindings library core name))
  own.forM fun (name, own) => printDeclaration library found name own
  let (replayed, problem) ← if replays then replay modules core else pure (0, none)
  let trusted := (trusted core reached).toList.map fun (kind, names) => (kind, toJson names)
  IO.println ("@@ " ++ (Json.mkObj [
    ("replayed", toJson replayed),
    ("trusted", Json.mkObj trusted),
    ("problem", toJson problem)]).compress)

end Bridge.Audit
