module

public import Attention.Spec.ScoreMods
