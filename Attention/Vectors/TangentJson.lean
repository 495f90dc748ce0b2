module

public import Attention.Vectors.Json
public import Attention.Vectors.Tangent

public section

/-! # Cases of the derivative forwards as JSON text -/

namespace Attention.Vectors.Json

/-- A case of the derivative forwards. -/
def tangent (id theoremId : String) (c : TangentCase) (rows : List EnclosedRow) : String :=
  let i := c.inputs
  let given := [
    ("softcap", i.softcap.map rat),
    ("alibi", i.alibi.map fun (alignment, slope) =>
      object [("alignment", str (alignmentName alignment)), ("slope", rat slope)]),
    ("bias", i.bias.map fun rows => lines 5 (rows.map fun row => array (row.map optional))),
    ("sink", i.sink.map rat)]
  let rates := [
    ("tangent_slope", i.alibi.map fun _ => rat c.dSlope),
    ("tangent_bias", i.bias.map fun _ => matrix c.dBias),
    ("tangent_sink", i.sink.map fun _ => rat c.dSink)]
  let present := fun (fields : List (String × Option String)) =>
    fields.filterMap fun (name, value) => value.map (name, ·)
  vector id c.leanName theoremId i.reason <| [
    ("q_len", toString i.q.length), ("kv_len", toString i.k.length),
    ("head_dim", toString i.head_dim), ("value_dim", toString i.value_dim),
    ("scale", match i.scale with | none => str "default" | some s => rat s),
    ("q", matrix i.q), ("k", matrix i.k), ("v", matrix i.v), ("mask", mask i.mask)]
    ++ present given ++ [
    ("tangent_q", matrix c.dq), ("tangent_k", matrix c.dk), ("tangent_v", matrix c.dv)]
    ++ present rates ++ [("expected", lines 5 (rows.map enclosedRow))]

end Attention.Vectors.Json
