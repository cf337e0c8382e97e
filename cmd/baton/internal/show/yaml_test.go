package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"baton/cmd/baton/internal/show/showtest"

	"pgregory.net/rapid"
)

// tricky returns texts that some version of YAML reads as another type if they have no quotes.
func tricky() []string {
	return []string{"", "yes", "No", "off", "y", "null", "~", "true", "1e3", "0x1F", "0o17", "017", "12:30:00", "2026-11-22T03:00:00Z", "- a", "a: b", "a #b", "*a", "&a", "!a", "%a", "@a", "`a`",
		"a\nb\n", "  a\n b", "a\tb", "a\rb", "\u0001", "\u007f", "\u0085", "\u2028", "\ufeff", "\u00a0", "…", "日本", " a", "a ", "'", `"`, `\`, "{}", "[]", "|", ">", "-", "?", ":", "=", "<<", ".inf", "NaN", ".nan", "1_000", "+1", "a  b", "---", "..."}
}

func TestYAMLSaysWhatJSONSays(t *testing.T) {
	text := rapid.OneOf(rapid.SampledFrom(tricky()), rapid.String())
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(text.AsAny(), rapid.Int64Range(-1<<52, 1<<52).AsAny(), rapid.Bool().AsAny(), rapid.Just(any(nil)), rapid.Float64Range(-1e9, 1e9).AsAny())
		if depth == 0 {
			return leaf
		}
		below := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
		return rapid.OneOf(leaf, rapid.SliceOfN(below, 0, 3).AsAny(), rapid.MapOfN(text, below, 0, 3).AsAny())
	}
	rapid.Check(t, func(r *rapid.T) {
		v := value(3).Draw(r, "value")
		asJSON, err := json.Marshal(v)
		if err != nil {
			r.Fatal(err)
		}
		var asYAML bytes.Buffer
		if err := writeYAML(&asYAML, v); err != nil {
			r.Fatal(err)
		}
		showtest.SameInYAML(t, "value", string(asJSON), asYAML.String())
		if t.Failed() {
			r.Fatal("see above")
		}
	})
}

// TestYAMLLeavesOnlyPlainWordsBare checks that only plain words have no quotes, because versions of YAML read other texts without quotes in
// different ways.
func TestYAMLLeavesOnlyPlainWordsBare(t *testing.T) {
	for _, text := range tricky() {
		if got := scalar(text); !strings.HasPrefix(got, `"`) {
			t.Errorf("%q stands bare: %s", text, got)
		}
	}
	for _, text := range []string{"db1", "every 5 seconds", "page-views", "a/b.yaml"} {
		if got := scalar(text); got != text {
			t.Errorf("%q is quoted: %s", text, got)
		}
	}
}

func TestYAMLKeepsTheOrderOfNames(t *testing.T) {
	var b strings.Builder
	if err := writeYAML(&b, json.RawMessage(`{"z":[{"b":1,"a":[2,[3]]},{}],"a":{"y":"off","x":null},"l":[]}`)); err != nil {
		t.Fatal(err)
	}
	const want = "---\nz:\n  - b: 1\n    a:\n      - 2\n      - - 3\n  - {}\na:\n  \"y\": \"off\"\n  x: null\nl: []\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestYAMLKeepsNumbersAndRepeatedNamesOfARecord checks records that other programs have written. Their numbers must not be rounded, and a
// record with a repeated name must be shown.
func TestYAMLKeepsNumbersAndRepeatedNamesOfARecord(t *testing.T) {
	for text, want := range map[string]string{
		`{"v":12345678901234567890123456789}`: "v: 12345678901234567890123456789",
		`{"v":1234567.10}`:                    "v: 1234567.10",
		`{"v":123456789.25}`:                  "v: 123456789.25",
		`{"v":0.10000000000000000555}`:        "v: 0.10000000000000000555",
		`{"v":-0}`:                            "v: -0",
		`{"v":1E400}`:                         "v: 1E400",
		`{"v":1,"m":[],"v":"2"}`:              "v: 1\nm: []\nv: \"2\"",
	} {
		var b strings.Builder
		if err := writeYAML(&b, json.RawMessage(text)); err != nil || b.String() != "---\n"+want+"\n" {
			t.Errorf("%s: got %s, %v", text, b.String(), err)
		}
	}
}
