package status

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// described is the description as whoever asks for it gets it.
func described(t *testing.T) map[string]any {
	t.Helper()
	rec := get(New(Config{Source: fixed(Snapshot{}), Health: standby, Version: "1.2.3"}), "/api/v1/openapi.json")
	var doc map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%d %v", rec.Code, err)
	}
	return doc
}

func dig(v any, keys ...string) any {
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// misfit says where a value is not as its schema wants it: a field too few, of another
// kind, or one that the schema does not have.
func misfit(doc map[string]any, schema any, v any, at string) string {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		return misfit(doc, dig(doc, "components", "schemas", name), v, at)
	}
	if either, ok := s["anyOf"].([]any); ok {
		var why []string
		for _, one := range either {
			w := misfit(doc, one, v, at)
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
				if why := misfit(doc, of, value, at+"."+name); why != "" {
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
			if why := misfit(doc, s["items"], value, fmt.Sprintf("%s[%d]", at, i)); why != "" {
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

// wantDescribed fails unless an answer is as the description has it.
func wantDescribed(t *testing.T, doc map[string]any, method, path string, code int, body []byte) {
	t.Helper()
	responses := dig(doc, "paths", path, strings.ToLower(method), "responses")
	which := "default"
	if code == http.StatusOK {
		which = "200"
	}
	schema := dig(responses, which, "content", "application/json", "schema")
	var v any
	if err := json.Unmarshal(body, &v); err != nil || schema == nil {
		t.Errorf("%s %s: %d: %v: schema %v:\n%s", method, path, code, err, schema, body)
		return
	}
	if why := misfit(doc, schema, v, method+" "+path); why != "" {
		t.Error(why)
	}
}

func TestTheDescriptionTellsOfEveryRouteAndFieldAndNothingElse(t *testing.T) {
	doc := described(t)
	if dig(doc, "openapi") != "3.1.0" || dig(doc, "info", "version") != "1.2.3" {
		t.Errorf("%v %v", doc["openapi"], doc["info"])
	}
	var want, got []string
	for _, e := range endpoints() {
		want = append(want, e.method+" "+apiRoot+e.path)
	}
	want = append(want, "GET "+apiRoot+"/stream")
	s := New(Config{Source: fixed(Snapshot{}), Health: standby})
	ids := map[any]bool{}
	for path, operations := range doc["paths"].(map[string]any) {
		for method, op := range operations.(map[string]any) {
			got = append(got, strings.ToUpper(method)+" "+path)
			if id := dig(op, "operationId"); ids[id] || id == nil {
				t.Errorf("%s %s: operationId %v", method, path, id)
			} else {
				ids[id] = true
			}
			// The server has that route, and no other method there.
			r, _ := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), path, nil)
			if allowed := allowedMethods(s.mux, r); !slices.Contains(allowed, strings.ToUpper(method)) {
				t.Errorf("%s %s is described, and not served: %v", method, path, allowed)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("described:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	met := schemas{}
	for _, e := range endpoints() {
		for _, v := range []any{e.reply, e.body} {
			if v != nil {
				met.of(reflect.TypeOf(v), false)
				wantFields(t, doc, reflect.TypeOf(v))
			}
		}
	}
	met.of(reflect.TypeFor[apiError](), false)
	types := dig(doc, "components", "schemas").(map[string]any)
	if len(types) != len(met) {
		t.Errorf("%d types are described, and %d are used", len(types), len(met))
	}
}

// wantFields fails unless the description has the fields that encoding/json writes of a
// value all of whose fields are set.
func wantFields(t *testing.T, doc map[string]any, typ reflect.Type) {
	t.Helper()
	v := reflect.New(typ).Elem()
	fillIn(v, 0)
	text, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	if why := misfit(doc, reflectSchema(typ), fields, typ.Name()); why != "" {
		t.Error(why)
	}
	if m, ok := fields.(map[string]any); ok && typ.Kind() == reflect.Struct {
		name := strings.ToUpper(typ.Name()[:1]) + typ.Name()[1:]
		properties, _ := dig(doc, "components", "schemas", name, "properties").(map[string]any)
		if len(properties) != len(m) {
			t.Errorf("%s: %d fields are described, and there are %d", name, len(properties), len(m))
		}
	}
}

func reflectSchema(t reflect.Type) any {
	text, _ := json.Marshal(schemas{}.of(t, false))
	var v any
	_ = json.Unmarshal(text, &v)
	return v
}

// fillIn sets everything to something.
func fillIn(v reflect.Value, depth int) {
	if depth > 6 || !v.CanSet() && v.Kind() != reflect.Struct {
		return
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1e9, 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillIn(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillIn(v.Index(0), depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type().Elem().Kind() != reflect.Interface {
			one := reflect.New(v.Type().Elem()).Elem()
			fillIn(one, depth+1)
			v.SetMapIndex(reflect.ValueOf("x"), one)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fillIn(v.Field(i), depth+1)
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	}
}
