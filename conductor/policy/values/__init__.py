"""Values out of words: typed normalisers from a piece of the request to what an argument's schema asks for."""
