module

public import Attention.Vectors.Random

public section

/-! # Families of cases -/

namespace Attention.Vectors

/-- A case that is still to be drawn, by its name. -/
structure Named (Case : Type) where
  /-- The name of the case, apart from the others of its family: its random numbers come from this
  name and the family's, so that no other case has an influence on them. -/
  name : String
  /-- Draws the case. -/
  gen : Gen Case

/-- The case with a change. -/
def Named.map {α β : Type} (f : α → β) (c : Named α) : Named β := ⟨c.name, f <$> c.gen⟩

/-- A case for each entry, named by their kind and by the entry as text. -/
def each {α β : Type} [ToString α] (kind : String) (entries : List α) (make : α → Gen β) :
    List (Named β) :=
  entries.map fun entry => ⟨s!"{kind} {entry}", make entry⟩

/-- A case for each entry, which begins with its name. -/
def eachNamed {α β : Type} (entries : List (String × α)) (make : String × α → Gen β) :
    List (Named β) :=
  entries.map fun entry => ⟨entry.1, make entry⟩

/-- Cases that belong together. -/
structure Family (Case : Type) where
  /-- The name of the family and of its file. -/
  name : String
  /-- The purpose of the family. -/
  about : String
  /-- The id of the theorem that says what a kernel has to yield. -/
  theoremId : String
  /-- The cases, in the order of their numbers. -/
  cases : List (Named Case)

/-- The first text that stands twice in a list. -/
def firstTwice : List String → Option String
  | [] => none
  | x :: xs => if xs.contains x then some x else firstTwice xs

/-- The cases of a family, each drawn from its own seed. Two with the same name are an error: they
would be drawn alike. -/
def Family.draw {Case : Type} (family : Family Case) : Except String (List Case) :=
  match firstTwice (family.cases.map (·.name)) with
  | some name => .error s!"{family.name}: two cases have the name '{name}'"
  | none => .ok (family.cases.map fun c => c.gen.drawFor s!"{family.name}/{c.name}")

/-- A size as text. -/
def sizes (q_len kv_len head_dim : Nat) : String :=
  s!"q_len {q_len}, kv_len {kv_len}, head_dim {head_dim}"

end Attention.Vectors
