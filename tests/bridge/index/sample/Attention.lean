module

public import Attention.Spec.Fold
public import Attention.Proof.Fold
