# syntax=docker/dockerfile:1
# Sluicegate in front of your own MongoDB: no embedded store, no demonstration.

FROM python:3.13-slim AS build
WORKDIR /build
RUN python -m venv /opt/sluicegate
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY config config
COPY examples examples
COPY proxy proxy
COPY registry registry
# Hashes are checked; secantusdb and what it needs stay out, since `up` is not for containers.
RUN /opt/sluicegate/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement requirements.lock \
    && /opt/sluicegate/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
    && /opt/sluicegate/bin/pip uninstall --yes secantusdb shapely s2sphere

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin sluicegate \
    && install --directory --owner=sluicegate --mode=0700 /var/lib/sluicegate
COPY --from=build /opt/sluicegate /opt/sluicegate
ENV PATH=/opt/sluicegate/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SLUICEGATE_LISTEN=0.0.0.0:8470 \
    SLUICEGATE_DATA_DIR=/var/lib/sluicegate
USER 10001
VOLUME /var/lib/sluicegate
EXPOSE 8470
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8470/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["sluicegate"]
CMD ["serve"]
