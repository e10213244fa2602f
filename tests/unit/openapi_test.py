"""The description of the interface is a valid OpenAPI 3.1 document, as far as it uses what that has, and uses no more of it than
tests/api/contract.py holds the answers against."""

import json
import pathlib
import re
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/api"))

import contract  # noqa: E402

DOCUMENT = json.loads((TOP / "clusterctl/api/openapi.json").read_text())
# Objects of the specification: what they must and may have.
OBJECTS = {
    "document": ({"openapi", "info", "paths"}, {"servers", "security", "tags", "components"}),
    "info": ({"title", "version"}, {"description"}),
    "operation": ({"operationId", "summary", "tags", "responses"}, {"parameters", "requestBody", "security", "description"}),
    "parameter": ({"name", "in", "schema"}, {"required", "description"}),
    "response": ({"description"}, {"headers", "content"}),
    "header": ({"schema"}, {"description", "required"}),
    "requestBody": ({"content"}, {"required", "description"}),
    "media": ({"schema"}, set()),
    "components": (set(), {"securitySchemes", "parameters", "headers", "requestBodies", "responses", "schemas"}),
}


def faults(document):
    """Every fault, one line each."""
    out = []

    def resolved(value, where):
        if "$ref" not in value:
            return value
        if set(value) != {"$ref"}:
            out.append("%s: a reference with something beside it" % where)
        try:
            return contract.Contract.resolve(Holder(document), value)
        except KeyError:
            out.append("%s: %s leads nowhere" % (where, value["$ref"]))
            return None

    def fields(kind, value, where):
        must, may = OBJECTS[kind]
        out.extend("%s: no %s" % (where, name) for name in sorted(must - set(value)))
        out.extend("%s: %s has no %s" % (where, kind, name) for name in sorted(set(value) - must - may))

    def schema(value, where):
        if not isinstance(value, dict):
            out.append("%s: no schema" % where)
            return
        if resolved(value, where) is None or "$ref" in value:
            return
        out.extend("%s: %s is not known here" % (where, name) for name in sorted(set(value) - contract.KNOWN))
        types = value.get("type", [])
        for name in [types] if isinstance(types, str) else types:
            if name not in list(contract.TYPES) + ["integer", "number"]:
                out.append("%s: there is no type %s" % (where, name))
        if "object" not in types and set(value) & {"properties", "required"}:
            out.append("%s: properties of what is no object" % where)
        out.extend("%s: %s is required and not described" % (where, name) for name in value.get("required", []) if name not in value.get("properties", {}))
        for name, one in value.get("properties", {}).items():
            schema(one, "%s.%s" % (where, name))
        for name in ("items", "additionalProperties"):
            if isinstance(value.get(name), dict):
                schema(value[name], "%s %s" % (where, name))
        if "array" in types and "items" not in value:
            out.append("%s: an array of what?" % where)
        for one in value.get("oneOf", []):
            schema(one, where + " oneOf")
        if "pattern" in value:
            re.compile(value["pattern"])

    def content(value, where):
        for kind, media in value.items():
            fields("media", media, "%s %s" % (where, kind))
            schema(media.get("schema"), "%s %s" % (where, kind))

    def parameter(value, where):
        value = resolved(value, where)
        if value is None:
            return None
        fields("parameter", value, where)
        if value.get("in") not in ("path", "query", "header"):
            out.append("%s: in %s" % (where, value.get("in")))
        if value.get("in") == "path" and value.get("required") is not True:
            out.append("%s: a parameter of the path is required" % where)
        schema(value.get("schema"), where)
        return value.get("in"), value.get("name")

    def response(value, where):
        value = resolved(value, where)
        if value is None:
            return
        fields("response", value, where)
        content(value.get("content", {}), where)
        for name, header in value.get("headers", {}).items():
            header = resolved(header, where)
            if header is not None:
                fields("header", header, "%s %s" % (where, name))
                schema(header.get("schema"), "%s %s" % (where, name))

    fields("document", document, "document")
    if not re.fullmatch(r"3\.1\.\d+", document.get("openapi", "")):
        out.append("document: openapi is %s" % document.get("openapi"))
    fields("info", document.get("info", {}), "info")
    tags = {tag["name"] for tag in document.get("tags", [])}
    ids = []
    for path, item in document.get("paths", {}).items():
        shared = [parameter(one, path) for one in item.get("parameters", [])]
        for method, operation in item.items():
            if method == "parameters":
                continue
            where = "%s %s" % (method.upper(), path)
            if method not in contract.METHODS:
                out.append("%s: no method" % where)
                continue
            fields("operation", operation, where)
            ids.append(operation.get("operationId"))
            out.extend("%s: the tag %s is not described" % (where, tag) for tag in operation.get("tags", []) if tag not in tags)
            own = shared + [parameter(one, where) for one in operation.get("parameters", [])]
            out.extend("%s: %s is given twice" % (where, one) for one in set(own) if own.count(one) > 1)
            if {name for kind, name in filter(None, own) if kind == "path"} != set(re.findall(r"\{(\w+)\}", path)):
                out.append("%s: parameters of the path" % where)
            body = operation.get("requestBody")
            if body is not None and (body := resolved(body, where)) is not None:
                fields("requestBody", body, where)
                content(body.get("content", {}), where)
            if not any(status.startswith("2") for status in operation.get("responses", {})):
                out.append("%s: nothing is answered" % where)
            for status, one in operation.get("responses", {}).items():
                if not re.fullmatch(r"[1-5]\d\d|default", status):
                    out.append("%s: status %s" % (where, status))
                response(one, "%s %s" % (where, status))
    out.extend("operationId %s is given twice" % one for one in set(ids) if ids.count(one) > 1)
    components = document.get("components", {})
    fields("components", components, "components")
    for name, one in components.get("schemas", {}).items():
        schema(one, name)
    for name, one in components.get("parameters", {}).items():
        parameter(one, name)
    for name, one in components.get("responses", {}).items():
        response(one, name)
    out.extend("%s is used by nothing" % place for place in unused(document))
    return out


class Holder:
    def __init__(self, document):
        self.document = document


def unused(document):
    used = set(re.findall(r'"#/components/([^"]+)"', json.dumps(document)))
    for kind, entries in document.get("components", {}).items():
        if kind != "securitySchemes":
            yield from ("%s/%s" % (kind, name) for name in entries if "%s/%s" % (kind, name) not in used)


def test_the_document_is_openapi_3_1():
    assert not faults(DOCUMENT)


def changed(change):
    copy = json.loads(json.dumps(DOCUMENT))
    change(copy)
    return copy


@pytest.mark.parametrize("change, told", [
    (lambda d: d.update(openapi="3.0.3"), "openapi is 3.0.3"),
    (lambda d: d["components"]["schemas"]["Node"]["properties"]["name"].update({"$ref": "#/components/schemas/Nome"}), "leads nowhere"),
    (lambda d: d["components"]["schemas"]["Node"]["properties"].update(x={"type": "string", "nullable": True}), "nullable is not known"),
    (lambda d: d["components"]["schemas"]["Node"]["properties"].update(x={"type": "text"}), "no type text"),
    (lambda d: d["components"]["schemas"]["Node"]["required"].append("x"), "x is required and not described"),
    (lambda d: d["components"]["schemas"].update(Nobody={"type": "object"}), "schemas/Nobody is used by nothing"),
    (lambda d: d["paths"]["/v1/jobs/{id}"].pop("parameters"), "parameters of the path"),
    (lambda d: d["paths"]["/v1/jobs"]["get"].update(operationId="addJob"), "addJob is given twice"),
    (lambda d: d["paths"]["/v1/jobs"]["get"]["responses"].pop("200"), "nothing is answered"),
    (lambda d: d["paths"]["/v1/jobs"].update(fetch={}), "no method"),
])
def test_a_fault_is_found(change, told):
    assert any(told in fault for fault in faults(changed(change)))


@pytest.mark.parametrize("value, told", [
    ({"name": "n1", "status": "Leader"}, None),
    ({"name": "n1"}, ".status is missing"),
    ({"name": "n1", "status": "Boss"}, "none of the words"),
    ({"name": 1, "status": "Leader"}, ".name is no string"),
    ({"name": "n1", "status": "Leader", "more": 1}, ".more is not described"),
    ({"name": "n1", "status": "Leader", "services": {"etcd": "Boss"}}, "none of the words"),
])
def test_the_contract_finds_what_does_not_fit(value, told):
    found = contract.Contract(DOCUMENT).check({"$ref": "#/components/schemas/Manager"}, value, "")
    assert (found == []) if told is None else any(told in fault for fault in found), found
