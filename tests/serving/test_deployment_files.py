"""The same launch for other machinery: it can be read, it is watched, and no secret's value is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from alphaloom.serving import (
    DEVICES,
    FILE_WRITERS,
    Request,
    ServingPlan,
    find_device,
    find_model,
    make_plan,
    render_file,
)


@pytest.fixture
def plan() -> ServingPlan:
    return make_plan(Request(find_model("Qwen2.5-32B"), gpus=8, speculate="ngram"), DEVICES["l40s"])


@pytest.fixture
def own(tmp_path: Path) -> ServingPlan:
    """Return a plan whose weights lie in a folder."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "vocab_size": 258,
        "max_position_embeddings": 2048,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return make_plan(Request(find_model(str(folder))), find_device("cpu", 8))


def test_compose_gives_the_gpus_and_asks_health(plan: ServingPlan) -> None:
    service = yaml.safe_load(render_file(plan, "compose"))["services"]["vllm"]
    assert service["entrypoint"] == ["vllm", "serve"]
    assert service["command"][0] == "Qwen/Qwen2.5-32B-Instruct"
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["count"] == 2
    assert "/health" in service["healthcheck"]["test"][-1]
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert service["environment"]["VLLM_API_KEY"].startswith("${VLLM_API_KEY:?")
    assert service["volumes"] == [f"weights:{service['environment']['HF_HOME']}"], "weights lie where vLLM looks"


def test_ray_gets_the_engine_s_own_names(plan: ServingPlan) -> None:
    assert "It asks for no key" in render_file(plan, "ray")
    (app,) = yaml.safe_load(render_file(plan, "ray"))["applications"]
    (model,) = app["args"]["llm_configs"]
    assert app["import_path"] == "ray.serve.llm:build_openai_app"
    assert model["model_loading_config"] == {"model_id": "Qwen2.5-32B", "model_source": "Qwen/Qwen2.5-32B-Instruct"}
    assert model["accelerator_type"] == "L40S"
    assert model["engine_kwargs"]["tensor_parallel_size"] == 2
    assert model["engine_kwargs"]["max_model_len"] == plan.flags["max-model-len"]
    assert model["deployment_config"]["autoscaling_config"] == {"min_replicas": 4, "max_replicas": 4}
    assert not [name for name in model["engine_kwargs"] if "-" in name]


def test_ray_gets_no_accelerator_that_it_has_no_name_for() -> None:
    plan = make_plan(Request(find_model("Llama-3.1-8B")), DEVICES["l40"])
    (application,) = yaml.safe_load(render_file(plan, "ray"))["applications"]
    (model,) = application["args"]["llm_configs"]
    assert not {"accelerator_type", "placement_group_config"} & model.keys()


def test_kubernetes_probes_health_and_takes_secrets_by_reference(plan: ServingPlan) -> None:
    deployment, service = yaml.safe_load_all(render_file(plan, "kubernetes"))
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "http"}
    secrets = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one}
    assert secrets == {
        "VLLM_API_KEY": {"name": "qwen2-5-32b", "key": "api-key"},
        "HF_TOKEN": {"name": "qwen2-5-32b", "key": "hf-token", "optional": True},
    }
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 2}
    assert deployment["spec"]["replicas"] == 4
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]


@pytest.mark.parametrize("kind", FILE_WRITERS)
def test_no_environment_leaks_into_a_file(plan: ServingPlan, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "VLLM_API_KEY"):
        monkeypatch.setenv(name, "hf_never_to_be_seen")
    text = render_file(plan, kind)
    assert "never_to_be_seen" not in text
    assert "&id" not in text  # no anchors: what is said twice stands there twice
    assert "HF_HUB_OFFLINE" in text


def test_weights_of_a_folder_are_mounted_to_be_read_only(own: ServingPlan) -> None:
    compose = yaml.safe_load(render_file(own, "compose"))
    service = compose["services"]["vllm"]
    assert service["volumes"] == [f"{own.flags['model']}:/models/tiny:ro"]
    assert service["command"][0] == "/models/tiny"
    assert "volumes" not in compose
    assert "deploy" not in service
    assert service["environment"]["VLLM_CPU_KVCACHE_SPACE"] == own.environment["VLLM_CPU_KVCACHE_SPACE"]
    pod: dict[str, Any] = next(yaml.safe_load_all(render_file(own, "kubernetes")))["spec"]["template"]["spec"]
    assert pod["containers"][0]["volumeMounts"][0] == {"name": "weights", "mountPath": "/models", "readOnly": True}
    assert list(pod["containers"][0]["resources"]["limits"]) == ["memory"]


def test_an_image_of_one_s_own_is_taken(plan: ServingPlan) -> None:
    assert "image: example.org/vllm:7" in render_file(plan, "compose", "example.org/vllm:7")


@pytest.mark.parametrize(("name", "label"), [("Qwen2.5_7B", "qwen2-5-7b"), ("7b", "model-7b"), ("x" * 80, "x" * 50)])
def test_kubernetes_gets_a_name_that_it_takes(plan: ServingPlan, name: str, label: str) -> None:
    named = plan.model_copy(update={"model": plan.model.model_copy(update={"name": name})})
    assert next(yaml.safe_load_all(render_file(named, "kubernetes")))["metadata"]["name"] == label
