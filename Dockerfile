# docker build -t amqpspec . && docker run --rm --network host -v "$PWD/out:/out" amqpspec run amqp://localhost:5672/
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir '/src[parquet]' && rm -rf /src
WORKDIR /out
ENTRYPOINT ["amqpspec"]
