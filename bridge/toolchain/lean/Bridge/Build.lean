module

public import Bridge.Repair
public import Lean.Compiler.ExternAttr
public import Lean.Compiler.ImplementedByAttr
public import Lean.DeclarationRange
public import Lean.DefEqAttrib
public import Lean.Elab.Frontend
public import Lean.Meta.Instances
public import Lean.ProjFns

public section

/-! # Builds modules, one after the other, in one process

Reads requests from standard input, a line each: module, source file, stock output, runnable output,
Boolean options (`name=true,name=false`), separated by tabs. Answers each with lines that begin with `@@` and hold JSON: its messages, what it
shows to the modules that import it, its declarations, then one line that ends it. The import state of Lean's own modules is kept from request to
request. Ends with standard input.

Two things are written for a module. Stock: what `lean -o` writes, for the audit. Runnable: one `.olean`
as `Bridge.Repair` describes it, for other modules to import and for running. -/

namespace Bridge.Build

open Lean Elab

/-- The modules that come with Lean. -/
def isExternal (module : Name) : Bool :=
  match module.getRoot with
  | .str _ root => root == "Init" || root == "Std" || root == "Lean" || root == "Lake"
  | _ => false

/-- What is kept from request to request: import states of sets of external modules, and the files
of the other modules that were imported. To find one takes longer than to read it. -/
structure Kept where
  states : IO.Ref (List (Array Name × ImportState))
  files : IO.Ref (NameMap ImportArtifacts)

def findKept (key : Array Name) : List (Array Name × ImportState) → Option ImportState
  | [] => none
  | (modules, state) :: rest => if modules == key then some state else findKept key rest

def keepFiles (kept : Kept) : List Name → IO Unit
  | [] => return ()
  | name :: rest => do
    unless isExternal name || (← kept.files.get).contains name do
      let file ← findOLean name
      kept.files.modify fun files => files.insert name (.ofArray #[file])
    keepFiles kept rest

def importAll (kept : Kept) (imports : Array Import) : IO Environment := do
  let external := imports.filter fun i => isExternal i.module
  let key := external.map fun i => i.module
  let base ← match findKept key (← kept.states.get) with
    | some state => pure state
    | none => do
      let (_, state) ← (importModulesCore external (globalLevel := .exported)
        (isExported := true)).run default
      kept.states.modify fun states => (key, state) :: states
      pure state
  let (_, state) ← (importModulesCore imports (globalLevel := .exported)
    (arts := ← kept.files.get) (isExported := true)).run base
  let env ← finalizeImport state imports {} 0 false true (level := .exported) (isModule := true)
  keepFiles kept env.header.moduleNames.toList
  return env

unsafe def writeRunnable (env : Environment) (file : System.FilePath) : IO Unit := do
  let data ← mkModuleData env .exported
  let code := (IR.getDecls env).toArray.qsort fun (a b : IR.Decl) => Name.quickLt a.name b.name
  let entries := Repair.withCode (unsafeCast code) data.entries 0 #[]
  saveModuleData file env.mainModule (Repair.declareCodeNames { data with entries })

/-- The class that a declaration is an instance of, projections of classes to their parents aside. -/
def instanceOf (env : Environment) (name : Name) : Option Name := do
  guard (Meta.isInstanceCore env name && !env.isProjectionFn name)
  let info ← env.find? name
  info.type.getForallBody.getAppFn.constName?

/-- Where a declaration stands, and what of it later steps cannot find out. -/
def printDeclaration (env : Environment) (name : Name) : IO Unit := do
  let some ranges := declRangeExt.find? (level := .server) env name | return ()
  IO.println ("@@ " ++ (Json.mkObj [
    ("declaration", toJson (privateToUserName name).toString),
    ("first_line", toJson ranges.range.pos.line),
    ("last_line", toJson ranges.range.endPos.line),
    ("class", toJson (isClass env name)),
    ("instance_of", toJson ((instanceOf env name).map fun c => c.toString)),
    ("implemented_by", toJson (Compiler.getImplementedBy? env name).isSome),
    ("extern", toJson (isExtern env name))]).compress)

def printDeclarations (env : Environment) : List Name → IO Unit
  | [] => return ()
  | name :: rest => do
    printDeclaration env name
    printDeclarations env rest

def isDocumentation (stx : Syntax) : Bool :=
  stx.isOfKind ``Parser.Command.docComment || stx.isOfKind ``Parser.Command.moduleDoc

/-- Mixes into a hash what importers of the module can see of a piece of its syntax: everything but
comments, documentation, and the proofs of theorems, which the module system does not export. Where a
later definition should take over something that a proof left behind, its importers may stay as they were
built; the audit's replay of all stored terms is the net under that. -/
partial def hashShown (total : UInt64) : Syntax → UInt64
  | .missing => total
  | .atom _ token => mixHash total (hash token)
  | .ident _ token _ _ => mixHash total (hash token.toString)
  | .node _ kind parts =>
    let parts := if kind == ``Parser.Command.theorem then parts.pop else parts
    let parts := parts.filter fun part => !isDocumentation part
    mixHash (parts.foldl hashShown (mixHash total (hash kind))) (hash parts.size)

/-- What importers can see of the proofs all the same: which theorems of the file hold by definition. -/
def hashDefEqs (env : Environment) : UInt64 :=
  env.constants.map₂.toList.foldl (init := 0) fun total (name, _) =>
    let written := (declRangeExt.find? (level := .server) env name).isSome
    if written && defeqAttr.hasTag env name then total + hash name else total

/-- Prints messages; whether one is an error. -/
def printMessages : List Message → IO Bool
  | [] => return false
  | message :: rest => do
    IO.println ("@@ " ++ (Json.mkObj [("message", toJson (← message.toJson))]).compress)
    let failed ← printMessages rest
    return failed || message.severity matches .error

/-- Elaborates the commands of a file from here on; the state after the last, the commands, and their
messages. In place of `IO.processCommands`, which hands environments to tasks: from then on each count
of references to a part of one is atomic, which makes an import a third dearer. -/
partial def elaborate (input : Parser.InputContext) (state : Command.State)
    (parser : Parser.ModuleParserState) (commands : Array Syntax) (messages : List (List Message)) :
    IO (Command.State × Array Syntax × List Message) := do
  let scope := state.scopes.head!
  let (command, after, parsed) := Parser.parseCommand input
    { env := state.env, options := scope.opts, currNamespace := scope.currNamespace,
      openDecls := scope.openDecls } parser {}
  let context : Command.Context :=
    { fileName := input.fileName, fileMap := input.fileMap, cmdPos := parser.pos, snap? := none,
      cancelTk? := none }
  let cell ← IO.mkRef { state with messages := {}, snapshotTasks := #[] }
  let (output, _) ← IO.FS.withIsolatedStreams (m := IO) (EIO.toBaseIO
    (Command.withLoggingExceptions (Command.elabCommandTopLevel command) context cell))
  let state ← cell.get
  -- Proofs tell what they have to say in tasks, done by now.
  let ofProofs := state.snapshotTasks.toList.flatMap fun task =>
    task.get.getAll.toList.flatMap fun snapshot => snapshot.diagnostics.msgLog.toList
  let printed : List Message := if output.isEmpty then [] else
    [{ fileName := input.fileName, severity := .information,
       pos := input.fileMap.toPosition parser.pos, data := output }]
  let told := parsed.toList ++ state.messages.toList ++ printed ++ ofProofs
  let commands := commands.push command
  if Parser.isTerminalCommand command then
    return (state, commands, (told :: messages).reverse.flatten)
  elaborate input state after commands (told :: messages)

/-- Options from `name=true,name=false`. -/
def readOptions (text : String) : Options :=
  (text.splitOn ",").foldl (init := {}) fun options one =>
    match one.splitOn "=" with
    | [name, value] => options.setBool name.toName (value == "true")
    | _ => options

unsafe def build (kept : Kept) (module file stock runnable options : String) : IO Bool := do
  let input ← IO.FS.readFile file
  let context := Parser.mkInputContext input file
  let (header, parserState, messages) ← Parser.parseHeader context
  let header : HeaderSyntax := header
  let env ← importAll kept header.imports
  let state := Command.mkState (env.setMainModule module.toName) messages (readOptions options)
  let (state, commands, told) ← elaborate context state parserState #[] [messages.toList]
  let failed ← printMessages told
  unless failed do
    writeModule state.env stock
    writeRunnable state.env runnable
    let start := hashShown (hashDefEqs state.env) header
    let shown := (commands.filter fun c => !isDocumentation c).foldl hashShown start
    IO.println ("@@ " ++ (Json.mkObj [("shown", toJson (toString shown))]).compress)
    printDeclarations state.env (state.env.constants.map₂.toList.map fun (name, _) => name)
  return !failed

def answer (module : String) (ok : Bool) (problem : String) : IO Unit := do
  IO.println ("@@ " ++ (Json.mkObj [("done", toJson module), ("ok", toJson ok),
    ("problem", toJson problem)]).compress)
  (← IO.getStdout).flush

unsafe def serve (kept : Kept) (stdin : IO.FS.Stream) : IO Unit := do
  let line ← stdin.getLine
  if line.isEmpty then return ()
  match (line.dropEndWhile (· == '\n')).toString.splitOn "\t" with
  | [module, file, stock, runnable, options] =>
    try answer module (← build kept module file stock runnable options) ""
    catch error => answer module false (toString error)
  | _ => answer "" false ("not a request: " ++ line)
  serve kept stdin

unsafe def main (_ : List String) : IO Unit := do
  serve { states := ← IO.mkRef [], files := ← IO.mkRef {} } (← IO.getStdin)

end Bridge.Build
