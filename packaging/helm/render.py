"""Renders the chart with its own values and with others, and holds each object against the schemas of Kubernetes. `render.py CHART`."""

import sys

import kubernetes_validate
import yaml
from helm_python.chart import Chart

OTHERS = {
    "envFromSecret": "tokens",
    "image": {"repository": "registry.example/banyan", "tag": "1"},
    "podAnnotations": {"prometheus.io/scrape": "true"},
    "state": {"size": "5Gi", "storageClassName": "fast"},
}
KINDS = ["Secret", "Service", "StatefulSet"]


def main():
    chart = Chart.load(sys.argv[1])
    for values in ({}, OTHERS):
        rendered = chart.render(values, name="gate", namespace="tools")
        objects = [one for text in rendered.values() for one in yaml.safe_load_all(text) if one]
        kinds = sorted(one["kind"] for one in objects)
        if kinds != KINDS:
            sys.exit(f"the chart makes {kinds} in place of {KINDS}")
        for one in objects:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        config = next(one for one in objects if one["kind"] == "Secret")["stringData"]["banyan.toml"]
        if 'listen = "0.0.0.0:7411"' not in config:
            sys.exit("banyan.toml is not what the values say")
    print(f"{len(KINDS)} objects, twice")


main()
