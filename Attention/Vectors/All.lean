module

public import Attention.Vectors.AlgorithmFamilies
public import Attention.Vectors.DropoutFamilies
public import Attention.Vectors.Families
public import Attention.Vectors.GradientFamilies
public import Attention.Vectors.HiddenFamilies
public import Attention.Vectors.LargeFamilies
public import Attention.Vectors.LayoutsPastTilesFamilies
public import Attention.Vectors.NaturalFamilies
public import Attention.Vectors.NaturalGradientFamilies
public import Attention.Vectors.OperationFamilies
public import Attention.Vectors.PartsPastTilesFamilies
public import Attention.Vectors.PastTilesFamilies
public import Attention.Vectors.ShardsFamilies
public import Attention.Vectors.StateFamilies
public import Attention.Vectors.TangentFamilies
public import Attention.Vectors.TransformerFamilies
public import Attention.Vectors.TransformerLayerFamilies
public import Attention.Vectors.TransformerStackFamilies
public import Attention.Vectors.UpdateFamilies

public section

/-! # All families

Written by `.venv/bin/python -m bridge pages` from the other files here. -/

namespace Attention.Vectors

/-- All families of `CacheCase`. -/
def cacheCaseFamilies : List (Family CacheCase) :=
  [cacheEdits, cacheWindows]

/-- All families of `CascadeCase`. -/
def cascadeCaseFamilies : List (Family CascadeCase) :=
  [cascades]

/-- All families of `Case`. -/
def caseFamilies : List (Family Case) :=
  [splitKVs, rings, windowTiles, blockMasks, paddings, tileLoops, logSumExps, keyPaddings,
   smallRandom, oneKey, raggedTiles, largeSpread, equalScores, maximumMoves, maskedHoles,
   fullyMasked, causal, unequalLengths, scales, wideTiles, causalBottomRight, windows, keyLengths,
   documents, hiddenScores, longKeys, wideHeads, drawn, softmaxWeights, dividedUpdates, onlineSinks,
   flashSinks]

/-- All families of `CombineCase`. -/
def combineCaseFamilies : List (Family CombineCase) :=
  [combines]

/-- All families of `DrawnPagedCase`. -/
def drawnPagedCaseFamilies : List (Family DrawnPagedCase) :=
  [pagedsWide]

/-- All families of `DrawnVarlenCase`. -/
def drawnVarlenCaseFamilies : List (Family DrawnVarlenCase) :=
  [varlensWide]

/-- All families of `DropoutCase`. -/
def dropoutCaseFamilies : List (Family DropoutCase) :=
  [dropouts, dropoutsTiled, dropoutsDrawn, dropoutsPastTiles]

/-- All families of `GradientCase`. -/
def gradientCaseFamilies : List (Family GradientCase) :=
  [gradients, gradientsGrouped, gradientsDrawn, gradientsTiled, gradientsOneLoop, gradientsDropped,
   gradientsTemperature, gradientsDroppedTiled, gradientsHidden]

/-- All families of `HeadsCase`. -/
def headsCaseFamilies : List (Family HeadsCase) :=
  [groupedQueriesDrawn, groupedQueries, groupedQueriesPacked, multiHeads]

/-- All families of `LayerCase`. -/
def layerCaseFamilies : List (Family LayerCase) :=
  [linears, layerNorms, feedForwards, multiHeadLayers, encoderLayers, decoderLayers, encoderStacks,
   decoderStacks, cachedDecoding]

/-- All families of `MergeCase`. -/
def mergeCaseFamilies : List (Family MergeCase) :=
  [merges]

/-- All families of `NaturalCase`. -/
def naturalCaseFamilies : List (Family NaturalCase) :=
  [drawnNatural, defaultScale, naturalScores, biases, alibis, softcaps, sinks, scoreMods]

/-- All families of `NaturalGradientCase`. -/
def naturalGradientCaseFamilies : List (Family NaturalGradientCase) :=
  [gradientsSoftcap, gradientsBias, gradientsAlibi, gradientsSinks, gradientsScoreMods]

/-- All families of `NaturalSampledCase`. -/
def naturalSampledCaseFamilies : List (Family NaturalSampledCase) :=
  [temperaturesPastTiles, pastTilesOptions]

/-- All families of `PagedCase`. -/
def pagedCaseFamilies : List (Family PagedCase) :=
  [pagedsPastTiles, pageds]

/-- All families of `PhiloxCase`. -/
def philoxCaseFamilies : List (Family PhiloxCase) :=
  [philoxes]

/-- All families of `SampledCase`. -/
def sampledCaseFamilies : List (Family SampledCase) :=
  [dropoutsPastTilesSampled, packedPastTiles, pastTiles]

/-- All families of `SampledGradientCase`. -/
def sampledGradientCaseFamilies : List (Family SampledGradientCase) :=
  [gradientsPastTilesDropped, gradientsPastTilesTemperature, gradientsPastTilesPacked,
   gradientsPastTiles, gradientsPastTilesMasks]

/-- All families of `ShardsCase`. -/
def shardsCaseFamilies : List (Family ShardsCase) :=
  [shardsContiguous, shardsZigzag, shardsStriped, shardsUneven]

/-- All families of `TangentCase`. -/
def tangentCaseFamilies : List (Family TangentCase) :=
  [tangents, tangentsScoreMods]

/-- All families of `TileBoundsCase`. -/
def tileBoundsCaseFamilies : List (Family TileBoundsCase) :=
  [tileBounds]

/-- All families of `TransformerCase`. -/
def transformerCaseFamilies : List (Family TransformerCase) :=
  [transformers, transformersTied, transformersPositions]

/-- All families of `VarlenCase`. -/
def varlenCaseFamilies : List (Family VarlenCase) :=
  [varlensDrawn, varlensPastTiles, varlens, varlensSliced]

end Attention.Vectors
