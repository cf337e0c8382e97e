package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// laterKey is a key that baton has or will have, but not this version.
type laterKey struct {
	// same are the values that ask for just what this version does; they are let through.
	same []string
	// instead says what this version does.
	instead string
}

// laterKeys is what must be refused by name, so that nobody believes in a
// setting that has no effect.
func laterKeys() map[string]laterKey {
	return map[string]laterKey{
		"defaults.overlap":           {[]string{"forbid"}, "a run never overlaps the one before"},
		"jobs[].overlap":             {[]string{"forbid"}, "a run never overlaps the one before"},
		"jobs[].command":             {nil, "a job is a flush"},
		"jobs[].grace":               {nil, "a job is a flush"},
		"jobs[].retry":               {nil, "a failed run is tried again at its next slot"},
		"jobs[].jitter":              {nil, "a slot starts on time"},
		"jobs[].on_lost":             {nil, "a run that was lost with its node is not repeated; the next slot flushes what it left"},
		"jobs[].max_concurrent_jobs": {nil, "jobs run side by side"},
		"max_concurrent_jobs":        {nil, "jobs run side by side"},
	}
}

// unknown reports a key that the struct v does not have.
func (d *decoder) unknown(key, value ast.Node, v reflect.Value, name, at string) {
	if later, ok := laterKeys()[index.ReplaceAllString(at, "[]")]; ok {
		if s, ok := text(value); ok && slices.Contains(later.same, s) {
			return
		}
		msg := fmt.Sprintf("not supported by this version: %s; ", later.instead)
		if len(later.same) > 0 {
			msg += fmt.Sprintf("leave it out or write %s", strings.Join(later.same, " or "))
		} else {
			msg += "remove it"
		}
		d.fail(key, at, "%s", msg)
		return
	}
	var known []string
	for f := range v.Type().Fields() {
		if k := keyOf(f); k != "" {
			known = append(known, k)
		}
	}
	d.fail(key, at, "unknown key; %s", suggest(name, known))
}

// index is the [1] of a path.
var index = regexp.MustCompile(`\[\d+\]`)

// suggest names the word that was probably meant, or all there are.
func suggest(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if n := edits(word, k); n < least && n <= (len(k)+1)/3 {
			best, least = k, n
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "there are " + strings.Join(known, ", ")
}

// edits is the Levenshtein distance: how many letters to change, add or drop.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
