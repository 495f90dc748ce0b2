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

/-- A size as text. -/
def sizes (q_len kv_len head_dim : Nat) : String :=
  s!"q_len {q_len}, kv_len {kv_len}, head_dim {head_dim}"

end Attention.Vectors
