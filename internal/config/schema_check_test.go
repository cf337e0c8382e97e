package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// checker checks values against the schema. It supports the keywords of JSON Schema that the schema uses. Any other keyword fails the test,
// so that no keyword is ignored.
type checker struct {
	t    *testing.T
	root keywords
}

func newChecker(t *testing.T, text []byte) checker {
	t.Helper()
	c := checker{t: t}
	if err := json.Unmarshal(text, &c.root); err != nil {
		t.Fatal(err)
	}
	return c
}

// misfit returns the place where v does not match the schema, or "" if v matches.
func (c checker) misfit(v any) string { return c.check(c.root, v, "") }

func (c checker) check(schema, v any, at string) string {
	if allowed, ok := schema.(bool); ok {
		if !allowed {
			return at + ": must not be here"
		}
		return ""
	}
	s := schema.(keywords)
	for _, word := range slices.Sorted(maps.Keys(s)) {
		if why := c.keyword(s, word, s[word], v, at); why != "" {
			return why
		}
	}
	return ""
}

func (c checker) keyword(s keywords, word string, want, v any, at string) string {
	switch word {
	case "$schema", "$comment", "$defs", "title", "description", "default", "examples", "then":
		return ""
	case "$ref":
		def, ok := c.root["$defs"].(keywords)[strings.TrimPrefix(want.(string), "#/$defs/")]
		if !ok {
			c.t.Fatalf("no %v", want)
		}
		return c.check(def, v, at)
	case "type":
		return c.typed(want, v, at)
	case "const":
		return unless(reflect.DeepEqual(v, want), "%s: want %v", at, want)
	case "enum":
		return unless(slices.Contains(want.([]any), v), "%s: want one of %v", at, want)
	case "allOf", "anyOf", "oneOf":
		return c.several(word, want.([]any), v, at)
	case "not":
		return unless(c.check(want, v, at) != "", "%s: is %v", at, want)
	case "if":
		if c.check(want, v, at) == "" {
			return c.check(s["then"], v, at)
		}
		return ""
	}
	switch v := v.(type) {
	case string:
		return c.ofText(word, want, v, at)
	case float64:
		return c.ofNumber(word, want, v, at)
	case []any:
		return c.ofList(word, want, v, at)
	case keywords:
		return c.ofObject(s, word, want, v, at)
	}
	return ""
}

func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func (c checker) typed(want, v any, at string) string {
	kinds, several := want.([]any)
	if !several {
		kinds = []any{want}
	}
	kind := map[reflect.Kind]string{reflect.Invalid: "null", reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number", reflect.Slice: "array", reflect.Map: "object"}[reflect.ValueOf(v).Kind()]
	f, number := v.(float64)
	whole := number && f == math.Trunc(f) && slices.Contains(kinds, any("integer"))
	return unless(whole || slices.Contains(kinds, any(kind)), "%s: a %s, want %v", at, kind, want)
}

func (c checker) several(word string, want []any, v any, at string) string {
	var why []string
	for _, s := range want {
		if w := c.check(s, v, at); w != "" {
			why = append(why, w)
		}
	}
	fits := len(want) - len(why)
	ok := map[string]bool{"allOf": fits == len(want), "anyOf": fits > 0, "oneOf": fits == 1}[word]
	return unless(ok, "%s: fits %d of %s: %s", at, fits, word, strings.Join(why, "; "))
}

func (c checker) ofText(word string, want any, v, at string) string {
	switch word {
	case "pattern":
		return unless(regexp.MustCompile(want.(string)).MatchString(v), "%s: %q is not like %v", at, v, want)
	case "minLength":
		return unless(utf8.RuneCountInString(v) >= int(want.(float64)), "%s: too short", at)
	}
	return c.elsewhere(word)
}

func (c checker) ofNumber(word string, want any, v float64, at string) string {
	switch word {
	case "minimum":
		return unless(v >= want.(float64), "%s: less than %v", at, want)
	case "maximum":
		return unless(v <= want.(float64), "%s: more than %v", at, want)
	}
	return c.elsewhere(word)
}

func (c checker) ofList(word string, want any, v []any, at string) string {
	switch word {
	case "items":
		for i, item := range v {
			if why := c.check(want, item, fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
		return ""
	case "minItems":
		return unless(float64(len(v)) >= want.(float64), "%s: fewer than %v", at, want)
	case "uniqueItems":
		for i, item := range v {
			if slices.ContainsFunc(v[:i], func(other any) bool { return reflect.DeepEqual(item, other) }) {
				return fmt.Sprintf("%s: %v twice", at, item)
			}
		}
		return ""
	}
	return c.elsewhere(word)
}

func (c checker) ofObject(s keywords, word string, want any, v keywords, at string) string {
	known, _ := s["properties"].(keywords)
	switch word {
	case "properties", "propertyNames", "additionalProperties":
		for _, name := range slices.Sorted(maps.Keys(v)) {
			schema, there := known[name]
			value := v[name]
			switch {
			case word == "propertyNames":
				schema, value = want, name
			case word == "additionalProperties" && !there:
				schema = want
			case word == "additionalProperties" || !there:
				continue
			}
			if why := c.check(schema, value, at+"."+name); why != "" {
				return why
			}
		}
	case "required":
		for _, name := range want.([]any) {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Sprintf("%s: no %v", at, name)
			}
		}
	case "dependentRequired":
		for name, needs := range want.(keywords) {
			if _, there := v[name]; there {
				if why := c.ofObject(s, "required", needs, v, at); why != "" {
					return why + ", which " + name + " needs"
				}
			}
		}
	default:
		return c.elsewhere(word)
	}
	return ""
}

// elsewhere ignores a keyword that applies only to values of another type.
func (c checker) elsewhere(word string) string {
	if !slices.Contains(strings.Fields("pattern minLength minimum maximum items minItems uniqueItems properties propertyNames additionalProperties required dependentRequired"), word) {
		c.t.Fatalf("the keyword %s is not known here", word)
	}
	return ""
}
