module

public import Lean.PrettyPrinter

public section

/-! # Looks for theorems whose statement says nothing

Standard input: a line for each module of the library, its name and its stored output, separated by a
tab; then a line for each theorem that is asked for: its name and those of the namespaces that are open
where it stands, separated by spaces. Prints lines that begin with `@@` and hold
JSON: one for each theorem, and a last one with how many there were. Run as it stands by
`bridge/audit/statements.py`.

Two terms count as the same if they are one up to the names of bound variables, abbreviations, and what
the fields of instances are. Other definitions stay closed: that two of them are equal says something. -/

namespace Bridge.Statements

open Lean Meta

/-- Characters in a line of a printed statement. -/
def width : Nat := 100

/-- What is asked of a theorem: its name, and the namespaces in which names are looked up where it
stands, the innermost first. -/
structure Wanted where
  name : Name
  opened : List Name

/-- What is wrong with a statement, and the propositions that it is wrong with. Of its conclusion,
or of one `part` of that: `sides`, `unfolded`, `true`, `hypothesis`, `instance`, `exists`; of its
hypotheses: `absurd`, `contradiction`. -/
structure Finding where
  what : String
  part : Bool := false
  shown : List String

def same (a b : Expr) : MetaM Bool := withTransparency .instances (isDefEq a b)

/-- Whether the two sides of an equality or an equivalence are one by this comparison. -/
def equatesOne (same : Expr → Expr → MetaM Bool) (e : Expr) : MetaM Bool :=
  match_expr e with
  | Eq _ a b => same a b
  | Iff a b => same a b
  | HEq α a β b => same α β <&&> same a b
  | _ => return false

/-- The same, of an inequality `≤` too. -/
def relatesOne (same : Expr → Expr → MetaM Bool) (e : Expr) : MetaM Bool :=
  match_expr e with
  | LE.le _ _ a b => same a b
  | _ => equatesOne same e

/-- The parts of a conjunction, however deep; of anything else, itself. -/
partial def parts (e : Expr) : MetaM (List Expr) := do
  let opened ← whnfR e
  match_expr opened with
  | And a b => return (← parts a) ++ (← parts b)
  | _ => return [e]

/-- What is denied, by `¬`, `≠` or `→ False`. -/
def denied? (e : Expr) : MetaM (Option Expr) := do
  let opened ← whnfR e
  match_expr opened with
  | Not p => return some p
  | _ =>
    let .forallE _ p body _ := opened | return none
    return if body.isConstOf ``False then some p else none

def print (e : Expr) : MetaM String := return (← ppExpr e).pretty

/-- Why one hypothesis cannot hold, others given; none if nothing is seen against it. -/
def impossible? (others : List Expr) (e : Expr) : MetaM (Option Finding) := do
  if (← whnfR e).isConstOf ``False then
    return some { what := "absurd", shown := [← print e] }
  if let some p ← denied? e then
    let opened ← whnfR p
    if opened.isConstOf ``True || (← equatesOne same opened) then
      return some { what := "absurd", shown := [← print e] }
    if let some other ← others.findM? (same p) then
      return some { what := "contradiction", shown := [← print other, ← print e] }
  for other in others do
    if let some p ← denied? other then
      if ← same p e then
        return some { what := "contradiction", shown := [← print e, ← print other] }
  return none

/-- Whether a term is a metavariable, or one applied to something. Metavariables stand for what is
said to exist. -/
def isSought (e : Expr) : MetaM Bool := return (← instantiateMVars e).getAppFn.isMVar

/-- Gives what is said to exist such that `e` is `term`, if `e` is that, or its value or component
at what is bound: by unification, which sees to it that nothing is given by itself or by what is
bound after it. -/
partial def give (e term : Expr) : MetaM Bool := do
  if ← isSought e then return ← same e term
  match_expr ← instantiateMVars e with
  | GetElem.getElem _ index _ _ _ x i _ =>
    unless i.isFVar && (← whnfR index).isAppOf ``Fin do return false
    give x (← mkAppM ``Vector.ofFn #[← mkLambdaFVars #[i] term])
  | _ => return false

/-- Whether each part of a proposition is an equation or an equivalence that gives something of what
is said to exist, and of what no part before it has given. The state holds what is said to exist. -/
partial def onlyGives (e : Expr) : StateT (List Expr) MetaM Bool := do
  let opened ← whnfR e
  if let .forallE name type body info := opened then
    return ← withLocalDecl name info type fun x => onlyGives (body.instantiate1 x)
  match_expr opened with
  | Exists type p =>
    let sought ← mkFreshExprMVar type
    modify (sought :: ·)
    onlyGives (p.beta #[sought])
  | And a b => onlyGives a <&&> onlyGives b
  | Eq _ a b => equates a b
  | Iff a b => equates a b
  | _ => return false
where
  equates (a b : Expr) : MetaM Bool := give a b <||> give b a

/-- Whether a proposition says only that something equals a term: `∃ x, x = t`, where `t` does not
mention `x`, or several such. What no equation gives must be of a type known not to be empty. -/
def existsOnly (e : Expr) : MetaM Bool := withoutModifyingState do
  let (all, sought) ← (onlyGives e).run []
  unless all do return false
  sought.allM fun one => do
    ((← instantiateMVars one).collectMVars {}).result.allM fun left => left.withContext do
      let type ← instantiateMVars (← inferType (mkMVar left))
      if type.hasExprMVar then return false
      return (← synthInstance? (← mkAppM ``Nonempty #[type])).isSome

/-- Whether a hypothesis says of all of some things what a proposition says of one: `∀ x, p x`, and
it is `p a`, or with the sides of an equation exchanged. -/
def isInstance (e hypothesis : Expr) : MetaM Bool := withoutModifyingState do
  let (given, _, body) ← forallMetaTelescopeReducing hypothesis
  if given.isEmpty then return false
  if ← given.anyM fun one => do isProp (← inferType one) then return false
  let body ← whnfR body
  if ← same body e then return true
  match_expr e with
  | Eq _ a b => return (body.isAppOfArity ``Eq 3) && (← same body (← mkEq b a))
  | _ => return false

/-- The first thing that is wrong with a statement under hypotheses; `part`: it is one part of a
conclusion. -/
partial def find (hypotheses : List Expr) (part : Bool) (e : Expr) : MetaM (Option Finding) := do
  let opened ← whnfR e
  if ← hypotheses.anyM (same opened) then
    return some { what := "hypothesis", part, shown := [← print e] }
  if let some whole ← hypotheses.findM? (isInstance opened) then
    return some { what := "instance", part, shown := [← print e, ← print whole] }
  if let .forallE name type body info := opened then
    let new ← if ← isProp type then parts type else pure []
    let hypotheses' := new ++ hypotheses
    for one in new do
      if let some finding ← impossible? hypotheses' one then return some finding
    return ← withLocalDecl name info type fun x => find hypotheses' part (body.instantiate1 x)
  match_expr opened with
  | And a b =>
    if let some finding ← find hypotheses true a then return some finding
    find hypotheses true b
  | True => return some { what := "true", part, shown := [← print e] }
  | Exists _ _ =>
    unless ← existsOnly opened do return none
    return some { what := "exists", part, shown := [← print e] }
  | _ =>
    unless ← relatesOne same opened do return none
    let asWritten ← relatesOne (fun a b => return a == b) opened
    return some { what := if asWritten then "sides" else "unfolded", part, shown := [← print e] }

/-- The constants of the hypotheses and of the conclusion of a statement. A hypothesis within the
conclusion, below `∀`, `∃` or `∧`, is one, too. -/
partial def sides (e : Expr) : MetaM (NameSet × NameSet) := do
  let opened ← whnfR e
  if let .forallE name type body info := opened then
    let supposed : NameSet := if ← isProp type then names type else {}
    let (more, concluded) ← withLocalDecl name info type fun x => sides (body.instantiate1 x)
    return (supposed.append more, concluded)
  match_expr opened with
  | And a b =>
    let (supposed, concluded) ← sides a
    let (supposed', concluded') ← sides b
    return (supposed.append supposed', concluded.append concluded')
  | Exists type p =>
    withLocalDecl `x .default type fun x => sides (p.beta #[x])
  | _ => return ({}, names opened)
where
  names (e : Expr) : NameSet := e.getUsedConstants.foldl (·.insert ·) {}

/-- Whether a constant is a definition of a value or of a proposition, and not of a type or of the
field of a structure. -/
def definesValue (name : Name) : MetaM Bool := do
  if (← getEnv).isProjectionFn name then return false
  let .defnInfo info ← getConstInfo name | return false
  forallTelescopeReducing info.type fun _ result => return result.isProp || !result.isSort

/-- The definitions that both the hypotheses and the conclusion of a statement speak of. -/
def supposed (e : Expr) : MetaM (List Name) := do
  let (supposed, concluded) ← sides e
  supposed.toList.filterM fun name => do
    return concluded.contains name && (← definesValue name)

/-- The whole statement as it was elaborated: each variable, class and hypothesis, from `variable` and
`include` too. Names are as short as the namespaces allow. -/
def signature (wanted : Wanted) : MetaM String := do
  let opened := wanted.opened.map fun space => OpenDecl.simple space []
  withTheReader Core.Context (fun context => { context with openDecls := opened }) do
  -- Nothing is left out for being long or deep.
  withOptions (fun options => (pp.deepTerms.set options true) |> (pp.maxSteps.set · 1000000)) do
    return (← PrettyPrinter.ppSignature wanted.name).fmt.pretty width

/-- The parts of a term, a line each, and their numbers. -/
structure Parts where
  lines : Array String := #[]
  ofLine : Std.HashMap String Nat := {}
  ofTerm : Std.HashMap Expr Nat := {}

def levelLine : Level → String
  | .zero => "0"
  | .succ a => s!"succ({levelLine a})"
  | .max a b => s!"max({levelLine a},{levelLine b})"
  | .imax a b => s!"imax({levelLine a},{levelLine b})"
  | .param name => name.toString false
  | .mvar _ => "?"

/-- The number of a term. Each part has one line, after those that it is made of; without the names
of bound variables, how an argument is given, and notes. `bridge/audit/second_kernel/native.py` has
the same of its kernel's terms. -/
partial def part (e : Expr) : StateM Parts Nat := do
  if let some number := (← get).ofTerm[e]? then return number
  let number ← match e with
    | .bvar i => line s!"b {i}"
    | .sort level => line s!"s {levelLine level}"
    | .const name levels => line (" ".intercalate ("c" :: name.toString false :: levels.map levelLine))
    | .app f a => do line s!"a {← part f} {← part a}"
    | .lam _ t b _ => do line s!"l {← part t} {← part b}"
    | .forallE _ t b _ => do line s!"p {← part t} {← part b}"
    | .letE _ t v b _ => do line s!"t {← part t} {← part v} {← part b}"
    | .lit (.natVal n) => line s!"n {n}"
    | .lit (.strVal s) => line s!"x {s}"
    | .proj name i a => do line s!"j {name.toString false} {i} {← part a}"
    | .mdata _ a => part a
    | .fvar _ | .mvar _ => line "?"
  modify fun parts => { parts with ofTerm := parts.ofTerm.insert e number }
  return number
where
  line (text : String) : StateM Parts Nat := do
    let parts ← get
    if let some number := parts.ofLine[text]? then return number
    let number := parts.lines.size
    set { parts with lines := parts.lines.push text, ofLine := parts.ofLine.insert text number }
    return number

/-- The term that a theorem states: its level parameters, and the lines of its parts. -/
def term (info : ConstantInfo) : String :=
  let parts := (part info.type).run {} |>.run.2
  "\n".intercalate (info.levelParams.map (·.toString false) ++ parts.lines.toList)

def answer (wanted : Wanted) : MetaM Unit := do
  let name := wanted.name
  let found : Json ← match ← find [] false (← getConstInfo name).type with
    | none => pure Json.null
    | some finding => pure (Json.mkObj [
      ("what", toJson finding.what), ("part", toJson finding.part),
      ("shown", toJson finding.shown)])
  IO.println ("@@ " ++ (Json.mkObj [
    ("theorem", toJson name.toString), ("found", found),
    ("supposed", toJson ((← supposed (← getConstInfo name).type).map Name.toString)),
    ("statement", toJson (← signature wanted)), ("term", toJson (term (← getConstInfo name)))]).compress)

def answerAll (env : Environment) (wanted : List Wanted) : IO Unit := do
  let context : Core.Context := { fileName := "<statements>", fileMap := default }
  let _ ← ((wanted.forM answer).run').toIO context { env }

/-- The modules of the library, and what is asked for. -/
partial def readAll (stdin : IO.FS.Stream) (modules : List Name) (wanted : List Wanted) :
    IO (List Name × List Wanted) := do
  let line := (← stdin.getLine).trimAscii.toString
  if line.isEmpty then return (modules.reverse, wanted.reverse)
  match line.splitOn "\t" with
  | [module, _] => readAll stdin (module.toName :: modules) wanted
  | _ =>
    let names := (line.splitOn " ").map String.toName
    readAll stdin modules ({ name := names.head!, opened := names.tail } :: wanted)

/-- Answers what standard input asks for. -/
def answerInput : IO Unit := do
  let (modules, wanted) ← readAll (← IO.getStdin) [] []
  let imports := modules.foldl (fun all module => all.push { module : Import })
    #[({ module := `Init } : Import)]
  let (_, state) ← (importModulesCore imports (globalLevel := .exported)
    (isExported := true)).run default
  let env ← finalizeImport state imports {} 0 false true (level := .exported) (isModule := true)
  answerAll env wanted
  IO.println ("@@ " ++ (Json.mkObj [("looked_at", toJson wanted.length)]).compress)
  (← IO.getStdout).flush

end Bridge.Statements

/-- In a thread of its own, which has the stack that deep recursion in interpreted code needs: the
main thread of the embedded Lean has 64 KiB, and does not tell when they are used up. -/
def main (_ : List String) : IO Unit := do
  let task ← IO.asTask (prio := .dedicated) Bridge.Statements.answerInput
  IO.ofExcept task.get
  IO.Process.exit 0
