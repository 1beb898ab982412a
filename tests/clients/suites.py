"""Which test suites of client libraries are run on the embedded broker (`python -m tests --clients`), and what is known
of each.

Each is taken as its authors publish it, at the version that the table names, and run as it is, with the library's own
code beside it. Whatever fails and is not in the table, and whatever is in it and passes, is told. The embedded broker
and RabbitMQ 4.3.6 passed the same ones, and failed the same: `python -m tests --clients docker:amqpspec/rabbitmq:4.3`
runs them there.

PyPI has the tests of py-amqp and kombu. Its archives of pika (0.13.1, 1.1.0, 1.2.0, 1.2.1, 1.3.2, 1.4.4), aiormq
(6.8.1) and aio-pika (1.0.0, 6.8.2, 8.3.0, 9.5.6) hold none. Debian's source packages, which are made of the
repositories, have them. npm has those of amqplib up to 2.2.0 (2.2.1, 2.3.0 and 2.3.1 hold none).

Of pika the acceptance tests are run, but for those with Twisted, which need nose, and those that only try sockets; of
aiormq all that need no TLS; of aio-pika those of channels, queues, messages, pools and its patterns; of amqplib those
that connect to a broker. Versions that want an older pamqp or plugin have an environment of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ClientSuite:
    """`known`: by a pattern of the names of tests that fail, why. `debian`: the file of Debian's pool with the tests;
    `is_of_node`: they are in npm's package, and Node runs them; else they are in PyPI's. `requires`: what they need
    besides the package, in an environment of its own; none: this one is used. `places`: by file, the text that says
    where the broker is, and what is put in its place.
    """

    package: str
    version: str
    tests: tuple[str, ...]
    known: Mapping[str, str] = field(default_factory=dict)
    debian: str = ""
    requires: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    is_of_node: bool = False


#: What the tests of aiormq and aio-pika need. Their plugin uses pkg_resources, which later versions of setuptools lack.
_AIOMISC = (
    "pytest<9", "pytest-timeout", "aiomisc>=17.5,<18", "aiomisc-pytest>=1.1.1,<2", "shortuuid", "timeout-decorator",
    "setuptools<81",
)  # fmt: skip
_NO_CERTIFICATES = "needs a broker with the certificates of t/certs, which the package does not hold"
_NO_CERTIFICATES_THERE = "needs a broker with the certificates of tests/certs"
_TOO_BIG = "publishes more than max_message_size allows, which is 16 MiB since RabbitMQ 4.0: refused by 4.3.6 as well"
#: Begins the reason of tests that may pass as well.
BY_CHANCE = "by chance: "
_TOO_BIG_UNSEEN = f"{BY_CHANCE}{_TOO_BIG}, and without confirms the test need not see it"
_NO_SUCH_TYPE = (
    "expects connection.close 503 for an exchange of a type that there is not: 4.3.6 answers channel.close 406"
)
_NO_INTERNET = "connects to a host of the internet"

SUITES = (
    ClientSuite(
        "pika", "1.3.2",
        tuple(f"tests/acceptance/{name}.py" for name in
              ("blocking_adapter_test", "async_adapter_tests", "enforce_one_basicget_test")),
        {"*.TestInvalidExchangeTypeRaisesConnectionClosed.test": _NO_SUCH_TYPE},
        "p/python-pika/python-pika_1.3.2.orig.tar.gz", ("pytest<9", "pytest-timeout", "gevent", "tornado"),
        places={
            "tests/acceptance/blocking_adapter_test.py": (
                "PARAMS_URL_TEMPLATE % {'port': 5672}", "'amqp://guest:guest@{host}:{port}/%2f?socket_timeout=1'",
            ),
            "tests/base/async_test_base.py": ("host='localhost', port=5672", "host='{host}', port={port}"),
        },
    ),
    ClientSuite(
        "amqp", "5.4.2", ("t/integration",),
        {
            "test_rmq.*tls-*]": _NO_CERTIFICATES,
            "test_rmq.*[[]tls]": _NO_CERTIFICATES,
            "test_rmq.test_tls_connect_fails": _NO_CERTIFICATES,
            "test_rmq.test_tls_default_certs": _NO_INTERNET,
            "test_rmq.test_tls_no_default_certs_fails": _NO_INTERNET,
        },
    ),
    ClientSuite("kombu", "5.7.0", ("t/integration/test_py_amqp.py",)),
    ClientSuite(
        "aiormq", "6.8.1", ("tests",),
        {
            "*.test_big_message[[]amqp_channel[01]-*": _TOO_BIG,
            "*.test_big_message[[]amqp_channel[23]-*": _TOO_BIG_UNSEEN,
            "*.test_ssl_verification_fails_without_trusted_ca": _NO_CERTIFICATES_THERE,
            "*.test_ssl_context": _NO_CERTIFICATES_THERE,
        },
        "p/python-aiormq/python-aiormq_6.8.1.orig.tar.gz", _AIOMISC, ("-k", "not amqps"),
    ),
    ClientSuite(
        "aio-pika", "9.5.6", tuple(f"tests/test_{name}.py" for name in ("amqp", "rpc", "master", "pool")),
        {"*.test_big_message*": _TOO_BIG}, "p/python-aio-pika/python-aio-pika_9.5.6.orig.tar.gz", _AIOMISC,
    ),
    ClientSuite(
        "amqplib", "2.2.0", tuple(f"test/{name}.test.js" for name in ("connect", "channel_api", "callback_api")),
        is_of_node=True,
    ),
)  # fmt: skip
