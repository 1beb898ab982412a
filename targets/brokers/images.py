"""Docker images of real brokers, made on this machine from Debian's own packages, and from Maven's archive.

    python -m amqpspec.targets.brokers.images            builds the missing images
    python -m amqpspec.targets.brokers.images --list     names them and says which exist

For hosts without a container registry, and for versions that a registry no longer offers. Needs
`mmdebstrap` and a Docker engine (Debian and Ubuntu: `apt-get install mmdebstrap docker.io
debian-archive-keyring`), for Qpid Broker-J also Maven (`apt-get install maven`). Packages come from the Debian
mirror that this machine's apt already uses, the archive of a broker from where this machine's Maven gets it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import docker
from docker.errors import DockerException

from amqpspec.targets.brokers import broker_j

LOCAL_PREFIX = "amqpspec/"
"""Images under this name are built here. They exist in no registry, so nothing may pull them."""

BUILD_COMMAND = "python -m amqpspec.targets.brokers.images"

_RABBITMQ_CONFIGURATION = r"loopback_users = none\nlisteners.tcp.default = 0.0.0.0:5672\n"


class ImageBuildError(Exception):
    """An image could not be built; the message is one line that says which, and why."""


@dataclass(frozen=True)
class BrokerImage:
    """How one image is made: a Debian package in a suite, shell hooks on the tree, Dockerfile changes.

    A hook is a shell command that sees the root of the new system as `$1` (see `mmdebstrap`). Before the hooks, the
    `archive` (Maven coordinates of a compressed tar) is unpacked below /opt, and the `files` are written there.
    """

    name: str
    suite: str
    package: str
    hooks: tuple[str, ...]
    changes: tuple[str, ...]
    archive: str = ""
    #: name -> content
    files: Mapping[str, str] = field(default_factory=dict)


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

_BROKER_J = BrokerImage(
    name=f"{LOCAL_PREFIX}broker-j:9.2",
    suite="bookworm",
    package=broker_j.JAVA,
    hooks=(),
    changes=(
        "USER nobody",
        "WORKDIR /tmp",
        "EXPOSE 5672",
        f"CMD {json.dumps(broker_j.command('/opt'))}",
    ),
    archive=broker_j.ARCHIVE,
    files={broker_j.CONFIGURATION_FILE: broker_j.CONFIGURATION},
)

IMAGES: tuple[BrokerImage, ...] = (
    _rabbitmq("3.10", "bookworm"),
    _rabbitmq("4.0", "trixie"),
    # forky moves: the image holds 4.3 or whatever later version Debian has there.
    _rabbitmq("4.3", "forky"),
    _GARAGEMQ,
    _BROKER_J,
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
        hooks = (*_hooks_of_contents(image, Path(directory)), *image.hooks)
        _install_system(image, hooks, mirror, archive)
        try:
            client.api.import_image(
                src=str(archive), repository=repository, tag=tag, changes=list(image.changes)
            )
        except (DockerException, OSError) as error:
            raise ImageBuildError(f"{image.name}: the Docker engine refused the image: {error}") from error


def _hooks_of_contents(image: BrokerImage, directory: Path) -> list[str]:
    """The hooks that unpack the image's archive and write its files; both are put into `directory` first."""
    hooks = []
    if image.archive:
        hooks.append(f'tar -xzf {shlex.quote(str(_got_by_maven(image, directory)))} --no-same-owner -C "$1/opt"')
    for name, content in image.files.items():
        source = directory / name
        source.write_text(content, encoding="utf-8")
        hooks.append(f'install -m 644 {shlex.quote(str(source))} "$1/opt/{name}"')
    return hooks


def _got_by_maven(image: BrokerImage, directory: Path) -> Path:
    """The image's archive, which Maven has or gets. Raises ImageBuildError."""
    into = directory / "maven"
    command = ["mvn", "--batch-mode", "--quiet", "dependency:copy", f"-Dartifact={image.archive}"]
    try:
        outcome = subprocess.run(
            [*command, f"-DoutputDirectory={into}"],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise ImageBuildError(f"{image.name}: Maven is not installed (apt-get install maven)") from error
    found = list(into.iterdir()) if outcome.returncode == 0 and into.is_dir() else []
    if len(found) != 1:
        reason = next((line for line in outcome.stdout.splitlines() if line.startswith("[ERROR]")), "no file came")
        raise ImageBuildError(f"{image.name}: Maven did not get {image.archive}: {reason.removeprefix('[ERROR] ')}")
    return found[0]


def _install_system(image: BrokerImage, hooks: Sequence[str], mirror: str, archive: Path) -> None:
    command = [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={image.package}",
        # Testing suites are re-signed for a few days at a time, and a mirror may lag. The signature counts.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        # without this directory Java's package cannot be configured (update-alternatives)
        '--essential-hook=mkdir -p "$1/usr/share/man/man1"',
        *(f"--aptopt={option}" for option in _apt_proxies()),
        *(f"--customize-hook={hook}" for hook in hooks),
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
    except (DockerException, OSError) as error:
        print(f"cannot reach the Docker engine: {error}", file=sys.stderr)
        return 1
    if options.list:
        for image in wanted:
            print(f"{image.name}  {'missing' if image in missing else 'present'}")
        return 0
    try:
        failures = build_missing(client, wanted, options.mirror, _say)
    except (ImageBuildError, DockerException, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for failure in failures:
        print(failure, file=sys.stderr)
    if not failures and not missing:
        _say("every broker image is there")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
