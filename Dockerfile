# LiteLLM's image with the plugin in it.
#
#   docker build --tag litellm-messplus .
#   docker build --tag litellm-messplus --build-arg LITELLM=ghcr.io/berriai/litellm:TAG .
#   docker build --tag litellm-messplus --build-arg EXTRAS=postgres,parquet .
#
# Start it as you start LiteLLM's image. What it keeps must outlive the container: set
# `messplus.database` to Postgres, or mount a volume on /var/lib/messplus and set it to
# sqlite+aiosqlite:////var/lib/messplus/messplus.db (for one container alone).
#
# EXTRAS are those of the package: `parquet`, of 180 MB, for an archive of old requests
# (`retention.archive`), and an encoder's.
# LITELLM must be of version 1.108.4 or newer, with its environment in /app/.venv. For LiteLLM's Helm
# chart, take the image that the chart names, ghcr.io/berriai/litellm-database:TAG. Name a release or a
# digest, never a tag that moves (`main-stable`, `lts`, `latest`): `main-stable` led to 1.107.0, an attacker's.
ARG LITELLM=ghcr.io/berriai/litellm:v1.108.17
ARG UV=ghcr.io/astral-sh/uv:0.8-python3.13-bookworm-slim

FROM ${UV} AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY migrations migrations
COPY litellm_messplus litellm_messplus
RUN uv build --wheel --out-dir /wheel

FROM ${LITELLM}
ARG EXTRAS=postgres
USER root
# What the image has stays at its version: it is the constraint of what is added.
RUN --mount=type=bind,from=wheel,source=/usr/local/bin/uv,target=/bin/uv \
    --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    uv pip freeze --python /app/.venv/bin/python | grep == > /tmp/constraints.txt \
    && uv pip install --no-cache --python /app/.venv/bin/python --constraint /tmp/constraints.txt \
       "litellm-messplus[${EXTRAS}] @ file://$(ls /wheel/*.whl)" \
    && rm /tmp/constraints.txt \
    && mkdir -p /var/lib/messplus && chown 65532:65532 /var/lib/messplus
# LiteLLM's own unprivileged user, as in its image.
USER 65532
RUN /app/.venv/bin/messplus --help
