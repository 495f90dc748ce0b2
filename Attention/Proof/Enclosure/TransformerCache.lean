module

public import Attention.Proof.Enclosure.Transformer
public import Attention.Spec.TransformerCache

public section

/-! # The decoder with a cache, run over intervals, contains the true rows

Over intervals the cached decoder is another program than the whole one: what is masked there is
absent here. So it has its own proof, and not that of the whole decoder by `decode_cached`. -/

namespace Attention.Proof

open Spec Model

universe u

variable {R : Type u} [OrderedField R] {p s d_model num_heads d d_ff : Nat}

/-- The intervals of the keys and values that a layer has kept contain them, row by row. -/
@[expose] def CacheContains {width : Nat} :
    LayerCache (Interval p) width → LayerCache R width → Prop :=
  Pointwise fun kv' kv => VecContains kv'.1 kv.1 ∧ VecContains kv'.2 kv.2

/-- The rows of a matrix that is made of a list. -/
private theorem contains_ofList {n : Nat} {rows' : List (Vec (Interval p) n)}
    {rows : List (Vec R n)} (h : Pointwise VecContains rows' rows) {m : Nat}
    (hm' : rows'.toArray.size = m) (hm : rows.toArray.size = m) :
    MatrixContains (⟨rows'.toArray, hm'⟩ : Matrix (Interval p) m n)
      (⟨rows.toArray, hm⟩ : Matrix R m n) := by
  intro i hi
  simp only [Vector.getElem_mk, List.getElem_toArray]
  exact h.getElem _ _

/-- Attention to a cache, by the length that its list is known to have. -/
private theorem cachedRow_eq_attend {T : Type u} [Add T] [Mul T] [Div T] [OfNat T 0] [Exp T T]
    (scale : T) (W : MultiHead T d_model num_heads d) (cache : LayerCache T (num_heads * d))
    (x : Vec T d_model) {m : Nat} (hm : cache.length = m) :
    W.cachedRow scale cache x = (W.attend scale Mask.full
      (Vec.ofFn fun _ : Fin 1 => W.query.row x)
      (⟨(cache.map fun kv => kv.1).toArray, by simp [hm]⟩ : Matrix T m (num_heads * d))
      ⟨(cache.map fun kv => kv.2).toArray, by simp [hm]⟩)[0] := by
  subst hm
  rfl

variable [NaturalExp R] {root : R → R} {ε' scale' : Interval p} {ε scale : R}

/-- Attention of an enclosed row to an enclosed cache. -/
theorem MultiHeadContains.cachedRow (hscale : scale'.Contains scale)
    {W' : MultiHead (Interval p) d_model num_heads d} {W : MultiHead R d_model num_heads d}
    (hW : MultiHeadContains W' W)
    {cache' : LayerCache (Interval p) (num_heads * d)} {cache : LayerCache R (num_heads * d)}
    (hcache : CacheContains cache' cache) {I : Vec (Interval p) d_model} {x : Vec R d_model}
    (hx : VecContains I x) :
    VecContains (W'.cachedRow scale' cache' I) (W.cachedRow scale cache x) := by
  rw [cachedRow_eq_attend scale' W' cache' I hcache.length_eq,
    cachedRow_eq_attend scale W cache x rfl]
  exact hW.attend hscale Mask.full (related_ofFn fun _ => hW.query.row hx)
    (contains_ofList (hcache.map fun _ _ h => h.1) _ _)
    (contains_ofList (hcache.map fun _ _ h => h.2) _ _) 0 (Nat.succ_pos 0)

/-- One more enclosed row through a decoder layer. -/
theorem DecoderLayerContains.step (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    {L' : DecoderLayer (Interval p) d_model num_heads d d_ff}
    {L : DecoderLayer R d_model num_heads d d_ff} (hL : DecoderLayerContains L' L)
    (visible : Fin s → Bool) {C' : Matrix (Interval p) s d_model} {C : Matrix R s d_model}
    (hC : MatrixContains C' C) {cache' : LayerCache (Interval p) (num_heads * d)}
    {cache : LayerCache R (num_heads * d)} (hcache : CacheContains cache' cache)
    {I : Vec (Interval p) d_model} {x : Vec R d_model} (hx : VecContains I x) :
    let out' := L'.step Interval.sqrt ε' scale' visible C' cache' I
    let out := L.step root ε scale visible C cache x
    CacheContains out'.1 out.1 ∧ VecContains out'.2 out.2 := by
  have hr := rootContains_sqrt (p := p) hroot
  have ha := hL.attentionNorm.row hr hε hx
  have hcache := hcache.concat (a := (_, _)) (b := (_, _))
    ⟨hL.attention.key.row ha, hL.attention.value.row ha⟩
  have hx := related_add hx (hL.attention.cachedRow hscale hcache ha)
  have hx := related_add hx (multiHead_enclosed hscale hL.cross (fun _ j => visible j)
    (related_ofFn fun _ : Fin 1 => hL.crossNorm.row hr hε hx) hC hC 0 (Nat.succ_pos 0))
  exact ⟨hcache, related_add hx
    (hL.feedForward.row (hL.feedForwardNorm.row hr hε hx))⟩

/-- One more enclosed row through all layers of a decoder. -/
theorem contains_decodeStep (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    (visible : Fin s → Bool)
    {layers' : List (DecoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (DecoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise DecoderLayerContains layers' layers)
    {C' : Matrix (Interval p) s d_model} {C : Matrix R s d_model} (hC : MatrixContains C' C)
    {caches' : List (LayerCache (Interval p) (num_heads * d))}
    {caches : List (LayerCache R (num_heads * d))}
    (hcaches : Pointwise CacheContains caches' caches)
    {I : Vec (Interval p) d_model} {x : Vec R d_model} (hx : VecContains I x) :
    let out' := decodeStep Interval.sqrt ε' scale' visible layers' C' caches' I
    let out := decodeStep root ε scale visible layers C caches x
    Pointwise CacheContains out'.1 out.1 ∧ VecContains out'.2 out.2 := by
  refine (hL.zip hcaches).foldl
    (Q := fun (out' : List (LayerCache (Interval p) (num_heads * d)) × Vec (Interval p) d_model)
        (out : List (LayerCache R (num_heads * d)) × Vec R d_model) =>
      Pointwise CacheContains out'.1 out.1 ∧ VecContains out'.2 out.2) ?_ ⟨trivial, hx⟩
  rintro ⟨done', I⟩ ⟨done, x⟩ ⟨L', cache'⟩ ⟨L, cache⟩ ⟨hdone, hx⟩ ⟨hL, hcache⟩
  have h := hL.step hroot hε hscale visible hC hcache hx
  exact ⟨hdone.concat h.1, h.2⟩

/-- **decode-cached-enclosed**: decoding row by row with a cache, computed with intervals over rows,
parameters, ε and a scale that contain the true ones, contains the true rows, whatever natural
exponential and whatever square root they are taken with. -/
theorem decodeCached_enclosed (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    (visible : Fin s → Bool)
    {layers' : List (DecoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (DecoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise DecoderLayerContains layers' layers)
    {C' : Matrix (Interval p) s d_model} {C : Matrix R s d_model} (hC : MatrixContains C' C)
    {rows' : List (Vec (Interval p) d_model)} {rows : List (Vec R d_model)}
    (hrows : Pointwise VecContains rows' rows) :
    Pointwise VecContains
      (decodeCached Interval.sqrt ε' scale' visible layers' C' rows')
      (decodeCached root ε scale visible layers C rows) := by
  have empty : Pointwise CacheContains
      (layers'.map fun _ => ([] : LayerCache (Interval p) (num_heads * d)))
      (layers.map fun _ => ([] : LayerCache R (num_heads * d))) := hL.map fun _ _ _ => trivial
  refine (hrows.foldl
    (Q := fun (out' : List (LayerCache (Interval p) (num_heads * d)) × List (Vec _ d_model))
        (out : List (LayerCache R (num_heads * d)) × List (Vec R d_model)) =>
      Pointwise CacheContains out'.1 out.1 ∧ Pointwise VecContains out'.2 out.2)
    ?_ (c := (_, [])) (d := (_, [])) ⟨empty, trivial⟩).2
  rintro ⟨caches', done'⟩ ⟨caches, done⟩ I x ⟨hcaches, hdone⟩ hx
  have h := contains_decodeStep hroot hε hscale visible hL hC hcaches hx
  exact ⟨h.1, hdone.concat h.2⟩

end Attention.Proof
