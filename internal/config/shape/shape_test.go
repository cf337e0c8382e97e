package shape

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/parser"
)

func repeated(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func stairs(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestDepthAndWidthAreRefusedWithTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"lists in brackets":       {strings.Repeat("[", 60_000), "1:33 nested deeper than 32"},
		"mappings in brackets":    {"a: 1\nb: " + strings.Repeat("{a: ", 15_000), "2:128 nested deeper than 32"},
		"closed brackets":         {"a: " + strings.Repeat("[", 33) + strings.Repeat("]", 33), "1:35 nested deeper than 32"},
		"lists in one line":       {strings.Repeat("- ", 30_000) + "x", "1:65 nested deeper than 32"},
		"complex keys":            {strings.Repeat("? ", 30_000) + "x", "1:65 nested deeper than 32"},
		"indented mappings":       {stairs(300), "33:34 nested deeper than 32"},
		"a wide mapping":          {"a:\n" + repeated(2001, "  k%d: 1\n"), "2002:"},
		"a wide one in brackets":  {"a: {" + repeated(2001, "k%d: 1, ") + "}", "a mapping of more than 2000 keys"},
		"a long list":             {"a:\n" + repeated(10_001, "- %d\n"), "10002:1 a list of more than 10000"},
		"a long one in brackets":  {"a: [" + repeated(10_002, "%d, ") + "]", "a list of more than 10000"},
		"brackets within a list":  {"a:\n- b:\n  - " + strings.Repeat("[", 40), "nested deeper than 32"},
		"dense lists":             {"a:\n" + strings.Repeat("- [a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a]\n", 8000), "more than 300000 words"},
		"keys without values":     {repeated(3, "x%d: {"+strings.Repeat("k: ,", 1000)+"}\n"), "more than 2000 keys without a value"},
		"tags":                    {"a: " + strings.Repeat("!!x ", 60_000), "more than 100 anchors"},
		"anchors":                 {"a: " + strings.Repeat("&a ", 60_000), "more than 100 anchors"},
		"aliases":                 {strings.Repeat("*a ", 60_000), "more than 100 anchors"},
		"directives":              {strings.Repeat("%Y\n", 60_000), "more than 100 anchors"},
		"a comment in the middle": {strings.Repeat("[\n# ]\n", 40), "nested deeper than 32"},
	} {
		_, err := Tokens(c.text)
		excess, ok := errors.AsType[*LimitError](err)
		if !ok {
			t.Errorf("%s is taken: %v", name, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d %s", excess.Line, excess.Column, excess.Message); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatIsHonestPasses(t *testing.T) {
	for name, text := range map[string]string{
		"many jobs": "jobs:\n" + repeated(9000, "  - name: j%d\n    flush:\n      from: {type: hashes, key: 'u:<id>'}\n      columns: {a: b, c: d}\n"),
		"a wide table": "jobs:\n- flush:\n    columns:\n" + repeated(1990, "      c%d: f\n") +
			"    to: {}\n- flush:\n    columns:\n" + repeated(1990, "      c%d: f\n"),
		"brackets in texts":   "a: |\n" + strings.Repeat("  [[[[{{{{\n", 100) + "b: '" + strings.Repeat("[", 100) + "'\nc: x" + strings.Repeat("[", 100),
		"brackets after each": strings.Repeat("- [[[[[]]]]]\n- {a: {b: {}}}\n", 300),
		"comments":            strings.Repeat("# [ { - ?\n", 100) + "a:\n  b:\n" + strings.Repeat("      # far\n", 50) + "  c: 1\n",
		"steps":               strings.Repeat("a:\n  b:\n    c: 1\nd:\n- e:\n  - f\n", 100),
	} {
		if _, err := Tokens(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatIsBrokenIsReadToItsFirstFault checks that reading stops at the first mistake, which the parser reports. The time for the rest of
// these texts would grow with the square of their length.
func TestWhatIsBrokenIsReadToItsFirstFault(t *testing.T) {
	for name, text := range map[string]string{
		"a bracket too much": "a: [1]\nb: " + strings.Repeat("]", 100_000),
		"a brace too much":   "a: {b: 1}" + strings.Repeat("}", 100_000),
		"reserved signs":     "a: " + strings.Repeat("@", 100_000),
		"texts in a row":     "a: " + strings.Repeat(`"a" `, 100_000),
		"texts of others":    strings.Repeat(`'a' "b" c `, 100_000),
		"backticks":          "a: " + strings.Repeat("`", 100_000),
	} {
		if words, err := Tokens(text); err != nil || len(words) > 20 {
			t.Errorf("%s: %d words, %v", name, len(words), err)
		} else if _, err := parser.Parse(words, 0); err == nil {
			t.Errorf("%s: the parser is content", name)
		}
	}
}
