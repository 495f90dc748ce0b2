"""How far from the exact result a correct function may be: derived here, none chosen."""
