"""Apache Qpid Broker-J: what its image is made of, and how it is started.

Its virtual host is kept on disk, so that a restart shows what is durable. The form of the configuration is that of
`initial-config.json` in the archive of its core.
"""

from __future__ import annotations

import json

#: Maven coordinates.
ARCHIVE = "org.apache.qpid:apache-qpid-broker-j:9.2.1:tar.gz:bin"
#: Debian's package of what runs it.
JAVA = "openjdk-17-jre-headless"
CONFIGURATION_FILE = "broker-j.json"
#: Where the libraries are below the place that the archive was unpacked in.
_LIBRARIES = "qpid-broker/9.2.1/lib"
#: Of the two stores that come with it, the one that starts sooner.
STORE = "DERBY"
WORK = "/tmp/broker-j"

CONFIGURATION = json.dumps(
    {
        "name": "amqpspec",
        "modelVersion": "8.0",
        "authenticationproviders": [
            {
                "name": "plain",
                "type": "Plain",
                # else it takes PLAIN on encrypted ports only
                "secureOnlyMechanisms": [],
                "users": [{"name": "guest", "type": "managed", "password": "guest"}],
            }
        ],
        "brokerloggers": [
            {
                "name": "console",
                "type": "Console",
                "brokerloginclusionrules": [
                    {"name": "warnings", "type": "NameAndLevel", "level": "WARN", "loggerName": "ROOT"},
                ],
            }
        ],
        "ports": [
            {
                "name": "AMQP",
                "port": "5672",
                "authenticationProvider": "plain",
                "virtualhostaliases": [{"name": "default", "type": "defaultAlias"}],
            }
        ],
        "virtualhostnodes": [
            {
                "name": "default",
                "type": STORE,
                "storePath": f"{WORK}/default/config",
                "defaultVirtualHostNode": "true",
                "virtualHostInitialConfiguration": json.dumps(
                    {"type": STORE, "storePath": f"{WORK}/default/messages"}
                ),
            }
        ],
    },
    indent=2,
)


def command(directory: str) -> list[str]:
    """What starts the broker, whose archive and configuration are in that directory."""
    return [
        "java",
        "-Xmx512m",
        # it lives for minutes, often on the processors that the suite needs
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        # where it keeps what it keeps
        f"-DQPID_WORK={WORK}",
        "-cp",
        f"{directory}/{_LIBRARIES}/*",
        "org.apache.qpid.server.Main",
        "--store-type",
        "Memory",
        "--initial-config-path",
        f"{directory}/{CONFIGURATION_FILE}",
    ]
