module

public import Lean.Meta.Eqns
public import Lean.Meta.Match.MatcherApp.Basic
public import Lean.Meta.Tactic.Unfold
public import Lean.Structure
public import Lean.ProjFns

public section

/-! # Lists the terms of the definitions that are translated to Python

Standard input: a line for each module of the library, its name and its stored output, separated by a
tab; then a line for each name that is asked for. Prints lines that begin with `@@` and hold JSON: one for
each name, and a last one with how many there were. Run as it stands by `bridge/translation/make.py`.

A recursive definition is read from the unfolding equation that Lean proves of it, since its stored value
is made of recursors. Of each argument it is said whether it is a type, a proof, an instance or a term:
Python needs terms only, and knows no types. -/

namespace Bridge.Translation

open Lean Meta

def textOf (name : Name) : Json := toJson name.toString

/-- A term: what it is, and its parts. -/
def node (what : String) (parts : List Json) : Json := Json.arr (toJson what :: parts).toArray

/-- What an expression is to a program. -/
def sortOf (e type : Expr) : MetaM String := do
  if ← isProp type then return "proof"
  if (← whnf type).isSort then
    return if ← isProp e then "proposition" else "type"
  if ← isTypeFormerType type then
    let target ← forallTelescopeReducing type fun _ body => return body
    return if target.isProp then "predicate" else "type"
  if (← isClass? type).isSome then return "instance"
  return "term"

def kindOf (e : Expr) : MetaM String := do sortOf e (← inferType e)

def binder (info : BinderInfo) : String :=
  match info with
  | .default => "explicit"
  | .implicit => "implicit"
  | .strictImplicit => "implicit"
  | .instImplicit => "instance"

/-- The field that a projection function takes from a structure that is not a class. -/
def projected? (f : Name) (args : Array Expr) : MetaM (Option (Name × Expr × Array Expr)) := do
  let some info ← getProjectionFnInfo? f | return none
  if info.fromClass || args.size ≤ info.numParams then return none
  let rest := args.toList.drop (info.numParams + 1)
  return some (info.ctorName.getPrefix, args[info.numParams]!, rest.toArray)

mutual

partial def binding (x : Expr) : MetaM Json := do
  let decl ← x.fvarId!.getDecl
  return Json.mkObj [
    ("id", textOf x.fvarId!.name), ("name", toJson decl.userName.eraseMacroScopes.toString),
    ("named", toJson !decl.userName.hasMacroScopes),
    ("binder", toJson (binder decl.binderInfo)), ("kind", toJson (← kindOf x)),
    ("type", ← term decl.type)]

/-- Of an instance only its name: a line of more than 64 KiB would not come through. -/
partial def argument (e : Expr) : MetaM Json := do
  let kind ← kindOf e
  let shown ← if kind == "proof" then pure Json.null
    else if kind == "instance" && !e.getAppFn.isFVar then
      pure (node "constant" [textOf e.getAppFn.constName, Json.arr #[]])
    else term e
  return Json.mkObj [("kind", toJson kind), ("term", shown)]

partial def arguments (es : Array Expr) : MetaM Json := return Json.arr (← es.mapM argument)

/-- A constant that a `match` was made into: what is matched, and the alternatives, each with the
variables and the terms of its patterns. -/
partial def matching (app : MatcherApp) : MetaM Json := do
  let matcher := mkAppN (mkConst app.matcherName app.matcherLevels.toList) app.params
  let count := 1 + app.discrs.size + app.alts.size
  let alternatives ← forallBoundedTelescope (← inferType matcher) (some count) fun xs _ => do
    let alts := (xs.toList.drop (1 + app.discrs.size)).toArray
    (alts.zip app.alts).mapM fun (alt, given) => do
      -- The type of an alternative is `motive` of its patterns, for all its variables.
      forallTelescope (← inferType alt) fun vars result => do
        let names ← lambdaBoundedTelescope given vars.size fun ys _ =>
          ys.mapM fun y => return (← y.fvarId!.getDecl).userName
        let lctx := (vars.zip names).foldl (fun (lctx : LocalContext) (x, name) =>
          lctx.setUserName x.fvarId! name) (← getLCtx)
        withLCtx' lctx do
          return Json.mkObj [
            ("variables", Json.arr (← vars.mapM binding)),
            ("patterns", Json.arr (← result.getAppArgs.mapM term)),
            ("body", ← term (given.beta vars))]
  return node "match" [Json.arr (← app.discrs.mapM term), Json.arr alternatives,
    ← arguments app.remaining]

partial def application (e : Expr) : MetaM Json := do
  if let some app ← matchMatcherApp? e then return ← matching app
  let args := e.getAppArgs
  match e.getAppFn with
  | .const name _ =>
    if let some (struct, value, rest) ← projected? name args then
      let field := node "field" [toJson name.getString!, textOf struct, ← term value]
      if rest.isEmpty then return field
      return node "apply" [field, ← arguments rest]
    return node "constant" [textOf name, ← arguments args]
  | head => return node "apply" [← term head, ← arguments args]

partial def term (e : Expr) : MetaM Json := do
  match e with
  | .mdata _ e => term e
  | .fvar id => return node "bound" [textOf id.name]
  | .lit (.natVal n) => return node "number" [toJson n]
  | .lit (.strVal s) => return node "other" [toJson s]
  | .sort _ => return node "other" [toJson "sort"]
  | .lam .. => lambdaBoundedTelescope e 1 fun xs body => do
    return node "function" [← binding xs[0]!, ← term body]
  | .forallE .. => forallBoundedTelescope e (some 1) fun xs body => do
    return node "product" [← binding xs[0]!, ← term body]
  | .letE name type value body _ => do
    let shown ← term value
    withLetDecl name type value fun x => do
      return node "let" [← binding x, shown, ← term (body.instantiate1 x)]
  | .proj struct i value =>
    let fields := getStructureFields (← getEnv) struct
    return node "field" [textOf fields[i]!, textOf struct, ← term value]
  | .const .. | .app .. => application e
  | _ => throwError "a term of this shape is not expected: {e}"

end

/-- Parameters and body: of a recursive definition, from the equation that Lean unfolds it with. -/
def definition (info : DefinitionVal) : MetaM (List (String × Json)) := do
  let written (xs : Array Expr) (body : Expr) : MetaM (List (String × Json)) := do
    return [("parameters", Json.arr (← xs.mapM binding)), ("result", ← term (← instantiateForall info.type xs)),
      ("result_kind", toJson (← kindOf body)), ("body", ← term body)]
  match ← getUnfoldEqnFor? info.name with
  | some equation =>
    forallTelescope (← getConstInfo equation).type fun _ statement => do
      let some (_, left, right) := statement.eq? | throwError "{equation} is no equation"
      -- The variables are those of the left side, in its order.
      written left.getAppArgs right
  | none =>
    -- No more variables than the type declares: a value of type `Mask` is given by two more.
    let declared ← forallTelescope info.type fun xs _ => return xs.size
    lambdaBoundedTelescope info.value declared fun xs body => written xs body

def constructors (info : InductiveVal) : MetaM (List (String × Json)) := do
  let env ← getEnv
  let made ← info.ctors.toArray.mapM fun name => do
    let ctor ← getConstInfoCtor name
    forallTelescope ctor.type fun xs _ => do
      let parameters := (xs.toList.take ctor.numParams).toArray
      let fields := (xs.toList.drop ctor.numParams).toArray
      return Json.mkObj [("name", textOf name), ("fields", Json.arr (← fields.mapM binding)),
        ("parameters", Json.arr (← parameters.mapM binding))]
  return [("constructors", Json.arr made), ("structure", toJson (isStructure env info.name))]

def print (name : Name) : MetaM Unit := do
  let info ← getConstInfo name
  let (kind, rest) ← match info with
    | .defnInfo info => pure ("definition", ← definition info)
    | .inductInfo info => pure ("type", ← constructors info)
    | _ => throwError "{name} is neither a definition nor a type"
  let base := [("name", textOf name), ("kind", toJson kind)]
  IO.println ("@@ " ++ (Json.mkObj (base ++ rest)).compress)

/-- The modules of the library, and the names that are asked for. -/
partial def readAll (stdin : IO.FS.Stream) (modules names : List Name) :
    IO (List Name × List Name) := do
  let line := (← stdin.getLine).trimAscii.toString
  if line.isEmpty then return (modules.reverse, names.reverse)
  match line.splitOn "\t" with
  | [module, _] => readAll stdin (module.toName :: modules) names
  | _ => readAll stdin modules (line.toName :: names)

/-- Answers what standard input asks for. -/
def answerInput : IO Unit := do
  let (modules, names) ← readAll (← IO.getStdin) [] []
  let imports := modules.foldl (fun all module => all.push { module : Import })
    #[({ module := `Init } : Import)]
  let (_, state) ← (importModulesCore imports (globalLevel := .exported)
    (isExported := true)).run default
  let env ← finalizeImport state imports {} 0 false true (level := .exported) (isModule := true)
  let context : Core.Context := { fileName := "<translation>", fileMap := default }
  let _ ← ((names.forM print).run').toIO context { env }
  IO.println ("@@ " ++ (Json.mkObj [("translated", toJson names.length)]).compress)
  (← IO.getStdout).flush

end Bridge.Translation

/-- In a thread of its own, which has the stack that deep recursion in interpreted code needs: the
main thread of the embedded Lean has 64 KiB, and does not tell when they are used up. -/
def main (_ : List String) : IO Unit := do
  let task ← IO.asTask (prio := .dedicated) Bridge.Translation.answerInput
  IO.ofExcept task.get
  IO.Process.exit 0
