"""The ways in which an argument can get its value."""

UNKNOWN, ABSENT, SPAN, FORM, LIST, OPTION, REFERENCE, TRUE, FALSE = range(9)
"""Not to be found in the request; not needed; a piece of the request as it stands; a piece turned into the form
the argument asks for; several pieces; a value that the schema names; what another step returns; yes; no."""
KINDS = 9
START, END, FIRST, INSIDE = range(4)
"""The pointers over the pieces of the request."""
