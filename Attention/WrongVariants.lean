module

public import Attention.WrongVariants.Accesses
public import Attention.WrongVariants.Algorithm
public import Attention.WrongVariants.Backward
public import Attention.WrongVariants.BackwardDropout
public import Attention.WrongVariants.BackwardHeads
public import Attention.WrongVariants.BackwardLayers
public import Attention.WrongVariants.BackwardOptions
public import Attention.WrongVariants.BackwardTiles
public import Attention.WrongVariants.BackwardTilesDropout
public import Attention.WrongVariants.Cache
public import Attention.WrongVariants.Cascade
public import Attention.WrongVariants.Combine
public import Attention.WrongVariants.ContinuousReal
public import Attention.WrongVariants.Derivative
public import Attention.WrongVariants.Dropout
public import Attention.WrongVariants.Enclosure
public import Attention.WrongVariants.EnclosureMods
public import Attention.WrongVariants.EnclosureTangent
public import Attention.WrongVariants.EnclosureTransformer
public import Attention.WrongVariants.EnclosureWidth
public import Attention.WrongVariants.Flash
public import Attention.WrongVariants.Flash1
public import Attention.WrongVariants.Format
public import Attention.WrongVariants.Heads
public import Attention.WrongVariants.LogSumExp
public import Attention.WrongVariants.Masks
public import Attention.WrongVariants.Memory
public import Attention.WrongVariants.Merge
public import Attention.WrongVariants.Nearest
public import Attention.WrongVariants.Online
public import Attention.WrongVariants.Padding
public import Attention.WrongVariants.Paged
public import Attention.WrongVariants.Pebble
public import Attention.WrongVariants.Poison
public import Attention.WrongVariants.RealExact
public import Attention.WrongVariants.RealExponential
public import Attention.WrongVariants.Ring
public import Attention.WrongVariants.RingNet
public import Attention.WrongVariants.RingNetBackward
public import Attention.WrongVariants.RingSkip
public import Attention.WrongVariants.RoundedChanges
public import Attention.WrongVariants.RoundedDenominator
public import Attention.WrongVariants.RoundedDropout
public import Attention.WrongVariants.RoundedLogSumExp
public import Attention.WrongVariants.RoundedOutput
public import Attention.WrongVariants.RoundedScores
public import Attention.WrongVariants.RoundedTangents
public import Attention.WrongVariants.Rounding
public import Attention.WrongVariants.RoundingCounts
public import Attention.WrongVariants.RoundingRules
public import Attention.WrongVariants.Schedule
public import Attention.WrongVariants.ScoreMods
public import Attention.WrongVariants.ShardsCase
public import Attention.WrongVariants.SoftcapDerivative
public import Attention.WrongVariants.Softmax
public import Attention.WrongVariants.SplitKV
public import Attention.WrongVariants.Stability
public import Attention.WrongVariants.Tangent
public import Attention.WrongVariants.TiedOutput
public import Attention.WrongVariants.TileBounds
public import Attention.WrongVariants.Transformer
public import Attention.WrongVariants.TransformerApproximates
public import Attention.WrongVariants.TransformerMemorises
public import Attention.WrongVariants.TransformerReal
public import Attention.WrongVariants.TransformerTokens
public import Attention.WrongVariants.Varlen

/-! # Wrong variants

They test statements: one that holds of a wrong algorithm too says too little. `make test` builds
and audits them; the library does without, except for those that `docs/theorems.toml` or
`docs/claims.toml` names. -/
