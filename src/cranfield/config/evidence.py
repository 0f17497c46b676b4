"""The block `evidence:` of a config: how evidence checks differ from their table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from cranfield.config.strict import Finding, raise_findings
from cranfield.errors import CranfieldError


class _ByCheck:
    """The schema of the block: a property for each check, made when a schema is requested."""

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        from cranfield.evaluation.evidence.inspection import CHECKS
        from cranfield.options.blocks import Consequence

        consequence = core_schema.literal_schema([*map(str, Consequence), False])  # some YAML readers make false of off
        threshold = core_schema.float_schema(ge=0)
        parts = {"consequence": consequence, "threshold": threshold}
        fields = {name: core_schema.typed_dict_field(part, required=False) for name, part in parts.items()}
        both = core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        entry = core_schema.union_schema([consequence, threshold, both], ref="EvidenceSetting")
        reference = core_schema.definition_reference_schema("EvidenceSetting")
        setting = handler(core_schema.definitions_schema(reference, [entry]))
        handler.resolve_ref_schema(setting)["description"] = "What follows from a finding, or the threshold, or both."
        return {
            "type": "object",
            "properties": {check.name: {**setting, "description": check.sentence} for check in CHECKS.values()},
            "additionalProperties": False,
        }


def _as_settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Each entry as a `Setting`; every unknown name and value is a problem."""
    from cranfield.evaluation.evidence.inspection import known_setting

    settings: dict[str, Any] = {}
    findings: list[Finding] = []
    for name, value in written.items():
        try:
            settings[name] = known_setting(name, value)
        except CranfieldError as error:
            findings += [((name,), problem) for problem in error.problems]
    raise_findings(findings)
    return settings


EvidenceConfig = Annotated[dict[str, Any], AfterValidator(_as_settings), _ByCheck()]
