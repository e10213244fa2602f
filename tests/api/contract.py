"""Holds answers against the description of the interface: status, type, headers, and every field of every object. Strict where a
client need not be: a field that is not described is a fault. Remembers what it has seen, so that a test can ask whether everything
that is described exists."""

import json
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
# What of JSON Schema the document may use; anything else here would be a promise that nobody checks.
SAID = {"description", "default", "format"}
KNOWN = {"$ref", "type", "enum", "properties", "required", "additionalProperties", "items", "oneOf", "pattern", "minLength", "maxLength", "minimum", "maximum",
         "minItems", "maxItems"} | SAID
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
METHODS = ("get", "put", "post", "patch", "delete")
OUR_HEADERS = ("Location", "ETag", "Idempotency-Replayed")


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name]) and not (name != "boolean" and isinstance(value, bool))


class Contract:
    def __init__(self, document):
        self.document = document
        self.seen_fields, self.seen_answers = set(), set()
        self.routes = []
        for path, item in document["paths"].items():
            pattern = re.compile("/".join("[^/]+" if part.startswith("{") else re.escape(part) for part in path.split("/")))
            self.routes.append((path.count("{"), pattern, path, item))
        self.routes.sort(key=lambda route: route[0])  # a literal part wins

    def resolve(self, value):
        while "$ref" in value:
            place = self.document
            for part in value["$ref"].removeprefix("#/").split("/"):
                place = place[part]
            value = place
        return value

    def find(self, path):
        return next(((template, item) for _, pattern, template, item in self.routes if pattern.fullmatch(path)), (None, None))

    # -- one answer --

    def faults(self, method, target, status, headers, body):
        template, item = self.find(target.split("?")[0])
        operation = (item or {}).get(method.lower())
        if method in ("HEAD", "OPTIONS"):
            return []
        where = "%s %s -> %d" % (method, template or target, status)
        if operation is None:
            return [where + ": not described"] if status < 400 else self.of_content(where, self.problem(), headers, body)
        responses = operation["responses"]
        if str(status) not in responses and (status < 400 or "default" not in responses):
            return [where + ": this status is not described"]
        self.seen_answers.add((method, template, str(status)))
        response = self.resolve(responses.get(str(status), responses.get("default")))
        out = self.of_content(where, response, headers, body)
        described = response.get("headers", {})
        for name in OUR_HEADERS:
            if headers.get(name) is not None and name not in described:
                out.append("%s: the header %s is not described" % (where, name))
            if self.resolve(described.get(name, {})).get("required") and headers.get(name) is None:
                out.append("%s: no header %s" % (where, name))
        return out

    def problem(self):
        return self.document["components"]["responses"]["Problem"]

    def of_content(self, where, response, headers, body):
        content = response.get("content")
        if not content:
            return [where + ": a body that is not described"] if body else []
        kind = headers.get_content_type()
        if kind not in content:
            return ["%s: %s is not described" % (where, kind)]
        if kind not in ("application/json", "application/problem+json"):
            return []
        return ["%s: %s" % (where, fault) for fault in self.check(content[kind]["schema"], json.loads(body), "")]

    # -- one value --

    def check(self, schema, value, place):
        schema = self.resolve(schema)
        if not schema:
            return []
        out = []
        if "oneOf" in schema:
            fits = [option for option in schema["oneOf"] if not self.check(option, value, place)]
            return [] if len(fits) == 1 else ["%s fits %d of oneOf: %r" % (place, len(fits), value)]
        types = schema.get("type")
        if types is not None:
            types = [types] if isinstance(types, str) else types
            if not any(is_type(value, name) for name in types):
                return ["%s is no %s: %.100r" % (place, " or ".join(types), value)]
        if "enum" in schema and value is not None and value not in schema["enum"]:
            out.append("%s: %r is none of the words" % (place, value))
        if isinstance(value, str):
            if schema.get("format") == "date-time" and not DATE.fullmatch(value):
                out.append("%s: %r is no time" % (place, value))
            if "pattern" in schema and not re.search(schema["pattern"], value):
                out.append("%s: %r does not fit its pattern" % (place, value))
            if len(value) > schema.get("maxLength", len(value)) or len(value) < schema.get("minLength", 0):
                out.append("%s: the length of %.100r" % (place, value))
        if is_type(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            out.append("%s: %r is out of its range" % (place, value))
        if isinstance(value, list):
            for number, one in enumerate(value):
                out += self.check(schema.get("items", {}), one, "%s[%d]" % (place, number))
        if isinstance(value, dict):
            out += self.check_object(schema, value, place)
        return out

    def check_object(self, schema, value, place):
        out = ["%s.%s is missing" % (place, name) for name in schema.get("required", []) if name not in value]
        properties = schema.get("properties")
        others = schema.get("additionalProperties", properties is None)
        for name, one in value.items():
            if properties and name in properties:
                self.seen_fields.add((id(schema), name))
                out += self.check(properties[name], one, "%s.%s" % (place, name))
            elif others is False:
                out.append("%s.%s is not described" % (place, name))
            elif isinstance(others, dict):
                out += self.check(others, one, "%s.%s" % (place, name))
        return out

    # -- everything that is described --

    def operations(self):
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield method.upper(), path, item[method]

    def answers_never_seen(self):
        for method, path, operation in self.operations():
            for status in operation["responses"]:
                if status != "default" and (method, path, status) not in self.seen_answers:
                    yield "%s %s -> %s" % (method, path, status)

    def fields_never_seen(self):
        """Fields of answers, as `path of the answer or name of the schema.field`."""
        done = set()

        def walk(schema, name):
            if "$ref" in schema:
                name = schema["$ref"].split("/")[-1]
            schema = self.resolve(schema)
            if id(schema) in done:
                return
            done.add(id(schema))
            for option in schema.get("oneOf", []):
                yield from walk(option, name)
            for field, one in schema.get("properties", {}).items():
                if (id(schema), field) not in self.seen_fields:
                    yield "%s.%s" % (name, field)
                yield from walk(one, "%s.%s" % (name, field))
            if "items" in schema:
                yield from walk(schema["items"], name)
            if isinstance(schema.get("additionalProperties"), dict):
                yield from walk(schema["additionalProperties"], name)

        for method, path, operation in self.operations():
            for response in operation["responses"].values():
                for kind, content in self.resolve(response).get("content", {}).items():
                    if "json" in kind:
                        yield from walk(content["schema"], "%s %s" % (method, path))


def watched(daemon, contract, faults):
    """From now on every answer that the daemon gives to this test is held against the contract."""
    ask = daemon.ask

    def checked(method, path, body=None, headers=None, via="unix"):
        answer = ask(method, path, body, headers, via)
        faults.extend(contract.faults(method, path, answer.status, answer.headers, answer.body))
        return answer

    daemon.ask = checked
    return daemon
