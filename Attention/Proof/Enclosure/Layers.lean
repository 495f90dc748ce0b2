module

public import Attention.Model.RootSound
public import Attention.Proof.Enclosure.Mods
public import Attention.Proof.Enclosure.Vectors
public import Attention.Proof.Heads.MultiHead
public import Attention.Spec.Embedding
public import Attention.Spec.FeedForward
public import Attention.Spec.LayerNorm
public import Attention.Spec.MultiHead

public section

/-! # The parts of a transformer, run over intervals, contain the true values

Linear layers, layer normalisation, feed-forward networks, embeddings, and multi-head attention with
its projections. Parameters are intervals, as inputs are. -/

namespace Attention.Proof

open Spec Model

universe u

variable {R : Type u} [OrderedField R] {p m n d d_in d_out d_ff d_model num_heads vocab : Nat}
variable {q_len kv_len : Nat}

/-! ## Linear layers -/

/-- The intervals of a linear layer's parameters contain them. -/
structure LinearContains (W' : Linear (Interval p) d_in d_out) (W : Linear R d_in d_out) : Prop
    where
  /-- W. -/
  weight : MatrixContains W'.weight W.weight
  /-- b. -/
  bias : VecContains W'.bias W.bias

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply LinearContains.weight | apply LinearContains.bias)

/-- A linear layer on an enclosed row. -/
theorem LinearContains.row {W' : Linear (Interval p) d_in d_out} {W : Linear R d_in d_out}
    (hW : LinearContains W' W) {I : Vec (Interval p) d_in} {x : Vec R d_in}
    (hx : VecContains I x) : VecContains (W'.row I) (W.row x) := by enclose [Linear.row]

macro_rules | `(tactic| enclose_step) => `(tactic| apply LinearContains.row)

/-- A linear layer on each row of an enclosed matrix. -/
theorem LinearContains.rows {W' : Linear (Interval p) d_in d_out} {W : Linear R d_in d_out}
    (hW : LinearContains W' W) {X' : Matrix (Interval p) m d_in} {X : Matrix R m d_in}
    (hX : MatrixContains X' X) : MatrixContains (W'.rows X') (W.rows X) := by enclose [Linear.rows]

/-- Sums of enclosed matrices. -/
theorem contains_addRows {X' Y' : Matrix (Interval p) m n} {X Y : Matrix R m n}
    (hX : MatrixContains X' X) (hY : MatrixContains Y' Y) :
    MatrixContains (addRows X' Y') (addRows X Y) := by enclose [addRows]

/-! ## Layer normalisation -/

/-- The intervals of a layer normalisation's parameters contain them. -/
structure LayerNormContains (N' : LayerNorm (Interval p) d) (N : LayerNorm R d) : Prop where
  /-- The factor of each normalised component. -/
  gain : VecContains N'.gain N.gain
  /-- The number that is added to it then. -/
  bias : VecContains N'.bias N.bias

/-- The function of intervals makes, of what contains a number, what contains its root. -/
@[expose] def RootContains (root' : Interval p → Interval p) (root : R → R) : Prop :=
  ∀ I x, I.Contains x → (root' I).Contains (root x)

/-- `Interval.sqrt` does, of every square root. -/
theorem rootContains_sqrt {root : R → R} (h : Interval.IsSqrt root) :
    RootContains (p := p) Interval.sqrt root := fun _ _ hx => Interval.contains_root h hx

/-- A root. -/
theorem RootContains.root {root' : Interval p → Interval p} {root : R → R}
    (h : RootContains root' root) {I : Interval p} {x : R} (hx : I.Contains x) :
    (root' I).Contains (root x) := h I x hx

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply LinearContains.rows | apply contains_addRows | apply LayerNormContains.gain
  | apply LayerNormContains.bias | (apply RootContains.root; assumption))

/-- The mean of the components of an enclosed vector. -/
theorem contains_mean {I : Vec (Interval p) d} {x : Vec R d} (hx : VecContains I x) :
    (mean I).Contains (mean x) := by enclose [mean]

macro_rules | `(tactic| enclose_step) => `(tactic| apply contains_mean)

/-- The components less their mean. -/
theorem contains_centred {I : Vec (Interval p) d} {x : Vec R d} (hx : VecContains I x) :
    VecContains (centred I) (centred x) := by enclose [centred]

macro_rules | `(tactic| enclose_step) => `(tactic| apply contains_centred)

/-- The mean of the squared distances from the mean. -/
theorem contains_variance {I : Vec (Interval p) d} {x : Vec R d} (hx : VecContains I x) :
    (variance I).Contains (variance x) := by enclose [variance]

macro_rules | `(tactic| enclose_step) => `(tactic| apply contains_variance)

/-- Layer normalisation of an enclosed row. -/
theorem LayerNormContains.row {root' : Interval p → Interval p} {root : R → R}
    (hroot : RootContains root' root) {ε' : Interval p} {ε : R} (hε : ε'.Contains ε)
    {N' : LayerNorm (Interval p) d} {N : LayerNorm R d} (hN : LayerNormContains N' N)
    {I : Vec (Interval p) d} {x : Vec R d} (hx : VecContains I x) :
    VecContains (N'.row root' ε' I) (N.row root ε x) := by
  enclose [LayerNorm.row]

macro_rules | `(tactic| enclose_step) => `(tactic| apply LayerNormContains.row)

/-- **layer-norm-enclosed**: layer normalisation computed with intervals, over rows and parameters
that contain the true ones and with a root of intervals that contains the root, contains the true
normalised rows. -/
theorem layerNorm_enclosed {root' : Interval p → Interval p} {root : R → R}
    (hroot : RootContains root' root) {ε' : Interval p} {ε : R} (hε : ε'.Contains ε)
    {N' : LayerNorm (Interval p) d} {N : LayerNorm R d} (hN : LayerNormContains N' N)
    {X' : Matrix (Interval p) m d} {X : Matrix R m d} (hX : MatrixContains X' X) :
    MatrixContains (N'.rows root' ε' X') (N.rows root ε X) := by
  enclose [LayerNorm.rows]

/-! ## Feed-forward networks -/

/-- The intervals of a feed-forward network's parameters contain them. -/
structure FeedForwardContains (F' : FeedForward (Interval p) d d_ff) (F : FeedForward R d d_ff) :
    Prop where
  /-- W₁ and b₁. -/
  hidden : LinearContains F'.hidden F.hidden
  /-- W₂ and b₂. -/
  output : LinearContains F'.output F.output

/-- The rectified linear unit. -/
theorem contains_relu {I : Interval p} {x : R} (hx : I.Contains x) :
    (relu I).Contains (relu x) :=
  Interval.contains_max contains_zero hx

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply contains_relu | apply FeedForwardContains.hidden | apply FeedForwardContains.output)

/-- A feed-forward network on an enclosed row. -/
theorem FeedForwardContains.row {F' : FeedForward (Interval p) d d_ff} {F : FeedForward R d d_ff}
    (hF : FeedForwardContains F' F) {I : Vec (Interval p) d} {x : Vec R d} (hx : VecContains I x) :
    VecContains (F'.row I) (F.row x) := by
  enclose [FeedForward.row]

macro_rules | `(tactic| enclose_step) => `(tactic| apply FeedForwardContains.row)

/-- **feed-forward-enclosed**: the feed-forward network computed with intervals, over rows and
parameters that contain the true ones, contains what it makes of the true rows. -/
theorem feedForward_enclosed {F' : FeedForward (Interval p) d d_ff} {F : FeedForward R d d_ff}
    (hF : FeedForwardContains F' F) {X' : Matrix (Interval p) m d} {X : Matrix R m d}
    (hX : MatrixContains X' X) : MatrixContains (F'.rows X') (F.rows X) := by
  enclose [FeedForward.rows]

/-! ## Embeddings -/

/-- The embeddings of tokens by an enclosed table. -/
theorem contains_embed {table' : Matrix (Interval p) vocab d} {table : Matrix R vocab d}
    (h : MatrixContains table' table) (tokens : Vector (Fin vocab) n) :
    MatrixContains (embed table' tokens) (embed table tokens) := by
  intro i hi
  rw [embed, embed, Vec.getElem_map, Vec.getElem_map]
  exact h _ _

/-- Enclosed encodings of the places, added to enclosed rows. -/
theorem contains_addPositions {position' : Nat → Vec (Interval p) d} {position : Nat → Vec R d}
    (h : ∀ i, VecContains (position' i) (position i)) {X' : Matrix (Interval p) n d}
    {X : Matrix R n d} (hX : MatrixContains X' X) :
    MatrixContains (addPositions position' X') (addPositions position X) :=
  related_ofFn fun i => related_add (hX i.val i.isLt) (h i.val)

/-- The layer of the logits with an enclosed table of embeddings. -/
theorem contains_tiedOutput {table' : Matrix (Interval p) vocab d} {table : Matrix R vocab d}
    (h : MatrixContains table' table) : LinearContains (tiedOutput table') (tiedOutput table) :=
  ⟨h, related_zero⟩

/-! ## Multi-head attention -/

/-- The intervals of the parameters of multi-head attention contain them. -/
structure MultiHeadContains (W' : MultiHead (Interval p) d_model num_heads d)
    (W : MultiHead R d_model num_heads d) : Prop where
  /-- The queries' projection. -/
  query : LinearContains W'.query W.query
  /-- The keys' projection. -/
  key : LinearContains W'.key W.key
  /-- The values' projection. -/
  value : LinearContains W'.value W.value
  /-- The projection of the heads' outputs. -/
  output : LinearContains W'.output W.output

/-- The columns of an enclosed matrix, split to the heads. -/
theorem contains_splitHeads {X' : Matrix (Interval p) n (num_heads * d)}
    {X : Matrix R n (num_heads * d)} (hX : MatrixContains X' X) (h : Nat) (hh : h < num_heads) :
    MatrixContains (splitHeads X')[h] (splitHeads X)[h] := by
  rw [splitHeads, splitHeads, Vec.getElem_ofFn, Vec.getElem_ofFn]
  exact related_ofFn fun i => related_ofFn fun c => hX i.val i.isLt _ _

/-- Enclosed outputs of all heads, side by side. -/
theorem contains_concatHeads {heads' : Vector (Matrix (Interval p) n d) num_heads}
    {heads : Vector (Matrix R n d) num_heads}
    (h : ∀ (c : Nat) (hc : c < num_heads), MatrixContains heads'[c] heads[c]) :
    MatrixContains (concatHeads heads') (concatHeads heads) := by
  intro i hi j hj
  have e' := getElem_concatHeads_headOf heads' ⟨i, hi⟩ ⟨j, hj⟩
  have e := getElem_concatHeads_headOf heads ⟨i, hi⟩ ⟨j, hj⟩
  simp only [Fin.getElem_fin] at e' e
  rw [e', e]
  exact h _ _ i hi _ _

variable [NaturalExp R]

/-- Attention of all heads between enclosed projections. -/
theorem MultiHeadContains.attend {scale' : Interval p} {scale : R} (hscale : scale'.Contains scale)
    {W' : MultiHead (Interval p) d_model num_heads d} {W : MultiHead R d_model num_heads d}
    (hW : MultiHeadContains W' W) (mask : Mask q_len kv_len)
    {Q' : Matrix (Interval p) q_len (num_heads * d)} {Q : Matrix R q_len (num_heads * d)}
    {K' V' : Matrix (Interval p) kv_len (num_heads * d)} {K V : Matrix R kv_len (num_heads * d)}
    (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K) (hV : MatrixContains V' V) :
    MatrixContains (W'.attend scale' mask Q' K' V') (W.attend scale mask Q K V) := by
  refine hW.output.rows (contains_concatHeads fun c hc => ?_)
  rw [multiHead, multiHead, Vec.getElem_ofFn, Vec.getElem_ofFn]
  exact enclosure_sound hscale (related_mask mask) (contains_splitHeads hQ c hc)
    (contains_splitHeads hK c hc) (contains_splitHeads hV c hc)

/-- **multi-head-enclosed**: multi-head attention with its projections, computed with intervals over
rows, a scale and parameters that contain the true ones, contains the true attention, whatever
natural exponential it is taken with. -/
theorem multiHead_enclosed {scale' : Interval p} {scale : R} (hscale : scale'.Contains scale)
    {W' : MultiHead (Interval p) d_model num_heads d} {W : MultiHead R d_model num_heads d}
    (hW : MultiHeadContains W' W) (mask : Mask q_len kv_len)
    {Q' : Matrix (Interval p) q_len d_model} {Q : Matrix R q_len d_model}
    {K' V' : Matrix (Interval p) kv_len d_model} {K V : Matrix R kv_len d_model}
    (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K) (hV : MatrixContains V' V) :
    MatrixContains (W'.rows scale' mask Q' K' V') (W.rows scale mask Q K V) :=
  hW.attend hscale mask (hW.query.rows hQ) (hW.key.rows hK) (hW.value.rows hV)

end Attention.Proof
