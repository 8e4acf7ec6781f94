"""The agent's stream to the coordinator: messages out of a queue, answers into a callback, until it breaks."""

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc

from strata.client.channel import aio_channel, token_metadata
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated.agents_pb2_grpc import AgentsStub
from strata.protocol.status import from_rpc_error

__all__ = ["attach"]


async def attach(
    address: str,
    token: str,
    hello: ag.AgentHello,
    outbox: "asyncio.Queue[ag.AgentMessage]",
    on_message: Callable[[ag.CoordinatorMessage], None],
) -> None:
    """Runs one stream to its end. Raises the StrataError it broke with; what was not sent stays in the outbox."""

    async def requests() -> AsyncIterator[ag.AgentMessage]:
        yield ag.AgentMessage(hello=hello)
        while True:
            yield await outbox.get()
            outbox.task_done()  # gRPC has taken it

    async with aio_channel(address) as channel:
        stub = AgentsStub(channel)
        stream = stub.Attach(requests(), metadata=token_metadata(token))  # type: ignore[call-overload,unused-ignore]  # aio stub
        try:
            async for message in stream:
                on_message(message)
        except grpc.RpcError as error:
            raise from_rpc_error(error, address=address) from None
