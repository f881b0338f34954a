# The image of a worker, and of every command: docker run --rm turngate --help
FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
# The engine as C: the same decisions in less time (docs/operations.md).
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && pip install --no-cache-dir "build>=1.2" && TURNGATE_COMPILE=1 python -m build --wheel --outdir /wheel

FROM python:3.12-slim
COPY requirements.worker.lock /tmp/
COPY --from=build /wheel /tmp/wheel
RUN pip install --no-cache-dir --require-hashes --requirement /tmp/requirements.worker.lock \
    && pip install --no-cache-dir --no-deps /tmp/wheel/*.whl \
    && rm -r /tmp/wheel /tmp/requirements.worker.lock \
    && useradd --system --no-create-home turngate
USER turngate
ENTRYPOINT ["turngate"]
CMD ["--help"]
