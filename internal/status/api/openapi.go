package api

import (
	"cmp"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"time"

	"baton/internal/text"
)

// object is a JSON object.
type object = map[string]any

func (a *API) askOpenAPI(_ *http.Request) (any, error) { return description(a.Version), nil }

// description returns the OpenAPI 3.1 description of the API. It is generated from the endpoints and their types, so it cannot differ from
// them.
func description(version string) object {
	all := schemas{}
	paths := object{}
	add := func(path, method string, operation object) {
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = operation
	}
	for _, e := range endpoints() {
		add(Root+e.path, e.method, operationOf(e, all))
	}
	add(Root+"/stream", http.MethodGet, object{
		"operationId": "getStream",
		"summary":     "The state again after each change, at most once a second, as server-sent events named status; at most 32 streams.",
		"responses": object{
			"200": object{"description": "Events whose data is what /status answers.",
				"content": object{"text/event-stream": object{"schema": object{"type": "string"}}}},
			"default": failure(all),
		},
	})
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "baton", "version": cmp.Or(version, "unknown"),
			"description": "What a node of baton answers, and the orders that it takes. Requests for orders, records and output " +
				"need the node's token; its admin socket needs no token.",
		},
		"paths": paths,
		"components": object{
			"schemas": map[string]object(all),
			"securitySchemes": object{
				"token": object{"type": "http", "scheme": "bearer",
					"description": "The token in http.token_file. The node accepts it only over TLS, or from its own host."},
			},
		},
	}
}

func operationOf(e endpoint, all schemas) object {
	op := object{
		"operationId": strings.ToLower(e.method) + nameOf(e.path),
		"summary":     e.summary,
		"responses": object{
			"200": object{"description": "Done.",
				"content": object{"application/json": object{"schema": all.of(reflect.TypeOf(e.reply), false)}}},
			"default": failure(all),
		},
	}
	if e.private {
		op["security"] = []object{{"token": []string{}}}
	}
	parameters := []object{}
	for _, m := range inPath.FindAllStringSubmatch(e.path, -1) {
		parameters = append(parameters, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range e.query {
		parameters = append(parameters, object{"name": p.name, "in": "query", "description": p.summary, "schema": object{"type": p.kind}})
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if e.body != nil {
		op["requestBody"] = object{"content": object{"application/json": object{"schema": all.of(reflect.TypeOf(e.body), false)}}}
	}
	return op
}

var inPath = regexp.MustCompile(`\{([a-z]+)\}`)

// nameOf returns a path as one word. For example, /jobs/{job}/run becomes JobsJobRun.
func nameOf(path string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return !(r >= 'a' && r <= 'z') }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func failure(all schemas) object {
	return object{"description": "The request failed; error says why, and what to do.",
		"content": object{"application/json": object{"schema": all.of(reflect.TypeFor[apiError](), false)}}}
}

// schemas contains the types used so far, by name.
type schemas map[string]object

// of returns the schema of a type. If the argument optional is true, a missing value is omitted instead of being null.
func (all schemas) of(t reflect.Type, optional bool) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[text.Seconds]():
		return object{"type": "number"}
	case t.Kind() == reflect.Pointer:
		inner := all.of(t.Elem(), false)
		if optional {
			return inner
		}
		return object{"anyOf": []object{inner, {"type": "null"}}}
	case t.Kind() == reflect.Slice:
		return object{"type": "array", "items": all.of(t.Elem(), false)}
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface:
		return object{"type": "object"}
	case t.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": all.of(t.Elem(), false)}
	case t.Kind() == reflect.Struct:
		return all.ofStruct(t)
	}
	return object{"type": jsonType(t.Kind())}
}

func jsonType(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	default:
		return "integer"
	}
}

func (all schemas) ofStruct(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	ref := object{"$ref": "#/components/schemas/" + name}
	if all[name] != nil {
		return ref
	}
	properties, required := object{}, []string{}
	schema := object{"type": "object", "properties": properties}
	all[name] = schema // set before the fields are visited, because a field may have the same type
	for _, f := range reflect.VisibleFields(t) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" || !f.IsExported() || tag == "-" || tag == "" {
			continue
		}
		optional := strings.HasPrefix(options, "omit")
		properties[tag] = all.of(f.Type, optional)
		if !optional {
			required = append(required, tag)
		}
	}
	if len(required) > 0 && !strings.HasSuffix(name, "Body") {
		schema["required"] = required
	}
	return ref
}
