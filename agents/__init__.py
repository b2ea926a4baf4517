"""What an agent is: spec, contract, registry, engines, the specialists and the packs."""
