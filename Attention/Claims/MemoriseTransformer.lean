module

public import Attention.Claims.AllYouNeed
public import Attention.Claims.Memorise
public import Attention.Claims.MemoriseLayers
public import Attention.Claims.MemoriseTokens
public import Attention.Claims.MemoriseUnits

public section

/-! # A transformer memorises

What is true of `AttentionIsAllYouNeed`: every architecture that is large enough has, for each
function of both sequences, parameters with which Forward returns it. One layer of the encoder and
one of the decoder give each token and its place a component of its own; a second layer of the
decoder adds to each row the mean of those of the target, by self-attention, and of the source, by
cross-attention, and one hidden unit for each row that there is makes of it the token asked for. All
rows that enter a layer normalisation have the same mean and the same variance, so that it can undo
itself. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} {s t s_vocab t_vocab d_model num_heads d d_ff : Nat}

/-- How many components suffice: one for each token at each place, of the target and of the source,
one for each token and each place, and one that is always 0. -/
@[expose] def memoryWidth (s t s_vocab t_vocab : Nat) : Nat :=
  t_vocab * t + s_vocab * s + (s_vocab + t_vocab) + (s + t) + 1

/-- How many hidden units suffice: one for each pair of sequences and each place, and one for each
token at each place. -/
@[expose] def memoryUnits (s t s_vocab t_vocab : Nat) : Nat :=
  s_vocab ^ s * (t_vocab ^ t * t) + s_vocab * s + t_vocab * t

variable [OrderedField R]

/-- What the normalisation of rows with one component 1, the others 0, undoes. -/
private abbrev unitNorm (n : Nat) (sqrt : R → R) (ε : R) : LayerNorm R n := undoingNorm n sqrt ε 1 1

/-- What the normalisation of embedded tokens undoes. -/
private abbrev embeddedNorm (n : Nat) (sqrt : R → R) (ε : R) : LayerNorm R n :=
  undoingNorm n sqrt ε 2 2

section
variable {sqrt : R → R} (root : ∀ x, 0 < x → sqrt x ≠ 0) {ε : R} (hε : 0 ≤ ε)
include root hε

private theorem unitNorm_row {k : Nat} (hk : k + 1 < d_model) :
    (unitNorm d_model sqrt ε).row sqrt ε (unit d_model k) = unit d_model k := by
  have one := OrderedRing.zero_lt_one (R := R)
  refine undoingNorm_row root hε (by grind) (sum_unit (by omega)) (dot_unit_self (by omega))
    ⟨d_model - 1, by omega⟩ ?_
  rw [Fin.getElem_fin, getElem_unit, if_neg (by show d_model - 1 ≠ k; omega)]

private theorem embeddedNorm_row {o a p : Nat} (ha : a < o) (hp : o + p + 1 < d_model) :
    (embeddedNorm d_model sqrt ε).row sqrt ε (embedded d_model o a p) = embedded d_model o a p := by
  have one := OrderedRing.zero_lt_one (R := R)
  refine undoingNorm_row root hε (by grind) (sum_embedded ha (by omega)) (dot_embedded ha (by omega))
    ⟨d_model - 1, by omega⟩ ?_
  rw [Fin.getElem_fin, embedded, getElem_sparse]
  have h₁ : d_model - 1 ≠ a := by omega
  have h₂ : d_model - 1 ≠ o + p := by omega
  simp only [weightAt, sumOver_cons, sumOver_nil, if_neg h₁, if_neg h₂]
  grind

private theorem decoderNorm_row {c c' : R} (hc : 0 ≤ c) (hc' : 0 ≤ c')
    (h : t_vocab * t + s_vocab * s < d_model) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (p : Fin t) :
    let x := sparse d_model (decoderWeights c c' source target p)
    (undoingNorm d_model sqrt ε (decoderSum s t c c') (decoderSquares s t c c')).row sqrt ε x = x := by
  intro x
  have one := OrderedRing.zero_lt_one (R := R)
  refine undoingNorm_row root hε ?_ (sum_decoderRow (by omega)) (dot_decoderRow (by omega))
    ⟨d_model - 1, by omega⟩ ?_
  · have h₁ := sumOver_nonneg (f := fun _ : Fin t => c) (xs := List.finRange t) fun _ _ => hc
    have h₂ := sumOver_nonneg (f := fun _ : Fin s => c') (xs := List.finRange s) fun _ _ => hc'
    rw [decoderSum]
    grind
  · rw [Fin.getElem_fin, getElem_sparse]
    refine sumOver_eq_zero fun y hy => if_neg ?_
    have := decoderWeights_lt hy
    show d_model - 1 ≠ y.1
    omega

end

/-! ## One component for each token at its place -/

/-- A feed-forward network that gives each token at its place a component of its own. -/
private theorem exists_coding {v n o : Nat} (code : Fin v → Fin n → Nat) (units : v * n ≤ d_ff)
    (tokens : v ≤ o) (places : o + n ≤ d_model) :
    ∃ F : FeedForward R d_model d_ff, ∀ (a : Fin v) (p : Fin n),
      Vec.add (embedded d_model o a.val p.val) (F.row (embedded d_model o a.val p.val))
        = unit d_model (code a p) := by
  obtain ⟨xs, len, all⟩ := exists_pairs (List.finRange v) (List.finRange n)
  obtain ⟨F, h⟩ := exists_residual (R := R) (n := d_model) (d_ff := d_ff) (xs := xs) (Q := 2)
    (x := fun y => embedded d_model o y.1.val y.2.val) (z := fun y => unit d_model (code y.1 y.2))
    (by rw [len, List.length_finRange, List.length_finRange]; exact units)
    (fun y _ => dot_embedded (by have := y.1.isLt; omega) (by have := y.2.isLt; omega))
    fun y y' e => by
      obtain ⟨h₁, h₂⟩ := embedded_inj (by have := y.1.isLt; omega) (by have := y.2.isLt; omega)
        (by have := y'.1.isLt; omega) e
      simp only [Fin.ext h₁, Fin.ext h₂]
  exact ⟨F, fun a p => h (a, p) (all a (List.mem_finRange a) p (List.mem_finRange p))⟩

private theorem add_zero_right {n : Nat} (x : Vec R n) : Vec.add x Vec.zero = x :=
  Vector.ext fun i hi => by rw [Vec.getElem_add, Vec.getElem_zero]; grind

/-! ## Rows of the decoder -/

/-- The weights of the target's tokens in a mean. -/
private abbrev targetWeights (c : R) (target : Vector (Fin t_vocab) t) : List (Nat × R) :=
  (List.finRange t).map fun q => (targetCode target[q] q, c)

/-- The weights of the source's tokens in a mean. -/
private abbrev sourceWeights (t_vocab t : Nat) (c' : R) (source : Vector (Fin s_vocab) s) :
    List (Nat × R) :=
  (List.finRange s).map fun j => (sourceCode t_vocab t source[j] j, c')

private theorem add_target (c : R) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (p : Fin t) :
    Vec.add (unit d_model (targetCode target[p] p)) (sparse d_model (targetWeights c target))
      = sparse d_model (decoderWeights c 0 source target p) := by
  rw [unit, add_sparse]
  refine Vector.ext fun i hi => ?_
  have zero : sumOver (fun y : Nat × R => if i = y.1 then y.2 else 0)
      ((List.finRange s).map fun j => (sourceCode t_vocab t source[j] j, 0)) = 0 := sumOver_eq_zero fun y hy => by
    obtain ⟨j, -, rfl⟩ := List.mem_map.mp hy
    exact ite_self _
  rw [getElem_sparse, getElem_sparse, weightAt, weightAt, decoderWeights, ← List.cons_append,
    sumOver_append, sumOver_append, zero, sumOver_cons, sumOver_cons, sumOver_nil]
  grind

private theorem add_source (c c' : R) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (p : Fin t) :
    Vec.add (sparse d_model (decoderWeights c 0 source target p))
        (sparse d_model (sourceWeights t_vocab t c' source))
      = sparse d_model (decoderWeights c c' source target p) := by
  rw [← add_target, unit, add_sparse, add_sparse]
  rfl

/-- A feed-forward network that makes of each row of the decoder the token asked for. -/
private theorem exists_recall {c c' : R} (hc : Fin t → 0 < c) (hc' : Fin s → 0 < c')
    (width : t_vocab * t + s_vocab * s ≤ d_model) (units : s_vocab ^ s * (t_vocab ^ t * t) ≤ d_ff)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t) :
    ∃ F : FeedForward R d_model d_ff, ∀ (source : Vector (Fin s_vocab) s)
      (target : Vector (Fin t_vocab) t) (p : Fin t),
      Vec.add (sparse d_model (decoderWeights c c' source target p))
          (F.row (sparse d_model (decoderWeights c c' source target p)))
        = unit d_model (best source target)[p].val := by
  obtain ⟨sources, len₁, all₁⟩ := exists_sequences s_vocab s
  obtain ⟨targets, len₂, all₂⟩ := exists_sequences t_vocab t
  obtain ⟨ys, len₃, all₃⟩ := exists_pairs targets (List.finRange t)
  obtain ⟨xs, len₄, all₄⟩ := exists_pairs sources ys
  obtain ⟨F, h⟩ := exists_residual (R := R) (n := d_model) (d_ff := d_ff) (xs := xs)
    (Q := decoderSquares s t c c')
    (x := fun y => sparse d_model (decoderWeights c c' y.1 y.2.1 y.2.2))
    (z := fun y => unit d_model (best y.1 y.2.1)[y.2.2].val)
    (by rw [len₄, len₃, len₂, len₁, List.length_finRange]; exact units)
    (fun _ _ => dot_decoderRow width)
    fun y y' e => by
      obtain ⟨h₁, h₂, h₃⟩ := decoderRow_inj width (hc y.2.2) hc' e
      simp only [h₁, h₂, h₃]
  exact ⟨F, fun source target p => h (source, target, p)
    (all₄ _ (all₁ _) _ (all₃ _ (all₂ _) _ (List.mem_finRange p)))⟩

variable [Exp R R]

private theorem share_nonneg (positive : (0 : R) < exp (0 : R)) (n : Nat) : 0 ≤ share R n := by
  cases n with
  | zero =>
    rw [share, List.finRange_zero, sumOver_nil, Field.div_eq_mul_inv, Field.inv_zero]
    grind
  | succ n => exact Std.le_of_lt (share_pos positive 0)

/-! ## Layers -/

section
variable {sqrt : R → R} (root : ∀ x, 0 < x → sqrt x ≠ 0) {ε : R} (hε : 0 ≤ ε)
include root hε

/-- The encoder gives each source token at its place a component of its own. -/
private theorem exists_encoder (width : memoryWidth s t s_vocab t_vocab ≤ d_model)
    (units : s_vocab * s ≤ d_ff) :
    ∃ L : EncoderLayer R d_model num_heads d d_ff, ∀ (scale : R) (mask : Mask s s)
      (source : Vector (Fin s_vocab) s),
      encodePostNorm sqrt ε scale mask [L] (unitNorm d_model sqrt ε)
          (Vec.ofFn fun j => embedded d_model (s_vocab + t_vocab) source[j].val j.val)
        = Vec.ofFn fun j => unit d_model (sourceCode t_vocab t source[j] j) := by
  rw [memoryWidth] at width
  obtain ⟨F, hF⟩ := exists_coding (R := R) (d_model := d_model) (o := s_vocab + t_vocab)
    (fun (b : Fin s_vocab) (j : Fin s) => sourceCode t_vocab t b j) units (by omega) (by omega)
  refine ⟨⟨noAttention _ _ _, embeddedNorm d_model sqrt ε, F, unitNorm d_model sqrt ε⟩,
    fun scale mask source => ?_⟩
  have h₁ : ∀ j : Fin s, (embeddedNorm d_model sqrt ε).row sqrt ε
      (embedded d_model (s_vocab + t_vocab) source[j].val j.val)
      = embedded d_model (s_vocab + t_vocab) source[j].val j.val := fun j =>
    embeddedNorm_row root hε (by have := source[j].isLt; omega) (by have := j.isLt; omega)
  have h₂ : ∀ j : Fin s, (unitNorm d_model sqrt ε).row sqrt ε
      (unit d_model (sourceCode t_vocab t source[j] j))
      = unit d_model (sourceCode t_vocab t source[j] j) := fun j =>
    unitNorm_row root hε (by
      have := sourceCode_lt (t_vocab := t_vocab) (t := t) source[j] j
      omega)
  simp only [encodePostNorm, List.foldl, EncoderLayer.postNorm, noAttention_rows, addRows_ofFn,
    layerNorm_ofFn, feedForward_ofFn, add_zero_right, h₁, hF, h₂]

/-- The first layer of the decoder gives each target token at its place a component of its own. -/
private theorem exists_firstLayer (width : memoryWidth s t s_vocab t_vocab ≤ d_model)
    (units : t_vocab * t ≤ d_ff) :
    ∃ L : DecoderLayer R d_model num_heads d d_ff, ∀ (scale : R) (mask : Mask t t)
      (crossMask : Mask t s) (context : Matrix R s d_model) (target : Vector (Fin t_vocab) t),
      L.postNorm sqrt ε scale mask crossMask context
          (Vec.ofFn fun p => embedded d_model (s_vocab + t_vocab) target[p].val p.val)
        = Vec.ofFn fun p => unit d_model (targetCode target[p] p) := by
  rw [memoryWidth] at width
  obtain ⟨F, hF⟩ := exists_coding (R := R) (d_model := d_model) (o := s_vocab + t_vocab)
    (fun (a : Fin t_vocab) (p : Fin t) => targetCode a p) units (by omega) (by omega)
  refine ⟨⟨noAttention _ _ _, embeddedNorm d_model sqrt ε, noAttention _ _ _,
    embeddedNorm d_model sqrt ε, F, unitNorm d_model sqrt ε⟩,
    fun scale mask crossMask context target => ?_⟩
  have h₁ : ∀ p : Fin t, (embeddedNorm d_model sqrt ε).row sqrt ε
      (embedded d_model (s_vocab + t_vocab) target[p].val p.val)
      = embedded d_model (s_vocab + t_vocab) target[p].val p.val := fun p =>
    embeddedNorm_row root hε (by have := target[p].isLt; omega) (by have := p.isLt; omega)
  have h₂ : ∀ p : Fin t, (unitNorm d_model sqrt ε).row sqrt ε
      (unit d_model (targetCode target[p] p)) = unit d_model (targetCode target[p] p) := fun p =>
    unitNorm_row root hε (by
      have := targetCode_lt target[p] p
      omega)
  simp only [DecoderLayer.postNorm, noAttention_rows, addRows_ofFn, layerNorm_ofFn,
    feedForward_ofFn, add_zero_right, h₁, hF, h₂]

/-- The second layer recalls. -/
private theorem exists_secondLayer (positive : (0 : R) < exp (0 : R))
    (width : memoryWidth s t s_vocab t_vocab ≤ d_model)
    (heads : memoryWidth s t s_vocab t_vocab ≤ num_heads * d)
    (units : s_vocab ^ s * (t_vocab ^ t * t) ≤ d_ff)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t) :
    ∃ L : DecoderLayer R d_model num_heads d d_ff, ∀ (scale : R) (source : Vector (Fin s_vocab) s)
      (target : Vector (Fin t_vocab) t),
      L.postNorm sqrt ε scale Mask.full Mask.full
          (Vec.ofFn fun j => unit d_model (sourceCode t_vocab t source[j] j))
          (Vec.ofFn fun p => unit d_model (targetCode target[p] p))
        = Vec.ofFn fun p => unit d_model (best source target)[p].val := by
  rw [memoryWidth] at width heads
  obtain ⟨F, hF⟩ := exists_recall (R := R) (d_model := d_model) (d_ff := d_ff)
    (fun p : Fin t => share_pos positive p) (fun j : Fin s => share_pos positive j) (by omega) units
    best
  refine ⟨⟨meanAttention _ _ _,
    undoingNorm d_model sqrt ε (decoderSum s t (share R t) 0) (decoderSquares s t (share R t) 0),
    meanAttention _ _ _, undoingNorm d_model sqrt ε (decoderSum s t (share R t) (share R s))
      (decoderSquares s t (share R t) (share R s)), F, unitNorm d_model sqrt ε⟩,
    fun scale source target => ?_⟩
  have ht := share_nonneg positive t
  have hs := share_nonneg positive s
  have h₁ := fun p => decoderNorm_row (d_model := d_model) root hε ht (Std.le_refl 0) (by omega)
    source target p
  have h₂ := fun p => decoderNorm_row (d_model := d_model) root hε ht hs (by omega) source target p
  have h₃ : ∀ p : Fin t, (unitNorm d_model sqrt ε).row sqrt ε
      (unit d_model (best source target)[p].val) = unit d_model (best source target)[p].val :=
    fun p => unitNorm_row root hε (by
      have := (best source target)[p].isLt
      omega)
  have self := fun (X : Matrix R t d_model) => meanAttention_rows (d_model := d_model)
    (num_heads := num_heads) (d := d) scale X (fun q : Fin t => targetCode target[q] q) fun q => by
      have := targetCode_lt target[q] q
      show targetCode target[q] q < _
      omega
  have cross := fun (X : Matrix R t d_model) => meanAttention_rows (d_model := d_model)
    (num_heads := num_heads) (d := d) scale X (fun j : Fin s => sourceCode t_vocab t source[j] j)
    fun j => by
      have := sourceCode_lt (t_vocab := t_vocab) (t := t) source[j] j
      show sourceCode t_vocab t source[j] j < _
      omega
  simp only [DecoderLayer.postNorm, self, cross, addRows_ofFn, layerNorm_ofFn,
    add_target _ source, h₁, add_source, h₂, feedForward_ofFn, hF, h₃]

end

/-! ## The transformer -/

/-- **transformer-memorises**: every architecture that is large enough has, for each function `best`
of both sequences, parameters with which Forward returns it, for all sequences: two layers of the
decoder and one of the encoder, whatever the root and its ε, the scale and the mask of the source.
The masks of the decoder let each place see all tokens, since `best` may depend on all. -/
theorem transformer_memorises {sqrt : R → R} (root : ∀ x, 0 < x → sqrt x ≠ 0) {ε : R} (hε : 0 ≤ ε)
    (positive : (0 : R) < exp (0 : R)) (width : memoryWidth s t s_vocab t_vocab ≤ d_model)
    (heads : memoryWidth s t s_vocab t_vocab ≤ num_heads * d)
    (units : memoryUnits s t s_vocab t_vocab ≤ d_ff)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t) :
    ∃ (position : Nat → Vec R d_model) (encoderNorm decoderNorm : LayerNorm R d_model)
      (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff),
      ∀ (scale : R) (sourceMask : Mask s s) (source : Vector (Fin s_vocab) s)
        (target : Vector (Fin t_vocab) t),
        forward sqrt ε scale position encoderNorm decoderNorm sourceMask Mask.full Mask.full T
          source target = Vec.map some (best source target) := by
  rw [memoryUnits] at units
  obtain ⟨E, hE⟩ := exists_encoder (num_heads := num_heads) (d := d) (d_ff := d_ff) root hε width
    (Nat.le_trans (by omega) units)
  obtain ⟨D₁, h₁⟩ := exists_firstLayer (num_heads := num_heads) (d := d) (d_ff := d_ff) root hε
    width (Nat.le_trans (by omega) units)
  obtain ⟨D₂, h₂⟩ := exists_secondLayer root hε positive width heads
    (Nat.le_trans (by omega) units) best
  rw [memoryWidth] at width
  let token : Nat → Vec R d_model := unit d_model
  refine ⟨fun p => unit d_model (s_vocab + t_vocab + p), unitNorm d_model sqrt ε,
    unitNorm d_model sqrt ε, ⟨Vec.ofFn fun b => token b.val, Vec.ofFn fun a => token a.val, [E],
      [D₁, D₂], ⟨Vec.ofFn fun a => token a.val, Vec.zero⟩⟩, fun scale sourceMask source target => ?_⟩
  have rows : ∀ {v n : Nat} (tokens : Vector (Fin v) n),
      addPositions (fun p => unit d_model (s_vocab + t_vocab + p))
        (embed (Vec.ofFn fun a : Fin v => token a.val) tokens)
      = Vec.ofFn fun p => (embedded d_model (s_vocab + t_vocab) tokens[p].val p.val : Vec R d_model) :=
    fun tokens => Vector.ext fun p hp => by
      simp only [addPositions, embed, token, Vec.getElem_ofFn, Vec.getElem_map, Fin.getElem_fin,
        add_unit]
  have h₃ : ∀ p : Fin t, (unitNorm d_model sqrt ε).row sqrt ε
      (unit d_model (best source target)[p].val) = unit d_model (best source target)[p].val :=
    fun p => unitNorm_row root hε (by
      have := (best source target)[p].isLt
      omega)
  rw [forward, decodePostNorm]
  simp only [rows, hE, List.foldl, h₁, h₂, layerNorm_ofFn, h₃]
  refine Vector.ext fun p hp => ?_
  rw [Vec.getElem_map, Vec.getElem_map, Linear.rows, Vec.getElem_map, Vec.getElem_ofFn]
  have logit : ∀ (p : Fin t) (a : Fin t_vocab), (Linear.row (⟨Vec.ofFn fun a => token a.val, Vec.zero⟩ :
      Linear R d_model t_vocab) (unit d_model (best source target)[p].val))[a]
      = if a = (best source target)[p] then 1 else 0 := fun p a => by
    have := a.isLt
    rw [Linear.row, Fin.getElem_fin, Vec.getElem_ofFn]
    simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero, token]
    rw [dot_unit (by omega), getElem_unit]
    simp only [Fin.ext_iff]
    grind
  refine argmax_eq (k := (best source target)[(⟨p, hp⟩ : Fin t)]) fun a ha => ?_
  have one := OrderedRing.zero_lt_one (R := R)
  rw [logit, logit, if_neg ha, if_pos rfl]
  exact one

/-- The same of a finite list of examples: a source, a target and what Forward is to return of them.
None may contradict another. -/
theorem transformer_memorises_examples {sqrt : R → R} (root : ∀ x, 0 < x → sqrt x ≠ 0) {ε : R}
    (hε : 0 ≤ ε) (positive : (0 : R) < exp (0 : R))
    (width : memoryWidth s t s_vocab t_vocab ≤ d_model)
    (heads : memoryWidth s t s_vocab t_vocab ≤ num_heads * d)
    (units : memoryUnits s t s_vocab t_vocab ≤ d_ff)
    (examples : List (Vector (Fin s_vocab) s × Vector (Fin t_vocab) t × Vector (Fin t_vocab) t))
    (consistent : ∀ x ∈ examples, ∀ y ∈ examples, x.1 = y.1 → x.2.1 = y.2.1 → x.2.2 = y.2.2) :
    ∃ (position : Nat → Vec R d_model) (encoderNorm decoderNorm : LayerNorm R d_model)
      (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff),
      ∀ (scale : R) (sourceMask : Mask s s), ∀ x ∈ examples,
        forward sqrt ε scale position encoderNorm decoderNorm sourceMask Mask.full Mask.full T
          x.1 x.2.1 = Vec.map some x.2.2 := by
  have ⟨best, h⟩ : ∃ best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t →
      Vector (Fin t_vocab) t, ∀ x ∈ examples, best x.1 x.2.1 = x.2.2 := by
    refine ⟨fun source target =>
      ((examples.find? fun x => x.1 = source ∧ x.2.1 = target).map (·.2.2)).getD target,
      fun x hx => ?_⟩
    cases e : examples.find? fun y => y.1 = x.1 ∧ y.2.1 = x.2.1 with
    | none =>
      have := List.find?_eq_none.mp e x hx
      simp at this
    | some y =>
      have h₁ := List.find?_some e
      simp only [decide_eq_true_eq] at h₁
      simp only [e, Option.map_some, Option.getD_some]
      exact consistent y (List.mem_of_find?_eq_some e) x hx h₁.1 h₁.2
  obtain ⟨position, encoderNorm, decoderNorm, T, hT⟩ :=
    transformer_memorises root hε positive width heads units best
  exact ⟨position, encoderNorm, decoderNorm, T, fun scale sourceMask x hx => by
    rw [hT, h x hx]⟩

end Attention.Claims
