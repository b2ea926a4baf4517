"""Reading a scanned document: images in, lines of text with their place on the page out."""
