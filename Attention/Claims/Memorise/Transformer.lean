module

public import Attention.Claims.Memorise.AllYouNeed
public import Attention.Claims.Memorise.Basic
public import Attention.Claims.Memorise.Attention
public import Attention.Claims.Memorise.Recall

public section

/-! # The layers of a transformer that memorises

One layer of the encoder and one of the decoder give each token at its place a component of its own.
A second layer of the decoder adds to each row the mean of what it sees of the target, by
self-attention, and of the source, by cross-attention, and its feed-forward network recalls what is
asked for. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} [OrderedField R] {m n s t s_vocab t_vocab d_model num_heads d d_ff : Nat}

/-! ## Matrices row by row -/

private theorem layerNorm_ofFn (sqrt : R → R) (ε : R) (N : LayerNorm R n) (f : Fin m → Vec R n) :
    N.rows sqrt ε (Vec.ofFn f) = Vec.ofFn fun i => N.row sqrt ε (f i) :=
  Vector.ext fun i hi => by rw [LayerNorm.rows, Vec.getElem_map, Vec.getElem_ofFn, Vec.getElem_ofFn]

private theorem feedForward_ofFn (F : FeedForward R n d_ff) (f : Fin m → Vec R n) :
    F.rows (Vec.ofFn f) = Vec.ofFn fun i => F.row (f i) :=
  Vector.ext fun i hi => by
    rw [FeedForward.rows, Vec.getElem_map, Vec.getElem_ofFn, Vec.getElem_ofFn]

private theorem addRows_ofFn (f g : Fin m → Vec R n) :
    addRows (Vec.ofFn f) (Vec.ofFn g) = Vec.ofFn fun i => Vec.add (f i) (g i) :=
  Vector.ext fun i hi => by
    simp only [addRows, Vec.getElem_ofFn, Fin.getElem_fin]

private theorem add_zero_right (x : Vec R n) : Vec.add x Vec.zero = x :=
  Vector.ext fun i hi => by rw [Vec.getElem_add, Vec.getElem_zero]; grind

/-! ## Normalisations -/

/-- The normalisation that leaves rows with one component 1, the others 0, as they are. -/
@[expose] def unitNorm (n : Nat) (sqrt : R → R) (ε : R) : LayerNorm R n := undoingNorm n sqrt ε 1 1

/-- The normalisation that leaves embedded tokens as they are. -/
@[expose] def embeddedNorm (n : Nat) (sqrt : R → R) (ε : R) : LayerNorm R n :=
  undoingNorm n sqrt ε 2 2

section
variable {sqrt : R → R} (root : ∀ x, 0 < x → 0 < sqrt x) {ε : R} (hε : 0 ≤ ε)
include root hε

/-- It does, if the vector has a component more. -/
theorem unitNorm_row {k : Nat} (hk : k + 1 < d_model) :
    (unitNorm d_model sqrt ε).row sqrt ε (unit d_model k) = unit d_model k := by
  have one := OrderedRing.zero_lt_one (R := R)
  refine undoingNorm_row root hε (by grind) (sum_unit (by omega)) (dot_unit_self (by omega))
    ⟨d_model - 1, by omega⟩ ?_
  rw [Fin.getElem_fin, getElem_unit, if_neg (by show d_model - 1 ≠ k; omega)]

private theorem embeddedNorm_row {o a p : Nat} (ha : a < o) (hp : o + p + 1 < d_model) :
    (embeddedNorm d_model sqrt ε).row sqrt ε (embedded d_model o a p) = embedded d_model o a p := by
  have one := OrderedRing.zero_lt_one (R := R)
  refine undoingNorm_row root hε (by grind) (sum_embedded ha (by omega))
    (dot_embedded ha (by omega)) ⟨d_model - 1, by omega⟩ ?_
  rw [Fin.getElem_fin, embedded, getElem_sparse]
  have h₁ : d_model - 1 ≠ a := by omega
  have h₂ : d_model - 1 ≠ o + p := by omega
  simp only [weightAt, sumOver_cons, sumOver_nil, if_neg h₁, if_neg h₂]
  grind

private theorem exists_decoderNorm (width : slots s t s_vocab t_vocab + t < d_model)
    {c : Fin t → Fin t → R} {c' : Fin t → Fin s → R} (hc : ∀ p q, 0 ≤ c p q)
    (hc' : ∀ p j, 0 ≤ c' p j) {α : Fin t → R} (hα : ∀ p, 0 < α p) (β : Fin t → R) :
    ∃ α' β' : Fin t → R, (∀ p, 0 < α' p) ∧ ∀ y : Query s t s_vocab t_vocab,
      (plainNorm d_model).row sqrt ε (decoderRow d_model c c' α β y)
        = decoderRow d_model c c' α' β' y := by
  have one := OrderedRing.zero_lt_one (R := R)
  have hA : ∀ p, decoderSum (c p) (c' p) ≠ 0 := fun p => by
    have h₁ := sumOver_nonneg (f := c p) (xs := List.finRange t) fun q _ => hc p q
    have h₂ := sumOver_nonneg (f := c' p) (xs := List.finRange s) fun j _ => hc' p j
    rw [decoderSum]
    grind
  obtain ⟨α', h⟩ := Classical.skolem.mp fun p =>
    exists_plainNorm root hε (hA p) (Q := decoderSquares (c p) (c' p) p) d_model (hα p) (β p)
  obtain ⟨β', h⟩ := Classical.skolem.mp h
  refine ⟨α', β', fun p => (h p).1, fun y => (h y.2.2).2 _ (sum_sparse_decoderWeights (by omega))
    (dot_sparse_decoderWeights (by omega)) ⟨d_model - 1, by omega⟩ ?_⟩
  rw [Fin.getElem_fin, getElem_sparse]
  refine sumOver_eq_zero fun x hx => if_neg ?_
  have := decoderWeights_lt hx
  show d_model - 1 ≠ x.1
  omega

end

/-! ## Sums -/

private theorem add_target (c : Fin t → Fin t → R) (y : Query s t s_vocab t_vocab) :
    Vec.add
        (embedded d_model (slots s t s_vocab t_vocab) (targetCode y.2.1[y.2.2] y.2.2) y.2.2.val)
        (sparse d_model ((List.finRange t).map fun q => (targetCode y.2.1[q] q, c y.2.2 q)))
      = decoderRow d_model c (fun _ _ => 0) (fun _ => 1) (fun _ => 0) y := by
  rw [embedded, add_sparse]
  refine Vector.ext fun i hi => ?_
  rw [decoderRow, stretch, Vec.getElem_map, getElem_sparse, getElem_sparse, weightAt, weightAt,
    sumOver_decoderWeights]
  simp only [sumOver_append, sumOver_cons, sumOver_nil, sumOver_map, ite_self]
  rw [sumOver_eq_zero (f := fun _ : Fin s => (0 : R)) fun _ _ => rfl]
  grind

private theorem add_source (c : Fin t → Fin t → R) (w : Fin t → Fin s → R) {α : Fin t → R}
    (hα : ∀ p, 0 < α p) (β : Fin t → R) (y : Query s t s_vocab t_vocab) :
    Vec.add (decoderRow d_model c (fun _ _ => 0) α β y)
        (sparse d_model ((List.finRange s).map fun j =>
          (sourceCode t_vocab t y.1[j] j, w y.2.2 j)))
      = decoderRow d_model c (fun p j => w p j / α p) α β y := by
  refine Vector.ext fun i hi => ?_
  have e : sumOver (fun j => if i = sourceCode t_vocab t y.1[j] j then w y.2.2 j else 0)
      (List.finRange s) = α y.2.2 * sumOver (fun j => if i = sourceCode t_vocab t y.1[j] j
        then w y.2.2 j / α y.2.2 else 0) (List.finRange s) := by
    rw [← sumOver_mul_left]
    refine sumOver_congr fun j _ => ?_
    have := OrderedField.mul_div_cancel (b := α y.2.2) (by have := hα y.2.2; grind) (w y.2.2 j)
    split <;> grind
  rw [Vec.getElem_add, decoderRow, decoderRow, stretch, stretch, Vec.getElem_map, Vec.getElem_map,
    getElem_sparse, getElem_sparse, getElem_sparse, weightAt, weightAt, weightAt,
    sumOver_decoderWeights, sumOver_decoderWeights, sumOver_map]
  simp only [ite_self]
  rw [e, sumOver_eq_zero (f := fun _ : Fin s => (0 : R)) fun _ _ => rfl]
  grind

/-! ## Layers -/

variable [Exp R R] {sqrt : R → R} (root : ∀ x, 0 < x → 0 < sqrt x) {ε : R} (hε : 0 ≤ ε)
include root hε

/-- The encoder gives each source token at its place a component of its own. -/
theorem exists_encoder (width : slots s t s_vocab t_vocab + s < d_model)
    (units : s_vocab * s ≤ d_ff) :
    ∃ L : EncoderLayer R d_model num_heads d d_ff, ∀ (scale : R) (mask : Mask s s)
      (source : Vector (Fin s_vocab) s),
      encodePostNorm sqrt ε scale mask [L] (unitNorm d_model sqrt ε)
          (Vec.ofFn fun j => embedded d_model (slots s t s_vocab t_vocab)
            (codes s t s_vocab t_vocab + source[j].val) j.val)
        = Vec.ofFn fun j => unit d_model (sourceCode t_vocab t source[j] j) := by
  obtain ⟨F, hF⟩ := exists_coding (R := R) (d_model := d_model) (codes s t s_vocab t_vocab)
    (fun (b : Fin s_vocab) (j : Fin s) => [(sourceCode t_vocab t b j, 1)]) units
    (o := slots s t s_vocab t_vocab) (by rw [slots]; omega) (by omega)
  refine ⟨⟨noAttention _ _ _, embeddedNorm d_model sqrt ε, F, unitNorm d_model sqrt ε⟩,
    fun scale mask source => ?_⟩
  have h₁ : ∀ j : Fin s, (embeddedNorm d_model sqrt ε).row sqrt ε
      (embedded d_model (slots s t s_vocab t_vocab)
        (codes s t s_vocab t_vocab + source[j].val) j.val)
      = embedded d_model (slots s t s_vocab t_vocab)
        (codes s t s_vocab t_vocab + source[j].val) j.val := fun j =>
    embeddedNorm_row root hε (by have := source[j].isLt; rw [slots]; omega)
      (by have := j.isLt; omega)
  have h₂ : ∀ j : Fin s, (unitNorm d_model sqrt ε).row sqrt ε
      (unit d_model (sourceCode t_vocab t source[j] j))
      = unit d_model (sourceCode t_vocab t source[j] j) := fun j =>
    unitNorm_row root hε (by
      have := sourceCode_lt (t_vocab := t_vocab) (t := t) source[j] j
      have := j.isLt
      rw [slots, codes] at width
      omega)
  have h₃ : ∀ (b : Fin s_vocab) (j : Fin s), Vec.add
      (embedded d_model (slots s t s_vocab t_vocab) (codes s t s_vocab t_vocab + b.val) j.val)
      (F.row (embedded d_model (slots s t s_vocab t_vocab)
        (codes s t s_vocab t_vocab + b.val) j.val))
      = unit d_model (sourceCode t_vocab t b j) := hF
  simp only [encodePostNorm, List.foldl, EncoderLayer.postNorm, noAttention_rows, addRows_ofFn,
    layerNorm_ofFn, feedForward_ofFn, add_zero_right, h₁, h₃, h₂]

/-- The first layer of the decoder gives each target token at its place a component of its own. -/
theorem exists_firstLayer (width : slots s t s_vocab t_vocab + t < d_model)
    (units : t_vocab * t ≤ d_ff) :
    ∃ L : DecoderLayer R d_model num_heads d d_ff, ∀ (scale : R) (mask : Mask t t)
      (crossMask : Mask t s) (context : Matrix R s d_model) (target : Vector (Fin t_vocab) t),
      L.postNorm sqrt ε scale mask crossMask context
          (Vec.ofFn fun p => embedded d_model (slots s t s_vocab t_vocab)
            (codes s t s_vocab t_vocab + target[p].val) p.val)
        = Vec.ofFn fun p => embedded d_model (slots s t s_vocab t_vocab) (targetCode target[p] p)
          p.val := by
  obtain ⟨F, hF⟩ := exists_coding (R := R) (d_model := d_model) (codes s t s_vocab t_vocab)
    (fun (a : Fin t_vocab) (p : Fin t) =>
      [(targetCode a p, 1), (slots s t s_vocab t_vocab + p.val, 1)]) units
    (o := slots s t s_vocab t_vocab) (by rw [slots]; omega) (by omega)
  refine ⟨⟨noAttention _ _ _, embeddedNorm d_model sqrt ε, noAttention _ _ _,
    embeddedNorm d_model sqrt ε, F, embeddedNorm d_model sqrt ε⟩,
    fun scale mask crossMask context target => ?_⟩
  have h₁ : ∀ p : Fin t, (embeddedNorm d_model sqrt ε).row sqrt ε
      (embedded d_model (slots s t s_vocab t_vocab)
        (codes s t s_vocab t_vocab + target[p].val) p.val)
      = embedded d_model (slots s t s_vocab t_vocab)
        (codes s t s_vocab t_vocab + target[p].val) p.val := fun p =>
    embeddedNorm_row root hε (by have := target[p].isLt; rw [slots]; omega)
      (by have := p.isLt; omega)
  have h₂ : ∀ p : Fin t, (embeddedNorm d_model sqrt ε).row sqrt ε
      (embedded d_model (slots s t s_vocab t_vocab) (targetCode target[p] p) p.val)
      = embedded d_model (slots s t s_vocab t_vocab) (targetCode target[p] p) p.val := fun p =>
    embeddedNorm_row root hε (by
      have := targetCode_lt target[p] p
      rw [slots, codes]
      omega) (by have := p.isLt; omega)
  have h₃ : ∀ (a : Fin t_vocab) (p : Fin t), Vec.add
      (embedded d_model (slots s t s_vocab t_vocab) (codes s t s_vocab t_vocab + a.val) p.val)
      (F.row (embedded d_model (slots s t s_vocab t_vocab)
        (codes s t s_vocab t_vocab + a.val) p.val))
      = embedded d_model (slots s t s_vocab t_vocab) (targetCode a p) p.val := hF
  simp only [DecoderLayer.postNorm, noAttention_rows, addRows_ofFn, layerNorm_ofFn,
    feedForward_ofFn, add_zero_right, h₁, h₃, h₂]

/-- The second layer recalls what is asked for, if that depends on what is seen. -/
theorem exists_secondLayer (positive : (0 : R) < exp (0 : R))
    (width : slots s t s_vocab t_vocab + t < d_model)
    (heads : codes s t s_vocab t_vocab ≤ num_heads * d)
    (units : s_vocab ^ s * (t_vocab ^ t * t) ≤ d_ff) (mask : Mask t t) (crossMask : Mask t s)
    (best : Vector (Fin s_vocab) s → Vector (Fin t_vocab) t → Vector (Fin t_vocab) t)
    (visible : ∀ source source' target target' (p : Fin t), target[p] = target'[p] →
      (∀ q, mask p q = true → target[q] = target'[q]) →
      (∀ j, crossMask p j = true → source[j] = source'[j]) →
      (best source target)[p] = (best source' target')[p]) :
    ∃ L : DecoderLayer R d_model num_heads d d_ff, ∀ (scale : R) (source : Vector (Fin s_vocab) s)
      (target : Vector (Fin t_vocab) t),
      L.postNorm sqrt ε scale mask crossMask
          (Vec.ofFn fun j => unit d_model (sourceCode t_vocab t source[j] j))
          (Vec.ofFn fun p => embedded d_model (slots s t s_vocab t_vocab) (targetCode target[p] p)
            p.val)
        = Vec.ofFn fun p =>
          unit d_model (codes s t s_vocab t_vocab + (best source target)[p].val) := by
  let c : Fin t → Fin t → R := fun p q => keyShare (mask p) q
  have hc : ∀ p q, 0 ≤ c p q := fun p q => keyShare_nonneg positive _ _
  obtain ⟨α₁, β₁, hα₁, h₁⟩ := exists_decoderNorm (s_vocab := s_vocab) (t_vocab := t_vocab) root hε
    width hc (fun _ (_ : Fin s) => Std.le_refl 0) (fun _ => OrderedRing.zero_lt_one) fun _ => 0
  let c' : Fin t → Fin s → R := fun p j => keyShare (crossMask p) j / α₁ p
  have hc' : ∀ p j, 0 ≤ c' p j := fun p j =>
    OrderedField.div_nonneg (keyShare_nonneg positive _ _) (hα₁ p)
  obtain ⟨α₂, β₂, hα₂, h₂⟩ := exists_decoderNorm (s_vocab := s_vocab) (t_vocab := t_vocab) root hε
    width hc hc' hα₁ β₁
  obtain ⟨F, hF⟩ := exists_recall (R := R) (d_model := d_model) (d_ff := d_ff) (c := c) (c' := c')
    (β := β₂) hα₂ width hc units
    (fun y => codes s t s_vocab t_vocab + (best y.1 y.2.1)[y.2.2].val) (by
      rintro ⟨source, target, p⟩ ⟨source', target', p'⟩ hp hown htarget hsource
      obtain rfl : p = p' := hp
      have e := visible source source' target target' p hown
        (fun q hq => htarget q (keyShare_pos positive hq)) fun j hj => hsource j (by
          show 0 < keyShare (crossMask p) j / α₁ p
          rw [Field.div_eq_mul_inv]
          exact OrderedRing.mul_pos (keyShare_pos positive hj)
            (Field.IsOrdered.inv_pos_iff.mpr (hα₁ p)))
      show _ + (best source target)[p].val = _ + (best source' target')[p].val
      rw [e])
  refine ⟨⟨meanAttention (codes s t s_vocab t_vocab) _ _ _, plainNorm d_model,
    meanAttention (codes s t s_vocab t_vocab) _ _ _, plainNorm d_model, F,
    unitNorm d_model sqrt ε⟩, fun scale source target => ?_⟩
  have h₃ : ∀ p : Fin t, (unitNorm d_model sqrt ε).row sqrt ε
      (unit d_model (codes s t s_vocab t_vocab + (best source target)[p].val))
      = unit d_model (codes s t s_vocab t_vocab + (best source target)[p].val) :=
    fun p => unitNorm_row root hε (by
      have := (best source target)[p].isLt
      have := p.isLt
      rw [slots] at width
      omega)
  have self := fun (X : Matrix R t d_model) => meanAttention_rows scale mask X
    (fun p => embedded d_model (slots s t s_vocab t_vocab) (targetCode target[p] p) p.val)
    (fun q => targetCode target[q] q) heads fun q => ⟨by
      have := targetCode_lt target[q] q
      show targetCode target[q] q < _
      rw [codes]
      omega, fun a ha hw => by
      show (embedded d_model (slots s t s_vocab t_vocab) (targetCode target[q] q) q.val)[a]
        = if a = targetCode target[q] q then 1 else 0
      have : a ≠ slots s t s_vocab t_vocab + q.val := by rw [slots]; omega
      rw [embedded, getElem_sparse]
      simp only [weightAt, sumOver_cons, sumOver_nil, if_neg this]
      split <;> grind⟩
  have cross := fun (X : Matrix R t d_model) => meanAttention_rows scale crossMask X
    (fun j => unit d_model (sourceCode t_vocab t source[j] j))
    (fun j => sourceCode t_vocab t source[j] j) heads fun j =>
      ⟨sourceCode_lt _ _, fun a ha _ => getElem_unit ha⟩
  have a₁ := fun p => add_target (d_model := d_model) c (source, target, p)
  have a₂ := fun p => add_source (d_model := d_model) c (fun p j => keyShare (crossMask p) j) hα₁ β₁
    (source, target, p)
  have h₁' := fun p => h₁ (source, target, p)
  have h₂' := fun p => h₂ (source, target, p)
  have hF' := fun p => hF (source, target, p)
  simp only [DecoderLayer.postNorm, self, cross, addRows_ofFn, layerNorm_ofFn, feedForward_ofFn]
  simp only [c] at a₁ h₁' a₂ h₂' hF'
  simp only [a₁, h₁', a₂, c', h₂', hF', h₃]

end Attention.Claims
