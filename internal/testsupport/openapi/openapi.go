// Package openapi compares the answers of an API with the schema that describes them.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ReplyMisfit describes how a reply differs from the OpenAPI document doc, which describes the replies of an operation for each status. It
// returns "" if the reply fits.
func ReplyMisfit(doc map[string]any, method, path string, status int, body []byte) string {
	at := method + " " + path
	which := "default"
	if status == http.StatusOK {
		which = "200"
	}
	schema := dig(doc, "paths", path, strings.ToLower(method), "responses", which, "content", "application/json", "schema")
	if schema == nil {
		return fmt.Sprintf("%s: status %d is not described", at, status)
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fmt.Sprintf("%s: %v: %s", at, err, body)
	}
	return SchemaMisfit(doc, schema, v, at)
}

func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// SchemaMisfit describes how a value differs from its schema: a field is missing, has another type, or is not in the schema. doc is the
// OpenAPI document of the schema. SchemaMisfit returns "" if the value fits. It implements only the part of JSON Schema that the API's
// description uses.
func SchemaMisfit(doc map[string]any, schema any, v any, at string) string {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		return SchemaMisfit(doc, dig(doc, "components", "schemas", name), v, at)
	}
	if either, ok := s["anyOf"].([]any); ok {
		var why []string
		for _, one := range either {
			w := SchemaMisfit(doc, one, v, at)
			if w == "" {
				return ""
			}
			why = append(why, w)
		}
		return strings.Join(why, ", and ")
	}
	wrong := fmt.Sprintf("%s: %v is no %v", at, v, s["type"])
	switch v := v.(type) {
	case map[string]any:
		if s["type"] != "object" {
			return wrong
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				return fmt.Sprintf("%s: no %v", at, name)
			}
		}
		properties, closed := s["properties"].(map[string]any)
		for name, value := range v {
			of, known := properties[name]
			if extra, ok := s["additionalProperties"]; ok {
				of, known = extra, true
			}
			if closed && !known {
				return fmt.Sprintf("%s: %s is not described", at, name)
			}
			if known {
				if why := SchemaMisfit(doc, of, value, at+"."+name); why != "" {
					return why
				}
			}
		}
		return ""
	case []any:
		if s["type"] != "array" {
			return wrong
		}
		for i, value := range v {
			if why := SchemaMisfit(doc, s["items"], value, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
		return ""
	case string:
		if _, err := time.Parse(time.RFC3339, v); s["format"] == "date-time" && err != nil {
			return wrong
		}
		if s["type"] == "string" {
			return ""
		}
	case bool:
		if s["type"] == "boolean" {
			return ""
		}
	case float64:
		if s["type"] == "number" || s["type"] == "integer" && v == float64(int64(v)) {
			return ""
		}
	case nil:
		if s["type"] == "null" {
			return ""
		}
	}
	return wrong
}
