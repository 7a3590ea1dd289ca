# syntax=docker/dockerfile:1
# The explorer and its JSON API on port 8000; to run another command, put it after the image's name:
#   docker run --rm cod3s generate effect "the power went out"
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
COPY bundle ./bundle
RUN python -m venv /opt/cod3s && /opt/cod3s/bin/pip install --no-cache-dir ./bundle '.[serve,write]'

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 cod3s
COPY --from=build /opt/cod3s /opt/cod3s
ENV PATH=/opt/cod3s/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /home/cod3s
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["cod3s"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
