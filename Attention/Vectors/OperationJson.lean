module

public import Attention.Vectors.Cascade
public import Attention.Vectors.Combine
public import Attention.Vectors.Dropout
public import Attention.Vectors.Gradient
public import Attention.Vectors.Heads
public import Attention.Vectors.Json
public import Attention.Vectors.NaturalGradient
public import Attention.Vectors.Paged
public import Attention.Vectors.Shards
public import Attention.Vectors.States
public import Attention.Vectors.TileBounds

public section

/-! # Cases of the operations beside attention as JSON text -/

namespace Attention.Vectors.Json

open Spec

/-- Matrices one below the other, a matrix to a line. -/
def matrices (blocks : List (List (List Rat))) : String :=
  lines 5 (blocks.map fun rows => array (rows.map fun row => array (row.map rat)))

/-- Natural numbers as an array. -/
def nats (xs : List Nat) : String := array (xs.map toString)

/-- A case of attention with several heads. -/
def groupedQuery (id theoremId : String) (c : HeadsCase) (heads : List (List RowResult)) : String :=
  vector id c.algorithm.leanName theoremId c.reason [
    ("num_heads", toString (c.num_kv_heads * c.group)),
    ("num_kv_heads", toString c.num_kv_heads), ("q_len", toString c.q_len),
    ("kv_len", toString c.kv_len), ("head_dim", toString c.head_dim),
    ("value_dim", toString c.value_dim), ("scale", rat c.scale), ("q", matrices (c.q.map rats)),
    ("k", matrices (c.k.map rats)), ("v", matrices c.v), ("mask", mask c.mask),
    ("expected", lines 5 (heads.map fun rows => lines 6 (rows.map rowResult)))]

/-- Which weights are kept, a head to a line. -/
def keptHeads (heads : List (List (List Bool))) : String :=
  lines 5 (heads.map fun rows => array (rows.map fun row => str (bits row)))

/-- A case of the backward pass. -/
def gradient (id theoremId : String) (c : GradientCase) (g : GradientResult) :
    Except String String := do
  let f := c.forward
  let dropout ← match c.dropout with
    | none => pure []
    | some (p, seed) => pure [("dropout_p", rat p), ("dropout_seed", rat seed),
        ("keep", keptHeads (← c.keep p seed))]
  let given := c.algorithm.perHead.map fun (name, xs) =>
    (name, array (xs.map fun (x : Int) => rat x))
  let found := g.perHead.map fun (name, xs) => ("expected_" ++ name, array (xs.map rat))
  return vector id c.leanName theoremId f.reason <| [
    ("num_heads", toString (f.num_kv_heads * f.group)), ("num_kv_heads", toString f.num_kv_heads),
    ("q_len", toString f.q_len), ("kv_len", toString f.kv_len), ("head_dim", toString f.head_dim),
    ("value_dim", toString f.value_dim), ("scale", rat f.scale), ("q", matrices (f.q.map rats)),
    ("k", matrices (f.k.map rats)), ("v", matrices f.v), ("mask", mask f.mask)]
    ++ dropout ++ given ++ [
    ("grad_output", matrices c.dO), ("grad_log_sum_exp", matrix c.dLse),
    ("expected_q", matrices g.dQ), ("expected_k", matrices g.dK), ("expected_v", matrices g.dV),
    ("expected_bias", matrices g.dBias)] ++ found

/-- Bounds of matrices, as integers over one power of two. -/
def enclosedMatrices (blocks : List (List (List (Int × Int)))) : String :=
  let side (f : Int × Int → Int) : String :=
    lines 6 (blocks.map fun rows => array (rows.map fun row => array (row.map (rat <| f ·))))
  object [("lower", side (·.1)), ("upper", side (·.2))]

/-- A case of the backward pass with the natural exponential. -/
def naturalGradient (id theoremId : String) (c : NaturalGradientCase) (g : EnclosedGradients) :
    String :=
  let given := [
    ("softcap", c.softcap.map rat),
    ("alibi", c.alibi.map fun (alignment, slopes) => object
      [("alignment", str (alignmentName alignment)), ("slopes", array (slopes.map rat))]),
    ("bias", c.bias.map fun heads => lines 5
      (heads.map fun rows => array (rows.map fun row => array (row.map optional)))),
    ("sinks", c.sinks.map fun sinks => array (sinks.map rat))]
  let found := [
    ("expected_slopes", c.alibi.map fun _ => object (bounds g.slopes)),
    ("expected_sinks", c.sinks.map fun _ => object (bounds g.sinks))]
  let present := fun (fields : List (String × Option String)) =>
    fields.filterMap fun (name, value) => value.map (name, ·)
  vector id c.leanName theoremId c.reason <| [
    ("num_heads", toString (c.num_kv_heads * c.group)), ("num_kv_heads", toString c.num_kv_heads),
    ("q_len", toString c.q_len), ("kv_len", toString c.kv_len), ("head_dim", toString c.head_dim),
    ("value_dim", toString c.value_dim),
    ("scale", match c.scale with | none => str "default" | some s => rat s),
    ("q", matrices c.q), ("k", matrices c.k), ("v", matrices c.v), ("mask", mask c.mask)]
    ++ present given ++ [
    ("grad_output", matrices c.dO), ("grad_log_sum_exp", matrix c.dLse),
    ("expected_q", enclosedMatrices g.dQ), ("expected_k", enclosedMatrices g.dK),
    ("expected_v", enclosedMatrices g.dV), ("expected_bias", enclosedMatrices g.dBias)]
    ++ present found

/-- A case of dropout. -/
def dropout (id theoremId : String) (c : DropoutCase) (result : DropoutResult) : String :=
  let f := c.forward
  vector id c.algorithm.leanName theoremId f.reason [
    ("batch", toString c.batch), ("num_heads", toString (f.num_kv_heads / c.batch * f.group)),
    ("num_kv_heads", toString (f.num_kv_heads / c.batch)), ("q_len", toString f.q_len),
    ("kv_len", toString f.kv_len), ("head_dim", toString f.head_dim),
    ("value_dim", toString f.value_dim), ("scale", rat f.scale), ("q", matrices (f.q.map rats)),
    ("k", matrices (f.k.map rats)), ("v", matrices f.v), ("mask", mask f.mask),
    ("dropout_p", rat c.p), ("dropout_seed", rat c.seed),
    ("keep", keptHeads result.keep),
    ("expected", lines 5 (result.rows.map fun rows => lines 6 (rows.map rowResult)))]

/-- A case of the generator. -/
def philox (id theoremId : String) (c : PhiloxCase) : String :=
  let words (w : Words) : String := nats [w.c0, w.c1, w.c2, w.c3]
  vector id "Attention.Spec.philox" theoremId c.reason [
    ("rounds", toString c.rounds), ("key", nats [c.key.k0, c.key.k1]),
    ("counters", lines 5 (c.counters.map words)), ("expected", lines 5 (c.run.map words))]

/-- A case of packed sequences with its inputs as texts. -/
def varlenWith (q k v : String) (id theoremId : String) (c : VarlenCase) (rows : List RowResult) :
    String :=
  vector id c.leanName theoremId c.reason [
    ("head_dim", toString c.head_dim), ("value_dim", toString c.value_dim), ("scale", rat c.scale),
    ("cu_seqlens_q", nats (cuSeqlens c.q_lens)), ("cu_seqlens_k", nats (cuSeqlens c.kv_lens)),
    ("q", q), ("k", k), ("v", v), ("mask", mask c.mask),
    ("expected", lines 5 (rows.map rowResult))]

/-- A case of packed sequences. -/
def varlen (id theoremId : String) (c : VarlenCase) : List RowResult → String :=
  varlenWith (matrix (rats c.q)) (matrix (rats c.k)) (matrix c.v) id theoremId c

/-- A case of a cache in pages with its inputs as texts. -/
def pagedWith (q k v : String) (id theoremId : String) (c : PagedCase) (rows : List RowResult) :
    String :=
  vector id "Attention.Spec.attendPaged" theoremId c.reason [
    ("head_dim", toString c.head_dim), ("value_dim", toString c.value_dim), ("scale", rat c.scale),
    ("page_size", toString c.page_size), ("num_pages", toString c.num_pages),
    ("k", k), ("v", v), ("q", q), ("tables", array (c.sequences.map fun s => nats s.table)),
    ("lengths", nats (c.sequences.map (·.length))), ("expected", lines 5 (rows.map rowResult))]

/-- A case of a cache in pages. -/
def paged (id theoremId : String) (c : PagedCase) : List RowResult → String :=
  pagedWith (matrix (rats (c.sequences.map (·.q)))) (matrices (c.k.map rats)) (matrices c.v)
    id theoremId c

/-- A case of a shared prefix. -/
def cascade (id theoremId : String) (c : CascadeCase) (rows : List RowResult) : String :=
  vector id "Attention.Spec.cascade" theoremId c.reason [
    ("head_dim", toString c.head_dim), ("value_dim", toString c.value_dim), ("scale", rat c.scale),
    ("q", matrix (rats c.q)), ("prefix_k", matrix (rats c.prefix_k)),
    ("prefix_v", matrix c.prefix_v), ("suffix_k", matrices (c.suffixes.map (rats ·.1))),
    ("suffix_v", matrices (c.suffixes.map (·.2))), ("expected", lines 5 (rows.map rowResult))]

/-- A case of a sequence in shards. -/
def shards (id theoremId : String) (c : ShardsCase) (found : List DeviceResult) : String :=
  let rows (results : List RowResult) : String := lines 7 (results.map rowResult)
  vector id "Attention.Spec.RingNet.outputs" theoremId c.reason [
    ("q_len", toString c.q.length), ("kv_len", toString c.k.length),
    ("head_dim", toString c.head_dim), ("value_dim", toString c.value_dim), ("scale", rat c.scale),
    ("q", matrix (rats c.q)), ("k", matrix (rats c.k)), ("v", matrix c.v), ("mask", mask c.mask),
    ("layout", str c.layout.name),
    ("devices", lines 5 (found.map fun device => object [
      ("queries", nats device.queries), ("keys", nats device.keys),
      ("arrivals", nats device.arrivals)])),
    ("expected", lines 5 (found.map fun device => object [
      ("partials", lines 6 (device.partials.map rows)), ("merged", rows device.merged)]))]

/-- A state. -/
def state (s : StateResult) : String :=
  object [("m", optional (s.m.map fun (m : Int) => (m : Rat))), ("l", rat s.l),
    ("o", array (s.o.map rat))]

/-- A key with its value. -/
def key (k : Key) : List (String × String) :=
  [("score", optional (k.score.map fun (s : Int) => (s : Rat))), ("value", array (k.value.map rat))]

/-- A tree of merges: the number of a block, or an array of two trees. -/
def tree : Tree → String
  | .leaf n => toString n
  | .node left right => array [tree left, tree right]

/-- A case of merged states. -/
def merge (id theoremId : String) (c : MergeCase) (s : StateResult) : String :=
  vector id "Attention.Spec.Online.merge" theoremId c.reason [
    ("value_dim", toString c.value_dim),
    ("blocks", lines 5 (c.blocks.map fun block => array (block.map fun k => object (key k)))),
    ("tree", tree c.tree), ("expected", state s)]

/-- A change of the keys of a row. -/
def edit : CacheEdit → String
  | .append k => object (("kind", str "append") :: key k)
  | .delete i => object [("kind", str "delete"), ("index", toString i)]
  | .replace i k => object (("kind", str "replace") :: ("index", toString i) :: key k)
  | .slide w k => object (("kind", str "slide") :: ("window", toString w) :: key k)

/-- A case of a cache that changes. -/
def cache (id theoremId : String) (c : CacheCase) (states : List StateResult) : String :=
  vector id c.leanName theoremId c.reason [
    ("value_dim", toString c.value_dim),
    ("keys", lines 5 (c.keys.map fun k => object (key k))),
    ("edits", lines 5 (c.edits.map edit)), ("expected", lines 5 (states.map state))]

/-- A case of results of splits. -/
def combine (id theoremId : String) (c : CombineCase) (row : EnclosedRow) : String :=
  vector id "Attention.Spec.combine" theoremId c.reason [
    ("value_dim", toString c.value_dim),
    ("parts", lines 5 (c.parts.map fun part => object [
      ("log_sum_exp", optional part.logSumExp), ("output", array (part.output.map rat))])),
    ("expected", enclosedRow row)]

/-- How a pair of tiles is taken, as a letter. -/
def kindLetter : TileKind → Char
  | .skip => '-'
  | .unmasked => 'u'
  | .masked => 'm'

/-- A case of the tiles that a window visits. -/
def tileBounds (id theoremId : String) (c : TileBoundsCase) : String :=
  vector id "Attention.Spec.visitedTiles" theoremId c.reason [
    ("q_len", toString c.q_len), ("kv_len", toString c.kv_len), ("block_m", toString c.block_m),
    ("block_n", toString c.block_n), ("alignment", str (alignmentName c.alignment)),
    ("left", bound c.left), ("right", bound c.right),
    ("expected", array (c.run.map fun kinds => str (String.ofList (kinds.map kindLetter))))]

end Attention.Vectors.Json
