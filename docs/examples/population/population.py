"""An A2A agent with one skill: it is sent a city as data and answers with data."""

import uvicorn
from a2a.helpers.proto_helpers import get_data_parts, new_data_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

PEOPLE = {"zurich": 436_000, "geneva": 209_000, "lugano": 63_000}
URL = "http://127.0.0.1:7501/"


class Population(AgentExecutor):
    """Answers at once."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Look the city up."""
        [inputs] = get_data_parts(context.message.parts if context.message else [])
        people = PEOPLE.get(inputs["city"].lower(), 0)
        await event_queue.enqueue_event(new_data_message({"people": people}, context_id=context.context_id))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """There is nothing to cancel."""


skill = AgentSkill(id="population", name="Population", description="People in a city.", tags=["city"])
card = AgentCard(
    name="census",
    description="Knows how many people live where.",
    version="1.0",
    supported_interfaces=[AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version="1.0")],
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["application/json"],
    default_output_modes=["application/json"],
    skills=[skill],
)
handler = DefaultRequestHandler(Population(), InMemoryTaskStore(), card)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=7501, log_level="warning")
