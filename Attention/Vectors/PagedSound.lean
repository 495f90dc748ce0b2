module

public import Attention.Proof.Packed.Paged
public import Attention.Vectors.Paged
public import Attention.Vectors.VarlenSound

public section

/-! # What runs is what is proved: a cache in pages

`PagedCase.run` makes the exact vectors of keys and values in pages. -/

namespace Attention.Vectors

open Spec Proof

/-- Where no number is dropped, the numbers are those of the list. -/
theorem indices_all {n : Nat} {xs : List Nat} (h : (indices n xs).length = xs.length) :
    (indices n xs).map (·.val) = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    have most : (indices n xs).length ≤ xs.length := List.length_filterMap_le _ _
    by_cases hx : x < n
    · have e : indices n (x :: xs) = ⟨x, hx⟩ :: indices n xs := by simp [indices, hx]
      rw [e] at h ⊢
      rw [List.map_cons, ih (by simpa using h)]
    · have e : indices n (x :: xs) = indices n xs := by simp [indices, hx]
      rw [e] at h
      simp only [List.length_cons] at h
      omega

private theorem getD_of_lt {α : Type} {xs : List α} {a : α} {p : Nat} (h : p < xs.length) :
    xs.getD p a = xs[p] := by
  simp [h]

/-- The keys in the pages of a table, in the pool of the pages. -/
theorem gather_poolOf {d d_v page_size num_pages : Nat}
    {pages : List (List (KeyValue Int Rat d d_v))} (hlen : pages.length = num_pages)
    (hslots : ∀ page ∈ pages, page.length = page_size) (table : List (Fin num_pages))
    (len : Nat) : (poolOf page_size num_pages pages).gather table len
      = (table.flatMap fun p => pages.getD p.val []).take len := by
  have page : ∀ p : Fin num_pages,
      (poolOf page_size num_pages pages)[p].toList = pages.getD p.val [] := fun p => by
    have hp : p.val < pages.length := hlen ▸ p.isLt
    have hs := hslots _ (List.getElem_mem hp)
    rw [getD_of_lt hp]
    refine List.ext_getElem (by simp [hs]) fun slot h₁ h₂ => ?_
    simp [poolOf, hp, h₂]
  rw [gather_eq_take]
  simp only [page]

namespace PagedCase

/-- **paged-vectors-sound**: if the program gives results for a cache in pages, there is one for
each sequence: its output is the attention of the query over the keys and values that the pages of
its table hold, in the order of the table, up to its length, and beside it are the largest score of
that row and the denominator against it. -/
theorem run_sound {c : PagedCase} {results : List RowResult} (h : c.run = .ok results) :
    results.length = c.sequences.length ∧
    ∀ (i : Nat) (s : PagedSequence) (r : RowResult), c.sequences[i]? = some s →
      results[i]? = some r →
      ∃ (q : Vec Int c.head_dim) (kvs : List (KeyValue Int Rat c.head_dim c.value_dim)),
        q.toList = s.q ∧ kvs.length = s.length ∧
        kvs.map (·.1.toList) = (s.table.flatMap fun p => c.k.getD p []).take s.length ∧
        kvs.map (·.2.toList) = (s.table.flatMap fun p => c.v.getD p []).take s.length ∧
        r.output = (attendRows c.scale (fun _ s => some s) q kvs).toList ∧
        r.Describes (scoredRows c.scale (fun _ s => some s) q kvs) := by
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨⟨hk, hv⟩, h⟩ := check_ok h
  obtain ⟨pages, hpages, h⟩ := bind_ok h
  obtain ⟨hslots, h⟩ := check_ok h
  obtain ⟨hlen, each⟩ := mapM_ok h
  refine ⟨hlen, fun i s r hs hr => ?_⟩
  obtain ⟨hi, rfl⟩ := List.getElem?_eq_some_iff.mp hs
  obtain ⟨hi', rfl⟩ := List.getElem?_eq_some_iff.mp hr
  obtain ⟨_, -, h⟩ := bind_ok (each i hi')
  clear each
  obtain ⟨q, hq, h⟩ := bind_ok h
  obtain ⟨⟨htable, hlength⟩, h⟩ := check_ok h
  rw [← Except.ok.inj h]
  clear h hr hs
  generalize c.sequences[i] = s at *
  obtain ⟨plen, peach⟩ := mapM_ok hpages
  have plen : pages.length = c.num_pages := by rw [plen, List.length_zip]; omega
  have rows : ∀ (p : Nat) (hp : p < c.num_pages),
      (pages.getD p []).length = c.page_size ∧
      (pages.getD p []).map (·.1.toList) = c.k.getD p [] ∧
      (pages.getD p []).map (·.2.toList) = c.v.getD p [] := fun p hp => by
    have hp' : p < pages.length := plen ▸ hp
    have entry : (c.k.zip c.v)[p]'(by rw [List.length_zip]; omega)
        = (c.k[p]'(hk ▸ hp), c.v[p]'(hv ▸ hp)) := List.getElem_zip
    have h := peach p hp'
    rw [entry] at h
    have := toKeyValues_rows h
    have hslot := List.all_eq_true.mp hslots pages[p] (List.getElem_mem hp')
    rw [getD_of_lt hp', getD_of_lt (hk ▸ hp : p < c.k.length),
      getD_of_lt (hv ▸ hp : p < c.v.length)]
    exact ⟨by simpa using hslot, this⟩
  clear peach hslots hpages
  have table := indices_all htable
  generalize indices c.num_pages s.table = t at *
  have hgather := gather_poolOf plen (fun page hpage => by
    obtain ⟨p, hp, rfl⟩ := List.getElem_of_mem hpage
    have := (rows p (plen ▸ hp)).1
    rwa [getD_of_lt hp] at this) t s.length
  have inner : ∀ {α : Type} (f : KeyValue Int Rat c.head_dim c.value_dim → α)
      (g : List (List α)), (∀ p, p < c.num_pages → (pages.getD p []).map f = g.getD p []) →
      ((poolOf c.page_size c.num_pages pages).gather t s.length).map f
        = (s.table.flatMap fun p => g.getD p []).take s.length :=
    fun f g hfg => by
      rw [hgather, List.map_take, List.map_flatMap, ← table, List.flatMap_map]
      refine congrArg (List.take _) (congrArg List.flatten (List.map_congr_left fun p _ => ?_))
      exact hfg p.val p.isLt
  refine ⟨q[0], (poolOf c.page_size c.num_pages pages).gather t s.length, ?_, ?_,
    inner _ c.k fun p hp => (rows p hp).2.1,
    inner _ c.v fun p hp => (rows p hp).2.2, ?_, rowResult_describes _ _⟩
  · have e : (rowsOf q)[0]'(by simp [rowsOf]) = s.q := by
      simp only [toMatrix_rows hq, List.getElem_cons_zero]
    simpa [rowsOf] using e
  · rw [hgather, List.length_take, List.length_flatMap]
    have : (t.map fun p => (pages.getD p.val []).length) = t.map fun _ => c.page_size :=
      List.map_congr_left fun p _ => (rows p.val p.isLt).1
    rw [this, List.map_const', List.sum_replicate_nat, htable]
    omega
  · rw [← attendPaged_eq]
    rfl

end PagedCase

namespace DrawnPagedCase

private theorem rats_pages (table : List Nat) (num_pages page_size length : Nat)
    (rows : List (List Int)) :
    rats ((table.flatMap fun p => (toPages num_pages page_size rows).getD p []).take length)
      = (table.flatMap fun p => (toPages num_pages page_size (rats rows)).getD p []).take
        length := by
  rw [rats, List.map_take, List.map_flatMap]
  refine congrArg (List.take _) (congrArg List.flatten (List.map_congr_left fun p _ => ?_))
  by_cases hp : p < num_pages <;>
    simp [toPages, rats, List.getD_eq_getElem?_getD, hp, List.map_take, List.map_drop]

/-- **drawn-paged-vectors-sound**: if the program gives results for a cache in pages whose numbers
are drawn by rule, there is one for each sequence: its output is the attention of the row that the
rule draws for it over the keys and values that the pages of its table hold of the rows that the
rules draw for the pool, in the order of the table, up to its length, and beside it are the largest
score of that row and the denominator against it. -/
theorem run_sound {c : DrawnPagedCase} {f : PagedCase} {results : List RowResult}
    (hf : c.inputs = .ok f) (h : f.run = .ok results) :
    let g := c.without
    let pool {α : Type} : List α → List (List α) := toPages g.num_pages g.page_size
    results.length = g.sequences.length ∧
    ∀ (i : Nat) (s : PagedSequence) (r : RowResult), g.sequences[i]? = some s →
      results[i]? = some r →
      ∃ (q : Vec Int g.head_dim) (kvs : List (KeyValue Int Rat g.head_dim g.value_dim)),
        (c.q.matrices 1 g.sequences.length g.head_dim).flatten[i]?
          = some (q.toList.map fun (x : Int) => (x : Rat)) ∧ kvs.length = s.length ∧
        rats (kvs.map (·.1.toList)) = (s.table.flatMap fun p =>
          (pool (c.k.matrices 1 (g.num_pages * g.page_size) g.head_dim).flatten).getD p []).take
            s.length ∧
        kvs.map (·.2.toList) = (s.table.flatMap fun p =>
          (pool (c.v.matrices 1 (g.num_pages * g.page_size) g.value_dim).flatten).getD p []).take
            s.length ∧
        r.output = (attendRows g.scale (fun _ s => some s) q kvs).toList ∧
        r.Describes (scoredRows g.scale (fun _ s => some s) q kvs) := by
  rw [inputs] at hf
  obtain ⟨q, hq, hf⟩ := bind_ok hf
  obtain ⟨k, hk, hf⟩ := bind_ok hf
  obtain ⟨v, hv, hf⟩ := bind_ok hf
  obtain rfl := Except.ok.inj hf
  rw [Rule.rows] at hv
  obtain ⟨_, -, hv⟩ := bind_ok hv
  obtain rfl := Except.ok.inj hv
  have hq := integers_ok hq
  have hlen : q.length = c.without.sequences.length := by
    have h := congrArg List.length hq
    simpa [rats, Rule.matrices] using h
  obtain ⟨length, each⟩ := PagedCase.run_sound h
  refine ⟨by simpa [hlen] using length, fun i s r hs hr => ?_⟩
  have hi : i < q.length := hlen ▸ (List.getElem?_eq_some_iff.mp hs).1
  obtain ⟨x, kvs, hx, hkvs, hK, hV, hrest⟩ := each i { s with q := q[i] } r
    (by simp [List.getElem?_zipWith, hs, hi]) hr
  refine ⟨x, kvs, ?_, hkvs, ?_, hV, hrest⟩
  · rw [← hq, hx]
    simp [rats, hi]
  · rw [hK, rats_pages, integers_ok hk]

end DrawnPagedCase

end Attention.Vectors
