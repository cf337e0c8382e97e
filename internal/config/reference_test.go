package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

const (
	referencePage = "../../docs/reference/configuration.md"
	everySetting  = "testdata/every_setting.yaml"
)

// TestReferenceIsUpToDate compares the page with the code. Types and names come from the structs, meanings and defaults come from their
// comments, and examples come from a valid file.
//
//	go test ./internal/config -run Reference -update
//
// writes the page.
func TestReferenceIsUpToDate(t *testing.T) {
	want := reference(t)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the code says: go test ./internal/config -run Reference -update", referencePage)
	}
}

// The flag update belongs to the test binary. Its value is looked up where the value is needed.
var _ = flag.Bool("update", false, "write docs/reference/configuration.md and schema.json anew")

// reference returns the whole page.
func reference(t *testing.T) string {
	t.Helper()
	r := referenceWriter{t: t, docs: structDocs(t), examples: examples(t), written: map[reflect.Type]written{}}
	r.WriteString(`# Configuration reference

<!-- Written by: go test ./internal/config -run Reference -update. Do not edit: the comments of internal/config say all of it. -->

One YAML file, ` + "`/etc/baton/baton.yaml`" + `, the same on all nodes of one election; only ` + "`node`" + ` may differ. ` + "`baton config init`" + ` writes one to
begin with, ` + "`baton config check`" + ` names every mistake with its line, ` + "`baton config show`" + ` prints the settings in effect,
` + "`baton config schema`" + ` prints what [editors](../how-to/editor.md) complete and check it by.

- A key that does not exist is an error. So is one that is set twice, an anchor, an alias and a merge key.
- Flags override environment variables (` + "`baton help environment`" + `), these override the file, and the file overrides the defaults.
- *duration* is written ` + "`500ms`, `10s`, `1m30s`, `720h`" + `. In every setting a zero means "not set", never "none".
- *text $*: ` + "`${NAME}`" + ` is replaced from the environment, ` + "`$${NAME}`" + ` stands for itself. Nowhere else.
- ` + "`[]`" + ` in a path is each item of a list, a name in capitals is a name that you choose.
- *restart*: a change takes a restart, on one host after the other. Everything else is taken by ` + "`baton reload`" + `.

`)
	r.section("", reflect.TypeFor[Config](), "", false)
	return strings.TrimRight(r.String(), "\n") + "\n"
}

type referenceWriter struct {
	strings.Builder
	t        *testing.T
	docs     map[string]structDoc
	examples map[string]string
	written  map[reflect.Type]written
}

// written is the section that explains a struct, so that other sections can refer to it.
type written struct {
	path    string
	restart bool
}

// section writes the settings of one struct, and then the settings of the structs inside of it.
func (r *referenceWriter) section(path string, typ reflect.Type, about string, restart bool) {
	doc := r.docs[typ.Name()]
	r.written[typ] = written{path, restart}
	title := "The file"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(r, "## %s\n\n", title)
	if about == "" {
		about = doc.about
	}
	if path != "" && about != "" {
		fmt.Fprintf(r, "%s\n\n", about)
	}
	if restart {
		r.WriteString("Takes a restart.\n\n")
	}
	if typ == reflect.TypeFor[Store]() {
		r.WriteString("See [`redis`](#redis): but there is no `quorum`, no default of `url`, and a change takes no restart.\n\n")
		return
	}
	r.WriteString("| setting | type | default | meaning | example |\n|---|---|---|---|---|\n")
	var inner []func()
	defaults := false
	for _, f := range reflect.VisibleFields(typ) {
		key := keyOf(f)
		if key == "" || f.Anonymous {
			continue
		}
		owner := typ
		if len(f.Index) > 1 { // the field belongs to an embedded struct
			owner = typ.FieldByIndex(f.Index[:1]).Type
		}
		d, ok := r.docs[owner.Name()].fields[f.Name]
		at := strings.TrimPrefix(path+"."+key, ".")
		below, kind := elementOf(f.Type)
		if !ok && below == nil {
			r.t.Errorf("%s.%s has no comment", owner.Name(), f.Name)
		}
		again := restart || path == "" && restarts(key, f.Type)
		if below != nil {
			d.meaning = strings.TrimSpace(d.meaning)
			step := at + map[string]string{"list": "[]", "map": ".NAME", "": ""}[kind]
			if first, ok := r.written[below]; ok {
				if owner == typ || path != "jobs[]" {
					r.row(key, typeName(f), join(d.meaning, first.reference(again)))
				}
				continue
			}
			r.row(key, typeName(f), join(d.meaning, "[Below](#"+anchor(step)+")."+restartMark(again && path == "")))
			inner = append(inner, func() { r.section(step, below, "", again) })
			continue
		}
		example, ok := r.examples[at]
		if !ok {
			r.t.Errorf("%s has no example in %s", at, everySetting)
		}
		if owner != typ && path == "jobs[]" {
			if !defaults {
				fmt.Fprintf(r, "| every setting of [`defaults`](#defaults) | | its value there | For this job alone. | |\n")
			}
			defaults = true
			continue
		}
		if !restart && restarts(path, typ, f.Index...) {
			d.meaning += " *Restart.*"
		}
		if d.def == "" {
			r.t.Errorf("%s.%s: its comment tells no default, nor that it is required", owner.Name(), f.Name)
		}
		fmt.Fprintf(r, "| `%s` | %s | %s | %s | `%s` |\n", key, typeName(f), oneLine(d.def), oneLine(d.meaning), strings.ReplaceAll(example, "|", "\\|"))
	}
	r.WriteString("\n")
	for _, f := range inner {
		f()
	}
}

// row writes the table row of a setting that is a section.
func (r *referenceWriter) row(key, kind, meaning string) {
	fmt.Fprintf(r, "| `%s` | %s | – | %s | |\n", key, kind, oneLine(meaning))
}

// reference returns a reference to a section that was written for another setting.
func (w written) reference(restart bool) string {
	text := "As [`" + w.path + "`](#" + anchor(w.path) + ")"
	if w.restart && !restart {
		text += ", without a restart"
	}
	return text + "."
}

// restarts reports whether a change of a setting in a section requires a restart. Without the name of a setting it checks the first
// setting.
func restarts(key string, typ reflect.Type, setting ...int) bool {
	old, changed := Default(), Default()
	v := reflect.ValueOf(&changed).Elem()
	for f := range v.Type().Fields() {
		if key == "" || keyOf(f) != key || f.Type.Kind() != reflect.Struct || typ != f.Type {
			continue
		}
		if len(setting) == 0 {
			setting = []int{0}
		}
		switch w := v.FieldByIndex(f.Index).FieldByIndex(setting); w.Kind() {
		case reflect.String:
			w.SetString("another")
		case reflect.Int, reflect.Int64:
			w.SetInt(w.Int() + 1)
		}
	}
	return changed.Reloadable(old) != nil
}

func restartMark(is bool) string {
	if is {
		return " *Restart.*"
	}
	return ""
}

func join(parts ...string) string {
	return strings.TrimSpace(strings.Join(parts, " "))
}

func oneLine(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "\\<").Replace(strings.Join(strings.Fields(s), " "))
}

// anchor returns the anchor of a heading.
func anchor(heading string) string {
	return regexp.MustCompile(`[^a-z0-9_-]`).ReplaceAllString(strings.ToLower(heading), "")
}

// elementOf returns the struct in a setting, and whether the setting is the struct itself, a list or a map.
func elementOf(t reflect.Type) (of reflect.Type, kind string) {
	switch t.Kind() {
	case reflect.Pointer:
		return elementOf(t.Elem())
	case reflect.Slice:
		kind, t = "list", t.Elem()
	case reflect.Map:
		kind, t = "map", t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, ""
	}
	return t, kind
}

func typeName(f reflect.StructField) string {
	text := "text"
	if f.Tag.Get("config") == "expand" {
		text = "text $"
	}
	name := func(t reflect.Type) string {
		switch {
		case t == reflect.TypeFor[time.Duration]():
			return "duration"
		case t.Kind() == reflect.Bool:
			return "boolean"
		case t.Kind() == reflect.Int:
			return "integer"
		case t.Kind() == reflect.Struct:
			return "section"
		}
		return text
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[Command]():
		return "list of texts, or one text"
	case t.Kind() == reflect.Slice:
		return "list of " + strings.Replace(name(t.Elem())+"s", "text $s", "texts $", 1)
	case t.Kind() == reflect.Map:
		return "name: " + name(t.Elem())
	}
	return name(t)
}

// examples reads a value for each path from the file that contains all settings, and checks every document in the file.
func examples(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for i, document := range everyDocument(t) {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(Input{Path: path, Env: testSecrets}); err != nil {
			t.Errorf("%s, document %d: %v", everySetting, i+1, err)
		}
		var tree yaml.MapSlice
		if err := yaml.UnmarshalWithOptions([]byte(document), &tree, yaml.UseOrderedMap()); err != nil {
			t.Fatal(err)
		}
		gather(all, "", tree, reflect.TypeFor[Config]())
	}
	return all
}

// gather stores the first value of each path.
func gather(all map[string]string, path string, v any, typ reflect.Type) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	below, kind := elementOf(typ)
	switch v := v.(type) {
	case yaml.MapSlice:
		for _, item := range v {
			name := fmt.Sprint(item.Key)
			if kind == "map" {
				gather(all, path+".NAME", item.Value, below)
				continue
			}
			if typ.Kind() != reflect.Struct { // such as env: {LEVEL: info}
				note(all, path, fmt.Sprintf("{%s: %v}", name, item.Value))
				continue
			}
			for _, f := range reflect.VisibleFields(typ) {
				if keyOf(f) == name {
					gather(all, strings.TrimPrefix(path+"."+name, "."), item.Value, f.Type)
				}
			}
		}
	case []any:
		if below != nil {
			for _, item := range v {
				gather(all, path+"[]", item, below)
			}
			return
		}
		var texts []string
		for _, item := range v {
			texts = append(texts, fmt.Sprint(item))
		}
		note(all, path, "["+strings.Join(texts, ", ")+"]")
	default:
		note(all, path, fmt.Sprint(v))
	}
}

func note(all map[string]string, path, value string) {
	if _, ok := all[path]; !ok {
		all[path] = value
	}
}
