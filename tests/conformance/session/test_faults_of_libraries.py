"""Faults that are planted into a library: each is told, and is no fault of the broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, Table, TraceEvent
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.drivers.pika_blocking import PikaCarrier, PikaChannel, PikaClient
from amqpspec.targets.drivers.pika_select import PikaSelectCarrier, PikaSelectChannel, PikaSelectClient
from tests.conformance.session.libraries import CONSUMING, REFUSED, RETURNING, judged


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("rabbitmq-4.3") as serving:
        yield serving


class AcknowledgesTwice(PikaChannel):
    def send(self, event: TraceEvent) -> None:
        super().send(event)
        if event.name == "basic.ack":
            super().send(event)


class LosesAReturn(PikaChannel):
    def _returned(self, *message: Any) -> None:
        pass


class LosesADelivery(PikaChannel):
    def _delivered(self, *message: Any) -> None:
        pass


class ShowsTwice(PikaChannel):
    def _delivered(self, *message: Any) -> None:
        super()._delivered(*message)
        super()._delivered(*message)


class TakesACancelForAClose(PikaChannel):
    def _cancelled(self, frame: Any) -> None:
        self._shows(self._number, "channel.close", {"reply_code": 404, "reply_text": "gone"})


class LosesACancel(PikaChannel):
    def _cancelled(self, frame: Any) -> None:
        pass


class NeverComesBack(PikaChannel):
    def send(self, event: TraceEvent) -> None:
        super().send(event)
        if event.name == "queue.declare":
            while True:
                self._channel.connection.process_data_events(time_limit=None)


class SendsAnotherBody(PikaChannel):
    def _publish(self, said: Table, content: Content) -> None:
        super()._publish(said, Content(content.properties, b"another"))


class TakesARefusalForAConfirm(PikaSelectChannel):
    def _confirmed(self, frame: Any) -> None:
        self._shows(self._number, "basic.ack", {"delivery_tag": frame.method.delivery_tag})


class LosesAConfirm(PikaSelectChannel):
    def _confirmed(self, frame: Any) -> None:
        pass


class Reorders(PikaChannel):
    _held: tuple[Any, ...] = ()

    def _delivered(self, *message: Any) -> None:
        if not self._held:
            self._held = message
        else:
            super()._delivered(*message)
            super()._delivered(*self._held)


class NeverAcknowledges(PikaChannel):
    def send(self, event: TraceEvent) -> None:
        if event.name != "basic.ack":
            super().send(event)


class ConfirmsByItself(PikaChannel):
    def _publish(self, said: Table, content: Content) -> None:
        super()._publish(said, content)
        self._shows(self._number, "basic.ack", {"delivery_tag": 1})


def faulty(channel: Any) -> Any:
    """A carrier whose channels are such."""
    select = issubclass(channel, PikaSelectChannel)
    client: Any = type("Client", (PikaSelectClient if select else PikaClient,), {"makes_channel": channel})
    return type("Carrier", (PikaSelectCarrier if select else PikaCarrier,), {"makes_client": client})


@pytest.mark.parametrize(
    ("channel", "commands", "rule", "detail"),
    [
        (AcknowledgesTwice, CONSUMING, "LIBRARY-SENT", "basic.ack that was not asked for"),
        (NeverAcknowledges, CONSUMING, "LIBRARY-SENT", "basic.ack that was asked for"),
        (LosesAReturn, RETURNING, "LIBRARY-RETURN", "basic.return that has come"),
        (LosesADelivery, CONSUMING[:3], "LIBRARY-DELIVERY", "basic.deliver that has come"),
        (ShowsTwice, CONSUMING[:3], "LIBRARY-DELIVERY", "basic.deliver shown twice"),
        (
            TakesACancelForAClose, (*CONSUMING[:2], "b.1 queue.delete q"), "LIBRARY-CLOSE",
            "channel.close shown as it did not come",
        ),
        (
            Reorders, (CONSUMING[0], "b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2", CONSUMING[1]),
            "LIBRARY-DELIVERY", "basic.deliver shown out of order",
        ),
        (
            LosesACancel, (*CONSUMING[:2], "b.1 queue.delete q"), "LIBRARY-CANCEL", "basic.cancel that has come",
        ),
        (SendsAnotherBody, CONSUMING, "LIBRARY-SENT", "arguments of basic.publish"),
        (NeverComesBack, CONSUMING[:1], "LIBRARY-ANSWER", "the end of queue.declare, whose answer has come"),
        (TakesARefusalForAConfirm, REFUSED, "LIBRARY-CONFIRM", "basic.ack shown as it did not come"),
        (LosesAConfirm, REFUSED, "LIBRARY-CONFIRM", "basic.ack that has come"),
        (
            ConfirmsByItself, ("a.1 basic.publish nowhere body=m",), "LIBRARY-CONFIRM",
            "basic.ack shown as it did not come",
        ),
    ],
)  # fmt: skip
def test_a_fault_of_a_library_is_told_and_is_no_fault_of_the_broker(
    broker: EmbeddedBroker,
    tmp_path: Path,
    channel: Any,
    commands: tuple[str, ...],
    rule: str,
    detail: str,
) -> None:
    said = judged(broker, tmp_path, commands, faulty(channel))
    found = {(each.requirement, each.detail) for each in said.failures}
    assert (rule, detail) in found
    if channel is not AcknowledgesTwice:  # for which the broker closes the channel, as it must
        assert all(each.requirement.startswith("LIBRARY-") for each in said.failures)
    assert said.verdict is Verdict.FAIL
