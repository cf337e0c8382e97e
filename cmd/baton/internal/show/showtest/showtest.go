// Package showtest contains checks that tests of commands apply to all printed output.
package showtest

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// Times fails the test if the function print writes no time, a time without its zone, or a time that is neither the expected time nor one
// hour later. The argument at is the expected time.
func Times(t *testing.T, what string, at time.Time, print func(io.Writer) error) {
	t.Helper()
	var text strings.Builder
	if err := print(&text); err != nil {
		t.Fatal(err)
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\d.\d\d:\d\d\S*(?: \S+)?`).FindAllString(text.String(), -1)
	if len(times) == 0 {
		t.Errorf("%s has no time:\n%s", what, text.String())
	}
	for _, shown := range times {
		parsed := time.Time{}
		for _, layout := range []string{"2006-01-02 15:04:05 -07:00", "2006-01-02 15:04:05.000 -07:00"} {
			if p, err := time.Parse(layout, strings.TrimRight(shown, ";,:")); err == nil {
				parsed = p
			}
		}
		if d := parsed.Sub(at); d != 0 && d != time.Hour {
			t.Errorf("%s shows %q of %v", what, shown, at)
		}
	}
}

// SameInYAML fails the test unless a YAML text has the same content as a JSON text, with the names in the same order.
func SameInYAML(t *testing.T, what, asJSON, asYAML string) {
	t.Helper()
	var want, got any
	if err := json.Unmarshal([]byte(asJSON), &want); err != nil {
		t.Fatalf("%s: JSON: %v\n%s", what, err, asJSON)
	}
	if err := yaml.Unmarshal([]byte(asYAML), &got); err != nil {
		t.Fatalf("%s: YAML: %v\n%s", what, err, asYAML)
	}
	if diff := cmp.Diff(want, numbers(got)); diff != "" {
		t.Errorf("%s: JSON and YAML differ (-JSON +YAML):\n%s\n%s", what, diff, asYAML)
	}
}

// numbers converts all integers in v to float64, the type in which the decoder of JSON returns numbers.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
		return v
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
		return v
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	}
	return v
}
