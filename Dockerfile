# The server: `docker build -t cranfield .`; docs/how-to/run-the-server.md says how to run it.
FROM python:3.13-slim-trixie AS build
# The C kernel is built here; the image itself has no compiler.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY requirements/image.txt /source/requirements/image.txt
RUN python -m venv /opt/cranfield \
    && /opt/cranfield/bin/pip install --no-cache-dir --require-hashes --requirement /source/requirements/image.txt
COPY pyproject.toml setup.py README.md LICENSE /source/
COPY src /source/src
RUN /opt/cranfield/bin/pip install --no-cache-dir --no-deps --no-build-isolation /source

FROM python:3.13-slim-trixie
RUN useradd --system --uid 10001 --home-dir /data --create-home --shell /usr/sbin/nologin cranfield
COPY --from=build /opt/cranfield /opt/cranfield
ENV PATH=/opt/cranfield/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_DATA_HOME=/data \
    CRANFIELD_DB=/data/cranfield.db \
    CRANFIELD_SERVE_HOST=0.0.0.0 \
    CRANFIELD_SERVE_ACCOUNTS=true \
    CRANFIELD_SERVE_LOG=json
WORKDIR /data
VOLUME /data
EXPOSE 8734
USER 10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import os; from urllib.request import urlopen; urlopen(f'http://127.0.0.1:{os.environ.get(\"CRANFIELD_SERVE_PORT\", 8734)}/healthz', timeout=4)"]
ENTRYPOINT ["cranfield"]
CMD ["serve"]
