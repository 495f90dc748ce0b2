module

public import Attention.Twins.Accesses
public import Attention.Twins.Backward
public import Attention.Twins.BackwardDropout
public import Attention.Twins.BackwardHeads
public import Attention.Twins.BackwardOptions
public import Attention.Twins.BackwardTiles
public import Attention.Twins.BackwardTilesDropout
public import Attention.Twins.Cache
public import Attention.Twins.Cascade
public import Attention.Twins.Combine
public import Attention.Twins.ContinuousReal
public import Attention.Twins.Derivative
public import Attention.Twins.Dropout
public import Attention.Twins.Enclosure
public import Attention.Twins.EnclosureMods
public import Attention.Twins.EnclosureTransformer
public import Attention.Twins.EnclosureWidth
public import Attention.Twins.Flash
public import Attention.Twins.Heads
public import Attention.Twins.LogSumExp
public import Attention.Twins.Masks
public import Attention.Twins.Memory
public import Attention.Twins.Merge
public import Attention.Twins.Nearest
public import Attention.Twins.Online
public import Attention.Twins.Padding
public import Attention.Twins.Paged
public import Attention.Twins.RealExact
public import Attention.Twins.RealExponential
public import Attention.Twins.Ring
public import Attention.Twins.RoundedLogSumExp
public import Attention.Twins.RoundedOutput
public import Attention.Twins.RoundedScores
public import Attention.Twins.Rounding
public import Attention.Twins.RoundingCounts
public import Attention.Twins.RoundingRules
public import Attention.Twins.Schedule
public import Attention.Twins.ScoreMods
public import Attention.Twins.SoftcapDerivative
public import Attention.Twins.Softmax
public import Attention.Twins.SplitKV
public import Attention.Twins.Stability
public import Attention.Twins.TiedOutput
public import Attention.Twins.TileBounds
public import Attention.Twins.Transformer
public import Attention.Twins.TransformerMemorises
public import Attention.Twins.TransformerTokens
public import Attention.Twins.Varlen

/-! # Wrong twins

They test statements: one that holds of a wrong algorithm too says too little. `make test` builds
and audits them; the library does without, except for those that `docs/theorems.toml` or
`docs/claims.toml` names. -/
