package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// aDuration matches the texts that parseDuration accepts. A duration with a digit other than 0 is positive.
const aDuration = `^([0-9]+d|([0-9]+d|\+)?([0-9]+(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)|\.[0-9]+(ns|us|µs|μs|ms|s|m|h))+)$`

// keywords is a schema, or a part of a schema.
type keywords = map[string]any

// schemaWriter generates the schema. Names and types come from the structs, and meanings and defaults come from their comments. Words and
// limits come from Validate's problems of wrong values. Rules about several settings come from structure().
type schemaWriter struct {
	t                *testing.T
	docs             map[string]structDoc
	wanted           map[string]wanted
	examples         map[string]string
	structure        map[string]keywords
	structureWritten map[string]bool
}

func writtenSchema(t *testing.T) []byte {
	t.Helper()
	w := schemaWriter{t, structDocs(t), askForWanted(t), examples(t), structure(), map[string]bool{}}
	root := w.object("", reflect.TypeFor[Config]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$comment"] = "Written by: go test ./internal/config -run Schema -update. Do not edit."
	root["title"] = "Configuration of baton"
	root["$defs"] = keywords{"duration": keywords{"type": "string", "allOf": []any{keywords{"pattern": aDuration}, keywords{"pattern": "[1-9]"}}}}
	for at := range w.structure {
		if !w.structureWritten[at] {
			t.Errorf("there is no setting %s", at)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// object returns the schema of a struct. An empty section counts as not set.
func (w *schemaWriter) object(at string, typ reflect.Type) keywords {
	properties, required := keywords{}, []any{}
	for _, f := range reflect.VisibleFields(typ) {
		key := keyOf(f)
		if key == "" || f.Anonymous {
			continue
		}
		owner := typ
		if len(f.Index) > 1 {
			owner = typ.FieldByIndex(f.Index[:1]).Type
		}
		d := w.docs[owner.Name()].fields[f.Name]
		if d.meaning == "" {
			if below, _ := elementOf(f.Type); below != nil {
				d.meaning = w.docs[below.Name()].about
			}
		}
		if owner != typ && at == "jobs[]" {
			d.def = "as in `defaults`"
		}
		of := strings.TrimPrefix(at+"."+key, ".")
		p := w.value(of, f.Type, f.Tag)
		w.describe(p, of, d)
		properties[key] = p
		if d.def == "required" || strings.HasPrefix(d.def, "required,") {
			required = append(required, key)
		}
	}
	s := keywords{"type": []any{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"], s["type"] = required, "object"
	}
	return w.structured(at, s)
}

// value returns the schema of a setting of any type. A value that is a single word may also be a text.
func (w *schemaWriter) value(at string, typ reflect.Type, tag reflect.StructTag) keywords {
	text := keywords{"type": []any{"string", "number", "boolean"}}
	if typ.Kind() == reflect.Pointer {
		return w.value(at, typ.Elem(), tag)
	}
	if typ == reflect.TypeFor[time.Duration]() {
		return keywords{"$ref": "#/$defs/duration"}
	}
	var s keywords
	switch typ.Kind() {
	case reflect.Struct:
		s = w.object(at, typ)
	case reflect.Slice:
		s = w.structured(at, keywords{"type": []any{"array", "null"}, "items": w.value(at+"[]", typ.Elem(), tag)})
	case reflect.Map:
		s = w.structured(at, keywords{"type": []any{"object", "null"}, "additionalProperties": w.value(at+".NAME", typ.Elem(), tag)})
	case reflect.Bool:
		return keywords{"type": "boolean"}
	case reflect.Int:
		return w.structured(at, w.wanted[at].bounds(tag.Get("config") == "positive"))
	case reflect.String:
		s = text
		if words := w.wanted[at].words; len(words) > 0 {
			s = keywords{"enum": words}
			if tag.Get("config") == "null" && slices.Contains(words, "null") {
				s["enum"] = append(words, nil)
			}
		}
		return w.structured(at, s)
	default:
		w.t.Fatalf("%s: what is a %s?", at, typ)
	}
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[shorthand]()) {
		s = keywords{"anyOf": []any{w.structured(at+" as text", text), s}}
	}
	return s
}

// structured adds the rules of the table structure for a setting.
func (w *schemaWriter) structured(at string, s keywords) keywords {
	more, ok := w.structure[at]
	w.structureWritten[at] = w.structureWritten[at] || ok
	maps.Copy(s, more)
	return s
}

// describe adds the meaning of a setting, and its default if the default is a single value.
func (w *schemaWriter) describe(s keywords, at string, d fieldDoc) {
	text := join(d.meaning)
	if d.def != "" {
		text = join(text, strings.ToUpper(d.def[:1])+d.def[1:]+".")
		if !strings.Contains(d.def, "required") {
			text = join(d.meaning, "Default: "+d.def+".")
		}
	}
	if text != "" {
		s["description"] = text
	}
	word, _, _ := strings.Cut(d.def, ", ")
	words, _ := s["enum"].([]any)
	number, err := strconv.Atoi(word)
	_, notDuration := parseDuration(word)
	switch {
	case s["type"] == "integer" && err == nil:
		s["default"] = number
	case s["type"] == "boolean" && (word == "true" || word == "false"):
		s["default"] = word == "true"
	case slices.Contains(words, any(word)), s["$ref"] != nil && notDuration == nil:
		s["default"] = word
	case s["$ref"] != nil, s["enum"] == nil && s["anyOf"] == nil && reflect.DeepEqual(s["type"], []any{"string", "number", "boolean"}):
		if example := w.examples[at]; example != "" {
			s["examples"] = []any{example}
		}
	}
}

// wanted is the value that a problem of Validate asks for.
type wanted struct {
	words      []any
	least, top string
}

func (w wanted) bounds(positive bool) keywords {
	s := keywords{"type": "integer"}
	if n, err := strconv.Atoi(w.least); err == nil {
		s["minimum"] = n
	}
	if n, err := strconv.Atoi(w.top); err == nil {
		s["maximum"] = n
	}
	if least, _ := s["minimum"].(int); positive {
		s["minimum"] = max(1, least)
	}
	return s
}

var (
	wantWords = regexp.MustCompile(` is not known here; write ([A-Za-z0-9_]+(?:(?:, | or )[A-Za-z0-9_]+)*)$`)
	wantRange = regexp.MustCompile(`must be (?:from )?([0-9]+) (?:to ([0-9]+)|or more)`)
)

// learn reads the wanted value from a problem of Validate.
func (w wanted) learn(message string) wanted {
	if m := wantWords.FindStringSubmatch(message); m != nil {
		for word := range strings.SplitSeq(strings.ReplaceAll(m[1], " or ", ", "), ", ") {
			if !slices.Contains(w.words, any(word)) {
				w.words = append(w.words, word)
			}
		}
	}
	if m := wantRange.FindStringSubmatch(message); m != nil {
		w.least, w.top = m[1], m[2]
	}
	return w
}

// askForWanted replaces each valid value with a wrong value, one at a time, and stores the values that Validate asks for.
func askForWanted(t *testing.T) map[string]wanted {
	t.Helper()
	all := map[string]wanted{}
	for _, document := range everyDocument(t) {
		tree := decoded(t, document)
		eachValue(tree, "", "", reflect.TypeFor[Config](), func(path, at string, kind reflect.Kind, set func(any)) {
			wrong := []any{"unheard of"}
			if kind == reflect.Int {
				wrong = []any{-1, 1 << 40}
			}
			for _, v := range wrong {
				set(v)
				for _, p := range problemsOf(t, tree) {
					if p.Path == path {
						all[at] = all[at].learn(p.Message)
					}
				}
			}
		})
	}
	return all
}

// problemsOf returns the problems that Validate finds.
func problemsOf(t *testing.T, tree any) Problems {
	t.Helper()
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse("schema", text, testSecrets)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	problems, _ := errors.AsType[Problems](c.WithDefaults().Validate(Checks{}))
	return problems
}

// eachValue visits all texts and whole numbers of a file, with the path of the value and the path of its setting. It restores the values
// that visit has changed.
func eachValue(v any, path, at string, typ reflect.Type, visit func(path, at string, kind reflect.Kind, set func(any))) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	step := func(old any, path, at string, of reflect.Type, set func(any)) {
		if kind := of.Kind(); (kind == reflect.String || kind == reflect.Int) && of != reflect.TypeFor[time.Duration]() {
			visit(path, at, kind, set)
			set(old)
			return
		}
		eachValue(old, path, at, of, visit)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			var of reflect.Type
			next := at + ".NAME"
			if typ.Kind() == reflect.Map {
				of = typ.Elem()
			} else if f, _, ok := fieldNamed(reflect.New(typ).Elem(), name); ok {
				next, of = at+"."+name, f.Type()
			} else {
				continue
			}
			step(v[name], strings.TrimPrefix(path+"."+name, "."), strings.TrimPrefix(next, "."), of, func(to any) { v[name] = to })
		}
	case []any:
		for i := range v {
			step(v[i], path+"["+strconv.Itoa(i)+"]", at+"[]", typ.Elem(), func(to any) { v[i] = to })
		}
	}
}
