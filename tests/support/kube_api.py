"""The part of a Kubernetes API server that kubectl needs to run Jobs, over real HTTP: requests are recorded, and pods
are processes of this machine, ended as a kubelet ends them. It is not Kubernetes: nothing is scheduled, no field is
checked.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

__all__ = ["KubeApi", "kube_api"]

_RESOURCES = {
    "v1": {"pods": "Pod", "secrets": "Secret", "services": "Service"},
    "batch/v1": {"jobs": "Job"},
}
_LOOK_S = 0.05
_Object = dict[str, Any]


@dataclass
class _Pod:
    """A pod and its one process, the leader of a session."""

    about: _Object
    process: "subprocess.Popen[bytes]"
    kill_at: float | None = None

    def end(self, grace_s: float) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        at = time.monotonic() + grace_s
        self.kill_at = at if self.kill_at is None else min(at, self.kill_at)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class KubeApi:
    """`requests` are method, path and body of all that came."""

    url: str = ""
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    objects: dict[tuple[str, str], _Object] = field(default_factory=dict)  # by kind and name
    pods: dict[str, _Pod] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    # --- what a client asks

    def create(self, kind: str, made: _Object, *, dry: bool) -> _Object:
        made["metadata"] |= {"uid": f"uid-{next(self.numbers)}", "namespace": "default"}
        made.setdefault("status", {})
        if not dry:
            self.objects[kind, made["metadata"]["name"]] = made
        return made

    def find(self, kind: str, name: str) -> _Object | None:
        return self.pods[name].about if kind == "pods" and name in self.pods else self.objects.get((kind, name))

    def select(self, kind: str, selector: str) -> _Object:
        wanted = set(selector.split(",")) if selector else set()
        found = [pod.about for pod in self.pods.values()] if kind == "pods" else []
        items = [
            item for item in found if wanted <= {f"{key}={value}" for key, value in item["metadata"]["labels"].items()}
        ]
        return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}

    def delete(self, kind: str, name: str, options: _Object) -> None:
        if kind == "pods":
            self.pods[name].end(float(options.get("gracePeriodSeconds", 75)))
        else:
            job = self.objects[kind, name]
            job["metadata"]["deletionTimestamp"] = "now"
            for pod in self._pods_of(job):
                pod.end(75.0)

    # --- what controllers and the kubelet do

    def look(self) -> None:
        for key, job in [item for item in self.objects.items() if item[0][0] == "jobs"]:
            if "deletionTimestamp" in job["metadata"]:
                if not self._pods_of(job):
                    uid = job["metadata"]["uid"]
                    owned = [other for other, item in self.objects.items() if uid in str(item["metadata"])]
                    for gone in (*owned, key):
                        self.objects.pop(gone, None)
            elif "conditions" not in job["status"] and not job["spec"].get("suspend"):
                self._start_missing(job)
        for name, pod in list(self.pods.items()):
            if pod.kill_at is not None and time.monotonic() > pod.kill_at:
                pod.kill()
            if pod.process.poll() is not None:
                pod.kill()  # what its first process left behind
                del self.pods[name]
                self._ended(pod)

    def _pods_of(self, job: _Object) -> list[_Pod]:
        name = job["metadata"]["name"]
        return [pod for pod in self.pods.values() if pod.about["metadata"]["labels"]["job-name"] == name]

    def _start_missing(self, job: _Object) -> None:
        spec, name = job["spec"], job["metadata"]["name"]
        container = spec["template"]["spec"]["containers"][0]
        secret = self.objects.get(("secrets", container["envFrom"][0]["secretRef"]["name"]))
        done = job["status"].setdefault("done", [])
        there = {pod.about["metadata"]["annotations"]["index"] for pod in self._pods_of(job)}
        for index in {str(number) for number in range(spec["completions"])} - there - set(done):
            if secret is None:
                return
            folder = Path(container["workingDir"])
            folder.mkdir(parents=True, exist_ok=True)
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **secret["stringData"]}
            environment["STRATA_AGENT_NUMBER"] = index
            with (folder / f"out.{index}").open("ab") as log:
                process = subprocess.Popen(
                    container["command"], stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True
                )
            labels = {**spec["template"]["metadata"]["labels"], "job-name": name}
            own = f"{name}-{index}-{next(self.numbers)}"
            about = {"name": own, "labels": labels, "annotations": {"index": index}}
            pod = {"kind": "Pod", "apiVersion": "v1", "metadata": about, "status": {"phase": "Running"}}
            self.pods[own] = _Pod(pod, process)

    def _ended(self, pod: _Pod) -> None:
        about = pod.about["metadata"]
        job = self.objects.get(("jobs", about["labels"]["job-name"]))
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        code, rules = pod.process.returncode, job["spec"]["podFailurePolicy"]["rules"]
        of_code = [rule["action"] for rule in rules if code in rule.get("onExitCodes", {}).get("values", ())]
        if code == 0:
            job["status"]["done"].append(about["annotations"]["index"])
            if len(job["status"]["done"]) == job["spec"]["completions"]:
                job["status"]["conditions"] = [{"type": "Complete", "status": "True"}]
            return
        if of_code != ["Ignore"]:
            job["status"]["failed"] = job["status"].get("failed", 0) + 1
        if of_code == ["FailJob"] or job["status"].get("failed", 0) > job["spec"]["backoffLimit"]:
            said = f"Container agent for pod default/{about['name']} failed with exit code {code}"
            job["status"]["conditions"] = [{"type": "Failed", "status": "True", "message": said}]
            for other in self._pods_of(job):
                other.end(75.0)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: KubeApi

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path, _, query = self.path.partition("?")
        with self.api.lock:
            self.api.requests.append((self.command, path, body))
            answer = self._answer(path.strip("/").split("/"), query, body)
        missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        content = json.dumps(missing if answer is None else answer).encode()
        self.send_response(404 if answer is None else 201 if self.command == "POST" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _serve  # noqa: N815  # names of the standard library

    def _answer(self, parts: list[str], query: str, body: Any) -> _Object | None:
        if parts in (["api"], ["apis"]) or (parts[0] == "api" and len(parts) == 2) or len(parts) == 3:
            known = _discovery("/".join(parts[1:]), parts)
            if known is not None:
                return known
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        rest = rest[2:] if rest[:1] == ["namespaces"] else rest
        if not rest:
            return None
        kind, name = rest[0], rest[1] if len(rest) > 1 else ""
        if self.command == "POST":
            return self.api.create(kind, body, dry="dryRun=All" in query)
        if not name:
            values = dict(part.partition("=")[::2] for part in query.split("&"))
            return self.api.select(kind, values.get("labelSelector", "").replace("%3D", "=").replace("%2F", "/"))
        found = self.api.find(kind, name)
        if found is not None and self.command == "DELETE":
            self.api.delete(kind, name, body or {})
        return found

    def log_message(self, *_: object) -> None:
        return


def _discovery(version: str, parts: list[str]) -> _Object | None:
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if parts == ["apis"]:
        groups = []
        for known in _RESOURCES:
            if "/" in known:
                only = {"groupVersion": known, "version": "v1"}
                groups.append({"name": known.partition("/")[0], "versions": [only], "preferredVersion": only})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if version not in _RESOURCES:
        return None
    resources = [
        {"name": name, "kind": kind, "singularName": kind.lower(), "verbs": ["create", "delete", "get", "list"],
         "namespaced": True}
        for name, kind in _RESOURCES[version].items()
    ]  # fmt: skip
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


@contextlib.contextmanager
def kube_api(folder: Path) -> Iterator[tuple[KubeApi, Path]]:
    """Yields the server and a kubeconfig that leads to it."""
    api = KubeApi()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    api.url = f"http://127.0.0.1:{server.server_port}"
    over = threading.Event()

    def control() -> None:
        while not over.wait(_LOOK_S):
            with api.lock:
                api.look()

    threads = [threading.Thread(target=target, daemon=True) for target in (server.serve_forever, control)]
    for thread in threads:
        thread.start()
    config = folder / "kubeconfig"
    context = {"name": "test", "context": {"cluster": "test", "user": "test"}}
    cluster = {"name": "test", "cluster": {"server": api.url}}
    known = {"clusters": [cluster], "contexts": [context], "users": [{"name": "test", "user": {}}]}
    config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "test", **known}))
    try:
        yield api, config
    finally:
        over.set()
        threads[1].join()
        server.shutdown()
        server.server_close()
        for pod in api.pods.values():
            pod.kill()
