module

public import Attention.Vectors.OperationJson
public import Attention.Vectors.SampledGradient

public section

/-! # Cases whose inputs are drawn by rule as JSON text -/

namespace Attention.Vectors.Json

open Spec

/-- A rule. -/
def rule (r : Rule) : String :=
  object [("drawn_from", str r.name), ("bound", toString r.bound), ("one_in", toString r.oneIn),
    ("over", toString r.over)]

/-- The options that every case may have: temperatures, dropout and packed sequences. -/
def parts (temperatures : Option (List Rat)) (dropout : Option (Rat × Nat))
    (packed : Option (List Nat × List Nat)) : List (String × String) :=
  (temperatures.map fun ts => [("temperature", array (ts.map rat))]).getD []
    ++ (dropout.map fun (p, seed) => [("dropout_p", rat p), ("dropout_seed", rat seed)]).getD []
    ++ (packed.map fun (q_lens, kv_lens) => [("cu_seqlens_q", nats (cuSeqlens q_lens)),
        ("cu_seqlens_k", nats (cuSeqlens kv_lens))]).getD []

/-- The sizes and inputs of a case. -/
def sampledInputs (c : SampledCase) : List (String × String) :=
  let given := [
    ("softcap", c.softcap.map rat),
    ("alibi", c.alibi.map fun (alignment, slopes) => object
      [("alignment", str (alignmentName alignment)), ("slopes", array (slopes.map rat))]),
    ("bias", c.bias.map rule),
    ("sinks", c.sinks.map fun sinks => array (sinks.map rat))]
  [("batch", toString c.batch), ("num_heads", toString c.heads),
    ("num_kv_heads", toString c.num_kv_heads), ("q_len", toString c.q_len),
    ("kv_len", toString c.kv_len), ("head_dim", toString c.head_dim),
    ("value_dim", toString c.value_dim),
    ("scale", match c.scale with | none => str "default" | some s => rat s),
    ("q", rule c.q), ("k", rule c.k), ("v", rule c.v), ("masks", lines 5 (c.masks.map mask))]
    ++ given.filterMap (fun (name, value) => value.map (name, ·))
    ++ parts c.temperatures c.dropout c.packed
    ++ [("rows", nats c.rows)]

/-- A case of packed sequences whose numbers are drawn by rule. -/
def drawnVarlen (id theoremId : String) (c : DrawnVarlenCase) : Except String String := do
  let f ← c.inputs
  return varlenWith (rule c.q) (rule c.k) (rule c.v) id theoremId f (← f.run)

/-- A case of a cache in pages whose numbers are drawn by rule. -/
def drawnPaged (id theoremId : String) (c : DrawnPagedCase) : Except String String := do
  let f ← c.inputs
  return pagedWith (rule c.q) (rule c.k) (rule c.v) id theoremId f (← f.run)

/-- A case over the exact model, with the outcome of its rows. -/
def sampled (id theoremId : String) (c : SampledCase) (heads : List (List RowResult)) : String :=
  vector id "Attention.Spec.attend" theoremId c.reason <| sampledInputs c ++
    [("expected", lines 5 (heads.map fun rows => lines 6 (rows.map rowResult)))]

/-- A case with the natural exponential, with the outcome of its rows. -/
def naturalSampled (id theoremId : String) (c : NaturalSampledCase)
    (heads : List (List EnclosedRow)) : String :=
  vector id "Attention.Spec.attend" theoremId c.inputs.reason <| sampledInputs c.inputs ++
    [("expected", lines 5 (heads.map fun rows => lines 6 (rows.map enclosedRow)))]

/-- A case of the backward pass, with the gradients of its rows and keys. -/
def sampledGradient (id theoremId : String) (c : SampledGradientCase) (g : EnclosedGradients) :
    String :=
  let f := c.without
  let given := [
    ("softcap", f.softcap.map rat),
    ("alibi", f.alibi.map fun (alignment, slopes) => object
      [("alignment", str (alignmentName alignment)), ("slopes", array (slopes.map rat))]),
    ("bias", c.bias.map rule),
    ("sinks", f.sinks.map fun sinks => array (sinks.map rat))]
  let found := [
    ("expected_slopes", f.alibi.map fun _ => object (bounds g.slopes)),
    ("expected_sinks", f.sinks.map fun _ => object (bounds g.sinks)),
    ("expected_temperature", c.temperatures.map fun _ => object (bounds g.temperatures))]
  let present := fun (fields : List (String × Option String)) =>
    fields.filterMap fun (name, value) => value.map (name, ·)
  vector id c.leanName theoremId f.reason <| [
    ("batch", toString c.batch), ("num_heads", toString (f.num_kv_heads / c.batch * f.group)),
    ("num_kv_heads", toString (f.num_kv_heads / c.batch)),
    ("q_len", toString f.q_len), ("kv_len", toString f.kv_len), ("head_dim", toString f.head_dim),
    ("value_dim", toString f.value_dim),
    ("scale", match f.scale with | none => str "default" | some s => rat s),
    ("q", rule c.q), ("k", rule c.k), ("v", rule c.v), ("masks", lines 5 (c.masks.map mask))]
    ++ present given ++ parts c.temperatures c.dropout c.packed ++ [
    ("grad_output", rule c.dO), ("grad_log_sum_exp", rule c.dLse),
    ("rows", nats c.rows), ("keys", nats c.keys),
    ("expected_q", enclosedMatrices g.dQ), ("expected_k", enclosedMatrices g.dK),
    ("expected_v", enclosedMatrices g.dV), ("expected_bias", enclosedMatrices g.dBias)]
    ++ present found

end Attention.Vectors.Json
