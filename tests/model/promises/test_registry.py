"""The requirement registry: its data, its guard over the code, and its errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqpspec.model.promises import dialects as dialect_module
from amqpspec.model.promises import registry
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.registry import (
    AS_STATED,
    IDENTIFIER,
    RegistryError,
    UnknownRequirement,
    applies,
    load,
    requirement,
    requirements,
    select,
)

ROOT = Path(registry.__file__).resolve().parents[2]
DATA = ROOT / "model" / "promises" / "requirements"
ORIGINAL_IDS = (Path(__file__).parent / "requirement_ids.txt").read_text().split()

ENTRY = """\
[[requirement]]
id = "ACK-001"
title = "A title"
statement = '''
  Wrapped
  text.
'''
level = "0-9-1"
source = "AMQP 0-9-1 basic.ack"
queue_types = ["classic", "quorum"]
observable = "no reply"
determinism = "exact"
verified = "no"
[requirement.dialects]
"rabbitmq-4.3" = "as stated"
"""
FILE = 'prefix = "ACK"\n' + ENTRY


def write(directory: Path, text: str, name: str = "ack.toml") -> Path:
    (directory / name).write_text(text, encoding="utf-8")
    return directory


# the data


def test_original_identifiers_are_kept() -> None:
    assert len(ORIGINAL_IDS) == len(set(ORIGINAL_IDS)) == 306
    assert set(ORIGINAL_IDS) <= set(requirements())


def test_one_file_per_area_and_the_order() -> None:
    files = sorted(path.stem for path in DATA.glob("*.toml"))
    assert 26 <= len(files) <= 60
    keys = [(each.area, each.id) for each in requirements().values()]
    assert keys == sorted(keys)
    assert sorted({area for area, _ in keys}) == files


def test_registry_is_read_once_and_cannot_be_changed() -> None:
    assert requirements() is requirements()
    with pytest.raises(TypeError):
        requirements()["X"] = requirement("ACK-001")  # type: ignore[index]
    with pytest.raises(TypeError):
        requirement("ACK-001").dialects["rabbitmq-3"] = "x"  # type: ignore[index]


def test_level_of_the_text_and_the_bare_dialect_agree() -> None:
    """Where a rule is RabbitMQ's own, the text may say something else of the same."""
    for each in requirements().values():
        of_the_text = each.dialects.get("amqp-0-9-1")
        assert of_the_text is not None if each.level == "0-9-1" else of_the_text != AS_STATED, each.id


@pytest.mark.parametrize(
    ("id", "level"),
    [
        *((id, "0-9-1") for id in ("ACK-001", "ACK-002", "ACK-003", "TX-002", "QUEUE-021")),
        *((id, "extension") for id in ("ACK-004", "ACK-017", "CONFIRM-002", "CANCEL-007", "TIMEOUT-008")),
        *((id, "de-facto") for id in ("ACK-016", "CHAN-008", "QUEUE-022")),
    ],
)
def test_levels(id: str, level: str) -> None:
    assert requirement(id).level == level


def test_texts_point_only_at_requirements_that_exist() -> None:
    for each in requirements().values():
        texts = (each.statement, each.observable, each.verified, *each.dialects.values())
        for named in IDENTIFIER.findall(" ".join(texts)):
            assert named in requirements(), f"{each.id} names {named}"


def test_dialect_names_are_those_of_the_dialects() -> None:
    defined = {
        value.name for value in vars(dialect_module).values() if isinstance(value, Dialect)
    } | set(getattr(dialect_module, "DIALECTS", ()))
    assert defined == set(registry.DIALECT_NAMES)


# the guard


def test_every_identifier_in_the_code_is_registered() -> None:
    prefixes = {id.rsplit("-", 1)[0] for id in requirements()}
    used: dict[str, Path] = {}
    for package in ("model", "conformance", "targets"):
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in {".py", ".amqp", ".toml"}:
                for id in IDENTIFIER.findall(path.read_text(encoding="utf-8")):
                    if id.rsplit("-", 1)[0] in prefixes:
                        used.setdefault(id, path.relative_to(ROOT))
    assert len(used) >= 306, "the guard no longer sees the data"
    unknown = {id: str(path) for id, path in used.items() if id not in requirements()}
    assert unknown == {}


def test_the_guard_pattern() -> None:
    found = IDENTIFIER.findall('ProtocolError("ACK-006", …)  # QOS-003, UTF-8, AMQP-0-9-1, ACK-0061')
    assert found == ["ACK-006", "QOS-003"]


# look-up


def test_requirement_by_identifier() -> None:
    found = requirement("QOS-008")
    assert (found.id, found.area, found.title) == ("QOS-008", "qos", "Global qos <=4.2")
    assert found.queue_types == ("classic",)


def test_unknown_identifier_names_near_ones() -> None:
    with pytest.raises(UnknownRequirement, match=r"^no requirement 'ACK-0O1'; did you mean ACK-0") as caught:
        requirement("ACK-0O1")
    assert "\n" not in str(caught.value)
    with pytest.raises(UnknownRequirement, match="amqpspec requirements"):
        requirement("zzzzz")


def test_select_by_prefix() -> None:
    ids = [each.id for each in select(["QOS", "ACK-00"])]
    assert ids == [*(f"ACK-00{n}" for n in range(1, 10)), *(f"QOS-{n:03d}" for n in range(1, 17))]
    assert [each.id for each in select(["qos-003"])] == ["QOS-003"]
    assert select([]) == list(requirements().values())


@pytest.mark.parametrize("prefix", ["QSO", "", "ACK-9"])
def test_select_unknown_prefix(prefix: str) -> None:
    with pytest.raises(UnknownRequirement, match=rf"^no requirement prefix '{re.escape(prefix)}'"):
        select(["ACK", prefix])


def test_select_unknown_prefix_suggests() -> None:
    with pytest.raises(UnknownRequirement, match="did you mean TIMEOUT"):
        select(["TIMOUT"])


@pytest.mark.parametrize(
    ("id", "dialect", "queue_type", "expected"),
    [
        ("ACK-001", "amqp-0-9-1", None, True),
        ("CONFIRM-002", "amqp-0-9-1", None, False),
        ("CONFIRM-002", "rabbitmq-3", "stream", True),
        ("TIMEOUT-008", "rabbitmq-4.0", "quorum", False),
        ("TIMEOUT-008", "rabbitmq-4.3", "quorum", True),
        ("TIMEOUT-008", "rabbitmq-4.3", "classic", False),
        ("CANCEL-018", "rabbitmq-3", "quorum", False),
        ("QOS-008", "rabbitmq-4.3", None, False),
    ],
)
def test_applies(id: str, dialect: str, queue_type: str | None, expected: bool) -> None:
    assert applies(requirement(id), dialect, queue_type) is expected


def test_applies_refuses_misspelt_names() -> None:
    with pytest.raises(ValueError, match="no dialect 'rabbitmq-4'"):
        applies(requirement("ACK-001"), "rabbitmq-4")
    with pytest.raises(ValueError, match="no queue type 'quorun'"):
        applies(requirement("ACK-001"), "rabbitmq-4.3", "quorun")


# loading


def test_load_well_formed(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, FILE))["ACK-001"]
    assert (loaded.area, loaded.statement) == ("ack", "Wrapped text.")
    assert loaded.queue_types == ("classic", "quorum")
    assert dict(loaded.dialects) == {"rabbitmq-4.3": "as stated"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('prefix = "ACK\n', r"^ack\.toml: not valid TOML: "),
        (ENTRY, r"^ack\.toml: prefix must be capital letters"),
        (FILE.replace('prefix = "ACK"', 'prefix = "QOS"'), r"^ack\.toml: ACK-001: .* must be QOS- and"),
        (FILE.replace('id = "ACK-001"', 'id = "ACK-01"'), r"^ack\.toml: ACK-01: .* must be ACK- and"),
        (FILE.replace('id = "ACK-001"\n', ""), r"^ack\.toml: requirement number 1: id is missing"),
        (FILE.replace('title = "A title"\n', ""), r"^ack\.toml: ACK-001: title is missing"),
        (FILE.replace('title = "A title"', "title = 7"), r"^ack\.toml: ACK-001: title must be a text"),
        (FILE.replace('"A title"', '""'), r"^ack\.toml: ACK-001: title must be a text that is not empty"),
        (FILE.replace('title = "A', 'tilte = "B"\ntitle = "A'), r"^ack\.toml: ACK-001: unknown field tilte"),
        (FILE.replace('"0-9-1"', '"0-10"'), r"^ack\.toml: ACK-001: level must be one of .*, not '0-10'"),
        (FILE.replace('"exact"', '"maybe"'), r"^ack\.toml: ACK-001: determinism must be one of"),
        (FILE.replace('["classic", "quorum"]', '["any", "quorum"]'), r"^ack\.toml: ACK-001: queue_types "),
        (FILE.replace('["classic", "quorum"]', '"classic"'), r"^ack\.toml: ACK-001: queue_types "),
        (FILE.replace('"rabbitmq-4.3" =', '"rabbitmq-5" ='), r"^ack\.toml: ACK-001: no dialect 'rabbitmq-5'"),
        (FILE.replace('"rabbitmq-4.3" = "as stated"\n', ""), r"^ack\.toml: ACK-001: dialects must be"),
        (FILE + ENTRY, r"^ack\.toml: ACK-001: the identifier is used twice"),
        ('prefix = "ACK"\n', r"^ack\.toml: there must be \[\[requirement\]\] tables"),
        ("colour = 1\n" + FILE, r"^ack\.toml: unknown key colour"),
    ],
)
def test_load_errors_are_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RegistryError, match=message) as caught:
        load(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_load_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "ack.toml").write_bytes(b'prefix = "\xff"')
    with pytest.raises(RegistryError, match=r"^ack\.toml: not valid TOML: "):
        load(tmp_path)


def test_load_no_files(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="no requirement files"):
        load(tmp_path)


def test_load_two_files_with_one_prefix(tmp_path: Path) -> None:
    write(tmp_path, FILE)
    write(tmp_path, FILE.replace("ACK-001", "ACK-002"), "other.toml")
    with pytest.raises(RegistryError, match=r"^other\.toml: prefix ACK is already that of ack\.toml"):
        load(tmp_path)
