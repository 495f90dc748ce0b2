module

public import Lean.Compiler.IR.CompilerM
public import Lean.Compiler.LCNF.PhaseExt

public section

/-! # Makes compiled modules runnable for a Lean that reads no `.ir` files

The embedded Lean compiles and runs only what it finds in `.olean` files, and its package brings
none of the `.ir` files in which code is kept. A module becomes runnable when the names that only
the code generator knows are declared in its `.olean`, as unsafe constants without content (the
kernel rejects a safe declaration that uses one), and when, for a module of one's own, the
intermediate code of its functions is merged in.

Before this has been done to Lean's own modules, code that uses most functions of the library does
not compile; so this file loops by hand. -/

namespace Bridge.Repair

open Lean

/-- The entries of a module's environment extensions. -/
abbrev Entries := Array (Name × Array EnvExtensionEntry)

unsafe def irNames (entries : Array EnvExtensionEntry) (i : Nat) (acc : Array Name) : Array Name :=
  if h : i < entries.size then
    let decl : IR.Decl := unsafeCast entries[i]
    irNames entries (i + 1) (acc.push decl.name)
  else acc

unsafe def lcnfNames (entries : Array EnvExtensionEntry) (i : Nat) (acc : Array Name) :
    Array Name :=
  if h : i < entries.size then
    let decl : Compiler.LCNF.Decl := unsafeCast entries[i]
    lcnfNames entries (i + 1) (acc.push decl.name)
  else acc

/-- The names that occur in a module's code. -/
unsafe def codeNames (entries : Entries) (i : Nat) (acc : Array Name) : Array Name :=
  if h : i < entries.size then
    let (extension, es) := entries[i]
    let acc :=
      if extension == ``Lean.IR.declMapExt then irNames es 0 acc
      else if extension == ``Lean.Compiler.LCNF.baseExt
          || extension == ``Lean.Compiler.LCNF.monoExt then lcnfNames es 0 acc
      else acc
    codeNames entries (i + 1) acc
  else acc

/-- The intermediate code among the entries. -/
def codeOf (entries : Entries) (i : Nat) : Array EnvExtensionEntry :=
  if h : i < entries.size then
    let (extension, es) := entries[i]
    if extension == ``Lean.IR.declMapExt then es else codeOf entries (i + 1)
  else #[]

/-- The entries with the intermediate code replaced. -/
def withCode (code : Array EnvExtensionEntry) (entries : Entries) (i : Nat) (acc : Entries) :
    Entries :=
  if h : i < entries.size then
    let (extension, es) := entries[i]
    let es := if extension == ``Lean.IR.declMapExt then code else es
    withCode code entries (i + 1) (acc.push (extension, es))
  else acc

def nameSet (names : Array Name) (i : Nat) (set : NameSet) : NameSet :=
  if h : i < names.size then nameSet names (i + 1) (set.insert names[i]) else set

/-- The names that are not in the set, each once. -/
def missing (names : Array Name) (i : Nat) (set : NameSet) (acc : Array Name) : Array Name :=
  if h : i < names.size then
    if set.contains names[i] then missing names (i + 1) set acc
    else missing names (i + 1) (set.insert names[i]) (acc.push names[i])
  else acc

def withoutContent (name : Name) : ConstantInfo :=
  .axiomInfo { name, levelParams := [], type := .sort (.succ .zero), isUnsafe := true }

def declare (names : Array Name) (i : Nat) (data : ModuleData) : ModuleData :=
  if h : i < names.size then
    declare names (i + 1) { data with
      constNames := data.constNames.push names[i]
      constants := data.constants.push (withoutContent names[i]) }
  else data

/-- The module with the names of its code declared. -/
unsafe def declareCodeNames (data : ModuleData) : ModuleData :=
  let declared := nameSet data.constNames 0 {}
  declare (missing (codeNames data.entries 0 data.extraConstNames) 0 declared #[]) 0 data

/-- Repairs one module; `ir`: the file that holds its code, or empty. -/
unsafe def repair (source target ir : String) (module : Name) : IO Unit := do
  let (data, region) ← readModuleData source
  if ir.isEmpty then
    saveModuleData target module (declareCodeNames data)
    region.free
  else
    let (code, _) ← readModuleData ir
    let entries := withCode (codeOf code.entries 0) data.entries 0 #[]
    saveModuleData target module (declareCodeNames { data with entries })

def chop (line : String) : String := String.ofList line.toList.dropLast

/-- Requests on standard input, four lines each: source, target, file with the code or nothing,
module. Each is answered by a line. -/
unsafe def serve (stdin stdout : IO.FS.Stream) : IO Unit := do
  let source ← stdin.getLine
  if source.isEmpty then return ()
  let target ← stdin.getLine
  let ir ← stdin.getLine
  let module ← stdin.getLine
  repair (chop source) (chop target) (chop ir) (chop module).toName
  IO.println "@@ {\"repaired\": true}"
  stdout.flush
  serve stdin stdout

unsafe def main (_ : List String) : IO Unit := do
  serve (← IO.getStdin) (← IO.getStdout)

end Bridge.Repair
