"""One way each to call an attention function: this project's, SDPA's, other packages', any."""
