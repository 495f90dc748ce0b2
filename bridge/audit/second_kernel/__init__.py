"""A second check of the proofs: their terms from the stored bytes, without the embedded Lean, in
the format of lean4export; and a native kernel that checks them, of another version and build of
Lean.
"""
