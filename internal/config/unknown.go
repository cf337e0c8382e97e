package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"baton/internal/text"
)

// unknown reports a key that does not exist in the struct v.
func (d *decoder) unknown(key ast.Node, v reflect.Value, name, at string) {
	var known []string
	for _, f := range reflect.VisibleFields(v.Type()) {
		if k := keyOf(f); k != "" {
			known = append(known, k)
		}
	}
	d.fail(key, at, "unknown key; %s", suggest(name, known))
}

// suggest returns a text with the known word that is most similar to the argument word, or with all known words if none is similar.
func suggest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if n := text.Edits(word, k); n < least && n <= (len(k)+1)/3 {
			best, least = k, n
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "choose one of " + strings.Join(known, ", ")
}

// isKey reports whether any part of the configuration has a key with this name.
func isKey(name string) bool { return hasKey(reflect.TypeFor[Config](), name) }

func hasKey(t reflect.Type, name string) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return hasKey(t.Elem(), name)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if k := keyOf(f); k != "" && (k == name || hasKey(f.Type, name)) {
				return true
			}
		}
	}
	return false
}
