"""What a function of anybody's can do, and which operation it computes."""
