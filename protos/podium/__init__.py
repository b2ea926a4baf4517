"""The wire and what everybody shares: the contract, its client, errors, the link and the command loader."""
