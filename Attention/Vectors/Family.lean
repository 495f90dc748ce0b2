module

public import Attention.Vectors.Random

public section

/-! # Families of cases -/

namespace Attention.Vectors

/-- Cases that belong together. -/
structure Family (Case : Type) where
  /-- The name of the family and of its file. -/
  name : String
  /-- What the family is for. -/
  about : String
  /-- The id of the theorem that says what a kernel has to yield. -/
  theoremId : String
  /-- The cases, drawn from the family's own seed. -/
  cases : Gen (List Case)

/-- Runs one generator after the other. -/
def each {α β : Type} (xs : List α) (f : α → Gen β) : Gen (List β) :=
  match xs with
  | [] => return []
  | x :: xs => return (← f x) :: (← each xs f)

/-- A case for each entry, from the entry and from whether its loss depends on the log-sum-exp:
every other one's does. -/
def everyOther {α β : Type} (entries : List α) (make : α → Bool → Gen β) : Gen (List β) :=
  each entries.zipIdx fun (entry, n) => make entry (n % 2 == 1)

/-- A size as text. -/
def sizes (q_len kv_len head_dim : Nat) : String :=
  s!"q_len {q_len}, kv_len {kv_len}, head_dim {head_dim}"

end Attention.Vectors
