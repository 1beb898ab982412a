"""Docker images of real brokers, made on this machine from Debian's own packages.

    python -m amqpspec.targets.brokers.images            builds the missing images
    python -m amqpspec.targets.brokers.images --list     names them and says which exist

For hosts without a container registry, and for versions that a registry no longer offers. Needs
`mmdebstrap` and a Docker engine (Debian and Ubuntu: `apt-get install mmdebstrap docker.io
debian-archive-keyring`). Packages come from the Debian mirror that this machine's apt already uses.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import DockerException

LOCAL_PREFIX = "amqpspec/"
"""Images under this name are built here. They exist in no registry, so nothing may pull them."""

BUILD_COMMAND = "python -m amqpspec.targets.brokers.images"

_RABBITMQ_CONFIGURATION = r"loopback_users = none\nlisteners.tcp.default = 0.0.0.0:5672\n"


class ImageBuildError(Exception):
    """An image could not be built; the message is one line that says which, and why."""


@dataclass(frozen=True)
class BrokerImage:
    """How one image is made: a Debian package in a suite, shell hooks on the tree, Dockerfile changes.

    A hook is a shell command that sees the root of the new system as `$1` (see `mmdebstrap`).
    """

    name: str
    suite: str
    package: str
    hooks: tuple[str, ...]
    changes: tuple[str, ...]


def _rabbitmq(version: str, suite: str) -> BrokerImage:
    """RabbitMQ that answers the guest user from outside and logs to the console."""
    return BrokerImage(
        name=f"{LOCAL_PREFIX}rabbitmq:{version}",
        suite=suite,
        package="rabbitmq-server",
        hooks=(f"printf '{_RABBITMQ_CONFIGURATION}' > \"$1/etc/rabbitmq/rabbitmq.conf\"",),
        changes=(
            "USER rabbitmq",
            "WORKDIR /var/lib/rabbitmq",
            "ENV HOME=/var/lib/rabbitmq",
            "ENV LANG=C.UTF-8",
            "ENV RABBITMQ_LOGS=-",
            # Erlang sizes a table by the limit of open files, which container engines often leave unbounded.
            "ENV ERL_MAX_PORTS=65536",
            "EXPOSE 5672",
            'CMD ["/usr/lib/rabbitmq/bin/rabbitmq-server"]',
        ),
    )


_GARAGEMQ = BrokerImage(
    name=f"{LOCAL_PREFIX}garagemq:latest",
    suite="bookworm",
    package="garagemq",
    hooks=(
        # The packaged file listens on the loopback of the container only.
        "sed -i 's/ip: 127.0.0.1/ip: 0.0.0.0/' \"$1/etc/garagemq/config.yaml\"",
        'install -d -o nobody "$1/var/lib/garagemq"',
    ),
    changes=(
        "USER nobody",
        "WORKDIR /var/lib/garagemq",
        "EXPOSE 5672",
        'CMD ["/usr/bin/garagemq", "--config", "/etc/garagemq/config.yaml"]',
    ),
)

IMAGES: tuple[BrokerImage, ...] = (
    _rabbitmq("3.10", "bookworm"),
    _rabbitmq("4.0", "trixie"),
    # forky moves: the image holds 4.3 or whatever later version Debian has there.
    _rabbitmq("4.3", "forky"),
    _GARAGEMQ,
)


def missing_images(client: docker.DockerClient, wanted: Sequence[BrokerImage] = IMAGES) -> list[BrokerImage]:
    """Those of `wanted` that the engine does not have."""
    present = {tag for image in client.images.list() for tag in image.tags}
    return [image for image in wanted if image.name not in present]


def build(client: docker.DockerClient, image: BrokerImage, mirror: str) -> None:
    """Makes `image` from packages at `mirror`, about 20 s. Raises ImageBuildError."""
    repository, _, tag = image.name.partition(":")
    with tempfile.TemporaryDirectory(prefix="amqpspec-image-") as directory:
        archive = Path(directory) / "image.tar"
        _install_system(image, mirror, archive)
        try:
            client.api.import_image(
                src=str(archive), repository=repository, tag=tag, changes=list(image.changes)
            )
        except DockerException as error:
            raise ImageBuildError(f"{image.name}: the Docker engine refused the image: {error}") from error


def _install_system(image: BrokerImage, mirror: str, archive: Path) -> None:
    command = [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={image.package}",
        # Testing suites are re-signed for a few days at a time, and a mirror may lag. The signature counts.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        *(f"--aptopt={option}" for option in _apt_proxies()),
        *(f"--customize-hook={hook}" for hook in image.hooks),
        image.suite,
        str(archive),
        mirror,
    ]
    try:
        outcome = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        hint = "mmdebstrap is not installed (apt-get install mmdebstrap)"
        raise ImageBuildError(f"{image.name}: {hint}") from error
    if outcome.returncode != 0:
        reasons = [line for line in outcome.stderr.splitlines() if line.startswith("E: ")]
        reason = reasons[0] if reasons else f"exit status {outcome.returncode}"
        raise ImageBuildError(f"{image.name}: mmdebstrap failed: {reason.removeprefix('E: ')}")


def _output_of(*command: str) -> list[str]:
    try:
        outcome = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError:
        return []
    return outcome.stdout.splitlines()


def _apt_proxies() -> list[str]:
    """The proxy options of this machine's apt, which a new system would otherwise not know."""
    dump = _output_of("apt-config", "dump", "--format", '%f "%v";%n')
    names = ("acquire::http::proxy ", "acquire::https::proxy ")
    return [line for line in dump if line.lower().startswith(names)]


def debian_mirror() -> str:
    """The Debian mirror in this machine's apt configuration. Raises ImageBuildError where there is none."""
    # Without release files (before the first `apt-get update`) apt names no target unless told to do without.
    for knowledge in ((), ("--no-release-info",)):
        targets = _output_of(
            "apt-get",
            "indextargets",
            *knowledge,
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)",
            "Created-By: Packages",
        )
        for target in targets:
            match target.split():
                # security, updates and backports are partial archives, and are named with a suffix
                case [uri, release, "main", origin] if "-" not in release:
                    if origin == "Debian" or (knowledge and uri.rstrip("/").endswith("/debian")):
                        return uri
    raise ImageBuildError("no Debian mirror in this machine's apt configuration: name one with --mirror")


def build_missing(
    client: docker.DockerClient, wanted: Sequence[BrokerImage], mirror: str | None, say: Callable[[str], None]
) -> list[ImageBuildError]:
    """Builds those of `wanted` that the engine lacks, two at a time; returns what failed."""
    missing = missing_images(client, wanted)
    if not missing:
        return []
    source = mirror or debian_mirror()

    def build_one(image: BrokerImage) -> ImageBuildError | None:
        say(f"building {image.name} from Debian {image.suite}")
        try:
            build(client, image, source)
        except ImageBuildError as error:
            return error
        say(f"built {image.name}")
        return None

    with ThreadPoolExecutor(max_workers=2) as workers:
        return [error for error in workers.map(build_one, missing) if error is not None]


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 when every wanted image exists at the end, 1 otherwise, 2 for a wrong command line."""
    parser = argparse.ArgumentParser(prog=BUILD_COMMAND, description="Builds the missing broker images.")
    parser.add_argument("image", nargs="*", help="only these (default: all)")
    parser.add_argument("--mirror", help="Debian mirror (default: the one of this machine's apt)")
    parser.add_argument("--list", action="store_true", help="say which images exist, build nothing")
    options = parser.parse_args(arguments)
    known = {image.name: image for image in IMAGES}
    unknown = [name for name in options.image if name not in known]
    if unknown:
        parser.error(f"unknown image {unknown[0]}: one of {', '.join(known)}")
    wanted = [known[name] for name in options.image] or list(IMAGES)
    try:
        client = docker.from_env()
        missing = missing_images(client, wanted)
    except DockerException as error:
        print(f"cannot reach the Docker engine: {error}", file=sys.stderr)
        return 1
    if options.list:
        for image in wanted:
            print(f"{image.name}  {'missing' if image in missing else 'present'}")
        return 0
    try:
        failures = build_missing(client, wanted, options.mirror, _say)
    except (ImageBuildError, DockerException) as error:
        print(error, file=sys.stderr)
        return 1
    for failure in failures:
        print(failure, file=sys.stderr)
    if not failures and not missing:
        _say("every broker image is there")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
