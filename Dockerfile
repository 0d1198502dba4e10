# The image of the service: no torch, no onnx. ORT_EXTRA=gpu takes onnxruntime for CUDA instead.
# With a digest, which registries tell: --build-arg BASE=python:3.11.16-slim-bookworm@sha256:...
ARG BASE=python:3.11.16-slim-bookworm
FROM $BASE AS dependencies
ARG ORT_EXTRA=cpu
WORKDIR /build
COPY requirements requirements
RUN python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes \
        -r "requirements/$ORT_EXTRA.lock"
# What is in it, in CycloneDX; the tool that writes this stays behind.
RUN pip install --no-cache-dir --require-hashes -r requirements/sbom.lock \
    && cyclonedx-py environment --output-reproducible -o /opt/venv/sbom.cdx.json /opt/venv/bin/python

# The load profile of docker-compose.yml: Locust and one file, neither of which the service has.
FROM $BASE AS load
WORKDIR /build
COPY requirements requirements
RUN python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv/bin/python install --no-cache-dir --require-hashes \
        -r requirements/load.lock
WORKDIR /app
COPY --chmod=755 bench/locustfile.py ./
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
ENTRYPOINT ["locust", "--locustfile", "locustfile.py", "--headless"]

FROM $BASE
COPY --from=dependencies /opt/venv /opt/venv
WORKDIR /app
# Readable by the service whatever the umask of the checkout, and owned by root.
COPY --chmod=755 LICENSE docs/model-card-*.md ./
COPY --chmod=755 artifacts artifacts
COPY --chmod=755 contract contract
COPY --chmod=755 service service
# The wheels of onnxruntime report to their maker unless told not to.
ENV ORT_DISABLE_TELEMETRY=1 \
    PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    EVENKEEL_HOST=0.0.0.0 \
    EVENKEEL_PORT=8000
USER 10001:10001
EXPOSE 8000
# By the address it listens on: `::` is of IPv6 alone. The proxies of the container's environment are
# none of this request's business.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s CMD ["python", "-c", \
    "import os, urllib.request as r; \
    own = '[::1]' if ':' in os.environ['EVENKEEL_HOST'] else '127.0.0.1'; \
    r.build_opener(r.ProxyHandler({})).open(f'http://{own}:{os.environ[\"EVENKEEL_PORT\"]}/readyz', timeout=4)"]
CMD ["python", "-m", "service"]
