"""The client: one method for each thing that the API does. A request is sent again where that cannot do it twice."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel

from cranfield.base.certificates import trusted_certificates
from cranfield.base.concurrency.retry import retry_after_s
from cranfield.base.errors import UsageError
from cranfield.workbench.client.errors import ApiError, ApiUnavailableError, JobFailedError, error_of
from cranfield.workbench.client.events import events_of
from cranfield.workbench.service.requests import CompareRequest, DiffRequest, EvaluateRequest
from cranfield.workbench.service.responses import (
    ComparisonResponse,
    DifferenceResponse,
    EvaluationChange,
    EvaluationResponse,
    JobResponse,
    MeasureList,
    Page,
    QueryRow,
    RunResponse,
    SetResponse,
    SystemList,
)

if TYPE_CHECKING:
    from httpx2 import BaseTransport, Response

TIMEOUT_S = 60.0
"""Longest silence of the server."""
ATTEMPTS = 5
"""Attempts at a request that may be sent again."""
BACKOFF_S = 0.5
SHORTEST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
"""Between two looks at a job that is waited for."""
PAGE = 200
Model = TypeVar("Model", bound=BaseModel)


class Client:
    """A client of one server; a context manager. Use it from one thread at a time.

        with Client("https://search-quality.example.org", token=token) as client:
            (evaluation,) = client.evaluate("shop", systems=["new"])
            print(evaluation.metrics["recall_at_10"])

    Args:
        url: address of the server.
        token: of the scope `read`, or `evaluate` to upload, evaluate and compare.
        timeout_s: longest silence of the server.
        attempts: how often a request is sent where the server does not answer.
        transport: of httpx2, for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str,
        timeout_s: float = TIMEOUT_S,
        attempts: int = ATTEMPTS,
        transport: BaseTransport | None = None,
    ) -> None:
        import httpx2

        if not token.isascii() or not token.isprintable() or not token:
            raise UsageError("the token is not valid", expected="the output of `cranfield people token`")
        self._attempts = attempts
        try:
            self._http = httpx2.Client(
                base_url=url.rstrip("/"),
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
                timeout=timeout_s,
                verify=trusted_certificates(),
                transport=transport,
            )
        except httpx2.InvalidURL as error:
            raise UsageError(f"{url} is not an address of a server: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    # Evaluate and compare

    def evaluate(
        self,
        testset: str | Path,
        *,
        systems: Sequence[str] = (),
        runs: Sequence[int | Path] = (),
        measures: Sequence[str] | None = None,
        components: Sequence[str] = (),
        wait_s: float | None = None,
        **options: Any,
    ) -> tuple[EvaluationResponse, ...]:
        """Evaluate systems of the server's config, or runs, and wait for the result.

        Args:
            testset: a name, `NAME@ID`, or a file that is uploaded.
            systems: names in the config.
            runs: ids, or files that are uploaded.
            measures: spellings; None: those of the config.
            components: of each system, these alone.
            wait_s: longest wait; None: until the job has ended.
            options: further fields of `EvaluateRequest`: `k`, `convention`, `primary`, `variant`, `seed`, `tags`, `note`.

        Raises:
            RefusedError: the request is wrong, with every problem.
            JobFailedError: it failed, or was cancelled.
            ApiUnavailableError: the server does not answer, or the wait is over.
        """
        job = self.submit(testset, systems=systems, runs=runs, measures=measures, components=components, **options)
        return self.evaluations_of(self.wait(job.id, wait_s))

    def submit(self, testset: str | Path, *, runs: Sequence[int | Path] = (), **options: Any) -> JobResponse:
        """Begin an evaluation without waiting; as `evaluate`."""
        name = self.upload_testset(testset).ref if isinstance(testset, Path) else testset
        ids = tuple(self.upload_run(run).id if isinstance(run, Path) else run for run in runs)
        sent = EvaluateRequest(
            testset=name, runs=ids, **{key: value for key, value in options.items() if value is not None}
        )
        return self._begin("/v1/evaluate", sent)

    def compare(
        self, baseline: int, candidate: int, *, wait_s: float | None = None, **options: Any
    ) -> ComparisonResponse:
        """Compare two evaluations, and wait for the result; options are the fields of `CompareRequest`.

        Raises:
            RefusedError: the two cannot be compared.
        """
        job = self._begin("/v1/compare", CompareRequest(baseline=baseline, candidate=candidate, **options))
        return ComparisonResponse.model_validate(self._result(self.wait(job.id, wait_s)))

    def diff(self, baseline: int, candidate: int, **options: Any) -> DifferenceResponse:
        """Two evaluations beside each other, without judgments; options are the fields of `DiffRequest`: `of="runs"`, `k`.

        Raises:
            RefusedError: the two have no query in common, or are one.
        """
        wanted = DiffRequest(baseline=baseline, candidate=candidate, **options).model_dump(exclude_none=True)
        return DifferenceResponse.model_validate_json(self._send("GET", "/v1/diff", params=wanted, again=True).content)

    def _begin(self, path: str, sent: BaseModel) -> JobResponse:
        # The key makes one job of a request that is sent again because its answer was lost.
        headers = {"Idempotency-Key": uuid.uuid4().hex, "Prefer": "respond-async"}
        body = sent.model_dump(mode="json", exclude_defaults=True)
        response = self._send("POST", path, headers=headers, json=body, again=True)
        if response.status_code == 202:
            return JobResponse.model_validate_json(response.content)
        place = response.headers["content-location"].removesuffix("/result")
        return self._get(place, JobResponse)

    # Jobs

    def job(self, job_id: int) -> JobResponse:
        """State of a job."""
        return self._get(f"/v1/jobs/{job_id}", JobResponse)

    def jobs(self, **conditions: Any) -> Iterator[JobResponse]:
        """The jobs, the latest first: `state="running"`, `of="me"`."""
        return self._list("/v1/jobs", JobResponse, conditions)

    def progress(self, job_id: int) -> Iterator[JobResponse]:
        """A job whenever it has changed, until it has ended; a connection that breaks is made again.

        Raises:
            ApiUnavailableError: the server does not answer any more.
        """
        failures = 0
        while True:
            try:
                for found in events_of(self._http, f"/v1/jobs/{job_id}/events"):
                    failures = 0
                    yield found
                    if found.has_ended:
                        return
            except ApiUnavailableError:
                failures += 1
                if failures >= self._attempts:
                    raise
            time.sleep(BACKOFF_S)

    def wait(self, job_id: int, wait_s: float | None = None) -> JobResponse:
        """Wait until a job has ended.

        Raises:
            ApiUnavailableError: the server does not answer any more, or the wait is over.
        """
        until = math.inf if wait_s is None else time.monotonic() + wait_s
        pause = SHORTEST_PAUSE_S
        while not (found := self.job(job_id)).has_ended:
            if time.monotonic() >= until:
                raise ApiUnavailableError(
                    f"job {job_id} is {found.state} after {wait_s:g} s", hint="wait for the job again"
                )
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(2 * pause, LONGEST_PAUSE_S)
        return found

    def cancel(self, job_id: int) -> JobResponse:
        """Cancel a job."""
        return JobResponse.model_validate_json(self._send("POST", f"/v1/jobs/{job_id}/cancel", again=True).content)

    def retry(self, job_id: int) -> JobResponse:
        """Put a failed or cancelled job into the queue again."""
        return JobResponse.model_validate_json(self._send("POST", f"/v1/jobs/{job_id}/retry").content)

    def evaluations_of(self, job: JobResponse) -> tuple[EvaluationResponse, ...]:
        """The evaluations of a job that has ended.

        Raises:
            JobFailedError: there are none.
        """
        found = self._result(job)
        return tuple(
            EvaluationResponse.model_validate(each) for each in (found if isinstance(found, list) else [found])
        )

    def _result(self, job: JobResponse) -> Any:
        if job.state == "done":
            return self._send("GET", f"/v1/jobs/{job.id}/result", again=True).json()
        try:
            self._send("GET", f"/v1/jobs/{job.id}/result", again=True)
        except ApiError as error:
            raise JobFailedError(error.problems) from None
        raise JobFailedError(f"job {job.id} is {job.state}")

    # What is stored

    def upload_testset(
        self,
        path: Path | str,
        *,
        name: str = "",
        format: str = "",  # noqa: A002 - the word its users know
        queries: Path | None = None,
    ) -> SetResponse:
        """Store a test set; `name` is by default that of the file."""
        files = {"file": Path(path)} | ({"queries": queries} if queries is not None else {})
        return self._upload("/v1/testsets", files, {"name": name, "format": format}, SetResponse)

    def upload_run(self, path: Path | str, *, name: str = "", format: str = "") -> RunResponse:  # noqa: A002 - as above
        """Store a run."""
        return self._upload("/v1/runs", {"file": Path(path)}, {"name": name, "format": format}, RunResponse)

    def testsets(self) -> Iterator[SetResponse]:
        """The latest version of each test set."""
        return self._list("/v1/testsets", SetResponse, {})

    def runs(self) -> Iterator[RunResponse]:
        """The runs, the latest first."""
        return self._list("/v1/runs", RunResponse, {})

    def systems(self) -> SystemList:
        """The systems that the server's config allows."""
        return self._get("/v1/systems", SystemList)

    def measures(self) -> MeasureList:
        """The measures with their explanations."""
        return self._get("/v1/measures", MeasureList)

    def evaluations(self, **conditions: Any) -> Iterator[EvaluationResponse]:
        """Evaluations, the latest first: `testset="shop"`, `system="new"`, `tag="nightly"`, `pinned=True`."""
        return self._list("/v1/evaluations", EvaluationResponse, conditions)

    def evaluation(self, evaluation_id: int) -> EvaluationResponse:
        """An evaluation with everything that its JSON holds."""
        return self._get(f"/v1/evaluations/{evaluation_id}", EvaluationResponse)

    def queries(self, evaluation_id: int, *, measure: str | None = None) -> Iterator[QueryRow]:
        """The queries of an evaluation with values and results; the worst by a measure first."""
        conditions = {} if measure is None else {"measure": measure}
        return self._list(f"/v1/evaluations/{evaluation_id}/queries", QueryRow, conditions)

    def change(self, evaluation_id: int, **change: Any) -> EvaluationResponse:
        """Change `tags`, `note` or `pinned` of an evaluation."""
        body = EvaluationChange(**change).model_dump(exclude_none=True)
        response = self._send("PATCH", f"/v1/evaluations/{evaluation_id}", json=body, again=True)
        return EvaluationResponse.model_validate_json(response.content)

    def report(self, evaluation_id: int, format: str = "html") -> str:  # noqa: A002 - as above
        """The report of an evaluation: `html`, `markdown`, `text`, `csv` or `json`."""
        return self._report(f"/v1/evaluations/{evaluation_id}/report", format)

    def comparison_report(self, comparison_id: int, format: str = "html") -> str:  # noqa: A002 - as above
        """The report of a comparison; as `report`."""
        return self._report(f"/v1/comparisons/{comparison_id}/report", format)

    # Requests

    def _report(self, path: str, name: str) -> str:
        if name == "xlsx":
            raise UsageError("xlsx is not text", expected="html, markdown, text, csv or json")
        return self._send("GET", path, params={"format": name}, headers={"Accept": "*/*"}, again=True).text

    def _get(self, path: str, model: type[Model]) -> Model:
        return model.model_validate_json(self._send("GET", path, again=True).content)

    def _list(self, path: str, model: type[Model], conditions: Mapping[str, Any]) -> Iterator[Model]:
        place: str | None = path
        params: dict[str, Any] | None = {**conditions, "limit": PAGE}
        while place is not None:
            response = self._send("GET", place, params=params, again=True)
            page = Page[model].model_validate_json(response.content)  # type: ignore[valid-type]  # a class at run time
            yield from page.items
            place, params = page.next, None

    def _upload(self, path: str, files: Mapping[str, Path], fields: Mapping[str, str], model: type[Model]) -> Model:
        try:
            parts = {key: (file.name, file.read_bytes(), "application/octet-stream") for key, file in files.items()}
        except OSError as error:
            raise UsageError((error.strerror or str(error)).lower(), path=str(error.filename)) from None
        given = {key: value for key, value in fields.items() if value}
        return model.model_validate_json(self._send("POST", path, files=parts, data=given, again=True).content)

    def _send(self, method: str, path: str, *, again: bool = False, **request: Any) -> Response:
        """Send a request; `again` where a second one does nothing that the first did not."""
        import httpx2

        wait = BACKOFF_S
        for attempt in range(1, self._attempts + 1):
            last = attempt == self._attempts or not again
            try:
                response = self._http.request(method, path, **request)
            except httpx2.TransportError as error:
                if last:
                    message = f"no answer from {self._http.base_url}: {error or type(error).__name__}"
                    raise ApiUnavailableError(message) from None
            else:
                if response.is_success:
                    return response
                if last or response.status_code not in {429, 502, 503, 504}:
                    raise error_of(response)
                wait = retry_after_s(response.headers.get("Retry-After", "")) or wait
            time.sleep(wait)
            wait *= 2
        raise ApiUnavailableError("no attempt was made", expected="attempts: 1 or more")
