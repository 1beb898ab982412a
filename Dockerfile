# docker build -t amqpspec . && docker run --rm --network host -v "$PWD/out:/out" amqpspec run amqp://localhost:5672/
# BASE: any image with Python 3.11 or later and pip. PIP: further options of pip, such as those of a registry of one's own.
ARG BASE=python:3.12-slim
FROM ${BASE}
ARG PIP=""
COPY . /src
RUN python3 -m venv /opt/amqpspec \
    && /opt/amqpspec/bin/pip install --no-cache-dir ${PIP} '/src[parquet]' \
    && ln -s /opt/amqpspec/bin/amqpspec /usr/local/bin/amqpspec \
    && rm -rf /src
WORKDIR /out
ENTRYPOINT ["amqpspec"]
