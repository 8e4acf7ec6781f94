"""Agents as an Indexed Job of Kubernetes, through kubectl: the user's kubeconfig, contexts and login plugins apply, and
inside of a cluster its service account. Kubernetes places the pods and replaces those that lose their node; restarting
a rank is Strata's own work. Objects go through stdin, so no secret is on a command line.
"""

import json
import shutil
import signal
import time
from collections.abc import Mapping
from typing import Any

from strata.errors import InvalidArgument, Unavailable
from strata.launchers.base import Exit, LaunchSpec, Standing, ask_program
from strata.launchers.job_objects import PodOptions, job_name, job_objects, owned_objects

__all__ = ["KubernetesLauncher"]

_TIMEOUT_S = 60.0
_POLL_S = 0.5


class KubernetesLauncher:
    """A handle is the job's name. `options` are those of `PodOptions`, and kubectl's `context` and `kubeconfig`."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        given = dict(options or {})
        flags: dict[str, str] = {name: given.pop(name) for name in ("context", "kubeconfig") if name in given}
        self._options = PodOptions.read(given)
        if self._options.namespace:
            flags["namespace"] = self._options.namespace
        self._command = ("kubectl", *(f"--{name}={value}" for name, value in flags.items()))

    def prepare(self, spec: LaunchSpec) -> None:
        if shutil.which("kubectl") is None:
            raise Unavailable("kubectl is not installed here", hint="Install it, with a kubeconfig for your cluster.")
        if spec.copies > 1 and spec.shared and not self._options.claim:
            raise InvalidArgument(
                f"{spec.copies} pods share no folder for checkpoints",
                hint="Set STRATA_STORAGE_BACKEND=s3 and STRATA_CHECKPOINT_BUCKET, or give a volume that many pods may "
                "write: -o claim=NAME.",
            )
        try:
            self._create(job_objects(spec, self._options), "--dry-run=server")
        except Unavailable as error:
            raise Unavailable(
                f"Kubernetes would not take the job: {error.message}",
                hint="Check `kubectl config current-context` and -o namespace=…; deploy/kubernetes has a role for it.",
            ) from None

    def start(self, spec: LaunchSpec) -> str:
        made = json.loads(self._create(job_objects(spec, self._options)))
        try:
            for item in owned_objects(spec, self._options, str(made["metadata"]["uid"])):
                self._create(item)
        except Unavailable:
            self.stop(job_name(spec.tag), 0.0)
            raise
        return job_name(spec.tag)

    def poll(self, handle: str) -> Exit | None:
        job = self._get("job", handle)
        if job is None:
            return Exit(code=None, reason=f"Kubernetes knows no job {handle}")
        for condition in job.get("status", {}).get("conditions", ()):
            if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
                said = condition.get("message") or condition.get("reason", "")
                code = 0 if condition["type"] == "Complete" else None
                return Exit(code=code, reason=f"job {handle} is {condition['type']}{f': {said}' if said else ''}")
        return None

    def describe(self, handle: str) -> Standing:
        try:
            job, pods = self._get("job", handle), self._pods(handle)
        except Unavailable as error:
            return Standing(text=str(error))
        if job is None:
            return Standing(text=f"job {handle} is gone")
        if job["spec"].get("suspend"):
            return Standing(text=f"job {handle} waits in its queue", pending=True)
        running = sum(pod["status"].get("phase") == "Running" for pod in pods)
        waits = [why for pod in pods if (why := _why_waiting(pod))]
        text = f"job {handle}: {running} of {job['spec']['completions']} pods run"
        return Standing(text=f"{text}; {waits[0]}" if waits else text, pending=running < job["spec"]["completions"])

    def signal(self, handle: str, number: int) -> None:
        """To every process of the pods; the first one, which `kill -1` leaves out, passes on what ends it."""
        name = signal.Signals(number).name.removeprefix("SIG")
        for pod in self._pods(handle):
            if pod["status"].get("phase") == "Running":
                kill = f"kill -s {name} -- -1; kill -s {name} 1"
                self._call("exec", pod["metadata"]["name"], "-c", "agent", "--", "sh", "-c", kill, check=False)

    def stop(self, handle: str, grace_s: float) -> Exit:
        """Deletes the Job: its pods get SIGTERM and their grace, and all that belongs to it goes with it."""
        ended = self.poll(handle)
        # First the Job, so that no pod is replaced; a grace is each pod's own.
        self._call("delete", "job", handle, "--ignore-not-found", "--cascade=foreground", "--wait=false")
        grace = f"--grace-period={max(1, round(grace_s))}"
        for pod in self._pods(handle):
            self._call("delete", "pod", pod["metadata"]["name"], "--ignore-not-found", "--wait=false", grace)
        deadline = time.monotonic() + grace_s + _TIMEOUT_S
        while self._get("job", handle) is not None:
            if time.monotonic() > deadline:
                raise Unavailable(f"job {handle} is being deleted, but its pods are still there")
            time.sleep(_POLL_S)
        return ended or Exit(code=None, reason=f"job {handle} was deleted")

    # --- kubectl

    def _create(self, item: dict[str, Any], *flags: str) -> str:
        """Not checked by kubectl: our tests do that, and an older server drops what it does not know."""
        whole = ("--filename=-", "--output=json", "--validate=false")
        return self._call("create", *whole, *flags, stdin=json.dumps(item))

    def _get(self, kind: str, name: str) -> dict[str, Any] | None:
        shown = self._call("get", kind, name, "--ignore-not-found", "--output=json")
        found: dict[str, Any] | None = json.loads(shown) if shown.strip() else None
        return found

    def _pods(self, handle: str) -> list[dict[str, Any]]:
        shown = self._call("get", "pods", f"--selector=app.kubernetes.io/instance={handle}", "--output=json")
        found: list[dict[str, Any]] = json.loads(shown)["items"]
        return found

    def _call(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        command = (*self._command, *arguments)
        return ask_program(command, f"kubectl {arguments[0]}", _TIMEOUT_S, stdin=stdin, env={}, check=check)


def _why_waiting(pod: Mapping[str, Any]) -> str:
    """Of a pod that does not run yet: what the scheduler or the kubelet says."""
    status = pod["status"]
    if status.get("phase") != "Pending":
        return ""
    waits = [item["state"]["waiting"] for item in status.get("containerStatuses", ()) if "waiting" in item["state"]]
    says = [
        item for item in status.get("conditions", ()) if item["type"] == "PodScheduled" and item["status"] == "False"
    ]
    for said in (*waits, *says):
        return f"{pod['metadata']['name']}: {said.get('reason', '')} {said.get('message', '')}".strip()[:300]
    return ""
