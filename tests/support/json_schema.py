"""The part of JSON Schema draft-07 that the schemas in config/ use; standard library only.

    schema = Schema(path)
    schema.faults(document)     # -> ["/pools/pages: …"]; empty when the document is valid

A keyword that this module does not know is an error, so that no rule is ignored in silence.
"""

import json
import pathlib
import re

ANNOTATIONS = {"$schema", "title", "description", "default", "definitions"}
OF_IF = {"then", "else"}  # mean nothing alone


def is_type(value, name):
    """JSON types; true is no number, and 1.0 is an integer."""
    if name == "boolean":
        return isinstance(value, bool)
    if name in ("number", "integer"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (name == "number" or float(value).is_integer())
    classes = {"object": dict, "array": list, "string": str, "null": type(None)}
    return isinstance(value, classes[name])


def same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)


class Schema:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.root = json.loads(self.path.read_text())

    def faults(self, value):
        return list(self._faults(self.root, value, ""))

    def resolve(self, reference):
        """Another schema by `#/definitions/NAME`, with its file in front when it is not this one."""
        file, _, pointer = reference.partition("#")
        owner = Schema(self.path.parent / file) if file else self
        node = owner.root
        for step in pointer.strip("/").split("/"):
            node = node[step]
        return owner, node

    def _faults(self, schema, value, at):
        for keyword, rule in schema.items():
            if keyword in ANNOTATIONS | OF_IF:
                continue
            check = getattr(self, "_" + keyword.lstrip("$"), None)
            if check is None:
                raise ValueError(f"{self.path}: keyword {keyword} is not known here")
            yield from check(rule, value, at, schema)

    def _ref(self, reference, value, at, _):
        owner, node = self.resolve(reference)
        yield from owner._faults(node, value, at)

    def _type(self, name, value, at, _):
        if not is_type(value, name):
            yield f"{at}: {value!r} is no {name}"

    def _enum(self, choices, value, at, _):
        if not any(same(value, choice) for choice in choices):
            yield f"{at}: {value!r} is none of {choices}"

    def _pattern(self, pattern, value, at, _):
        if isinstance(value, str) and not re.search(pattern, value):
            yield f"{at}: {value!r} does not match {pattern}"

    def _minLength(self, least, value, at, _):
        if isinstance(value, str) and len(value) < least:
            yield f"{at}: shorter than {least}"

    def _minimum(self, least, value, at, _):
        if is_type(value, "number") and value < least:
            yield f"{at}: {value} is below {least}"

    def _maximum(self, most, value, at, _):
        if is_type(value, "number") and value > most:
            yield f"{at}: {value} is above {most}"

    def _items(self, schema, value, at, _):
        for index, item in enumerate(value if isinstance(value, list) else []):
            yield from self._faults(schema, item, f"{at}/{index}")

    def _minItems(self, least, value, at, _):
        if isinstance(value, list) and len(value) < least:
            yield f"{at}: fewer than {least} items"

    def _maxItems(self, most, value, at, _):
        if isinstance(value, list) and len(value) > most:
            yield f"{at}: more than {most} items"

    def _required(self, names, value, at, _):
        for name in names if isinstance(value, dict) else []:
            if name not in value:
                yield f"{at}: {name} is missing"

    def _minProperties(self, least, value, at, _):
        if isinstance(value, dict) and len(value) < least:
            yield f"{at}: fewer than {least} keys"

    def _properties(self, schemas, value, at, _):
        for name, item in value.items() if isinstance(value, dict) else []:
            if name in schemas:
                yield from self._faults(schemas[name], item, f"{at}/{name}")

    def _propertyNames(self, schema, value, at, _):
        for name in value if isinstance(value, dict) else []:
            yield from self._faults(schema, name, f"{at}/{name}")

    def _additionalProperties(self, rule, value, at, schema):
        known = schema.get("properties", {})
        for name, item in value.items() if isinstance(value, dict) else []:
            if name in known:
                continue
            if rule is False:
                yield f"{at}: unknown key {name}"
            else:
                yield from self._faults(rule, item, f"{at}/{name}")

    def _anyOf(self, schemas, value, at, _):
        tried = [list(self._faults(schema, value, at)) for schema in schemas]
        if all(tried):
            yield f"{at}: fits none of the forms: {'; '.join(faults[0] for faults in tried)}"

    def _allOf(self, schemas, value, at, _):
        for schema in schemas:
            yield from self._faults(schema, value, at)

    def _not(self, schema, value, at, _):
        if not list(self._faults(schema, value, at)):
            yield f"{at}: fits what it must not: {schema}"

    def _if(self, condition, value, at, schema):
        then = "else" if list(self._faults(condition, value, at)) else "then"
        yield from self._faults(schema.get(then, {}), value, at)

    def _oneOf(self, schemas, value, at, _):
        fitting = sum(not list(self._faults(schema, value, at)) for schema in schemas)
        if fitting != 1:
            yield f"{at}: fits {fitting} of the forms instead of one"
