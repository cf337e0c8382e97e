package flush

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		{"v:[0-3", "no partner"},
		{"v:0-3]", "no partner"},
		{"v:[]", "no range"},
		{"v:[a-c]", "no range"},
		{"v:[3]", "no range"},
		{"v:[-1-3]", "no range"},
		{"v:[3-1]", "backwards"},
		{"v:[0-4096]", "more than 4096"},
		{"v:[0-99]:[0-99]", "more than 4096"},
		{"v:[0-4294967295]", "no range"},
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
		{"user:<>", "no name"},
		{"user:<1a>", "no name"},
		{"user:<a b>", "no name"},
		{"user:[0-3]:<id>", "means nothing"},
		{"user:*:<id>", "means nothing"},
	} {
		if got, err := ParseRowKey(c.pattern); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %+v, %v; want an error that says %q", c.pattern, got, err, c.says)
		}
	}
}
