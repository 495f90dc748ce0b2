module

public import Attention.Spec.Linear

public section

/-! # Embeddings and positional encodings

A token is a number below the size of the vocabulary, by type, and its embedding a row of a table.
The encoding that is added to a token is a function of its place alone, so that a longer sequence
has the same encodings at its beginning.
Source: Vaswani et al. 2017, "Attention Is All You Need", sections 3.4 and 3.5. -/

namespace Attention.Spec

universe u

variable {R : Type u} {n d vocab half : Nat}

/-- The embeddings of a sequence of tokens: for each the row of the table that it names. -/
@[expose] def embed (table : Matrix R vocab d) (tokens : Vector (Fin vocab) n) : Matrix R n d :=
  Vec.map (fun token => table[token]) tokens

/-- The encoding of each place added to the row that stands there. -/
@[expose] def addPositions [Add R] (position : Nat → Vec R d) (X : Matrix R n d) : Matrix R n d :=
  Vec.ofFn fun i => Vec.add X[i] (position i.val)

/-- The encoding of a place by sines and cosines: the sines of all its angles, then their cosines.
`angle p i` is p / 10000 ^ (2i / d), where d = 2 · half. -/
@[expose] def sinusoids (sin cos : R → R) (angle : Nat → Fin half → R) (p : Nat) :
    Vec R (half + half) :=
  ⟨(List.ofFn (fun i => sin (angle p i)) ++ List.ofFn fun i => cos (angle p i)).toArray, by simp⟩

/-- The linear layer of the logits whose matrix is the table of embeddings itself: tied
embeddings, without bias. -/
@[expose] def tiedOutput [OfNat R 0] (table : Matrix R vocab d) : Linear R d vocab :=
  ⟨table, Vec.zero⟩

end Attention.Spec
