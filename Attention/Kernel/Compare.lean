module

public meta import Lean.Elab.Tactic.ElabTerm
public meta import Lean.Meta.WHNF
public meta import Lean.Util.CollectFVars
public import Attention.Kernel.Forward

public meta section

/-! # A text of a kernel compared with the model, definition by definition

`compare_definitions` proves that what a text of the kernel stores is what the model says, from one
equation for each definition of the text that the model has too. The definitions are taken in the
order in which they use each other. In the value of one, those before it are replaced by what they
are equal to; if that is the value of a definition of the model, the two are equal, which the kernel
checks by unfolding these two alone, and congruence. A definition that the model does not have is
unfolded in those that use it.

No name of a text is used but those of its definitions' modules, and no order: a text that computes
the same from other variables, or in another order, has the same proof. Where a definition computes
nothing that the model does, it is named, with what it computes. -/

namespace Attention.Kernel.Compare

open Lean Meta Elab Tactic

/-- Where a definition comes from: a text, the model, or neither. -/
inductive Origin
  | text
  | model
  | other
  deriving BEq

/-- What a definition of a text computes: unfolded, with variables for definitions of the text that
the model has too; the same in terms of the model; and if the model has it, the proof that they are
equal. -/
structure Value where
  unfolded : Expr
  meaning : Expr
  proof? : Option Expr

/-- t, s: the tile and the state of an iteration. -/
structure Iteration where
  t : Expr
  s : Expr

/-- What has been found of the model and of a text. -/
structure Found where
  /-- By what it computes, each definition of the model. -/
  named : Std.HashMap Expr Expr := {}
  /-- What each definition of the model comes to: itself, or a simpler term. -/
  model : Std.HashMap Expr Expr := {}
  /-- What the definitions of the text come to. -/
  text : Std.HashMap Expr Value := {}
  /-- Of each variable the definition of the text that it stands for. -/
  stands : Std.HashMap FVarId Expr := {}
  /-- The definitions of the text that the model does not have, each after those it uses. -/
  unnamed : Array (Expr × Expr) := #[]

/-- Where a comparison is done. -/
abbrev CompareM := ReaderT Iteration <| StateRefT Found MetaM

/-- Where a definition comes from, by its module. -/
def originOf (name : Name) : MetaM Origin := do
  let env ← getEnv
  let some info := env.find? name | return .other
  unless info.hasValue && !env.isProjectionFn name do return .other
  let module := match env.getModuleIdxFor? name with
    | some index => env.header.moduleNames[index.toNat]!
    | none => env.mainModule
  if (`Attention.Kernel.Generated).isPrefixOf module then return .text
  if module == `Attention.Kernel.Ops || !(`Attention.Kernel).isPrefixOf module then return .other
  return .model

/-- How many arguments a definition takes before the lanes, the numbers at the end. -/
def contextSize (name : Name) : MetaM Nat := do
  if let some info ← getProjectionFnInfo? name then return info.numParams + 1
  let mut type := (← getConstInfo name).type
  let mut size := 0
  let mut context := 0
  while type.isForall do
    size := size + 1
    unless type.bindingDomain!.isConstOf ``Nat do context := size
    type := type.bindingBody!
  return context

/-- The definition's value at these arguments. -/
def valueOf (instance_ : Expr) : MetaM Expr := do
  let .const name levels := instance_.getAppFn | throwError "no definition: {instance_}"
  let info ← getConstInfo name
  return (← instantiateValueLevelParams info levels).beta instance_.getAppArgs

/-- The arguments of an iteration that a definition lacks. -/
def lacking (instance_ : Expr) : CompareM (Array Expr) := do
  let .const name _ := instance_.getAppFn | return #[]
  let { t, s } ← read
  match (← contextSize name) - instance_.getAppNumArgs with
  | 0 => return #[]
  | 1 => return #[s]
  | _ => return #[t, s]

/-- Whether nothing is computed: an argument, a literal, or a definition of the model. -/
def isPlain (e : Expr) : MetaM Bool := do
  match e.getAppFn with
  | .const name _ =>
    match ← getProjectionFnInfo? name with
    | some info => return !info.fromClass || name == ``OfNat.ofNat
    | none => return (← originOf name) == .model
  | .lam .. => return false
  | _ => return true

/-- Whether a structure or a list of cases is given by its parts. -/
def isConstructor (e : Expr) : MetaM Bool := return (← isConstructorApp? e).isSome

/-- Whether a function does not depend on one of its arguments. -/
def ignoresLane : Expr → Bool
  | .lam _ _ body _ => !body.hasLooseBVar 0 || ignoresLane body
  | _ => false

/-- The term without annotations. -/
def bare (e : Expr) : Expr :=
  e.replace fun
    | .mdata _ e => some e.consumeMData
    | _ => none

/-- `Prod.mk r.1 r.2` is r. -/
def etaProd (e : Expr) : Expr :=
  match e.getAppFnArgs with
  | (``Prod.mk, #[_, _, first, second]) =>
    match first.getAppFnArgs, second.getAppFnArgs with
    | (``Prod.fst, #[_, _, r]), (``Prod.snd, #[_, _, r']) => if r == r' then r else e
    | _, _ => e
  | _ => e

/-- Say which definition of the text is nothing that the model computes. -/
partial def refuse {α : Type} : CompareM α := do
  let found ← get
  let lane := Expr.const `lane []
  let rec marked : Expr → Expr
    | .lam _ _ body _ => marked (body.instantiate1 lane)
    | e => e
  let rec add (e : Expr) (known : Std.HashSet Expr) : Std.HashSet Expr :=
    if known.contains e then known else
      let known := known.insert e
      match e with
      | .app f x => add x (add f known)
      | .lam _ _ body _ => add (body.instantiate1 lane) known
      | _ => known
  let known := found.named.fold (init := {}) fun known value _ => add (marked value) known
  let rec computed (e : Expr) : CompareM Bool := do
    if known.contains e || (← isPlain e) then return true
    match ← isConstructorApp? e with
    | some c => (e.getAppArgs.extract c.numParams e.getAppNumArgs).allM fun x => computed (marked x)
    | none => return false
  for (definition, meaning) in found.unnamed do
    unless ← computed (marked meaning) do
      throwError "{definition.getAppFn.constName!} no longer matches the model, nothing of which \
        computes{indentExpr meaning}"
  let some (definition, meaning) := found.unnamed.back? | throwError "nothing was compared"
  throwError "{definition.getAppFn.constName!} no longer matches the model: it computes\
    {indentExpr meaning}"

mutual

/-- What a term of the model comes to, in terms of definitions of the model. -/
partial def simplify (e : Expr) : CompareM Expr := do
  match e with
  | .mdata _ e => return ← simplify e
  | _ => unless e.hasFVar || e.hasLooseBVars do return bare e
  match e with
  | .lam name type body info =>
    if type.isConstOf ``Int then
      let t := (← read).t
      return (← mkLambdaFVars #[t] (← simplify (body.instantiate1 t))).eta
    return (Expr.lam name (← simplify type) (← simplify body) info).eta
  | .forallE name type body info =>
    return .forallE name (← simplify type) (← simplify body) info
  | .proj _ index e' =>
    let e' ← simplify e'
    match ← isConstructorApp? e' with
    | some c => return e'.getAppArgs[c.numParams + index]!
    | none => return e.updateProj! e'
  | .app .. | .const .. => simplifyApp e
  | _ => return e

/-- The same of an application. -/
partial def simplifyApp (e : Expr) : CompareM Expr := do
  let f := e.getAppFn
  if f.isLambda then return ← simplify e.headBeta
  let .const name _ := f | return mkAppN f (← e.getAppArgs.mapM simplify)
  let arguments := e.getAppArgs
  if let some info ← getProjectionFnInfo? name then
    if h : info.numParams < arguments.size then
      if !info.fromClass then
        let of := arguments[info.numParams]
        let before := arguments.extract 0 info.numParams
        let rest ← (arguments.extract (info.numParams + 1) arguments.size).mapM simplify
        if !of.hasLooseBVars && (← isProblem of) then
          return ← simplifyHead ((← modelValue (mkApp (mkAppN f before) of)).beta rest)
        let of ← simplify of
        match ← isConstructorApp? of with
        | some c =>
          return ← simplifyHead (mkAppN of.getAppArgs[c.numParams + info.i]! rest)
        | none =>
          return mkAppN f ((← before.mapM simplify) ++ #[of] ++ rest)
  if (← getMatcherInfo? name).isSome then
    let some info ← getMatcherInfo? name | unreachable!
    let first := info.getFirstDiscrPos
    let mut some_ := arguments
    for i in [first : first + info.numDiscrs] do
      some_ := some_.set! i (← simplify some_[i]!)
    match ← reduceMatcher? (mkAppN f some_) with
    | .reduced e => return ← simplify e
    | _ => return mkAppN f (← some_.mapM simplify)
  if name == ``Attention.Kernel.Access.read then
    return ← simplify (← valueOf e)
  match ← originOf name with
  | .text => simplify (← unfoldText e)
  | .other =>
    let e := etaProd (mkAppN f (← arguments.mapM simplify))
    if e.hasLooseBVars then return e
    return (← get).named[e]?.getD e
  | .model =>
    let context := arguments.extract 0 (← contextSize name)
    if context.any fun x => x.hasLooseBVars || x.isLambda then
      return ← simplify (← valueOf e)
    let lanes ← (arguments.extract context.size arguments.size).mapM simplify
    return (← modelValue (mkAppN f context)).beta lanes

/-- Beta reduction, and what comes of it. -/
partial def simplifyHead (e : Expr) : CompareM Expr :=
  if e.getAppFn.isLambda then simplify e.headBeta else return e

/-- Whether a term of the model is a bundle of what a text is given, a structure by definition. -/
partial def isProblem (e : Expr) : CompareM Bool := do
  let .const name _ := e.getAppFn | return false
  let some info := (← getEnv).find? name | return false
  return info.type.getForallBody.getAppFn.isConstOf `Attention.Kernel.Problem

/-- What a definition of the model comes to at these arguments. -/
partial def modelValue (e : Expr) : CompareM Expr := do
  if let some found := (← get).model[e]? then return found
  let missing ← lacking e
  unless missing.isEmpty do
    let found := (← mkLambdaFVars missing (← modelValue (mkAppN e missing))).eta
    modify fun x => { x with model := x.model.insert e found }
    return found
  let field := (← getEnv).isProjectionFn e.getAppFn.constName!
  let value ← if field then
      let some value ← unfoldProjection e | throwError "no field: {e}"
      pure value
    else valueOf e
  let value ← simplify value
  let isSeenThrough ← do
    if ignoresLane value || (← isPlain value) then pure true
    else if field then isConstructor value else pure false
  let found ← if isSeenThrough then pure value
    else match (← get).named[value]? with
      | some name => pure name
      | none =>
        modify fun x => { x with named := x.named.insert value e }
        pure e
  modify fun x => { x with model := x.model.insert e found }
  return found

/-- The field of a bundle of the model. -/
partial def unfoldProjection (e : Expr) : CompareM (Option Expr) := do
  let some info ← getProjectionFnInfo? e.getAppFn.constName! | return none
  let of ← whnf e.getAppArgs[info.numParams]!
  let some c ← isConstructorApp? of | return none
  return of.getAppArgs[c.numParams + info.i]!

/-- Definitions of the text unfolded. -/
partial def unfoldText (e : Expr) : CompareM Expr := do
  let name := e.getAppFn.constName!
  let size ← contextSize name
  let arguments := e.getAppArgs
  let of := mkAppN e.getAppFn (arguments.extract 0 size)
  return (← textValue of).unfolded.beta (arguments.extract size arguments.size)

/-- What a definition of the text comes to at these arguments. -/
partial def textValue (e : Expr) : CompareM Value := do
  if let some found := (← get).text[e]? then return found
  let missing ← lacking e
  let found ← if missing.isEmpty then newValue e else
    let whole ← textValue (mkAppN e missing)
    let some proof := whole.proof? | refuse
    let mut proof := proof
    let mut meaning := whole.meaning
    for x in missing.reverse do
      proof ← mkAppM ``funext #[← mkLambdaFVars #[x] proof]
      meaning := (← mkLambdaFVars #[x] meaning).eta
    named e meaning proof
  modify fun x => { x with text := x.text.insert e found }
  return found

/-- A definition of the text that the model has. -/
partial def named (e meaning proof : Expr) : CompareM Value := do
  let variable_ ← mkFreshFVarId
  modify fun x => { x with stands := x.stands.insert variable_ e }
  return { unfolded := .fvar variable_, meaning, proof? := some proof }

/-- The same where it has not been found before. -/
partial def newValue (e : Expr) : CompareM Value := do
  let unfolded ← Core.transform (← valueOf e) (pre := fun part => do
    match part.getAppFn with
    | .const name _ =>
      if (← originOf name) == .text then return .done (← unfoldText part)
      return .continue
    | _ => return .continue)
  let stands := (← get).stands
  let variables := (collectFVars {} unfolded).fvarIds.filter stands.contains
  let used ← variables.mapM fun x => textValue stands[x]!
  let meaning ← simplify (unfolded.replaceFVars (variables.map .fvar) (used.map (·.meaning)))
  let isType := (← inferType e).isSort
  let mut model? := (← get).named[meaning]?
  if ← isPlain meaning then model? := some meaning
  match if isType then none else model? with
  | none =>
    unless isType do
      modify fun x => { x with unnamed := x.unnamed.push (e, meaning) }
    return { unfolded, meaning, proof? := none }
  | some model =>
    -- By congruence from the definitions that it uses; what is left is the unfolding of both sides.
    let types ← variables.mapM fun x => inferType stands[x]!
    let mut function := unfolded.abstract (variables.map .fvar)
    for (_, type) in (variables.zip types).reverse do
      function := .lam `x type function .default
    let mut proof ← mkEqRefl function
    for one in used do
      proof ← mkCongr proof one.proof?.get!
    named e model (mkExpectedPropHint proof (← mkEq e model))

end

/-- The proof that a definition of the text is that of the model. -/
def compare (text model : Expr) : CompareM Expr := do
  -- Twice: a part of one may be another one, which is found after it.
  discard <| modelValue model
  modify fun x => { x with model := {} }
  let wanted ← modelValue model
  let value ← textValue text
  match value.proof? with
  | some proof => if value.meaning == wanted then return proof else refuse
  | none => refuse

/-- The proof of equations, joined by ∧. -/
partial def prove (goal : Expr) : CompareM Expr := do
  match goal.and? with
  | some (left, right) => mkAppM ``And.intro #[← prove left, ← prove right]
  | none =>
    let some (_, text, model) := goal.eq? | throwError "no equation: {goal}"
    return mkExpectedPropHint (← compare text model) goal

/-- Proves equations, joined by ∧, of definitions of a text on the left and of the model on the
right. -/
elab "compare_definitions" : tactic => liftMetaTactic fun goal => goal.withContext do
  let target := (← instantiateMVars (← goal.getType)).consumeMData
  let target := if let .letE _ _ value body _ := target then body.instantiate1 value else target
  let some (_, _, model) := (target.and?.elim target Prod.fst).eq?
    | throwError "`compare_definitions` proves equations, not{indentExpr target}"
  let state ← mkAppM ``Problem.State #[model.getAppArgs[0]!]
  let proof ← withLocalDeclD `t (.const ``Int []) fun t => withLocalDeclD `s state fun s =>
    (prove target).run { t, s } |>.run' {}
  goal.assign proof
  return []

end Attention.Kernel.Compare
