module

@[expose] public section

/-! # The red-blue pebble game on the scores of attention

A slow memory holds any number of elements, a fast one at most M. An element in slow memory has a
blue pebble, one in fast memory a red one, and only from elements with red pebbles can another be
computed. Each load and each store moves one element, and is counted.

The elements are those of Q and of K, sums of products q_ic · k_jc of one query and one key, and
whatever else: values, weights, states, outputs. A score is formed as a sum of its d products, in
any order and with any brackets; partial sums may be stored, loaded, deleted and computed again.

The game is generous to the player where that costs the lower bound nothing. A sum may be computed
at once from any parts of it, without room for those between (a whole inner product is one move);
the result may take the place of an operand; elements that are neither inputs nor sums are there
from the start, and can be computed from nothing.

Not captured: a score that is formed in another way than as a sum of its products (by subtraction,
as fast matrix multiplication does), an element that holds several numbers packed into one.
Source: Hong & Kung 1981, "I/O complexity: the red-blue pebble game"; Saha & Ye 2024, "The I/O
complexity of attention, or how optimal is FlashAttention?", for the game on attention. -/

namespace Attention.Model.Pebble

universe u

/-- A sum of products q_ic · k_jc of one query and one key, by their components. -/
inductive Sum (d : Nat) where
  /-- One product. -/
  | product (c : Fin d)
  /-- The sum of two sums. -/
  | add (left right : Sum d)
  deriving DecidableEq

/-- Whether a product occurs in a sum. -/
def Sum.has {d : Nat} (c : Fin d) : Sum d → Bool
  | product c' => decide (c' = c)
  | add left right => left.has c || right.has c

/-- The elements that a pebble may lie on, for Q of `q_len` rows, K of `kv_len` rows, and rows of
`d`. -/
inductive Element (q_len kv_len d : Nat) (α : Type u) where
  /-- A component of a query. -/
  | query (i : Fin q_len) (c : Fin d)
  /-- A component of a key. -/
  | key (j : Fin kv_len) (c : Fin d)
  /-- A sum of products of query `i` and key `j`. -/
  | sum (i : Fin q_len) (j : Fin kv_len) (products : Sum d)
  /-- Anything else, called by a name. -/
  | other (name : α)
  deriving DecidableEq

/-- A move. -/
inductive Move (q_len kv_len d : Nat) (α : Type u) where
  /-- From slow to fast memory. -/
  | load (x : Element q_len kv_len d α)
  /-- From fast to slow memory; it stays in fast memory. -/
  | store (x : Element q_len kv_len d α)
  /-- Compute from what is in fast memory. -/
  | compute (x : Element q_len kv_len d α)
  /-- Compute, and let the result take the place of another. -/
  | replace (x old : Element q_len kv_len d α)
  /-- Take from fast memory. -/
  | delete (x : Element q_len kv_len d α)

/-- The contents of the two memories; inputs are not listed in slow memory, where they always are.
-/
structure State (q_len kv_len d : Nat) (α : Type u) where
  /-- Fast memory. -/
  red : List (Element q_len kv_len d α)
  /-- Slow memory. -/
  blue : List (Element q_len kv_len d α)
  deriving DecidableEq

variable {q_len kv_len d : Nat} {α : Type u}

/-- Nothing in fast memory, the inputs in slow memory. -/
def start : State q_len kv_len d α := ⟨[], []⟩

/-- That an element is in slow memory from the start: all but sums. -/
def Element.isInput : Element q_len kv_len d α → Bool
  | sum _ _ _ => false
  | _ => true

/-- That a move is between the two memories. -/
def Move.isTransfer : Move q_len kv_len d α → Bool
  | load _ | store _ => true
  | _ => false

/-- The elements that a play moves between the two memories. -/
def transfers (play : List (Move q_len kv_len d α)) : Nat := play.countP Move.isTransfer

/-- A rule of computing: whether an element can be computed where these lie in fast memory. -/
abbrev Rule (q_len kv_len d : Nat) (α : Type u) : Type u :=
  List (Element q_len kv_len d α) → Element q_len kv_len d α → Bool

section
variable [DecidableEq α]

/-- That a sum can be computed: it lies in fast memory, or both its parts can be, or it is one
product, and the two factors lie there. -/
def addsUp (red : List (Element q_len kv_len d α)) (i : Fin q_len) (j : Fin kv_len) :
    Sum d → Bool
  | .product c => decide (.sum i j (.product c) ∈ red)
      || decide (.query i c ∈ red) && decide (.key j c ∈ red)
  | .add left right => decide (.sum i j (.add left right) ∈ red)
      || addsUp red i j left && addsUp red i j right

/-- The rule of the game: sums from their parts, nothing makes an input, and anything else may be
computed at any time. -/
def bySums : Rule q_len kv_len d α
  | red, .sum i j products => addsUp red i j products
  | _, .other _ => true
  | _, _ => false

variable (rule : Rule q_len kv_len d α) (M : Nat)

/-- A move with room for `M` elements in fast memory; `none` if it is not allowed. -/
def step (s : State q_len kv_len d α) :
    Move q_len kv_len d α → Option (State q_len kv_len d α)
  | .load x =>
    if (x.isInput ∨ x ∈ s.blue) ∧ s.red.length < M then some { s with red := x :: s.red } else none
  | .store x => if x ∈ s.red then some { s with blue := x :: s.blue } else none
  | .compute x =>
    if rule s.red x ∧ s.red.length < M then some { s with red := x :: s.red } else none
  | .replace x old =>
    if rule s.red x ∧ old ∈ s.red then some { s with red := x :: s.red.erase old } else none
  | .delete x => some { s with red := s.red.erase x }

/-- The state after a play; `none` if a move of it is not allowed. -/
def run (s : State q_len kv_len d α) :
    List (Move q_len kv_len d α) → Option (State q_len kv_len d α)
  | [] => some s
  | move :: play => (step rule M s move).bind (run · play)

/-- That a play forms a score: at some time a sum of all its products is in fast memory. (A product
may be in it twice: a play that forms the score itself adds each once.) -/
def Forms (s : State q_len kv_len d α) (play : List (Move q_len kv_len d α))
    (i : Fin q_len) (j : Fin kv_len) : Prop :=
  ∃ before s' products, before <+: play ∧ run rule M s before = some s'
    ∧ (∀ c, Sum.has c products) ∧ .sum i j products ∈ s'.red

end

end Attention.Model.Pebble
