import Lean

/-! Lists the declarations of the modules named by the arguments, a JSON line each, and has the kernel
check them again, a last JSON line. The imports of the library are put above by
bridge/toolchain/native.py. -/

open Lean

def kindOf : ConstantInfo → String
  | .thmInfo _ => "theorem"
  | .defnInfo _ => "definition"
  | .axiomInfo _ => "axiom"
  | .opaqueInfo _ => "opaque"
  | .inductInfo _ => "inductive"
  | .ctorInfo _ => "constructor"
  | .recInfo _ => "recursor"
  | .quotInfo _ => "quotient"

/-- What the declarations reach: each constant after those that it names, as far as none of these
names it in turn; and the constants that each of them names. -/
structure Reached where
  order : Array Name := #[]
  named : Std.HashMap Name (Array Name) := {}

/-- Follows the full terms of a constant, of Lean's own modules too. -/
partial def visit (env : Environment) (reached : Reached) (name : Name) : Reached :=
  if reached.named.contains name then reached
  else
    let named := ((env.find? name).map fun info => info.getUsedConstantsAsSet.toArray).getD #[]
    let reached := { reached with named := reached.named.insert name named }
    let reached := named.foldl (visit env) reached
    { reached with order := reached.order.push name }

/-- By constant, the axioms that it rests on: as in `Bridge.Audit`, one walk for all constants, where
`collectAxioms` begins anew for each. -/
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

def axiomsOf (env : Environment) (own : List Name) : Std.HashMap Name NameSet :=
  let reached := own.foldl (visit env) {}
  restsOn reached (reached.order.foldl (init := {}) fun found name =>
    if (env.find? name).any ConstantInfo.isAxiom then
      found.insert name (NameSet.empty.insert name) else found)

def ownConstants (env : Environment) (own : NameSet) : List Name :=
  env.constants.fold (init := []) fun names name _ =>
    match env.getModuleIdxFor? name with
    | some i => if own.contains env.header.moduleNames[i]! then name :: names else names
    | none => names

def report (own : NameSet) (axioms : Std.HashMap Name NameSet) (info : ConstantInfo) :
    CoreM Unit := do
  let env ← getEnv
  let name := info.name
  let some index := env.getModuleIdxFor? name | return
  let module := env.header.moduleNames[index]!
  unless own.contains module do return
  let ranges ← findDeclarationRanges? name
  let (first, last) := match ranges with
    | some r => (r.range.pos.line, r.range.endPos.line)
    | none => (0, 0)
  let isOwn (used : Name) : Bool := match env.getModuleIdxFor? used with
    | some i => own.contains env.header.moduleNames[i]!
    | none => false
  let instanceOf : Option Name := do
    guard (Meta.isInstanceCore env name && !env.isProjectionFn name)
    info.type.getForallBody.getAppFn.constName?
  IO.println <| "@@ " ++ (Json.mkObj [
    ("name", toJson (privateToUserName name).toString),
    ("private", toJson (isPrivateName name)),
    ("internal", toJson (privateToUserName name).isInternalDetail),
    ("module", toJson module.toString),
    ("kind", toJson (kindOf info)),
    ("unsafe", toJson (info.isUnsafe || info.isPartial)),
    ("axioms", toJson ((axioms.getD name {}).toList.map toString)),
    ("mentions", toJson ((info.type.getUsedConstants.filter isOwn).map toString)),
    ("first_line", toJson first),
    ("last_line", toJson last),
    ("class", toJson (isClass env name)),
    ("instance_of", toJson (instanceOf.map toString)),
    ("implemented_by", toJson (Compiler.getImplementedBy? env name).isSome),
    ("extern", toJson (isExtern env name))]).compress

/-- The kernel checks the constants again, on top of Lean's own modules; how many, and what is wrong. -/
def replayAll (env : Environment) (own : NameSet) : IO (Nat × Option String) := do
  let constants : Std.HashMap Name ConstantInfo := env.constants.fold (init := {}) fun map name info =>
    match env.getModuleIdxFor? name with
    | some i => if own.contains env.header.moduleNames[i]! then map.insert name info else map
    | none => map
  let base ← importModules #[{ module := `Lean }] {}
  try
    let _ ← base.replay constants
    return (constants.size, none)
  catch error => return (constants.size, some (toString error))

unsafe def main (args : List String) : IO Unit := do
  initSearchPath (← findSysroot)
  enableInitializersExecution
  let modules := args.map String.toName
  let own : NameSet := modules.foldl (fun set name => set.insert name) {}
  let imports : Array Import := (modules.map fun name => ({ module := name } : Import)).toArray
  let env ← importModules imports {} (loadExts := true)
  let context : Core.Context := { fileName := "<audit>", fileMap := default }
  let axioms := axiomsOf env (ownConstants env own)
  let work : CoreM Unit := env.constants.forM fun _ info => report own axioms info
  let _ ← work.toIO context { env }
  let (replayed, problem) ← replayAll env own
  IO.println <| "@@ " ++ (Json.mkObj [
    ("replayed", toJson replayed), ("problem", toJson problem)]).compress
