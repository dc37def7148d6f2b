"""The manifests for Kubernetes against what they describe: settings, the image, and
each other. What a cluster makes of them is not tried here.
"""

import re

import pytest
import yaml

from .installation import DEPLOY
from .test_files import NGINX, compose, names_of_settings

FOLDER = DEPLOY / "kubernetes"
IMAGE = (DEPLOY / "Dockerfile").read_text()
# kind: version of its API
VERSIONS = {
    "ConfigMap": "v1",
    "Service": "v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Ingress": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
}


def read(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


OBJECTS = [row for path in sorted(FOLDER.glob("*.yaml")) for row in read(path.name)]
BY_KIND = {row["kind"]: row for row in OBJECTS}
POD = BY_KIND["Deployment"]["spec"]["template"]["spec"]
(WEB,) = POD["containers"]
PODS = [
    POD,
    BY_KIND["Job"]["spec"]["template"]["spec"],
    BY_KIND["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"],
]
CONTAINERS = [
    each
    for pod in PODS
    for each in (*pod.get("initContainers", ()), *pod["containers"])
]


def test_each_object_is_of_a_version_that_clusters_have():
    assert {row["kind"]: row["apiVersion"] for row in OBJECTS} == VERSIONS
    assert len(OBJECTS) == len(VERSIONS)
    names = [row["metadata"]["name"] for row in OBJECTS]
    assert all(re.fullmatch(r"windowpane(-[a-z]+)?", name) for name in names)


def test_the_configuration_names_settings_as_texts():
    values = BY_KIND["ConfigMap"]["data"]
    assert set(values) <= names_of_settings()
    assert all(isinstance(value, str) for value in values.values())


def test_files_contain_no_secret():
    secret = {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "METRICS_TOKEN"}
    secret.add("OPENAI_API_KEY")
    assert not secret & set(BY_KIND["ConfigMap"]["data"])
    assert "Secret" not in BY_KIND
    guide = (FOLDER / "README.md").read_text()
    assert all(f"--from-literal={name}=" in guide for name in secret)
    assert not [each for each in CONTAINERS if "env" in each]


def test_processes_are_found_by_their_labels():
    labels = BY_KIND["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert BY_KIND["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert BY_KIND["Service"]["spec"]["selector"] == labels
    assert BY_KIND["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    (spread,) = POD["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == labels


def test_requests_come_to_the_port_of_the_image():
    (port,) = WEB["ports"]
    assert f"EXPOSE {port['containerPort']}\n" in IMAGE
    (served,) = BY_KIND["Service"]["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    [rule] = BY_KIND["Ingress"]["spec"]["rules"]
    *closed, all_else = rule["http"]["paths"]
    assert [each["path"] for each in closed] == ["/metrics", "/readyz"]
    services = {row["metadata"]["name"] for row in OBJECTS if row["kind"] == "Service"}
    assert {named(each) for each in closed} & services == set()
    assert (all_else["path"], named(all_else)) == ("/", "windowpane")
    values = BY_KIND["ConfigMap"]["data"]
    assert values["SITE_ORIGINS"] == f"https://{rule['host']}"
    assert rule["host"] in values["ALLOWED_HOSTS"].split(",")


def named(path):
    return path["backend"]["service"]["name"]


@pytest.mark.parametrize("name", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_probes_ask_what_answers_without_a_database(name):
    probe = WEB[name]
    asked = probe["httpGet"]
    assert (asked["path"], asked["port"]) == ("/healthz", "http")
    [header] = asked["httpHeaders"]
    allowed = BY_KIND["ConfigMap"]["data"]["ALLOWED_HOSTS"].split(",")
    assert header["name"] == "Host"
    assert header["value"] in allowed
    assert probe["timeoutSeconds"] <= 5


def test_a_process_leaves_the_service_and_hands_its_turns_back():
    pause = int(WEB["lifecycle"]["preStop"]["exec"]["command"][1])
    (grace,) = {
        int(compose()["services"][each]["stop_grace_period"].removesuffix("s"))
        for each in ("web-1", "web-2")
    }
    assert POD["terminationGracePeriodSeconds"] >= pause + grace
    rolling = BY_KIND["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxSurge": 1, "maxUnavailable": 0}
    replicas = BY_KIND["Deployment"]["spec"]["replicas"]
    assert BY_KIND["PodDisruptionBudget"]["spec"]["minAvailable"] < replicas


def test_migration_runs_in_one_job_and_processes_wait_for_it():
    job = BY_KIND["Job"]["spec"]
    assert (job["parallelism"], job["completions"]) == (1, 1)
    migrating = [each for each in CONTAINERS if "migrate --no-input" in said(each)]
    assert [each["name"] for each in migrating] == ["release"]
    waiting, static = POD["initContainers"]
    assert "until .venv/bin/python manage.py migrate --check" in said(waiting)
    assert "collectstatic --no-input" in said(static)
    root = BY_KIND["ConfigMap"]["data"]["STATIC_ROOT"]
    for each in (static, WEB):
        assert root in [mount["mountPath"] for mount in each["volumeMounts"]]


def said(container):
    return " ".join(container.get("command", ()))


@pytest.mark.parametrize("pod", PODS)
def test_pods_are_shut_in_as_the_image_allows(pod):
    assert pod["automountServiceAccountToken"] is False
    (user,) = re.findall(r"--uid (\d+)", IMAGE)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == int(user)
    volumes = {each["name"] for each in pod["volumes"]}
    for each in (*pod.get("initContainers", ()), *pod["containers"]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {mount["name"] for mount in each["volumeMounts"]} <= volumes
        assert "memory" in each["resources"]["limits"]
        assert each["image"] == WEB["image"]
        assert each["envFrom"] == WEB["envFrom"]


def test_the_ingress_lets_through_what_nginx_does():
    notes = BY_KIND["Ingress"]["metadata"]["annotations"]
    prefix = "nginx.ingress.kubernetes.io/proxy-"
    for name in ("read", "send"):
        seconds = re.findall(rf"proxy_{name}_timeout (\d+)s;", NGINX)
        assert int(notes[f"{prefix}{name}-timeout"]) >= min(map(int, seconds))
    sizes = map(int, re.findall(r"client_max_body_size (\d+)m;", NGINX))
    assert notes[f"{prefix}body-size"] == f"{max(sizes)}m"
