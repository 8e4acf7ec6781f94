# Strata in one image: coordinator, dashboard and agent. `compose.yaml` runs it; docs/deploying.md says how.
# `make test-image` rehearses every RUN below in a clean Debian, without Docker.

# --- the dashboard: the only stage that needs Node
FROM node:20.19.5-bookworm-slim AS dashboard
WORKDIR /src/dashboard
COPY dashboard/package.json dashboard/package-lock.json ./
RUN npm install --no-audit --no-fund
COPY dashboard ./
ARG VITE_API_URL=/api
RUN VITE_API_URL="$VITE_API_URL" npm run build -- --outDir /web --emptyOutDir

# --- the wheel, with the dashboard inside
FROM python:3.11.14-slim-bookworm AS wheel
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE CHANGELOG.md ./
COPY proto ./proto
COPY strata ./strata
COPY dtruntime ./dtruntime
COPY --from=dashboard /web ./strata/observatory/web
RUN STRATA_REQUIRE_WEB=1 pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

# --- what runs: no compiler, no Node, no root
FROM python:3.11.14-slim-bookworm
COPY constraints.txt /tmp/constraints.txt
COPY engine /tmp/engine
COPY --from=wheel /wheels /tmp/wheels
# The engine is built here: as a wheel of another stage it would stay in a layer. Its build asks pip, too, so no cache is said
# in the environment.
RUN PIP_NO_CACHE_DIR=1 pip install -c /tmp/constraints.txt /tmp/engine "$(ls /tmp/wheels/*.whl)[server,s3,data]" && rm -r /tmp/wheels
RUN useradd --create-home --uid 10001 strata && mkdir /data /workspace && chown strata:strata /data /workspace
USER strata
WORKDIR /workspace
ENV STRATA_DATA_DIR=/data PYTHONUNBUFFERED=1
EXPOSE 3000 50051 50052
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:3000/health', timeout=4)"]
ENTRYPOINT ["strata"]
CMD ["up", "--no-agent"]
