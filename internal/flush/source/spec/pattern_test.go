package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestKeyPatternExpandsToItsShards(t *testing.T) {
	for _, c := range []struct {
		pattern string
		want    []string
	}{
		{"views", []string{"views"}},
		{"views:[0-2]", []string{"views:0", "views:1", "views:2"}},
		{"v:[8-11]:x", []string{"v:8:x", "v:9:x", "v:10:x", "v:11:x"}},
		{"v:[08-10]", []string{"v:08", "v:09", "v:10"}},
		{"v:[0-1]:[3-4]", []string{"v:0:3", "v:0:4", "v:1:3", "v:1:4"}},
		{"{v}:[0-1]", []string{"{v}:0", "{v}:1"}},
		{"{v:[0-1]}:n", []string{"{v:0}:n", "{v:1}:n"}},
		{"[7-7]", []string{"7"}},
	} {
		got, err := ExpandKey(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.pattern, diff)
		}
	}
}

func TestKeyPatternThatCannotBeMeantIsRefused(t *testing.T) {
	for _, c := range []struct{ pattern, says string }{
		{"", "empty"},
		{"v:[0-3", "a bracket is missing"},
		{"v:0-3]", "a bracket is missing"},
		{"v:[]", "not a range"},
		{"v:[a-c]", "not a range"},
		{"v:[3]", "not a range"},
		{"v:[-1-3]", "not a range"},
		{"v:[3-1]", "begins with the larger number"},
		{"v:[0-4096]", "more than 4096"},
		{"v:[0-99]:[0-99]", "more than 4096"},
		{"v:[0-4294967295]", "not a range"},
		{"v:[1-11][1-11]", "twice"},
		{"v:*", "means nothing"},
		{"v:<id>", "means nothing"},
	} {
		if got, err := ExpandKey(c.pattern); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %v, %v; want an error that says %q", c.pattern, got, err, c.says)
		}
	}
}

func TestRowKeyCapturesOneName(t *testing.T) {
	for _, c := range []struct {
		pattern, id, key string
		want             RowKey
	}{
		{"user:<id>", "7", "user:7", RowKey{Prefix: "user:", Name: "id"}},
		{"{u:<user_id>}:row", "ö", "{u:ö}:row", RowKey{Prefix: "{u:", Suffix: "}:row", Name: "user_id"}},
		{"<k>", "", "", RowKey{Name: "k"}},
	} {
		got, err := ParseRowKey(c.pattern)
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v", c.pattern, got, err)
		}
		if key := got.Key(c.id); key != c.key {
			t.Errorf("%s: key of %q is %q, want %q", c.pattern, c.id, key, c.key)
		}
	}
	for _, c := range []struct{ pattern, says string }{
		{"", "must name"},
		{"user", "must name"},
		{"user:<id", "must name"},
		{"user:<a>:<b>", "must name"},
		{"user:>id<", "must name"},
		{"user:<>", "not a name"},
		{"user:<1a>", "not a name"},
		{"user:<a b>", "not a name"},
		{"user:[0-3]:<id>", "means nothing"},
		{"user:*:<id>", "means nothing"},
	} {
		if got, err := ParseRowKey(c.pattern); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %+v, %v; want an error that says %q", c.pattern, got, err, c.says)
		}
	}
}

func TestKeyPatternReadsAKeyInOneWay(t *testing.T) {
	for _, c := range []struct {
		pattern, key string
		want         []string // nil: no match
	}{
		{"session:<id>", "session:7", []string{"7"}},
		{"session:<id>", "session:", []string{""}},
		{"session:<id>", "session:a:b", []string{"a:b"}},
		{"session:<id>", "sessions:a", nil},
		{"session:<id>", "session", nil},
		{"stock:<shop>:<item>", "stock:paris:7", []string{"paris", "7"}},
		{"stock:<shop>:<item>", "stock:a:b:c", []string{"a", "b:c"}}, // the last capture takes the rest
		{"stock:<shop>:<item>", "stock::", []string{"", ""}},
		{"stock:<shop>:<item>", "stock:paris", nil},
		{"{u:<a>}<b>:x", "{u:1}2:x:x", []string{"1", "2:x"}},
		{"<a>::<b>", "x:::y", []string{"x", ":y"}},
		{"a<b>a", "a", nil}, // both must not use the same letter
		{"a<b>a", "aa", []string{""}},
		{"<b>", "\x00\xff", []string{"\x00\xff"}},
		{"<a>-<b>-<c>.json", "1-2-3-4.json", []string{"1", "2", "3-4"}},
	} {
		p, err := ParseKeyPattern(c.pattern)
		if err != nil || p.String() != c.pattern {
			t.Fatalf("%s: %v, %v", c.pattern, p, err)
		}
		got, ok := p.Match(c.key, nil)
		if ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q is %q, %v; want %q", c.pattern, c.key, got, ok, c.want)
		}
		if ok && p.Key(got) != c.key {
			t.Errorf("%s: %q makes %q", c.pattern, c.key, p.Key(got))
		}
	}
	for _, c := range []struct{ pattern, says string }{
		{"", "must name"},
		{"session:*", "means nothing"},
		{"session:[0-3]:<id>", "means nothing"},
		{"<id>*", "means nothing"},
		{"session:id>", "means nothing"},
		{"session:<id", "not a name"},
		{"session:<>", "not a name"},
		{"<a><b>", "separator"},
		{"x:<a>:<a>", "twice"},
	} {
		if got, err := ParseKeyPattern(c.pattern); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %v, %v; want an error that says %q", c.pattern, got, err, c.says)
		}
	}
}

func TestCapturesMakeTheirKeyAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := rapid.StringOfN(rapid.RuneFrom([]rune("ab:-")), 1, 2, -1)
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab:")), 0, 2, -1).Draw(t, "prefix")
		for i := range rapid.IntRange(1, 4).Draw(t, "captures") {
			if i > 0 {
				pattern += literal.Draw(t, "literal")
			}
			pattern += fmt.Sprintf("<c%d>", i)
		}
		pattern += rapid.StringOfN(rapid.RuneFrom([]rune("ab:")), 0, 2, -1).Draw(t, "suffix")
		p, err := ParseKeyPattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var captures []string
		for range p.Names {
			captures = append(captures, rapid.StringOfN(rapid.RuneFrom([]rune("ab:-x")), 0, 4, -1).Draw(t, "capture"))
		}
		key := p.Key(captures)
		got, ok := p.Match(key, nil)
		if !ok || p.Key(got) != key {
			t.Fatalf("%s: key %q is %q, %v", pattern, key, got, ok)
		}
	})
}
