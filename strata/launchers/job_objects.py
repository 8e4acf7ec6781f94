"""The objects that Kubernetes gets for a fleet of agents: an Indexed Job, a headless Service that gives its pods names,
and a Secret with their environment. Pure: what is in them is decided here, sending them is the launcher's part.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Any, Self

from strata.errors import InvalidArgument
from strata.launchers.base import SENT_AWAY, LaunchSpec

__all__ = ["PodOptions", "job_name", "job_objects", "owned_objects"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")
_GRACE_S = 75  # agents give their workers up to a minute
_KEPT_S = 600  # for which a job that is over can be looked at
_GROUP = 10_001  # of the image's user: whoever the pod runs as, it may write the claim
_RETRIES = 3  # per agent, for a container that was killed
_CONFIG_CODES = (1, 2, 126, 127)  # an agent that says no, or no program: starting it again changes nothing
# The kubelet sends SIGTERM to the first process alone. That one passes it to its group, as other launchers do, and ends
# as one that was sent away: the index is not done, and Kubernetes finds another place for it while the job is there.
_FIRST = (
    """trap 'trap "" TERM; gone=75; kill -TERM 0' TERM; "$@" & """
    "while wait $!; code=$?; kill -0 $! 2>/dev/null; do :; done; exit ${gone:-$code}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOptions:
    """What a user may say about the pods. `queue` and `priority` are Kueue's; `claim` is a volume that all pods share,
    for checkpoints; `gpus` and `memory` are per agent."""

    image: str
    namespace: str = ""
    queue: str = ""
    priority: str = ""
    gpus: str = ""
    memory: str = ""
    claim: str = ""
    service_account: str = ""
    pull_secret: str = ""

    def __post_init__(self) -> None:
        for name in ("namespace", "queue", "priority", "claim", "service_account", "pull_secret"):
            value = getattr(self, name)
            if value and not _NAME.match(value):
                raise InvalidArgument(f"{name} is {value!r}, which is no name of an object in Kubernetes")
        if self.gpus and not (self.gpus.isdecimal() and int(self.gpus) > 0):
            raise InvalidArgument(f"gpus is {self.gpus!r}, it must be a whole number above 0")

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Self:
        known = [item.name for item in fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise InvalidArgument(
                f"the kubernetes launcher knows no option {unknown[0]!r}",
                hint=f"Known: {', '.join((*known, 'context', 'kubeconfig'))}.",
            )
        if not options.get("image"):
            raise InvalidArgument(
                "the kubernetes launcher needs an image", hint="For example -o image=registry.example.com/strata:1."
            )
        return cls(**options)


def job_name(tag: str) -> str:
    return f"strata-{re.sub(r'[^a-z0-9-]', '-', tag.lower())[:50]}".strip("-")


def job_objects(spec: LaunchSpec, options: PodOptions) -> dict[str, Any]:
    """The Job. The rest belongs to it: `owned_objects`."""
    name = job_name(spec.tag)
    queue = {"kueue.x-k8s.io/queue-name": options.queue} if options.queue else {}
    priority = {"kueue.x-k8s.io/priority-class": options.priority} if options.priority else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**_metadata(name, options), "labels": {**_labels(name), **queue, **priority}},
        "spec": {
            "completionMode": "Indexed",
            "completions": spec.copies,
            "parallelism": spec.copies,
            "backoffLimit": _RETRIES * spec.copies,
            "ttlSecondsAfterFinished": _KEPT_S,
            **({"suspend": True} if options.queue else {}),  # Kueue starts it when there is room
            "podFailurePolicy": {"rules": _failure_rules()},
            "template": {"metadata": {"labels": _labels(name)}, "spec": _pod(spec, options, name)},
        },
    }


def _failure_rules() -> list[dict[str, Any]]:
    """A pod that lost its place is replaced; an agent that refuses to work ends the job."""
    return [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": {"containerName": "agent", "operator": "In", "values": [SENT_AWAY]}},
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "agent", "operator": "In", "values": list(_CONFIG_CODES)},
        },
    ]


def _pod(spec: LaunchSpec, options: PodOptions, name: str) -> dict[str, Any]:
    volume = {"persistentVolumeClaim": {"claimName": options.claim}} if options.claim else {"emptyDir": {}}
    # A claim outlives its job and is for many: what other jobs have left in it, as checkpoints, is under their path.
    folder = PurePosixPath(spec.working_dir or "/fleet/own")
    mount = str(folder.parent if options.claim else folder)
    shared = {"fsGroup": _GROUP, "fsGroupChangePolicy": "OnRootMismatch"} if options.claim else {}
    index = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
    memory = {"memory": options.memory} if options.memory else {}
    cards = {"nvidia.com/gpu": options.gpus} if options.gpus else {}
    container = {
        "name": "agent",
        "image": options.image,
        "command": ["/bin/sh", "-c", _FIRST, "strata-agent", *spec.argv],
        "envFrom": [{"secretRef": {"name": name}}],
        "env": [{"name": "STRATA_AGENT_NUMBER", "valueFrom": index}],
        "resources": {"requests": {"cpu": str(spec.cpus), **memory}, "limits": {**memory, **cards}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "workingDir": mount,
        "volumeMounts": [{"name": "fleet", "mountPath": mount}],
    }
    return {
        "restartPolicy": "Never",
        "subdomain": name,
        "terminationGracePeriodSeconds": _GRACE_S,
        "automountServiceAccountToken": bool(options.service_account),
        **({"serviceAccountName": options.service_account} if options.service_account else {}),
        **({"imagePullSecrets": [{"name": options.pull_secret}]} if options.pull_secret else {}),
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **shared},
        "containers": [container],
        "volumes": [{"name": "fleet", **volume}],
    }


def owned_objects(spec: LaunchSpec, options: PodOptions, job_uid: str) -> list[dict[str, Any]]:
    """The Secret and the Service, which Kubernetes removes with the Job of this uid. Pods wait for the Secret."""
    name = job_name(spec.tag)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job_uid}
    about = {**_metadata(name, options), "labels": _labels(name), "ownerReferences": [owner]}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "stringData": dict(spec.env)}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": about,
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": _labels(name)},
    }
    return [secret, service]


def _metadata(name: str, options: PodOptions) -> dict[str, str]:
    return {"name": name, **({"namespace": options.namespace} if options.namespace else {})}


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "strata-agent", "app.kubernetes.io/instance": name}
