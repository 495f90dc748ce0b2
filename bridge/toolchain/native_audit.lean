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

def report (own : NameSet) (info : ConstantInfo) : CoreM Unit := do
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
  let axioms ← collectAxioms name
  IO.println <| "@@ " ++ (Json.mkObj [
    ("name", toJson (privateToUserName name).toString),
    ("private", toJson (isPrivateName name)),
    ("internal", toJson (privateToUserName name).isInternalDetail),
    ("module", toJson module.toString),
    ("kind", toJson (kindOf info)),
    ("unsafe", toJson (info.isUnsafe || info.isPartial)),
    ("axioms", toJson (axioms.map toString)),
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
  let work : CoreM Unit := env.constants.forM fun _ info => report own info
  let _ ← work.toIO context { env }
  let (replayed, problem) ← replayAll env own
  IO.println <| "@@ " ++ (Json.mkObj [
    ("replayed", toJson replayed), ("problem", toJson problem)]).compress
