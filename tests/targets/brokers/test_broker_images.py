"""The builder of broker images: what it lists, and that what goes wrong is one line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from amqpspec.targets.brokers import images as broker_images
from amqpspec.targets.brokers.docker_broker import DockerBroker
from tests.conftest import BROKER_IMAGES


def test_list_says_what_is_there(rabbitmq_4_3: DockerBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert broker_images.main(["--list", rabbitmq_4_3.image]) == 0
    assert capsys.readouterr().out.split() == [rabbitmq_4_3.image, "present"]


def test_present_image_is_not_built_again(
    rabbitmq_4_3: DockerBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    # With this mirror a build would fail.
    assert broker_images.main(["--mirror", "file:///no/such/mirror", rabbitmq_4_3.image]) == 0
    assert "building" not in capsys.readouterr().out


def test_every_image_of_the_fixtures_can_be_built_by_name() -> None:
    names = {image.name.removesuffix(":latest") for image in broker_images.IMAGES}
    assert set(BROKER_IMAGES.values()) == names


def test_failed_build_is_one_line_and_leaves_no_image(rabbitmq_4_3: DockerBroker, tmp_path: Path) -> None:
    image = replace(broker_images.IMAGES[0], name="amqpspec/test-unbuildable:1")
    client = docker.from_env()
    try:
        with pytest.raises(broker_images.ImageBuildError) as caught:
            broker_images.build(client, image, f"file://{tmp_path}")
        text = str(caught.value)
        assert text.startswith(image.name) and "mmdebstrap" in text and "\n" not in text
        assert broker_images.missing_images(client, [image]) == [image]
    finally:
        client.close()


def test_archive_that_maven_does_not_get_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The stand-in for Maven fails as it does, without a look at any repository."""
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\necho '[INFO] looks'\necho '[ERROR] no such artifact'\nexit 1\n")
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    image = replace(broker_images.IMAGES[0], name="amqpspec/test-unbuildable:2", archive="no:such:1:tar.gz:bin")
    client = docker.from_env()
    try:
        with pytest.raises(broker_images.ImageBuildError, match=r"^amqpspec/test-unbuildable:2: .* no such artifact$"):
            broker_images.build(client, image, f"file://{tmp_path}")
    finally:
        client.close()


def test_unknown_image_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        broker_images.main(["no-such-image"])
    assert caught.value.code == 2
    assert "no-such-image" in capsys.readouterr().err


def test_engine_out_of_reach_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert broker_images.main([]) == 1
    assert capsys.readouterr().err.count("\n") == 1
