import AttentionMathlib

#print axioms AttentionMathlib.attention_eq
#print axioms AttentionMathlib.flash_eq
