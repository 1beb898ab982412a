"""The Docker engine of this machine: images, and what every container of a broker needs.

Nothing here starts a broker: `docker_broker` has one container, `cluster_broker` several.
"""

from __future__ import annotations

import contextlib
import io
import socket
import tarfile
import time
from collections.abc import Callable, Mapping
from functools import partial

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.models.networks import Network

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.container_log import ContainerLog
from amqpspec.targets.brokers.images import BUILD_COMMAND, IMAGES, LOCAL_PREFIX
from amqpspec.targets.brokers.owner import OWNER, is_gone
from amqpspec.targets.brokers.readiness import BrokerUnavailable, wait_until_open, wait_until_ready
from amqpspec.targets.errors import TargetError

AMQP_PORT = "5672/tcp"
_CONFIGURATION_DIRECTORY = "/etc/rabbitmq"
_ADVANCED_SETTINGS = frozenset({"channel_tick_interval", "consumer_disconnected_timeout"})
"""Settings of the application `rabbit` that rabbitmq.conf has no key for in some version; they go to
advanced.config, where an unknown one does no harm."""

ENVIRONMENT = {
    # Erlang sizes a table by the limit of open files, which container engines often leave unbounded.
    "ERL_MAX_PORTS": "65536",
    # Erlang's schedulers would burn the processors that the suite shares with the broker.
    "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
}

ENGINE_ERRORS = (DockerException, OSError)
"""The client library lets the errors of its transport (all of them OSError) through."""


class CommandFailed(TargetError):
    """A command inside a broker's container ended with a status other than 0; one line says which and why."""

def configure(container: Container, image: str, configuration: Mapping[str, str]) -> None:
    """Before it starts. Raises BrokerUnavailable for an image of something else than RabbitMQ."""
    files = configuration_files(configuration)
    if not files:
        return
    try:
        container.put_archive(_CONFIGURATION_DIRECTORY, _archive(files))
    except NotFound as error:
        raise BrokerUnavailable(
            f"{image} takes no configuration: without {_CONFIGURATION_DIRECTORY} it is no RabbitMQ"
        ) from error


def await_ready(container: Container, image: str, log: ContainerLog, timeout: float, network: str = "") -> Address:
    """Where the broker in the container answers AMQP, once it does; with `network` the address is of that one.

    Raises BrokerUnavailable where it does not within `timeout` seconds, or ends.
    """
    deadline = time.monotonic() + timeout
    container.reload()
    bindings = container.ports.get(AMQP_PORT)
    if not bindings:
        log.ended.wait(timeout=1.0)  # for what it said before it ended
        raise BrokerUnavailable(f"{image}: {_reason_for_failure(container)}{log.memory.quote()}")
    published = Address(host="127.0.0.1", port=int(bindings[0]["HostPort"]))
    # The container's own address may be filtered: the published port comes after it.
    addresses = [address for address in (_own_address(container, network), published) if address]
    address = wait_until_ready(addresses, deadline, log.signs, log.ended.is_set)
    if address is None:
        if log.ended.is_set():
            raise BrokerUnavailable(f"{image}: {_reason_for_failure(container)}{log.memory.quote()}")
        raise BrokerUnavailable(f"{image}: no AMQP answer within {timeout:g} s{log.memory.quote()}")
    wait_until_open(address, deadline, log.signs)
    return address


def _own_address(container: Container, network: str) -> Address | None:
    """Where the container itself listens, if it is in a network of this machine; None: it is not.

    A published port is served by a process of Docker that copies each octet, which takes as long as the broker does.
    Once a container has ended, the next one that starts may get its address.
    """
    for name, attached in container.attrs["NetworkSettings"]["Networks"].items():
        if network not in ("", name):
            continue
        host, gateway = attached.get("IPAddress"), attached.get("Gateway")
        if host and gateway and _is_of_this_machine(gateway):
            return Address(host=host, port=int(AMQP_PORT.partition("/")[0]))
    return None


def _is_of_this_machine(host: str) -> bool:
    """Is it the address of one of this machine's interfaces? An engine in a virtual machine has networks there."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def connect_to_engine() -> docker.DockerClient:
    try:
        client = docker.from_env()
    except DockerException as error:
        raise _engine_unreachable(error) from error
    try:
        client.ping()
    except ENGINE_ERRORS as error:
        client.close()
        raise _engine_unreachable(error) from error
    return client


def remove_orphans(client: docker.DockerClient) -> None:
    """Take away what runs have left that were killed: containers, and then networks."""
    _remove_owned(client, is_gone)


def remove_all_of(client: docker.DockerClient, owner: str) -> None:
    """Take away the containers of that process, and then its networks."""
    _remove_owned(client, lambda each: each == owner)


def _remove_owned(client: docker.DockerClient, is_meant: Callable[[str], bool]) -> None:
    for things in (partial(client.containers.list, all=True), client.networks.list):
        with contextlib.suppress(*ENGINE_ERRORS):
            for each in things(filters={"label": OWNER}):
                if is_meant(_labels_of(each).get(OWNER, "")):
                    _remove_orphan(each)


def remove_named(client: docker.DockerClient, name: str) -> None:
    """Take away the containers whose names have that in it, and then the networks."""
    for things in (partial(client.containers.list, all=True), client.networks.list):
        with contextlib.suppress(*ENGINE_ERRORS):
            for each in things(filters={"name": name}):
                _remove_orphan(each)


def _labels_of(thing: Container | Network) -> dict[str, str]:
    found = thing.labels if isinstance(thing, Container) else thing.attrs.get("Labels")
    return found or {}


def _remove_orphan(thing: Container | Network) -> None:
    with contextlib.suppress(*ENGINE_ERRORS):  # another run may do the same
        if isinstance(thing, Container):
            thing.remove(force=True, v=True)
        else:
            thing.remove()


def _engine_unreachable(error: Exception) -> BrokerUnavailable:
    return BrokerUnavailable(
        f"no Docker engine answers: start one, or point DOCKER_HOST at it ({one_line(error)})"
    )


def provide_image(client: docker.DockerClient, image: str) -> None:
    try:
        client.images.get(image)
        return
    except ImageNotFound:
        pass
    if image.startswith(LOCAL_PREFIX):
        raise BrokerUnavailable(f"no image {image} on this machine: {_how_to_build(image)}")
    try:
        client.images.pull(image)
    except ENGINE_ERRORS as error:
        raise BrokerUnavailable(
            f"no image {image} on this machine, and it cannot be pulled: check the name, or load it "
            f"({one_line(error)})"
        ) from error


def _how_to_build(image: str) -> str:
    """What to do about an image that is missing, and that no registry has."""
    ours = [each.name for each in IMAGES]
    tagged = image if ":" in image else f"{image}:latest"
    if tagged in ours:
        return f"build it with `{BUILD_COMMAND} {tagged}`"
    return f"`{BUILD_COMMAND}` builds {', '.join(ours)}, and none of that name"


def configuration_files(configuration: Mapping[str, str]) -> dict[str, str]:
    """Path below /etc/rabbitmq -> content. Ours is read after what the image brings, so it prevails."""
    plain = {key: value for key, value in configuration.items() if key not in _ADVANCED_SETTINGS}
    advanced = {key: value for key, value in configuration.items() if key in _ADVANCED_SETTINGS}
    files = {}
    if plain:
        files["conf.d/90-amqpspec.conf"] = "".join(f"{key} = {value}\n" for key, value in plain.items())
    if advanced:
        terms = ", ".join(f"{{{key}, {int(value)}}}" for key, value in advanced.items())
        files["advanced.config"] = f"[{{rabbit, [{terms}]}}].\n"
    return files


def _archive(files: Mapping[str, str]) -> bytes:
    """A tar archive of `files`, readable by whichever user the broker runs as."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in files.items():
            data = content.encode()
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _reason_for_failure(container: Container) -> str:
    with contextlib.suppress(*ENGINE_ERRORS):
        container.reload()
        if container.status == "running":
            return "the engine published no port for it"
        return f"the broker ended with exit status {container.attrs['State']['ExitCode']} before it was ready"
    return "the container is gone"


def one_line(cause: object) -> str:
    """The cause in one line; what the engine itself said, where that is known."""
    text = str(cause.explanation) if isinstance(cause, APIError) and cause.explanation else str(cause)
    return " ".join(text.split())[:300]
