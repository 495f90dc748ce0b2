module

public import Attention.Spec.TransformerCache
public import Attention.Proof.Transformer.Causal

public section

/-! # Decoding with a cache gives the rows of the whole decoder -/

namespace Attention.Proof

open Spec

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {sqrt : R → R} {ε scale : R}
variable {s t d_model num_heads d d_ff : Nat}

/-- The cache of a layer after the first k rows of X. -/
private def kept (sqrt : R → R) (ε : R) (L : DecoderLayer R d_model num_heads d d_ff)
    (X : Matrix R t d_model) (k : Nat) : LayerCache R (num_heads * d) :=
  (X.toList.take k).map fun x =>
    (L.attention.key.row (L.attentionNorm.row sqrt ε x),
      L.attention.value.row (L.attentionNorm.row sqrt ε x))

/-- The caches of all layers after the first k rows of X. -/
private def keptAll (sqrt : R → R) (ε scale : R) (visible : Fin s → Bool) (C : Matrix R s d_model) :
    List (DecoderLayer R d_model num_heads d d_ff) → Matrix R t d_model → Nat →
      List (LayerCache R (num_heads * d))
  | [], _, _ => []
  | L :: layers, X, k => kept sqrt ε L X k :: keptAll sqrt ε scale visible C layers
      (L.preNorm sqrt ε scale (Mask.causal .topLeft) (fun _ j => visible j) C X) k

omit [Exponential R R] in
private theorem kept_succ (L : DecoderLayer R d_model num_heads d d_ff) (X : Matrix R t d_model)
    (k : Fin t) :
    kept sqrt ε L X k.val ++ [(L.attention.key.row (L.attentionNorm.row sqrt ε X[k]),
      L.attention.value.row (L.attentionNorm.row sqrt ε X[k]))] = kept sqrt ε L X (k.val + 1) := by
  rw [kept, kept, List.take_add_one, List.map_append]
  simp

/-- Attention of row k to what is kept of the rows up to it is row k of causal self-attention. -/
private theorem cachedRow_eq (L : DecoderLayer R d_model num_heads d d_ff)
    (X : Matrix R t d_model) (k : Fin t) :
    let A := L.attentionNorm.rows sqrt ε X
    L.attention.cachedRow scale (kept sqrt ε L X (k.val + 1)) (L.attentionNorm.row sqrt ε X[k])
      = (L.attention.rows scale (Mask.causal .topLeft) A A A)[k] := by
  intro A
  have len : (kept sqrt ε L X (k.val + 1)).length = k.val + 1 := by
    simp only [kept, List.length_map, List.length_take, Vector.length_toList]
    omega
  refine multiHead_attend_congr (i := (0 : Fin 1)) (i' := k) (m := k.val + 1)
    (Nat.le_of_eq len.symm) (by omega) (fun j _ => by have := j.isLt; omega)
    (fun j hj => by have := Fin.le_def.mp (causal_seesNoLater k j hj); omega) ?_
    fun j j' hj hjm => ?_
  · rw [getElem_linear, getElem_layerNorm, Fin.getElem_fin, Vec.getElem_ofFn]
  · have hc : Mask.causal .topLeft k j' = true := by
      simp only [Mask.causal, Alignment.shift, decide_eq_true_eq]
      omega
    refine ⟨by rw [hc]; rfl, ?_, ?_⟩ <;>
    · rw [getElem_linear, getElem_layerNorm]
      simp only [Fin.getElem_fin, Vector.getElem_mk, List.getElem_toArray, List.getElem_map]
      simp [kept, hj]

/-- One row through one layer. -/
private theorem step_eq (visible : Fin s → Bool) (C : Matrix R s d_model)
    (L : DecoderLayer R d_model num_heads d d_ff) (X : Matrix R t d_model) (k : Fin t) :
    L.step sqrt ε scale visible C (kept sqrt ε L X k.val) X[k]
      = (kept sqrt ε L X (k.val + 1),
        (L.preNorm sqrt ε scale (Mask.causal .topLeft) (fun _ j => visible j) C X)[k]) := by
  have sum : ∀ {n : Nat} {X Y : Matrix R n d_model} (i : Fin n),
      (addRows X Y)[i] = Vec.add X[i] Y[i] := fun i => getElem_addRows _ _ i
  have self := cachedRow_eq (sqrt := sqrt) (ε := ε) (scale := scale) L X k
  have cross : ∀ (x : Vec R d_model) (Y : Matrix R t d_model), Y[k] = x →
      (L.cross.rows scale (fun _ j => visible j)
        (Vec.ofFn fun _ : Fin 1 => L.crossNorm.row sqrt ε x) C C)[0]
      = (L.cross.rows scale (fun _ j => visible j) (L.crossNorm.rows sqrt ε Y) C C)[k] :=
    fun x Y h => crossAttention_row C (i := (0 : Fin 1)) (i' := k) (fun _ => rfl) (by
      rw [getElem_layerNorm, h, Fin.getElem_fin, Vec.getElem_ofFn])
  rw [DecoderLayer.step, DecoderLayer.preNorm, kept_succ, self, sum, getElem_feedForward,
    getElem_layerNorm, sum, sum, cross _ _ (sum k)]

/-- One row through all layers. -/
private theorem decodeStep_eq (visible : Fin s → Bool) (C : Matrix R s d_model)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (X : Matrix R t d_model) (k : Fin t) :
    decodeStep sqrt ε scale visible layers C (keptAll sqrt ε scale visible C layers X k.val) X[k]
      = (keptAll sqrt ε scale visible C layers X (k.val + 1),
        (decode sqrt ε scale (Mask.causal .topLeft) (fun _ j => visible j) layers C X)[k]) := by
  have general : ∀ (layers : List (DecoderLayer R d_model num_heads d d_ff))
      (X : Matrix R t d_model) (done : List (LayerCache R (num_heads * d))),
      (layers.zip (keptAll sqrt ε scale visible C layers X k.val)).foldl
        (fun (done, x) (L, cache) =>
          let out := L.step sqrt ε scale visible C cache x
          (done ++ [out.1], out.2)) (done, X[k])
      = (done ++ keptAll sqrt ε scale visible C layers X (k.val + 1),
        (decode sqrt ε scale (Mask.causal .topLeft) (fun _ j => visible j) layers C X)[k]) := by
    intro layers
    induction layers with
    | nil => intro X done; simp [keptAll, decode]
    | cons L layers ih =>
      intro X done
      rw [keptAll, List.zip_cons_cons, List.foldl_cons]
      simp only [step_eq]
      rw [ih, keptAll, List.append_assoc, List.singleton_append, decode, decode, List.foldl_cons]
  simpa only [List.nil_append] using general layers X []

/-- **decode-cached**: decoding row by row, each layer keeping the keys and values of the rows that
it has seen, gives the rows of the whole decoder under the causal mask. -/
theorem decode_cached (visible : Fin s → Bool) (C : Matrix R s d_model)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (X : Matrix R t d_model) :
    decodeCached sqrt ε scale visible layers C X.toList
      = (decode sqrt ε scale (Mask.causal .topLeft) (fun _ j => visible j) layers C X).toList := by
  have empty : ∀ (layers : List (DecoderLayer R d_model num_heads d d_ff)) (X : Matrix R t d_model),
      (layers.map fun _ => []) = keptAll sqrt ε scale visible C layers X 0 := by
    intro layers
    induction layers with
    | nil => intro X; rfl
    | cons L layers ih => intro X; rw [List.map_cons, keptAll, ih]; rfl
  have run : ∀ k, k ≤ t →
      (X.toList.take k).foldl (fun (caches, done) x =>
        let out := decodeStep sqrt ε scale visible layers C caches x
        (out.1, done ++ [out.2])) (layers.map fun _ => [], [])
      = (keptAll sqrt ε scale visible C layers X k,
        (decode sqrt ε scale (Mask.causal .topLeft) (fun _ j => visible j) layers C X).toList.take
          k) := by
    intro k hk
    induction k with
    | zero => rw [List.take_zero, List.take_zero, List.foldl_nil, ← empty]
    | succ k ih =>
      have h := decodeStep_eq (sqrt := sqrt) (ε := ε) (scale := scale) visible C layers X ⟨k, hk⟩
      simp only [Fin.getElem_fin] at h
      rw [List.take_add_one, List.take_add_one, List.foldl_append, ih (by omega)]
      have e₁ : X.toList[k]?.toList = [X[k]] := by simp [show k < t from hk]
      have e₂ : ∀ Y : Matrix R t d_model, Y.toList[k]?.toList = [Y[k]] := fun Y => by
        simp [show k < t from hk]
      rw [e₁, e₂, List.foldl_cons, List.foldl_nil]
      simp only [h]
  have h := run t (Nat.le_refl t)
  rw [List.take_of_length_le (by simp), List.take_of_length_le (by simp)] at h
  rw [decodeCached, h]

end Attention.Proof
