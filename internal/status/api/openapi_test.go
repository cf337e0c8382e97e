package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/status/auth"
	"baton/internal/status/state"
	"baton/internal/status/statustest"
	"baton/internal/status/web"
	"baton/internal/testsupport/openapi"
)

// served returns the API without the checks of a server.
func served() *http.ServeMux {
	log := zap.NewNop()
	w := state.New(state.Config{Source: statustest.Fixed(diagnose.Snapshot{}), Leading: func() bool { return false }, Log: log})
	mux := http.NewServeMux()
	New(Config{Watch: w, Auth: auth.New("", log), Places: web.NewRequestLimiter(log), Version: "1.2.3", Log: log}).Routes(mux,
		make(chan struct{}, 1))
	return mux
}

// openAPI returns the OpenAPI description as a client gets it.
func openAPI(t *testing.T) map[string]any {
	t.Helper()
	rec := statustest.Get(served(), "/api/v1/openapi.json")
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

func TestTheDescriptionTellsOfEveryRouteAndFieldAndNothingElse(t *testing.T) {
	doc := openAPI(t)
	if dig(doc, "openapi") != "3.1.0" || dig(doc, "info", "version") != "1.2.3" {
		t.Errorf("%v %v", doc["openapi"], doc["info"])
	}
	if kind := dig(doc, "components", "schemas", "Leader", "properties", "ttl_seconds", "type"); kind != "number" {
		t.Errorf("a lease is a %v, want a number", kind)
	}
	var want, got []string
	for _, e := range endpoints() {
		want = append(want, e.method+" "+Root+e.path)
	}
	want = append(want, "GET "+Root+"/stream")
	mux := served()
	ids := map[any]bool{}
	for path, operations := range doc["paths"].(map[string]any) {
		for method, op := range operations.(map[string]any) {
			got = append(got, strings.ToUpper(method)+" "+path)
			if id := dig(op, "operationId"); ids[id] || id == nil {
				t.Errorf("%s %s: operationId %v", method, path, id)
			} else {
				ids[id] = true
			}
			// The API must have the route.
			r, _ := http.NewRequestWithContext(t.Context(), strings.ToUpper(method), path, nil)
			if _, pattern := mux.Handler(r); pattern != strings.ToUpper(method)+" "+path {
				t.Errorf("%s %s is described, and served by %q", method, path, pattern)
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

// wantFields fails the test unless the description has the fields that encoding/json writes for a value with all fields set.
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
	if why := openapi.SchemaMisfit(doc, reflectSchema(typ), fields, typ.Name()); why != "" {
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

// fillIn sets every field to some value.
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
		for _, field := range v.Fields() {
			fillIn(field, depth+1)
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
