"""Write a plan as a file for docker compose, Ray Serve or Kubernetes. The files name secrets and hold none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from .plan import ServingPlan, build_arguments

IMAGE, CPU_IMAGE = "vllm/vllm-openai:v0.33.0", "vllm/vllm-openai-cpu:v0.33.0"
PORT, CACHE_FOLDER, MODELS_FOLDER = 8000, "/weights", "/models"  # inside the container
STARTING_S, PROBE_S = 900, 10
SHARED_GIB = 8  # tensor parallelism passes tensors between processes through shared memory
START_COMMAND = ["vllm", "serve"]
KUBERNETES_SECRET = {"VLLM_API_KEY": "api-key", "HF_TOKEN": "hf-token"}
RAY_OWN_FLAGS = {"served-model-name", "model", "tensor-parallel-size"}


class _Plain(yaml.SafeDumper):
    """A YAML dumper without anchors: repeated values are written out."""

    def ignore_aliases(self, _: object) -> bool:
        """Return True for every value."""
        return True


def render_file(plan: ServingPlan, kind: str, image: str | None = None) -> str:
    """Return the file of a kind: compose, ray or kubernetes."""
    chosen_image = image or (IMAGE if plan.device.name != "cpu" else CPU_IMAGE)
    return FILE_WRITERS[kind](plan, chosen_image)


def _write_compose(plan: ServingPlan, image: str) -> str:
    secrets = {"VLLM_API_KEY": "${VLLM_API_KEY:?set it to what clients must send}", "HF_TOKEN": "${HF_TOKEN:-}"}
    service: dict[str, Any] = {
        "image": image, "entrypoint": START_COMMAND, "command": _build_arguments_in_container(plan),
        "environment": _build_variables(plan) | secrets,
        "ports": [f"127.0.0.1:{PORT}:{PORT}"], "volumes": _list_mounts(plan), "shm_size": f"{SHARED_GIB}gb",
        "restart": "unless-stopped", "stop_signal": "SIGINT", "stop_grace_period": "60s",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", f"import urllib.request as r; r.urlopen('http://127.0.0.1:{PORT}/health')"],
            "interval": f"{PROBE_S}s", "timeout": "5s", "retries": 3, "start_period": f"{STARTING_S}s",
        },
    }  # fmt: skip  # a table
    if plan.device.name != "cpu":
        card = {"driver": "nvidia", "count": plan.device.count, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [card]}}}
    head = (
        "# docker compose up, with VLLM_API_KEY (and HF_TOKEN, if weights are fetched) in the environment.\n"
        + _make_offline_note(plan)
    )
    return head + _dump_yaml(
        {"services": {"vllm": service}, **({} if _is_local(plan) else {"volumes": {"weights": {}}})}
    )


def _write_ray(plan: ServingPlan, _: str) -> str:
    engine = {name.replace("-", "_"): value for name, value in plan.flags.items() if name not in RAY_OWN_FLAGS}
    engine |= {"tensor_parallel_size": plan.device.count}
    model: dict[str, Any] = {
        "model_loading_config": {
            "model_id": plan.flags.get("served-model-name", plan.model.name),
            "model_source": plan.flags["model"],
        },
        "engine_kwargs": engine,
        "runtime_env": {"env_vars": plan.environment},
        "deployment_config": {
            "autoscaling_config": {"min_replicas": plan.device.copies, "max_replicas": plan.device.copies},
            "max_ongoing_requests": plan.flags["max-num-seqs"],
            "health_check_period_s": PROBE_S,
        },
    }
    if plan.device.accelerator:
        model["accelerator_type"] = plan.device.accelerator
    elif plan.device.name == "cpu":
        model["placement_group_config"] = {"bundles": [{"CPU": 1}]}
    app = {
        "name": plan.model.name,
        "route_prefix": "/",
        "import_path": "ray.serve.llm:build_openai_app",
        "args": {"llm_configs": [model]},
    }
    return (
        "# serve deploy THIS_FILE, on a cluster with ray[serve,llm].\n"
        "# It asks for no key: whoever reaches its port is served. Let only the cluster reach it, and people through\n"
        "# `alphaloom models gate`.\n" + _make_offline_note(plan) + _dump_yaml({"applications": [app]})
    )


def _write_kubernetes(plan: ServingPlan, image: str) -> str:
    name = _make_service_name(plan.model.name)
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "model-server"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": plan.device.copies,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": labels}, "spec": _build_pod(plan, image, name)},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "type": "ClusterIP",
            "selector": labels,
            "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
        },
    }
    head = (
        f"# Before: a Secret {name} with the keys api-key and (if weights are fetched) hf-token, and a\n"
        f"# PersistentVolumeClaim {name}-weights that holds the weights.\n"
    )
    return head + _make_offline_note(plan) + _dump_yaml(deployment) + "---\n" + _dump_yaml(service)


def _make_service_name(name: str) -> str:
    """Return a valid Kubernetes service name: lower-case letters, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-")
    return plain if plain[:1].isalpha() else f"model-{plain}"


def _build_pod(plan: ServingPlan, image: str, name: str) -> dict[str, Any]:
    variables: list[dict[str, Any]] = [{"name": key, "value": value} for key, value in _build_variables(plan).items()]
    for variable, key in KUBERNETES_SECRET.items():
        reference = {"name": name, "key": key} | ({"optional": True} if variable == "HF_TOKEN" else {})
        variables.append({"name": variable, "valueFrom": {"secretKeyRef": reference}})
    memory = f"{max(4, round(plan.device.memory_gib * 0.95))}Gi"
    limits = {"nvidia.com/gpu": plan.device.count} if plan.device.name != "cpu" else {"memory": memory}
    container = {
        "name": "vllm",
        "image": image,
        "command": START_COMMAND,
        "args": _build_arguments_in_container(plan),
        "env": variables,
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {"limits": limits, "requests": limits},
        "startupProbe": _build_probe(STARTING_S // PROBE_S),
        "readinessProbe": _build_probe(1),
        "livenessProbe": _build_probe(3),
        "volumeMounts": [
            {
                "name": "weights",
                "mountPath": MODELS_FOLDER if _is_local(plan) else CACHE_FOLDER,
                **({"readOnly": True} if _is_local(plan) else {}),
            },
            {"name": "shared-memory", "mountPath": "/dev/shm"},
        ],
    }
    return {
        "terminationGracePeriodSeconds": 60,
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": [
            {"name": "weights", "persistentVolumeClaim": {"claimName": f"{name}-weights"}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": f"{SHARED_GIB}Gi"}},
        ],
    }


def _build_probe(failures: int) -> dict[str, Any]:
    get = {"path": "/health", "port": "http"}
    return {"httpGet": get, "periodSeconds": PROBE_S, "timeoutSeconds": 5, "failureThreshold": failures}


def _build_arguments_in_container(plan: ServingPlan) -> list[str]:
    """Return the arguments in a container, where weights of a local folder are mounted at another path."""
    changes: dict[str, Any] = {"host": "0.0.0.0", "port": PORT, "model": False}
    speculative = plan.flags.get("speculative-config")
    if isinstance(speculative, Mapping) and "model" in speculative:
        changes["speculative-config"] = {**speculative, "model": _make_mount_path(str(speculative["model"]))}
    return [_make_mount_path(str(plan.flags["model"])), *build_arguments(plan, **changes)]


def _list_folders(plan: ServingPlan) -> list[str]:
    return [source for source in (str(plan.flags["model"]), plan.model.draft or "") if source.startswith("/")]


def _is_local(plan: ServingPlan) -> bool:
    return str(plan.flags["model"]).startswith("/")


def _make_mount_path(source: str) -> str:
    return f"{MODELS_FOLDER}/{PurePosixPath(source).name}" if source.startswith("/") else source


def _list_mounts(plan: ServingPlan) -> list[str]:
    mounted = [f"{folder}:{_make_mount_path(folder)}:ro" for folder in dict.fromkeys(_list_folders(plan))]
    return mounted if _is_local(plan) else [*mounted, f"weights:{CACHE_FOLDER}"]


def _build_variables(plan: ServingPlan) -> dict[str, str]:
    """Return a container's environment; weights that are no local folder are on the volume at `CACHE_FOLDER`."""
    return dict(plan.environment) | ({} if _is_local(plan) else {"HF_HOME": CACHE_FOLDER})


def _make_offline_note(plan: ServingPlan) -> str:
    if plan.environment.get("HF_HUB_OFFLINE") != "1":
        return ""
    return (
        "# Nothing is fetched: the weights must lie there already. To let vLLM fetch them, set HF_HUB_OFFLINE to '0'.\n"
    )


def _dump_yaml(value: Mapping[str, Any]) -> str:
    return yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=118)


FILE_WRITERS: dict[str, Callable[[ServingPlan, str], str]] = {
    "compose": _write_compose,
    "ray": _write_ray,
    "kubernetes": _write_kubernetes,
}
