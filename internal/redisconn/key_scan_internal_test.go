package redisconn

import (
	"errors"
	"slices"
	"testing"
)

func TestAReplyOfScanThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		sizes []int
		want  []string // nil: the reply is refused
	}{
		{"7k:ax:bk:c", []int{1, Nested(3), 3, 3, 3}, []string{"k:a", "x:b", "k:c"}},
		{"0", []int{1, Nested(0)}, []string{}},
		{"7k:a", []int{1, Nested(2), 3}, nil},
		{"7k:a", []int{1, 3}, nil},
		{"7", []int{1}, nil},
		{"k:a", []int{-1, Nested(1), 3}, nil},
		{"7k:a", []int{1, Nested(2), 3, -1}, nil},
		{"", nil, nil},
	} {
		var keys KeyScan
		got := []string{}
		err := keys.take(&Answers{All: []byte(c.text), Sizes: c.sizes}, func(key string) { got = append(got, key) })
		if c.want == nil {
			if !errors.Is(err, errNoScan) {
				t.Errorf("%q, %v: %v", c.text, c.sizes, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) || keys.Cursor != c.text[:1] {
			t.Errorf("%q: %q, cursor %q, %v", c.text, got, keys.Cursor, err)
		}
	}
}

func TestGlobTakesLiteralsLiterally(t *testing.T) {
	for want, literals := range map[string][]string{
		"session:*": {"session:", ""}, `s\?:*\\*\^`: {"s?:", `\`, "^"}, "{u:*}:row": {"{u:", "}:row"}, "a*c*e": {"a", "c", "e"},
		`a\*\[b\]`: {"a*[b]"},
	} {
		if got := Glob(literals...); got != want {
			t.Errorf("%q: %s, want %s", literals, got, want)
		}
	}
}
