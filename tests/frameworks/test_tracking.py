"""Results in the real MLflow (file store), W&B (offline) and TensorBoard (event files), read back from what they wrote."""

import json
import struct
from pathlib import Path

import pytest

from cranfield import compare, evaluate, load
from cranfield.compat.tracking import to_mlflow, to_tensorboard, to_wandb

QUERIES = [f"q{n}" for n in range(12)]
TESTSET = load({query: {"d": 1} for query in QUERIES})


def checkpoint(name, rank):
    """A system that has the relevant document of each query at a rank."""
    run = {query: [*(f"x{n}" for n in range(1, rank)), "d"] for query in QUERIES}
    return evaluate(TESTSET, run, measures=["nDCG@10", "RR"], name=name)


CHECKPOINTS = [checkpoint(f"checkpoint-{step}", rank) for step, rank in enumerate((4, 2, 1))]
RR = [0.25, 0.5, 1.0]


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    return mlflow


@pytest.mark.parametrize("prefix", ["", "valid/"])
def test_mlflow_has_every_number_at_its_step_and_the_verdict_as_a_tag(mlflow, prefix):
    with mlflow.start_run() as run:
        log = to_mlflow(mlflow, prefix=prefix)
        for step, each in enumerate(CHECKPOINTS):
            log(each, step=step)
        log(compare(CHECKPOINTS[0], CHECKPOINTS[-1]), step=2)
    client = mlflow.MlflowClient()
    history = client.get_metric_history(run.info.run_id, f"{prefix}rr")
    assert [(each.step, each.value) for each in history][:3] == list(enumerate(RR))
    stored = client.get_run(run.info.run_id).data
    expected = compare(CHECKPOINTS[0], CHECKPOINTS[-1]).to_dict()
    assert stored.tags[f"{prefix}verdict"] == "better"
    for key, value in expected.items():
        where = stored.tags if isinstance(value, str) else stored.metrics
        assert where[prefix + key] == value


def test_mlflow_logs_into_a_run_that_is_named(mlflow):
    run = mlflow.MlflowClient().create_run("0")
    to_mlflow(mlflow, run_id=run.info.run_id)(CHECKPOINTS[1], step=7)
    stored = mlflow.MlflowClient().get_run(run.info.run_id).data
    assert stored.metrics["rr"] == 0.5
    assert stored.tags["system"] == "checkpoint-1"


def test_wandb_has_a_row_a_step(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    wandb = pytest.importorskip("wandb")
    run = wandb.init(project="search", dir=tmp_path)
    log = to_wandb(run, prefix="valid/")
    for step, each in enumerate(CHECKPOINTS):
        log(each, step=step)
    folder = Path(run.dir).parent
    run.finish()
    rows = wandb_rows(folder)
    assert [row["valid/rr"] for row in rows] == RR
    assert [row["_step"] for row in rows] == [0, 1, 2]
    assert rows[2]["valid/system"] == "checkpoint-2"
    assert {f"valid/{key}" for key in CHECKPOINTS[0].to_dict()} <= set(rows[0])


def wandb_rows(folder):
    """The history in the transaction log of an offline run."""
    from wandb.proto import wandb_internal_pb2

    (path,) = folder.glob("*.wandb")
    rows = []
    for data in records_of(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            rows.append({"_step": record.history.step.num} | items)
    return rows


def records_of(log, block=32_768, head=7):
    """The records of a log in LevelDB's format, whose first block begins with the head of the file."""
    place, parts = head, b""
    while place + head <= len(log):
        room = block - place % block
        if room < head:  # too little for another head: zeros
            place += room
            continue
        _, size, kind = struct.unpack("<IHB", log[place : place + head])
        parts += log[place + head : place + head + size]
        place += head + size
        if kind in {1, 4}:  # whole, or the last part
            yield parts
            parts = b""


def test_tensorboard_has_scalars_and_texts(tmp_path):
    pytest.importorskip("tensorboard")
    writers = pytest.importorskip("torch.utils.tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with writers.SummaryWriter(str(tmp_path)) as writer:
        log = to_tensorboard(writer)
        for step, each in enumerate(CHECKPOINTS):
            log(each, step=step)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("rr")] == list(enumerate(RR))
    numbers = {key for key, value in CHECKPOINTS[0].to_dict().items() if not isinstance(value, str)}
    assert set(events.Tags()["scalars"]) == numbers
    text = events.Tensors("system/text_summary")[-1].tensor_proto.string_val[0]
    assert text == b"checkpoint-2"
