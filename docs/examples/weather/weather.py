"""An agent in a process of its own: run it, then `podium register --file weather.yaml`."""

from collections.abc import Mapping
from typing import Any

from podium.agent_host import AgentHost, CallContext

ALMANAC = {"zurich": 9.4, "geneva": 10.6, "lugano": 12.4}
host = AgentHost(listen="127.0.0.1:7500", insecure_loopback=True)


@host.agent("weather", version="1.0.0", manifest="weather.yaml")
def weather(inputs: Mapping[str, Any], context: CallContext) -> Mapping[str, Any]:
    """The mean temperature of a city; a city that is not in the almanac gets an honest guess."""
    city = inputs["city"].strip().lower()
    celsius = ALMANAC.get(city)
    source = {"id": "S1", "kind": "list", "label": "Almanac", "location": city[:500], "sha256": ""}
    return {
        "celsius": 10.0 if celsius is None else celsius,
        "confidence_score": 0.2 if celsius is None else 0.9,
        "sources": [source],
    }


if __name__ == "__main__":
    host.run()
